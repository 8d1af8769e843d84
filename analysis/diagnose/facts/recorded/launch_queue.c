/* Launched and not begun: at each moment the launching calls that have begun, less the operations
 * that have. Both are sorted on their own, so no pair of them is ever kept. */

#include "analysis/diagnose/facts/recorded/launch_queue.h"

#include "analysis/model/strings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char counter_name[] = "work launched, not begun";

enum { DEVICES_MAX = 64 };

/** When work of one device was launched, and when it began. */
struct queue {
    int64_t device;
    uint32_t process; /**< that launched the first of it */
    uint64_t count;
    int64_t *launched_ns;
    int64_t *begun_ns;
    int64_t *scratch_ns;
};

/** Samples as they are made. */
struct samples {
    int64_t *ts_ns;
    double *values;
    uint64_t count;
    int64_t part_ns; /**< 0: each change is kept */
    int64_t last_ns; /**< of the part that is open */
    int64_t most_ns;
    int64_t last, most;
    bool is_open;
};

static bool has_counter(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER &&
            strstr(lac_model_str(model, model->tracks[t].name), counter_name) != NULL) {
            return true;
        }
    }
    return false;
}

uint32_t lac_launch_call(const struct lac_model *model, uint64_t slice)
{
    const uint8_t kind = model->slices.kind[slice];
    const uint32_t link = model->slices.link[slice];

    if ((kind != LAC_SLICE_KERNEL && kind != LAC_SLICE_COPY && kind != LAC_SLICE_MEMSET) ||
        link == LAC_NONE || link >= model->slices.count ||
        model->slices.start_ns[link] > model->slices.start_ns[slice]) {
        return LAC_NONE;
    }
    return link;
}

/** Count the device's launched work, and write it down once there is room for it. */
static void collect(const struct lac_model *model, struct queue *queue)
{
    queue->count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_STREAM || track->device != queue->device) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            const uint32_t launch = lac_launch_call(model, s);

            if (launch == LAC_NONE) {
                continue;
            }
            if (queue->launched_ns != NULL) {
                queue->launched_ns[queue->count] = model->slices.start_ns[launch];
                queue->begun_ns[queue->count] = model->slices.start_ns[s];
            } else if (queue->count == 0) {
                queue->process = model->tracks[lac_model_track_of(model, launch)].process;
            }
            queue->count++;
        }
    }
}

/** One past the ascending run that begins at `first`. */
static uint64_t end_of_run(const int64_t *times_ns, uint64_t first, uint64_t count)
{
    uint64_t end = first;

    while (end < count && (end == first || times_ns[end - 1] <= times_ns[end])) {
        end++;
    }
    return end;
}

/** Merge two ascending runs of `from`, [first, middle) and [middle, end), into `to`. */
static void merge(const int64_t *from, uint64_t first, uint64_t middle, uint64_t end, int64_t *to)
{
    uint64_t a = first;
    uint64_t b = middle;

    for (uint64_t i = first; i < end; i++) {
        to[i] = b == end || (a < middle && from[a] <= from[b]) ? from[a++] : from[b++];
    }
}

/** Those of one stream ascend, mostly, so neighboring runs are merged until there is one. */
static void sort_times(int64_t *times_ns, int64_t *scratch_ns, uint64_t count)
{
    int64_t *from = times_ns;
    int64_t *to = scratch_ns;

    while (end_of_run(from, 0, count) < count) {
        int64_t *const swap = from;

        for (uint64_t first = 0, end = 0; first < count; first = end) {
            const uint64_t middle = end_of_run(from, first, count);

            end = end_of_run(from, middle, count);
            merge(from, first, middle, end, to);
        }
        from = to;
        to = swap;
    }
    if (from != times_ns) {
        memcpy(times_ns, from, count * sizeof(*times_ns));
    }
}

static void put(struct samples *samples, int64_t ts_ns, int64_t depth)
{
    samples->ts_ns[samples->count] = ts_ns;
    samples->values[samples->count++] = (double)depth;
}

static void close_part(struct samples *samples)
{
    if (samples->is_open && samples->most_ns != samples->last_ns) {
        put(samples, samples->most_ns, samples->most);
    }
    if (samples->is_open) {
        put(samples, samples->last_ns, samples->last);
    }
    samples->is_open = false;
}

