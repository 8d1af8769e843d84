#include "server/cli/report_text.h"

#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/text_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -- parts ------------------------------------------------------------------------------------- */

/** "V100" of "Tesla V100-SXM2-32GB": what people call a device. */
static void short_device(const char *name, char *out, size_t capacity_bytes)
{
    static const char *const makers[] = {"NVIDIA ", "Tesla ", "GeForce ",
                                         "Quadro ", "AMD ",   "Instinct "};
    for (size_t i = 0; i < LAC_COUNT_OF(makers); i++) {
        size_t length = strlen(makers[i]);
        if (strncmp(name, makers[i], length) == 0) {
            name += length;
        }
    }
    bool has_number = strncmp(name, "RTX ", 4) == 0 || strncmp(name, "GTX ", 4) == 0;
    size_t length = has_number ? strlen(name) : strcspn(name, "- ");
    (void)snprintf(out, capacity_bytes, "%.*s", (int)(length < 24 ? length : 24), name);
}

static void device_text(const struct lac_analyzed_trace *analyzed, char *out, size_t capacity_bytes)
{
    const struct lac_analysis *analysis = analyzed->analysis;
    if (analysis->device_count == 0) {
        (void)snprintf(out, capacity_bytes, "no GPU");
        return;
    }
    char name[32];
    short_device(lac_model_str(analyzed->model, analysis->devices[analysis->main_device].name),
                 name, sizeof(name));
    (void)snprintf(out, capacity_bytes, "%u x %s", (unsigned)analysis->device_count,
                   name[0] != '\0' ? name : "GPU");
}

/** Whether what was found to repeat is known to be a step. */
static bool has_real_steps(const struct lac_analysis *analysis)
{
    bool is_period = strcmp(analysis->step_method, "period") == 0;
    return analysis->step_count > 0 && analysis->workload != LAC_WORKLOAD_COLD_START &&
           (!is_period || analysis->workload == LAC_WORKLOAD_TRAINING);
}

/** What a repetition of the loop is called: "step", "batch" or "iteration". */
static const char *unit_of(const struct lac_analysis *analysis)
{
    return analysis->partition.of == LAC_OF_STEP ? analysis->partition.per : "step";
}

/** "1 step", "4 batches". */
static void count_text(const struct lac_analysis *analysis, uint32_t count, char *out,
                       size_t capacity_bytes)
{
    const char *unit = unit_of(analysis);
    size_t length = strlen(unit);
    const char *many = length > 0 && unit[length - 1] == 'h' ? "es" : "s";
    (void)snprintf(out, capacity_bytes, "%u %s%s", (unsigned)count, unit, count == 1 ? "" : many);
}

/** "28 steps, 301 ms (+-1 %)   850 samples/s"; no rate where steps are too few for one. */
static void steps_text(const struct lac_text_page *page, const struct lac_analysis *analysis,
                       char *out, size_t capacity_bytes)
{
    if (!has_real_steps(analysis)) {
        (void)snprintf(out, capacity_bytes, "no steady step");
        return;
    }
    if (analysis->step_kept_count == 0) {
        count_text(analysis, analysis->step_count, out, capacity_bytes);
        return;
    }
    char count[48];
    count_text(analysis, analysis->step_kept_count, count, sizeof(count));
    char spread[32] = "";
    if (isfinite(analysis->step_uncertain_pct) && analysis->step_uncertain_pct >= 0.1) {
        (void)snprintf(spread, sizeof(spread), " (%s%.*f %%)", page->is_ascii ? "+-" : "\u00b1",
                       analysis->step_uncertain_pct < 1.0 ? 1 : 0, analysis->step_uncertain_pct);
    }
    int length = snprintf(out, capacity_bytes, "%s, %s%s", count,
                          lac_format_ns(analysis->step_mean_ns).text, spread);
    if (isfinite(analysis->throughput_per_s) && length >= 0 && (size_t)length < capacity_bytes) {
        (void)snprintf(out + length, capacity_bytes - (size_t)length, "   %s %s/s",
                       lac_format_rate(analysis->throughput_per_s).text, lac_rate_unit(analysis));
    }
}

