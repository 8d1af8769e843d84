/* What the two forms of a report say alike. */

#include "analysis/compare/settings_flat.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"
#include "collector/base/utf8.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/report_private.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -- text ----------------------------------------------------------------------------------- */

/** Controls, zero-width and direction marks: what makes a text look like another. */
static bool is_hidden(const unsigned char *at, size_t length)
{
    if (length == 1) {
        return (at[0] < 0x20 && at[0] != '\n') || at[0] == 0x7F;
    }
    bool is_c1 = length == 2 && at[0] == 0xC2 && at[1] < 0xA0;
    bool is_mark =
        length == 3 && at[0] == 0xE2 &&
        ((at[1] == 0x80 && (at[2] >= 0xA8 || (at[2] >= 0x8B && at[2] <= 0x8F)) && at[2] <= 0xAE) ||
         (at[1] == 0x81 && at[2] >= 0xA0 && at[2] <= 0xAF));
    bool is_bom = length == 3 && at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF;
    return is_c1 || is_mark || is_bom;
}

void lac_html_escape(struct lac_buffer *out, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    while (length > 0) {
        size_t size = lac_utf8_length(at, at + length);
        if (size == 0 || is_hidden(at, size)) {
            lac_buffer_puts(out, LAC_UTF8_REPLACEMENT);
        } else if (*at == '&') {
            lac_buffer_puts(out, "&amp;");
        } else if (*at == '<') {
            lac_buffer_puts(out, "&lt;");
        } else if (*at == '>') {
            lac_buffer_puts(out, "&gt;");
        } else if (*at == '"') {
            lac_buffer_puts(out, "&quot;");
        } else if (*at == '\'') {
            lac_buffer_puts(out, "&#39;");
        } else {
            lac_buffer_add(out, at, size);
        }
        size = size == 0 ? 1 : size;
        at += size;
        length -= size;
    }
}

void lac_html_text(struct lac_buffer *out, const struct lac_report_source *source, const char *text)
{
    const char *plain = lac_redact(source->redactor, text);
    lac_html_escape(out, plain, strlen(plain));
}

void lac_report_trim(char *out, size_t capacity_bytes, const char *text)
{
    (void)snprintf(out, capacity_bytes, "%s", text);
    size_t length = strlen(out);
    while (length > 0 && out[length - 1] == ' ') {
        out[--length] = '\0';
    }
}

const char *lac_report_name(const struct lac_report_source *source)
{
    const char *name = lac_model_str(source->model, source->model->info.name);
    const char *given = lac_redact_given(source->redactor, name, "trace");
    return *given != '\0' ? given : "trace";
}

/* -- facts ---------------------------------------------------------------------------------- */

void lac_report_figures(const struct lac_analysis *analysis, char *out, size_t capacity_bytes)
{
    bool has_rate = isfinite(analysis->throughput_per_s); /* steps that mean something */
    bool is_loop =
        has_rate || analysis->workload == LAC_WORKLOAD_FEW_STEPS ||
        (analysis->workload == LAC_WORKLOAD_INFERENCE && analysis->partition.of == LAC_OF_STEP);
    const char *unit = lac_loop_unit(analysis);
    if (analysis->step_kept_count == 0 || analysis->step_mean_ns == LAC_UNKNOWN_NS || !is_loop) {
        (void)snprintf(out, capacity_bytes, "no steady step in this trace");
        return;
    }
    char rate[64] = "";
    char spread[48] = "";
    char batch[48] = "";
    if (has_rate) {
        (void)snprintf(rate, sizeof(rate), "%s %s/s, ",
                       lac_format_rate(analysis->throughput_per_s).text, lac_rate_unit(analysis));
    }
    if (isfinite(analysis->step_uncertain_pct) && analysis->step_uncertain_pct >= 0.1) {
        (void)snprintf(spread, sizeof(spread), " (\u00b1%.*f %%)",
                       analysis->step_uncertain_pct < 1.0 ? 1 : 0, analysis->step_uncertain_pct);
    }
    if (analysis->batch_size != LAC_UNKNOWN_NS) {
        (void)snprintf(batch, sizeof(batch), ", batch %lld", (long long)analysis->batch_size);
    }
    (void)snprintf(out, capacity_bytes, "%s%s per %s%s, %u %s%s%s", rate,
                   lac_format_ns(analysis->step_mean_ns).text, unit, spread,
                   (unsigned)analysis->step_kept_count, unit,
                   analysis->step_kept_count == 1 ? ""
                   : strcmp(unit, "batch") == 0   ? "es"
                                                  : "s",
                   batch);
}

