#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The members that every form of a slice has; leaves the object open. */
static void write_row(struct lac_json *json, const struct lac_model *head,
                      const struct lac_slice_row *row)
{
    lac_json_uint(json, "id", row->slice);
    lac_json_uint(json, "track", row->track);
    lac_json_uint(json, "lane", row->lane);
    lac_api_write_name(json, head, row->name, row->kind);
    lac_json_int(json, "start_ns", row->start_ns);
    lac_json_int(json, "dur_ns", row->dur_ns);
    lac_json_uint(json, "corr", row->corr);
    lac_api_write_id(json, "link", row->link);
}

/* -- one slice --------------------------------------------------------------------------------- */

/* Arguments are JSON text that an importer kept: it goes out digit by digit, if all of it is JSON. */
static void write_args(struct lac_json *json, const char *text)
{
    static const struct lac_json_limits limits = {.size_bytes_max = INT32_MAX, .depth_max = 80};
    struct json_object *object = NULL;

    if (text == NULL || text[0] == '\0') {
        lac_json_raw(json, "args", "{}", 2);
    } else if (lac_json_read(text, strlen(text), &limits, &object, NULL) == LAC_OK) {
        lac_json_raw(json, "args", text, strlen(text));
    } else {
        lac_json_open(json, "args", '{');
        lac_json_text(json, "unreadable", text);
        lac_json_close(json, '}');
    }
    lac_json_read_done(object);
}

static void write_three(struct lac_json *json, const char *key, const uint32_t value[3])
{
    lac_json_open(json, key, '[');
    for (unsigned i = 0; i < 3; i++) {
        lac_json_uint(json, NULL, value[i]);
    }
    lac_json_close(json, ']');
}

/** The node of a CUDA graph that launched it, and the module that annotations name. */
static void write_node(struct lac_json *json, const struct lac_model *head, uint64_t node,
                       uint32_t module)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, node);
    lac_json_text(json, "graph_node_id", node != 0 ? text : NULL);
    lac_json_text(json, "module", module != 0 ? lac_model_str(head, module) : NULL);
}

static void write_kernel(struct lac_json *json, const struct lac_model *head,
                         const struct lac_slice_full *slice)
{
    const struct lac_kernel_config *kernel = &slice->kernel;

    if (!slice->has_kernel) {
        lac_json_null(json, "kernel");
        return;
    }
    lac_json_open(json, "kernel", '{');
    write_three(json, "grid", kernel->grid);
    write_three(json, "block", kernel->block);
    lac_json_uint(json, "registers", kernel->registers_per_thread);
    lac_json_uint(json, "shared_memory_bytes", kernel->shared_memory_bytes);
    lac_json_real(json, "occupancy_pct",
                  kernel->occupancy_pct < 0 ? (double)NAN : (double)kernel->occupancy_pct);
    lac_json_real(json, "blocks_per_sm",
                  kernel->blocks_per_sm < 0 ? (double)NAN : (double)kernel->blocks_per_sm);
    lac_json_uint(json, "graph_node", kernel->graph_node);
    write_node(json, head, kernel->graph_node, kernel->module);
    lac_json_close(json, '}');
}

static void write_copy(struct lac_json *json, const struct lac_model *head,
                       const struct lac_slice_full *slice)
{
    const struct lac_copy *copy = &slice->copy;
    const int64_t dur_ns = slice->row.dur_ns;

    if (!slice->has_copy) {
        lac_json_null(json, "copy");
        return;
    }
    lac_json_open(json, "copy", '{');
    lac_json_text(json, "kind", lac_copy_kind_name((enum lac_copy_kind)copy->copy_kind));
    lac_json_text(json, "src", lac_memory_kind_name((enum lac_memory_kind)copy->src));
    lac_json_text(json, "dst", lac_memory_kind_name((enum lac_memory_kind)copy->dst));
    lac_json_optional(json, "bytes", copy->bytes);
    lac_json_real(json, "gb_per_s",
                  copy->bytes >= 0 && dur_ns > 0 ? (double)copy->bytes / (double)dur_ns
                                                 : (double)NAN);
    if (copy->is_async == 2) {
        lac_json_null(json, "async");
    } else {
        lac_json_bool(json, "async", copy->is_async == 1);
    }
    write_node(json, head, copy->graph_node, copy->module);
    lac_json_close(json, '}');
}

