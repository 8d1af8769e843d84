/*
 * What operations wait for: their launch, their stream, operations of other streams. Where a stream
 * was told to wait for an event, the event is taken to be all that other streams held then, when
 * that is never contradicted; elsewhere an operation that begins right when one of another stream
 * ends, long after its launch and with its own stream empty, waited for that one.
 */

#include "analysis/diagnose/replay/graph_build.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAMS_MAX = 32, /* of more, dependencies between streams are not looked for */
    LATENCY_USUAL_NS = 5000,
    PAUSE_USUAL_NS = 1000,
    LAUNCH_LONGEST_NS = 200000, /* to an idle stream */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

double lac_graph_median(double *values, uint32_t count, double otherwise)
{
    if (count == 0) {
        return otherwise;
    }
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

struct entry {
    int64_t start_ns;
    uint32_t stream, op;
};

static int by_stream(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    int order = LAC_ORDER(x->stream, y->stream);
    order = order != 0 ? order : LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->op, y->op);
}

static enum lac_status order_streams(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    struct entry *entries = malloc(((size_t)graph->op_count + 1) * sizeof(*entries));
    builder->by_stream = malloc(((size_t)graph->op_count + 1) * sizeof(*builder->by_stream));
    builder->place = malloc(((size_t)graph->op_count + 1) * sizeof(*builder->place));
    builder->begins = calloc((size_t)graph->stream_count + 2, sizeof(*builder->begins));
    if (entries == NULL || builder->by_stream == NULL || builder->place == NULL ||
        builder->begins == NULL) {
        free(entries);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t o = 0; o < graph->op_count; o++) {
        entries[o] = (struct entry){graph->ops[o].start_ns, graph->ops[o].stream, o};
        builder->begins[graph->ops[o].stream + 1]++;
    }
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        builder->begins[s + 1] += builder->begins[s];
    }
    qsort(entries, graph->op_count, sizeof(*entries), by_stream);
    for (uint32_t i = 0; i < graph->op_count; i++) {
        builder->by_stream[i] = entries[i].op;
        builder->place[entries[i].op] = i;
    }
    free(entries);
    return LAC_OK;
}

/** The host's point that a launched operation follows. */
static uint32_t anchor_of(const struct lac_graph_builder *builder, const struct lac_graph_op *op)
{
    if (op->call == LAC_NONE) {
        return LAC_NONE;
    }
    const struct lac_graph_call *call = &builder->calls[op->call];
    const struct lac_node *nodes = builder->graph->nodes;
    return nodes[call->end_node].at_ns <= op->start_ns ? call->end_node : call->begin_node;
}

/** The operation before each on its stream, as an ordinal; the first one's is the last of the round
 *  before. */
static void link_stream(struct lac_graph_builder *builder, uint32_t stream)
{
    struct lac_graph *graph = builder->graph;
    int32_t in_window = (int32_t)(graph->op_count - graph->first);
    uint32_t first = LAC_NONE;
    uint32_t last = LAC_NONE;
    for (uint32_t i = builder->begins[stream]; i < builder->begins[stream + 1]; i++) {
        uint32_t op = builder->by_stream[i];
        if (op < graph->first) {
            continue;
        }
        first = first == LAC_NONE ? op : first;
        graph->ops[op].before = last == LAC_NONE ? LAC_GRAPH_NO_OP : (int32_t)(last - graph->first);
        last = op;
    }
    if (first != LAC_NONE) {
        graph->ops[first].before = (int32_t)(last - graph->first) - in_window;
    }
}

/** The recorded operation before it on its stream, launched in the window or not. */
static const struct lac_graph_op *recorded_before(const struct lac_graph_builder *builder,
                                                  uint32_t op)
{
    const struct lac_graph *graph = builder->graph;
    uint32_t at = builder->place[op];
    return at > builder->begins[graph->ops[op].stream] ? &graph->ops[builder->by_stream[at - 1]]
                                                       : NULL;
}

