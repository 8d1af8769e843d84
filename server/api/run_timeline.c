/* The ranks of a run in one picture: what each device did in each part of a window, and the
 * collectives in which they met, all on one clock. */

#include "analysis/diagnose/facts/collectives.h"
#include "analysis/diagnose/ranks/ranks_align.h"
#include "analysis/model/model.h"
#include "collector/base/order.h"
#include "server/api/app.h"
#include "server/api/document_cache.h"
#include "server/api/kept_facts.h"
#include "server/api/rank_strip.h"
#include "server/api/run_ranks.h"
#include "server/base/buffer.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_DEFAULT = 600, COLLECTIVES_DEFAULT = 200, COLLECTIVES_MAX = 2000 };

static const char *const clock_names[] = {[LAC_CLOCK_NONE] = "none",
                                          [LAC_CLOCK_COLLECTIVES] = "collectives",
                                          [LAC_CLOCK_RECORDED] = "recorded"};

/** What is asked for: a window on the common clock. */
struct asked {
    int64_t t0_ns, t1_ns;
    int64_t points, limit;
    uint32_t count; /**< ranks */
    const struct lac_rank_clock *clocks;
};

/** @param least_ns   where a window may begin
 *  @param longest_ns the end of the last rank: what a window without an end goes to */
static bool read_window(const struct lac_request *request, struct lac_response *response,
                        int64_t least_ns, int64_t longest_ns, struct asked *asked)
{
    if (!lac_api_int(request, response, "t0", least_ns, LAC_TIME_MAX_NS - 1, 0, &asked->t0_ns) ||
        !lac_api_int(request, response, "t1", least_ns + 1, LAC_TIME_MAX_NS, longest_ns,
                     &asked->t1_ns) ||
        !lac_api_int(request, response, "points", 1, LAC_STRIP_POINTS_MAX, POINTS_DEFAULT,
                     &asked->points) ||
        !lac_api_int(request, response, "limit", 0, COLLECTIVES_MAX, COLLECTIVES_DEFAULT,
                     &asked->limit)) {
        return false;
    }
    if (asked->t1_ns <= asked->t0_ns) {
        lac_response_error(response, 400, "bad_request", "t1 must be larger than t0");
        return false;
    }
    if (asked->points > asked->t1_ns - asked->t0_ns) {
        asked->points = asked->t1_ns - asked->t0_ns;
    }
    return true;
}

static int64_t longest_of(const struct lac_rank_clock *clocks, uint32_t count)
{
    int64_t longest_ns = 1;

    for (uint32_t i = 0; i < count; i++) {
        const int64_t end_ns = clocks[i].offset_ns + clocks[i].duration_ns;

        longest_ns = end_ns > longest_ns ? end_ns : longest_ns;
    }
    return longest_ns;
}

/** A window of a run, of all its ranks on one time axis, as `answer` writes it. */
static void answer_window(struct lac_app *app, const struct lac_request *request,
                          struct lac_response *response, const char *what,
                          void (*answer)(struct lac_app *app, struct lac_run_ranks *ranks,
                                         const struct asked *asked, struct lac_response *response))
{
    struct lac_run_ranks *ranks = lac_run_ranks_of_path(app, request, response);
    struct lac_rank_clock *clocks = NULL;
    struct asked asked = {0};

    if (ranks == NULL) {
        return;
    }
    if (lac_run_ranks_clocks(ranks, request->param[0], response, &clocks)) {
        asked.clocks = clocks;
        asked.count = lac_run_ranks_count(ranks);
        if (read_window(request, response, 0, longest_of(clocks, asked.count), &asked)) {
            lac_response_etag(response,
                              "%s %s %016" PRIx64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                              LAC_VERSION, what, lac_run_ranks_stamp(ranks), asked.t0_ns,
                              asked.t1_ns, asked.points, asked.limit);
            response->cache = "private, no-cache";
            if (!lac_response_is_unchanged(request, response)) {
                answer(app, ranks, &asked, response);
            }
        }
    }
    free(clocks);
    lac_run_ranks_close(ranks);
}

/* ---- what each rank's device did ---- */

