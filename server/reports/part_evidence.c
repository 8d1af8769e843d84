#include "server/reports/part_evidence.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/json/flame_json.h"
#include "server/json/flame_pack.h"
#include "server/reports/snapshot.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What it was taken of, and the line of numbers below it. */
static void begin(struct lac_buffer *out, const struct lac_evidence_source *source,
                  const char *what)
{
    const struct lac_model *model = lac_trace_file_head(source->file);
    char figures[256];

    lac_snapshot_line(out, "host", "w", lac_model_str(model, model->info.host));
    lac_snapshot_line(out, "fact", "wg", what, lac_model_str(model, model->info.name));
    lac_report_figures(source->analysis, figures, sizeof(figures));
    lac_snapshot_line(out, "fact", "wt", "Measured", figures);
    if (model->info.is_simulated) {
        lac_snapshot_line(out, "fact", "wt", "Note", "simulated: no real training");
    }
}

static void sentence_of(struct lac_buffer *out, const char *label, const char *text)
{
    if (*text != '\0') {
        lac_snapshot_line(out, "fact", "wt", label, text);
    }
}

enum lac_status lac_evidence_finding(struct lac_buffer *out,
                                     const struct lac_evidence_source *source, const char *id,
                                     struct lac_error *reterr)
{
    const struct lac_analysis *analysis = source->analysis;
    const struct lac_finding *finding = NULL;

    for (uint32_t i = 0; i < analysis->finding_count && finding == NULL; i++) {
        finding = strcmp(analysis->findings[i].id, id) == 0 ? &analysis->findings[i] : NULL;
    }
    if (finding == NULL) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "this trace has no finding %s", id);
    }
    lac_snapshot_line(out, "title", "t", finding->title);
    lac_snapshot_line(out, "text", "t", finding->why);
    if (isfinite(finding->gain_mid_pct) && finding->gain_mid_pct >= 0.5) {
        char gain[96];

        const int used =
            snprintf(gain, sizeof(gain), "%.0f %% less time per step", finding->gain_mid_pct);

        if (round(finding->gain_low_pct) < round(finding->gain_high_pct)) {
            (void)snprintf(gain + used, sizeof(gain) - (size_t)used, " (%.0f to %.0f)",
                           finding->gain_low_pct, finding->gain_high_pct);
        }
        lac_snapshot_line(out, "fact", "wt", "Gain", gain);
    }
    if (finding->change[0] != '\0') {
        lac_snapshot_line(out, "code", "wt", "Change", finding->change);
    }
    sentence_of(out, "Where", finding->where);
    sentence_of(out, "Expect", finding->expect);
    sentence_of(out, "Costs", finding->costs);
    sentence_of(out, "Wrong if", finding->wrong_if);
    sentence_of(out, "Check", finding->check);
    for (uint32_t i = 0; i < finding->evidence_count && i < 4; i++) {
        if (lac_report_is_new_evidence(finding, i)) {
            char text[640];

            (void)snprintf(text, sizeof(text), "at %s: %s",
                           lac_format_ns(finding->evidence[i].t0_ns).text,
                           finding->evidence[i].text);
            lac_snapshot_line(out, "fact", "wt", "Seen", text);
        }
    }
    begin(out, source, "Trace");
    return LAC_OK;
}

/* ---- tables ---- */

static void table_of_kernels(struct lac_buffer *out, const struct lac_report_source *source)
{
    struct lac_report_kernel kernels[LAC_REPORT_KERNELS_MAX];
    const uint32_t count = lac_report_kernels(source, kernels);
    const int64_t all_ns = source->analysis->kernel_total_ns;

    lac_snapshot_line(out, "columns", "ttttt", "Kernel", "Kind", "Count", "Time", "Share");
    for (uint32_t i = 0; i < count; i++) {
        char number[32];

        (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)kernels[i].count);
        lac_snapshot_line(
            out, "row", "ttttt", kernels[i].name, kernels[i].family, number,
            lac_format_ns(kernels[i].total_ns).text,
            lac_format_pct(all_ns > 0 ? 100.0 * (double)kernels[i].total_ns / (double)all_ns : 0.0)
                .text);
    }
}

/** The device's time: working, and idle by cause. */
static void table_of_idle(struct lac_buffer *out, const struct lac_analysis *analysis)
{
    const struct lac_time_partition *partition = &analysis->partition;
    int64_t sum_ns = 0;
    char head[64];

    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        sum_ns += partition->part_ns[part] > 0 ? partition->part_ns[part] : 0;
    }
    (void)snprintf(head, sizeof(head), "Per %s", partition->per);
    lac_snapshot_line(out, "columns", "ttt", "Of the GPU's time", head, "Share");
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT && sum_ns > 0; part++) {
        const int64_t ns = partition->part_ns[part];

        if (ns > 0) {
            lac_snapshot_line(out, "row", "ttt", lac_time_part_word(part)->label,
                              lac_format_ns(ns).text,
                              lac_format_pct(100.0 * (double)ns / (double)sum_ns).text);
        }
    }
}

