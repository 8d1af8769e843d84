#ifndef LAC_COLLECTOR_INJECT_CUPTI_GRAPHS_H
#define LAC_COLLECTOR_INJECT_CUPTI_GRAPHS_H

/*
 * CUDA graphs: a record for every kernel in them, or one for a whole launch? Records of kernels say
 * more and cost more, and how much differs from job to job, so it is measured:
 *
 *           TRY_RATE records per second         records x cost of one > LIMIT_SHARE
 *   NODES ------------------------------> TRIAL ------------------------------> WHOLE
 *    ^  ^                                   | otherwise                           |
 *    |  +-----------------------------------+                                     |
 *    +-------------- records would cost less than half of LIMIT_SHARE -----------+
 *
 * TRIAL records whole launches for a moment, to measure how much faster the graphs then run.
 *
 * Cost of one record: what the GPU loses by it (the trial), and the CPU time that CUPTI and we
 * spend on it. Pure: no clock is read and CUPTI is not called here. The caller keeps others out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_GRAPHS_KNOWN_MAX = 64 };

enum lac_graphs_mode { LAC_GRAPHS_NODES, LAC_GRAPHS_TRIAL, LAC_GRAPHS_WHOLE };

struct lac_graph_known {
    uint32_t graph;
    uint64_t node_launches; /**< seen kernel by kernel */
    uint64_t nodes;         /**< kernels in these */
    uint64_t node_span_ns;  /**< from their first kernel to the end of their last */
    uint64_t whole_launches;
    uint64_t whole_span_ns;
};

struct lac_graphs {
    enum lac_graphs_mode mode;
    struct lac_graph_known known[LAC_GRAPHS_KNOWN_MAX];
    uint32_t known_count;
    /* the launch that the last kernel belonged to */
    uint32_t open_graph;
    uint32_t open_correlation;
    uint64_t open_nodes;
    uint64_t open_start_ns;
    uint64_t open_end_ns;
    /* since the last round */
    uint64_t records;       /**< of any kind */
    uint64_t cpu_ns;        /**< spent on reading them */
    uint64_t nodes;         /**< kernels in graphs, recorded */
    double nodes_in_wholes; /**< kernels in launches that were recorded whole, as far as known */
    uint64_t first_ns;      /**< start of the first of them, by their own times; 0 none */
    uint64_t last_ns;       /**< end of the last one */
    unsigned trial_rounds;
    unsigned agreeing_rounds; /**< in a row that spoke for another mode */
    bool was_tried;
    double gpu_ns_per_node; /**< what the GPU loses by one record; 0 before the trial */
    /* of the last decision, for the sentence */
    double nodes_per_s;
    double ns_per_node;
    double share;
};

/** A kernel that a graph launched. */
void lac_graphs_node(struct lac_graphs *graphs, uint32_t graph, uint32_t correlation,
                     uint64_t start_ns, uint64_t end_ns);
/** A launch that was recorded as a whole. */
void lac_graphs_whole(struct lac_graphs *graphs, uint32_t graph, uint64_t start_ns,
                      uint64_t end_ns);
/** `records` of any kind took `cpu_ns` of CPU time. */
void lac_graphs_spent(struct lac_graphs *graphs, uint64_t records, uint64_t cpu_ns);

/**
 * Look at what came since the last round; call it as often as records come. Rates go by the times
 * of the records, for buffers come whole and late: a round ends when the records span ROUND_NS, and
 * the mode changes when ROUNDS_AGREEING of them in a row say so.
 *
 * @return true when the mode has changed for good, or a trial ended where it began: worth saying
 */
bool lac_graphs_decide(struct lac_graphs *graphs);

/** The reason for the current mode, one sentence; returns its length as snprintf does. */
int lac_graphs_explain(const struct lac_graphs *graphs, char *out, size_t capacity_bytes);

#endif