static void write_head(struct lac_text_page *page, const struct lac_analyzed_trace *analyzed)
{
    const struct lac_trace_info *info = &analyzed->model->info;
    char device[64];
    char steps[128];
    device_text(analyzed, device, sizeof(device));
    steps_text(page, analyzed->analysis, steps, sizeof(steps));
    const char *mark = info->is_simulated ? " (simulated)" : "";
    int room = lac_text_width(page) - 6 - lac_text_columns(device) - lac_text_columns(steps) -
               lac_text_columns(mark);
    room = room < 16 ? 16 : room;
    const char *name = lac_model_str(analyzed->model, info->name);
    bool is_long = (int)strlen(name) > room;
    lac_text_line(page, LAC_TEXT_BOLD, "%.*s%s%s   %s   %s", is_long ? room - 2 : room, name,
                  is_long ? ".." : "", mark, device, steps);
}

/** A value, a cause or a share is never cut off: the longest sentences take as many lines. */
enum { VERDICT_LINES = 6 };

static void write_verdict(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    char text[1024];
    lac_text_sentence(text, sizeof(text), analysis->verdict.text);
    lac_text_line(page, LAC_TEXT_PLAIN, "%s", "");
    lac_text_paragraph(page, LAC_TEXT_BOLD, "", text, 0, VERDICT_LINES);
    if (analysis->verdict.detail[0] != '\0' &&
        strcasecmp(analysis->verdict.detail, analysis->verdict.text) != 0) {
        lac_text_sentence(text, sizeof(text), analysis->verdict.detail);
        lac_text_paragraph(page, LAC_TEXT_PLAIN, "", text, 0, VERDICT_LINES);
    }
}

enum { BAR_COLUMNS = 30, BAR_COLUMNS_MIN = 8 };

/** Of a narrow page what the other columns leave over. */
static int bar_columns(const struct lac_text_page *page)
{
    const int columns = BAR_COLUMNS - (LAC_TEXT_COLUMNS - lac_text_width(page));

    return columns < BAR_COLUMNS_MIN ? BAR_COLUMNS_MIN : columns;
}

/** What the parts of a step are said in: as its length is said, so that both are one number. */
static const struct unit {
    double ns;
    const char *name;
} milliseconds = {1e6, "ms"}, seconds = {1e9, "s"};

static const struct unit *unit_of_ns(int64_t step_ns)
{
    return step_ns >= 999500000 ? &seconds : &milliseconds;
}

/** Three digits of seconds as lac_format_ns() says them; of milliseconds as rates. */
static struct lac_text32 in_unit(const struct unit *unit, int64_t ns)
{
    struct lac_text32 text = lac_format_rate((double)ns / unit->ns);
    if (unit == &seconds) {
        (void)snprintf(text.text, sizeof(text.text), (double)ns < 9.995e7 ? "%.2g" : "%.3g",
                       (double)ns / unit->ns);
    }
    return text;
}

/** A bar of `ns` on a scale of `scale_ns`, the step's end marked. */
static void write_need(struct lac_text_page *page, enum lac_need need, int64_t ns, int64_t step_ns,
                       int64_t scale_ns, const char *note)
{
    if (ns == LAC_UNKNOWN_NS) {
        return;
    }
    char bar[BAR_COLUMNS * 4 + 8] = "";
    size_t used = 0;
    const int columns = bar_columns(page);
    int filled = (int)lround((double)ns / (double)scale_ns * columns);
    int end = (int)lround((double)step_ns / (double)scale_ns * columns);
    if (ns > 0 && filled == 0) {
        filled = 1;
    }
    const char *full = page->is_ascii ? "=" : "\u2501";
    for (int i = 0; i < columns; i++) {
        const char *mark = i < filled ? full : i == end ? "|" : " ";
        memcpy(bar + used, mark, strlen(mark));
        used += strlen(mark);
    }
    bar[used] = '\0';
    lac_text_line(page, LAC_TEXT_PLAIN, "%-13s %s %s %6s  %s",
                  lac_word(LAC_WORDS_NEED, need)->label, bar, end >= columns ? "|" : " ",
                  in_unit(unit_of_ns(step_ns), ns).text, note);
}

