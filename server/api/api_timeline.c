#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- tracks ------------------------------------------------------------------------------------ */

enum { TRACKS_DEFAULT = 16384, TRACKS_MAX = 65536, TRACKS_BYTES_MAX = 4 << 20 };

/* A page: the same stretch of processes, tracks and steps, which are listed side by side. */
struct stretch {
    uint32_t first;
    uint32_t end;
    uint32_t count; /* of the longest of the three lists */
};

static uint32_t end_in(const struct stretch *page, uint32_t count)
{
    return page->end < count ? page->end : count;
}

/* About what row `i` of the three lists takes as JSON. */
static size_t row_bytes(const struct lac_model *head, const struct lac_trace_steps *steps,
                        uint32_t i)
{
    size_t bytes = 0;

    if (i < head->process_count) {
        const struct lac_process *process = &head->processes[i];

        bytes += 100 + strlen(lac_model_str(head, process->id_text)) +
                 strlen(lac_model_str(head, process->name)) +
                 strlen(lac_model_str(head, process->labels));
    }
    if (i < head->track_count) {
        const struct lac_track *track = &head->tracks[i];

        bytes += 140 + strlen(lac_model_str(head, track->name)) +
                 strlen(lac_model_str(head, track->id_text));
    }
    if (i < steps->count) {
        bytes += 60 + strlen(lac_model_str(head, steps->name[i]));
    }
    return bytes;
}

static struct stretch stretch_from(const struct lac_model *head,
                                   const struct lac_trace_steps *steps, int64_t after,
                                   int64_t limit)
{
    struct stretch page = {.count = head->process_count};
    size_t bytes = 0;

    page.count = head->track_count > page.count ? head->track_count : page.count;
    page.count = steps->count > page.count ? steps->count : page.count;
    page.first = after + 1 < page.count ? (uint32_t)(after + 1) : page.count;
    for (page.end = page.first;
         page.end < page.count && page.end - page.first < limit && bytes < TRACKS_BYTES_MAX;
         page.end++) {
        bytes += row_bytes(head, steps, page.end);
    }
    return page;
}

