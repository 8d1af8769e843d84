/* The report as one HTML file: no scripts, nothing from elsewhere. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/export/report_private.h"
#include "server/export/text_page.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char style[] =
    "*{box-sizing:border-box}body{margin:0 auto;padding:32px 24px 48px;max-width:1008px;"
    "background:var(--ground);color:var(--ink);font:15px/1.55 system-ui,-apple-system,'Segoe UI',"
    "Roboto,'Helvetica Neue',Arial,sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:25px;line-height:1.25;margin:6px 0 6px;letter-spacing:-.01em}"
    "h2{font-size:17px;margin:36px 0 10px;padding-bottom:5px;border-bottom:1px solid var(--line)}"
    "h3{font-size:16px;margin:0 0 6px}p{margin:6px "
    "0;max-width:76ch}.muted,.note{color:var(--muted)}"
    ".kicker{color:var(--muted);font-size:13px;margin:0}.figures{font-size:16px;margin:8px 0 0}"
    ".tag{display:inline-block;border:1px solid var(--line);border-radius:4px;padding:0 6px;"
    "font-size:12px;color:var(--muted)}"
    "pre{margin:4px 0;padding:9px 12px;background:var(--sunken);border:1px solid var(--line);"
    "border-radius:6px;white-space:pre-wrap;font:13px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,"
    "'DejaVu Sans Mono',monospace}"
    ".finding{border:1px solid var(--line);border-radius:8px;padding:16px 18px;margin:14px 0;"
    "}.finding dl,.facts{display:grid;grid-template-columns:104px 1fr;"
    "gap:5px 14px;margin:10px 0 0}.facts{grid-template-columns:minmax(104px,auto) "
    "1fr}.two{grid-template-columns:"
    "minmax(104px,auto) 1fr minmax(104px,auto) 1fr}"
    "dt{color:var(--muted);font-size:12px;letter-spacing:.04em;text-transform:uppercase;"
    "padding-top:2px}.facts dt{text-transform:none;letter-spacing:0;font-size:14px;padding:0}"
    "dd{margin:0}.gain{float:right;font-weight:600;margin:0 0 4px 16px;font-size:15px}"
    "figure{margin:14px 0;break-inside:avoid}figcaption{color:var(--muted);font-size:13px;"
    "margin-top:5px}svg{display:block;width:100%;height:auto}"
    "table{border-collapse:collapse;width:100%;font-size:14px}th,td{text-align:right;"
    "padding:3px 0 3px 14px;border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums}"
    "th{font-weight:400;color:var(--muted);font-size:13px}th:first-child,td:first-child{"
    "text-align:left;padding-left:0}.chip{display:inline-block;width:18px;height:18px;"
    "line-height:18px;border-radius:4px;text-align:center;font-size:12px;font-weight:700;"
    "margin-right:8px;color:var(--on)}ul,ol{margin:6px 0;padding-left:20px}"
    ".line{padding:0;max-width:88ch}.line li{display:inline}.line li+li::before{content:' \u00b7 ';"
    "color:var(--muted)}.plan td:first-child{width:28px;color:var(--muted)}.plan "
    "td{text-align:left}"
    ".plan code{font:13px/1.5 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    "footer{margin-top:40px;padding-top:10px;border-top:1px solid var(--line);color:var(--muted);"
    "font-size:13px}";

/** On small screens and on paper. */
static const char style_media[] =
    "@media(max-width:640px){body{padding:20px 14px}.finding dl,.facts{grid-template-columns:1fr;"
    "gap:2px}.gain{float:none;margin:0 0 6px}}"
    "@media print{@page{margin:16mm 14mm}body{padding:0;font-size:11pt;max-width:none}"
    "h2,h3{break-after:avoid}h2{margin-top:22px}tr,pre,dd,dt,li,.head{break-inside:avoid}"
    "p{orphans:3;widows:3}.finding{padding:12px "
    "14px}pre{border-color:#bbb}*{-webkit-print-color-adjust:exact;"
    "print-color-adjust:exact}}";

void lac_report_style(struct lac_buffer *out)
{
    lac_svg_styles(out);
    lac_buffer_puts(out, style);
    lac_buffer_puts(out, style_media);
}

