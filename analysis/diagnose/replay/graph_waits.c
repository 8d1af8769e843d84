/*
 * What calls of the host wait for: operations, and room in the queue.
 *
 * Which operation a synchronization waited for is not recorded. It is taken to be the last one of
 * what it can wait for (its own copy; the stream that the thread launched to last; all streams)
 * when that one had ended by its return, else the one that ended when it returned.
 */

#include "analysis/diagnose/replay/graph_build.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAITED_MIN_NS = 20000, /* a shorter call did not wait */
    RETURNS_NS = 100000,   /* returns this soon after what it waited for */
    LOOKED_AT_MAX = 1 << 22,
    HELD_MIN = 32,       /* no queue is shorter: a launch that took long behind fewer was held by
                            something else */
    TAILS_MAX = 1 << 20, /* calls that wait for all streams, times streams */
};

/** A wait for an event, and how far back from the last launch the event may lie. */
struct event_wait {
    uint32_t node, stream, tail;
};

struct walk {
    struct lac_graph_builder *builder;
    uint32_t *tails;       /**< by stream: last operation launched, or LAC_NONE */
    uint32_t *last_stream; /**< by track: stream that it launched to last, or LAC_NONE */
    uint32_t launched;     /**< operations launched so far */
    struct event_wait *events;
    uint32_t event_count, event_capacity;
    bool has_event_waited;
    uint32_t rows; /**< of the graph's tails */
    size_t tail_capacity;
};

static int64_t return_ns(const struct walk *walk, const struct lac_graph_call *call)
{
    return walk->builder->graph->nodes[call->end_node].at_ns;
}

/** How far the clocks of host and device may be apart, seen from a call: the longer it waited, the
 *  less else it can have waited for. */
static int64_t slack_ns(const struct lac_graph_call *call)
{
    int64_t part_ns = (call->end_ns - call->start_ns) / 50;
    return part_ns > SYNC_RETURN_NS ? part_ns : SYNC_RETURN_NS;
}

/** Whether the operation had ended when the call returned, but for the slack of clocks. */
static bool has_ended(const struct walk *walk, uint32_t op, const struct lac_graph_call *call)
{
    const struct lac_graph_op *at = &walk->builder->graph->ops[op];
    return at->end_ns <= return_ns(walk, call) + slack_ns(call) &&
           at->start_ns <= return_ns(walk, call);
}

/** The operation of any stream that ended as the call returned, or LAC_NONE. */
static uint32_t ended_at_return(const struct walk *walk, const struct lac_graph_call *call)
{
    const struct lac_graph_builder *builder = walk->builder;
    const struct lac_graph *graph = builder->graph;
    int64_t until_ns = return_ns(walk, call) + slack_ns(call);
    uint32_t best = LAC_NONE;
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        uint32_t low = builder->begins[s];
        LAC_BISECT(low, builder->begins[s + 1], middle,
                   graph->ops[builder->by_stream[middle]].end_ns <= until_ns);
        /* what was launched after the return may have ended by then, too: it is not what ended */
        while (low > builder->begins[s] &&
               graph->ops[builder->by_stream[low - 1]].launch_ns >= call->end_ns) {
            low--;
        }
        if (low == builder->begins[s]) {
            continue;
        }
        uint32_t op = builder->by_stream[low - 1];
        bool is_then = graph->ops[op].end_ns >= until_ns - RETURNS_NS &&
                       graph->ops[op].end_ns >= call->start_ns && has_ended(walk, op, call);
        if (is_then && (best == LAC_NONE || graph->ops[best].end_ns < graph->ops[op].end_ns)) {
            best = op;
        }
    }
    return best;
}