static int64_t largest(const int64_t *values, int count)
{
    int64_t most = 1;
    for (int i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    return most;
}

static void write_needs(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    const struct lac_needs *needs = &analysis->needs;
    bool has_steps =
        analysis->workload == LAC_WORKLOAD_TRAINING ||
        (analysis->workload == LAC_WORKLOAD_INFERENCE && analysis->step_kept_count > 2);
    has_steps = has_steps || analysis->workload == LAC_WORKLOAD_HOST_TRAINING;
    has_steps = has_steps && has_real_steps(analysis);
    if (!has_steps || (needs->gpu_ns == LAC_UNKNOWN_NS && needs->data_ns == LAC_UNKNOWN_NS)) {
        return;
    }
    const int64_t values[] = {analysis->step_mean_ns, needs->data_ns, needs->gpu_ns,
                              needs->copies_ns,       needs->host_ns, needs->comm_ns};
    int64_t scale_ns = largest(values, 6);
    const struct lac_loader_facts *loader = &analysis->loader;
    char data[96] = "";
    if (loader->pin_mean_ns > 0 && loader->num_workers > 0 &&
        loader->pin_mean_ns * loader->num_workers > loader->fetch_mean_ns) {
        (void)snprintf(data, sizeof(data), "one thread pins: %s",
                       lac_format_ns(loader->pin_mean_ns).text);
    } else if (loader->num_workers > 0 && loader->fetch_mean_ns != LAC_UNKNOWN_NS) {
        const char *about = loader->are_workers_inferred ? "about " : "";
        if (loader->batches_per_step > 1) {
            (void)snprintf(data, sizeof(data), "%s%d x %s, %s", about,
                           (int)loader->batches_per_step, lac_format_ns(loader->fetch_mean_ns).text,
                           lac_format_count(loader->num_workers, "worker").text);
        } else {
            (void)snprintf(data, sizeof(data), "%s%s x %s", about,
                           lac_format_count(loader->num_workers, "worker").text,
                           lac_format_ns(loader->fetch_mean_ns).text);
        }
    } else if (loader->num_workers == 0) {
        bool trains = analysis->workload != LAC_WORKLOAD_INFERENCE;
        (void)snprintf(data, sizeof(data), "in the %s process", trains ? "training" : "main");
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%s", "");
    char head[32];
    (void)snprintf(head, sizeof(head), "one %s, %s", unit_of(analysis),
                   unit_of_ns(analysis->step_mean_ns)->name);
    lac_text_line(page, LAC_TEXT_DIM, "%-13s the %s is %s", head, unit_of(analysis),
                  lac_format_ns(analysis->step_mean_ns).text);
    int64_t step_ns = analysis->step_mean_ns;
    write_need(page, LAC_NEED_DATA, needs->data_ns, step_ns, scale_ns, data);
    write_need(page, LAC_NEED_GPU, needs->gpu_ns, step_ns, scale_ns, "");
    write_need(page, LAC_NEED_COPIES, needs->copies_ns, step_ns, scale_ns, "");
    write_need(page, LAC_NEED_HOST, needs->host_ns, step_ns, scale_ns, "");
    if (needs->comm_ns > 0) {
        write_need(page, LAC_NEED_COMM, needs->comm_ns, step_ns, scale_ns, "");
    }
}

/** Where the time of the mean step goes: the parts that the verdict is one of, the largest first. */
static void write_partition(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    const struct lac_time_partition *partition = &analysis->partition;
    const struct unit *unit = unit_of_ns(partition->total_ns);
    char text[512] = "";
    size_t used = 0;
    int64_t left_ns = partition->total_ns;
    uint32_t said = 0;
    for (uint32_t i = 0; i < LAC_TIME_PART_COUNT && left_ns > 0; i++) {
        uint32_t most = LAC_TIME_PART_COUNT;
        for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
            bool is_next =
                (said >> part & 1U) == 0 && (most == LAC_TIME_PART_COUNT ||
                                             partition->part_ns[part] > partition->part_ns[most]);
            most = is_next ? part : most;
        }
        bool is_small = partition->part_ns[most] * 100 < partition->total_ns;
        int64_t ns = is_small ? left_ns : partition->part_ns[most];
        int length =
            snprintf(text + used, sizeof(text) - used, "%s%s %s", i == 0 ? "" : " + ",
                     is_small ? "other" : lac_time_part_brief(most), in_unit(unit, ns).text);
        used += length > 0 && (size_t)length < sizeof(text) - used ? (size_t)length : 0;
        said |= 1U << most;
        left_ns -= ns;
    }
    if (used > 0) {
        (void)snprintf(text + used, sizeof(text) - used, " = %s %s per %s",
                       in_unit(unit, partition->total_ns).text, unit->name, partition->per);
        lac_text_paragraph(page, LAC_TEXT_PLAIN, "goes to", text, 12, 3);
    }
}

/** The table of changes: columns of what, where and the step with it. */
struct changes {
    int what, place; /**< widths; place 0: no column of its own */
};

/** A row of it: what does not fit its column goes on in the next line. One without a place has that
 *  column, too. */
static void write_change(struct lac_text_page *page, struct changes columns, const char *label,
                         const char *brief, const char *place, int64_t step_ns, const char *gain)
{
    int indent = (int)strlen(label);
    if (place[0] == '\0' && columns.place > 0) {
        columns = (struct changes){.what = columns.what + columns.place, .place = 0};
    }
    int room = columns.what + 3 - indent;
    int length = (int)strlen(brief);
    if (length > room) {
        for (length = room; length > 0 && brief[length] != ' '; length--) {
        }
        length = length > 0 ? length : room;
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%s%-*.*s %-*.*s%9s  %s", label, room, length, brief,
                  columns.place, columns.place, place, lac_format_ns(step_ns).text, gain);
    brief += length;
    brief += strspn(brief, " ");
    if (*brief != '\0') {
        lac_text_paragraph(page, LAC_TEXT_PLAIN, "", brief, indent, 2);
    }
}

/** What gains by itself and is in no row of the plan: not played together with it. */
static void write_also(struct lac_text_page *page, const struct lac_analysis *analysis,
                       const struct lac_finding *first)
{
    char text[1024] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < analysis->finding_count && used < sizeof(text); i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        if (finding == first || !lac_finding_is_to_do(finding) ||
            lac_plan_holds(analysis, finding) || strstr(first->brief, finding->brief) != NULL) {
            continue;
        }
        int length = snprintf(text + used, sizeof(text) - used, "%s%s %s (%s)",
                              used > 0 ? ", " : "alone: ", finding->brief,
                              lac_format_ns(finding->step_mid_ns).text,
                              lac_format_band(finding->gain_mid_pct, finding->gain_mid_pct).text);
        used += length > 0 ? (size_t)length : 0;
    }
    lac_text_paragraph(page, LAC_TEXT_PLAIN, "also", text, 12, 3);
}

