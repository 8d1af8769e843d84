/* The report as Markdown, for issues and merge requests. Whatever came from the trace cannot make
 * markup: it is escaped, or stands in a code block longer than any run of backticks in it. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/report_private.h"
#include "server/export/text_page.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** What needs no escape inside a line: quotes, and ">" that begins none. */
static const char *harmless(const char *at, size_t *ret_length)
{
    static const char *const pairs[][2] = {{"&#39;", "'"}, {"&quot;", "\""}, {"&gt;", ">"}};
    for (size_t i = 0; i < LAC_COUNT_OF(pairs); i++) {
        size_t length = strlen(pairs[i][0]);
        if (strncmp(at, pairs[i][0], length) == 0) {
            *ret_length = length;
            return pairs[i][1];
        }
    }
    return "";
}

/** Append text so that Markdown and HTML inside it are letters. Line breaks become spaces. */
static void escape(struct lac_buffer *out, const char *text)
{
    struct lac_buffer html = {0};
    lac_html_escape(&html, text, strlen(text));
    for (const char *at = html.bytes != NULL ? html.bytes : ""; *at != '\0'; at++) {
        size_t length = 0;
        const char *plain = at > html.bytes ? harmless(at, &length) : "";
        if (*at == '\n' || length > 0) {
            lac_buffer_puts(out, length > 0 ? plain : " ");
            at += length > 0 ? length - 1 : 0;
            continue;
        }
        if (strchr("\\`*_[]#|!~", *at) != NULL &&
            (*at != '#' || at == html.bytes || at[-1] != '&')) {
            lac_buffer_puts(out, "\\");
        }
        lac_buffer_add(out, at, 1);
    }
    if (html.status != LAC_OK) {
        out->status = html.status;
    }
    lac_buffer_done(&html);
}

static void put_text(struct lac_buffer *out, const struct lac_report_source *source,
                     const char *text)
{
    escape(out, lac_redact(source->redactor, text));
}

static void put_sentence(struct lac_buffer *out, const struct lac_report_source *source,
                         const char *text)
{
    char sentence[2048];
    lac_text_sentence(sentence, sizeof(sentence), text);
    put_text(out, source, sentence);
}

static void code_block(struct lac_buffer *out, const struct lac_report_source *source,
                       const char *text)
{
    const char *plain = lac_redact(source->redactor, text);
    size_t longest = 2;
    for (const char *at = plain; *at != '\0'; at++) {
        size_t run = strspn(at, "`");
        longest = run > longest ? run : longest;
        at += run > 0 ? run - 1 : 0;
    }
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j <= longest; j++) {
            lac_buffer_puts(out, "`");
        }
        lac_buffer_puts(out, "\n");
        for (const char *at = i == 0 ? plain : ""; *at != '\0'; at++) {
            bool is_control = (unsigned char)*at < 0x20 && *at != '\n' && *at != '\t';
            lac_buffer_add(out, is_control ? "?" : at, 1);
        }
        lac_buffer_puts(out, i == 0 ? "\n" : "");
    }
}

static void write_head(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    char text[512];
    lac_buffer_puts(out, "# ");
    put_sentence(out, source, analysis->verdict.text);
    lac_buffer_puts(out, "\n\n");
    if (analysis->verdict.detail[0] != '\0') {
        put_sentence(out, source, analysis->verdict.detail);
        lac_buffer_puts(out, "\n\n");
    }
    lac_buffer_puts(out, "**");
    escape(out, lac_report_name(source));
    lac_buffer_puts(out, "**: ");
    lac_report_figures(analysis, text, sizeof(text));
    escape(out, text);
    if (analysis->main_device != LAC_NONE) {
        lac_buffer_printf(out, ", %u \u00d7 ", (unsigned)analysis->device_count);
        const char *device =
            lac_model_str(source->model, analysis->devices[analysis->main_device].name);
        put_text(out, source, *device != '\0' ? device : "GPU");
    }
    lac_buffer_puts(out, source->model->info.is_simulated ? ". *Simulated: no real training.*\n\n"
                                                          : ".\n\n");
}

