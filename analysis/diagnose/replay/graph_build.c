/* The graph of the kept steps, part by part. */

#include "analysis/diagnose/replay/graph_build.h"

#include "analysis/crew/crew.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void lac_graph_destroy(struct lac_graph *graph)
{
    if (graph != NULL) {
        free(graph->nodes);
        free(graph->ops);
        free(graph->batches);
        free(graph->tails);
        free(graph->returns);
        free(graph->places);
        lac_graph_memo_destroy(graph->memo);
        free(graph);
    }
}

static void release(struct lac_graph_builder *builder)
{
    free(builder->calls);
    free(builder->by_stream);
    free(builder->place);
    free(builder->begins);
    free(builder->room);
}

static void count_per_step(struct lac_graph *graph)
{
    uint32_t copies = 0;
    for (uint32_t o = graph->first; o < graph->op_count; o++) {
        uint8_t op_class = graph->ops[o].op_class;
        copies += op_class == LAC_OP_COPY_PAGEABLE || op_class == LAC_OP_COPY_PINNED;
    }
    graph->ops_per_step = (graph->op_count - graph->first) / graph->step_count;
    graph->copies_per_step = (copies + graph->step_count / 2) / graph->step_count;
    graph->copies_per_step = graph->copies_per_step ? graph->copies_per_step : 1;
}

/** Batches are named by their number from here on, not by their wait. */
static void name_batches(const struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct lac_node *node = &graph->nodes[n];
        if (node->kind == LAC_NODE_WAIT || node->kind == LAC_NODE_TAKEN) {
            node->of = builder->calls[node->of].batch;
        }
    }
}

/** A window without a change, as it was and with every batch there in time. */
struct unchanged {
    const struct lac_graph *graph;
    double window_ns[2];
};

static void play_part(void *context, uint32_t part)
{
    struct unchanged *unchanged = context;
    struct lac_change none;
    lac_change_clear(&none);
    none.is_loader_free = part == 1;
    unchanged->window_ns[part] = lac_graph_replay_once(unchanged->graph, &none);
}

/** The window played without a change. */
static enum lac_status play_unchanged(const struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    struct unchanged unchanged = {.graph = graph};
    double recorded_ns =
        (double)(builder->facts->analysis->is_paced_by_device ? graph->recorded_ns
                                                              : graph->end_ns - graph->start_ns);
    lac_crew_run(builder->facts->crew, 2, play_part, &unchanged);
    graph->base_ns = unchanged.window_ns[0];
    graph->base_free_ns = unchanged.window_ns[1];
    if (isnan(graph->base_ns) || isnan(graph->base_free_ns)) {
        return LAC_ERR_NOMEM;
    }
    graph->base_error = graph->base_ns / recorded_ns - 1.0;
    return LAC_OK;
}

static enum lac_status build(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    enum lac_status status = lac_graph_window(builder);
    if (status || !builder->is_usable) {
        return status;
    }
    count_per_step(graph);
    status = lac_graph_nodes(builder);
    if (!status) {
        status = lac_graph_streams(builder);
    }
    if (!status) {
        status = lac_graph_waits(builder);
    }
    if (!status) {
        status = lac_graph_work(builder);
    }
    if (!status) {
        status = lac_graph_loader(builder);
    }
    if (!status) {
        status = lac_graph_places(graph);
    }
    if (!status) {
        status = lac_graph_memo_create(&graph->memo);
    }
    if (status) {
        return status;
    }
    name_batches(builder);
    return play_unchanged(builder);
}

enum lac_status lac_graph_build(struct lac_facts *facts, struct lac_graph **ret_graph)
{
    const struct lac_analysis *analysis = facts->analysis;
    *ret_graph = NULL;
    if (facts->main_host == LAC_NONE || analysis->main_device == LAC_NONE || !facts->has_api ||
        analysis->step_kept_count < GRAPH_STEPS_MIN) {
        return LAC_OK;
    }
    struct lac_graph *graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct lac_graph_builder builder = {
        .facts = facts, .graph = graph, .process = facts->hosts[facts->main_host].process};
    enum lac_status status = build(&builder);
    release(&builder);
    if (status || !builder.is_usable) {
        lac_graph_destroy(graph);
        return status;
    }
    *ret_graph = graph;
    return LAC_OK;
}
