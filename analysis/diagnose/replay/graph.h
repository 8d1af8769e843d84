#ifndef LAC_ANALYSIS_DIAGNOSE_GRAPH_H
#define LAC_ANALYSIS_DIAGNOSE_GRAPH_H

/*
 * Private: what waits for what in the kept steps, and the steps played again with a change.
 *
 *   loader   fetch --> fetch (the worker's next)      asked for when a batch is taken, n x 2 ahead
 *                \_______________
 *   host    work --> call --> wait for a batch --> call --> synchronization --> step ends
 *                       \ launch, room in the queue ^             ^
 *   streams              operation --> operation ---' ------------' --> (events: other streams)
 *
 * A host's point is when the latest of what it waits for is there, plus its own work; an operation
 * starts when its launch arrived, its stream is free and what it depends on is done. The window is
 * played as a cycle, so that queues are as full as they would be in the long run; the mean step is
 * that of the later rounds. Waits for events whose event was not recorded are taken from the
 * operations that had ended when the waiting one began.
 *
 * Cost: 100 bytes a node, at most LAC_GRAPH_OPS_MAX operations; 20 ns a node and round.
 */

#include "analysis/diagnose/facts/facts.h"           // IWYU pragma: export
#include "analysis/diagnose/replay/what_if_replay.h" // IWYU pragma: export

enum {
    LAC_GRAPH_OPS_MAX = 40000,      /**< steps repeat: this many operations tell */
    LAC_GRAPH_CALLS_MAX = 120000,   /**< calls of the window */
    LAC_GRAPH_QUEUE_USUAL = 1024,   /**< launches that a stream holds before launching blocks */
    LAC_GRAPH_HAND_OVER_NS = 50000, /**< a thread silent for longer goes on when told to */
    LAC_GRAPH_DEPENDS_NS = 20000,   /**< begins this soon after another's end: waited for it */
    LAC_PREFETCH_FACTOR = 2,        /**< batches asked of each worker in advance, usually */
    LAC_PREFETCH_FACTOR_MAX = 64,
    LAC_GRAPH_NO_OP = INT32_MIN,
};

enum lac_node_kind {
    LAC_NODE_CALL = 0, /**< a call begins */
    LAC_NODE_RETURN,   /**< a call returns */
    LAC_NODE_WAIT,     /**< begins to wait for a batch */
    LAC_NODE_TAKEN,    /**< has the batch */
    LAC_NODE_OP,       /**< an operation, start and end */
    LAC_NODE_END,      /**< the window ends */
};

/** Why an operation is waited for, where a change can take the wait away. */
enum lac_node_wait {
    LAC_WAIT_NONE = 0,
    LAC_WAIT_SYNC,
    LAC_WAIT_COPY, /**< for a batch's copy to the device */
    LAC_WAIT_ALLOC,
    LAC_WAIT_OTHER,
};

/** A point of the host, or an operation, in the order of recorded time. */
struct lac_node {
    int64_t at_ns;      /**< since the window's start */
    double own_ns;      /**< work after the latest of what it waited for */
    float launch_ns;    /**< of it: dispatching and launching */
    uint32_t before;    /**< the host's point before it; LAC_NONE: the window's start */
    uint32_t slice;     /**< of the call or wait; LAC_NONE: an operation, the window's end */
    uint32_t track;     /**< of the host's thread, or LAC_NONE */
    uint32_t of;        /**< operation, call or batch, by kind */
    int32_t waits;      /**< ordinal of the operation that it waits for, or LAC_GRAPH_NO_OP */
    uint32_t all;       /**< one more than its row of tails: it waits for all streams; 0 none */
    int32_t makes_room; /**< ordinal of the operation whose start makes room for its launch */
    uint8_t kind;       /**< enum lac_node_kind */
    uint8_t cause;      /**< enum lac_cause of the work that is no launching */
    uint8_t wait;       /**< enum lac_node_wait */
    bool in_optimizer;  /**< the work before it lies in a range of the optimizer */
    bool is_of_layout;  /**< a call that launched a conversion returns */
};

/** An operation. Its ordinal is its place in the order of launches, from the window's first; before
 *  it negative ones, which a round takes from the round before. */
