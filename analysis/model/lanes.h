#ifndef LAC_ANALYSIS_MODEL_LANES_H
#define LAC_ANALYSIS_MODEL_LANES_H

/*
 * Lanes: the depth in its track at which a slice is drawn. Private to analysis/model.
 *
 * A set keeps the end of the last slice of each lane. Ends only grow, which keeps the summaries
 * of blocks of lanes cheap: a track with tens of thousands of overlapping slices stays linear.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_LANE_BLOCK = 256, LAC_LANE_BLOCKS = 256 };

struct lac_lane_set {
    int64_t *end_ns;
    uint32_t capacity; /**< of end_ns */
    uint32_t count;    /**< lanes in use */
    int64_t block_max_ns[LAC_LANE_BLOCKS];
    int64_t block_min_ns[LAC_LANE_BLOCKS]; /**< over the lanes in use */
};

/** @param lanes_max lanes that a track may come to need: its slices, where it has no lanes yet.
 *         Of more than LAC_LANE_MAX + 1 there is room for as many. */
LAC_MUST_USE enum lac_status lac_lane_set_init(struct lac_lane_set *set, uint64_t lanes_max);
void lac_lane_set_done(struct lac_lane_set *set);
void lac_lane_set_clear(struct lac_lane_set *set);

/** Highest lane whose slice ends at or after `end_ns`, or -1. */
int32_t lac_lane_set_enclosing(const struct lac_lane_set *set, int64_t end_ns);

/** Put [start, end) of a slice into the lane and return it. */
uint32_t lac_lane_set_place(struct lac_lane_set *set, int64_t start_ns, int64_t end_ns,
                            bool nested);

/** Set `end_ns` of a lane chosen by the caller, below `lanes_max`. */
void lac_lane_set_put(struct lac_lane_set *set, uint32_t lane, int64_t end_ns);

/** The most lanes that a track of the model has. */
uint32_t lac_lanes_most(const struct lac_model *model);

/** Whether slices of such a track go below the slices that contain them. */
bool lac_lanes_are_nested(enum lac_track_kind kind);

/**
 * Lay the lanes of `count` slices in order.
 *
 * @return the number of lanes; `*overflow_count` grows by the slices that found no free lane and
 *         went to LAC_LANE_MAX on top of another
 */
uint32_t lac_lanes_lay(struct lac_lane_set *set, bool nested, const int64_t *start_ns,
                       const int64_t *dur_ns, uint16_t *lane, uint64_t count,
                       uint64_t *overflow_count);

#endif
