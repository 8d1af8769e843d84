/* Edits of a change as factors on the graph's points and operations. */

#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void lac_graph_marks_done(struct lac_graph_marks *marks)
{
    free(marks->work);
    free(marks->is_unwaited);
    free(marks->factor);
    free(marks->node);
    free(marks->is_moved);
    free(marks->fetch);
    *marks = (struct lac_graph_marks){0};
}

/** What is gone of a stretch of the host's time that ended at a point: it may have been spent in
 *  the thread of the point before, which handed over. */
static double gone_ns(const struct lac_edits *edits, const struct lac_graph *graph,
                      const struct lac_node *node, int64_t from_ns)
{
    int64_t start_ns = graph->start_ns + from_ns;
    int64_t end_ns = graph->start_ns + node->at_ns;
    uint32_t before = node->before != LAC_NONE ? graph->nodes[node->before].track : node->track;
    uint32_t own = node->track != LAC_NONE ? node->track : before;
    double ns = own != LAC_NONE ? lac_edits_gone_ns(edits, own, start_ns, end_ns) : 0.0;
    if (before != own && before != LAC_NONE) {
        ns += lac_edits_gone_ns(edits, before, start_ns, end_ns);
    }
    return ns;
}

static float factor_of(double ns, double gone)
{
    return ns > 0.0 ? (float)fmax(0.0, 1.0 - gone / ns) : 1.0F;
}

static void mark_node(const struct lac_graph *graph, const struct lac_edits *edits, uint32_t n,
                      struct lac_graph_marks *marks)
{
    const struct lac_node *node = &graph->nodes[n];
    if (node->own_ns > 0.0 && edits->stretch_count > 0) {
        int64_t from_ns = node->at_ns - (int64_t)node->own_ns;
        marks->work[n] *= factor_of(node->own_ns, gone_ns(edits, graph, node, from_ns));
    }
    if (node->kind != LAC_NODE_RETURN || edits->mark_count == 0 ||
        lac_edits_mark(edits, node->slice, LAC_EDIT_NO_WAIT) == NULL) {
        return;
    }
    marks->is_unwaited[n] = true;
    if (node->waits == LAC_GRAPH_NO_OP && node->own_ns > LAUNCH_USUAL_NS) {
        /* for what is not known: then it only asks */
        marks->work[n] *= (float)(LAUNCH_USUAL_NS / node->own_ns);
    }
}

/** Index of the window's operation of a slice that comes before operation `o`, or LAC_NONE. */
static uint32_t earlier_operation(const struct lac_graph *graph, const uint32_t *by_slice,
                                  uint32_t slice, uint32_t o)
{
    uint32_t low = 0;
    uint32_t high = graph->op_count - graph->first;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (graph->ops[by_slice[middle]].slice < slice) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found =
        low < graph->op_count - graph->first && graph->ops[by_slice[low]].slice == slice;
    return is_found && by_slice[low] < o ? by_slice[low] : LAC_NONE;
}

static void mark_operation(const struct lac_graph *graph, const struct lac_edits *edits,
                           const uint32_t *by_slice, uint32_t o, struct lac_graph_marks *marks)
{
    uint32_t slice = graph->ops[o].slice;
    const struct lac_edit_mark *mark = lac_edits_mark(edits, slice, LAC_EDIT_OPERATION);
    if (mark != NULL) {
        marks->factor[o] *= mark->factor;
    }
    if (lac_edits_mark(edits, slice, LAC_EDIT_LAUNCHED) != NULL) {
        marks->node[o] = LAC_NONE;
    }
    mark = lac_edits_mark(edits, slice, LAC_EDIT_LAUNCHED_WITH);
    uint32_t earlier = mark != NULL ? earlier_operation(graph, by_slice, mark->with, o) : LAC_NONE;
    if (earlier != LAC_NONE && marks->node[o] != LAC_NONE) {
        marks->node[o] = marks->node[earlier];
        marks->is_moved[o] = true;
    }
}

struct by_slice {
    uint32_t slice, op;
};