static void write_head(struct lac_buffer *out, const struct lac_report_source *source)
{
    lac_buffer_puts(out,
                    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; img-src data:\">\n"
                    "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    const char *name = lac_report_name(source);
    lac_html_escape(out, name, strlen(name));
    lac_buffer_puts(out, ": Lacuna report</title>\n<style>");
    lac_report_style(out);
    lac_buffer_puts(out, "</style>\n</head>\n<body>\n");
}

static void write_verdict(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    char text[1024];
    lac_buffer_puts(out, "<header>\n<p class=\"kicker\">");
    const char *name = lac_report_name(source);
    lac_html_escape(out, name, strlen(name));
    if (analysis->main_device != LAC_NONE) {
        lac_buffer_printf(out, " \u00b7 %u \u00d7 ", (unsigned)analysis->device_count);
        const char *device =
            lac_model_str(source->model, analysis->devices[analysis->main_device].name);
        lac_html_text(out, source, *device != '\0' ? device : "GPU");
    }
    if (source->model->info.is_simulated) {
        lac_buffer_puts(out, " \u00b7 <span class=\"tag\">simulated: no real training</span>");
    }
    lac_buffer_puts(out, "</p>\n<h1>");
    lac_text_sentence(text, sizeof(text), analysis->verdict.text);
    lac_html_text(out, source, text);
    lac_buffer_puts(out, "</h1>\n");
    if (analysis->verdict.detail[0] != '\0') {
        lac_text_sentence(text, sizeof(text), analysis->verdict.detail);
        lac_buffer_puts(out, "<p>");
        lac_html_text(out, source, text);
        lac_buffer_puts(out, "</p>\n");
    }
    lac_report_figures(analysis, text, sizeof(text));
    lac_buffer_puts(out, "<p class=\"figures\">");
    lac_html_text(out, source, text);
    lac_buffer_puts(out, "</p>\n</header>\n");
}

static void write_needs(struct lac_buffer *out, const struct lac_report_source *source)
{
    struct lac_report_need needs[LAC_REPORT_NEEDS_MAX];
    if (lac_report_needs(source->analysis, needs) > 0) {
        lac_buffer_puts(out, "<h2>Time each part needs per step</h2>\n<figure>");
        lac_svg_needs(out, source);
        lac_buffer_puts(out, "</figure>\n");
    }
}

static void write_plan(struct lac_buffer *out, const struct lac_report_source *source)
{
    struct lac_report_row rows[LAC_PLAN_MAX];
    uint32_t count = lac_report_plan(source, rows);
    if (count == 0) {
        return;
    }
    lac_buffer_printf(out, "<h2>What to change%s</h2>\n<table class=\"plan\">\n",
                      count > 1 ? ", in this order" : "");
    for (uint32_t i = 0; i < count; i++) {
        lac_buffer_printf(out, "<tr><td>%u</td><td><code>", (unsigned)i + 1);
        lac_html_text(out, source, rows[i].key);
        lac_buffer_puts(out, "</code></td><td>");
        lac_html_text(out, source, rows[i].value);
        lac_buffer_puts(out, i == 0 ? "</td></tr>\n" : " than before it</td></tr>\n");
    }
    lac_buffer_puts(out, "</table>\n");
}

/* -- findings -------------------------------------------------------------------------------- */

static void write_part(struct lac_buffer *out, const struct lac_report_source *source,
                       const char *label, const char *text, bool is_code)
{
    if (*text == '\0') {
        return;
    }
    lac_buffer_printf(out, "<dt>%s</dt><dd>%s", label, is_code ? "<pre>" : "");
    if (is_code) {
        lac_html_text(out, source, text);
    } else {
        char sentence[2048];
        lac_text_sentence(sentence, sizeof(sentence), text);
        lac_html_text(out, source, sentence);
    }
    lac_buffer_puts(out, is_code ? "</pre></dd>\n" : "</dd>\n");
}

static void write_gain(struct lac_buffer *out, const struct lac_finding *finding)
{
    if (!isfinite(finding->gain_mid_pct) || finding->gain_mid_pct < 0.5) {
        return;
    }
    lac_buffer_printf(out, "<p class=\"gain\">%.0f %% less time per step", finding->gain_mid_pct);
    if (round(finding->gain_low_pct) < round(finding->gain_high_pct)) {
        lac_buffer_printf(out, " (%.0f\u2013%.0f)", finding->gain_low_pct, finding->gain_high_pct);
    }
    lac_buffer_puts(out, "</p>\n");
}

static bool is_same_text(const char *a, const char *b)
{
    return strncasecmp(a, b, strlen(a)) == 0;
}

static void write_evidence(struct lac_buffer *out, const struct lac_report_source *source,
                           const struct lac_finding *finding)
{
    if (finding->evidence_count == 0) {
        return;
    }
    lac_buffer_puts(out, "<dt>Seen</dt><dd><ul>");
    for (uint32_t i = 0; i < finding->evidence_count && i < 4; i++) {
        const struct lac_evidence *evidence = &finding->evidence[i];
        if (!lac_report_is_new_evidence(finding, i)) {
            continue;
        }
        char track[96];
        lac_report_trim(track, sizeof(track), evidence->track_name);
        lac_buffer_printf(out, "<li>at %s, ", lac_format_ns(evidence->t0_ns).text);
        lac_html_text(out, source, track);
        lac_buffer_puts(out, ": ");
        lac_html_text(out, source, evidence->text);
        lac_buffer_puts(out, "</li>");
    }
    lac_buffer_puts(out, "</ul></dd>\n");
}

/** A picture and what it shows; an empty figure where there is nothing to draw. */
static void write_figure(struct lac_buffer *out, struct lac_svg *svg, bool has_any)
{
    lac_buffer_puts(out, "<figure>");
    if (has_any) {
        lac_svg_put(out, svg);
        lac_buffer_printf(out, "<figcaption>%s</figcaption>", svg->caption);
    } else if (svg->body.status != LAC_OK) {
        out->status = svg->body.status;
    }
    lac_buffer_puts(out, "</figure>\n");
    lac_svg_done(svg);
}

static void write_view(struct lac_buffer *out, const struct lac_report_source *source,
                       uint32_t index)
{
    struct lac_svg svg = {0};
    write_figure(out, &svg, lac_svg_timeline(&svg, source, index));
}

static void write_finding(struct lac_buffer *out, const struct lac_report_source *source,
                          uint32_t index)
{
    const struct lac_finding *finding = &source->analysis->findings[index];
    char text[2048];
    lac_buffer_puts(out, "<section class=\"finding\">\n<div class=\"head\">");
    write_gain(out, finding);
    lac_text_sentence(text, sizeof(text), finding->title);
    lac_buffer_puts(out, "<h3>");
    lac_html_text(out, source, text);
    lac_buffer_puts(out, "</h3>\n");
    if (!is_same_text(finding->title, finding->why)) {
        lac_text_sentence(text, sizeof(text), finding->why);
        lac_buffer_puts(out, "<p>");
        lac_html_text(out, source, text);
        lac_buffer_puts(out, "</p>\n");
    }
    lac_buffer_puts(out, "</div>\n<dl>\n");
    if (finding->change[0] != '\0') {
        write_part(out, source, "Change", finding->change, true);
        write_part(out, source, "Where", finding->where, true);
    }
    write_part(out, source, "Expect", finding->expect, false);
    write_part(out, source, "Costs", finding->costs, false);
    write_part(out, source, "Wrong if", finding->wrong_if, false);
    write_part(out, source, "Check", finding->check,
               strncmp(finding->check, "lacuna ", 7) == 0 || strchr(finding->check, '\n') != NULL);
    write_evidence(out, source, finding);
    lac_buffer_puts(out, "</dl>\n");
    if (index < LAC_VIEW_COUNT - 1 && finding->evidence_count > 0) {
        write_view(out, source, index);
    }
    lac_buffer_puts(out, "</section>\n");
}

static void write_findings(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    bool has_first_picture = false;
    lac_buffer_puts(out, "<h2>Findings</h2>\n");
    if (analysis->finding_count == 0) {
        lac_buffer_puts(out, "<p>Nothing to change was found.</p>\n");
    }
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        has_first_picture = has_first_picture ||
                            (i < LAC_VIEW_COUNT - 1 && analysis->findings[i].evidence_count > 0);
        write_finding(out, source, i);
    }
    if (!has_first_picture && analysis->main_device != LAC_NONE) {
        write_view(out, source, LAC_VIEW_COUNT - 1);
    }
}