static void need(struct lac_report_need *needs, uint32_t *count, enum lac_need which, int64_t ns,
                 const char *note)
{
    if (ns == LAC_UNKNOWN_NS) {
        return;
    }
    struct lac_report_need *it = &needs[(*count)++];
    *it = (struct lac_report_need){.name = lac_word(LAC_WORDS_NEED, which)->label, .ns = ns};
    (void)snprintf(it->note, sizeof(it->note), "%s", note);
}

uint32_t lac_report_needs(const struct lac_analysis *analysis, struct lac_report_need *needs)
{
    const struct lac_loader_facts *loader = &analysis->loader;
    uint32_t count = 0;
    char data[80] = "";
    if (analysis->step_mean_ns == LAC_UNKNOWN_NS || analysis->needs.gpu_ns == LAC_UNKNOWN_NS) {
        return 0;
    }
    if (loader->num_workers > 0 && loader->fetch_mean_ns != LAC_UNKNOWN_NS) {
        (void)snprintf(data, sizeof(data), "%d workers, %s per batch%s", (int)loader->num_workers,
                       lac_format_ns(loader->fetch_mean_ns).text,
                       loader->are_workers_inferred ? " (inferred)" : "");
    } else if (loader->num_workers == 0) {
        (void)snprintf(data, sizeof(data), "in the training process");
    }
    need(needs, &count, LAC_NEED_DATA, analysis->needs.data_ns, data);
    need(needs, &count, LAC_NEED_GPU, analysis->needs.gpu_ns, "");
    need(needs, &count, LAC_NEED_COPIES, analysis->needs.copies_ns, "");
    need(needs, &count, LAC_NEED_HOST, analysis->needs.host_ns, "");
    if (analysis->needs.comm_ns > 0) {
        need(needs, &count, LAC_NEED_COMM, analysis->needs.comm_ns, "");
    }
    return count;
}

struct rows {
    const struct lac_report_source *source;
    struct lac_report_row *at;
    uint32_t count;
};

static void row(struct rows *rows, const char *key, const char *value)
{
    if (rows->count == LAC_REPORT_ROWS_MAX || *value == '\0') {
        return;
    }
    struct lac_report_row *it = &rows->at[rows->count++];
    (void)snprintf(it->key, sizeof(it->key), "%s", key);
    (void)snprintf(it->value, sizeof(it->value), "%s", value);
}

static void add_setting(void *context, const char *key, const char *value)
{
    struct rows *rows = context;
    struct lac_redactor *redactor = rows->source->redactor;
    bool is_argv = strstr(key, "argv") != NULL || strstr(key, "command") != NULL ||
                   strstr(key, "cmdline") != NULL;
    bool is_given = strstr(key, "model") != NULL || strstr(key, "dataset") != NULL ||
                    strstr(key, "project") != NULL;
    bool is_flag = strcmp(value, "on") == 0 || strcmp(value, "off") == 0;
    row(rows, key,
        is_argv                ? lac_redact_argv(redactor, value)
        : is_given && !is_flag ? lac_redact_given(redactor, value, "(left out)")
                               : lac_redact(redactor, value));
}

uint32_t lac_report_settings(const struct lac_report_source *source, struct lac_report_row *rows)
{
    struct rows list = {.source = source, .at = rows};
    lac_settings_each(&source->model->settings, add_setting, &list);
    return list.count;
}