/** The first change with its band, then what still gains after it, and what gains beside it. */
static void write_findings(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    const struct lac_finding *first = lac_analysis_first_to_do(analysis);
    if (first == NULL || !lac_finding_is_to_do(first)) {
        return;
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%s", "");
    struct lac_text32 mid = lac_format_band(first->gain_mid_pct, first->gain_mid_pct);
    struct lac_text32 band = lac_format_band(first->gain_low_pct, first->gain_high_pct);
    char gain[80];
    if (strcmp(mid.text, band.text) != 0) {
        (void)snprintf(gain, sizeof(gain), "%.*s (%s)", (int)strlen(mid.text) - 2, mid.text,
                       band.text);
    } else {
        (void)snprintf(gain, sizeof(gain), "%s", mid.text);
    }
    /* where nothing has a place in the code, or either is long, the changes get its column */
    enum { PLACE_MIN = 20, PLACE_MAX = 27, BOTH_MIN = 14 };
    const int narrower = LAC_TEXT_COLUMNS - lac_text_width(page);
    const int both = 49 - narrower > BOTH_MIN ? 49 - narrower : BOTH_MIN;
    int place_length = (int)strlen(first->where);
    int place = place_length < PLACE_MIN ? PLACE_MIN : place_length;
    bool is_long = place_length > PLACE_MAX || (int)strlen(first->brief) > both - place;
    place = place_length > 0 && !is_long ? place : 0;
    struct changes columns = {.what = place > 0 ? both - place : both + 1, .place = place};
    lac_text_line(page, LAC_TEXT_DIM, "%-*s %-*s%9s  %s", columns.what + 3, "do this", place,
                  place > 0 ? "where" : "", unit_of(analysis), "less time");
    write_change(page, columns, "1  ", first->brief, first->where, first->step_mid_ns, gain);
    bool follows = analysis->plan_count > 0 && strcmp(analysis->plan[0].brief, first->brief) == 0;
    for (uint32_t i = 1; i < analysis->plan_count && follows; i++) {
        const struct lac_plan_step *then = &analysis->plan[i];
        char label[24];
        (void)snprintf(label, sizeof(label), "%u  then ", (unsigned)i + 1);
        write_change(page, columns, label, then->brief, "", then->step_ns,
                     lac_format_band(then->gain_pct, then->gain_pct).text);
    }
    write_also(page, analysis, first);
    if (is_long) {
        lac_text_paragraph(page, LAC_TEXT_PLAIN, "where", first->where, 12, 1);
    }
    lac_text_paragraph(page, LAC_TEXT_PLAIN, "verify", first->check, 12, 2);
}

/** What is certain beside the verdict: findings that are not worth a change now. */
static void write_asides(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        bool is_shown = lac_finding_is_to_do(finding);
        bool is_verdict = finding->kind == LAC_FINDING_GPU_BOUND;
        if (i == 0 && finding->kind == LAC_FINDING_HANG) { /* no gain, and yet the first to mend */
            lac_text_paragraph(page, LAC_TEXT_PLAIN, "do this", finding->brief, 12, 2);
            lac_text_paragraph(page, LAC_TEXT_PLAIN, "where", finding->where, 12, 1);
            return;
        }
        if (is_shown || lac_plan_holds(analysis, finding)) {
            continue;
        }
        char text[1024];
        lac_text_sentence(text, sizeof(text), is_verdict ? finding->why : finding->title);
        lac_text_paragraph(page, LAC_TEXT_PLAIN, is_verdict ? "the GPU" : "no action", text, 12, 4);
        return;
    }
}

