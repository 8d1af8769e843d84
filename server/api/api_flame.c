#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/kept_facts.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/step_spans.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/flame_json.h"
#include "server/store/store.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Frames of a graph in full: about 8 MB of JSON. */
enum { FULL_NODES_MAX = 100000 };

/** Answer with what was kept with the trace. @return false: nothing was */
static bool answer_stored(struct lac_trace_file *file, const struct lac_flame_options *options,
                          struct lac_response *response)
{
    const bool is_by_python = options->by == LAC_FLAME_BY_PYTHON;
    const unsigned first = is_by_python ? LAC_DOCUMENT_FLAME_PYTHON : LAC_DOCUMENT_FLAME;
    struct lac_error error = {0};
    char *text = NULL;
    size_t length = 0;

    if (options->metric > LAC_FLAME_CPU || (options->by != LAC_FLAME_BY_OP && !is_by_python) ||
        options->prune_fraction <= 0 || options->t0_ns != 0 || options->t1_ns != 0 ||
        options->is_chosen != NULL || options->order != LAC_FLAME_ORDER_VALUE ||
        lac_trace_file_document(file, (enum lac_trace_document)(first + (unsigned)options->metric),
                                &text, &length, &error) != LAC_OK) {
        return false; /* a damaged one is made again */
    }
    lac_buffer_add(&response->body, text, length);
    free(text);
    return true;
}

/** Folded stacks, as other tools read them. */
static enum lac_status write_folded(const struct lac_model *head, const struct lac_flame *flame,
                                    struct lac_response *response)
{
    struct lac_export_out out = {.buffer = response->body};
    struct lac_redactor redactor = {0};
    struct lac_error error = {0};
    enum lac_status status = lac_redactor_init(&redactor, NULL, head, &error);
    const struct lac_report_source source = {.model = head, .redactor = &redactor};

    if (status == LAC_OK) {
        lac_export_folded_graph(&out, &source, flame);
        response->body = out.buffer;
        response->mime = "text/plain; charset=utf-8";
        status = out.buffer.status;
    }
    lac_redactor_done(&redactor);
    return status;
}

static void answer_made(struct lac_trace_file *file, const struct lac_api_flame *asked,
                        bool is_folded, struct lac_response *response)
{
    struct lac_flame *flame = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_api_flame_make(file, asked, &flame, &error);

    if (status == LAC_OK && is_folded) {
        status = write_folded(lac_trace_file_head(file), flame, response);
    } else if (status == LAC_OK) {
        status =
            lac_flame_write(lac_trace_file_head(file), &asked->options, flame, &response->body);
    } else if (status != LAC_ERR_NOMEM) {
        lac_api_fail(response, &error);
    }
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this flame graph");
    }
    lac_flame_destroy(flame);
}

/** Those that the verdict measures; none is all time. */
static bool ask_measured(struct lac_trace_file *file, struct lac_response *response, bool is_host,
                         struct lac_step_spans *steps)
{
    struct lac_kept_facts facts = {.analysis = NULL};

    if (!lac_kept_facts_open(file, response, &facts)) {
        return false;
    }
    const enum lac_status status = lac_step_spans_measured(facts.analysis, is_host, steps);

    lac_kept_facts_close(file, &facts);
    if (status != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
    }
    return status == LAC_OK;
}

static enum lac_status add_ranges(const struct lac_trace_steps *all, bool is_host,
                                  const struct lac_id_range *ranges, unsigned count,
                                  struct lac_step_spans *steps)
{
    for (unsigned i = 0; i < count; i++) {
        for (uint64_t s = ranges[i].first; s <= ranges[i].last; s++) {
            if (s >= all->count) {
                return LAC_ERR_NOT_FOUND;
            }
            lac_step_spans_add(steps, is_host ? all->host_start_ns[s] : all->start_ns[s],
                               is_host ? all->host_dur_ns[s] : all->dur_ns[s]);
        }
    }
    lac_step_spans_join(steps);
    return LAC_OK;
}

bool lac_api_steps_asked(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response, bool is_host,
                         struct lac_step_spans *ret_steps)
{
    const char *text = lac_target_get(request->target, "steps");
    struct lac_id_range *ranges = NULL;
    struct lac_trace_steps all = {0};
    struct lac_error error = {0};
    unsigned count = 0;

    *ret_steps = (struct lac_step_spans){0};
    if (text == NULL) {
        return true;
    }
    if (lac_target_get(request->target, "t0") != NULL ||
        lac_target_get(request->target, "t1") != NULL) {
        lac_response_error(response, 400, "bad_request", "steps, or t0 and t1");
        return false;
    }
    if (strcmp(text, "measured") == 0) {
        return ask_measured(file, response, is_host, ret_steps);
    }
    lac_trace_file_steps(file, &all);
    ranges = malloc(LAC_QUERY_RANGES_MAX * sizeof(*ranges));
    if (ranges == NULL || lac_step_spans_init(ret_steps, all.count) != LAC_OK) {
        free(ranges);
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
        return false;
    }
    enum lac_status status =
        lac_parse_ranges(text, UINT32_MAX, ranges, LAC_QUERY_RANGES_MAX, &count, &error);

