/* Host ranges on streams. A walk of each thread tells the innermost range of every call; the work
 * on a stream then stretches that range, and each range stretches the one around it. */

#include "analysis/diagnose/facts/recorded/projected_ranges.h"

#include "analysis/diagnose/facts/recorded/launch_queue.h"
#include "analysis/diagnose/facts/recorded/stream_rows.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A range of the host, and its work on the stream that is being looked at. */
struct range {
    uint32_t slice;
    uint32_t around; /**< the range that it lies in, which comes before it, or LAC_NONE */
    uint32_t stream; /**< track that the rest is of, or LAC_NONE */
    int64_t first_ns, end_ns;
    bool is_module;
    bool is_innermost;    /**< of the ranges around a launch, modules aside */
    bool is_looked_above; /**< the innermost range around this module is known */
};

struct projection {
    struct lac_model *model;
    bool has_recorded; /**< the recorder projected the innermost range of each launch */
    struct range *ranges;
    uint32_t range_count, range_capacity;
    uint32_t *inside;  /**< of each slice of a thread: the innermost range, or LAC_NONE */
    uint32_t *touched; /**< ranges with work on the stream */
    uint32_t touched_count, touched_capacity;
    uint64_t room; /**< slices that may still be appended */
};

static int64_t end_of(const struct lac_model *model, uint32_t slice)
{
    return model->slices.start_ns[slice] + model->slices.dur_ns[slice];
}

static bool is_module(const struct lac_model *model, uint64_t slice)
{
    return model->slices.kind[slice] == LAC_SLICE_PYTHON &&
           lac_is_module_name(lac_model_str(model, model->slices.name[slice]));
}

static bool is_projected(const struct lac_model *model, uint64_t slice)
{
    return model->slices.kind[slice] == LAC_SLICE_RANGE || is_module(model, slice);
}

static bool has_recorded(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_GPU_RANGE) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            if (model->slices.kind[s] == LAC_SLICE_GPU_RANGE) {
                return true;
            }
        }
    }
    return false;
}

/** Whether any slice of a thread is projected: most traces need no memory for it. */
static bool has_ranges(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_THREAD) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            if (is_projected(model, s)) {
                return true;
            }
        }
    }
    return false;
}

static void leave_ranges(const struct projection *projection, int64_t t_ns, uint32_t *open)
{
    while (*open != LAC_NONE &&
           end_of(projection->model, projection->ranges[*open].slice) <= t_ns) {
        *open = projection->ranges[*open].around;
    }
}

