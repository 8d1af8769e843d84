#include "server/cli/compare_text.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/export/text_page.h"
#include "server/json/compare_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A name in `room` columns. Two that begin alike are cut in the middle, so that they still differ. */
static void name_text(const char *name, const char *other, int room, char *out,
                      size_t capacity_bytes)
{
    int length = (int)strlen(name);
    int same = 0;
    while (name[same] != '\0' && name[same] == other[same]) {
        same++;
    }
    if (length <= room) {
        (void)snprintf(out, capacity_bytes, "%s", name);
        return;
    }
    if (same < room - 2) {
        (void)snprintf(out, capacity_bytes, "%.*s..", room - 2, name);
        return;
    }
    int head = room / 3;
    int tail = room - 2 - head;
    int from = same - tail / 3 < length - tail ? same - tail / 3 : length - tail;
    (void)snprintf(out, capacity_bytes, "%.*s..%.*s", head, name, tail, name + from);
}

static void write_side(struct lac_text_page *page, char letter, const struct lac_compare_side *side,
                       const struct lac_compare_side *other, double per_s, const char *unit)
{
    const struct lac_analysis *analysis = side->analysis;
    const char *name = lac_model_str(side->model, side->model->info.name);
    const char *mark = side->model->info.is_simulated ? " (simulated)" : "";
    if (analysis->step_kept_count == 0) {
        lac_text_line(page, LAC_TEXT_PLAIN, "%c  %.38s%s  no measurable step", letter, name, mark);
        return;
    }
    char both[160];
    name_text(name, lac_model_str(other->model, other->model->info.name), 36 - (int)strlen(mark),
              both, sizeof(both));
    (void)snprintf(both + strlen(both), sizeof(both) - strlen(both), "%s", mark);
    char rate[48] = "";
    if (isfinite(per_s)) {
        (void)snprintf(rate, sizeof(rate), "%s %s/s", lac_format_rate(per_s).text, unit);
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%c  %-36s %8s %17s %4u step%s", letter, both,
                  lac_format_ns(analysis->step_mean_ns).text, rate,
                  (unsigned)analysis->step_kept_count, analysis->step_kept_count == 1 ? "" : "s");
}

static void write_headline(struct lac_text_page *page, const struct lac_comparison *comparison)
{
    char text[1024];
    lac_text_line(page, LAC_TEXT_PLAIN, "%s", "");
    lac_text_sentence(text, sizeof(text), comparison->headline);
    lac_text_paragraph(page, LAC_TEXT_PLAIN, "", text, 0, 2);
    const struct lac_compare_change *rate = &comparison->throughput;
    bool is_real =
        comparison->verdict == LAC_COMPARE_FASTER || comparison->verdict == LAC_COMPARE_SLOWER;
    if (is_real && isfinite(rate->low_pct) && isfinite(rate->high_pct)) {
        lac_text_line(page, LAC_TEXT_PLAIN, "Throughput %+.*f %%.", fabs(rate->pct) < 9.5 ? 1 : 0,
                      rate->pct);
    }
}

/* -- where the milliseconds went ------------------------------------------------------------ */

struct row {
    const char *name;
    int64_t a_ns, b_ns;
};

static int by_size(const void *x, const void *y)
{
    const struct row *a = x;
    const struct row *b = y;
    int64_t da = llabs(a->b_ns - a->a_ns);
    int64_t db = llabs(b->b_ns - b->a_ns);
    return da != db ? (da > db ? -1 : 1) : strcmp(a->name, b->name);
}

static void add_row(struct row *rows, uint32_t *count, const char *name, int64_t a_ns, int64_t b_ns)
{
    rows[(*count)++] = (struct row){.name = name, .a_ns = a_ns, .b_ns = b_ns};
}

static void ms(char *out, size_t capacity_bytes, int64_t ns)
{
    double value = (double)ns / 1e6;
    (void)snprintf(out, capacity_bytes, "%.*f", fabs(value) < 9.95 ? 1 : 0, value);
}

static void write_row(struct lac_text_page *page, const struct row *row, int64_t scale_ns)
{
    char a[32];
    char b[32];
    char bar[40] = "";
    int64_t delta_ns = row->b_ns - row->a_ns;
    ms(a, sizeof(a), row->a_ns);
    ms(b, sizeof(b), row->b_ns);
    int length = scale_ns > 0 ? (int)lround(19.0 * (double)llabs(delta_ns) / (double)scale_ns) : 0;
    for (int i = 0; i < length && i < 19; i++) {
        bar[i] = delta_ns < 0 ? '-' : '+';
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "  %-29s %7s -> %-7s %+8.*f  %s", row->name, a, b,
                  fabs((double)delta_ns) < 9.95e6 ? 1 : 0, (double)delta_ns / 1e6, bar);
}

