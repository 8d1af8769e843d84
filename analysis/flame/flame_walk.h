#ifndef LAC_ANALYSIS_FLAME_FLAME_WALK_H
#define LAC_ANALYSIS_FLAME_FLAME_WALK_H

/*
 * What the three metrics share: the area, which slices are frames, and the tree they fill.
 */

#include "analysis/flame/flame_stack.h"

#include <stdbool.h>

struct lac_flame_walk {
    const struct lac_model *model;
    enum lac_flame_by by;
    int64_t t0_ns, t1_ns;                /**< area, t1_ns > t0_ns */
    uint32_t frame_kinds;                /**< bit k: slices of kind k on threads are frames */
    bool is_profile;                     /**< of joined profiles, LAC_TRACK_PROFILE, in full */
    bool is_sampled;                     /**< Python's frames come from samples, LAC_TRACK_STACKS */
    const struct lac_flame_whole *whole; /**< of a model that is a part; or NULL */
    uint8_t *is_step;                    /**< by string id: names of steps, which are no frames */
    struct lac_flame_tree tree;
};

/** Part of [start, start + dur) inside the area, and whether a zero-length one is. */
static inline int64_t lac_flame_clip(const struct lac_flame_walk *walk, int64_t start_ns,
                                     int64_t dur_ns, bool *ret_inside)
{
    int64_t end_ns = start_ns + dur_ns;
    int64_t from = start_ns > walk->t0_ns ? start_ns : walk->t0_ns;
    int64_t to = end_ns < walk->t1_ns ? end_ns : walk->t1_ns;
    *ret_inside = to > from || (dur_ns == 0 && start_ns >= walk->t0_ns && start_ns < walk->t1_ns);
    return to > from ? to - from : 0;
}

/** Whether a slice of a thread is a frame. */
static inline bool lac_flame_is_frame(const struct lac_flame_walk *walk, uint64_t slice)
{
    return ((walk->frame_kinds >> walk->model->slices.kind[slice]) & 1u) != 0 &&
           walk->is_step[walk->model->slices.name[slice]] == 0;
}

/** One per metric. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_walk_gpu(struct lac_flame_walk *walk);
LAC_MUST_USE enum lac_status lac_flame_walk_waiting(struct lac_flame_walk *walk);
LAC_MUST_USE enum lac_status lac_flame_walk_cpu(struct lac_flame_walk *walk);

#endif
