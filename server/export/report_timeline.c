/* The timeline around what a finding speaks of, drawn as SVG. Colors are classes of the report's
 * style sheet, as in report_svg.c. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/report_private.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = LAC_SVG_WIDTH, LABEL_WIDTH = LAC_SVG_LABEL_WIDTH, ROW_HEIGHT = LAC_SVG_ROW_HEIGHT };
enum { WORKERS_MAX = 8, LANES_MAX = 3, STREAMS_MAX = 24 };

struct drawing {
    struct lac_buffer *out;
    const struct lac_report_source *source;
    const struct lac_model *model; /**< the slices from t0_ns to t1_ns, at least */
    int64_t t0_ns, t1_ns;
    bool has_mark;                /**< the finding's evidence is in it */
    int64_t mark_ns, mark_end_ns; /**< from where to where */
    double y;
};

static double x_of(const struct drawing *d, int64_t t_ns)
{
    t_ns = t_ns < d->t0_ns ? d->t0_ns : t_ns > d->t1_ns ? d->t1_ns : t_ns;
    return LABEL_WIDTH + (double)(WIDTH - LABEL_WIDTH) * (double)(t_ns - d->t0_ns) /
                             (double)(d->t1_ns - d->t0_ns);
}

static void box(struct drawing *d, int64_t start_ns, int64_t end_ns, double y,
                const char *css_class, const char *text)
{
    double x = x_of(d, start_ns);
    double width = x_of(d, end_ns) - x;
    lac_buffer_printf(d->out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>", x,
                      y, width > 0.6 ? width : 0.6, ROW_HEIGHT - 3, css_class);
    lac_svg_text_inside(d->out, x, y + 11.5, width, "in", text);
}

static void begin_row(struct drawing *d, const char *label)
{
    char cut[24];
    (void)snprintf(cut, sizeof(cut), "%.18s", label);
    lac_svg_text(d->out, 0.0, d->y + 11.5, "name", cut);
}

/** Boxes that would be thinner than a pixel are merged with their like. */
struct run_of {
    int64_t start_ns, end_ns;
    const char *css_class;
};

static void flush_run(struct drawing *d, struct run_of *run)
{
    if (run->css_class != NULL) {
        box(d, run->start_ns, run->end_ns, d->y, run->css_class, "");
    }
    run->css_class = NULL;
}

static void add_to_run(struct drawing *d, struct run_of *run, int64_t start_ns, int64_t end_ns,
                       const char *css_class)
{
    int64_t pixel_ns = (d->t1_ns - d->t0_ns) / (WIDTH - LABEL_WIDTH);
    if (run->css_class == css_class && start_ns - run->end_ns <= pixel_ns) {
        run->end_ns = end_ns > run->end_ns ? end_ns : run->end_ns;
        return;
    }
    flush_run(d, run);
    *run = (struct run_of){start_ns, end_ns, css_class};
}

static bool overlaps(const struct drawing *d, uint64_t slice)
{
    const struct lac_slices *slices = &d->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    return start_ns < d->t1_ns && start_ns + slices->dur_ns[slice] > d->t0_ns;
}

/** Whether a box is too thin to be seen beside what was drawn up to `*shown_x`, which it moves. */
static bool is_lost(const struct drawing *d, int64_t start_ns, int64_t end_ns, double *shown_x)
{
    const double end_x = x_of(d, end_ns);
    if (end_x - x_of(d, start_ns) < 0.4 && end_x - *shown_x < 0.4) {
        return true;
    }
    *shown_x = end_x;
    return false;
}

static void draw_steps(struct drawing *d)
{
    const struct lac_analysis *analysis = d->source->analysis;
    bool has_any = false;
    double shown_x = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t end_ns = step->start_ns + step->dur_ns;
        if (step->start_ns >= d->t1_ns || end_ns <= d->t0_ns ||
            is_lost(d, step->start_ns, end_ns, &shown_x)) {
            continue;
        }
        char text[64];
        (void)snprintf(text, sizeof(text), "step %u \u00b7 %s", (unsigned)s + 1,
                       lac_format_ns(step->dur_ns).text);
        box(d, step->start_ns, end_ns, d->y, "step", text);
        has_any = true;
    }
    if (has_any) {
        begin_row(d, "steps");
        d->y += ROW_HEIGHT;
    }
}

static void draw_device(struct drawing *d, const struct lac_device_facts *device)
{
    const struct lac_model *model = d->model;
    unsigned shown = 0;
    for (uint32_t t = 0; t < model->recorded_track_count && shown < STREAMS_MAX; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_stream = track->kind == LAC_TRACK_STREAM && track->device == device->id;
        struct run_of run = {0};
        bool has_any = false;
        for (uint64_t s = track->first; is_stream && s < track->first + track->count; s++) {
            uint8_t kind = model->slices.kind[s];
            bool is_work =
                kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
            if (is_work && overlaps(d, s)) {
                int64_t start_ns = model->slices.start_ns[s];
                add_to_run(d, &run, start_ns, start_ns + model->slices.dur_ns[s],
                           kind == LAC_SLICE_KERNEL ? "busy" : "copy");
                has_any = true;
            }
        }
        flush_run(d, &run);
        if (has_any) {
            char label[64];
            if (track->tid >= 0) {
                (void)snprintf(label, sizeof(label), "GPU %lld, stream %lld", (long long)device->id,
                               (long long)track->tid);
            } else {
                (void)snprintf(label, sizeof(label), "GPU %lld", (long long)device->id);
            }
            shown++;
            begin_row(d, label);
            d->y += ROW_HEIGHT;
        }
    }
}

