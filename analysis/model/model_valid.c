/* The invariants of model.h as one yes or no. */

#include "analysis/model/lanes.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static bool is_gpu_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

/* (1): tracks in three stretches, each covering what it has without holes. */
static bool tracks_cover(const struct lac_model *model)
{
    uint64_t slices = 0;
    uint64_t samples = 0;
    bool counters = false;

    if (model->recorded_track_count > model->track_count) {
        return false;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_counter = track->kind == LAC_TRACK_COUNTER;
        uint64_t *next = is_counter ? &samples : &slices;

        if (track->first != *next || (uint32_t)track->kind >= LAC_TRACK_KIND_COUNT_) {
            return false;
        }
        if (track->process != LAC_NONE && track->process >= model->process_count) {
            return false;
        }
        if (t < model->recorded_track_count ? counters && !is_counter : is_counter) {
            return false;
        }
        counters = counters || is_counter;
        *next += track->count;
    }
    return slices == model->slices.count && samples == model->sample_count;
}

/* (2) and (3) */
static bool times_ascend(const struct lac_model *model, const struct lac_track *track)
{
    const int64_t *start = model->slices.start_ns;
    const int64_t *dur = model->slices.dur_ns;

    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        if (start[i] < 0 || dur[i] < 0 || start[i] > LAC_TIME_MAX_NS ||
            dur[i] > LAC_TIME_MAX_NS - start[i]) {
            return false;
        }
        if (i > track->first &&
            (start[i] < start[i - 1] || (start[i] == start[i - 1] && dur[i] > dur[i - 1]))) {
            return false;
        }
    }
    return true;
}

/* (4): no overlap inside a lane; on threads the lane is below all lanes that contain the slice. */
static bool lanes_hold(const struct lac_model *model, const struct lac_track *track,
                       struct lac_lane_set *set)
{
    const struct lac_slices *slices = &model->slices;

    lac_lane_set_clear(set);
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        int64_t start_ns = slices->start_ns[i];
        int64_t end_ns = start_ns + slices->dur_ns[i];
        uint32_t lane = slices->lane[i];

        if (lane >= track->lane_count) {
            return false;
        }
        if (track->kind == LAC_TRACK_THREAD && lane != LAC_LANE_MAX &&
            lac_lane_set_enclosing(set, end_ns > start_ns ? end_ns : start_ns + 1) >=
                (int32_t)lane) {
            return false;
        }
        if (slices->dur_ns[i] == 0) {
            continue;
        }
        if (lane < set->count && set->end_ns[lane] > start_ns && lane != LAC_LANE_MAX) {
            return false;
        }
        lac_lane_set_put(set, lane, end_ns);
    }
    return true;
}

static bool detail_is_valid(const struct lac_model *model, uint8_t kind, uint32_t detail)
{
    if (detail == LAC_NONE) {
        return true;
    }
    switch (kind) {
    case LAC_SLICE_KERNEL:
        return detail < model->kernel_config_count;
    case LAC_SLICE_COPY:
    case LAC_SLICE_MEMSET:
        return detail < model->copy_count;
    case LAC_SLICE_ALLOC:
        return detail < model->alloc_count;
    case LAC_SLICE_RANGE:
        return detail < model->loader_info_count;
    default:
        return true; /* the value itself: a return code */
    }
}

static bool configs_hold(const struct lac_model *model)
{
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        if (model->kernel_configs[i].module >= model->strings.count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < model->copy_count; i++) {
        if (model->copies[i].module >= model->strings.count) {
            return false;
        }
    }
    return true;
}

/* (5) and every reference into another table */
static bool references_hold(const struct lac_model *model, uint64_t slice)
{
    const struct lac_slices *s = &model->slices;
    uint32_t link = s->link[slice];

    if (s->name[slice] >= model->strings.count || s->args[slice] >= model->strings.count ||
        s->kind[slice] >= LAC_SLICE_KIND_COUNT_ ||
        !detail_is_valid(model, s->kind[slice], s->detail[slice]) ||
        s->arg_num[slice] > model->arg_number_count) {
        return false;
    }
    if (link == LAC_NONE) {
        return true;
    }
    if (link >= s->count) {
        return false;
    }
    if (is_gpu_work(s->kind[slice])) {
        return s->kind[link] == LAC_SLICE_API && s->link[link] != LAC_NONE;
    }
    return s->kind[slice] != LAC_SLICE_API || s->link[link] == slice;
}

static bool samples_hold(const struct lac_model *model, const struct lac_track *track)
{
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        int64_t ts_ns = model->sample_ts_ns[i];

        if (ts_ns < 0 || ts_ns > LAC_TIME_MAX_NS ||
            (i > track->first && ts_ns < model->sample_ts_ns[i - 1])) {
            return false;
        }
    }
    return true;
}

bool lac_model_is_valid(const struct lac_model *model)
{
    assert(model != NULL);
    struct lac_lane_set set;
    bool valid = tracks_cover(model) && configs_hold(model);

    if (!valid || lac_lane_set_init(&set, lac_lanes_most(model)) != LAC_OK) {
        return false;
    }
    for (uint32_t t = 0; t < model->track_count && valid; t++) {
        const struct lac_track *track = &model->tracks[t];

        valid = track->kind == LAC_TRACK_COUNTER
                    ? samples_hold(model, track)
                    : times_ascend(model, track) && lanes_hold(model, track, &set);
    }
    lac_lane_set_done(&set);
    for (uint64_t i = 0; i < model->slices.count && valid; i++) {
        valid = references_hold(model, i);
    }
    for (uint64_t i = 0; i < model->flow_count && valid; i++) {
        valid = model->flows[i].src < model->slices.count &&
                model->flows[i].dst < model->slices.count &&
                model->flows[i].name < model->strings.count &&
                (i == 0 || model->flows[i].src >= model->flows[i - 1].src);
    }
    for (uint32_t i = 1; i < model->device_count && valid; i++) {
        valid = model->devices[i].id > model->devices[i - 1].id;
    }
    return valid;
}
