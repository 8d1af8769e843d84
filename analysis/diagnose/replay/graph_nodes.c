/* The graph's nodes: calls and waits of each thread, nested as recorded, and operations, in the
 * order of time; and which point of the host each host's point goes on from. */

#include "analysis/diagnose/replay/graph_build.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A node before it is sorted. */
struct draft {
    int64_t at_ns;
    uint32_t order; /**< of equal times */
    uint32_t of;    /**< call or operation */
    uint8_t kind;   /**< enum lac_node_kind */
};

struct drafts {
    struct draft *at;
    uint32_t count;
};

static int by_time(const void *a, const void *b)
{
    const struct draft *x = a;
    const struct draft *y = b;
    const int order = LAC_ORDER(x->at_ns, y->at_ns);
    return order != 0 ? order : LAC_ORDER(x->order, y->order);
}

struct place {
    int64_t start_ns, end_ns;
    uint32_t track, call;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->track != y->track) {
        return x->track < y->track ? -1 : 1;
    }
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    if (x->end_ns != y->end_ns) {
        return x->end_ns > y->end_ns ? -1 : 1;
    }
    /* a wait holds the calls of the same time */
    return LAC_ORDER(y->call, x->call);
}

static void add(struct drafts *drafts, int64_t at_ns, enum lac_node_kind kind, uint32_t of)
{
    drafts->at[drafts->count] = (struct draft){at_ns, drafts->count, of, (uint8_t)kind};
    drafts->count++;
}

enum { NESTED_MAX = 64 };

/** A thread's calls that are under way. */
struct nest {
    uint32_t call[NESTED_MAX];
    int64_t end_ns[NESTED_MAX];
    uint32_t depth;
};

static void leave(struct lac_graph_builder *builder, struct drafts *drafts, struct nest *nest)
{
    nest->depth--;
    uint32_t call = nest->call[nest->depth];
    bool is_wait = builder->calls[call].batch != LAC_NONE;
    add(drafts, nest->end_ns[nest->depth], is_wait ? LAC_NODE_TAKEN : LAC_NODE_RETURN, call);
}

/** Beginnings and ends of calls, a thread at a time. What sticks out of its call is cut. */
static void draft_calls(struct lac_graph_builder *builder, const struct place *places,
                        struct drafts *drafts)
{
    int64_t length_ns = builder->graph->end_ns - builder->graph->start_ns;
    struct nest nest = {.depth = 0};
    for (uint32_t i = 0; i < builder->call_count; i++) {
        const struct place *place = &places[i];
        bool is_new_thread = i > 0 && places[i - 1].track != place->track;
        while (nest.depth > 0 && (is_new_thread || nest.depth == NESTED_MAX ||
                                  nest.end_ns[nest.depth - 1] <= place->start_ns)) {
            leave(builder, drafts, &nest);
        }
        bool is_wait = builder->calls[place->call].batch != LAC_NONE;
        add(drafts, place->start_ns, is_wait ? LAC_NODE_WAIT : LAC_NODE_CALL, place->call);
        int64_t until_ns = nest.depth > 0 ? nest.end_ns[nest.depth - 1] : length_ns;
        nest.call[nest.depth] = place->call;
        nest.end_ns[nest.depth++] = place->end_ns < until_ns ? place->end_ns : until_ns;
    }
    while (nest.depth > 0) {
        leave(builder, drafts, &nest);
    }
}

/** The last points of threads, to find what a point goes on from. */
struct thread_ends {
    uint32_t *last; /**< by track: node, or LAC_NONE */
    uint32_t latest;
};

/** A thread goes on from its own last point; when it was silent, from what told it to. */
static void follow(struct lac_graph *graph, struct thread_ends *ends, uint32_t track,
                   uint32_t index)
{
    struct lac_node *node = &graph->nodes[index];
    uint32_t own = ends->last[track];
    bool is_silent =
        own == LAC_NONE || node->at_ns - graph->nodes[own].at_ns > LAC_GRAPH_HAND_OVER_NS;
    node->before = is_silent ? ends->latest : own;
    ends->last[track] = index;
    ends->latest = index;
}

static enum lac_status make_nodes(struct lac_graph_builder *builder, const struct drafts *drafts)
{
    struct lac_graph *graph = builder->graph;
    uint32_t tracks = builder->facts->model->recorded_track_count;
    struct thread_ends ends = {.last = malloc(tracks * sizeof(*ends.last)), .latest = LAC_NONE};
    graph->nodes = calloc((size_t)drafts->count + 1, sizeof(*graph->nodes));
    if (ends.last == NULL || graph->nodes == NULL) {
        free(ends.last);
        return LAC_ERR_NOMEM;
    }
    memset(ends.last, 0xff, tracks * sizeof(*ends.last));
    for (uint32_t n = 0; n < drafts->count; n++) {
        const struct draft *draft = &drafts->at[n];
        struct lac_node *node = &graph->nodes[n];
        *node = (struct lac_node){.at_ns = draft->at_ns,
                                  .before = LAC_NONE,
                                  .of = draft->of,
                                  .slice = LAC_NONE,
                                  .track = LAC_NONE,
                                  .waits = LAC_GRAPH_NO_OP,
                                  .makes_room = LAC_GRAPH_NO_OP,
                                  .kind = draft->kind,
                                  .cause = LAC_CAUSE_HOST};
        if (draft->kind == LAC_NODE_OP) {
            continue;
        }
        struct lac_graph_call *call = &builder->calls[draft->of];
        bool begins = draft->kind == LAC_NODE_CALL || draft->kind == LAC_NODE_WAIT;
        *(begins ? &call->begin_node : &call->end_node) = n;
        node->slice = call->slice;
        node->track = call->track;
        follow(graph, &ends, call->track, n);
    }
    graph->nodes[drafts->count] = (struct lac_node){.at_ns = graph->end_ns - graph->start_ns,
                                                    .before = ends.latest,
                                                    .slice = LAC_NONE,
                                                    .track = LAC_NONE,
                                                    .waits = LAC_GRAPH_NO_OP,
                                                    .makes_room = LAC_GRAPH_NO_OP,
                                                    .kind = LAC_NODE_END,
                                                    .cause = LAC_CAUSE_HOST};
    graph->node_count = drafts->count + 1;
    free(ends.last);
    return LAC_OK;
}

enum lac_status lac_graph_nodes(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    uint32_t in_window = graph->op_count - graph->first;
    size_t most = 2 * (size_t)builder->call_count + in_window;
    struct drafts drafts = {.at = malloc((most + 1) * sizeof(*drafts.at))};
    struct place *places = malloc(((size_t)builder->call_count + 1) * sizeof(*places));
    enum lac_status status = drafts.at != NULL && places != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        for (uint32_t c = 0; c < builder->call_count; c++) {
            const struct lac_graph_call *call = &builder->calls[c];
            places[c] = (struct place){call->start_ns, call->end_ns, call->track, c};
        }
        qsort(places, builder->call_count, sizeof(*places), by_place);
        draft_calls(builder, places, &drafts);
        for (uint32_t o = graph->first; o < graph->op_count; o++) {
            add(&drafts, graph->ops[o].start_ns, LAC_NODE_OP, o);
        }
        qsort(drafts.at, drafts.count, sizeof(*drafts.at), by_time);
        status = make_nodes(builder, &drafts);
    }
    free(drafts.at);
    free(places);
    return status;
}