/** What a launch takes to arrive at an idle stream, and one operation to follow another. */
struct usual {
    double latency_ns, pause_ns;
};

static enum lac_status measure_usual(const struct lac_graph_builder *builder,
                                     struct usual *ret_usual)
{
    const struct lac_graph *graph = builder->graph;
    double *latency = malloc(2 * (size_t)graph->op_count * sizeof(*latency));
    if (latency == NULL) {
        return LAC_ERR_NOMEM;
    }
    double *pause = latency + graph->op_count;
    uint32_t latencies = 0;
    uint32_t pauses = 0;
    for (uint32_t o = graph->first; o < graph->op_count; o++) {
        const struct lac_graph_op *op = &graph->ops[o];
        const struct lac_graph_op *before = recorded_before(builder, o);
        if (op->node == LAC_NONE || before == NULL || before->end_ns > op->start_ns) {
            continue;
        }
        int64_t launched_ns = graph->nodes[op->node].at_ns;
        if (before->end_ns <= launched_ns) {
            latency[latencies++] = (double)(op->start_ns - launched_ns);
        } else if (before->end_ns > launched_ns + LAC_GRAPH_HAND_OVER_NS) {
            pause[pauses++] = (double)(op->start_ns - before->end_ns);
        }
    }
    ret_usual->latency_ns =
        fmin(lac_graph_median(latency, latencies, LATENCY_USUAL_NS), LAC_GRAPH_DEPENDS_NS);
    ret_usual->pause_ns =
        fmin(lac_graph_median(pause, pauses, PAUSE_USUAL_NS), LAC_GRAPH_DEPENDS_NS);
    free(latency);
    return LAC_OK;
}

/* -- waiting for other streams ----------------------------------------------------------------- */

/** A stream told to wait while others held work: (operation, what it may wait for). */
struct told {
    uint32_t op, other;
};

struct events {
    struct told *told;
    uint32_t count, capacity;
    uint32_t *tails; /**< by stream: last operation launched so far, or LAC_NONE */
    uint32_t seen[STREAMS_MAX][STREAMS_MAX], broken[STREAMS_MAX][STREAMS_MAX];
};

static enum lac_status note(struct lac_graph_builder *builder, struct events *events, uint32_t op)
{
    const struct lac_graph *graph = builder->graph;
    uint32_t stream = graph->ops[op].stream;
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        uint32_t other = events->tails[s];
        if (s == stream || other == LAC_NONE) {
            continue;
        }
        events->seen[stream][s]++;
        if (graph->ops[other].end_ns > graph->ops[op].start_ns + 1000) {
            events->broken[stream][s]++;
            continue;
        }
        if (!LAC_RESERVE(events->told, events->capacity, events->count, 1)) {
            return LAC_ERR_NOMEM;
        }
        events->told[events->count++] = (struct told){op, other};
    }
    return LAC_OK;
}

/** The later-ending of what an operation may depend on. */
static void depend(struct lac_graph *graph, uint32_t op, uint32_t other)
{
    int32_t ordinal = (int32_t)((int64_t)other - graph->first);
    const struct lac_graph_op *now = lac_graph_op_at(graph, graph->ops[op].depends);
    if (now == NULL || now->end_ns < graph->ops[other].end_ns) {
        graph->ops[op].depends = ordinal;
    }
}

