#include "analysis/model/lanes.h"

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

enum lac_status lac_lane_set_init(struct lac_lane_set *set, uint64_t lanes_max)
{
    *set = (struct lac_lane_set){0};
    set->capacity = lanes_max > LAC_LANE_MAX ? LAC_LANE_MAX + 1 : (uint32_t)lanes_max + 1;
    set->end_ns = calloc(set->capacity, sizeof(*set->end_ns));
    return set->end_ns == NULL ? LAC_ERR_NOMEM : LAC_OK;
}

void lac_lane_set_done(struct lac_lane_set *set)
{
    free(set->end_ns);
    *set = (struct lac_lane_set){0};
}

void lac_lane_set_clear(struct lac_lane_set *set)
{
    set->count = 0;
}

int32_t lac_lane_set_enclosing(const struct lac_lane_set *set, int64_t end_ns)
{
    uint32_t lane = set->count;

    while (lane > 0) {
        uint32_t block = (lane - 1) / LAC_LANE_BLOCK;

        if (set->block_max_ns[block] < end_ns) {
            lane = block * LAC_LANE_BLOCK;
            continue;
        }
        lane--;
        if (set->end_ns[lane] >= end_ns) {
            return (int32_t)lane;
        }
    }
    return -1;
}

/* First lane from `lane` on that is free at `start_ns`; may be `count`, a new one. */
static uint32_t first_free(const struct lac_lane_set *set, uint32_t lane, int64_t start_ns)
{
    while (lane < set->count) {
        uint32_t block = lane / LAC_LANE_BLOCK;

        if (set->block_min_ns[block] > start_ns) {
            lane = (block + 1) * LAC_LANE_BLOCK;
            continue;
        }
        if (set->end_ns[lane] <= start_ns) {
            return lane;
        }
        lane++;
    }
    return set->count;
}

void lac_lane_set_put(struct lac_lane_set *set, uint32_t lane, int64_t end_ns)
{
    uint32_t block = lane / LAC_LANE_BLOCK;
    uint32_t first = block * LAC_LANE_BLOCK;
    uint32_t end = first + LAC_LANE_BLOCK;
    int64_t old_ns;

    assert(lane < set->capacity);
    while (set->count <= lane) { /* new lanes are free from the start of time */
        if (set->count % LAC_LANE_BLOCK == 0) {
            set->block_max_ns[set->count / LAC_LANE_BLOCK] = INT64_MIN;
            set->block_min_ns[set->count / LAC_LANE_BLOCK] = INT64_MAX;
        }
        set->end_ns[set->count] = INT64_MIN;
        set->block_min_ns[set->count / LAC_LANE_BLOCK] = INT64_MIN;
        set->count++;
    }
    old_ns = set->end_ns[lane];
    set->end_ns[lane] = end_ns;
    if (end_ns > set->block_max_ns[block]) {
        set->block_max_ns[block] = end_ns;
    }
    if (set->block_min_ns[block] != old_ns) {
        return;
    }
    /* A lower bound would do for few lanes; only full blocks are ever skipped whole. */
    if (set->count > first + 8) {
        int64_t min_ns = INT64_MAX;

        end = end < set->count ? end : set->count;
        for (uint32_t i = first; i < end; i++) {
            min_ns = set->end_ns[i] < min_ns ? set->end_ns[i] : min_ns;
        }
        set->block_min_ns[block] = min_ns;
    } else {
        set->block_min_ns[block] = INT64_MIN;
    }
}

uint32_t lac_lane_set_place(struct lac_lane_set *set, int64_t start_ns, int64_t end_ns, bool nested)
{
    uint32_t lane = 0;

    /* What only ends where a zero-length slice lies does not contain it: hence start + 1. */
    if (nested) {
        lane =
            (uint32_t)(lac_lane_set_enclosing(set, end_ns > start_ns ? end_ns : start_ns + 1) + 1);
    }
    lane = first_free(set, lane, start_ns);
    if (lane > LAC_LANE_MAX) {
        return LAC_LANE_MAX + 1;
    }
    lac_lane_set_put(set, lane, end_ns);
    return lane;
}

uint32_t lac_lanes_most(const struct lac_model *model)
{
    uint32_t most = 0;

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];

        most = track->lane_count > most ? track->lane_count : most;
    }
    return most;
}

bool lac_lanes_are_nested(enum lac_track_kind kind)
{
    return kind == LAC_TRACK_THREAD || kind == LAC_TRACK_GPU_RANGE || kind == LAC_TRACK_STACKS ||
           kind == LAC_TRACK_PROFILE || kind == LAC_TRACK_BACKWARD;
}

uint32_t lac_lanes_lay(struct lac_lane_set *set, bool nested, const int64_t *start_ns,
                       const int64_t *dur_ns, uint16_t *lane, uint64_t count,
                       uint64_t *overflow_count)
{
    lac_lane_set_clear(set);
    for (uint64_t i = 0; i < count; i++) {
        int64_t end_ns = start_ns[i] + dur_ns[i];
        uint32_t placed = lac_lane_set_place(set, start_ns[i], end_ns, nested);

        if (placed > LAC_LANE_MAX) {
            placed = LAC_LANE_MAX;
            ++*overflow_count;
        }
        lane[i] = (uint16_t)placed;
    }
    return count == 0 ? 0 : set->count;
}