/** Steps that were at something else, a line a kind. */
static void write_kinds(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    const char *texts[LAC_KIND_COUNT_];
    uint32_t count = lac_analysis_other_phases(analysis, texts);
    for (uint32_t k = 0; k < count; k++) {
        lac_text_paragraph(page, LAC_TEXT_PLAIN, k == 0 ? "also" : "", texts[k], 12, 1);
    }
}

/** How much of the GPU's peak the job uses, and how many kernels nothing is known of. */
static void write_compute(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    char text[1024];
    if (!analysis->has_kernels) {
        return;
    }
    (void)snprintf(text, sizeof(text), "unknown kernels %s of the time%s%s",
                   lac_format_pct(analysis->unknown_kernels_pct).text,
                   analysis->efficiency.text[0] != '\0' ? "; " : "", analysis->efficiency.text);
    lac_text_paragraph(page, LAC_TEXT_PLAIN, "compute", text, 12, 3);
}

/** Which lines of Python the host was in, where that was sampled. */
static void write_python(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    if (analysis->python_samples.text[0] != '\0') {
        lac_text_paragraph(page, LAC_TEXT_PLAIN, "python", analysis->python_samples.text, 12, 3);
    }
}

static void join_list(const char *const *texts, uint32_t count, const char *between, char *out,
                      size_t capacity_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && used < capacity_bytes; i++) {
        int length =
            snprintf(out + used, capacity_bytes - used, "%s%s", i > 0 ? between : "", texts[i]);
        used += length > 0 ? (size_t)length : 0;
    }
}