static void write_needs(struct lac_buffer *out, const struct lac_report_source *source)
{
    struct lac_report_need needs[LAC_REPORT_NEEDS_MAX];
    uint32_t count = lac_report_needs(source->analysis, needs);
    int64_t scale_ns = source->analysis->step_mean_ns;
    if (count == 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        scale_ns = needs[i].ns > scale_ns ? needs[i].ns : scale_ns;
    }
    lac_buffer_printf(out, "## Time each part needs per step\n\n```\n");
    for (uint32_t i = 0; i < count; i++) {
        char bar[41];
        int length = scale_ns > 0 ? (int)lround(40.0 * (double)needs[i].ns / (double)scale_ns) : 0;
        memset(bar, '=', sizeof(bar));
        bar[length < 1 ? 1 : length > 40 ? 40 : length] = '\0';
        lac_buffer_printf(out, "%-13s %-40s %9s%s%s\n", needs[i].name, bar,
                          lac_format_ns(needs[i].ns).text, needs[i].note[0] != '\0' ? "  " : "",
                          needs[i].note);
    }
    lac_buffer_printf(out, "%-13s %-40s %9s\n```\n\n", "the step", "",
                      lac_format_ns(source->analysis->step_mean_ns).text);
}

static void write_plan(struct lac_buffer *out, const struct lac_report_source *source)
{
    struct lac_report_row rows[LAC_PLAN_MAX];
    uint32_t count = lac_report_plan(source, rows);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0) {
            lac_buffer_printf(out, "## What to change%s\n\n", count > 1 ? ", in this order" : "");
        }
        lac_buffer_printf(out, "%u. ", (unsigned)i + 1);
        put_text(out, source, rows[i].key);
        lac_buffer_puts(out, ": ");
        put_text(out, source, rows[i].value);
        lac_buffer_puts(out, i == 0 ? "\n" : " than before it\n");
    }
    lac_buffer_puts(out, count > 0 ? "\n" : "");
}

static void write_part(struct lac_buffer *out, const struct lac_report_source *source,
                       const char *label, const char *text)
{
    if (*text != '\0') {
        lac_buffer_printf(out, "**%s** ", label);
        put_sentence(out, source, text);
        lac_buffer_puts(out, "\n\n");
    }
}

static void write_finding(struct lac_buffer *out, const struct lac_report_source *source,
                          const struct lac_finding *finding, unsigned number)
{
    lac_buffer_printf(out, "### %u. ", number);
    put_text(out, source, finding->title);
    lac_buffer_puts(out, "\n\n");
    if (isfinite(finding->gain_mid_pct) && finding->gain_mid_pct >= 0.5) {
        lac_buffer_printf(out, "**%.0f %% less time per step**", finding->gain_mid_pct);
        if (round(finding->gain_low_pct) < round(finding->gain_high_pct)) {
            lac_buffer_printf(out, " (%.0f\u2013%.0f %%)", finding->gain_low_pct,
                              finding->gain_high_pct);
        }
        lac_buffer_puts(out, "\n\n");
    }
    put_sentence(out, source, finding->why);
    lac_buffer_puts(out, "\n\n");
    if (finding->change[0] != '\0') {
        lac_buffer_puts(out, finding->where[0] != '\0' ? "**CHANGE** " : "**CHANGE**");
        put_text(out, source, finding->where);
        lac_buffer_puts(out, "\n\n");
        code_block(out, source, finding->change);
        lac_buffer_puts(out, "\n");
    }
    write_part(out, source, "EXPECT", finding->expect);
    write_part(out, source, "COSTS", finding->costs);
    write_part(out, source, "WRONG IF", finding->wrong_if);
    bool is_command =
        strncmp(finding->check, "lacuna ", 7) == 0 || strchr(finding->check, '\n') != NULL;
    if (!is_command) {
        write_part(out, source, "CHECK", finding->check);
    } else {
        lac_buffer_puts(out, "**CHECK**\n\n");
        code_block(out, source, finding->check);
        lac_buffer_puts(out, "\n");
    }
    for (uint32_t i = 0; i < finding->evidence_count && i < 4; i++) {
        char track[96];
        if (!lac_report_is_new_evidence(finding, i)) {
            continue;
        }
        lac_report_trim(track, sizeof(track), finding->evidence[i].track_name);
        lac_buffer_printf(out, "- seen at %s, ", lac_format_ns(finding->evidence[i].t0_ns).text);
        put_text(out, source, track);
        lac_buffer_puts(out, ": ");
        put_text(out, source, finding->evidence[i].text);
        lac_buffer_puts(out, "\n");
    }
    lac_buffer_puts(out, finding->evidence_count > 0 ? "\n" : "");
}

