#include "collector/inject/cupti_graphs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* LIMIT_SHARE: the share of time that records of kernels in graphs may cost. TRY_RATE: the rate
 * at which records of 4 us, the highest cost reported anywhere, would reach that share. */
static const double LIMIT_SHARE = 0.02;
static const double TRY_RATE = 5000;
/* ROUND_NS: longer than the differences between the steps of a job, and than what a buffer holds;
 * a change of mode is a change in a running job, so it takes half a minute of agreement. */
static const uint64_t ROUND_NS = 10 * 1000000000ull;
enum { LAUNCHES_MIN = 20, TRIAL_ROUNDS_MAX = 3, ROUNDS_AGREEING = 3 };

static struct lac_graph_known *find(struct lac_graphs *graphs, uint32_t graph)
{
    for (uint32_t i = 0; i < graphs->known_count; i++) {
        if (graphs->known[i].graph == graph) {
            return &graphs->known[i];
        }
    }
    if (graphs->known_count == LAC_GRAPHS_KNOWN_MAX) {
        return NULL;
    }
    graphs->known[graphs->known_count] = (struct lac_graph_known){.graph = graph};
    return &graphs->known[graphs->known_count++];
}

static void extend(struct lac_graphs *graphs, uint64_t start_ns, uint64_t end_ns)
{
    if (start_ns == 0 || end_ns < start_ns) {
        return; /* not finished */
    }
    graphs->first_ns =
        graphs->first_ns == 0 || start_ns < graphs->first_ns ? start_ns : graphs->first_ns;
    graphs->last_ns = end_ns > graphs->last_ns ? end_ns : graphs->last_ns;
}

static void close_launch(struct lac_graphs *graphs)
{
    struct lac_graph_known *const known =
        graphs->open_nodes > 0 ? find(graphs, graphs->open_graph) : NULL;

    if (known != NULL && graphs->open_end_ns >= graphs->open_start_ns) {
        known->node_launches++;
        known->nodes += graphs->open_nodes;
        known->node_span_ns += graphs->open_end_ns - graphs->open_start_ns;
    }
    graphs->open_nodes = 0;
}

void lac_graphs_node(struct lac_graphs *graphs, uint32_t graph, uint32_t correlation,
                     uint64_t start_ns, uint64_t end_ns)
{
    graphs->nodes++;
    extend(graphs, start_ns, end_ns);
    if (graphs->open_nodes > 0 &&
        (graphs->open_correlation != correlation || graphs->open_graph != graph)) {
        close_launch(graphs);
    }
    if (graphs->open_nodes == 0) {
        graphs->open_graph = graph;
        graphs->open_correlation = correlation;
        graphs->open_start_ns = start_ns;
        graphs->open_end_ns = end_ns;
    }
    graphs->open_nodes++;
    graphs->open_start_ns = start_ns < graphs->open_start_ns ? start_ns : graphs->open_start_ns;
    graphs->open_end_ns = end_ns > graphs->open_end_ns ? end_ns : graphs->open_end_ns;
}

/* Kernels in one launch of a graph; the average over all graphs if this one was never recorded
 * kernel by kernel. */
static double nodes_of(const struct lac_graphs *graphs, const struct lac_graph_known *known)
{
    uint64_t launches = 0;
    uint64_t nodes = 0;

    if (known != NULL && known->node_launches > 0) {
        return (double)known->nodes / (double)known->node_launches;
    }
    for (uint32_t i = 0; i < graphs->known_count; i++) {
        launches += graphs->known[i].node_launches;
        nodes += graphs->known[i].nodes;
    }
    return launches > 0 ? (double)nodes / (double)launches : 0;
}

void lac_graphs_whole(struct lac_graphs *graphs, uint32_t graph, uint64_t start_ns, uint64_t end_ns)
{
    struct lac_graph_known *const known = find(graphs, graph);

    extend(graphs, start_ns, end_ns);
    if (known != NULL && end_ns >= start_ns) {
        known->whole_launches++;
        known->whole_span_ns += end_ns - start_ns;
    }
    graphs->nodes_in_wholes += nodes_of(graphs, known);
}

void lac_graphs_spent(struct lac_graphs *graphs, uint64_t records, uint64_t cpu_ns)
{
    graphs->records += records;
    graphs->cpu_ns += cpu_ns;
}

/* What a record of one kernel costs the GPU: how much longer the same graphs take with them. False
 * as long as no graph was seen often enough both ways. */