/** The last to end of what all streams held, as far as it had ended. */
static uint32_t last_of_all(const struct walk *walk, const struct lac_graph_call *call)
{
    const struct lac_graph *graph = walk->builder->graph;
    uint32_t best = LAC_NONE;
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        uint32_t tail = walk->tails[s];
        if (tail != LAC_NONE && has_ended(walk, tail, call) &&
            (best == LAC_NONE || graph->ops[best].end_ns < graph->ops[tail].end_ns)) {
            best = tail;
        }
    }
    return best;
}

/** What all streams hold, for a call that waits for all of it. */
static enum lac_status wait_for_all(struct walk *walk, const struct lac_graph_call *call)
{
    struct lac_graph *graph = walk->builder->graph;
    size_t row = graph->stream_count;
    size_t used = walk->rows * row;
    if (graph->stream_count < 2 || used + row > TAILS_MAX) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(graph->tails, walk->tail_capacity, used, row)) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < graph->stream_count; s++) {
        uint32_t tail = walk->tails[s];
        bool is_held = tail != LAC_NONE && has_ended(walk, tail, call);
        graph->tails[used + s] =
            is_held ? (int32_t)((int64_t)tail - graph->first) : LAC_GRAPH_NO_OP;
    }
    graph->nodes[call->end_node].all = ++walk->rows;
    return LAC_OK;
}

