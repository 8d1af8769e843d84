#include "server/compare_text.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/analysis.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks.h"
#include "analysis/diagnose/texts.h"
#include "analysis/model/model.h"
#include "server/api/compare_json.h"
#include "server/http/buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct page {
    struct lac_buffer *out;
    int line_count;
    bool is_ascii;
};

/** Bytes of the UTF-8 character at `text`; 1 for what is none. */
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

/** Whether a character may go to a terminal: no controls, no hidden or direction marks. */
static bool is_printable(const unsigned char *at, size_t length, bool is_ascii)
{
    if (length == 1) {
        return at[0] >= 0x20 && at[0] < 0x7F;
    }
    bool is_control = at[0] == 0xC2 && at[1] < 0xA0;
    bool is_hidden = length == 3 && at[0] == 0xE2 &&
                     ((at[1] == 0x80 && at[2] >= 0x8B) || (at[1] == 0x81 && at[2] >= 0xA0));
    return !is_ascii && !is_control && !is_hidden;
}

static void line(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct page *page, const char *fmt, ...)
{
    char text[2048];
    if (page->line_count == LAC_COMPARE_LINES) {
        return;
    }
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == ' ') {
        text[--end] = '\0';
    }
    const unsigned char *at = (const unsigned char *)text;
    for (int column = 0; *at != '\0' && column < LAC_COMPARE_COLUMNS; column++) {
        size_t length = char_bytes(at);
        if (is_printable(at, length, page->is_ascii)) {
            lac_buffer_add(page->out, at, length);
        } else {
            lac_buffer_puts(page->out, "?");
        }
        at += length;
    }
    lac_buffer_puts(page->out, "\n");
    page->line_count++;
}

/** A sentence over at most `lines_max` lines, each after `indent` columns but the first. */
static void paragraph(struct page *page, const char *label, const char *text, int indent,
                      int lines_max)
{
    size_t room = (size_t)(LAC_COMPARE_COLUMNS - indent);
    for (int i = 0; i < lines_max && *text != '\0'; i++) {
        size_t length = strlen(text);
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ') {
                length--;
            }
            length = length == 0 ? room : length;
        }
        bool is_cut = i + 1 == lines_max && text[length] != '\0';
        if (is_cut && length > room - 4) {
            length = room - 4;
        }
        line(page, "%-*s%.*s%s", indent, i == 0 ? label : "", (int)length, text,
             is_cut ? " ..." : "");
        text += length;
        text += strspn(text, " ");
    }
}

static void write_side(struct page *page, char letter, const struct lac_compare_side *side,
                       double per_s, const char *unit)
{
    const struct lac_analysis *analysis = side->analysis;
    const char *name = lac_model_str(side->model, side->model->info.name);
    const char *mark = side->model->info.is_simulated ? " (simulated)" : "";
    if (analysis->step_kept_count == 0) {
        line(page, "%c  %.38s%s  no step to measure", letter, name, mark);
        return;
    }
    int room = 36 - (int)strlen(mark);
    bool is_long = (int)strlen(name) > room;
    char both[160];
    (void)snprintf(both, sizeof both, "%.*s%s%s", is_long ? room - 2 : room, name,
                   is_long ? ".." : "", mark);
    char rate[48] = "";
    if (isfinite(per_s)) {
        (void)snprintf(rate, sizeof rate, "%s %s/s", lac_say_rate(per_s).text, unit);
    }
    line(page, "%c  %-36s %8s %17s %4u step%s", letter, both,
         lac_say_ns(analysis->step_mean_ns).text, rate, (unsigned)analysis->step_kept_count,
         analysis->step_kept_count == 1 ? "" : "s");
}