static void table_of_rows(struct lac_buffer *out, const char *first, const char *second,
                          const struct lac_report_row *rows, uint32_t count)
{
    lac_snapshot_line(out, "columns", "tt", first, second);
    for (uint32_t i = 0; i < count; i++) {
        lac_snapshot_line(out, "row", "tt", rows[i].key, rows[i].value);
    }
}

static const char *table_title(const char *of)
{
    return strcmp(of, "kernels") == 0 ? "Kernels that take the most time"
           : strcmp(of, "idle") == 0  ? "Where the GPU's time goes"
           : strcmp(of, "plan") == 0  ? "What to change, in this order"
                                      : "Settings";
}

void lac_evidence_table(struct lac_buffer *out, const struct lac_evidence_source *source,
                        const char *of)
{
    struct lac_report_row rows[LAC_REPORT_ROWS_MAX];
    struct lac_redactor redactor = {.hosts = ""}; /* keeps all: what leaves is decided later */
    const struct lac_report_source report = {.model = lac_trace_file_head(source->file),
                                             .analysis = source->analysis,
                                             .redactor = &redactor};

    lac_snapshot_line(out, "title", "t", table_title(of));
    begin(out, source, "Trace");
    if (strcmp(of, "kernels") == 0) {
        table_of_kernels(out, &report);
    } else if (strcmp(of, "idle") == 0) {
        table_of_idle(out, source->analysis);
    } else if (strcmp(of, "plan") == 0) {
        table_of_rows(out, "Change", "Expected", rows, lac_report_plan(&report, rows));
    } else {
        table_of_rows(out, "Setting", "Value", rows, lac_report_settings(&report, rows));
    }
    lac_redactor_done(&redactor);
}

/* ---- flame graph ---- */

enum { FLAME_DEPTH_MAX = 16, FLAME_PIXELS = LAC_SVG_WIDTH };

enum lac_status lac_evidence_flame_of(struct lac_trace_file *file, struct lac_flame **ret_flame,
                                      struct lac_error *reterr)
{
    char *bytes = NULL;
    size_t size_bytes = 0;
    struct lac_flame_options options;
    const struct lac_model *model = NULL;
    enum lac_status status =
        lac_trace_file_document(file, LAC_DOCUMENT_FLAME_ROWS, &bytes, &size_bytes, reterr);

    if (status == LAC_OK) {
        status =
            lac_flame_unpack((uint8_t *)bytes, size_bytes, lac_trace_file_head(file), ret_flame);
        status = status == LAC_ERR_CORRUPT ? LAC_ERR_NOT_FOUND : status;
    }
    free(bytes);
    if (status != LAC_ERR_NOT_FOUND) {
        return status;
    }
    status = lac_trace_file_model(file, &model, reterr);
    if (status == LAC_OK) {
        lac_flame_report_options(&options);
        status = lac_flame_create(model, &options, ret_flame);
    }
    lac_trace_file_release_model(file, model);
    return status;
}

struct frames {
    struct lac_buffer *out;
    const struct lac_model *model;
    const struct lac_flame *flame;
    unsigned count;
};

static void frame(struct frames *frames, uint32_t index, int64_t start_ns, unsigned depth)
{
    const struct lac_flame_node *node = &frames->flame->nodes[index];
    const struct lac_flame_node *root = &frames->flame->nodes[0];
    char short_name[160];
    char text[320];

    if (node->value_ns < root->value_ns / FLAME_PIXELS || depth >= FLAME_DEPTH_MAX ||
        frames->count >= LAC_SNAPSHOT_BOXES_MAX) {
        return;
    }
    const bool is_work = node->kind == LAC_SLICE_KERNEL || node->kind == LAC_SLICE_COPY ||
                         node->kind == LAC_SLICE_MEMSET;
    const bool is_given =
        index != 0 && (node->kind == LAC_SLICE_RANGE || node->kind == LAC_SLICE_PYTHON);
    const char *name = index == 0               ? "GPU time"
                       : node->name == LAC_NONE ? "smaller ones"
                                                : lac_model_str(frames->model, node->name);

    if (index != 0 && node->name != LAC_NONE && node->kind == LAC_SLICE_KERNEL) {
        (void)lac_kernel_short_name(name, strlen(name), short_name, sizeof(short_name));
        name = short_name;
    }
    (void)snprintf(text, sizeof(text), "%.240s, %s, %s", name, lac_format_ns(node->value_ns).text,
                   lac_format_pct(100.0 * (double)node->value_ns / (double)root->value_ns).text);
    lac_snapshot_line(frames->out, "box", is_given ? "iiiwg" : "iiiwt", (int64_t)depth, start_ns,
                      node->value_ns, is_work ? "leaf" : "frame", text);
    frames->count++;
    for (uint32_t c = 0; c < node->child_count; c++) {
        frame(frames, node->first_child + c, start_ns, depth + 1);
        start_ns += frames->flame->nodes[node->first_child + c].value_ns;
    }
}