struct lac_graph_op {
    int64_t start_ns, end_ns; /**< since the window's start */
    int64_t launch_ns;        /**< when its launch began; its own start when not recorded */
    uint32_t slice;
    uint32_t call; /**< index of the call that launched it, or LAC_NONE */
    uint32_t node; /**< host's point that it follows, or LAC_NONE */
    uint32_t stream;
    int32_t before;                         /**< ordinal of the operation before it on its stream */
    int32_t depends;                        /**< ordinal of what it waits for on another stream */
    float latency_ns, pause_ns, depends_ns; /**< after launch, stream and dependency */
    float depends_part;                     /**< of the dependency that has to be done: 1 all */
    bool overlaps;    /**< starts before the one before it ends: pause counts from its start */
    uint8_t op_class; /**< enum lac_op_class */
};

/** A batch that the training process took inside the window. */
struct lac_graph_batch {
    double fetch_ns; /**< what it took its worker; without fetches, to follow the one before */
    double ready_ns; /**< recorded end of its fetch, since the window's start; NaN unknown */
    uint32_t begin_node, taken_node;
};

/** A slice and what stands for it in the graph. */
struct lac_graph_place {
    uint32_t slice;
    uint32_t at; /**< node or operation */
};

struct lac_graph_memo;

struct lac_graph {
    int64_t start_ns, end_ns; /**< the window, between the host's marks */
    int64_t recorded_ns;      /**< what its steps took */
    uint32_t step_count;      /**< steps in it, kept or not */
    uint32_t kept_count;

    struct lac_node *nodes;
    uint32_t node_count;
    struct lac_graph_op *ops; /**< ops[first] has ordinal 0 */
    uint32_t op_count, first;
    uint32_t stream_count;
    int32_t *tails; /**< rows of stream_count ordinals: what each stream held */
    uint32_t ops_per_step, copies_per_step;
    struct lac_graph_batch *batches;
    uint32_t batch_count;
    int32_t workers;          /**< as recorded; 0: in the training process */
    uint32_t prefetch_factor; /**< batches asked of each in advance */
    double pin_ns;            /**< a batch in the thread that pins those of all workers; 0 none */
    bool has_fetches;         /**< fetch_ns is a worker's time, not a pace */
    double hand_over_ns;      /**< from the end of a fetch to the training process */
    double take_ns;           /**< taking a batch that is there */
    double own_fetch_ns; /**< making one in the training process, where fetches were not recorded
                                   and that is known all the same; else 0 */
    double base_ns;      /**< the window played without a change */
    double base_free_ns; /**< the same, if every batch were there when it is asked for */
    double base_error;   /**< by what part that differs from what was recorded */

    struct lac_graph_place *returns; /**< calls that return in the window, by slice */
    struct lac_graph_place *places;  /**< its operations from ordinal 0 on, by slice */
    uint32_t return_count, place_count;
    struct lac_graph_memo *memo; /**< windows that were played */
};

/**
 * Build the graph of the kept steps.
 *
 * @param ret_graph NULL when the trace does not show who launched what, or too few steps
 */
LAC_MUST_USE enum lac_status lac_graph_build(struct lac_facts *facts, struct lac_graph **ret_graph);
void lac_graph_destroy(struct lac_graph *graph);

/** An ordinal's recorded operation; NULL when it was launched too long before the window. */
static inline const struct lac_graph_op *lac_graph_op_at(const struct lac_graph *graph,
                                                         int32_t ordinal)
{
    int64_t at = (int64_t)graph->first + ordinal;
    bool is_there = ordinal != LAC_GRAPH_NO_OP && at >= 0 && at < graph->op_count;
    return is_there ? &graph->ops[at] : NULL;
}

/** Time of the window with the change, in the long run; NaN when out of memory. Any number of threads
 *  may play at the same time. */
double lac_graph_replay(const struct lac_graph *graph, const struct lac_change *change);

/** The same, remembered: findings and the plan ask for the same windows again and again. */
double lac_graph_replay_once(const struct lac_graph *graph, const struct lac_change *change);

#endif