uint32_t lac_report_host(const struct lac_report_source *source, struct lac_report_row *rows)
{
    const struct lac_model *model = source->model;
    struct rows list = {.source = source, .at = rows};
    char text[160];
    row(&list, "host", lac_redact(source->redactor, lac_model_str(model, model->info.host)));
    for (uint32_t p = 0; p < model->process_count && list.count < 12; p++) {
        bool is_new = !model->processes[p].is_gpu && model->processes[p].name != 0;
        for (uint32_t before = 0; before < p && is_new; before++) {
            is_new = model->processes[before].name != model->processes[p].name;
        }
        if (is_new) {
            row(&list, "process",
                lac_redact_process(source->redactor,
                                   lac_model_str(model, model->processes[p].name)));
        }
    }
    for (uint32_t d = 0; d < source->analysis->device_count && list.count < 24; d++) {
        const struct lac_device_facts *facts = &source->analysis->devices[d];
        uint32_t index = lac_model_device_index(model, facts->id);
        const struct lac_device *device = index == LAC_NONE ? NULL : &model->devices[index];
        int used = snprintf(text, sizeof(text), "%.90s", lac_model_str(model, facts->name));
        if (device != NULL && device->sm_count > 0 && used > 0 && (size_t)used < sizeof(text)) {
            (void)snprintf(text + used, sizeof(text) - (size_t)used,
                           ", %d multiprocessors, compute capability %d.%d", (int)device->sm_count,
                           (int)device->cc_major, (int)device->cc_minor);
        }
        char key[32];
        (void)snprintf(key, sizeof(key), "GPU %lld", (long long)facts->id);
        row(&list, key, text[0] != '\0' ? text : "name not recorded");
    }
    if (model->info.world_size > 0) {
        (void)snprintf(text, sizeof(text), "%d of %d", (int)model->info.rank,
                       (int)model->info.world_size);
        row(&list, "rank", text);
    }
    return list.count;
}

/** How the steps were found, for a reader. */
static const char *step_method_label(const char *method)
{
    const struct lac_word *word = lac_word_of(LAC_WORDS_STEP_METHOD, method);
    return word != NULL ? word->label : method;
}

uint32_t lac_report_method(const struct lac_report_source *source, struct lac_report_row *rows)
{
    const struct lac_model *model = source->model;
    const struct lac_analysis *analysis = source->analysis;
    struct rows list = {.source = source, .at = rows};
    char text[160];
    time_t begin_s = (time_t)(model->info.t0_ns / 1000000000);
    struct tm begin;
    /* a trace without an absolute time begins near 1970: then no date is given */
    if (begin_s > 1000000000 && gmtime_r(&begin_s, &begin) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &begin) > 0) {
        row(&list, "recorded", text);
    }
    row(&list, "format", lac_trace_format_name(model->info.format));
    (void)snprintf(text, sizeof(text), "%s over %s",
                   lac_format_count((int64_t)model->info.event_count, "event").text,
                   lac_format_ns(model->info.duration_ns).text);
    row(&list, "recorded events", text);
    (void)snprintf(text, sizeof(text), "%s dropped, %s repaired",
                   lac_format_count((int64_t)model->info.dropped_count, "event").text,
                   lac_format_count((int64_t)model->info.repaired_count, "event").text);
    row(&list, "reading the file", text);
    (void)snprintf(text, sizeof(text), "%s found by %s, %u measured",
                   lac_format_count(analysis->step_count, "step").text,
                   step_method_label(analysis->step_method), (unsigned)analysis->step_kept_count);
    row(&list, "steps", analysis->step_count > 0 ? text : "none found");
    if (analysis->step_kept_count > 0 && analysis->step_median_ns != LAC_UNKNOWN_NS) {
        (void)snprintf(text, sizeof(text), "mean %s, median %s, 95th percentile %s",
                       lac_format_ns(analysis->step_mean_ns).text,
                       lac_format_ns(analysis->step_median_ns).text,
                       lac_format_ns(analysis->step_p95_ns).text);
        row(&list, "step time", text);
    }
    row(&list, "model FLOP/s used", analysis->efficiency.text);
    if (analysis->has_kernels) {
        (void)snprintf(text, sizeof(text), "%s of the kernel time",
                       lac_format_pct(analysis->unknown_kernels_pct).text);
        row(&list, "kernels of unknown name", analysis->unknown_kernels_pct > 0.0 ? text : "none");
    }
    row(&list, "Python stacks",
        model->info.has_python_stacks ? "recorded: host times are inflated" : "not recorded");
    row(&list, "gains", "from replaying the step with the change, not from shares of kernel time");
    return list.count;
}

