/* Pictures that stand alone: a stretch of the timeline or a flame graph as an SVG file, with the
 * styles of the reports inside. */

#include "server/export/picture.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/export/report_private.h"
#include "server/export/step_spans.h"
#include "server/json/flame_json.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const char colors[] =
    ":root{color-scheme:light dark;--ground:#fff;--ink:#1a1c1f;--muted:#5d636b;--line:#e0ded8;"
    "--sunken:#f5f4f0;--bar:#c5cad0;--bar2:#aab1b9;--strong:#3c434b;"
    "--c-data_wait:#d0430c;--c-sync:#7048d8;--c-launch:#f0b400;--c-copy_wait:#1971c2;"
    "--c-allocator:#c2255c;--c-module_load:#8f5a33;--c-comm:#087f6f;--c-dependency:#4c6ea8;"
    "--c-host:#4f7d0c;--c-profiler:#6d6a3f;--c-unattributed:#868c95;--on:#fff}"
    "@media screen and (prefers-color-scheme:dark){:root{--ground:#131518;--ink:#eceded;"
    "--muted:#a4abb3;--line:#2f343a;--sunken:#1d2125;--bar:#4b535c;--bar2:#666f79;--strong:#c9ced4;"
    "--c-data_wait:#ff8a4c;--c-sync:#ab8fff;--c-launch:#ffd23f;--c-copy_wait:#62b4ff;"
    "--c-allocator:#ff7aa8;--c-module_load:#d9a074;--c-comm:#3fd0b6;--c-dependency:#93b4ea;"
    "--c-host:#a3d65c;--c-profiler:#c4c08a;--c-unattributed:#9aa1ab;--on:#14161a}}";

static const char shapes[] =
    "svg{font:11.5px ui-sans-serif,system-ui,sans-serif}svg text{fill:var(--ink)}"
    "svg .note{fill:var(--muted)}svg .name{font-size:12px}.bar{fill:var(--bar2)}"
    ".mark{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 3}.tick{stroke:var(--line)}"
    ".step{fill:var(--sunken);stroke:var(--bar)}.here{fill:var(--ink)}.busy{fill:var(--bar2)}"
    ".copy{fill:var(--strong)}.host,.frame{fill:var(--bar)}.leaf{fill:var(--bar2)}"
    ".worker{fill:var(--bar);stroke:var(--ground)}";

void lac_svg_styles(struct lac_buffer *out)
{
    lac_buffer_puts(out, colors);
    lac_buffer_puts(out, shapes);
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        const char *name = lac_cause_name((enum lac_cause)cause);
        lac_buffer_printf(
            out, ".c-%s{fill:var(--c-%s);background:var(--c-%s)}.c-%s+text{fill:var(--on)}", name,
            name, name, name);
    }
    /* yellow takes dark letters in either theme */
    lac_buffer_puts(out, ".c-launch{color:#14161a}svg .c-launch+text{fill:#14161a}");
}

/** The file: a margin around the drawing, and what is seen below it. */
static void put_file(struct lac_buffer *out, const struct lac_svg *svg)
{
    enum { MARGIN = 12, CAPTION_HEIGHT = 22 };
    const int width = LAC_SVG_WIDTH + 2 * MARGIN;
    const double height = svg->height + 2 * MARGIN + CAPTION_HEIGHT;
    lac_buffer_printf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"%s\" "
                      "width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<style>",
                      svg->label, width, height, width, height);
    lac_svg_styles(out);
    lac_buffer_printf(
        out,
        "</style>\n<rect width=\"%d\" height=\"%.0f\" style=\"fill:var(--ground)\"/>\n"
        "<g transform=\"translate(%d %d)\">",
        width, height, MARGIN, MARGIN);
    lac_buffer_add(out, svg->body.bytes != NULL ? svg->body.bytes : "", svg->body.size_bytes);
    lac_svg_text(out, 0.0, svg->height + CAPTION_HEIGHT - 4, "note", svg->caption);
    lac_buffer_puts(out, "</g>\n</svg>\n");
}