static enum lac_cause cause_named(const char *name)
{
    int cause = 0;
    while (cause + 1 < LAC_CAUSE_COUNT_ &&
           strcmp(lac_cause_name((enum lac_cause)cause), name) != 0) {
        cause++;
    }
    return (enum lac_cause)cause;
}

/** Why the device was idle: the pieces of its gaps are a track. */
static void draw_idle(struct drawing *d, const struct lac_device_facts *device)
{
    const struct lac_model *model = d->model;
    bool has_any = false;
    for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_it = track->kind == LAC_TRACK_GAPS && track->device == device->id;
        for (uint64_t s = track->first; is_it && s < track->first + track->count; s++) {
            int64_t start_ns = model->slices.start_ns[s];
            int64_t end_ns = start_ns + model->slices.dur_ns[s];
            enum lac_cause cause = cause_named(lac_model_str(model, model->slices.name[s]));
            if (start_ns >= d->t1_ns || end_ns <= d->t0_ns ||
                x_of(d, end_ns) - x_of(d, start_ns) < 0.4) {
                continue;
            }
            char css_class[40];
            char text[96];
            (void)snprintf(css_class, sizeof(css_class), "c-%s", lac_cause_name(cause));
            (void)snprintf(text, sizeof(text), "%c \u00b7 %s %s", lac_cause_letter(cause),
                           lac_format_ns(end_ns - start_ns).text, lac_waits_for(cause));
            box(d, start_ns, end_ns, d->y, css_class, text);
            has_any = true;
        }
    }
    if (has_any) {
        lac_buffer_puts(d->out, "<g>"); /* no sibling of a box: those have letters of their own */
        begin_row(d, "  why idle");
        lac_buffer_puts(d->out, "</g>");
        d->y += ROW_HEIGHT;
    }
}

/** Name of a host slice for a picture. */
static const char *host_name(struct drawing *d, uint64_t slice)
{
    const struct lac_model *model = d->model;
    const char *name = lac_model_str(model, model->slices.name[slice]);
    uint8_t kind = model->slices.kind[slice];
    bool is_given = lac_redact_is_given(kind, name);
    return is_given ? lac_redact_given(d->source->redactor, name, "range")
                    : lac_redact(d->source->redactor, name);
}

static void draw_thread(struct drawing *d, uint32_t t, const char *label)
{
    const struct lac_model *model = d->model;
    const struct lac_track *track = &model->tracks[t];
    uint32_t lanes = 0;
    struct run_of runs[LANES_MAX] = {{0}};
    double top = d->y;
    for (uint64_t s = track->first; s < track->first + track->count; s++) {
        uint16_t lane = model->slices.lane[s];
        if (lane >= LANES_MAX || !overlaps(d, s)) {
            continue;
        }
        int64_t start_ns = model->slices.start_ns[s];
        int64_t end_ns = start_ns + model->slices.dur_ns[s];
        lanes = lane + 1U > lanes ? lane + 1U : lanes;
        d->y = top + (double)(lane * ROW_HEIGHT);
        if (x_of(d, end_ns) - x_of(d, start_ns) >= 3.0) {
            flush_run(d, &runs[lane]);
            box(d, start_ns, end_ns, d->y, "host", host_name(d, s));
        } else {
            add_to_run(d, &runs[lane], start_ns, end_ns, "host");
        }
    }
    for (uint32_t lane = 0; lane < LANES_MAX; lane++) {
        d->y = top + (double)(lane * ROW_HEIGHT);
        flush_run(d, &runs[lane]);
    }
    d->y = top;
    begin_row(d, label);
    d->y = top + (double)((lanes > 0 ? lanes : 1) * ROW_HEIGHT);
}

static void draw_worker(struct drawing *d, uint64_t slice)
{
    const struct lac_model *model = d->model;
    const struct lac_slices *slices = &model->slices;
    uint32_t detail = slices->detail[slice];
    char text[64] = "a batch";
    if (detail != LAC_NONE && detail < model->loader_info_count &&
        model->loader_infos[detail].batch >= 0) {
        (void)snprintf(text, sizeof(text), "batch %lld \u00b7 %s",
                       (long long)model->loader_infos[detail].batch,
                       lac_format_ns(slices->dur_ns[slice]).text);
    }
    box(d, slices->start_ns[slice], slices->start_ns[slice] + slices->dur_ns[slice], d->y, "worker",
        text);
}