static unsigned depth_of(const struct lac_flame *flame, uint32_t index, unsigned depth)
{
    unsigned most = depth + 1;

    for (uint32_t c = 0; depth + 1 < FLAME_DEPTH_MAX && c < flame->nodes[index].child_count; c++) {
        const uint32_t child = flame->nodes[index].first_child + c;

        if (flame->nodes[child].value_ns >= flame->nodes[0].value_ns / FLAME_PIXELS) {
            const unsigned below = depth_of(flame, child, depth + 1);

            most = below > most ? below : most;
        }
    }
    return most;
}

enum lac_status lac_evidence_flame(struct lac_buffer *out, const struct lac_evidence_source *source,
                                   struct lac_error *reterr)
{
    struct lac_flame *flame = NULL;
    enum lac_status status = lac_evidence_flame_of(source->file, &flame, reterr);

    if (status != LAC_OK) {
        return status;
    }
    lac_snapshot_line(out, "title", "t", "GPU time by operator");
    begin(out, source, "Trace");
    if (flame->node_count > 1 && flame->nodes[0].value_ns > 0) {
        struct frames frames = {
            .out = out, .model = lac_trace_file_head(source->file), .flame = flame};

        lac_snapshot_line(out, "picture", "iiw", flame->nodes[0].value_ns, (int64_t)0,
                          "flame graph");
        lac_snapshot_line(out, "track", "ti", "", (int64_t)depth_of(flame, 0, 0));
        frame(&frames, 0, 0, 0);
    } else {
        lac_snapshot_line(out, "text", "t", "No operation of a GPU was recorded.");
    }
    lac_flame_destroy(flame);
    return LAC_OK;
}

/* ---- several traces ---- */

static const char *name_of(const struct lac_model *model)
{
    return lac_model_str(model, model->info.name);
}

static void compared_step(struct lac_buffer *out, const char *label,
                          const struct lac_compare_side *side)
{
    char text[320];

    lac_report_figures(side->analysis, text, sizeof(text));
    lac_snapshot_line(out, "row", "tgt", label, name_of(side->model), text);
}

enum lac_status lac_evidence_compare(struct lac_buffer *out, const struct lac_compare_side sides[2],
                                     struct lac_error *reterr)
{
    struct lac_comparison *comparison = NULL;
    const enum lac_status status = lac_compare(&sides[0], &sides[1], &comparison);

    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "no memory for this comparison");
    }
    for (int i = 0; i < 2; i++) {
        lac_snapshot_line(out, "host", "w",
                          lac_model_str(sides[i].model, sides[i].model->info.host));
    }
    lac_snapshot_line(out, "title", "t", comparison->headline);
    sentence_of(out, "Cannot be compared", comparison->why_not);
    lac_snapshot_line(out, "columns", "ttt", "", "Trace", "Measured");
    compared_step(out, "A, before", &sides[0]);
    compared_step(out, "B, after", &sides[1]);
    if (comparison->prediction.finding != NULL) {
        sentence_of(out, "Outcome", comparison->prediction.text);
    }
    for (uint32_t i = 0; i < comparison->difference_count && i < 12; i++) {
        const struct lac_compare_difference *difference = &comparison->differences[i];

        if (difference->is_setting) {
            char text[400];

            (void)snprintf(text, sizeof(text), "%.120s: %.120s, then %.120s", difference->key,
                           difference->a, difference->b);
            lac_snapshot_line(out, "fact", "wt", "Changed", text);
        }
    }
    lac_comparison_destroy(comparison);
    return LAC_OK;
}

void lac_evidence_series(struct lac_buffer *out, const struct lac_trace_row *rows, unsigned count,
                         const char *of)
{
    const bool is_rate = strcmp(of, "rate") == 0;
    const bool is_step = strcmp(of, "step") == 0;

    lac_snapshot_line(out, "title", "t",
                      is_step   ? "Mean step"
                      : is_rate ? "Throughput"
                                : "Time without a compute kernel");
    for (unsigned i = 0; i < count; i++) {
        if (rows[i].host != NULL) {
            lac_snapshot_line(out, "host", "w", rows[i].host);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        const struct lac_trace_summary *summary = &rows[i].summary;
        const double value = is_step   ? (double)summary->step_mean_ns
                             : is_rate ? summary->throughput_per_s * 1000.0
                                       : summary->not_computing_pct * 1000.0;
        char shown[64] = "not measured";
        const bool is_known = isfinite(value) && value > 0.0;

        if (is_known && is_step) {
            (void)snprintf(shown, sizeof(shown), "%s", lac_format_ns(summary->step_mean_ns).text);
        } else if (is_known && is_rate) {
            (void)snprintf(shown, sizeof(shown), "%s/s",
                           lac_format_rate(summary->throughput_per_s).text);
        } else if (is_known) {
            (void)snprintf(shown, sizeof(shown), "%s",
                           lac_format_pct(summary->not_computing_pct).text);
        }
        lac_snapshot_line(out, "bar", "giw", rows[i].name, is_known ? (int64_t)value : (int64_t)0,
                          shown);
    }
}