static void add_depth(struct samples *samples, int64_t ts_ns, int64_t depth)
{
    if (samples->part_ns == 0) {
        put(samples, ts_ns, depth);
        return;
    }
    if (samples->is_open && ts_ns / samples->part_ns != samples->last_ns / samples->part_ns) {
        close_part(samples);
    }
    if (!samples->is_open || depth > samples->most) {
        samples->most = depth;
        samples->most_ns = ts_ns;
    }
    samples->last = depth;
    samples->last_ns = ts_ns;
    samples->is_open = true;
}

/** One sample for each time at which something was launched or begun. */
static void sum_up(const struct queue *queue, struct samples *samples)
{
    int64_t depth = 0;

    for (uint64_t l = 0, b = 0; b < queue->count;) {
        int64_t now_ns = queue->begun_ns[b];

        if (l < queue->count && queue->launched_ns[l] < now_ns) {
            now_ns = queue->launched_ns[l];
        }
        for (; l < queue->count && queue->launched_ns[l] == now_ns; l++) {
            depth++;
        }
        for (; b < queue->count && queue->begun_ns[b] == now_ns; b++) {
            depth--;
        }
        add_depth(samples, now_ns, depth);
    }
    close_part(samples);
}

static enum lac_status append(struct lac_model *model, struct queue *queue, uint64_t exact_max)
{
    const uint64_t changes = 2 * queue->count;
    const bool is_exact = changes <= exact_max;
    const uint64_t room = (is_exact ? changes : exact_max + 2) + 1;
    struct samples samples = {.ts_ns = malloc(room * sizeof(int64_t)),
                              .values = malloc(room * sizeof(double))};
    struct lac_track track = {.process = queue->process, .sort_index = -996};
    enum lac_status status =
        samples.ts_ns != NULL && samples.values != NULL ? LAC_OK : LAC_ERR_NOMEM;

    if (!status) {
        char name[96];
        const int length =
            snprintf(name, sizeof(name), "GPU %lld: %s", (long long)queue->device, counter_name);

        status = lac_strings_intern(&model->strings, name, (size_t)length, &track.name);
    }
    if (!status) {
        sort_times(queue->launched_ns, queue->scratch_ns, queue->count);
        sort_times(queue->begun_ns, queue->scratch_ns, queue->count);
        /* the last time is in the last part */
        if (!is_exact) {
            samples.part_ns = queue->begun_ns[queue->count - 1] / (int64_t)(exact_max / 2) + 1;
        }
        if (queue->launched_ns[0] > 0) {
            put(&samples, 0, 0);
        }
        sum_up(queue, &samples);
        status = lac_model_add_counter(model, &track, samples.ts_ns, samples.values, samples.count);
    }
    free(samples.ts_ns);
    free(samples.values);
    return status;
}

static enum lac_status add_of_device(struct lac_model *model, int64_t device, uint64_t exact_max)
{
    struct queue queue = {.device = device, .process = LAC_NONE};
    enum lac_status status = LAC_OK;

    collect(model, &queue);
    if (queue.count == 0 || queue.process == LAC_NONE) {
        return LAC_OK;
    }
    queue.launched_ns = calloc(queue.count, sizeof(*queue.launched_ns));
    queue.begun_ns = calloc(queue.count, sizeof(*queue.begun_ns));
    queue.scratch_ns = malloc(queue.count * sizeof(*queue.scratch_ns));
    if (queue.launched_ns == NULL || queue.begun_ns == NULL || queue.scratch_ns == NULL) {
        status = LAC_ERR_NOMEM;
    } else {
        collect(model, &queue);
        status = append(model, &queue, exact_max);
    }
    free(queue.launched_ns);
    free(queue.begun_ns);
    free(queue.scratch_ns);
    return status;
}

enum lac_status lac_launch_queue_add_within(struct lac_model *model, uint64_t exact_max)
{
    enum lac_status status = LAC_OK;

    if (has_counter(model)) {
        return LAC_OK;
    }
    for (uint32_t d = 0; d < model->device_count && d < DEVICES_MAX && !status; d++) {
        status = add_of_device(model, model->devices[d].id, exact_max);
    }
    return status;
}

enum lac_status lac_launch_queue_add(struct lac_model *model)
{
    return lac_launch_queue_add_within(model, LAC_LAUNCH_QUEUE_EXACT_MAX);
}