/* -- lists ---------------------------------------------------------------------------------- */

uint32_t lac_report_plan(const struct lac_report_source *source, struct lac_report_row *rows)
{
    const struct lac_analysis *analysis = source->analysis;
    for (uint32_t i = 0; i < analysis->plan_count; i++) {
        const struct lac_plan_step *step = &analysis->plan[i];
        struct lac_report_row *it = &rows[i];
        (void)snprintf(it->key, sizeof(it->key), "%s", step->brief);
        (void)snprintf(it->value, sizeof(it->value), "%s per step, %s less",
                       lac_format_ns(step->step_ns).text, lac_format_pct(step->gain_pct).text);
    }
    return analysis->plan_count;
}

static int by_total(const void *a, const void *b)
{
    const struct lac_report_kernel *x = a;
    const struct lac_report_kernel *y = b;
    if (x->total_ns != y->total_ns) {
        return x->total_ns > y->total_ns ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

uint32_t lac_report_kernels(const struct lac_report_source *source,
                            struct lac_report_kernel *kernels)
{
    /* of a long list the tail is too short to matter once it is put together */
    enum { LOOKED_AT = 128 };
    const struct lac_analysis *analysis = source->analysis;
    struct lac_report_kernel all[LOOKED_AT];
    uint32_t count = 0;
    for (uint32_t k = 0; k < analysis->kernel_name_count && k < LOOKED_AT; k++) {
        const struct lac_kernel_facts *facts = &analysis->kernels[k];
        struct lac_report_kernel *it = &all[count];
        *it = (struct lac_report_kernel){
            .family = lac_word(LAC_WORDS_FAMILY, facts->names.family)->label};
        (void)lac_kernel_short_name(lac_model_str(source->model, facts->name),
                                    lac_strings_length(&source->model->strings, facts->name),
                                    it->name, sizeof(it->name));
        uint32_t same = 0;
        while (same < count && (strcmp(all[same].name, it->name) != 0 ||
                                strcmp(all[same].family, it->family) != 0)) {
            same++;
        }
        all[same].count += facts->count;
        all[same].total_ns += facts->total_ns;
        count += same == count;
    }
    if (count > 1) {
        qsort(all, count, sizeof(all[0]), by_total);
    }
    count = count < LAC_REPORT_KERNELS_MAX ? count : LAC_REPORT_KERNELS_MAX;
    memcpy(kernels, all, count * sizeof(all[0]));
    return count;
}

bool lac_report_is_new_evidence(const struct lac_finding *finding, uint32_t index)
{
    const struct lac_evidence *at = &finding->evidence[index];
    /* "62 ms idle: waited 71 ms for the next batch", then the slice of that wait by its name */
    bool is_root = index > 0 && at->slice != LAC_NONE && at[-1].slice == LAC_NONE &&
                   strstr(at[-1].text, ": ") != NULL;
    for (uint32_t i = 0; i < index && !is_root; i++) {
        is_root = strcmp(finding->evidence[i].text, at->text) == 0;
    }
    return !is_root;
}

static void term(struct rows *rows, enum lac_term which)
{
    const struct lac_word *word = lac_word(LAC_WORDS_TERM, which);
    row(rows, word->label, word->definition);
}

uint32_t lac_report_words(const struct lac_analysis *analysis, struct lac_report_row *rows)
{
    struct rows list = {.at = rows};
    if (analysis->step_count > 0) {
        term(&list, LAC_TERM_STEP);
    }
    if (analysis->device_count > 0) {
        term(&list, LAC_TERM_KERNEL);
        term(&list, LAC_TERM_IDLE);
    }
    term(&list, LAC_TERM_HOST);
    if (analysis->copy_count > 0) {
        term(&list, LAC_TERM_EXPOSED);
    }
    if (analysis->needs.comm_ns != LAC_UNKNOWN_NS && analysis->needs.comm_ns > 0) {
        term(&list, LAC_TERM_COLLECTIVE);
    }
    if (analysis->has_kernels && analysis->layout_count > 0) {
        term(&list, LAC_TERM_LAYOUT);
    }
    if (analysis->tensor_eligible_ns > 0) {
        term(&list, LAC_TERM_TENSOR_CORE);
    }
    return list.count;
}