/* -- where the time goes --------------------------------------------------------------------- */

/** The parts of the mean step (without steps, of the recording), and what they sum to. */
static void write_partition(struct lac_buffer *out, const struct lac_time_partition *partition)
{
    lac_buffer_printf(out,
                      "<table><tr><th>Of the GPU's time</th><th>per %s</th><th>share</th></tr>\n",
                      partition->per);
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        int64_t ns = partition->part_ns[part];
        if (ns <= 0) {
            continue;
        }
        char chip[80] = "";
        if (part >= LAC_PART_IDLE) {
            enum lac_cause cause = (enum lac_cause)(part - LAC_PART_IDLE);
            (void)snprintf(chip, sizeof(chip), "<span class=\"chip c-%s\">%c</span>",
                           lac_cause_name(cause), lac_cause_letter(cause));
        }
        lac_buffer_printf(out, "<tr><td>%s%s</td><td>%s</td><td>%s</td></tr>\n", chip,
                          lac_time_part_word(part)->label, lac_format_ns(ns).text,
                          lac_format_pct(100.0 * (double)ns / (double)partition->total_ns).text);
    }
    lac_buffer_printf(out, "<tr><td>all of it</td><td>%s</td><td>100 %%</td></tr>\n</table>\n",
                      lac_format_ns(partition->total_ns).text);
}

