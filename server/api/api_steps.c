/* Steps over a whole recording, as a chart needs them: so many points, each with what its steps
 * waited for. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { POINTS_DEFAULT = 400, POINTS_MAX = 2000 };
/** What counts as a gap in an analysis. */
#define LONG_GAP_NS 10000

/** Ascending intervals that do not overlap, with the idle time in each, by cause. */
struct waits {
    const int64_t *start_ns;
    const int64_t *end_ns;
    int64_t (*cause_ns)[LAC_CAUSE_COUNT_];
    uint32_t count;
    uint32_t at; /**< the first that may hold the next gap */
};

/** The part of a gap that lies in each interval, its causes in proportion. */
static void add_to(struct waits *waits, const struct lac_gap_row *gap)
{
    const int64_t gap_end_ns = gap->start_ns + gap->dur_ns;

    while (waits->at < waits->count && waits->end_ns[waits->at] <= gap->start_ns) {
        waits->at++;
    }
    for (uint32_t i = waits->at; i < waits->count && waits->start_ns[i] < gap_end_ns; i++) {
        const int64_t from_ns =
            gap->start_ns > waits->start_ns[i] ? gap->start_ns : waits->start_ns[i];
        const int64_t to_ns = gap_end_ns < waits->end_ns[i] ? gap_end_ns : waits->end_ns[i];
        const double part = (double)(to_ns - from_ns) / (double)gap->dur_ns;

        for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
            waits->cause_ns[i][c] += (int64_t)((double)gap->cause_ns[c] * part);
        }
    }
}

struct both_waits {
    struct waits *steps, *bins;
};

static bool add_gap(void *context, const struct lac_gap_row *gap)
{
    const struct both_waits *both = context;

    add_to(both->steps, gap);
    add_to(both->bins, gap);
    return true;
}

/** All long gaps of a device, in order, into both lists of intervals. */
static enum lac_status add_gaps(struct lac_trace_file *file, int64_t device, struct waits *steps,
                                struct waits *bins, struct lac_error *reterr)
{
    const struct lac_gap_query query = {
        .device = device, .min_ns = LONG_GAP_NS, .sort = LAC_GAP_SORT_START};
    struct both_waits both = {steps, bins};

    return lac_trace_file_each_gap(file, &query, add_gap, &both, reterr);
}

/** A list a cause that there is any of: ns in each interval. */
static void write_waits(struct lac_json *json, const char *key, const struct waits *waits)
{
    lac_json_open(json, key, '{');
    for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
        bool is_there = false;

        for (uint32_t i = 0; i < waits->count && !is_there; i++) {
            is_there = waits->cause_ns[i][c] > 0;
        }
        if (is_there) {
            lac_json_open(json, lac_cause_name((enum lac_cause)c), '[');
            for (uint32_t i = 0; i < waits->count; i++) {
                lac_json_int(json, NULL, waits->cause_ns[i][c]);
            }
            lac_json_close(json, ']');
        }
    }
    lac_json_close(json, '}');
}

/** The points of a reply: `per` steps each, but for the last one. */
struct points {
    int64_t *start_ns, *end_ns, *mean_ns, *max_ns;
    int64_t *bin_start_ns, *bin_end_ns;
    struct waits steps, bins;
    uint32_t count, per, step_count;
    int64_t bin_ns;
    int64_t *numbers; /**< what the six lists point into */
};

static void points_done(struct points *points)
{
    free(points->numbers);
    free(points->steps.cause_ns);
    free(points->bins.cause_ns);
}

static void group_steps(struct points *points, const struct lac_trace_steps *steps)
{
    for (uint32_t i = 0; i < points->count; i++) {
        const uint32_t first = i * points->per;
        const uint32_t end =
            first + points->per < steps->count ? first + points->per : steps->count;
        int64_t sum_ns = 0;

        points->start_ns[i] = steps->start_ns[first];
        points->end_ns[i] = steps->start_ns[end - 1] + steps->dur_ns[end - 1];
        for (uint32_t s = first; s < end; s++) {
            sum_ns += steps->dur_ns[s];
            if (steps->dur_ns[s] > points->max_ns[i]) {
                points->max_ns[i] = steps->dur_ns[s];
            }
        }
        points->mean_ns[i] = sum_ns / (int64_t)(end - first);
    }
}