/** Write the drawing, or say why there is none. */
static enum lac_status finish(struct lac_buffer *out, struct lac_svg *svg, bool has_any,
                              const char *why_not, struct lac_error *reterr)
{
    enum lac_status status = svg->body.status;
    if (status != LAC_OK) {
        status = lac_fail(reterr, status, 0, "no memory for this picture");
    } else if (!has_any) {
        status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "%s", why_not);
    } else {
        put_file(out, svg);
    }
    lac_svg_done(svg);
    return status;
}

enum lac_status lac_picture_view(const struct lac_analysis *analysis, int64_t duration_ns,
                                 int64_t t0_ns, int64_t t1_ns, struct lac_view *ret_view,
                                 struct lac_error *reterr)
{
    assert(analysis != NULL && ret_view != NULL);
    const struct lac_view *first = NULL;
    for (int i = 0; i < LAC_VIEW_COUNT && first == NULL; i++) {
        first = analysis->views[i].is_known ? &analysis->views[i] : NULL;
    }
    if (t0_ns < 0 && t1_ns < 0 && first != NULL) {
        *ret_view = *first;
        return LAC_OK;
    }
    t0_ns = t0_ns < 0 ? 0 : t0_ns;
    t1_ns = t1_ns < 0 || t1_ns > duration_ns ? duration_ns : t1_ns;
    if (t1_ns <= t0_ns) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "nothing lies from there to there: the trace is %s long",
                        lac_format_ns(duration_ns).text);
    }
    *ret_view =
        (struct lac_view){.is_known = true, .t0_ns = t0_ns, .t1_ns = t1_ns, .thread = LAC_NONE};
    if (first != NULL) {
        ret_view->thread = first->thread;
        ret_view->has_mark =
            first->has_mark && first->mark_ns < t1_ns && first->mark_end_ns > t0_ns;
        ret_view->mark_ns = first->mark_ns;
        ret_view->mark_end_ns = first->mark_end_ns;
    }
    return LAC_OK;
}

enum lac_status lac_picture_timeline(struct lac_buffer *out, const struct lac_report_source *source,
                                     const struct lac_view *view, const struct lac_model *model,
                                     struct lac_error *reterr)
{
    assert(out != NULL && source != NULL && view != NULL && model != NULL);
    struct lac_svg svg = {0};
    const bool has_any = lac_svg_window(&svg, source, view, model);
    return finish(out, &svg, has_any, "there is no GPU work on a timeline to draw", reterr);
}

enum lac_status lac_picture_flame(struct lac_buffer *out, const struct lac_report_source *source,
                                  const struct lac_flame *flame, enum lac_flame_metric metric,
                                  struct lac_error *reterr)
{
    assert(out != NULL && source != NULL && flame != NULL);
    struct lac_svg svg = {0};
    const bool has_any = lac_svg_frames(&svg, source, flame, metric);
    return finish(out, &svg, has_any, "the trace has nothing of what this flame graph shows",
                  reterr);
}

void lac_picture_flame_options(enum lac_flame_metric metric, int64_t t0_ns, int64_t t1_ns,
                               struct lac_flame_options *ret_options)
{
    assert(ret_options != NULL);
    lac_flame_report_options(ret_options);
    ret_options->metric = metric;
    if (t0_ns >= 0 || t1_ns >= 0) {
        ret_options->t0_ns = t0_ns < 0 ? 0 : t0_ns;
        ret_options->t1_ns = t1_ns < 0 ? LAC_TIME_MAX_NS : t1_ns;
    }
}

enum lac_status lac_picture_make_flame(const struct lac_model *model, enum lac_flame_metric metric,
                                       int64_t t0_ns, int64_t t1_ns,
                                       const struct lac_step_spans *steps,
                                       struct lac_flame **ret_flame)
{
    struct lac_flame_options options;
    lac_picture_flame_options(metric, t0_ns, t1_ns, &options);
    if (steps != NULL) {
        lac_step_spans_use(steps, &options);
    }
    const enum lac_status status = lac_flame_create(model, &options, ret_flame);
    if (status == LAC_OK && steps != NULL && steps->step_count > 0) {
        (*ret_flame)->step_count = steps->step_count;
    }
    return status;
}
