/* Pictures of a report, drawn as SVG: needs and the flame graph (report_timeline.c: the timeline
 * around a gap). Colors are classes of the report's style sheet, so that light, dark and print
 * differ. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/utf8.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/report_private.h"
#include "server/json/flame_json.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = LAC_SVG_WIDTH, LABEL_WIDTH = LAC_SVG_LABEL_WIDTH, ROW_HEIGHT = LAC_SVG_ROW_HEIGHT };

void lac_svg_done(struct lac_svg *svg)
{
    lac_buffer_done(&svg->body);
}

void lac_svg_put(struct lac_buffer *out, const struct lac_svg *svg)
{
    lac_buffer_printf(out, "<svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %.0f\">",
                      svg->label, WIDTH, svg->height);
    lac_buffer_add(out, svg->body.bytes != NULL ? svg->body.bytes : "", svg->body.size_bytes);
    lac_buffer_puts(out, "</svg>");
    if (svg->body.status != LAC_OK) {
        out->status = svg->body.status;
    }
}

void lac_svg_text(struct lac_buffer *out, double x, double y, const char *css_class,
                  const char *text)
{
    lac_buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, css_class);
    lac_html_escape(out, text, strlen(text));
    lac_buffer_puts(out, "</text>");
}

/** A text inside a box, cut to fit; nothing when there is no room for a few letters. */
void lac_svg_text_inside(struct lac_buffer *out, double x, double y, double width,
                         const char *css_class, const char *text)
{
    size_t room = width > 12.0 ? (size_t)((width - 6.0) / 6.6) : 0;
    size_t length = strlen(text);
    char cut[160];
    if (room < 5 && room < length) {
        return;
    }
    if (length > room || length >= sizeof(cut)) {
        const size_t keep = lac_utf8_cut(text, length, room < sizeof(cut) ? room : sizeof(cut) - 4);

        (void)snprintf(cut, sizeof(cut), "%.*s", (int)keep, text);
        text = cut;
    }
    lac_svg_text(out, x + 3.0, y, css_class, text);
}

/* -- needs ---------------------------------------------------------------------------------- */

void lac_svg_needs(struct lac_buffer *out, const struct lac_report_source *source)
{
    const struct lac_analysis *analysis = source->analysis;
    struct lac_report_need needs[LAC_REPORT_NEEDS_MAX];
    uint32_t count = lac_report_needs(analysis, needs);
    if (count == 0) {
        return;
    }
    int64_t scale_ns = analysis->step_mean_ns;
    for (uint32_t i = 0; i < count; i++) {
        scale_ns = needs[i].ns > scale_ns ? needs[i].ns : scale_ns;
    }
    scale_ns = scale_ns > 0 ? scale_ns : 1;
    const double bars = WIDTH - LABEL_WIDTH - 260;
    const double step_x = LABEL_WIDTH + bars * (double)analysis->step_mean_ns / (double)scale_ns;
    const int height = (int)count * 26 + 22;
    lac_buffer_printf(
        out,
        "<svg role=\"img\" aria-label=\"time each part needs per step\" viewBox=\"0 0 %d %d\">",
        WIDTH, height);
    for (uint32_t i = 0; i < count; i++) {
        double y = 20.0 + 26.0 * (double)i;
        double width = bars * (double)needs[i].ns / (double)scale_ns;
        char note[128];
        lac_svg_text(out, 0.0, y + 13.0, "name", needs[i].name);
        lac_buffer_printf(out,
                          "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"17\" class=\"bar\"/>",
                          LABEL_WIDTH, y, width > 1.0 ? width : 1.0);
        (void)snprintf(note, sizeof(note), "%s%s%s", lac_format_ns(needs[i].ns).text,
                       needs[i].note[0] != '\0' ? " \u00b7 " : "", needs[i].note);
        lac_svg_text(out, LABEL_WIDTH + bars + 14.0, y + 13.0, "note", note);
    }
    lac_buffer_printf(out,
                      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"14\" y2=\"%d\" class=\"mark\"/>"
                      "<text x=\"%.1f\" y=\"10\" class=\"note\" text-anchor=\"end\">the step: ",
                      step_x, step_x, height, step_x);
    lac_buffer_puts(out, lac_format_ns(analysis->step_mean_ns).text);
    lac_buffer_puts(out, "</text></svg>");
}

/* -- flame graph ----------------------------------------------------------------------------- */

enum { FLAME_DEPTH_MAX = 14 };

struct flame_drawing {
    struct lac_buffer *out;
    const struct lac_report_source *source;
    const struct lac_flame *flame;
    bool is_bytes;    /**< what its values are */
    const char *root; /**< name of the root */
    double scale;     /**< px a ns */
    unsigned depth_shown;
};

static const char *frame_name(struct flame_drawing *d, const struct lac_flame_node *node,
                              char *room, size_t capacity_bytes)
{
    const struct lac_model *model = d->source->model;
    if (node->name == LAC_NONE) {
        (void)snprintf(room, capacity_bytes, "%llu more", (unsigned long long)node->count);
        return room;
    }
    const char *name = lac_model_str(model, node->name);
    if (node->kind == LAC_SLICE_KERNEL) {
        (void)lac_kernel_short_name(name, strlen(name), room, capacity_bytes);
        return lac_redact(d->source->redactor, room);
    }
    bool is_given = lac_redact_is_given(node->kind, name);
    return is_given ? lac_redact_given(d->source->redactor, name, "range")
                    : lac_redact(d->source->redactor, name);
}

