#ifndef LAC_ANALYSIS_FLAME_FLAME_TIME_H
#define LAC_ANALYSIS_FLAME_FLAME_TIME_H

/*
 * Assigns pieces of time to the slices of one thread: every ns of a piece goes to the innermost
 * slice (the one that began last) open at that moment.
 */

#include "analysis/flame/flame_walk.h"

/** A piece of time and the frame it belongs under. */
struct lac_flame_piece {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t base;
    uint32_t id; /**< different for every piece of a walk */
};

struct lac_flame_pieces {
    const struct lac_flame_piece *at; /**< ascending, not overlapping */
    uint64_t count;
    bool keep_outside; /**< time in no slice stays with the base; false: it is dropped */
};

/**
 * @param track        LAC_NONE: time in no slice only
 * @param count_slices count each slice that lies in a piece, on its own frame; otherwise each
 *                     piece counts once on every frame it touches
 * @return LAC_OK or LAC_ERR_NOMEM. Cost: O(slices of the track + pieces + pairs that overlap).
 */
LAC_MUST_USE enum lac_status lac_flame_time(struct lac_flame_walk *walk, uint32_t track,
                                            const struct lac_flame_pieces *pieces,
                                            bool count_slices);

#endif
