#include "server/report_text.h"

#include "analysis/diagnose/texts.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/** Lines under construction. */
struct page {
    char *text;
    size_t used, capacity;
    int line_count;
    const struct lac_report_options *options;
    bool has_failed;
};

static void append(struct page *page, const char *bytes, size_t length)
{
    if (page->used + length + 1 > page->capacity) {
        size_t capacity = 2 * (page->used + length + 1) + 1024;
        char *grown = realloc(page->text, capacity);
        if (!grown) {
            page->has_failed = true;
            return;
        }
        page->text = grown;
        page->capacity = capacity;
    }
    memcpy(page->text + page->used, bytes, length);
    page->used += length;
    page->text[page->used] = '\0';
}

/** Length in bytes of the UTF-8 character at `text`; 1 for what is none. */
static size_t char_bytes(const unsigned char *text)
{
    size_t length = text[0] < 0x80    ? 1
                    : text[0] >= 0xF0 ? 4
                    : text[0] >= 0xE0 ? 3
                    : text[0] >= 0xC2 ? 2
                                      : 1;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0U) != 0x80U) {
            return 1;
        }
    }
    return length;
}

/** How many columns a text takes: one a character. */
static int columns_of(const char *text)
{
    int columns = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at += char_bytes(at)) {
        columns++;
    }
    return columns;
}

/** One character as it may be printed: no control characters, no cut or hidden ones. */
static void append_char(struct page *page, const unsigned char *text, size_t length)
{
    bool is_control =
        length == 1 ? text[0] < 0x20 || text[0] >= 0x7F : text[0] == 0xC2 && text[1] < 0xA0;
    bool is_hidden = length == 3 && text[0] == 0xE2 &&
                     ((text[1] == 0x80 && text[2] >= 0x8B) || (text[1] == 0x81 && text[2] >= 0xA0));
    if (is_control || is_hidden || (length > 1 && page->options->is_ascii)) {
        append(page, "?", 1);
    } else {
        append(page, (const char *)text, length);
    }
}

/** Emphasis around a line, on terminals. */
enum style { PLAIN, BOLD, DIM };

static void line(struct page *page, enum style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void line(struct page *page, enum style style, const char *fmt, ...)
{
    if (page->line_count == LAC_REPORT_LINES) {
        return;
    }
    char text[2048];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == ' ') {
        text[--end] = '\0';
    }
    bool is_styled = page->options->has_color && style != PLAIN && text[0] != '\0';
    if (is_styled) {
        append(page, style == BOLD ? "\033[1m" : "\033[2m", 4);
    }
    const unsigned char *at = (const unsigned char *)text;
    for (int column = 0; *at != '\0' && column < LAC_REPORT_COLUMNS; column++) {
        size_t length = char_bytes(at);
        append_char(page, at, length);
        at += length;
    }
    if (is_styled) {
        append(page, "\033[0m", 4);
    }
    append(page, "\n", 1);
    page->line_count++;
}

/** A sentence over at most `lines_max` lines, each after `indent` columns but the first. */
static void paragraph(struct page *page, enum style style, const char *label, const char *text,
                      int indent, int lines_max)
{
    size_t room = (size_t)(LAC_REPORT_COLUMNS - indent);
    for (int i = 0; i < lines_max && *text != '\0'; i++) {
        size_t length = strlen(text);
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ') {
                length--;
            }
            if (length == 0) {
                length = room;
            }
        }
        bool is_cut = i + 1 == lines_max && text[length] != '\0';
        if (is_cut && length > room - 4) {
            length = room - 4;
        }
        line(page, style, "%-*s%.*s%s", indent, i == 0 ? label : "", (int)length, text,
             is_cut ? " ..." : "");
        text += length;
        while (*text == ' ') {
            text++;
        }
    }
}

/** The first letter as a capital, a full stop at the end. */
static void sentence(char *out, size_t capacity_bytes, const char *text)
{
    (void)snprintf(out, capacity_bytes, "%s", text);
    out[0] = (char)toupper((unsigned char)out[0]);
    size_t length = strlen(out);
    if (length > 0 && length + 1 < capacity_bytes && out[length - 1] != '.') {
        memcpy(out + length, ".", 2);
    }
}

/* -- parts
 * ------------------------------------------------------------------------------------------ */

/** "V100" of "Tesla V100-SXM2-32GB": what people call a device. */
static void short_device(const char *name, char *out, size_t capacity_bytes)
{
    static const char *const makers[] = {"NVIDIA ", "Tesla ", "GeForce ",
                                         "Quadro ", "AMD ",   "Instinct "};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        size_t length = strlen(makers[i]);
        if (strncmp(name, makers[i], length) == 0) {
            name += length;
        }
    }
    bool has_number = strncmp(name, "RTX ", 4) == 0 || strncmp(name, "GTX ", 4) == 0;
    size_t length = has_number ? strlen(name) : strcspn(name, "- ");
    (void)snprintf(out, capacity_bytes, "%.*s", (int)(length < 24 ? length : 24), name);
}