/** Walk the threads: after a wait for an event, the next operation that they launch waits. */
static enum lac_status follow_events(struct lac_graph_builder *builder, struct events *events)
{
    struct lac_graph *graph = builder->graph;
    uint32_t tracks = builder->facts->model->recorded_track_count;
    uint8_t *is_told = calloc(tracks, 1);
    enum lac_status status = is_told != NULL ? LAC_OK : LAC_ERR_NOMEM;
    uint32_t launched = 0;
    for (uint32_t n = 0; n < graph->node_count && !status; n++) {
        const struct lac_node *node = &graph->nodes[n];
        if (node->kind != LAC_NODE_CALL) {
            continue;
        }
        const struct lac_graph_call *call = &builder->calls[node->of];
        while (launched < graph->op_count && graph->ops[launched].launch_ns < call->start_ns) {
            events->tails[graph->ops[launched].stream] = launched;
            launched++;
        }
        if (call->api_class == LAC_API_WAIT_EVENT) {
            is_told[call->track] = 1;
        } else if (call->last_op != LAC_NONE && is_told[call->track]) {
            is_told[call->track] = 0;
            status = note(builder, events, call->last_op);
        }
    }
    for (uint32_t i = 0; i < events->count && !status; i++) {
        const struct told *told = &events->told[i];
        uint32_t to = graph->ops[told->op].stream;
        uint32_t from = graph->ops[told->other].stream;
        if (events->broken[to][from] * 20 <= events->seen[to][from]) {
            depend(graph, told->op, told->other);
        }
    }
    free(is_told);
    return status;
}

static bool fills_device(const struct lac_graph_op *op)
{
    return op->op_class == LAC_OP_COMPUTE || op->op_class == LAC_OP_LAYOUT ||
           op->op_class == LAC_OP_UNUSED_TENSOR;
}

/** What operations of other streams may have held one up. */
struct holders {
    uint32_t ended;   /**< the last to end before it began, or LAC_NONE */
    uint32_t running; /**< the last to begin before it, computing as it began, or LAC_NONE */
};

/** Look at the last operations of a stream that began before this one; ends ascend with starts. */
static void look_at_stream(const struct lac_graph_builder *builder, uint32_t op, uint32_t stream,
                           struct holders *holders)
{
    const struct lac_graph *graph = builder->graph;
    int64_t start_ns = graph->ops[op].start_ns;
    uint32_t low = builder->begins[stream];
    LAC_BISECT(low, builder->begins[stream + 1], middle,
               graph->ops[builder->by_stream[middle]].start_ns < start_ns);
    for (uint32_t i = low; i > builder->begins[stream] && i + 2 > low; i--) {
        uint32_t other = builder->by_stream[i - 1];
        const struct lac_graph_op *at = &graph->ops[other];
        if (at->end_ns <= start_ns) {
            bool is_later =
                holders->ended == LAC_NONE || at->end_ns > graph->ops[holders->ended].end_ns;
            holders->ended = is_later ? other : holders->ended;
            return;
        }
        bool is_later =
            holders->running == LAC_NONE || at->start_ns > graph->ops[holders->running].start_ns;
        holders->running = is_later && fills_device(at) ? other : holders->running;
    }
}

/**
 * What held up an operation whose launch, stream and events do not explain when it began: what ended
 * right before it on another stream; else, for a kernel, the one that left it no room on the device,
 * and it began when so much of that one was done; else what ended last, when launches never take so
 * long.
 */
static void infer_dependency(struct lac_graph_builder *builder, uint32_t o)
{
    struct lac_graph *graph = builder->graph;
    struct lac_graph_op *op = &graph->ops[o];
    struct holders holders = {LAC_NONE, LAC_NONE};
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        if (s != op->stream) {
            look_at_stream(builder, o, s, &holders);
        }
    }
    int64_t ended_ns =
        holders.ended != LAC_NONE ? op->start_ns - graph->ops[holders.ended].end_ns : INT64_MAX;
    bool is_late =
        op->node != LAC_NONE && op->start_ns - graph->nodes[op->node].at_ns > LAUNCH_LONGEST_NS;
    bool has_no_room = holders.running != LAC_NONE && fills_device(op);
    if (has_no_room && ended_ns > LAC_GRAPH_DEPENDS_NS) {
        const struct lac_graph_op *held_by = &graph->ops[holders.running];
        op->depends = (int32_t)((int64_t)holders.running - graph->first);
        op->depends_part = (float)(op->start_ns - held_by->start_ns) /
                           (float)(held_by->end_ns - held_by->start_ns);
    } else if (holders.ended != LAC_NONE && (is_late || ended_ns <= LAC_GRAPH_DEPENDS_NS)) {
        depend(graph, o, holders.ended);
    }
}