/** What is fine, what is not known, and what to mind: of that nothing is lost to a full page. */
static void write_lists(struct lac_text_page *page, const struct lac_analysis *analysis)
{
    enum { CAVEAT_LINES = 4, UNKNOWN_LINES = 5 };
    const int room_in_line = lac_text_width(page) - 12;
    const int least_in_line = room_in_line - 16;
    char fine[1024];
    char unknown[1024];
    char caveats[1024];
    join_list(analysis->checked_fine, analysis->checked_fine_count, ", ", fine, sizeof(fine));
    join_list(analysis->not_recorded, analysis->not_recorded_count, ", ", unknown, sizeof(unknown));
    join_list(analysis->caveats, analysis->caveat_count, "; ", caveats, sizeof(caveats));
    int length = (int)strlen(caveats);
    int needed = length <= room_in_line ? length > 0 : (length + least_in_line - 1) / least_in_line;
    needed = needed < CAVEAT_LINES ? needed : CAVEAT_LINES;
    lac_text_paragraph(page, LAC_TEXT_DIM, "fine", fine, 12, 3);
    int room = lac_text_lines(page) - page->line_count - needed;
    room = room < UNKNOWN_LINES ? room : UNKNOWN_LINES;
    lac_text_paragraph(page, LAC_TEXT_DIM, "unknown", unknown, 12, room > 0 ? room : 1);
    lac_text_paragraph(page, LAC_TEXT_DIM, "caveats", caveats, 12, CAVEAT_LINES);
}

/** @return what was printed, which the caller frees; LAC_ERR_NOMEM. */
static enum lac_status take(struct lac_buffer *out, char **ret_text)
{
    if (out->status != LAC_OK || out->bytes == NULL) {
        lac_buffer_done(out);
        return LAC_ERR_NOMEM;
    }
    *ret_text = out->bytes;
    return LAC_OK;
}

static struct lac_text_page page_on(struct lac_buffer *out,
                                    const struct lac_report_options *options)
{
    return (struct lac_text_page){.out = out,
                                  .columns = options->columns,
                                  .is_ascii = options->is_ascii,
                                  .has_color = options->has_color};
}

enum lac_status lac_report_text(const struct lac_analyzed_trace *analyzed,
                                const struct lac_report_options *options, char **ret_text)
{
    const struct lac_analysis *analysis = analyzed->analysis;
    struct lac_buffer out = {.bytes = NULL};
    struct lac_text_page page = page_on(&out, options);
    write_head(&page, analyzed);
    write_verdict(&page, analysis);
    write_needs(&page, analysis);
    if (analysis->partition.of == LAC_OF_STEP) {
        write_partition(&page, analysis);
    }
    write_findings(&page, analysis);
    lac_text_line(&page, LAC_TEXT_PLAIN, "%s", "");
    write_asides(&page, analysis);
    write_kinds(&page, analysis);
    write_compute(&page, analysis);
    write_python(&page, analysis);
    write_lists(&page, analysis);
    return take(&out, ret_text);
}

/* -- several ranks -------------------------------------------------------------------------- */

/** A verdict's cause in a word or two. */
static const char *limit_brief(const char *cause)
{
    const struct lac_word *word = lac_word_of(LAC_WORDS_CAUSE, cause);
    word = word != NULL ? word : lac_word_of(LAC_WORDS_LIMIT, cause);
    return word != NULL ? word->brief : cause;
}