static void device_text(const struct lac_analysed *analysed, char *out, size_t capacity_bytes)
{
    const struct lac_analysis *analysis = analysed->analysis;
    if (analysis->device_count == 0) {
        (void)snprintf(out, capacity_bytes, "no GPU");
        return;
    }
    char name[32];
    short_device(lac_model_str(analysed->model, analysis->devices[analysis->main_device].name),
                 name, sizeof name);
    (void)snprintf(out, capacity_bytes, "%u x %s", (unsigned)analysis->device_count,
                   name[0] != '\0' ? name : "GPU");
}

/** Whether what was found to repeat is known to be a step. */
static bool has_real_steps(const struct lac_analysis *analysis)
{
    bool is_period = strcmp(analysis->step_method, "period") == 0;
    return analysis->step_count > 0 && analysis->subject != LAC_SUBJECT_COLD_START &&
           (!is_period || analysis->subject == LAC_SUBJECT_TRAINING);
}

/** "28 steps, 301 ms (+-1 %)   850 samples/s"; no rate where steps are too few for one. */
static void steps_text(const struct page *page, const struct lac_analysis *analysis, char *out,
                       size_t capacity_bytes)
{
    if (!has_real_steps(analysis)) {
        (void)snprintf(out, capacity_bytes, "no steady step");
        return;
    }
    if (analysis->step_kept_count == 0) {
        (void)snprintf(out, capacity_bytes, "%u step%s", (unsigned)analysis->step_count,
                       analysis->step_count == 1 ? "" : "s");
        return;
    }
    char spread[32] = "";
    if (isfinite(analysis->step_spread_pct) && analysis->step_spread_pct >= 0.1) {
        (void)snprintf(spread, sizeof spread, " (%s%.*f %%)",
                       page->options->is_ascii ? "+-" : "\u00b1",
                       analysis->step_spread_pct < 1.0 ? 1 : 0, analysis->step_spread_pct);
    }
    int length = snprintf(
        out, capacity_bytes, "%u step%s, %s%s", (unsigned)analysis->step_kept_count,
        analysis->step_kept_count == 1 ? "" : "s", lac_say_ns(analysis->step_mean_ns).text, spread);
    if (isfinite(analysis->throughput_per_s) && length >= 0 && (size_t)length < capacity_bytes) {
        (void)snprintf(out + length, capacity_bytes - (size_t)length, "   %s %s/s",
                       lac_say_rate(analysis->throughput_per_s).text, analysis->throughput_unit);
    }
}

static void write_head(struct page *page, const struct lac_analysed *analysed)
{
    const struct lac_trace_info *info = &analysed->model->info;
    char device[64];
    char steps[128];
    device_text(analysed, device, sizeof device);
    steps_text(page, analysed->analysis, steps, sizeof steps);
    const char *mark = info->is_simulated ? " (simulated)" : "";
    int room = LAC_REPORT_COLUMNS - 6 - columns_of(device) - columns_of(steps) - columns_of(mark);
    room = room < 16 ? 16 : room;
    const char *name = lac_model_str(analysed->model, info->name);
    bool is_long = (int)strlen(name) > room;
    line(page, BOLD, "%.*s%s%s   %s   %s", is_long ? room - 2 : room, name, is_long ? ".." : "",
         mark, device, steps);
}

static void write_verdict(struct page *page, const struct lac_analysis *analysis)
{
    char text[1024];
    sentence(text, sizeof text, analysis->verdict.text);
    line(page, PLAIN, "%s", "");
    paragraph(page, BOLD, "", text, 0, 2);
    if (analysis->verdict.detail[0] != '\0' &&
        strcasecmp(analysis->verdict.detail, analysis->verdict.text) != 0) {
        sentence(text, sizeof text, analysis->verdict.detail);
        paragraph(page, PLAIN, "", text, 0, 2);
    }
}

enum { BAR_COLUMNS = 30 };