static enum lac_status enter_range(struct projection *projection, uint64_t s, bool of_module,
                                   uint32_t *open)
{
    const struct lac_model *model = projection->model;

    while (*open != LAC_NONE &&
           end_of(model, projection->ranges[*open].slice) < end_of(model, (uint32_t)s)) {
        *open = projection->ranges[*open].around;
    }
    if (!LAC_RESERVE(projection->ranges, projection->range_capacity, projection->range_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    projection->ranges[projection->range_count] = (struct range){
        .slice = (uint32_t)s, .around = *open, .stream = LAC_NONE, .is_module = of_module};
    *open = projection->range_count++;
    return LAC_OK;
}

/** The thread's slices, and the modules whose backward pass it runs. */
static enum lac_status walk_thread(struct projection *projection, uint32_t thread)
{
    const struct lac_model *model = projection->model;
    const struct lac_track *track = &model->tracks[thread];
    const uint32_t backward = lac_model_backward_of(model, thread);
    uint64_t next = backward != LAC_NONE ? model->tracks[backward].first : 0;
    const uint64_t end = backward != LAC_NONE ? next + model->tracks[backward].count : 0;
    enum lac_status status = LAC_OK;
    uint32_t open = LAC_NONE;

    for (uint64_t s = track->first; s < track->first + track->count && !status; s++) {
        const int64_t start_ns = model->slices.start_ns[s];

        for (; next < end && model->slices.start_ns[next] <= start_ns && !status; next++) {
            leave_ranges(projection, model->slices.start_ns[next], &open);
            status = enter_range(projection, next, true, &open);
        }
        leave_ranges(projection, start_ns, &open);
        if (is_projected(model, s) && !status) {
            status = enter_range(projection, s, is_module(model, s), &open);
        }
        projection->inside[s] = open;
    }
    return status;
}

/** The range and those around it, until one that has work on the stream already. */
static enum lac_status touch(struct projection *projection, uint32_t range, uint32_t stream)
{
    assert(projection->ranges != NULL);
    for (uint32_t r = range; r != LAC_NONE && projection->ranges[r].stream != stream;
         r = projection->ranges[r].around) {
        if (projection->touched_count == projection->room) {
            return LAC_ERR_LIMIT;
        }
        if (!LAC_RESERVE(projection->touched, projection->touched_capacity,
                         projection->touched_count, 1)) {
            return LAC_ERR_NOMEM;
        }
        projection->touched[projection->touched_count++] = r;
        struct range *touched = &projection->ranges[r];
        touched->stream = stream;
        touched->first_ns = INT64_MAX;
        touched->end_ns = 0;
        touched->is_innermost = false;
        touched->is_looked_above = false;
    }
    return LAC_OK;
}

/** Of a launch in `range`. Each module is passed once a stream. */
static void mark_innermost(struct projection *projection, uint32_t range)
{
    uint32_t r = range;

    while (r != LAC_NONE && projection->ranges[r].is_module &&
           !projection->ranges[r].is_looked_above) {
        projection->ranges[r].is_looked_above = true;
        r = projection->ranges[r].around;
    }
    if (r != LAC_NONE) {
        projection->ranges[r].is_innermost = true;
    }
}

static void stretch(struct range *range, int64_t first_ns, int64_t end_ns)
{
    range->first_ns = first_ns < range->first_ns ? first_ns : range->first_ns;
    range->end_ns = end_ns > range->end_ns ? end_ns : range->end_ns;
}

static enum lac_status walk_stream(struct projection *projection, uint32_t stream)
{
    const struct lac_model *model = projection->model;
    const struct lac_track *track = &model->tracks[stream];
    enum lac_status status = LAC_OK;

    projection->touched_count = 0;
    for (uint64_t s = track->first; s < track->first + track->count && !status; s++) {
        const uint32_t call = lac_launch_call(model, s);
        const uint32_t range = call != LAC_NONE ? projection->inside[call] : LAC_NONE;

        if (range == LAC_NONE) {
            continue;
        }
        status = touch(projection, range, stream);
        if (!status) {
            mark_innermost(projection, range);
            stretch(&projection->ranges[range], model->slices.start_ns[s],
                    end_of(model, (uint32_t)s));
        }
    }
    return status;
}

static int inner_first(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return LAC_ORDER(*y, *x);
}

/** Where many are touched they are collected in order, which is less than sorting them. */
static void put_inner_first(struct projection *projection, uint32_t stream)
{
    enum { SHARE = 8 };
    uint32_t count = 0;

    if (projection->touched_count < projection->range_count / SHARE) {
        qsort(projection->touched, projection->touched_count, sizeof(*projection->touched),
              inner_first);
        return;
    }
    for (uint32_t r = projection->range_count; r > 0; r--) {
        if (projection->ranges[r - 1].stream == stream) {
            projection->touched[count++] = r - 1;
        }
    }
}

/** The inner ones stretch the ones around them, so that these follow. */
static void stretch_outward(struct projection *projection, uint32_t stream)
{
    put_inner_first(projection, stream);
    for (uint32_t i = 0; i < projection->touched_count; i++) {
        const struct range *range = &projection->ranges[projection->touched[i]];

        if (range->around != LAC_NONE) {
            stretch(&projection->ranges[range->around], range->first_ns, range->end_ns);
        }
    }
}

/** Work mostly runs in the order of its ranges: then they are sorted as they come. */
static void sort(struct lac_derived_slice *slices, uint64_t count)
{
    uint64_t sorted = 1;

    while (sorted < count && lac_derived_slice_order(&slices[sorted - 1], &slices[sorted]) <= 0) {
        sorted++;
    }
    if (sorted < count) {
        qsort(slices, count, sizeof(*slices), lac_derived_slice_order);
    }
}

/** The ranges or the modules that have work on the stream. */
static enum lac_status append(struct projection *projection, uint32_t stream, bool are_modules)
{
    struct lac_model *model = projection->model;
    struct lac_track track = model->tracks[stream];
    struct lac_derived_slice *slices = malloc(projection->touched_count * sizeof(*slices));
    uint64_t count = 0;
    enum lac_status status = slices != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (uint32_t i = projection->touched_count; i > 0 && !status; i--) {
        const struct range *range = &projection->ranges[projection->touched[i - 1]];

        if (range->is_module == are_modules &&
            !(range->is_innermost && projection->has_recorded && !are_modules)) {
            slices[count++] = (struct lac_derived_slice){.start_ns = range->first_ns,
                                                         .dur_ns = range->end_ns - range->first_ns,
                                                         .name = model->slices.name[range->slice],
                                                         .link = range->slice,
                                                         .kind = LAC_SLICE_GPU_RANGE};
        }
    }
    if (count > 0) {
        const char *ranges = projection->has_recorded ? "outer ranges" : "ranges";

        sort(slices, count);
        track.kind = LAC_TRACK_GPU_RANGE;
        status = lac_stream_row_name(model, are_modules ? "modules" : ranges, &track, &track.name);
        status = status ? status : lac_model_add_track(model, &track, slices, count);
        projection->room -= count;
    }
    free(slices);
    return status;
}

static enum lac_status project(struct projection *projection)
{
    struct lac_model *model = projection->model;
    enum lac_status status = LAC_OK;

    projection->room = model->slices.count;
    projection->inside = malloc((size_t)model->slices.count * sizeof(*projection->inside));
    if (projection->inside == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(projection->inside, 0xff, (size_t)model->slices.count * sizeof(*projection->inside));
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        if (model->tracks[t].kind == LAC_TRACK_THREAD) {
            status = walk_thread(projection, t);
        }
    }
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        if (model->tracks[t].kind != LAC_TRACK_STREAM) {
            continue;
        }
        status = walk_stream(projection, t);
        if (!status && projection->touched_count > 0) {
            stretch_outward(projection, t);
            status = append(projection, t, false);
            status = status ? status : append(projection, t, true);
        }
    }
    free(projection->inside);
    free(projection->ranges);
    free(projection->touched);
    return status == LAC_ERR_LIMIT ? LAC_OK : status;
}

enum lac_status lac_projected_ranges_add(struct lac_model *model)
{
    struct projection projection = {.model = model, .has_recorded = has_recorded(model)};

    return has_ranges(model) ? project(&projection) : LAC_OK;
}
