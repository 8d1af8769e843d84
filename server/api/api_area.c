#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** What is asked for: an area, and a page of its names. */
struct area_request {
    struct lac_area_query query;
    enum lac_area_sort sort;
    bool is_descending;
    uint64_t after; /**< names before the page */
    uint64_t limit;
};

static bool read_request(const struct lac_request *request, struct lac_response *response,
                         struct area_request *asked)
{
    static const char *const sorts[] = {"total", "self", "count", "mean", "max", "name", NULL};
    static const char *const orders[] = {"asc", "desc", NULL};
    const int sort = lac_api_choice(request, response, "sort", sorts, LAC_AREA_SORT_TOTAL);
    const int order = sort < 0 ? -1
                               : lac_api_choice(request, response, "order", orders,
                                                sort < LAC_AREA_SORT_NAME ? 1 : 0);
    int64_t after;
    int64_t limit;

    if (order < 0 ||
        !lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &asked->query.t0_ns) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, LAC_TIME_MAX_NS,
                     &asked->query.t1_ns) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX, 0, &after) ||
        !lac_api_int(request, response, "limit", 1, 10000, 200, &limit)) {
        return false;
    }
    if (asked->query.t1_ns <= asked->query.t0_ns) {
        lac_response_error(response, 400, "bad_request", "t1 must be larger than t0");
        return false;
    }
    asked->sort = (enum lac_area_sort)sort;
    asked->is_descending = order == 1;
    asked->after = (uint64_t)after;
    asked->limit = (uint64_t)limit;
    return true;
}

static void write_name(struct lac_json *json, const struct lac_model *head,
                       const struct lac_area_name *row)
{
    lac_json_open(json, NULL, '{');
    lac_api_write_name(json, head, row->name, row->kind);
    lac_json_uint(json, "count", row->count);
    lac_json_int(json, "total_ns", row->total_ns);
    lac_json_int(json, "self_ns", row->self_ns > 0 ? row->self_ns : 0);
    lac_json_int(json, "mean_ns", row->count > 0 ? row->total_ns / (int64_t)row->count : 0);
    lac_json_int(json, "max_ns", row->max_ns);
    lac_json_uint(json, "longest_slice", row->longest);
    lac_json_close(json, '}');
}

static void write_names(struct lac_json *json, const struct lac_model *head,
                        const struct lac_area *area, const struct area_request *asked)
{
    const uint64_t end = asked->after + asked->limit;

    lac_json_uint(json, "name_count", area->name_count);
    lac_json_open(json, "names", '[');
    for (uint64_t i = asked->after; i < end && i < area->name_count; i++) {
        write_name(json, head, &area->names[i]);
    }
    lac_json_close(json, ']');
    if (end < area->name_count) {
        lac_json_int_text(json, "next", (int64_t)end);
    } else {
        lac_json_null(json, "next");
    }
}

static void write_tracks(struct lac_json *json, const struct lac_area *area)
{
    lac_json_open(json, "tracks", '[');
    for (uint32_t i = 0; i < area->track_count; i++) {
        const struct lac_area_track *track = &area->tracks[i];

        lac_json_open(json, NULL, '{');
        lac_json_uint(json, "track", track->track);
        lac_json_uint(json, "count", track->count);
        lac_json_int(json, "total_ns", track->total_ns > 0 ? track->total_ns : 0);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_device(struct lac_json *json, const struct lac_area_device *device)
{
    const int64_t busy_ns = device->span_ns - device->idle_ns;

    lac_json_open(json, NULL, '{');
    lac_json_int(json, "id", device->id);
    lac_json_int(json, "span_ns", device->span_ns);
    lac_json_int(json, "busy_ns", busy_ns > 0 ? busy_ns : 0);
    lac_json_int(json, "idle_ns", device->idle_ns);
    if (device->exposed_ns >= 0) {
        lac_json_int(json, "computing_ns",
                     busy_ns > device->exposed_ns ? busy_ns - device->exposed_ns : 0);
    } else {
        lac_json_null(json, "computing_ns");
    }
    lac_json_open(json, "idle_by_cause_ns", '{');
    for (unsigned cause = 0; cause < LAC_GAP_CAUSES; cause++) {
        lac_json_int(json, lac_cause_name((enum lac_cause)cause), device->cause_ns[cause]);
    }
    lac_json_close(json, '}');
    lac_json_open(json, "kinds", '[');
    for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_; kind++) {
        if (device->kind_count[kind] > 0) {
            lac_json_open(json, NULL, '{');
            lac_json_text(json, "kind", lac_slice_kind_name((enum lac_slice_kind)kind));
            lac_json_uint(json, "count", device->kind_count[kind]);
            lac_json_int(json, "total_ns", device->kind_ns[kind]);
            lac_json_close(json, '}');
        }
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

static void write_area(struct lac_response *response, const struct lac_model *head,
                       const struct lac_area *area, const struct area_request *asked)
{
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_int(&json, "t0_ns", asked->query.t0_ns);
    lac_json_int(&json, "t1_ns", lac_api_end_ns(head, asked->query.t1_ns));
    lac_json_uint(&json, "slice_count", area->slice_count);
    write_names(&json, head, area, asked);
    write_tracks(&json, area);
    lac_json_open(&json, "devices", '[');
    for (uint32_t d = 0; d < area->device_count; d++) {
        write_device(&json, &area->devices[d]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
}

static void answer_area(struct lac_trace_file *file, const struct lac_request *request,
                        struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct area_request asked = {0};
    struct lac_area area = {0};
    struct lac_error error = {0};
    uint32_t *tracks = NULL;

    if (!read_request(request, response, &asked)) {
        return;
    }
    if (lac_target_get(request->target, "tracks") != NULL) {
        if (!lac_api_tracks_asked(request, response, head->track_count, &tracks,
                                  &asked.query.track_count)) {
            return;
        }
        asked.query.tracks = tracks;
    }
    if (!lac_api_is_unchanged(request, file, response)) {
        if (lac_trace_file_area(file, &asked.query, &area, &error) == LAC_OK) {
            lac_area_sort(&area, head, asked.sort, asked.is_descending);
            write_area(response, head, &area, &asked);
        } else {
            lac_api_fail(response, &error);
        }
    }
    lac_area_done(&area);
    free(tracks);
}

void lac_api_area(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_area);
}