/** A length of time, bytes, or what a profile counts. */
static const char *amount_of(const struct flame_drawing *d, int64_t value_ns, char *room,
                             size_t capacity_bytes)
{
    const struct lac_model *model = d->source->model;
    if (d->is_bytes) {
        (void)snprintf(room, capacity_bytes, "%s", lac_format_bytes(value_ns).text);
    } else if (model->info.weight_unit != 0 && model->info.weight_scale > 0) {
        (void)snprintf(room, capacity_bytes, "%.6g %.32s",
                       (double)value_ns / (double)model->info.weight_scale,
                       lac_model_str(model, model->info.weight_unit));
    } else {
        (void)snprintf(room, capacity_bytes, "%s", lac_format_ns(value_ns).text);
    }
    return room;
}

static void draw_frame(struct flame_drawing *d, uint32_t index, double x, unsigned depth)
{
    const struct lac_flame_node *node = &d->flame->nodes[index];
    double width = (double)node->value_ns * d->scale;
    char room[160];
    if (width < 1.0 || depth >= FLAME_DEPTH_MAX || d->out->status != LAC_OK) {
        return;
    }
    d->depth_shown = depth + 1 > d->depth_shown ? depth + 1 : d->depth_shown;
    const char *name = index == 0 ? d->root : frame_name(d, node, room, sizeof(room));
    bool is_work = node->kind == LAC_SLICE_KERNEL || node->kind == LAC_SLICE_COPY ||
                   node->kind == LAC_SLICE_MEMSET;
    double y = (double)(depth * ROW_HEIGHT);
    lac_buffer_printf(d->out,
                      "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>"
                      "<title>",
                      x, y, width - 0.6 > 0.5 ? width - 0.6 : 0.5, ROW_HEIGHT - 1,
                      is_work ? "leaf" : "frame");
    lac_html_escape(d->out, name, strlen(name));
    int64_t per = d->flame->step_count > 0 ? d->flame->step_count : 1;
    char amount[64];
    lac_html_escape(d->out, ": ", 2);
    const char *said = amount_of(d, node->value_ns / per, amount, sizeof(amount));
    lac_html_escape(d->out, said, strlen(said));
    lac_buffer_printf(d->out, "%s, %.1f %%</title>", d->flame->step_count > 0 ? " per step" : "",
                      100.0 * (double)node->value_ns / (double)d->flame->nodes[0].value_ns);
    lac_svg_text_inside(d->out, x, y + 12.5, width, "in", name);
    lac_buffer_puts(d->out, "</g>");
    double child_x = x;
    for (uint32_t c = 0; c < node->child_count; c++) {
        draw_frame(d, node->first_child + c, child_x, depth + 1);
        child_x += (double)d->flame->nodes[node->first_child + c].value_ns * d->scale;
    }
}

bool lac_svg_frames(struct lac_svg *svg, const struct lac_report_source *source,
                    const struct lac_flame *flame, enum lac_flame_metric metric)
{
    static const char *const roots[] = {"GPU time", "GPU waiting", "time on host threads",
                                        "profile",  "copies",      "allocated GPU memory"};
    static const char *const captions[] = {
        "GPU time by what launched it",
        "Time that the GPU waits, by cause and what the host did",
        "Time on host threads",
        "Profile",
        "Time of copies by what launched them",
        "GPU memory by what allocated it"};
    const struct lac_model *model = source->model;
    const bool is_counted = model->info.weight_unit != 0 && model->info.weight_scale > 0;
    if (flame->node_count <= 1 || flame->nodes[0].value_ns <= 0) {
        return false;
    }
    struct flame_drawing d = {.out = &svg->body,
                              .source = source,
                              .flame = flame,
                              .is_bytes = metric == LAC_FLAME_MEMORY,
                              .root = is_counted ? "all" : roots[metric],
                              .scale = (double)WIDTH / (double)flame->nodes[0].value_ns};
    draw_frame(&d, 0, 0.0, 0);
    svg->label = "flame graph";
    svg->height = d.depth_shown * ROW_HEIGHT;
    int64_t per = flame->step_count > 0 ? flame->step_count : 1;
    char total[64];
    (void)snprintf(svg->caption, sizeof(svg->caption), "%s: %s%s%s.",
                   is_counted ? "What the profile counts" : captions[metric],
                   amount_of(&d, flame->nodes[0].value_ns / per, total, sizeof(total)),
                   flame->step_count > 0 ? " per step" : " in total",
                   !lac_flame_is_of_threads(metric) && source->analysis->device_count > 1
                       ? ", sum of all GPUs"
                       : "");
    return true;
}

bool lac_svg_flame(struct lac_svg *svg, const struct lac_report_source *source)
{
    struct lac_flame_options options;
    struct lac_flame *made = NULL;
    lac_flame_report_options(&options);
    if (source->flame == NULL && lac_flame_create(source->model, &options, &made) != LAC_OK) {
        svg->body.status = LAC_ERR_NOMEM;
        return false;
    }
    /* of the whole trace, also of what lies outside of the steps: by their number it would be another
     * amount per step than the verdict's */
    struct lac_flame whole = *(source->flame != NULL ? source->flame : made);
    whole.step_count = 0;
    bool has_any = lac_svg_frames(svg, source, &whole, options.metric);
    lac_flame_destroy(made);
    return has_any;
}