/** A bar of `ns` on a scale of `scale_ns`, the step's end marked. */
static void write_need(struct page *page, const char *what, int64_t ns, int64_t step_ns,
                       int64_t scale_ns, const char *note)
{
    if (ns == LAC_UNKNOWN_NS) {
        return;
    }
    char bar[BAR_COLUMNS * 4 + 8] = "";
    size_t used = 0;
    int filled = (int)lround((double)ns / (double)scale_ns * BAR_COLUMNS);
    int end = (int)lround((double)step_ns / (double)scale_ns * BAR_COLUMNS);
    if (ns > 0 && filled == 0) {
        filled = 1;
    }
    const char *full = page->options->is_ascii ? "=" : "\u2501";
    for (int i = 0; i < BAR_COLUMNS; i++) {
        const char *mark = i < filled ? full : i == end ? "|" : " ";
        memcpy(bar + used, mark, strlen(mark));
        used += strlen(mark);
    }
    bar[used] = '\0';
    line(page, PLAIN, "%-12s %s %s %6s  %s", what, bar, end >= BAR_COLUMNS ? "|" : " ",
         lac_say_rate((double)ns / 1e6).text, note);
}

static int64_t largest(const int64_t *values, int count)
{
    int64_t most = 1;
    for (int i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    return most;
}

static void write_needs(struct page *page, const struct lac_analysis *analysis)
{
    const struct lac_needs *needs = &analysis->needs;
    bool has_steps = analysis->subject == LAC_SUBJECT_TRAINING ||
                     (analysis->subject == LAC_SUBJECT_INFERENCE && analysis->step_kept_count > 2);
    has_steps = has_steps || analysis->subject == LAC_SUBJECT_HOST_TRAINING;
    has_steps = has_steps && has_real_steps(analysis);
    if (!has_steps || (needs->gpu_ns == LAC_UNKNOWN_NS && needs->data_ns == LAC_UNKNOWN_NS)) {
        return;
    }
    const int64_t values[] = {analysis->step_mean_ns, needs->data_ns, needs->gpu_ns,
                              needs->copies_ns,       needs->host_ns, needs->comm_ns};
    int64_t scale_ns = largest(values, 6);
    const struct lac_loader_facts *loader = &analysis->loader;
    char data[96] = "";
    if (loader->num_workers > 0 && loader->fetch_mean_ns != LAC_UNKNOWN_NS) {
        (void)snprintf(data, sizeof data, "%s x %s",
                       lac_say_count(loader->num_workers, "worker").text,
                       lac_say_ns(loader->fetch_mean_ns).text);
    } else if (loader->num_workers == 0) {
        (void)snprintf(data, sizeof data, "in the training process");
    }
    line(page, PLAIN, "%s", "");
    line(page, DIM, "one step, ms  the step is %s", lac_say_ns(analysis->step_mean_ns).text);
    int64_t step_ns = analysis->step_mean_ns;
    write_need(page, "data", needs->data_ns, step_ns, scale_ns, data);
    write_need(page, "GPU kernels", needs->gpu_ns, step_ns, scale_ns, "");
    write_need(page, "copies", needs->copies_ns, step_ns, scale_ns, "");
    write_need(page, "host", needs->host_ns, step_ns, scale_ns, "");
    if (needs->comm_ns > 0) {
        write_need(page, "other ranks", needs->comm_ns, step_ns, scale_ns, "");
    }
}

/** The first change with its band, then what still gains after it. */
static void write_findings(struct page *page, const struct lac_analysis *analysis)
{
    const struct lac_finding *first = analysis->finding_count > 0 ? &analysis->findings[0] : NULL;
    if (!first || first->brief[0] == '\0' || !(first->gain_mid_pct >= 1.0)) {
        return;
    }
    line(page, PLAIN, "%s", "");
    struct lac_said mid = lac_say_band(first->gain_mid_pct, first->gain_mid_pct);
    struct lac_said band = lac_say_band(first->gain_low_pct, first->gain_high_pct);
    bool is_wide = strcmp(mid.text, band.text) != 0;
    /* where nothing has a place in the code, the changes get its column */
    int place = first->where[0] != '\0' ? 20 : 0;
    int what = place > 0 ? 29 : 50;
    line(page, DIM, "%-*s %-*s%9s  %s", what + 3, "do this", place, place > 0 ? "where" : "",
         "step", "less time");
    line(page, PLAIN, "1  %-*.*s %-*.*s%9s  %.*s%s%s%s", what, what, first->brief, place, place,
         first->where, lac_say_ns(first->step_mid_ns).text, is_wide ? (int)strlen(mid.text) - 2 : 8,
         mid.text, is_wide ? " (" : "", is_wide ? band.text : "", is_wide ? ")" : "");
    bool follows = analysis->plan_count > 0 && strcmp(analysis->plan[0].brief, first->brief) == 0;
    for (uint32_t i = 1; i < analysis->plan_count && i < 3 && follows; i++) {
        const struct lac_plan_step *then = &analysis->plan[i];
        line(page, PLAIN, "%u  then %-*.*s %-*s%9s  %s", (unsigned)i + 1, what - 5, what - 5,
             then->brief, place, "", lac_say_ns(then->step_ns).text,
             lac_say_band(then->gain_pct, then->gain_pct).text);
    }
    paragraph(page, PLAIN, "prove it", first->check, 12, 1);
}

/** What is certain beside the verdict: findings that are not worth a change now. */
static void write_asides(struct page *page, const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        bool is_shown = finding->brief[0] != '\0' && finding->gain_mid_pct >= 1.0;
        bool is_verdict = strcmp(finding->id, "gpu-bound") == 0;
        if (is_shown) {
            continue;
        }
        char text[1024];
        sentence(text, sizeof text, is_verdict ? finding->why : finding->title);
        paragraph(page, PLAIN, is_verdict ? "the GPU" : "not now", text, 12, 2);
        return;
    }
}