static void write_loader_and_alloc(struct lac_json *json, const struct lac_slice_full *slice)
{
    if (slice->has_loader) {
        lac_json_open(json, "loader", '{');
        lac_json_optional(json, "batch", slice->loader.batch);
        lac_json_optional(json, "worker", slice->loader.worker);
        lac_json_optional(json, "cpu_ns", slice->loader.cpu_ns);
        lac_json_close(json, '}');
    } else {
        lac_json_null(json, "loader");
    }
    if (slice->has_alloc) {
        lac_json_open(json, "alloc", '{');
        lac_json_int(json, "bytes", slice->alloc.bytes);
        lac_json_optional(json, "total_allocated_bytes", slice->alloc.total_allocated);
        lac_json_optional(json, "device", slice->alloc.device);
        lac_json_close(json, '}');
    } else {
        lac_json_null(json, "alloc");
    }
    if (slice->has_return_value) {
        lac_json_uint(json, "return_value", slice->return_value);
    } else {
        lac_json_null(json, "return_value");
    }
}

static void write_full(struct lac_json *json, const struct lac_trace_file *file,
                       const struct lac_slice_full *slice)
{
    struct lac_trace_steps steps = {0};

    lac_trace_file_steps(file, &steps);
    lac_json_open(json, NULL, '{');
    write_row(json, lac_trace_file_head(file), &slice->row);
    lac_api_write_id(json, "step", slice->step);
    lac_api_write_id(json, "parent", slice->parent);
    lac_json_uint(json, "children", slice->child_count);
    write_args(json, slice->args_json);
    write_kernel(json, lac_trace_file_head(file), slice);
    write_copy(json, lac_trace_file_head(file), slice);
    write_loader_and_alloc(json, slice);
    lac_json_open(json, "same_name", '{');
    lac_json_uint(json, "count", slice->same_name_count);
    lac_json_int(json, "total_ns", slice->same_name_total_ns);
    lac_json_real(json, "per_step",
                  steps.count > 0 ? (double)slice->same_name_count / (double)steps.count
                                  : (double)NAN);
    lac_json_close(json, '}');
    lac_api_write_id(json, "prev", slice->prev_same_name);
    lac_api_write_id(json, "next", slice->next_same_name);
    lac_json_close(json, '}');
}

