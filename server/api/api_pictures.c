/* Pictures of a trace as SVG and PNG: a stretch of its timeline, a flame graph. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/kept_facts.h"
#include "server/base/buffer.h"
#include "server/export/picture.h"
#include "server/export/raster/svg_png.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/flame_json.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Parameters t0 and t1; negative: not given. @return false: the response says why */
static bool read_window(const struct lac_request *request, struct lac_response *response,
                        int64_t *ret_t0_ns, int64_t *ret_t1_ns)
{
    return lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, -1, ret_t0_ns) &&
           lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, -1, ret_t1_ns);
}

static void answer_status(struct lac_response *response, enum lac_status status, bool is_png,
                          const struct lac_error *error)
{
    if (status == LAC_OK) {
        response->mime = is_png ? "image/png" : "image/svg+xml";
        response->may_gzip = !is_png;
        response->policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    } else if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this picture");
    } else if (status == LAC_ERR_MISUSE) {
        lac_response_error(response, 400, "bad_request", "%s", error->message);
    } else {
        lac_api_fail(response, error);
    }
}

static enum lac_status draw_window(struct lac_trace_file *file,
                                   const struct lac_report_source *source, int64_t t0_ns,
                                   int64_t t1_ns, struct lac_buffer *out, struct lac_error *reterr)
{
    struct lac_view view;
    struct lac_model *stretch = NULL;
    enum lac_status status = lac_picture_view(source->analysis, source->model->info.duration_ns,
                                              t0_ns, t1_ns, &view, reterr);
    if (status == LAC_OK) {
        status = lac_trace_file_stretch(file, view.t0_ns, view.t1_ns, &stretch, reterr);
    }
    if (status == LAC_OK) {
        status = lac_picture_timeline(out, source, &view, stretch, reterr);
    }
    lac_trace_stretch_destroy(stretch);
    return status;
}

static enum lac_status draw_flame(struct lac_trace_file *file,
                                  const struct lac_report_source *source,
                                  struct lac_api_flame *asked, struct lac_buffer *out,
                                  struct lac_error *reterr)
{
    struct lac_flame_options usual;
    struct lac_flame *flame = NULL;
    lac_flame_report_options(&usual);
    asked->options.prune_fraction = usual.prune_fraction;
    asked->options.node_count_max = usual.node_count_max;
    enum lac_status status = lac_api_flame_make(file, asked, &flame, reterr);
    if (status == LAC_OK) {
        status = lac_picture_flame(out, source, flame, asked->options.metric, reterr);
    }
    lac_flame_destroy(flame);
    return status;
}

/** The SVG painted, in its place. @param theme 1: dark */
static enum lac_status paint(struct lac_response *response, int theme, struct lac_error *reterr)
{
    struct lac_buffer png = {0};
    const enum lac_status status =
        lac_png_of_svg(response->body.bytes, response->body.size_bytes, theme == 1, &png, reterr);
    lac_buffer_done(&response->body);
    response->body = png;
    return status;
}

/** @param flame what is asked of a flame graph; NULL: the timeline */
static void answer(struct lac_trace_file *file, const struct lac_request *request,
                   struct lac_response *response, struct lac_api_flame *flame)
{
    static const char *const themes[] = {"light", "dark", NULL};
    const char *ending = strrchr(request->target->path, '.');
    const bool is_png = ending != NULL && strcmp(ending, ".png") == 0;
    const int theme = is_png ? lac_api_choice(request, response, "theme", themes, 0) : 0;
    struct lac_kept_facts facts = {.analysis = NULL};
    struct lac_redactor redactor = {0};
    struct lac_error error = {0};
    int64_t t0_ns = -1;
    int64_t t1_ns = -1;
    if (theme < 0 || (flame == NULL && !read_window(request, response, &t0_ns, &t1_ns))) {
        return;
    }
    if (lac_redactor_init(&redactor, lac_target_get(request->target, "redact"),
                          lac_trace_file_head(file), &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
    } else if (lac_kept_facts_open(file, response, &facts)) {
        const struct lac_report_source source = {
            .model = lac_trace_file_head(file), .analysis = facts.analysis, .redactor = &redactor};
        enum lac_status status =
            flame == NULL ? draw_window(file, &source, t0_ns, t1_ns, &response->body, &error)
                          : draw_flame(file, &source, flame, &response->body, &error);
        if (status == LAC_OK && is_png) {
            status = paint(response, theme, &error);
        }
        answer_status(response, status, is_png, &error);
    }
    lac_redactor_done(&redactor);
    lac_kept_facts_close(file, &facts);
}

static void answer_window(struct lac_trace_file *file, const struct lac_request *request,
                          struct lac_response *response)
{
    if (!lac_api_is_unchanged(request, file, response)) {
        answer(file, request, response, NULL);
    }
}

static void answer_flame(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_api_flame asked;
    if (lac_api_flame_asked(file, request, response, &asked) &&
        !lac_api_is_unchanged(request, file, response)) {
        answer(file, request, response, &asked);
    }
    lac_api_flame_done(&asked);
}

void lac_api_window_picture(void *app, const struct lac_request *request,
                            struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_window);
}

void lac_api_flame_picture(void *app, const struct lac_request *request,
                           struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_flame);
}