/** Parts of a window in thousandths, and their sum in ns beside them. */
static int64_t write_parts(struct lac_json *json, const char *key, const struct asked *asked,
                           const int64_t *parts_ns, uint32_t stride)
{
    const double part_ns = (double)(asked->t1_ns - asked->t0_ns) / (double)asked->points;
    int64_t sum_ns = 0;

    for (int64_t i = 0; i < asked->points; i++) {
        sum_ns += parts_ns[i * stride];
    }
    if (sum_ns > 0) {
        lac_json_open(json, key, '{');
        lac_json_int(json, "total_ns", sum_ns);
        lac_json_open(json, "parts", '[');
        for (int64_t i = 0; i < asked->points; i++) {
            const int64_t share = (int64_t)(1000.0 * (double)parts_ns[i * stride] / part_ns + 0.5);

            lac_json_int(json, NULL, share < 1000 ? share : 1000);
        }
        lac_json_close(json, ']');
        lac_json_close(json, '}');
    }
    return sum_ns;
}

static void write_strip(struct lac_json *json, const struct asked *asked,
                        const struct lac_strip *strip)
{
    lac_json_open(json, "work", '{');
    (void)write_parts(json, "compute", asked, strip->compute_ns, 1);
    (void)write_parts(json, "exposed_comm", asked, strip->comm_ns, 1);
    (void)write_parts(json, "exposed_copy", asked, strip->copy_ns, 1);
    lac_json_close(json, '}');
    lac_json_open(json, "waiting", '{');
    for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
        (void)write_parts(json, lac_cause_name((enum lac_cause)c), asked, &strip->cause_ns[0][c],
                          LAC_CAUSE_COUNT_);
    }
    lac_json_close(json, '}');
}

/** What a device did, or null three times. */
static void write_device(struct lac_json *json, bool has_device, int64_t device,
                         const struct asked *asked, const struct lac_strip *strip)
{
    if (has_device) {
        lac_json_int(json, "device", device);
        write_strip(json, asked, strip);
    } else {
        lac_json_null(json, "device");
        lac_json_null(json, "work");
        lac_json_null(json, "waiting");
    }
}

static enum lac_status write_rank(struct lac_app *app, struct lac_json *json,
                                  const struct lac_run_ranks *ranks, uint32_t index,
                                  const struct asked *asked, struct lac_error *reterr)
{
    const struct lac_rank_clock *clock = &asked->clocks[index];
    const struct lac_strip_query query = {.device = clock->device,
                                          .first_ns = clock->first_ns,
                                          .end_ns = clock->first_ns + clock->span_ns,
                                          .t0_ns = asked->t0_ns - clock->offset_ns,
                                          .t1_ns = asked->t1_ns - clock->offset_ns,
                                          .points = (uint32_t)asked->points};
    struct lac_trace_file *file = NULL;
    struct lac_strip strip = {0};
    enum lac_status status =
        lac_store_open_trace(app->store, lac_run_ranks_trace(ranks, index), &file, reterr);

    if (status != LAC_OK) {
        return status;
    }
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "trace", lac_run_ranks_trace(ranks, index));
    lac_json_int(json, "rank", clock->rank);
    lac_json_text(json, "clock", clock_names[clock->how]);
    lac_json_int(json, "offset_ns", clock->offset_ns);
    lac_json_int(json, "duration_ns", clock->duration_ns);
    if (clock->has_device) {
        status = lac_strip_make(file, &query, &strip, reterr);
    }
    write_device(json, status == LAC_OK && clock->has_device, clock->device, asked, &strip);
    lac_json_close(json, '}');
    lac_strip_done(&strip);
    lac_store_release_trace(app->store, file);
    return status;
}

