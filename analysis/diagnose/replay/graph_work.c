/* The host's own work: how long each stretch of it is, without waiting, and what it is for. */

#include "analysis/diagnose/replay/graph_build.h"

#include <stdint.h>
#include <stdlib.h>

enum { SEGMENTS_MAX = 1 << 17 }; /* for the usual time between two calls */

/** When an ordinal's operation started or ended as recorded; far back when it is not there. */
static int64_t recorded_ns(const struct lac_graph *graph, int32_t ordinal, bool is_end)
{
    const struct lac_graph_op *op = lac_graph_op_at(graph, ordinal);
    if (op == NULL) {
        return INT64_MIN;
    }
    return is_end ? op->end_ns : op->start_ns;
}

static bool is_begin(const struct lac_node *node)
{
    return node->kind == LAC_NODE_CALL || node->kind == LAC_NODE_WAIT || node->kind == LAC_NODE_END;
}

/** The usual work between two calls: what dispatching takes. */
static enum lac_status usual_segment(const struct lac_graph *graph, double *ret_ns)
{
    double *values = malloc(SEGMENTS_MAX * sizeof(*values));
    uint32_t count = 0;
    if (values == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t n = 0; n < graph->node_count && count < SEGMENTS_MAX; n++) {
        const struct lac_node *node = &graph->nodes[n];
        if (node->kind == LAC_NODE_CALL && node->before != LAC_NONE) {
            values[count++] = (double)(node->at_ns - graph->nodes[node->before].at_ns);
        }
    }
    double usual_ns = lac_graph_median(values, count, 0.0);
    *ret_ns = usual_ns < LAUNCH_BRIDGE_NS ? usual_ns : LAUNCH_BRIDGE_NS;
    free(values);
    return LAC_OK;
}

/** Whether a call is the first launch of its kernel and takes as long as loading
 *  its module does. */
static bool loads_module(const struct lac_graph_builder *builder, const struct lac_graph_call *call)
{
    const struct lac_facts *facts = builder->facts;
    if (call->api_class != LAC_API_LAUNCH || call->last_op == LAC_NONE ||
        call->end_ns - call->start_ns < FIRST_LAUNCH_MIN_NS) {
        return false;
    }
    uint32_t slice = builder->graph->ops[call->last_op].slice;
    if (facts->model->slices.kind[slice] != LAC_SLICE_KERNEL) {
        return false;
    }
    uint32_t row = facts->kernel_row[facts->model->slices.name[slice]];
    return row != LAC_NONE && facts->analysis->kernels[row].first_slice == slice;
}

/** Whether a call launched a conversion: without those it is not made. */
static bool launches_layout(const struct lac_graph_builder *builder,
                            const struct lac_graph_call *call)
{
    return call->api_class == LAC_API_LAUNCH && call->last_op != LAC_NONE &&
           builder->graph->ops[call->last_op].op_class == LAC_OP_LAYOUT;
}

/** The work inside a call, by what the call does. */
static void name_call_work(const struct lac_graph_builder *builder, struct lac_node *node)
{
    const struct lac_graph_call *call = &builder->calls[node->of];
    double own_ns = node->own_ns;
    switch ((enum lac_api_class)call->api_class) {
    case LAC_API_LAUNCH:
    case LAC_API_COPY:
    case LAC_API_WAIT_EVENT:
        if (loads_module(builder, call)) {
            node->cause = LAC_CAUSE_MODULE_LOAD;
        } else if (node->wait == LAC_WAIT_NONE) {
            node->launch_ns = (float)(own_ns < QUEUE_FULL_MIN_NS ? own_ns : LAUNCH_USUAL_NS);
            node->is_of_layout = launches_layout(builder, call);
        }
        return;
    case LAC_API_ALLOC:
        node->cause = LAC_CAUSE_ALLOCATOR;
        return;
    case LAC_API_MODULE:
        node->cause = LAC_CAUSE_MODULE_LOAD;
        return;
    case LAC_API_OTHER:
    case LAC_API_SYNC:
    case LAC_API_QUERY:
    case LAC_API_COPY_BLOCKING:
    case LAC_API_CLASS_COUNT_:
        break;
    }
}

static void name_work(const struct lac_graph_builder *builder, struct lac_node *node,
                      double usual_ns, bool is_in_wait)
{
    const struct lac_graph *graph = builder->graph;
    if (is_in_wait || node->kind == LAC_NODE_TAKEN) {
        node->cause = LAC_CAUSE_DATA_WAIT;
    } else if (node->kind == LAC_NODE_RETURN) {
        name_call_work(builder, node);
    } else {
        bool is_short = node->own_ns <= LAUNCH_BRIDGE_NS;
        bool is_work = node->before != LAC_NONE && node->kind == LAC_NODE_CALL;
        const struct lac_node *before = is_work ? &graph->nodes[node->before] : NULL;
        bool is_after_wait = before != NULL && before->kind == LAC_NODE_RETURN &&
                             (before->wait == LAC_WAIT_SYNC || before->wait == LAC_WAIT_ALLOC);
        if (is_after_wait && before->wait == LAC_WAIT_SYNC) {
            node->cause = LAC_CAUSE_SYNC;
        }
        if (is_work) {
            double launch_ns = is_short && !is_after_wait ? node->own_ns : usual_ns;
            node->launch_ns = (float)(launch_ns < node->own_ns ? launch_ns : node->own_ns);
        }
    }
}

/** Marks the host's work in the optimizer. */
static void mark_optimizer(const struct lac_facts *facts, struct lac_graph *graph)
{
    const struct lac_marks *marks = &facts->optimizer_marks;
    uint64_t next = 0;
    int64_t end_ns = INT64_MIN;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct lac_node *node = &graph->nodes[n];
        while (next < marks->count && marks->at[next].start_ns < node->at_ns + graph->start_ns) {
            int64_t ended_ns = marks->at[next].start_ns + marks->at[next].dur_ns;
            end_ns = ended_ns > end_ns ? ended_ns : end_ns;
            next++;
        }
        node->in_optimizer = node->at_ns + graph->start_ns <= end_ns;
    }
}

enum lac_status lac_graph_work(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    mark_optimizer(builder->facts, graph);
    double usual_ns = 0.0;
    enum lac_status status = usual_segment(graph, &usual_ns);
    uint32_t waiting = 0; /* waits for batches under way */
    for (uint32_t n = 0; n < graph->node_count && !status; n++) {
        struct lac_node *node = &graph->nodes[n];
        if (node->kind == LAC_NODE_OP) {
            continue;
        }
        int64_t from_ns = node->before == LAC_NONE ? 0 : graph->nodes[node->before].at_ns;
        int64_t waited_ns = is_begin(node) ? INT64_MIN : recorded_ns(graph, node->waits, true);
        int64_t room_ns = is_begin(node) ? INT64_MIN : recorded_ns(graph, node->makes_room, false);
        from_ns = waited_ns > from_ns ? waited_ns : from_ns;
        from_ns = room_ns > from_ns ? room_ns : from_ns;
        /* below 0 where clocks differ: it returned before what it waited for had ended */
        node->own_ns = (double)(node->at_ns - from_ns);
        name_work(builder, node, usual_ns, waiting > 0);
        waiting += node->kind == LAC_NODE_WAIT;
        waiting -= node->kind == LAC_NODE_TAKEN && waiting > 0;
    }
    return status;
}