static void answer_slice(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_slice_full slice = {0};
    struct lac_error error = {0};
    struct lac_json json;
    uint64_t id;

    if (!lac_api_path_number(request, response, 1, UINT32_MAX - 1, &id) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    if (lac_trace_file_slice(file, id, &slice, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    write_full(&json, file, &slice);
    lac_slice_full_done(&slice);
}

void lac_api_slice(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_slice);
}

/* -- a window of slices ------------------------------------------------------------------------ */

static void answer_slices(struct lac_trace_file *file, const struct lac_request *request,
                          struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct lac_slice_row *rows;
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t count = 0;
    bool has_more = false;
    int64_t track;
    int64_t t0;
    int64_t t1;
    int64_t limit;
    int64_t after;

    if (!lac_api_int(request, response, "track", 0, UINT32_MAX - 1, -1, &track) ||
        !lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &t0) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, LAC_TIME_MAX_NS, &t1) ||
        !lac_api_int(request, response, "limit", 1, 10000, 1000, &limit) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX, LAC_NONE, &after)) {
        return;
    }
    if (track < 0 || track >= head->track_count) {
        lac_response_error(response, track < 0 ? 400 : 404, track < 0 ? "bad_request" : "not_found",
                           track < 0 ? "track is missing" : "this trace has no such track");
        return;
    }
    if (lac_api_is_unchanged(request, file, response)) {
        return;
    }
    rows = malloc((size_t)limit * sizeof(*rows));
    if (rows == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
        return;
    }
    if (lac_trace_file_window(file, (uint32_t)track, t0, t1, (uint32_t)after, (uint32_t)limit, rows,
                              &count, &has_more, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        free(rows);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "slices", '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(&json, NULL, '{');
        write_row(&json, head, &rows[i]);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    if (has_more && count > 0) {
        lac_json_int_text(&json, "next", rows[count - 1].slice);
    } else {
        lac_json_null(&json, "next");
    }
    lac_json_close(&json, '}');
    free(rows);
}

void lac_api_slices(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_slices);
}

/* -- search ------------------------------------------------------------------------------------ */

static bool read_kind(const struct lac_request *request, struct lac_response *response,
                      int *ret_kind)
{
    const char *names[LAC_SLICE_KIND_COUNT_ + 1];

    for (unsigned i = 0; i < LAC_SLICE_KIND_COUNT_; i++) {
        names[i] = lac_slice_kind_name((enum lac_slice_kind)i);
    }
    names[LAC_SLICE_KIND_COUNT_] = NULL;
    *ret_kind = lac_api_choice(request, response, "kind", names, -2);
    if (*ret_kind == -2) {
        *ret_kind = -1; /* not given: all kinds */
        return true;
    }
    return *ret_kind >= 0;
}

static void answer_search(struct lac_trace_file *file, const struct lac_request *request,
                          struct lac_response *response)
{
    static const char *const orders[] = {"start", "dur", NULL};
    const struct lac_model *head = lac_trace_file_head(file);
    const char *text = lac_target_get(request->target, "q");
    struct lac_search_hits hits = {0};
    struct lac_error error = {0};
    struct lac_json json;
    int64_t limit;
    int64_t bins;
    int kind;
    int order;

    if (text == NULL || text[0] == '\0') {
        lac_response_error(response, 400, "bad_request",
                           "q is missing: part of a name, id:N, corr:N, batch:N or track:N");
        return;
    }
    if (!lac_api_int(request, response, "limit", 1, 1000, 100, &limit) ||
        !lac_api_int(request, response, "bins", 0, LAC_SEARCH_BINS_MAX, 0, &bins) ||
        !read_kind(request, response, &kind)) {
        return;
    }
    order = lac_api_choice(request, response, "sort", orders, 0);
    if (order < 0 || lac_api_is_unchanged(request, file, response)) {
        return;
    }
    const struct lac_search_query query = {
        .text = text,
        .kind = kind,
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
        .bin_count = (uint32_t)bins,
        .longest_first = order == 1,
    };
    if (lac_trace_file_search(file, &query, &hits, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "total", hits.total);
    lac_json_open(&json, "hits", '[');
    for (uint32_t i = 0; i < hits.count; i++) {
        const struct lac_slice_row *row = &hits.rows[i];

        lac_json_open(&json, NULL, '{');
        lac_json_uint(&json, "slice", row->slice);
        lac_json_uint(&json, "track", row->track);
        lac_json_int(&json, "start_ns", row->start_ns);
        lac_json_int(&json, "dur_ns", row->dur_ns);
        lac_json_uint(&json, "name_id", row->name);
        lac_json_text(&json, "name", lac_model_str(head, row->name));
        lac_json_text(&json, "kind", lac_api_kind_name(row->kind));
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", hits.has_more ? hits.next : NULL);
    lac_json_open(&json, "bins", '[');
    for (uint32_t i = 0; i < query.bin_count; i++) {
        lac_json_uint(&json, NULL, hits.bins[i]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    lac_search_hits_done(&hits);
}

void lac_api_search(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_search);
}