static enum lac_status write_strips(struct lac_app *app, struct lac_buffer *out,
                                    const struct lac_run_ranks *ranks, const struct asked *asked,
                                    struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    struct lac_json json;

    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_int(&json, "duration_ns", longest_of(asked->clocks, asked->count));
    lac_json_int(&json, "t0_ns", asked->t0_ns);
    lac_json_int(&json, "t1_ns", asked->t1_ns);
    lac_json_int(&json, "points", asked->points);
    lac_json_open(&json, "ranks", '[');
    for (uint32_t i = 0; i < asked->count && status == LAC_OK; i++) {
        status = write_rank(app, &json, ranks, i, asked, reterr);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    return status;
}

static void answer_strips(struct lac_app *app, struct lac_run_ranks *ranks,
                          const struct asked *asked, struct lac_response *response)
{
    struct lac_error error = {0};
    const enum lac_status status = write_strips(app, &response->body, ranks, asked, &error);

    if (status != LAC_OK) {
        lac_run_ranks_fail(response, status, &error);
    }
}

void lac_api_run_strips(void *app_context, const struct lac_request *request,
                        struct lac_response *response)
{
    answer_window(app_context, request, response, "strips", answer_strips);
}

/* ---- one trace alone ---- */

/** When the device of a trace ran, by its analysis. @return false: the response says why */
static bool device_of(struct lac_trace_file *file, struct lac_response *response,
                      struct lac_strip_query *query, bool *ret_has_device)
{
    struct lac_kept_facts facts = {0};

    *ret_has_device = false;
    if (!lac_kept_facts_open(file, response, &facts)) {
        return false;
    }
    for (uint32_t d = 0; d < facts.analysis->device_count && !*ret_has_device; d++) {
        const struct lac_device_facts *device = &facts.analysis->devices[d];

        if (query->device < 0 || device->id == query->device) {
            *ret_has_device = true;
            query->device = device->id;
            query->first_ns = device->first_ns;
            query->end_ns = device->first_ns + device->span_ns;
        }
    }
    lac_kept_facts_close(file, &facts);
    return true;
}

/** Computing by what its kernels do, or null. */
static void write_kinds(struct lac_json *json, bool has_device, const struct asked *asked,
                        const struct lac_strip *strip)
{
    if (!has_device) {
        lac_json_null(json, "kinds");
        return;
    }
    lac_json_open(json, "kinds", '{');
    for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
        (void)write_parts(json, lac_strip_kind_name((enum lac_strip_kind)k), asked,
                          strip->kind_ns[k], 1);
    }
    lac_json_close(json, '}');
}

static void answer_strip(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    const int64_t duration_ns = lac_trace_file_head(file)->info.duration_ns;
    struct asked asked = {0};
    struct lac_strip_query query = {0};
    struct lac_strip strip = {0};
    struct lac_error error = {0};
    bool has_device = false;
    struct lac_json json;

    if (!read_window(request, response, -LAC_TIME_MAX_NS, duration_ns > 0 ? duration_ns : 1,
                     &asked) ||
        !lac_api_int(request, response, "device", -1, INT64_MAX, -1, &query.device) ||
        lac_api_is_unchanged(request, file, response) ||
        !device_of(file, response, &query, &has_device)) {
        return;
    }
    query.t0_ns = asked.t0_ns;
    query.t1_ns = asked.t1_ns;
    query.points = (uint32_t)asked.points;
    if (has_device && lac_strip_make(file, &query, &strip, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_int(&json, "duration_ns", duration_ns);
    lac_json_int(&json, "t0_ns", asked.t0_ns);
    lac_json_int(&json, "t1_ns", asked.t1_ns);
    lac_json_int(&json, "points", asked.points);
    write_device(&json, has_device, query.device, &asked, &strip);
    write_kinds(&json, has_device, &asked, &strip);
    lac_json_close(&json, '}');
    lac_strip_done(&strip);
}

void lac_api_strip(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_strip);
}

/* ---- where they met ---- */

/** A collective of the window, with how late its last rank was. */
struct met {
    uint64_t index;
    struct lac_collective_arrival arrival;
};

static int latest_first(const void *a, const void *b)
{
    const struct met *x = a;
    const struct met *y = b;
    const int order = LAC_ORDER(y->arrival.late_ns, x->arrival.late_ns);

    return order != 0 ? order : LAC_ORDER(x->index, y->index);
}

static int in_order(const void *a, const void *b)
{
    const struct met *x = a;
    const struct met *y = b;

    return LAC_ORDER(x->index, y->index);
}

/** Those that some rank was in during the window, `limit` of them: the latest, in order of time.
 *  @return how many are told. */
static uint64_t choose(const struct lac_ranks_alignment *alignment, const struct asked *asked,
                       int64_t shift_ns, struct met *met, uint64_t *ret_total)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < alignment->count; i++) {
        const struct lac_aligned_collective *it = &alignment->collectives[i];
        const int64_t end_ns = it->end_ns + shift_ns;
        int64_t longest_ns = 0;

        for (uint32_t e = 0; e < it->count; e++) {
            const struct lac_aligned_entry *entry = &alignment->entries[it->first + e];

            longest_ns = entry->end_ns - entry->start_ns > longest_ns
                             ? entry->end_ns - entry->start_ns
                             : longest_ns;
        }
        if (end_ns > asked->t0_ns && end_ns - longest_ns < asked->t1_ns) {
            met[count++] = (struct met){
                .index = i,
                .arrival = it->is_transfer ? (struct lac_collective_arrival){.last = LAC_NONE}
                                           : lac_collective_arrival_of(alignment, it)};
        }
    }
    *ret_total = count;
    if (count > (uint64_t)asked->limit) {
        qsort(met, count, sizeof(*met), latest_first);
        count = (uint64_t)asked->limit;
        qsort(met, count, sizeof(*met), in_order);
    }
    return count;
}