    if (status == LAC_OK) {
        status = add_ranges(&all, is_host, ranges, count, ret_steps);
    }
    free(ranges);
    if (status == LAC_ERR_NOT_FOUND) {
        lac_response_error(response, 400, "bad_request",
                           "steps: the trace has %" PRIu32 ", the first is 0", all.count);
    } else if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "steps: %s", error.message);
    } else if (ret_steps->span_count == 0) {
        lac_response_error(response, 400, "bad_request", "steps: these have no length");
        status = LAC_ERR_MISUSE;
    }
    return status == LAC_OK;
}

/** Of a profile without times, which lies in no step, the measured ones are all of it. */
static bool ask_steps(struct lac_trace_file *file, const struct lac_request *request,
                      struct lac_response *response, struct lac_api_flame *asked)
{
    const char *text = lac_target_get(request->target, "steps");
    const enum lac_flame_metric metric = asked->options.metric;

    if (metric == LAC_FLAME_PROFILE && text != NULL && strcmp(text, "measured") == 0) {
        return true;
    }
    if (!lac_api_steps_asked(file, request, response, lac_flame_is_of_threads(metric),
                             &asked->steps)) {
        return false;
    }
    lac_step_spans_use(&asked->steps, &asked->options);
    return true;
}

/** Rows whose time counts; idle time is that of the devices of these rows. */
static bool ask_tracks(struct lac_trace_file *file, const struct lac_request *request,
                       struct lac_response *response, struct lac_api_flame *asked)
{
    const struct lac_model *head = lac_trace_file_head(file);
    uint32_t *tracks = NULL;
    uint32_t count = 0;

    if (lac_target_get(request->target, "tracks") == NULL) {
        return true;
    }
    if (!lac_api_tracks_asked(request, response, head->track_count, &tracks, &count)) {
        return false;
    }
    asked->is_chosen = calloc((size_t)head->track_count + 1, 1);
    if (asked->is_chosen == NULL) {
        free(tracks);
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_track *of = &head->tracks[tracks[i]];

        asked->is_chosen[tracks[i]] = 1;
        for (uint32_t t = head->recorded_track_count;
             t < head->track_count && of->kind == LAC_TRACK_STREAM; t++) {
            if (head->tracks[t].kind == LAC_TRACK_GAPS && head->tracks[t].device == of->device) {
                asked->is_chosen[t] = 1;
            }
        }
    }
    free(tracks);
    asked->options.is_chosen = asked->is_chosen;
    return true;
}

static bool ask_area(const struct lac_request *request, struct lac_response *response,
                     struct lac_flame_options *options)
{
    const bool has_end = lac_target_get(request->target, "t1") != NULL;

    if (!lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &options->t0_ns) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, 0, &options->t1_ns)) {
        return false;
    }
    if (has_end && options->t1_ns <= options->t0_ns) {
        lac_response_error(response, 400, "bad_request", "t1 must be larger than t0");
        return false;
    }
    if (options->t0_ns > 0 && options->t1_ns == 0) {
        options->t1_ns = LAC_TIME_MAX_NS; /* from t0 to the end */
    }
    return true;
}

bool lac_api_flame_asked(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response, struct lac_api_flame *ret_asked)
{
    const int metric =
        lac_api_choice(request, response, "metric", lac_flame_metrics, LAC_FLAME_GPU);
    const int by =
        metric < 0 ? -1 : lac_api_choice(request, response, "by", lac_flame_bys, LAC_FLAME_BY_OP);
    const int order = by < 0 ? -1 : lac_api_choice(request, response, "order", lac_flame_orders, 0);

    *ret_asked = (struct lac_api_flame){.is_chosen = NULL};
    lac_flame_default_options(&ret_asked->options);
    if (order < 0) {
        return false;
    }
    ret_asked->options.metric = (enum lac_flame_metric)metric;
    ret_asked->options.by = (enum lac_flame_by)by;
    ret_asked->options.order = (enum lac_flame_order)order;
    return ask_area(request, response, &ret_asked->options) &&
           ask_steps(file, request, response, ret_asked) &&
           ask_tracks(file, request, response, ret_asked);
}

void lac_api_flame_done(struct lac_api_flame *asked)
{
    lac_step_spans_done(&asked->steps);
    free(asked->is_chosen);
    *asked = (struct lac_api_flame){.is_chosen = NULL};
}

enum lac_status lac_api_flame_make(struct lac_trace_file *file, const struct lac_api_flame *asked,
                                   struct lac_flame **ret_flame, struct lac_error *reterr)
{
    const enum lac_status status = lac_trace_flame(file, &asked->options, ret_flame, reterr);

    if (status == LAC_OK && asked->steps.step_count > 0) {
        (*ret_flame)->step_count = asked->steps.step_count;
    }
    return status;
}

static void answer_flame(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    static const char *const details[] = {"usual", "full", NULL};
    static const char *const formats[] = {"json", "folded", NULL};
    const int detail = lac_api_choice(request, response, "detail", details, 0);
    const int format = detail < 0 ? -1 : lac_api_choice(request, response, "format", formats, 0);
    struct lac_api_flame asked = {.is_chosen = NULL};

    if (format >= 0 && lac_api_flame_asked(file, request, response, &asked)) {
        if (detail == 1) { /* what is small, too, as far as a page can take it */
            asked.options.prune_fraction = 0;
            asked.options.node_count_max = FULL_NODES_MAX;
        }
        if (!lac_api_is_unchanged(request, file, response) &&
            (format == 1 || !answer_stored(file, &asked.options, response))) {
            answer_made(file, &asked, format == 1, response);
        }
    }
    lac_api_flame_done(&asked);
}

void lac_api_flame(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_flame);
}
