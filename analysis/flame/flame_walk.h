#ifndef LAC_ANALYSIS_FLAME_FLAME_WALK_H
#define LAC_ANALYSIS_FLAME_FLAME_WALK_H

/*
 * What the metrics share: the area, which slices are frames, and the tree they fill.
 */

#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_stack.h"
#include "collector/base/order.h"

#include <stdbool.h>

/** By slice: what it is to the metric's walk. Kept from one model to the next. */
struct lac_flame_frames_of {
    uint32_t *of;
    uint64_t capacity;
};

struct lac_flame_walk {
    const struct lac_model *model;
    const struct lac_flame_options *options;
    enum lac_flame_by by;
    int64_t t0_ns, t1_ns;               /**< area, t1_ns > t0_ns */
    const struct lac_flame_span *spans; /**< the time in it that counts: at least one */
    uint32_t span_count;
    uint32_t frame_kinds;                /**< bit k: slices of kind k on threads are frames */
    bool is_profile;                     /**< of joined profiles, LAC_TRACK_PROFILE, in full */
    bool is_sampled;                     /**< Python's frames come from samples, LAC_TRACK_STACKS */
    const struct lac_flame_whole *whole; /**< of a model that is a part; or NULL */
    const uint8_t *names;                /**< by string id: enum lac_flame_name */
    struct lac_flame_tree *tree;
    uint32_t piece_count; /**< of idle time, that have a number */
    struct lac_flame_frames_of *frames;
    struct lac_flame_line *line; /**< in the order of time: what was given, else NULL */
};

/** What a name says. */
enum lac_flame_name {
    LAC_FLAME_NAME_STEP = 1,   /**< of a step, which is no frame */
    LAC_FLAME_NAME_MODULE = 2, /**< of a module of the model, where it is one of Python */
};

/** The first span that ends after t_ns, or span_count. */
static inline uint32_t lac_flame_span_after(const struct lac_flame_walk *walk, int64_t t_ns)
{
    uint32_t low = 0;
    LAC_BISECT(low, walk->span_count, middle, walk->spans[middle].end_ns <= t_ns);
    return low;
}

/** Time of [start, start + dur) that counts, and whether a zero-length one does. */
static inline int64_t lac_flame_clip(const struct lac_flame_walk *walk, int64_t start_ns,
                                     int64_t dur_ns, bool *ret_inside)
{
    int64_t end_ns = start_ns + dur_ns;
    int64_t sum_ns = 0;
    *ret_inside = false;
    for (uint32_t i = lac_flame_span_after(walk, start_ns);
         i < walk->span_count && walk->spans[i].start_ns < end_ns + (dur_ns == 0); i++) {
        int64_t from = start_ns > walk->spans[i].start_ns ? start_ns : walk->spans[i].start_ns;
        int64_t to = end_ns < walk->spans[i].end_ns ? end_ns : walk->spans[i].end_ns;
        *ret_inside = true;
        sum_ns += to - from;
    }
    return sum_ns;
}

/** Whether a slice of a thread is a frame. */
static inline bool lac_flame_is_frame(const struct lac_flame_walk *walk, uint64_t slice)
{
    const uint8_t kind = walk->model->slices.kind[slice];
    const uint8_t name = walk->names[walk->model->slices.name[slice]];
    return ((walk->frame_kinds >> kind) & 1u) != 0 && (name & LAC_FLAME_NAME_STEP) == 0 &&
           (walk->by != LAC_FLAME_BY_MODULE || kind != LAC_SLICE_PYTHON ||
            (name & LAC_FLAME_NAME_MODULE) != 0);
}

/** The slices of a thread, and between them the modules whose backward pass it runs, by start. */
struct lac_flame_slices {
    uint64_t next, end;                   /**< of the thread */
    uint64_t next_backward, end_backward; /**< of its LAC_TRACK_BACKWARD, which come first */
    int64_t backward_ns;                  /**< when the next of those begins, INT64_MAX: none */
};

/** @param track LAC_NONE: no slices @return those of it, the modules only where they are frames */
static inline struct lac_flame_slices lac_flame_slices_of(const struct lac_flame_walk *walk,
                                                          uint32_t track)
{
    const struct lac_model *model = walk->model;
    const bool has_modules = track != LAC_NONE && walk->by == LAC_FLAME_BY_MODULE;
    const uint32_t backward = has_modules ? lac_model_backward_of(model, track) : LAC_NONE;
    struct lac_flame_slices slices = {.backward_ns = INT64_MAX};
    if (track != LAC_NONE) {
        slices.next = model->tracks[track].first;
        slices.end = slices.next + model->tracks[track].count;
    }
    if (backward != LAC_NONE && model->tracks[backward].count > 0) {
        slices.next_backward = model->tracks[backward].first;
        slices.end_backward = slices.next_backward + model->tracks[backward].count;
        slices.backward_ns = model->slices.start_ns[slices.next_backward];
    }
    return slices;
}

static inline bool lac_flame_has_slice(const struct lac_flame_slices *slices)
{
    return slices->next != slices->end || slices->backward_ns != INT64_MAX;
}

/** The next one; there is one. */
static inline uint64_t lac_flame_next_slice(const struct lac_flame_walk *walk,
                                            struct lac_flame_slices *slices, bool *ret_is_backward)
{
    const int64_t *start_ns = walk->model->slices.start_ns;
    /* mostly there are none: then the start, which not every walk needs, is not read */
    if (slices->next != slices->end &&
        (slices->backward_ns == INT64_MAX || start_ns[slices->next] < slices->backward_ns)) {
        *ret_is_backward = false;
        return slices->next++;
    }
    const uint64_t slice = slices->next_backward++;
    slices->backward_ns =
        slices->next_backward < slices->end_backward ? start_ns[slices->next_backward] : INT64_MAX;
    *ret_is_backward = true;
    return slice;
}

/** The kind of a frame: that of the slice, of a module the same as in the forward pass. */
static inline uint8_t lac_flame_kind(const struct lac_flame_walk *walk, uint64_t slice,
                                     bool is_backward)
{
    if (!is_backward) {
        return walk->model->slices.kind[slice];
    }
    const uint8_t name = walk->names[walk->model->slices.name[slice]];
    return (name & LAC_FLAME_NAME_MODULE) != 0 ? LAC_SLICE_PYTHON : LAC_SLICE_RANGE;
}

/** Put time down to a frame. @return LAC_OK; in the order of time LAC_ERR_NOMEM, LAC_ERR_LIMIT, too */
static inline enum lac_status lac_flame_give(struct lac_flame_walk *walk, uint32_t frame,
                                             int64_t start_ns, int64_t length_ns)
{
    int64_t *self_ns = &walk->tree->frames[frame].self_ns;
    *self_ns = lac_flame_plus(*self_ns, length_ns);
    return walk->line == NULL ? LAC_OK : lac_flame_line_add(walk->line, frame, start_ns, length_ns);
}

/** One per metric. @return as lac_flame_create() */
LAC_MUST_USE enum lac_status lac_flame_walk_gpu(struct lac_flame_walk *walk);
LAC_MUST_USE enum lac_status lac_flame_walk_waiting(struct lac_flame_walk *walk);
LAC_MUST_USE enum lac_status lac_flame_walk_cpu(struct lac_flame_walk *walk);
LAC_MUST_USE enum lac_status lac_flame_walk_memory(struct lac_flame_walk *walk);

#endif