static void write_list(struct page *page, const char *label, const char *const *texts,
                       uint32_t count, int lines_max)
{
    char text[1024] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof text; i++) {
        int length = snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "", texts[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    paragraph(page, DIM, label, text, 12, lines_max);
}

static enum lac_status take(struct page *page, char **ret_text)
{
    if (page->has_failed || !page->text) {
        free(page->text);
        return LAC_ERR_NOMEM;
    }
    *ret_text = page->text;
    return LAC_OK;
}

enum lac_status lac_report_text(const struct lac_analysed *analysed,
                                const struct lac_report_options *options, char **ret_text)
{
    const struct lac_analysis *analysis = analysed->analysis;
    struct page page = {.options = options};
    write_head(&page, analysed);
    write_verdict(&page, analysis);
    write_needs(&page, analysis);
    write_findings(&page, analysis);
    line(&page, PLAIN, "%s", "");
    write_asides(&page, analysis);
    write_list(&page, "fine", analysis->checked_fine, analysis->checked_fine_count, 2);
    write_list(&page, "unknown", analysis->not_recorded, analysis->not_recorded_count, 2);
    write_list(&page, "mind", analysis->caveats, analysis->caveat_count, 1);
    return take(&page, ret_text);
}

/* -- several ranks -------------------------------------------------------------------------- */

static void write_rank(struct page *page, const struct lac_rank_facts *facts)
{
    struct lac_said step = {.text = "-"};
    if (facts->step_kept_count > 0) {
        step = lac_say_ns(facts->step_mean_ns);
    }
    line(page, PLAIN, "%6d %10s %8s %14s %14s   %c %.16s", (int)facts->rank, step.text,
         lac_say_pct(facts->idle_pct).text, lac_say_pct(facts->exposed_comm_pct).text,
         facts->is_matched ? lac_say_ns(facts->wait_ns).text : "-", facts->letter, facts->cause);
}

enum lac_status lac_report_run_text(const struct lac_run *run,
                                    const struct lac_report_options *options, char **ret_text)
{
    struct page page = {.options = options};
    const struct lac_rank_facts *first = &run->ranks[0];
    char text[1024];
    line(&page, BOLD, "%.40s and %s   %u ranks   %.20s", first->name,
         run->rank_count == 2 ? "another" : "others", (unsigned)run->rank_count, first->device);
    line(&page, PLAIN, "%s", "");
    sentence(text, sizeof text, run->has_finding ? run->finding.title : run->note);
    paragraph(&page, BOLD, "", text, 0, 3);
    if (run->has_finding) {
        paragraph(&page, PLAIN, "", run->finding.why, 0, 7);
        paragraph(&page, PLAIN, "do this", run->finding.change, 12, 3);
        paragraph(&page, PLAIN, "expect", run->finding.expect, 12, 2);
        paragraph(&page, PLAIN, "prove it", run->finding.check, 12, 2);
        paragraph(&page, PLAIN, "mind", run->note, 12, 2);
    }
    line(&page, PLAIN, "%s", "");
    line(&page, DIM, "%6s %10s %8s %14s %14s   %s", "rank", "step", "idle", "exposed comm",
         "waits there", "limit");
    uint32_t late = run->late == LAC_NONE ? 0 : run->late;
    write_rank(&page, &run->ranks[late]);
    for (uint32_t i = 0; i < run->rank_count; i++) {
        bool is_full = page.line_count >= LAC_REPORT_LINES - 1 && i + 1 < run->rank_count;
        if (is_full) {
            line(&page, DIM, "%6s %u more: lacuna analyze --json", "...",
                 (unsigned)(run->rank_count - i));
            break;
        }
        if (i != late) {
            write_rank(&page, &run->ranks[i]);
        }
    }
    return take(&page, ret_text);
}
