#ifndef LAC_ANALYSIS_FLAME_FLAME_H
#define LAC_ANALYSIS_FLAME_FLAME_H

/*
 * Flame graphs: stacks merged into a tree, weighted in ns (MEMORY: in bytes).
 *
 *   LAC_FLAME_GPU      each kernel, copy and memset under the host slices that enclosed its launch,
 *                      and under the module that annotations of a CUDA graph name
 *   LAC_FLAME_WAITING  each piece of idle time (LAC_SLICE_GAP) under its cause and what the thread
 *                      that launched the operation which ended it was in at that time
 *   LAC_FLAME_CPU      self time of host slices under their parents, threads added up; not the recorder's
 *                      own row, nor threads that only wait for others
 *   LAC_FLAME_COPIES   of LAC_FLAME_GPU the copies alone
 *   LAC_FLAME_MEMORY   bytes of GPU memory that were allocated, under the host slices that enclosed the
 *                      allocation; releases take nothing off
 *   LAC_FLAME_PROFILE  profiles without times that were joined to the trace (LAC_TRACK_PROFILE):
 *                      all of them, whatever the area
 *
 * Ranges of the training steps themselves (ProfilerStep#17, or whatever the derived step track
 * names) are not frames: the steps would never merge. Operations whose launch was not recorded are
 * directly under the root.
 *
 * The model must carry the derived tracks (lac_diagnose_add_tracks) for WAITING and for per-step.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_flame_metric {
    LAC_FLAME_GPU = 0,
    LAC_FLAME_WAITING,
    LAC_FLAME_CPU,
    LAC_FLAME_PROFILE,
    LAC_FLAME_COPIES,
    LAC_FLAME_MEMORY,
};

/** Which host slices make the frames between root and leaf. */
enum lac_flame_by {
    LAC_FLAME_BY_OP = 0, /**< operators, ranges and intervals of unknown kind, then the kernel */
    LAC_FLAME_BY_RANGE,  /**< user annotations and NVTX ranges only, then the kernel */
    LAC_FLAME_BY_KERNEL, /**< the kernel (or cause, or host slice) alone */
    LAC_FLAME_BY_PYTHON, /**< Python functions, and what BY_OP has */
    LAC_FLAME_BY_MODULE, /**< modules of the model ("nn.Module: ..."), those of the backward pass
                            around "backward", and what BY_RANGE has */
    /* but of the GPU's time and copies, BY_OP and BY_PYTHON: API calls and overheads too */
};

/** How siblings lie beside each other, and which frames of a name are one. */
enum lac_flame_order {
    LAC_FLAME_ORDER_VALUE = 0, /**< all under one parent are one, the widest first */
    /** Only those that follow each other directly are one, in the order of time. Threads and devices
     *  come one after another, streams together. What is too narrow is summed in its place. A count
     *  is one of uninterrupted pieces (GPU: operations). */
    LAC_FLAME_ORDER_TIME,
};

/** [start_ns, end_ns), start_ns < end_ns */
struct lac_flame_span {
    int64_t start_ns, end_ns;
};

/** Pieces of time that a graph in the order of time is made of, at most: 24 bytes each. */
enum { LAC_FLAME_PIECES_MAX = 1 << 22 };

/** What only all slices of a trace tell, for a model that holds a part of them. */
struct lac_flame_whole {
    const uint8_t *is_left_out; /**< by track: 1 for threads without time of their own */
    bool is_sampled;            /**< lac_flame_is_sampled() of the whole */
};

struct lac_flame_options {
    enum lac_flame_metric metric;
    enum lac_flame_by by;
    enum lac_flame_order order;
    int64_t t0_ns, t1_ns; /**< area; t1_ns <= t0_ns: the whole trace. Intervals are clipped to it */
    const struct lac_flame_span
        *spans;               /**< ascending, not overlapping, inside the area: of it, only
                                           time in these counts */
    uint32_t span_count;      /**< 0: all of the area */
    const uint8_t *is_chosen; /**< by track, 1: its time counts. GPU and COPIES ask streams, WAITING
                                 rows of gaps, CPU and MEMORY threads (of samples, too, those of the
                                 thread); NULL: all */
    double prune_fraction;    /**< frames below this share of the total are summed as "... n more";
                                0.0005 */
    uint32_t node_count_max;  /**< hard bound of the tree (at least 2); 0: 20,000 */
    const struct lac_flame_whole *whole; /**< NULL: the model has all slices of its trace */
    int64_t
        counted_from_ns; /**< GPU and CPU: what began before gives its time and no count, because
                                it was counted in another area (flame_sum.h); 0: all counts */
};

/** A frame. Children of a node are contiguous, ordered by (-value_ns, name). Node 0 is the root. */
struct lac_flame_node {
    uint32_t name; /**< string id of the model; LAC_NONE for a "... n more" node */
    uint32_t parent;
    uint32_t first_child; /**< valid when child_count > 0 */
    uint32_t child_count;
    /** Operations (GPU, COPIES), allocations (MEMORY), gaps that touch the frame (WAITING; once for
     *  each thread that steps of one are put down to) or slices of the frame itself (CPU); for
     *  "... n more": frames summed. */
    uint64_t count;
    int64_t value_ns; /**< inclusive */
    int64_t self_ns;  /**< value minus children */
    uint8_t kind;     /**< enum lac_slice_kind of the frame */
};

struct lac_flame {
    struct lac_flame_node *nodes;
    uint32_t node_count;
    uint32_t step_count; /**< steps that overlap the area; 0 when the trace has none */
};

/**
 * Merge. Every ns of the metric inside the area is in exactly one frame's self_ns.
 *
 * @param ret_flame on LAC_OK the graph, which the caller destroys
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT: more than LAC_FLAME_PIECES_MAX for the order of time
 * Cost: O(slices of the tracks concerned); memory: 4 bytes per slice (GPU), plus the tree; in the
 * order of time 24 bytes a piece, and n log n of them.
 */
LAC_MUST_USE enum lac_status lac_flame_create(const struct lac_model *model,
                                              const struct lac_flame_options *options,
                                              struct lac_flame **ret_flame);

/** Whether it weighs what streams ran: GPU, COPIES. */
static inline bool lac_flame_is_of_streams(enum lac_flame_metric metric)
{
    return metric == LAC_FLAME_GPU || metric == LAC_FLAME_COPIES;
}

/** Whether it weighs what threads did: CPU, MEMORY. */
static inline bool lac_flame_is_of_threads(enum lac_flame_metric metric)
{
    return metric == LAC_FLAME_CPU || metric == LAC_FLAME_MEMORY;
}

/** Bits of enum lac_slice_kind: which slices of threads may be frames. */
uint32_t lac_flame_frame_kinds(const struct lac_flame_options *options);

/** Whether stacks of Python were sampled: then functions that were recorded are no frames. */
bool lac_flame_is_sampled(const struct lac_model *model);

/** Whether the time of a row counts: for rows of samples, whether that of their thread does. */
bool lac_flame_counts(const struct lac_flame_options *options, const struct lac_model *model,
                      uint32_t track);

/** The row of samples of the thread of that row, or LAC_NONE. O(tracks). */
uint32_t lac_flame_stacks_of(const struct lac_model *model, uint32_t thread);

/** NULL is allowed. */
void lac_flame_destroy(struct lac_flame *flame);

#endif