static void write_processes(struct lac_json *json, const struct lac_model *head,
                            const struct stretch *page)
{
    lac_json_open(json, "processes", '[');
    for (uint32_t i = page->first; i < end_in(page, head->process_count); i++) {
        const struct lac_process *process = &head->processes[i];

        lac_json_open(json, NULL, '{');
        lac_json_uint(json, "index", i);
        lac_json_text(json, "pid", lac_model_str(head, process->id_text));
        lac_json_text(json, "name", lac_model_str(head, process->name));
        lac_json_text(json, "labels", lac_model_str(head, process->labels));
        lac_json_int(json, "sort_index", process->sort_index);
        lac_json_bool(json, "is_gpu", process->is_gpu);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

/** Each takes a tile to tell: not of the thousands that a large job has. */
enum { OUTER_TRACKS_MAX = 512 };

static void write_track(struct lac_json *json, struct lac_trace_file *file,
                        const struct lac_model *head, uint32_t index)
{
    const struct lac_track *track = &head->tracks[index];

    lac_json_open(json, NULL, '{');
    lac_json_uint(json, "index", index);
    lac_json_text(json, "kind", lac_track_kind_name(track->kind));
    if (track->process == LAC_NONE) {
        lac_json_null(json, "process");
    } else {
        lac_json_uint(json, "process", track->process);
    }
    lac_json_text(json, "name", lac_model_str(head, track->name));
    lac_json_text(json, "id", lac_model_str(head, track->id_text));
    lac_json_optional(json, "device", track->device);
    lac_json_int(json, "sort_index", track->sort_index);
    lac_json_uint(json, "lanes", track->lane_count);
    lac_json_uint(json, "outer_lanes",
                  index < OUTER_TRACKS_MAX ? lac_trace_file_outer_lanes(file, index) : 0);
    lac_json_uint(json, "count", track->count);
    lac_json_text(json, "role", lac_trace_file_track_role(file, index));
    lac_json_close(json, '}');
}

/* There are few: all of them are in the first page. */
static void write_devices(struct lac_json *json, const struct lac_model *head,
                          const struct stretch *page)
{
    lac_json_open(json, "devices", '[');
    for (uint32_t i = 0; page->first == 0 && i < head->device_count; i++) {
        const struct lac_device *device = &head->devices[i];
        char capability[32];

        (void)snprintf(capability, sizeof(capability), "%" PRId32 ".%" PRId32, device->cc_major,
                       device->cc_minor);
        lac_json_open(json, NULL, '{');
        lac_json_int(json, "id", device->id);
        lac_json_text(json, "name", lac_model_str(head, device->name));
        lac_json_text(json, "compute_capability", device->cc_major > 0 ? capability : NULL);
        if (device->sm_count > 0) {
            lac_json_int(json, "sm_count", device->sm_count);
        } else {
            lac_json_null(json, "sm_count");
        }
        if (device->memory_bytes > 0) {
            lac_json_int(json, "memory_bytes", device->memory_bytes);
        } else {
            lac_json_null(json, "memory_bytes");
        }
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_times(struct lac_json *json, const char *key, const int64_t *times_ns,
                        uint32_t first, uint32_t end)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = first; i < end; i++) {
        lac_json_int(json, NULL, times_ns[i]);
    }
    lac_json_close(json, ']');
}

static void write_steps(struct lac_json *json, const struct lac_model *head,
                        const struct lac_trace_steps *steps, const struct stretch *page)
{
    const uint32_t end = end_in(page, steps->count);

    lac_json_open(json, "steps", '{');
    write_times(json, "start_ns", steps->start_ns, page->first, end);
    write_times(json, "dur_ns", steps->dur_ns, page->first, end);
    write_times(json, "host_start_ns", steps->host_start_ns, page->first, end);
    write_times(json, "host_dur_ns", steps->host_dur_ns, page->first, end);
    lac_json_open(json, "name", '[');
    for (uint32_t i = page->first; i < end; i++) {
        lac_json_text(json, NULL, lac_model_str(head, steps->name[i]));
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

static void answer_tracks(struct lac_trace_file *file, const struct lac_request *request,
                          struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct lac_trace_steps steps = {0};
    struct stretch page;
    struct lac_json json;
    int64_t limit;
    int64_t after;

    if (!lac_api_int(request, response, "limit", 1, TRACKS_MAX, TRACKS_DEFAULT, &limit) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX, -1, &after) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    lac_trace_file_steps(file, &steps);
    page = stretch_from(head, &steps, after, limit);
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "generation", lac_trace_file_generation(file));
    lac_json_int(&json, "duration_ns", head->info.duration_ns);
    lac_json_uint(&json, "level_max", lac_trace_file_level_max(file));
    lac_json_uint(&json, "cells_per_tile", LAC_TILE_CELLS);
    write_processes(&json, head, &page);
    lac_json_open(&json, "tracks", '[');
    for (uint32_t i = page.first; i < end_in(&page, head->track_count); i++) {
        write_track(&json, file, head, i);
    }
    lac_json_close(&json, ']');
    write_devices(&json, head, &page);
    write_steps(&json, head, &steps, &page);
    if (page.end < page.count) {
        lac_json_int_text(&json, "next", (int64_t)page.end - 1);
    } else {
        lac_json_null(&json, "next");
    }
    lac_json_close(&json, '}');
}

void lac_api_tracks(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_tracks);
}

/* -- tiles ------------------------------------------------------------------------------------- */

static void answer_tiles(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct lac_error error = {0};
    uint64_t generation;
    uint64_t level;
    uint64_t first;
    uint64_t last;
    uint32_t *tracks = NULL;
    uint32_t track_count = 0;
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;

    if (!lac_api_path_number(request, response, 1, UINT32_MAX, &generation) ||
        !lac_api_path_number(request, response, 2, LAC_TILE_LEVEL_COUNT - 1, &level) ||
        !lac_api_path_number(request, response, 3, UINT32_MAX, &first) ||
        !lac_api_path_number(request, response, 4, UINT32_MAX, &last)) {
        return;
    }
    if (generation != lac_trace_file_generation(file)) {
        lac_response_error(response, 404, "not_found", "this trace has no generation %" PRIu64,
                           generation);
        return;
    }
    if (lac_api_tracks_asked(request, response, head->track_count, &tracks, &track_count) &&
        !lac_api_is_unchanged(request, file, response)) {
        if (lac_trace_file_tiles(file, (uint8_t)level, (uint32_t)first, (uint32_t)last, tracks,
                                 track_count, &bytes, &size_bytes, &error) == LAC_OK) {
            response->mime = "application/octet-stream";
            response->cache = "private, max-age=86400, immutable";
            response->body.bytes = (char *)bytes; /* the reply frees it */
            response->body.size_bytes = size_bytes;
            response->body.capacity_bytes = size_bytes;
        } else {
            lac_api_fail(response, &error);
        }
    }
    free(tracks);
}

void lac_api_tiles(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_tiles);
}

/* -- counters ---------------------------------------------------------------------------------- */

static void write_reals(struct lac_json *json, const char *key, const double *values,
                        uint32_t count)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_real(json, NULL, values[i]);
    }
    lac_json_close(json, ']');
}

