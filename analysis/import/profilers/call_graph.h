#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_CALL_GRAPH_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_CALL_GRAPH_H

/*
 * Stacks out of a call graph: of profilers that keep for each function what it cost with all that it
 * called, and for each of its callers the share of that, but no stacks. What a function cost is
 * divided among its callers as its cost in all is. A function that is on the stack already is not
 * entered again, and a branch below 1e-5 of the whole not followed: that stays with the caller. The
 * weights add up to those of the roots.
 */

#include "analysis/import/stacks/profile.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_CALL_NODES_MAX = 1 << 20, LAC_CALL_EDGES_MAX = 1 << 23 };

struct lac_call_node {
    uint32_t name; /**< string id */
    double total;  /**< with all that it called */
    double root;   /**< of it, in calls that no function of the file made */

    /* of lac_call_graph_weigh() */
    uint32_t edge_first, edge_count;
    bool is_open;
};

struct lac_call_edge {
    uint32_t caller, callee;
    double total; /**< of the callee in these calls */
};

/** Zero it, append, weigh, end. */
struct lac_call_graph {
    struct lac_call_node *nodes;
    struct lac_call_edge *edges;
    uint32_t node_count, node_capacity;
    uint32_t edge_count, edge_capacity;
    double least;   /**< branches below it are not followed */
    double scale;   /**< a weight is a cost times this, rounded */
    uint64_t looks; /**< at calls, so far */
};

/** @return LAC_OK, LAC_ERR_NOMEM or LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_call_graph_node(struct lac_call_graph *graph, uint32_t name,
                                                 uint32_t *ret_node);
/** Calls of a function by itself are left out. */
LAC_MUST_USE enum lac_status lac_call_graph_edge(struct lac_call_graph *graph, uint32_t caller,
                                                 uint32_t callee, double total);

/**
 * Weigh the stacks of one thread.
 *
 * @param all   what everything cost
 * @param scale of costs to weights
 * @return as lac_stacks_weigh(); not yet said in reterr
 * Cost: O(edges log edges), and at most 2e8 looks at calls.
 */
LAC_MUST_USE enum lac_status lac_call_graph_weigh(struct lac_call_graph *graph,
                                                  struct lac_profile *profile, double all,
                                                  double scale);

void lac_call_graph_done(struct lac_call_graph *graph);

#endif
