#include "analysis/import/profilers/call_graph.h"

#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { DEPTH_MAX = 200 };

/* Calls that are looked at in all; beyond, cost stays with the caller. */
#define LOOKS_MAX ((uint64_t)200000000)

/* Below a share of the whole of this, a branch is not followed: its cost stays with its caller. */
static const double BRANCH_MIN = 1e-5;

enum lac_status lac_call_graph_node(struct lac_call_graph *graph, uint32_t name, uint32_t *ret_node)
{
    if (graph->node_count >= LAC_CALL_NODES_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(graph->nodes, graph->node_capacity, graph->node_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    *ret_node = graph->node_count;
    graph->nodes[graph->node_count++] = (struct lac_call_node){.name = name};
    return LAC_OK;
}

enum lac_status lac_call_graph_edge(struct lac_call_graph *graph, uint32_t caller, uint32_t callee,
                                    double total)
{
    if (caller == callee) {
        return LAC_OK;
    }
    if (graph->edge_count >= LAC_CALL_EDGES_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(graph->edges, graph->edge_capacity, graph->edge_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    graph->edges[graph->edge_count++] = (struct lac_call_edge){caller, callee, total};
    return LAC_OK;
}

static int by_caller(const void *a, const void *b)
{
    const struct lac_call_edge *x = a;
    const struct lac_call_edge *y = b;
    if (x->caller != y->caller) {
        return LAC_ORDER(x->caller, y->caller);
    }
    return x->callee != y->callee ? LAC_ORDER(x->callee, y->callee) : LAC_ORDER(x->total, y->total);
}

/* In order of callers; calls of one function by another become one. */
static void arrange(struct lac_call_graph *graph)
{
    uint32_t kept = 0;
    if (graph->edge_count > 1) {
        qsort(graph->edges, graph->edge_count, sizeof(*graph->edges), by_caller);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const struct lac_call_edge *edge = &graph->edges[e];
        struct lac_call_edge *last = kept > 0 ? &graph->edges[kept - 1] : NULL;
        if (last != NULL && last->caller == edge->caller && last->callee == edge->callee) {
            last->total += edge->total;
        } else {
            graph->edges[kept++] = *edge;
        }
    }
    graph->edge_count = kept;
    for (uint32_t e = 0; e < kept; e++) {
        struct lac_call_node *caller = &graph->nodes[graph->edges[e].caller];
        caller->edge_first = caller->edge_count == 0 ? e : caller->edge_first;
        caller->edge_count++;
    }
}

static enum lac_status weigh(const struct lac_call_graph *graph, struct lac_profile *profile,
                             uint32_t stack, double cost)
{
    const double weight = fmax(cost, 0.0) * graph->scale;
    if (!(weight < 9e15)) {
        return LAC_ERR_LIMIT;
    }
    const int64_t whole = (int64_t)llround(weight);
    return whole > 0 ? lac_stacks_weigh(profile->stacks, stack, whole, 0) : LAC_OK;
}

/* `cost`: of a function with all that it calls, below this stack. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status descend(struct lac_call_graph *graph, struct lac_profile *profile,
                               struct lac_call_node *node, uint32_t below, double cost,
                               uint32_t depth)
{
    const double share = node->total > 0.0 ? cost / node->total : 0.0;
    double left = cost;
    uint32_t stack = 0;
    enum lac_status status = lac_stacks_push(profile->stacks, below, node->name, &stack);
    node->is_open = true;
    graph->looks += node->edge_count;
    const bool is_leaf = depth >= DEPTH_MAX || graph->looks > LOOKS_MAX;
    for (uint32_t e = 0; e < node->edge_count && status == LAC_OK && !is_leaf; e++) {
        const struct lac_call_edge *edge = &graph->edges[node->edge_first + e];
        struct lac_call_node *callee = &graph->nodes[edge->callee];
        const double branch = fmin(edge->total * share, left);
        if (!callee->is_open && branch >= graph->least) {
            left -= branch;
            status = descend(graph, profile, callee, stack, branch, depth + 1);
        }
    }
    node->is_open = false;
    return status == LAC_OK ? weigh(graph, profile, stack, left) : status;
}

enum lac_status lac_call_graph_weigh(struct lac_call_graph *graph, struct lac_profile *profile,
                                     double all, double scale)
{
    uint32_t bottom = 0;
    enum lac_status status = lac_stacks_thread(profile->stacks, 0, 0, 0, 0, &bottom);
    arrange(graph);
    graph->scale = scale;
    graph->least = fmax(all * BRANCH_MIN, 1.0 / scale);
    for (uint32_t i = 0; i < graph->node_count && status == LAC_OK; i++) {
        struct lac_call_node *node = &graph->nodes[i];
        if (node->root > 0.0) {
            status = descend(graph, profile, node, bottom, node->root, 0);
        }
    }
    return status;
}

void lac_call_graph_done(struct lac_call_graph *graph)
{
    free(graph->nodes);
    free(graph->edges);
}
