#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/flame_json.h"
#include "server/store/store.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/** Frames of a graph in full: about 8 MB of JSON. */
enum { FULL_NODES_MAX = 100000 };

/** Answer with what was kept with the trace. @return false: nothing was */
static bool answer_stored(struct lac_trace_file *file, const struct lac_flame_options *options,
                          struct lac_response *response)
{
    struct lac_error error = {0};
    char *text = NULL;
    size_t length = 0;

    if (options->metric == LAC_FLAME_PROFILE || options->by != LAC_FLAME_BY_OP ||
        options->prune_fraction <= 0 || options->t0_ns != 0 || options->t1_ns != 0 ||
        lac_trace_file_document(
            file, (enum lac_trace_document)(LAC_DOCUMENT_FLAME + (unsigned)options->metric), &text,
            &length, &error) != LAC_OK) {
        return false; /* a damaged one is made again */
    }
    lac_buffer_add(&response->body, text, length);
    free(text);
    return true;
}

static void answer_made(struct lac_trace_file *file, const struct lac_flame_options *options,
                        struct lac_response *response)
{
    struct lac_flame *flame = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_trace_flame(file, options, &flame, &error);

    if (status == LAC_OK) {
        status = lac_flame_write(lac_trace_file_head(file), options, flame, &response->body);
    } else if (status != LAC_ERR_NOMEM) {
        lac_api_fail(response, &error);
    }
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this flame graph");
    }
    lac_flame_destroy(flame);
}

static void answer_flame(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    const int metric =
        lac_api_choice(request, response, "metric", lac_flame_metrics, LAC_FLAME_GPU);
    const int by =
        metric < 0 ? -1 : lac_api_choice(request, response, "by", lac_flame_bys, LAC_FLAME_BY_OP);
    static const char *const details[] = {"usual", "full", NULL};
    const int detail = by < 0 ? -1 : lac_api_choice(request, response, "detail", details, 0);
    struct lac_flame_options options;

    lac_flame_default_options(&options);
    if (detail < 0 ||
        !lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &options.t0_ns) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, 0, &options.t1_ns)) {
        return;
    }
    if (lac_target_get(request->target, "t1") != NULL && options.t1_ns <= options.t0_ns) {
        lac_response_error(response, 400, "bad_request", "t1 must be larger than t0");
        return;
    }
    if (options.t0_ns > 0 && options.t1_ns == 0) {
        options.t1_ns = LAC_TIME_MAX_NS; /* from t0 to the end */
    }
    if (detail == 1) { /* what is small, too, as far as a page can take it */
        options.prune_fraction = 0;
        options.node_count_max = FULL_NODES_MAX;
    }
    options.metric = (enum lac_flame_metric)metric;
    options.by = (enum lac_flame_by)by;
    if (!lac_api_is_unchanged(request, file, response) &&
        !answer_stored(file, &options, response)) {
        answer_made(file, &options, response);
    }
}

void lac_api_flame(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_flame);
}