/** Whether the traces are ranks of one run. */
static bool are_ranks(const struct lac_report_options *options)
{
    return options->member == NULL || strcmp(options->member, "rank") == 0;
}

/** Of ranks what they do together; of others, which have no number, their names. */
static void write_rank(struct lac_text_page *page, const struct lac_rank_facts *facts,
                       const struct lac_report_options *options)
{
    struct lac_text32 step = {.text = "-"};
    if (facts->step_kept_count > 0) {
        step = lac_format_ns(facts->step_mean_ns);
    }
    if (!are_ranks(options)) {
        const int room = lac_text_width(page) - 42;
        lac_text_line(page, LAC_TEXT_PLAIN, "%-*.*s %10s %8s   %c %.16s", room, room, facts->name,
                      step.text, lac_format_pct(facts->idle_pct).text, facts->letter,
                      limit_brief(facts->cause));
        return;
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%6d %10s %8s %14s %14s   %c %.16s", (int)facts->rank,
                  step.text, lac_format_pct(facts->idle_pct).text,
                  lac_format_pct(facts->exposed_comm_pct).text,
                  facts->is_matched ? lac_format_ns(facts->wait_ns).text : "-", facts->letter,
                  limit_brief(facts->cause));
}

static void write_rank_heads(struct lac_text_page *page, const struct lac_report_options *options)
{
    if (are_ranks(options)) {
        lac_text_line(page, LAC_TEXT_DIM, "%6s %10s %8s %14s %14s   %s", "rank", "step", "idle",
                      "exposed comm", "waits there", "limit");
    } else {
        lac_text_line(page, LAC_TEXT_DIM, "%-*s %10s %8s   %s", lac_text_width(page) - 42,
                      options->member, "step", "idle", "limit");
    }
}

enum lac_status lac_report_run_text(const struct lac_run *run,
                                    const struct lac_report_options *options, char **ret_text)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_text_page page = page_on(&out, options);
    const struct lac_rank_facts *first = &run->ranks[0];
    const bool are_runs = !are_ranks(options) && strcmp(options->member, "run") == 0;
    const char *note = run->has_finding ? run->finding.title
                       : are_runs       ? "recorded one after another: runs, not ranks of one run; "
                                          "`lacuna compare A B` compares two"
                                        : run->note;
    char text[1024];
    lac_text_line(&page, LAC_TEXT_BOLD, "%.40s and %s   %u %ss   %.20s", first->name,
                  run->rank_count == 2 ? "another" : "others", (unsigned)run->rank_count,
                  are_ranks(options) ? "rank" : options->member, first->device);
    lac_text_line(&page, LAC_TEXT_PLAIN, "%s", "");
    lac_text_sentence(text, sizeof(text), note);
    lac_text_paragraph(&page, LAC_TEXT_BOLD, "", text, 0, 3);
    if (run->has_finding) {
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "", run->finding.why, 0, 7);
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "do this", run->finding.change, 12, 5);
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "expect", run->finding.expect, 12, 2);
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "verify", run->finding.check, 12, 2);
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "caveats", run->note, 12, 2);
    }
    lac_text_line(&page, LAC_TEXT_PLAIN, "%s", "");
    write_rank_heads(&page, options);
    uint32_t late = run->late == LAC_NONE ? 0 : run->late;
    write_rank(&page, &run->ranks[late], options);
    for (uint32_t i = 0; i < run->rank_count; i++) {
        bool is_full = page.line_count >= lac_text_lines(&page) - 1 && i + 1 < run->rank_count;
        if (is_full) {
            lac_text_line(&page, LAC_TEXT_DIM, "%6s %u more: lacuna analyze --json", "...",
                          (unsigned)(run->rank_count - i));
            break;
        }
        if (i != late) {
            write_rank(&page, &run->ranks[i], options);
        }
    }
    return take(&out, ret_text);
}