static enum lac_status note_event(struct walk *walk, const struct lac_graph_call *call)
{
    uint32_t stream = walk->last_stream[call->track];
    if (stream == LAC_NONE || walk->tails[stream] == LAC_NONE) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(walk->events, walk->event_capacity, walk->event_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    walk->has_event_waited =
        walk->has_event_waited || call->end_ns - call->start_ns >= WAITED_MIN_NS;
    walk->events[walk->event_count++] =
        (struct event_wait){call->end_node, stream, walk->tails[stream]};
    return LAC_OK;
}

static void wait_for(struct walk *walk, const struct lac_graph_call *call, uint32_t op,
                     enum lac_node_wait why)
{
    struct lac_graph *graph = walk->builder->graph;
    if (op == LAC_NONE) {
        return;
    }
    uint8_t op_class = graph->ops[op].op_class;
    bool is_batch = op_class == LAC_OP_COPY_PAGEABLE || op_class == LAC_OP_COPY_PINNED;
    graph->nodes[call->end_node].waits = (int32_t)((int64_t)op - graph->first);
    graph->nodes[call->end_node].wait =
        (uint8_t)(is_batch && why == LAC_WAIT_SYNC ? LAC_WAIT_COPY : why);
}

/** A synchronization: of an event, of everything, or of a stream. */
static enum lac_status see_sync(struct walk *walk, const struct lac_graph_call *call)
{
    const struct lac_model *model = walk->builder->facts->model;
    const char *name = lac_model_str(model, model->slices.name[call->slice]);
    uint32_t stream = walk->last_stream[call->track];
    uint32_t op = LAC_NONE;
    if (strstr(name, "Event") != NULL) {
        return note_event(walk, call);
    }
    if (strstr(name, "Device") != NULL || strstr(name, "Ctx") != NULL) {
        op = last_of_all(walk, call);
        enum lac_status status = wait_for_all(walk, call);
        if (status) {
            return status;
        }
    } else if (stream != LAC_NONE && walk->tails[stream] != LAC_NONE &&
               has_ended(walk, walk->tails[stream], call)) {
        op = walk->tails[stream];
    }
    bool has_waited = call->end_ns - call->start_ns >= WAITED_MIN_NS;
    if (has_waited && (op == LAC_NONE || walk->builder->graph->ops[op].end_ns < call->start_ns)) {
        uint32_t then = ended_at_return(walk, call);
        op = then != LAC_NONE ? then : op;
    }
    wait_for(walk, call, op, LAC_WAIT_SYNC);
    return LAC_OK;
}

/** A copy waits for itself when it returns after it. */
static void see_copy(struct walk *walk, const struct lac_graph_call *call)
{
    const struct lac_graph *graph = walk->builder->graph;
    bool is_long = call->end_ns - call->start_ns > SYNC_RETURN_NS;
    if (call->last_op != LAC_NONE && is_long && has_ended(walk, call->last_op, call) &&
        graph->ops[call->last_op].end_ns > call->start_ns) {
        wait_for(walk, call, call->last_op, LAC_WAIT_SYNC);
    }
}

static enum lac_status see_call(struct walk *walk, const struct lac_graph_call *call)
{
    const struct lac_model *model = walk->builder->facts->model;
    struct lac_graph *graph = walk->builder->graph;
    while (walk->launched < graph->op_count &&
           graph->ops[walk->launched].launch_ns < call->start_ns) {
        walk->tails[graph->ops[walk->launched].stream] = walk->launched;
        walk->launched++;
    }
    if (call->last_op != LAC_NONE) {
        walk->last_stream[call->track] = graph->ops[call->last_op].stream;
    }
    switch ((enum lac_api_class)call->api_class) {
    case LAC_API_SYNC:
        return see_sync(walk, call);
    case LAC_API_COPY:
    case LAC_API_COPY_BLOCKING:
        see_copy(walk, call);
        return LAC_OK;
    case LAC_API_ALLOC:
        if (strstr(lac_model_str(model, model->slices.name[call->slice]), "Free") != NULL) {
            wait_for(walk, call, last_of_all(walk, call), LAC_WAIT_ALLOC);
            return wait_for_all(walk, call);
        }
        return LAC_OK;
    case LAC_API_OTHER:
    case LAC_API_LAUNCH:
    case LAC_API_MODULE:
    case LAC_API_WAIT_EVENT:
    case LAC_API_QUERY:
    case LAC_API_CLASS_COUNT_:
        break;
    }
    return LAC_OK;
}

/**
 * How far back events lie: as many operations as were not done when such a wait returned. When none
 * ever waited the event is not known to be a recent one: it then lies a step back. Where nothing was
 * left to do when any of them returned, they are synchronizations like those of a stream: else they
 * keep the host from running ahead too far, and stay whatever is changed.
 */
static void place_events(struct walk *walk)
{
    struct lac_graph_builder *builder = walk->builder;
    struct lac_graph *graph = builder->graph;
    uint32_t back = walk->has_event_waited ? 0 : graph->ops_per_step;
    uint32_t looked_at = 0;
    for (uint32_t i = 0; i < walk->event_count; i++) {
        const struct event_wait *event = &walk->events[i];
        int64_t until_ns = graph->nodes[event->node].at_ns + SYNC_RETURN_NS;
        uint32_t at = builder->place[event->tail];
        uint32_t open = 0;
        while (looked_at < LOOKED_AT_MAX && at > builder->begins[event->stream] &&
               graph->ops[builder->by_stream[at]].end_ns > until_ns) {
            at--;
            open++;
            looked_at++;
        }
        back = open > back ? open : back;
    }
    for (uint32_t i = 0; i < walk->event_count; i++) {
        const struct event_wait *event = &walk->events[i];
        uint32_t at = builder->place[event->tail];
        if (at < builder->begins[event->stream] + back) {
            continue;
        }
        uint32_t op = builder->by_stream[at - back];
        if (graph->ops[op].start_ns <= graph->nodes[event->node].at_ns) {
            graph->nodes[event->node].waits = (int32_t)((int64_t)op - graph->first);
            graph->nodes[event->node].wait = back == 0 ? LAC_WAIT_SYNC : LAC_WAIT_OTHER;
        }
    }
}

/* -- room in the queue ------------------------------------------------------------------------- */

/** Launches of a stream: by how many they were ahead of it, at most, and whether that held them. */
static void limit_stream(struct lac_graph_builder *builder, uint32_t stream)
{
    struct lac_graph *graph = builder->graph;
    uint32_t begin = builder->begins[stream];
    uint32_t end = builder->begins[stream + 1];
    uint32_t most = 0;
    uint32_t held = 0; /* the most that a launch which was held up was ahead */
    for (int pass = 0; pass < 2; pass++) {
        uint32_t started = begin;
        for (uint32_t i = begin; i < end; i++) {
            const struct lac_graph_op *op = &graph->ops[builder->by_stream[i]];
            if (op->call == LAC_NONE || builder->by_stream[i] < graph->first) {
                continue;
            }
            const struct lac_graph_call *call = &builder->calls[op->call];
            int64_t at_ns = graph->nodes[call->end_node].at_ns;
            while (started < i && graph->ops[builder->by_stream[started]].start_ns <= at_ns) {
                started++;
            }
            uint32_t ahead = i - started;
            most = ahead > most ? ahead : most;
            bool is_held = call->api_class == LAC_API_LAUNCH && pass == 1 &&
                           ahead * 10 >= most * 9 && at_ns - call->start_ns >= QUEUE_FULL_MIN_NS;
            held = is_held && ahead > held ? ahead : held;
        }
    }
    uint32_t room = held >= HELD_MIN               ? most
                    : most > LAC_GRAPH_QUEUE_USUAL ? most
                                                   : LAC_GRAPH_QUEUE_USUAL;
    builder->room[stream] = room + 1;
}

/** A launch returns when the operation that many before it has started. */
static void make_room(struct lac_graph_builder *builder, uint32_t stream)
{
    struct lac_graph *graph = builder->graph;
    uint32_t begin = builder->begins[stream];
    uint32_t end = builder->begins[stream + 1];
    int32_t in_window = (int32_t)(graph->op_count - graph->first);
    while (begin < end && builder->by_stream[begin] < graph->first) {
        begin++;
    }
    uint32_t room = builder->room[stream];
    for (uint32_t i = begin; i < end; i++) {
        const struct lac_graph_op *op = &graph->ops[builder->by_stream[i]];
        if (op->call == LAC_NONE || builder->by_stream[i] < graph->first) {
            continue;
        }
        int64_t index = (int64_t)i - begin - room;
        int32_t ordinal = LAC_GRAPH_NO_OP;
        if (index >= 0) {
            ordinal = (int32_t)((int64_t)builder->by_stream[begin + index] - graph->first);
        } else if (index + end - begin >= 0) {
            ordinal =
                (int32_t)((int64_t)builder->by_stream[end + index] - graph->first) - in_window;
        }
        graph->nodes[builder->calls[op->call].end_node].makes_room = ordinal;
    }
}

static enum lac_status see_calls(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    uint32_t tracks = builder->facts->model->recorded_track_count;
    struct walk walk = {.builder = builder,
                        .tails = malloc((graph->stream_count + 1) * sizeof(*walk.tails)),
                        .last_stream = malloc(tracks * sizeof(*walk.last_stream))};
    enum lac_status status =
        walk.tails != NULL && walk.last_stream != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        memset(walk.tails, 0xff, (graph->stream_count + 1) * sizeof(*walk.tails));
        memset(walk.last_stream, 0xff, tracks * sizeof(*walk.last_stream));
    }
    for (uint32_t n = 0; n < graph->node_count && !status; n++) {
        if (graph->nodes[n].kind == LAC_NODE_CALL) {
            status = see_call(&walk, &builder->calls[graph->nodes[n].of]);
        }
    }
    if (!status) {
        place_events(&walk);
    }
    free(walk.tails);
    free(walk.last_stream);
    free(walk.events);
    return status;
}

enum lac_status lac_graph_waits(struct lac_graph_builder *builder)
{
    struct lac_graph *graph = builder->graph;
    builder->room = calloc((size_t)graph->stream_count + 1, sizeof(*builder->room));
    enum lac_status status = builder->room != NULL ? see_calls(builder) : LAC_ERR_NOMEM;
    for (uint32_t s = 0; s < graph->stream_count && !status; s++) {
        limit_stream(builder, s);
        make_room(builder, s);
    }
    return status;
}