static void answer_counter(struct lac_trace_file *file, const struct lac_request *request,
                           struct lac_response *response)
{
    const int64_t duration_ns = lac_trace_file_head(file)->info.duration_ns;
    struct lac_counter_points points = {0};
    struct lac_error error = {0};
    struct lac_json json;
    uint64_t track;
    int64_t t0;
    int64_t t1;
    int64_t count;

    if (!lac_api_path_number(request, response, 1, UINT32_MAX, &track) ||
        !lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &t0) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, duration_ns + 1, &t1) ||
        !lac_api_int(request, response, "points", 1, 8192, 1024, &count) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    if (lac_trace_file_counter(file, (uint32_t)track, t0, t1, (uint32_t)count, &points, &error) !=
        LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "ts_ns", '[');
    for (uint32_t i = 0; i < points.count; i++) {
        lac_json_int(&json, NULL, points.ts_ns[i]);
    }
    lac_json_close(&json, ']');
    write_reals(&json, "min", points.min, points.count);
    write_reals(&json, "max", points.max, points.count);
    write_reals(&json, "last", points.last, points.count);
    lac_json_real(&json, "mean", points.count > 0 ? points.mean : (double)NAN);
    lac_json_close(&json, '}');
    lac_counter_points_done(&points);
}

void lac_api_counters(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_counter);
}

/* -- names ------------------------------------------------------------------------------------- */

enum { NAMES_MAX = 65536, NAMES_BYTES_MAX = 8 << 20 };

static void write_name(struct lac_json *json, const struct lac_model *head, uint32_t id)
{
    lac_json_open(json, NULL, '[');
    lac_json_uint(json, NULL, id);
    lac_json_text(json, NULL, lac_model_str(head, id));
    lac_json_close(json, ']');
}

/* ?ids=5,9-20: ids that do not exist are left out. */
static void answer_names_by_id(const struct lac_model *head, const char *text,
                               struct lac_response *response, struct lac_json *json)
{
    struct lac_id_range *ranges = malloc(LAC_QUERY_RANGES_MAX * sizeof(*ranges));
    struct lac_error error = {0};
    unsigned range_count = 0;
    enum lac_status status;

    if (ranges == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
        return;
    }
    status = lac_parse_ranges(text, NAMES_MAX, ranges, LAC_QUERY_RANGES_MAX, &range_count, &error);
    if (status != LAC_OK) {
        lac_response_error(response, status == LAC_ERR_LIMIT ? 413 : 400,
                           status == LAC_ERR_LIMIT ? "limit" : "bad_request", "ids: %s",
                           error.message);
        free(ranges);
        return;
    }
    lac_json_open(json, NULL, '{');
    lac_json_open(json, "names", '[');
    for (unsigned i = 0; i < range_count; i++) {
        for (uint64_t id = ranges[i].first; id <= ranges[i].last && id < head->strings.count;
             id++) {
            write_name(json, head, (uint32_t)id);
        }
    }
    lac_json_close(json, ']');
    lac_json_null(json, "next");
    lac_json_close(json, '}');
    free(ranges);
}

static void answer_names(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    const char *ids = lac_target_get(request->target, "ids");
    struct lac_json json;
    int64_t from;
    int64_t limit;
    uint32_t id;

    if (!lac_api_int(request, response, "from", 0, UINT32_MAX - 1, 0, &from) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX - 1, from, &from) ||
        !lac_api_int(request, response, "limit", 1, NAMES_MAX, NAMES_MAX, &limit) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    lac_json_init(&json, &response->body);
    if (ids != NULL) {
        answer_names_by_id(head, ids, response, &json);
        return;
    }
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "names", '[');
    for (id = (uint32_t)from; id < head->strings.count && id - from < limit &&
                              response->body.size_bytes < NAMES_BYTES_MAX;
         id++) {
        write_name(&json, head, id);
    }
    lac_json_close(&json, ']');
    if (id < head->strings.count) {
        lac_json_uint(&json, "next", id);
    } else {
        lac_json_null(&json, "next");
    }
    lac_json_close(&json, '}');
}

void lac_api_names(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_names);
}
