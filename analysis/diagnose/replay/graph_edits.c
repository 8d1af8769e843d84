/* Edits of a change as factors on the graph's points and operations. */

#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "analysis/diagnose/replay/graph_build.h"
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
static double gone_ns(const struct lac_edits *edits, struct lac_edits_cursor *cursor,
                      const struct lac_graph *graph, const struct lac_node *node, int64_t from_ns)
{
    int64_t start_ns = graph->start_ns + from_ns;
    int64_t end_ns = graph->start_ns + node->at_ns;
    uint32_t before = node->before != LAC_NONE ? graph->nodes[node->before].track : node->track;
    uint32_t own = node->track != LAC_NONE ? node->track : before;
    double ns = own != LAC_NONE ? lac_edits_gone_near(edits, cursor, own, start_ns, end_ns) : 0.0;
    if (before != own && before != LAC_NONE) {
        ns += lac_edits_gone_near(edits, cursor, before, start_ns, end_ns);
    }
    return ns;
}

static float factor_of(double ns, double gone)
{
    return ns > 0.0 ? (float)fmax(0.0, 1.0 - gone / ns) : 1.0F;
}

/** What is gone of the work of each point. */
static void mark_work(const struct lac_graph *graph, const struct lac_edits *edits,
                      struct lac_graph_marks *marks)
{
    struct lac_edits_cursor cursor = {{0}};
    for (uint32_t n = 0; n < graph->node_count && edits->stretch_count > 0; n++) {
        const struct lac_node *node = &graph->nodes[n];
        if (node->kind != LAC_NODE_OP && node->own_ns > 0.0) {
            int64_t from_ns = node->at_ns - (int64_t)node->own_ns;
            marks->work[n] *=
                factor_of(node->own_ns, gone_ns(edits, &cursor, graph, node, from_ns));
        }
    }
}

/** A call that no longer waits. */
static void mark_return(const struct lac_graph *graph, uint32_t n, struct lac_graph_marks *marks)
{
    const struct lac_node *node = &graph->nodes[n];
    marks->is_unwaited[n] = true;
    if (node->waits == LAC_GRAPH_NO_OP && node->own_ns > LAUNCH_USUAL_NS) {
        /* for what is not known: then it only asks */
        marks->work[n] *= (float)(LAUNCH_USUAL_NS / node->own_ns);
    }
}

/** First place of that slice or of a later one. */
static uint32_t first_place(const struct lac_graph_place *places, uint32_t count, uint32_t slice)
{
    uint32_t low = 0;
    LAC_BISECT(low, count, middle, places[middle].slice < slice);
    return low;
}

/** Index of the window's operation of a slice that comes before operation `o`, or LAC_NONE. */
static uint32_t earlier_operation(const struct lac_graph *graph, uint32_t slice, uint32_t o)
{
    const uint32_t at = first_place(graph->places, graph->place_count, slice);
    bool is_found = at < graph->place_count && graph->places[at].slice == slice;
    return is_found && graph->places[at].at < o ? graph->places[at].at : LAC_NONE;
}

/** First mark from `from` on of that slice or a later one: steps that double, then halves. */
static uint32_t next_mark(const struct lac_edits *edits, uint32_t from, uint32_t slice)
{
    uint32_t low = from;
    uint32_t step = 1;
    while (low < edits->mark_count && edits->marks[low].slice < slice) {
        from = low + 1;
        low = low + step < edits->mark_count ? low + step : edits->mark_count;
        step *= 2;
    }
    LAC_BISECT(from, low, middle, edits->marks[middle].slice < slice);
    return from;
}

/** Marks of calls: these do not wait. */
static void mark_returns(const struct lac_graph *graph, const struct lac_edits *edits,
                         struct lac_graph_marks *marks)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < graph->return_count && at < edits->mark_count; i++) {
        const struct lac_graph_place *place = &graph->returns[i];
        at = next_mark(edits, at, place->slice);
        if (at < edits->mark_count && edits->marks[at].slice == place->slice &&
            edits->marks[at].kind == LAC_EDIT_NO_WAIT) { /* the first kind */
            mark_return(graph, place->at, marks);
        }
    }
}

/** Marks of operations: what they take. @return whether some are launched otherwise */
static bool mark_operations(const struct lac_graph *graph, const struct lac_edits *edits,
                            float part, struct lac_graph_marks *marks)
{
    bool is_launched_otherwise = false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < graph->place_count && at < edits->mark_count; i++) {
        const struct lac_graph_place *place = &graph->places[i];
        at = next_mark(edits, at, place->slice);
        for (uint32_t m = at; m < edits->mark_count && edits->marks[m].slice == place->slice; m++) {
            const struct lac_edit_mark *mark = &edits->marks[m];
            if (mark->kind == LAC_EDIT_OPERATION) {
                marks->factor[place->at] *= 1.0F - part * (1.0F - mark->factor);
            }
            is_launched_otherwise = is_launched_otherwise || mark->kind > LAC_EDIT_OPERATION;
        }
    }
    return is_launched_otherwise;
}

/** When an operation is launched. In the order of operations: one may follow an earlier one. */
static void mark_launch(const struct lac_graph *graph, const struct lac_edits *edits, uint32_t o,
                        struct lac_graph_marks *marks)
{
    const uint32_t slice = graph->ops[o].slice;
    const struct lac_edit_mark *mark = lac_edits_mark(edits, slice, LAC_EDIT_LAUNCHED_WITH);
    uint32_t earlier = mark != NULL ? earlier_operation(graph, mark->with, o) : LAC_NONE;
    if (earlier != LAC_NONE && marks->node[o] != LAC_NONE) {
        marks->node[o] = marks->node[earlier];
        marks->is_moved[o] = true;
    }
}

static int compare_places(const void *a, const void *b)
{
    const struct lac_graph_place *x = a;
    const struct lac_graph_place *y = b;
    return x->slice != y->slice ? LAC_ORDER(x->slice, y->slice) : LAC_ORDER(x->at, y->at);
}

enum lac_status lac_graph_places(struct lac_graph *graph)
{
    uint32_t ops = graph->op_count - graph->first;
    graph->returns = malloc(((size_t)graph->node_count + 1) * sizeof(*graph->returns));
    graph->places = malloc(((size_t)ops + 1) * sizeof(*graph->places));
    if (graph->returns == NULL || graph->places == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (graph->nodes[n].kind == LAC_NODE_RETURN) {
            graph->returns[graph->return_count++] =
                (struct lac_graph_place){graph->nodes[n].slice, n};
        }
    }
    for (uint32_t o = graph->first; o < graph->op_count; o++) {
        graph->places[graph->place_count++] = (struct lac_graph_place){graph->ops[o].slice, o};
    }
    qsort(graph->returns, graph->return_count, sizeof(*graph->returns), compare_places);
    qsort(graph->places, graph->place_count, sizeof(*graph->places), compare_places);
    return LAC_OK;
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
    if (status) {
        lac_graph_marks_done(ret_marks);
        return status;
    }
    for (uint32_t e = 0; e < change->edits_count; e++) {
        const struct lac_edits *edits = change->edits[e];
        mark_work(graph, edits, ret_marks);
        mark_returns(graph, edits, ret_marks);
        if (mark_operations(graph, edits, change->edits_part[e], ret_marks)) {
            for (uint32_t o = graph->first; o < graph->op_count; o++) {
                mark_launch(graph, edits, o, ret_marks);
            }
        }
        mark_batches(graph, edits, ret_marks);
    }
    return LAC_OK;
}
