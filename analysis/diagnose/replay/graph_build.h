#ifndef LAC_ANALYSIS_DIAGNOSE_GRAPH_BUILD_H
#define LAC_ANALYSIS_DIAGNOSE_GRAPH_BUILD_H

/* Private to graph_*.c: a graph while it is built, in the order of these functions. */

#include "analysis/diagnose/replay/graph.h" // IWYU pragma: export

enum { LAC_GRAPH_KEPT_OPS_MAX = 4 * LAC_GRAPH_OPS_MAX };

/** A call of a host thread, or a wait for a batch. */
struct lac_graph_call {
    int64_t start_ns, end_ns; /**< since the window's start */
    uint32_t slice;
    uint32_t track;
    uint32_t last_op; /**< the last operation that it launched, or LAC_NONE */
    uint32_t batch;   /**< number of the wait, LAC_NONE: a call */
    uint32_t begin_node, end_node;
    uint8_t api_class; /**< enum lac_api_class */
};

struct lac_graph_builder {
    struct lac_facts *facts;
    struct lac_graph *graph;
    uint32_t process;
    struct lac_graph_call *calls; /**< calls by slice, then waits */
    uint32_t call_count, call_capacity;
    uint32_t api_count;  /**< calls without the waits */
    uint32_t *by_stream; /**< operations of a stream after another, by start */
    uint32_t *place;     /**< by operation: where it is in by_stream */
    uint32_t *begins;    /**< by stream: where it begins there; one more at the end */
    uint32_t *room;      /**< by stream: launches that may be ahead of it */
    bool is_too_large, is_usable;
};

/** graph_window.c: steps, calls and operations; is_usable says whether there are any. */
LAC_MUST_USE enum lac_status lac_graph_window(struct lac_graph_builder *builder);
/** graph_nodes.c: the host's points and operations in the order of time. */
LAC_MUST_USE enum lac_status lac_graph_nodes(struct lac_graph_builder *builder);
/** graph_streams.c: what operations wait for. */
LAC_MUST_USE enum lac_status lac_graph_streams(struct lac_graph_builder *builder);
/** graph_waits.c: what calls wait for. */
LAC_MUST_USE enum lac_status lac_graph_waits(struct lac_graph_builder *builder);
/** graph_work.c: the host's own work between what it waits for. */
LAC_MUST_USE enum lac_status lac_graph_work(struct lac_graph_builder *builder);
/** graph_loader.c: batches. */
LAC_MUST_USE enum lac_status lac_graph_loader(struct lac_graph_builder *builder);

/** Median of values, which it sorts; `otherwise` when there are none. */
double lac_graph_median(double *values, uint32_t count, double otherwise);

/** graph_edits.c: calls and operations of the window by their slices. */
LAC_MUST_USE enum lac_status lac_graph_places(struct lac_graph *graph);

/** graph_memo.c: NULL is allowed. */
LAC_MUST_USE enum lac_status lac_graph_memo_create(struct lac_graph_memo **ret_memo);
void lac_graph_memo_destroy(struct lac_graph_memo *memo);

#endif