static void write_where(struct lac_text_page *page, const struct lac_comparison *comparison)
{
    enum { ROWS_SHOWN = 6 };
    const struct lac_compare_steps *a = &comparison->steps[0];
    const struct lac_compare_steps *b = &comparison->steps[1];
    if (!a->is_known || !b->is_known) {
        return;
    }
    struct row rows[LAC_PART_COUNT_ + LAC_CAUSE_COUNT_];
    uint32_t count = 0;
    for (uint32_t i = 0; i < LAC_PART_IDLE; i++) {
        add_row(rows, &count, lac_word(LAC_WORDS_PART, i)->label, a->part_ns[i], b->part_ns[i]);
    }
    for (uint32_t i = 0; i < LAC_CAUSE_COUNT_; i++) {
        add_row(rows, &count, lac_word(LAC_WORDS_CAUSE, i)->label, a->cause_ns[i], b->cause_ns[i]);
    }
    qsort(rows, count, sizeof(rows[0]), by_size);
    int64_t scale_ns = llabs(rows[0].b_ns - rows[0].a_ns);
    const int64_t least_ns = scale_ns / 100 > 50000 ? scale_ns / 100 : 50000;
    if (scale_ns < least_ns) {
        return;
    }
    lac_text_line(page, LAC_TEXT_PLAIN, "%s", "");
    lac_text_line(page, LAC_TEXT_PLAIN, "Where the time went, ms per step");
    for (uint32_t i = 0; i < count && i < ROWS_SHOWN; i++) {
        if (llabs(rows[i].b_ns - rows[i].a_ns) >= least_ns) {
            write_row(page, &rows[i], scale_ns);
        }
    }
}

static void write_findings(struct lac_text_page *page, const char *label,
                           const struct lac_compare_finding *findings, uint32_t count)
{
    char text[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof(text); i++) {
        int length =
            snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? ", " : "", findings[i].id);
        used += length > 0 ? (size_t)length : 0;
    }
    lac_text_paragraph(page, LAC_TEXT_PLAIN, label, count > 0 ? text : "none", 11, 2);
}

/** "8 ranks, rank 7 late by 6.1 ms": each side in a line, when both are runs. */
static void write_ranks(struct lac_text_page *page, const struct lac_compare_names *names)
{
    for (int i = 0; i < 2 && names != NULL && names->run[0] != NULL && names->run[1] != NULL; i++) {
        const struct lac_run *run = names->run[i];
        char text[512];
        (void)snprintf(text, sizeof(text), "%c: %u, %s", "AB"[i], (unsigned)run -> rank_count,
                       run -> has_finding ? run -> finding.title : run->note);
        lac_text_paragraph(page, LAC_TEXT_PLAIN, i == 0 ? "ranks" : "", text, 11, 1);
    }
}

/** Steps that are no training, each kind with its like. */
static void write_kinds(struct lac_text_page *page, const struct lac_comparison *comparison)
{
    for (int kind = LAC_COMPARE_TRAIN + 1; kind < LAC_COMPARE_KIND_COUNT_; kind++) {
        const struct lac_compare_kind_facts *a = &comparison->kinds[0][kind];
        const struct lac_compare_kind_facts *b = &comparison->kinds[1][kind];
        if (a->count == 0 && b->count == 0) {
            continue;
        }
        char text[160];
        (void)snprintf(text, sizeof(text), "%s per step -> %s (%u and %u)",
                       a->count > 0 ? lac_format_ns(a->mean_ns).text : "none",
                       b->count > 0 ? lac_format_ns(b->mean_ns).text : "none", (unsigned)a->count,
                       (unsigned)b->count);
        lac_text_paragraph(page, LAC_TEXT_PLAIN,
                           lac_compare_kind_word((enum lac_compare_kind)kind)->brief, text, 11, 1);
    }
}

void lac_compare_text(struct lac_buffer *out, const struct lac_compare_side *a,
                      const struct lac_compare_side *b, const struct lac_comparison *comparison,
                      const struct lac_compare_names *names, bool is_ascii, int columns)
{
    struct lac_text_page page = {.out = out, .columns = columns, .is_ascii = is_ascii};
    write_side(&page, 'A', a, b, comparison->throughput_per_s[0], comparison->throughput_unit);
    write_side(&page, 'B', b, a, comparison->throughput_per_s[1], comparison->throughput_unit);
    write_headline(&page, comparison);
    lac_text_line(&page, LAC_TEXT_PLAIN, "%s", "");
    lac_text_paragraph(&page, LAC_TEXT_PLAIN, "changed", comparison->changed, 11, 3);
    if (comparison->prediction.finding != NULL) {
        char text[512];
        (void)snprintf(text, sizeof(text), "%s: %s", comparison->prediction.change,
                       comparison->prediction.text);
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "prediction", text, 11, 2);
    }
    if (comparison->verdict != LAC_COMPARE_UNKNOWN && comparison->why_not[0] != '\0') {
        lac_text_paragraph(&page, LAC_TEXT_PLAIN, "caveats", comparison->why_not, 11, 1);
    }
    write_ranks(&page, names);
    write_kinds(&page, comparison);
    lac_text_paragraph(&page, LAC_TEXT_PLAIN, "result",
                       comparison->result.is_known ? comparison->result.text : "", 11, 1);
    write_where(&page, comparison);
    lac_text_line(&page, LAC_TEXT_PLAIN, "%s", "");
    write_findings(&page, "gone", comparison->gone, comparison->gone_count);
    write_findings(&page, "new", comparison->come, comparison->come_count);
    write_findings(&page, "stayed", comparison->stayed, comparison->stayed_count);
}
