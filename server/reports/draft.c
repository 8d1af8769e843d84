#include "server/reports/draft.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/export/text_page.h"
#include "server/store/bookmarks.h"
#include "server/store/store.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FINDINGS_MAX = 3 };

/** A text of the analysis, which may hold names of a trace, as Markdown that shows it as it is. */
static void plain(struct lac_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*_[]<>#|~&!", *text) != NULL) {
            lac_buffer_puts(out, "\\");
        }
        lac_buffer_add(out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

static void sentence(struct lac_buffer *out, const char *text)
{
    char whole[2048];

    lac_text_sentence(whole, sizeof(whole), text);
    plain(out, whole);
    lac_buffer_puts(out, "\n\n");
}

static void begin_parts(struct lac_buffer *out)
{
    lac_buffer_puts(out, "```lacuna\n");
}

static void end_parts(struct lac_buffer *out)
{
    lac_buffer_puts(out, "```\n\n");
}

void lac_draft_trace(struct lac_buffer *out, const char *trace, const struct lac_model *model,
                     const struct lac_analysis *analysis)
{
    char figures[256];
    const struct lac_view *view = &analysis->views[0];

    sentence(out, analysis->verdict.text);
    if (analysis->verdict.detail[0] != '\0') {
        sentence(out, analysis->verdict.detail);
    }
    lac_report_figures(analysis, figures, sizeof(figures));
    sentence(out, figures);
    if (model->info.is_simulated) {
        lac_buffer_puts(out, "*Simulated: no real training.*\n\n");
    }
    if (analysis->finding_count > 0) {
        lac_buffer_puts(out, "# What to change\n\n");
        begin_parts(out);
        for (uint32_t i = 0; i < analysis->finding_count && i < FINDINGS_MAX; i++) {
            lac_buffer_printf(out, "finding trace=%s id=%s\n", trace, analysis->findings[i].id);
        }
        end_parts(out);
    }
    view = view->is_known ? view : &analysis->views[LAC_VIEW_COUNT - 1];
    if (view->is_known && view->t1_ns > view->t0_ns) {
        lac_buffer_puts(out, "# What it looks like\n\n");
        begin_parts(out);
        lac_buffer_printf(out, "window trace=%s from=%" PRId64 " to=%" PRId64 "\n", trace,
                          view->t0_ns > 0 ? view->t0_ns : 0, view->t1_ns);
        end_parts(out);
    }
    if (analysis->device_count > 0) {
        lac_buffer_puts(out, "# Where the time goes\n\n");
        begin_parts(out);
        lac_buffer_printf(out, "table trace=%s of=idle\nflame trace=%s\n", trace, trace);
        end_parts(out);
    }
    lac_buffer_puts(out, "# How it was measured\n\n");
    begin_parts(out);
    lac_buffer_printf(out, "table trace=%s of=settings\n", trace);
    end_parts(out);
}

void lac_draft_bookmark(struct lac_buffer *out, const char *trace, const struct lac_model *model,
                        const struct lac_bookmark *bookmark)
{
    const int64_t duration_ns = model->info.duration_ns;
    /* a single time is seen with what is around it */
    const int64_t around_ns = bookmark->dur_ns == 0 ? duration_ns / 100 + 1 : 0;
    const int64_t t0_ns = bookmark->start_ns - around_ns;
    const int64_t t1_ns = bookmark->start_ns + bookmark->dur_ns + around_ns;

    if (bookmark->start_ns >= duration_ns) {
        return;
    }
    if (bookmark->note[0] != '\0') {
        plain(out, bookmark->note);
        lac_buffer_puts(out, "\n\n");
    }
    begin_parts(out);
    lac_buffer_printf(out, "window trace=%s from=%" PRId64 " to=%" PRId64 "\n", trace,
                      t0_ns > 0 ? t0_ns : 0, t1_ns < duration_ns ? t1_ns : duration_ns);
    end_parts(out);
}

void lac_draft_compare(struct lac_buffer *out, const char *const traces[2],
                       const struct lac_compare_side sides[2])
{
    struct lac_comparison *comparison = NULL;

    if (lac_compare(&sides[0], &sides[1], &comparison) != LAC_OK) {
        out->status = LAC_ERR_NOMEM;
        return;
    }
    sentence(out, comparison->headline);
    lac_buffer_puts(out, "# Before and after\n\n");
    begin_parts(out);
    lac_buffer_printf(out, "compare a=%s b=%s\n", traces[0], traces[1]);
    end_parts(out);
    if (sides[0].analysis->finding_count > 0) {
        lac_buffer_puts(out, "# What was found before\n\n");
        begin_parts(out);
        lac_buffer_printf(out, "finding trace=%s id=%s\n", traces[0],
                          sides[0].analysis->findings[0].id);
        end_parts(out);
    }
    if (sides[1].analysis->finding_count > 0) {
        lac_buffer_puts(out, "# What is left\n\n");
        begin_parts(out);
        lac_buffer_printf(out, "finding trace=%s id=%s\n", traces[1],
                          sides[1].analysis->findings[0].id);
        end_parts(out);
    }
    lac_comparison_destroy(comparison);
}

void lac_draft_series(struct lac_buffer *out, const struct lac_trace_row *rows, unsigned count)
{
    static const char *const measures[] = {"step", "rate"};

    lac_buffer_puts(out, "# The runs\n\n");
    begin_parts(out);
    for (unsigned m = 0; m < 2; m++) {
        lac_buffer_puts(out, "series traces=");
        for (unsigned i = 0; i < count; i++) {
            lac_buffer_printf(out, "%s%s", i > 0 ? "," : "", rows[i].id);
        }
        lac_buffer_printf(out, " of=%s\n", measures[m]);
    }
    end_parts(out);
    for (unsigned i = 0; i < count; i++) {
        lac_buffer_puts(out, "# ");
        plain(out, rows[i].name);
        lac_buffer_puts(out, "\n\n");
        if (rows[i].summary.present) {
            sentence(out, rows[i].summary.text);
        }
        if (i > 0) {
            begin_parts(out);
            lac_buffer_printf(out, "compare a=%s b=%s\n", rows[i - 1].id, rows[i].id);
            end_parts(out);
        }
    }
}