/** The parts of the mean step (without steps, of the recording), and what they sum to. */
static void write_partition(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_time_partition *partition = &source->analysis->partition;
    if (partition->of == LAC_OF_NOTHING || partition->total_ns <= 0) {
        return;
    }
    lac_buffer_printf(out,
                      "## Where the GPU's time goes\n"
                      "\n"
                      "| | per %s | share |\n"
                      "|---|---:|---:|\n",
                      partition->per);
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        int64_t ns = partition->part_ns[part];
        if (ns > 0) {
            lac_buffer_printf(
                out, "| %s | %s | %s |\n", lac_time_part_word(part)->label, lac_format_ns(ns).text,
                lac_format_pct(100.0 * (double)ns / (double)partition->total_ns).text);
        }
    }
    lac_buffer_printf(out, "| all of it | %s | 100 %% |\n\n",
                      lac_format_ns(partition->total_ns).text);
}

static void write_list(struct lac_buffer *out, const struct lac_report_source *source,
                       const char *title, const char *const *texts, uint32_t count)
{
    if (count == 0) {
        return;
    }
    lac_buffer_printf(out, "## %s\n\n", title);
    for (uint32_t i = 0; i < count; i++) {
        lac_buffer_puts(out, "- ");
        put_text(out, source, texts[i]);
        lac_buffer_puts(out, "\n");
    }
    lac_buffer_puts(out, "\n");
}

static void write_rows(struct lac_buffer *out, const char *title, const struct lac_report_row *rows,
                       uint32_t count)
{
    lac_buffer_printf(out, "## %s\n\n", title);
    if (count == 0) {
        lac_buffer_puts(out, "Not recorded in this trace.\n\n");
        return;
    }
    lac_buffer_puts(out, "| | |\n|---|---|\n");
    for (uint32_t i = 0; i < count; i++) {
        lac_buffer_puts(out, "| ");
        escape(out, rows[i].key);
        lac_buffer_puts(out, " | ");
        escape(out, rows[i].value);
        lac_buffer_puts(out, " |\n");
    }
    lac_buffer_puts(out, "\n");
}

void lac_report_markdown(struct lac_buffer *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL);
    const struct lac_analysis *analysis = source->analysis;
    struct lac_report_row rows[LAC_REPORT_ROWS_MAX];
    const char *beside[LAC_KIND_COUNT_];
    write_head(out, source);
    write_plan(out, source);
    write_needs(out, source);
    lac_buffer_puts(out, "## Findings\n\n");
    if (analysis->finding_count == 0) {
        lac_buffer_puts(out, "Nothing to change was found.\n\n");
    }
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        write_finding(out, source, &analysis->findings[i], i + 1);
    }
    write_partition(out, source);
    write_list(out, source, "Besides training", beside,
               lac_analysis_other_phases(analysis, beside));
    write_list(out, source, "Checked and fine (share of the step)", analysis->checked_fine,
               analysis->checked_fine_count);
    write_list(out, source, "Not recorded", analysis->not_recorded, analysis->not_recorded_count);
    write_list(out, source, "Limits of this trace", analysis->caveats, analysis->caveat_count);
    write_rows(out, "Settings", rows, lac_report_settings(source, rows));
    write_rows(out, "Host and devices", rows, lac_report_host(source, rows));
    write_rows(out, "How it was measured", rows, lac_report_method(source, rows));
    write_rows(out, "Terms", rows, lac_report_words(analysis, rows));
    lac_buffer_printf(out, "Lacuna %s\n", LAC_VERSION);
}