static void write_idle(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    if (analysis->main_device == LAC_NONE) {
        return;
    }
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    lac_buffer_puts(out, "<h2>Where the time goes</h2>\n");
    if (isfinite(device->busy_pct)) {
        char which[48] = "the GPU";
        if (analysis->device_count > 1) {
            (void)snprintf(which, sizeof(which), "GPU %lld (of %u)", (long long)device->id,
                           (unsigned)analysis->device_count);
        }
        lac_buffer_printf(
            out,
            "<p>Over the whole trace, %s was active for %.0f %% of %s and did not compute for %.0f "
            "%%: idle, exposed copies and exposed communication together.</p>\n",
            which, device->busy_pct, lac_format_ns(device->span_ns).text,
            device->not_computing_pct);
    }
    write_partition(out, &analysis->partition);
    struct lac_svg svg = {0};
    write_figure(out, &svg, lac_svg_flame(&svg, source));
}

static void write_kernels(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    struct lac_report_kernel kernels[LAC_REPORT_KERNELS_MAX];
    if (analysis->kernel_name_count == 0 || analysis->kernel_total_ns <= 0) {
        return;
    }
    uint32_t count = lac_report_kernels(source, kernels);
    lac_buffer_puts(
        out, "<table><tr><th>Largest kernels</th><th>kind</th><th>count</th><th>total</th><th>of "
             "kernel time</th></tr>\n");
    for (uint32_t k = 0; k < count; k++) {
        lac_buffer_puts(out, "<tr><td>");
        lac_html_text(out, source, kernels[k].name);
        lac_buffer_printf(
            out, "</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", kernels[k].family,
            lac_format_rate((double)kernels[k].count).text, lac_format_ns(kernels[k].total_ns).text,
            lac_format_pct(100.0 * (double)kernels[k].total_ns / (double)analysis->kernel_total_ns)
                .text);
    }
    lac_buffer_puts(out, "</table>\n");
}

/* -- lists ----------------------------------------------------------------------------------- */

static void write_list(struct lac_buffer *out, const struct lac_report_source *source,
                       const char *title, const char *const *texts, uint32_t count)
{
    if (count == 0) {
        return;
    }
    lac_buffer_printf(out, "<h2>%s</h2>\n<ul class=\"line\">\n", title);
    for (uint32_t i = 0; i < count; i++) {
        lac_buffer_puts(out, "<li>");
        lac_html_text(out, source, texts[i]);
        lac_buffer_puts(out, "</li>\n");
    }
    lac_buffer_puts(out, "</ul>\n");
}

static void write_rows(struct lac_buffer *out, const char *title, const struct lac_report_row *rows,
                       uint32_t count, const char *otherwise)
{
    lac_buffer_printf(out, "<h2>%s</h2>\n", title);
    if (count == 0) {
        lac_buffer_printf(out, "<p class=\"muted\">%s</p>\n", otherwise);
        return;
    }
    /* short ones stand two to a line */
    bool is_short = count > 3;
    for (uint32_t i = 0; i < count; i++) {
        is_short = is_short && strlen(rows[i].value) < 28;
    }
    lac_buffer_printf(out, "<dl class=\"facts%s\">\n", is_short ? " two" : "");
    for (uint32_t i = 0; i < count; i++) {
        lac_buffer_puts(out, "<dt>");
        lac_html_escape(out, rows[i].key, strlen(rows[i].key));
        lac_buffer_puts(out, "</dt><dd>");
        lac_html_escape(out, rows[i].value, strlen(rows[i].value));
        lac_buffer_puts(out, "</dd>\n");
    }
    lac_buffer_puts(out, "</dl>\n");
}

void lac_report_html(struct lac_buffer *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL);
    const struct lac_analysis *analysis = source->analysis;
    struct lac_report_row rows[LAC_REPORT_ROWS_MAX];
    const char *beside[LAC_KIND_COUNT_];
    write_head(out, source);
    write_verdict(out, source);
    write_plan(out, source);
    write_needs(out, source);
    write_findings(out, source);
    write_idle(out, source);
    write_kernels(out, source);
    write_list(out, source, "Besides training", beside,
               lac_analysis_other_phases(analysis, beside));
    write_list(out, source, "Checked and fine (share of the step)", analysis->checked_fine,
               analysis->checked_fine_count);
    write_list(out, source, "Not recorded", analysis->not_recorded, analysis->not_recorded_count);
    write_list(out, source, "Limits of this trace", analysis->caveats, analysis->caveat_count);
    write_rows(out, "Settings", rows, lac_report_settings(source, rows),
               "Not recorded in this trace.");
    write_rows(out, "Host and devices", rows, lac_report_host(source, rows),
               "Not recorded in this trace.");
    write_rows(out, "How it was measured", rows, lac_report_method(source, rows), "");
    write_rows(out, "Terms", rows, lac_report_words(analysis, rows), "");
    lac_buffer_printf(out,
                      "<footer>Lacuna %s. Gains refer to the mean step and are given as bands, "
                      "each with a condition that would refute it.</footer>\n"
                      "</body>\n"
                      "</html>\n",
                      LAC_VERSION);
}