static void write_headline(struct page *page, const struct lac_comparison *comparison)
{
    char text[1024];
    line(page, "%s", "");
    (void)snprintf(text, sizeof text, "%s.", comparison->headline);
    if (text[0] >= 'a' && text[0] <= 'z') {
        text[0] = (char)(text[0] - 'a' + 'A');
    }
    paragraph(page, "", text, 0, 2);
    const struct lac_compare_change *rate = &comparison->throughput;
    bool is_real =
        comparison->verdict == LAC_COMPARE_FASTER || comparison->verdict == LAC_COMPARE_SLOWER;
    if (is_real && isfinite(rate->low_pct) && isfinite(rate->high_pct)) {
        line(page, "Throughput %+.*f %%.", fabs(rate->pct) < 9.5 ? 1 : 0, rate->pct);
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

static void write_row(struct page *page, const struct row *row, int64_t scale_ns)
{
    char a[32];
    char b[32];
    char bar[40] = "";
    int64_t delta_ns = row->b_ns - row->a_ns;
    ms(a, sizeof a, row->a_ns);
    ms(b, sizeof b, row->b_ns);
    int length = scale_ns > 0 ? (int)lround(24.0 * (double)llabs(delta_ns) / (double)scale_ns) : 0;
    for (int i = 0; i < length && i < 24; i++) {
        bar[i] = delta_ns < 0 ? '-' : '+';
    }
    line(page, "  %-24s %7s -> %-7s %+8.*f  %s", row->name, a, b,
         fabs((double)delta_ns) < 9.95e6 ? 1 : 0, (double)delta_ns / 1e6, bar);
}

static void write_where(struct page *page, const struct lac_comparison *comparison)
{
    static const char *const parts[] = {"computing kernels", "communication in line",
                                        "copies in line", "memory sets"};
    static const char *const causes[LAC_CAUSE_COUNT_] = {
        "waiting for data",         "waiting for a sync",        "waiting for launches",
        "waiting for a copy",       "waiting for the allocator", "waiting for modules",
        "waiting for other ranks",  "waiting for a stream",      "waiting for the host",
        "waiting for the profiler", "idle, cause unknown"};
    enum { ROWS_SHOWN = 6 };
    const struct lac_compare_steps *a = &comparison->steps[0];
    const struct lac_compare_steps *b = &comparison->steps[1];
    if (!a->is_known || !b->is_known) {
        return;
    }
    struct row rows[LAC_COMPARE_PART_COUNT_ + LAC_CAUSE_COUNT_];
    uint32_t count = 0;
    for (int i = 0; i < LAC_COMPARE_IDLE; i++) {
        add_row(rows, &count, parts[i], a->part_ns[i], b->part_ns[i]);
    }
    for (int i = 0; i < LAC_CAUSE_COUNT_; i++) {
        add_row(rows, &count, causes[i], a->cause_ns[i], b->cause_ns[i]);
    }
    qsort(rows, count, sizeof rows[0], by_size);
    int64_t scale_ns = llabs(rows[0].b_ns - rows[0].a_ns);
    const int64_t least_ns = scale_ns / 100 > 50000 ? scale_ns / 100 : 50000;
    if (scale_ns < least_ns) {
        return;
    }
    line(page, "%s", "");
    line(page, "Where the time went, ms a step");
    for (uint32_t i = 0; i < count && i < ROWS_SHOWN; i++) {
        if (llabs(rows[i].b_ns - rows[i].a_ns) >= least_ns) {
            write_row(page, &rows[i], scale_ns);
        }
    }
}

static void write_findings(struct page *page, const char *label,
                           const struct lac_compare_finding *findings, uint32_t count)
{
    char text[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof text; i++) {
        int length =
            snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "", findings[i].id);
        used += length > 0 ? (size_t)length : 0;
    }
    paragraph(page, label, count > 0 ? text : "none", 11, 1);
}

/** "8 ranks, rank 7 late by 6.1 ms": each side in a line, when both are runs. */
static void write_ranks(struct page *page, const struct lac_compare_names *names)
{
    for (int i = 0; i < 2 && names && names->run[0] && names->run[1]; i++) {
        const struct lac_run *run = names->run[i];
        char text[512];
        (void)snprintf(text, sizeof text, "%c: %u, %s", "AB"[i], (unsigned)run -> rank_count,
                       run -> has_finding ? run -> finding.title : run->note);
        paragraph(page, i == 0 ? "ranks" : "", text, 11, 1);
    }
}

/** Steps that are no training, each kind with its like. */
static void write_kinds(struct page *page, const struct lac_comparison *comparison)
{
    for (int kind = LAC_COMPARE_TRAIN + 1; kind < LAC_COMPARE_KIND_COUNT_; kind++) {
        const struct lac_compare_kind_facts *a = &comparison->kinds[0][kind];
        const struct lac_compare_kind_facts *b = &comparison->kinds[1][kind];
        if (a->count == 0 && b->count == 0) {
            continue;
        }
        char text[160];
        (void)snprintf(text, sizeof text, "%s a step -> %s (%u and %u)",
                       a->count > 0 ? lac_say_ns(a->mean_ns).text : "none",
                       b->count > 0 ? lac_say_ns(b->mean_ns).text : "none", (unsigned)a->count,
                       (unsigned)b->count);
        paragraph(page, lac_compare_kind_name((enum lac_compare_kind)kind), text, 11, 1);
    }
}

void lac_compare_text(struct lac_buffer *out, const struct lac_compare_side *a,
                      const struct lac_compare_side *b, const struct lac_comparison *comparison,
                      const struct lac_compare_names *names, bool is_ascii)
{
    struct page page = {.out = out, .is_ascii = is_ascii};
    write_side(&page, 'A', a, comparison->throughput_per_s[0], comparison->throughput_unit);
    write_side(&page, 'B', b, comparison->throughput_per_s[1], comparison->throughput_unit);
    write_headline(&page, comparison);
    line(&page, "%s", "");
    paragraph(&page, "changed", comparison->changed, 11, 3);
    if (comparison->prediction.finding) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s: %s", comparison->prediction.change,
                       comparison->prediction.text);
        paragraph(&page, "prediction", text, 11, 2);
    }
    if (comparison->verdict != LAC_COMPARE_UNKNOWN && comparison->why_not[0] != '\0') {
        paragraph(&page, "mind", comparison->why_not, 11, 1);
    }
    write_ranks(&page, names);
    write_kinds(&page, comparison);
    paragraph(&page, "result", comparison->result.is_known ? comparison->result.text : "", 11, 1);
    write_where(&page, comparison);
    line(&page, "%s", "");
    write_findings(&page, "gone", comparison->gone, comparison->gone_count);
    write_findings(&page, "come", comparison->come, comparison->come_count);
    write_findings(&page, "stayed", comparison->stayed, comparison->stayed_count);
}