/** The worker's own number, when it was recorded. */
static int32_t worker_of(const struct lac_model *model, uint64_t slice, int32_t otherwise)
{
    uint32_t detail = model->slices.detail[slice];
    bool is_recorded = detail < model->loader_info_count && model->loader_infos[detail].worker >= 0;
    return is_recorded ? model->loader_infos[detail].worker : otherwise;
}

static void draw_workers(struct drawing *d, uint32_t main_track)
{
    const struct lac_model *model = d->model;
    uint32_t fetch = lac_strings_find(&model->strings, "loader.fetch", 12);
    unsigned shown = 0;
    for (uint32_t t = 0; fetch != 0 && t < model->recorded_track_count && shown < WORKERS_MAX;
         t++) {
        const struct lac_track *track = &model->tracks[t];
        bool has_any = false;
        int32_t number = (int32_t)shown;
        double shown_x = 0.0;
        if (track->kind != LAC_TRACK_THREAD || t == main_track || model->slices.detail == NULL) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            if (model->slices.name[s] == fetch && overlaps(d, s)) {
                if (!is_lost(d, model->slices.start_ns[s],
                             model->slices.start_ns[s] + model->slices.dur_ns[s], &shown_x)) {
                    draw_worker(d, s);
                }
                number = worker_of(model, s, number);
                has_any = true;
            }
        }
        if (has_any) {
            char label[32];
            (void)snprintf(label, sizeof(label), "worker %d", (int)number);
            shown++;
            begin_row(d, label);
            d->y += ROW_HEIGHT;
        }
    }
}

static void draw_axis(struct drawing *d)
{
    static const double nice[] = {1.0, 2.0, 5.0};
    double span_ns = (double)(d->t1_ns - d->t0_ns);
    double tick_ns = 1.0;
    for (int i = 0; span_ns / tick_ns > 8.0 && i < 60; i++) {
        const int decade = i / 3;
        tick_ns = pow(10.0, decade) * nice[i % 3];
    }
    for (int i = 0; i * tick_ns < span_ns; i++) {
        double t_ns = i * tick_ns;
        double x = x_of(d, d->t0_ns + (int64_t)t_ns);
        lac_buffer_printf(d->out,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"14\" y2=\"%.1f\" class=\"tick\"/>", x,
                          x, d->y);
        if (x < WIDTH - 48.0) {
            lac_svg_text(d->out, x + 2.0, 10.0, "note",
                         t_ns > 0.0 ? lac_format_ns((int64_t)t_ns).text : "0");
        }
    }
}

/** A bracket under the axis: what the finding speaks of. */
static void draw_mark(struct drawing *d)
{
    if (d->has_mark) {
        double x = x_of(d, d->mark_ns);
        double width = x_of(d, d->mark_end_ns) - x;
        lac_buffer_printf(d->out,
                          "<rect x=\"%.1f\" y=\"14\" width=\"%.1f\" height=\"3\" class=\"here\"/>",
                          x, width > 3.0 ? width : 3.0);
    }
}

bool lac_svg_window(struct lac_svg *svg, const struct lac_report_source *source,
                    const struct lac_view *view, const struct lac_model *model)
{
    const struct lac_analysis *analysis = source->analysis;
    struct lac_buffer rows = {0};
    if (!view->is_known || view->t1_ns <= view->t0_ns || analysis->main_device == LAC_NONE) {
        return false;
    }
    struct drawing d = {.out = &rows,
                        .source = source,
                        .model = model,
                        .t0_ns = view->t0_ns,
                        .t1_ns = view->t1_ns,
                        .has_mark = view->has_mark,
                        .mark_ns = view->mark_ns,
                        .mark_end_ns = view->mark_end_ns,
                        .y = 18.0};
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    draw_steps(&d);
    draw_device(&d, device);
    draw_idle(&d, device);
    if (view->thread != LAC_NONE) {
        draw_thread(&d, view->thread, "host thread");
    }
    draw_workers(&d, view->thread);
    svg->label = "timeline";
    svg->height = d.y + 2.0;
    d.out = &svg->body;
    draw_axis(&d);
    draw_mark(&d);
    lac_buffer_add(&svg->body, rows.bytes != NULL ? rows.bytes : "", rows.size_bytes);
    if (rows.status != LAC_OK) {
        svg->body.status = rows.status;
    }
    lac_buffer_done(&rows);
    (void)snprintf(svg->caption, sizeof(svg->caption),
                   "%s of the trace, from %s on. Gray is work, color is waiting%s.",
                   lac_format_ns(d.t1_ns - d.t0_ns).text, lac_format_ns(d.t0_ns).text,
                   d.has_mark ? "; the bar on top marks the evidence" : "");
    return true;
}

bool lac_svg_timeline(struct lac_svg *svg, const struct lac_report_source *source, uint32_t index)
{
    const struct lac_model *model = source->views[index];
    return lac_svg_window(svg, source, &source->analysis->views[index],
                          model != NULL ? model : source->model);
}