/* -- what each operation takes after what it waits for ----------------------------------------- */

/**
 * The latest of launch, stream and dependency is what started it: all that lies between belongs to
 * it. After the others it would have started as soon as such things usually do.
 */
static void measure_lags(struct lac_graph_builder *builder, uint32_t o, const struct usual *usual)
{
    struct lac_graph *graph = builder->graph;
    struct lac_graph_op *op = &graph->ops[o];
    const struct lac_graph_op *before = recorded_before(builder, o);
    const struct lac_graph_op *depends = lac_graph_op_at(graph, op->depends);
    double lag[3] = {(double)NAN, (double)NAN, (double)NAN};
    double typical[3] = {usual->latency_ns, usual->pause_ns, usual->pause_ns};
    if (op->node != LAC_NONE) {
        lag[0] = (double)(op->start_ns - graph->nodes[op->node].at_ns);
    }
    if (before != NULL) {
        op->overlaps = before->end_ns > op->start_ns;
        lag[1] = (double)(op->start_ns - (op->overlaps ? before->start_ns : before->end_ns));
    }
    if (depends != NULL) {
        lag[2] = op->depends_part < 1.0F ? 0.0 : (double)(op->start_ns - depends->end_ns);
    }
    int latest = -1;
    for (int i = 0; i < 3; i++) {
        if (!isnan(lag[i]) && (latest < 0 || lag[i] - typical[i] < lag[latest] - typical[latest])) {
            latest = i;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (isnan(lag[i])) {
            lag[i] = typical[i];
        } else if (i != latest && !(i == 1 && op->overlaps)) {
            lag[i] = fmin(lag[i], typical[i]);
        }
    }
    op->latency_ns = (float)lag[0];
    op->pause_ns = (float)lag[1];
    op->depends_ns = (float)lag[2];
}

static bool is_unexplained(const struct lac_graph_builder *builder, uint32_t o)
{
    const struct lac_graph *graph = builder->graph;
    const struct lac_graph_op *op = &graph->ops[o];
    const struct lac_graph_op *before = recorded_before(builder, o);
    const struct lac_graph_op *depends = lac_graph_op_at(graph, op->depends);
    int64_t late_ns = op->start_ns - LAC_GRAPH_DEPENDS_NS;
    return (op->node == LAC_NONE || graph->nodes[op->node].at_ns < late_ns) &&
           (depends == NULL || depends->end_ns < late_ns) &&
           (before == NULL || before->end_ns < late_ns);
}

enum lac_status lac_graph_streams(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    enum lac_status status = order_streams(builder);
    for (uint32_t o = graph->first; o < graph->op_count && !status; o++) {
        graph->ops[o].node = anchor_of(builder, &graph->ops[o]);
    }
    for (uint32_t s = 0; s < graph->stream_count && !status; s++) {
        link_stream(builder, s);
    }
    struct usual usual = {0};
    if (!status) {
        status = measure_usual(builder, &usual);
    }
    if (!status && graph->stream_count > 1 && graph->stream_count <= STREAMS_MAX) {
        struct events *events = calloc(1, sizeof(*events));
        uint32_t *tails = malloc(graph->stream_count * sizeof(*tails));
        status = events != NULL && tails != NULL ? LAC_OK : LAC_ERR_NOMEM;
        if (!status) {
            memset(tails, 0xff, graph->stream_count * sizeof(*tails));
            events->tails = tails;
            status = follow_events(builder, events);
            free(events->told);
        }
        free(events);
        free(tails);
        for (uint32_t o = graph->first; o < graph->op_count && !status; o++) {
            if (is_unexplained(builder, o)) {
                infer_dependency(builder, o);
            }
        }
    }
    for (uint32_t o = graph->first; o < graph->op_count && !status; o++) {
        measure_lags(builder, o, &usual);
    }
    return status;
}