static void write_collective(struct lac_json *json, const struct lac_ranks_alignment *alignment,
                             const struct asked *asked, int64_t shift_ns, const struct met *met)
{
    const struct lac_aligned_collective *it = &alignment->collectives[met->index];
    const struct lac_aligned_entry *entries = alignment->entries + it->first;

    lac_json_open(json, NULL, '{');
    lac_json_uint(json, "index", met->index);
    lac_json_text(json, "kind", lac_collective_name((enum lac_collective_kind)it->kind));
    lac_json_text(json, "name", it->name);
    lac_json_int(json, "end_ns", it->end_ns + shift_ns);
    lac_json_open(json, "ranks", '[');
    for (uint32_t e = 0; e < it->count; e++) {
        lac_json_uint(json, NULL, entries[e].rank);
    }
    lac_json_close(json, ']');
    lac_json_open(json, "dur_ns", '[');
    for (uint32_t e = 0; e < it->count; e++) {
        lac_json_int(json, NULL, entries[e].end_ns - entries[e].start_ns);
    }
    lac_json_close(json, ']');
    lac_json_open(json, "start_ns", '[');
    for (uint32_t e = 0; e < it->count; e++) {
        lac_json_int(json, NULL, entries[e].start_ns + asked->clocks[entries[e].rank].offset_ns);
    }
    lac_json_close(json, ']');
    lac_api_write_id(json, "last", met->arrival.last);
    if (it->is_transfer) {
        lac_json_null(json, "late_ns");
    } else {
        lac_json_int(json, "late_ns", met->arrival.late_ns);
    }
    lac_json_close(json, '}');
}

static enum lac_status write_collectives(struct lac_buffer *out,
                                         const struct lac_ranks_alignment *alignment,
                                         const struct asked *asked)
{
    struct met *met = calloc((size_t)alignment->count + 1, sizeof(*met));
    int64_t shift_ns = 0;
    uint64_t total = 0;
    uint64_t count;
    struct lac_json json;

    if (met == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < alignment->rank_count; r++) {
        if (alignment->is_aligned[r]) {
            shift_ns = asked->clocks[r].offset_ns - alignment->offset_ns[r];
        }
    }
    count = choose(alignment, asked, shift_ns, met, &total);
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "total", total);
    lac_json_open(&json, "collectives", '[');
    for (uint64_t i = 0; i < count; i++) {
        write_collective(&json, alignment, asked, shift_ns, &met[i]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    free(met);
    return LAC_OK;
}

static void answer_collectives(struct lac_app *app, struct lac_run_ranks *ranks,
                               const struct asked *asked, struct lac_response *response)
{
    struct lac_ranks_alignment alignment = {0};
    struct lac_error error = {0};
    enum lac_status status;

    lac_document_cache_begin_work(app->documents);
    status = lac_run_ranks_align(ranks, &alignment, &error);
    if (status == LAC_OK) {
        status = write_collectives(&response->body, &alignment, asked);
    }
    if (status != LAC_OK) {
        lac_run_ranks_fail(response, status, &error);
    }
    lac_ranks_alignment_done(&alignment);
    lac_document_cache_end_work(app->documents);
}

void lac_api_run_collectives(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    answer_window(app_context, request, response, "collectives", answer_collectives);
}