static enum lac_status make_points(const struct lac_trace_file *file, uint32_t asked,
                                   struct points *points)
{
    const int64_t duration_ns = lac_trace_file_head(file)->info.duration_ns;
    struct lac_trace_steps steps = {0};

    lac_trace_file_steps(file, &steps);
    points->step_count = steps.count;
    points->per = steps.count / asked + (steps.count % asked != 0 ? 1 : 0);
    points->count = steps.count > 0 ? (steps.count + points->per - 1) / points->per : 0;
    points->bin_ns = duration_ns / (int64_t)asked + 1;
    points->numbers = calloc((size_t)points->count * 4 + (size_t)asked * 2 + 1, sizeof(int64_t));
    points->steps.cause_ns = calloc((size_t)points->count + 1, sizeof(int64_t[LAC_CAUSE_COUNT_]));
    points->bins.cause_ns = calloc((size_t)asked, sizeof(int64_t[LAC_CAUSE_COUNT_]));
    if (points->numbers == NULL || points->steps.cause_ns == NULL ||
        points->bins.cause_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    points->start_ns = points->numbers;
    points->end_ns = points->start_ns + points->count;
    points->mean_ns = points->end_ns + points->count;
    points->max_ns = points->mean_ns + points->count;
    points->bin_start_ns = points->max_ns + points->count;
    points->bin_end_ns = points->bin_start_ns + asked;
    group_steps(points, &steps);
    for (uint32_t i = 0; i < asked; i++) {
        points->bin_start_ns[i] = (int64_t)i * points->bin_ns;
        points->bin_end_ns[i] = points->bin_start_ns[i] + points->bin_ns;
    }
    points->steps.start_ns = points->start_ns;
    points->steps.end_ns = points->end_ns;
    points->steps.count = points->count;
    points->bins.start_ns = points->bin_start_ns;
    points->bins.end_ns = points->bin_end_ns;
    points->bins.count = asked;
    return LAC_OK;
}

static void write_list(struct lac_json *json, const char *key, const int64_t *numbers,
                       uint32_t count)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_int(json, NULL, numbers[i]);
    }
    lac_json_close(json, ']');
}

static void write_points(struct lac_json *json, const struct points *points, bool has_waits,
                         int64_t device)
{
    lac_json_open(json, NULL, '{');
    lac_json_uint(json, "count", points->step_count);
    lac_json_uint(json, "per", points->per);
    write_list(json, "start_ns", points->start_ns, points->count);
    write_list(json, "mean_ns", points->mean_ns, points->count);
    write_list(json, "max_ns", points->max_ns, points->count);
    if (has_waits) {
        lac_json_open(json, "waiting", '{');
        lac_json_int(json, "device", device);
        write_waits(json, "steps", &points->steps);
        lac_json_int(json, "bin_ns", points->bin_ns);
        write_waits(json, "bins", &points->bins);
        lac_json_close(json, '}');
    } else {
        lac_json_null(json, "waiting");
    }
    lac_json_close(json, '}');
}

static void answer_steps(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    static const char *const yes_no[] = {"no", "yes", NULL};
    const struct lac_model *head = lac_trace_file_head(file);
    const int waiting = lac_api_choice(request, response, "waiting", yes_no, 0);
    const int64_t first_device = head->device_count > 0 ? head->devices[0].id : 0;
    struct points points = {0};
    struct lac_error error = {0};
    struct lac_json json;
    enum lac_status status;
    int64_t asked;
    int64_t device;

    if (waiting < 0 ||
        !lac_api_int(request, response, "points", 1, POINTS_MAX, POINTS_DEFAULT, &asked) ||
        !lac_api_int(request, response, "device", 0, INT64_MAX, first_device, &device) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    status = make_points(file, (uint32_t)asked, &points);
    if (status == LAC_OK && waiting == 1 && head->device_count > 0) {
        status = add_gaps(file, device, &points.steps, &points.bins, &error);
    }
    if (status == LAC_OK) {
        lac_json_init(&json, &response->body);
        write_points(&json, &points, waiting == 1 && head->device_count > 0, device);
    } else if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for these points");
    } else {
        lac_api_fail(response, &error);
    }
    points_done(&points);
}

void lac_api_steps(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_steps);
}