static bool compare_ways(const struct lac_graphs *graphs, double *ret_ns_per_node)
{
    double longer_ns = 0;
    double nodes = 0;

    for (uint32_t i = 0; i < graphs->known_count; i++) {
        const struct lac_graph_known *const known = &graphs->known[i];

        if (known->node_launches >= LAUNCHES_MIN && known->whole_launches >= LAUNCHES_MIN) {
            longer_ns += (double)known->node_span_ns - (double)known->whole_span_ns *
                                                           (double)known->node_launches /
                                                           (double)known->whole_launches;
            nodes += (double)known->nodes;
        }
    }
    *ret_ns_per_node = nodes > 0 && longer_ns > 0 ? longer_ns / nodes : 0;
    return nodes > 0;
}

static bool can_be_tried(const struct lac_graphs *graphs)
{
    for (uint32_t i = 0; i < graphs->known_count; i++) {
        if (graphs->known[i].node_launches >= LAUNCHES_MIN) {
            return graphs->nodes_per_s >= TRY_RATE;
        }
    }
    return false;
}

/* Whether this round, after ROUNDS_AGREEING - 1 others, speaks for another mode. */
static bool agrees(struct lac_graphs *graphs, bool speaks)
{
    graphs->agreeing_rounds = speaks ? graphs->agreeing_rounds + 1 : 0;
    if (graphs->agreeing_rounds < ROUNDS_AGREEING) {
        return false;
    }
    graphs->agreeing_rounds = 0;
    return true;
}

static bool decide_mode(struct lac_graphs *graphs)
{
    const enum lac_graphs_mode before = graphs->mode;

    switch (before) {
    case LAC_GRAPHS_NODES:
        if (graphs->share <= LIMIT_SHARE && !graphs->was_tried && can_be_tried(graphs)) {
            graphs->mode = LAC_GRAPHS_TRIAL;
            graphs->trial_rounds = 0;
            graphs->agreeing_rounds = 0;
        } else if (agrees(graphs, graphs->share > LIMIT_SHARE)) {
            graphs->mode = LAC_GRAPHS_WHOLE;
        }
        return graphs->mode == LAC_GRAPHS_WHOLE;
    case LAC_GRAPHS_TRIAL:
        if (!compare_ways(graphs, &graphs->gpu_ns_per_node) &&
            ++graphs->trial_rounds < TRIAL_ROUNDS_MAX) {
            return false;
        }
        graphs->was_tried = true;
        graphs->ns_per_node += graphs->gpu_ns_per_node;
        graphs->share = graphs->nodes_per_s * graphs->ns_per_node / 1e9;
        graphs->mode = graphs->share > LIMIT_SHARE ? LAC_GRAPHS_WHOLE : LAC_GRAPHS_NODES;
        return true;
    case LAC_GRAPHS_WHOLE:
    default:
        if (agrees(graphs, graphs->share < LIMIT_SHARE / 2)) {
            graphs->mode = LAC_GRAPHS_NODES;
        }
        return graphs->mode == LAC_GRAPHS_NODES;
    }
}

bool lac_graphs_decide(struct lac_graphs *graphs)
{
    const uint64_t span_ns = graphs->last_ns - graphs->first_ns;
    bool is_news;

    if (graphs->first_ns == 0 || span_ns < ROUND_NS) {
        return false;
    }
    /* too few records to say what one costs: keep the cost measured before */
    if (graphs->records >= 1000) {
        graphs->ns_per_node =
            (double)graphs->cpu_ns / (double)graphs->records + graphs->gpu_ns_per_node;
    }
    graphs->nodes_per_s = ((double)graphs->nodes + graphs->nodes_in_wholes) * 1e9 / (double)span_ns;
    graphs->share = graphs->nodes_per_s * graphs->ns_per_node / 1e9;
    is_news = decide_mode(graphs);
    graphs->records = 0;
    graphs->cpu_ns = 0;
    graphs->nodes = 0;
    graphs->nodes_in_wholes = 0;
    graphs->first_ns = 0;
    graphs->last_ns = 0;
    return is_news;
}

int lac_graphs_explain(const struct lac_graphs *graphs, char *out, size_t capacity_bytes)
{
    return snprintf(out, capacity_bytes,
                    "%.0f kernels per second in CUDA graphs; one record each, at %.2f us, %s "
                    "%.1f %% of the time (limit %.0f %%): %s",
                    graphs->nodes_per_s, graphs->ns_per_node / 1e3,
                    graphs->mode == LAC_GRAPHS_WHOLE ? "would take" : "takes", graphs->share * 100,
                    LIMIT_SHARE * 100,
                    graphs->mode == LAC_GRAPHS_WHOLE
                        ? "graph launches are recorded as a whole, without their kernels"
                        : "kernels in graphs are recorded one by one");
}