static int compare_slices(const void *a, const void *b)
{
    const struct by_slice *x = a;
    const struct by_slice *y = b;
    return LAC_ORDER(x->slice, y->slice);
}

/** The window's operations by slice; the caller frees. */
static uint32_t *order_by_slice(const struct lac_graph *graph)
{
    uint32_t count = graph->op_count - graph->first;
    struct by_slice *order = malloc(((size_t)count + 1) * sizeof(*order));
    uint32_t *ops = malloc(((size_t)count + 1) * sizeof(*ops));
    if (order == NULL || ops == NULL) {
        free(order);
        free(ops);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = (struct by_slice){graph->ops[graph->first + i].slice, graph->first + i};
    }
    qsort(order, count, sizeof(*order), compare_slices);
    for (uint32_t i = 0; i < count; i++) {
        ops[i] = order[i].op;
    }
    free(order);
    return ops;
}

static enum lac_status prepare(const struct lac_graph *graph, struct lac_graph_marks *marks)
{
    size_t nodes = (size_t)graph->node_count + 1;
    size_t ops = (size_t)graph->op_count + 1;
    marks->work = malloc(nodes * sizeof(*marks->work));
    marks->is_unwaited = calloc(nodes, sizeof(*marks->is_unwaited));
    marks->factor = malloc(ops * sizeof(*marks->factor));
    marks->node = malloc(ops * sizeof(*marks->node));
    marks->is_moved = calloc(ops, sizeof(*marks->is_moved));
    marks->fetch = malloc(((size_t)graph->batch_count + 1) * sizeof(*marks->fetch));
    if (marks->work == NULL || marks->is_unwaited == NULL || marks->factor == NULL ||
        marks->node == NULL || marks->is_moved == NULL || marks->fetch == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        marks->work[n] = 1.0F;
    }
    for (uint32_t o = 0; o < graph->op_count; o++) {
        marks->factor[o] = 1.0F;
        marks->node[o] = graph->ops[o].node;
    }
    for (uint32_t b = 0; b < graph->batch_count; b++) {
        marks->fetch[b] = 1.0F;
    }
    return LAC_OK;
}

/** What is gone of making a batch in the training process is gone in a worker, too. */
static void mark_batches(const struct lac_graph *graph, const struct lac_edits *edits,
                         struct lac_graph_marks *marks)
{
    for (uint32_t b = 0; b < graph->batch_count && graph->workers == 0; b++) {
        const struct lac_node *begin = &graph->nodes[graph->batches[b].begin_node];
        const struct lac_node *taken = &graph->nodes[graph->batches[b].taken_node];
        double gone = lac_edits_gone_ns(edits, taken->track, graph->start_ns + begin->at_ns,
                                        graph->start_ns + taken->at_ns);
        marks->fetch[b] *= factor_of((double)(taken->at_ns - begin->at_ns), gone);
    }
}

enum lac_status lac_graph_mark(const struct lac_graph *graph, const struct lac_change *change,
                               struct lac_graph_marks *ret_marks)
{
    *ret_marks = (struct lac_graph_marks){0};
    if (change->edits_count == 0) {
        return LAC_OK;
    }
    enum lac_status status = prepare(graph, ret_marks);
    uint32_t *by_slice = status ? NULL : order_by_slice(graph);
    if (by_slice == NULL) {
        lac_graph_marks_done(ret_marks);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t e = 0; e < change->edits_count; e++) {
        const struct lac_edits *edits = change->edits[e];
        for (uint32_t n = 0; n < graph->node_count; n++) {
            if (graph->nodes[n].kind != LAC_NODE_OP) {
                mark_node(graph, edits, n, ret_marks);
            }
        }
        for (uint32_t o = graph->first; o < graph->op_count && edits->mark_count > 0; o++) {
            mark_operation(graph, edits, by_slice, o, ret_marks);
        }
        mark_batches(graph, edits, ret_marks);
    }
    free(by_slice);
    return LAC_OK;
}
