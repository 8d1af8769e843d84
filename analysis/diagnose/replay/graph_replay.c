/* The graph played again with a change: rounds of the window, one after another. */

#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    VISITS = 250000, /* nodes that one replay looks at, more or less */
    ROUNDS_MIN = 4,
    ROUNDS_MAX = 24,
    WORKERS_MAX = 4096,
};

/** Times of the round under way, and of the one before. */
struct replay {
    const struct lac_graph *graph;
    const struct lac_change *change;
    struct lac_graph_marks marks;         /**< of the change's edits */
    double rest_factor[LAC_CAUSE_COUNT_]; /**< on what a node does beside launching, by its cause */
    uint32_t ops;                         /**< launched in the window */
    double *host;                         /**< by node */
    double *start, *end, *start_before, *end_before; /**< by ordinal */
    uint32_t round;
    double begin_ns;  /**< of this round */
    double device_ns; /**< the last operation's end so far */

    /* copies that run a batch ahead, on a stream of their own */
    double *copied;
    uint64_t copies;
    double copy_stream_ns;

    /* the loader */
    double *fetched, *taken; /**< by batch, modulo ring */
    double pinned_ns;        /**< the last batch, by the thread that pins */
    uint32_t ring;
    uint64_t batches;
    uint32_t workers, ahead;
    double pace; /**< factor on fetch_ns */
};

static const double NEVER = -1e300;

/** fmax() of numbers; a call for each would be a tenth of a replay. */
static inline double later(double a_ns, double b_ns)
{
    return b_ns > a_ns ? b_ns : a_ns;
}

/** Start or end of an operation; NEVER when it was in no round. */
static double time_of(const struct replay *replay, int32_t ordinal, bool is_end)
{
    if (ordinal == LAC_GRAPH_NO_OP) {
        return NEVER;
    }
    if (ordinal >= 0) {
        return (uint32_t)ordinal < replay->ops ? (is_end ? replay->end : replay->start)[ordinal]
                                               : NEVER;
    }
    int64_t at = (int64_t)replay->ops + ordinal;
    if (replay->round == 0 || at < 0) {
        return NEVER;
    }
    return (is_end ? replay->end_before : replay->start_before)[at];
}

/** When what a call waits for is done; `back` operations before it, when that is
 *  looked at later. */
static double waited_until(const struct replay *replay, const struct lac_node *node, int32_t back)
{
    const struct lac_graph *graph = replay->graph;
    if (node->waits == LAC_GRAPH_NO_OP) {
        return NEVER;
    }
    double until_ns = time_of(replay, node->waits - back, true);
    for (uint32_t s = 0; s < graph->stream_count && node->all > 0; s++) {
        int32_t tail = graph->tails[(size_t)(node->all - 1) * graph->stream_count + s];
        if (tail != LAC_GRAPH_NO_OP) {
            until_ns = later(until_ns, time_of(replay, tail - back, true));
        }
    }
    return until_ns;
}

/** Work of the host with the change. */
static double work(const struct replay *replay, const struct lac_node *node)
{
    const struct lac_change *change = replay->change;
    double launch_ns = (double)node->launch_ns;
    double rest_ns = node->own_ns - launch_ns;
    launch_ns *= node->is_of_layout ? change->layout_launches : 1.0;
    double both = change->host_factor * (node->in_optimizer ? change->optimizer_factor : 1.0);
    both *=
        replay->marks.work != NULL ? (double)replay->marks.work[node - replay->graph->nodes] : 1.0;
    return both * (launch_ns * change->idle_factor[LAC_CAUSE_LAUNCH] +
                   rest_ns * replay->rest_factor[node->cause]);
}

/* -- the loader's queue ------------------------------------------------------------------------ */

static double fetch_ns(const struct replay *replay, const struct lac_graph_batch *batch)
{
    const float *factor = replay->marks.fetch;
    return batch->fetch_ns *
           (factor != NULL ? (double)factor[batch - replay->graph->batches] : 1.0);
}

/** When the next batch is there: by its worker, when it was asked for and is free. */
static double fetch(struct replay *replay, const struct lac_graph_batch *batch)
{
    uint64_t number = replay->batches;
    uint32_t ring = replay->ring;
    double begin_ns = 0.0;
    if (number >= replay->ahead) {
        begin_ns = replay->taken[(number - replay->ahead) % ring];
    }
    if (number >= replay->workers) {
        begin_ns = later(begin_ns, replay->fetched[(number - replay->workers) % ring]);
    }
    double ready_ns = begin_ns + fetch_ns(replay, batch) * replay->pace;
    replay->fetched[number % ring] = ready_ns;
    if (replay->graph->pin_ns > 0.0) {
        ready_ns = replay->pinned_ns = later(ready_ns, replay->pinned_ns) + replay->graph->pin_ns;
    }
    return ready_ns + (replay->graph->has_fetches ? replay->graph->hand_over_ns : 0.0);
}

/** A batch is taken: there when the loader had it, or made in the training process. */
static double take(struct replay *replay, uint32_t index, double here_ns)
{
    const struct lac_graph *graph = replay->graph;
    const struct lac_node *node = &graph->nodes[index];
    const struct lac_graph_batch *batch = &graph->batches[node->of];
    double begin_ns = replay->host[batch->begin_node];
    double taken_ns;
    if (replay->change->is_loader_free) {
        taken_ns = begin_ns + graph->take_ns;
    } else if (replay->workers == 0) {
        bool was_outside = graph->workers != 0;
        double own_ns = graph->own_fetch_ns > 0.0 ? graph->own_fetch_ns : fetch_ns(replay, batch);
        taken_ns = was_outside && replay->change->workers == 0 ? begin_ns + graph->take_ns + own_ns
                                                               : here_ns + work(replay, node);
    } else {
        /* another worker's turn each round, so that none has the slow ones for ever */
        uint32_t turned = (node->of + replay->round) % graph->batch_count;
        bool is_pace = !graph->has_fetches && graph->workers != 0;
        double ready_ns = fetch(replay, is_pace ? batch : &graph->batches[turned]);
        taken_ns = later(begin_ns + graph->take_ns, ready_ns);
    }
    if (replay->ring > 0) {
        replay->taken[replay->batches % replay->ring] = taken_ns;
    }
    replay->batches++;
    return taken_ns;
}

/** Who loads, with the change. */
static enum lac_status prepare_loader(struct replay *replay)
{
    const struct lac_graph *graph = replay->graph;
    const struct lac_change *change = replay->change;
    int32_t workers = graph->workers;
    bool has_pace = !graph->has_fetches && graph->workers != 0;
    replay->pace = 1.0;
    if (graph->batch_count == 0) {
        return LAC_OK;
    }
    if (has_pace) { /* one line of batches, however many make it */
        int32_t makers = workers > 0 ? workers : 2;
        replay->workers = 1;
        replay->ahead = (uint32_t)makers * graph->prefetch_factor;
        if (change->workers > 0) {
            replay->pace =
                workers > 0 ? change->fetch_factor * (double)workers / change->workers : 0.0;
        }
    } else {
        workers = change->workers >= 0 ? change->workers : workers;
        replay->workers = workers > 0 ? (uint32_t)workers : 0;
        replay->ahead = replay->workers * graph->prefetch_factor;
        replay->pace = change->workers > 0 ? change->fetch_factor : 1.0;
    }
    if (replay->workers > WORKERS_MAX || replay->ahead > WORKERS_MAX * graph->prefetch_factor) {
        replay->workers = WORKERS_MAX;
        replay->ahead = WORKERS_MAX * graph->prefetch_factor;
    }
    if (change->workers == 0) {
        replay->workers = 0;
    }
    replay->ring = replay->ahead + replay->workers + 1;
    replay->fetched = calloc(replay->ring, sizeof(*replay->fetched));
    replay->taken = calloc(replay->ring, sizeof(*replay->taken));
    return replay->fetched != NULL && replay->taken ? LAC_OK : LAC_ERR_NOMEM;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void play_host(struct replay *replay, uint32_t index)
{
    const struct lac_change *change = replay->change;
    const struct lac_node *node = &replay->graph->nodes[index];
    double at_ns = node->before == LAC_NONE ? replay->begin_ns : replay->host[node->before];
    if (node->kind == LAC_NODE_TAKEN) {
        replay->host[index] = take(replay, index, at_ns);
        return;
    }
    double here_ns = at_ns;
    if (node->kind == LAC_NODE_RETURN) {
        bool is_later = node->wait == LAC_WAIT_SYNC && change->idle_factor[LAC_CAUSE_SYNC] < 1.0;
        bool is_gone =
            (node->wait == LAC_WAIT_ALLOC && change->idle_factor[LAC_CAUSE_ALLOCATOR] < 1.0) ||
            (node->wait == LAC_WAIT_COPY && change->copies_ahead) ||
            (replay->marks.is_unwaited != NULL && replay->marks.is_unwaited[index]);
        if (!is_gone) { /* a value that nobody waits for is looked at a step later */
            int32_t back = is_later ? (int32_t)replay->graph->ops_per_step : 0;
            here_ns = later(here_ns, waited_until(replay, node, back));
        }
        here_ns = later(here_ns, time_of(replay, node->makes_room, false));
    }
    replay->host[index] = later(at_ns, here_ns + work(replay, node));
}

/** The copy of a batch, issued where it was, on a stream of its own; what it left behind waits for
 *  the one issued a batch earlier. @return when that one is done */
static double copy_ahead(struct replay *replay, const struct lac_graph_op *op, double launched_ns,
                         double dur_ns)
{
    uint32_t ring = replay->graph->copies_per_step + 1;
    replay->copy_stream_ns = later(replay->copy_stream_ns, launched_ns + (double)op->latency_ns);
    replay->copy_stream_ns += dur_ns;
    replay->copied[replay->copies % ring] = replay->copy_stream_ns;
    uint64_t earlier = replay->copies + 1; /* of a ring of n + 1, the next one is the oldest */
    replay->copies++;
    return replay->copies > replay->graph->copies_per_step ? replay->copied[earlier % ring] : NEVER;
}

static bool goes_ahead(const struct lac_change *change, uint8_t op_class)
{
    return change->copies_ahead && (op_class == LAC_OP_COPY_PINNED ||
                                    (op_class == LAC_OP_COPY_PAGEABLE && change->pins_copies));
}

/** When as much of what an operation depends on is done as it needs. */
static double done_ns(const struct replay *replay, const struct lac_graph_op *op)
{
    double end_ns = time_of(replay, op->depends, true);
    if (op->depends_part >= 1.0F || end_ns <= NEVER) {
        return end_ns;
    }
    double begin_ns = time_of(replay, op->depends, false);
    return begin_ns + (double)op->depends_part * (end_ns - begin_ns);
}

/** An operation with what edits change of it. */
struct edited {
    double factor;
    uint32_t node; /**< the host's point that it follows, or LAC_NONE */
    bool is_moved;
    bool is_gone;
};

static inline struct edited edited_of(const struct replay *replay, const struct lac_graph_op *op)
{
    const struct lac_graph_marks *marks = &replay->marks;
    if (marks->factor == NULL) {
        return (struct edited){1.0, op->node, false, false};
    }
    size_t at = (size_t)(op - replay->graph->ops);
    double factor = (double)marks->factor[at];
    return (struct edited){factor, marks->node[at], marks->is_moved[at], factor <= 0.0};
}

/** An operation that is not there: what waits for it waits for what it waited for. */
static void skip_operation(struct replay *replay, const struct lac_graph_op *op, int32_t ordinal)
{
    double at_ns = later(time_of(replay, op->before, true), done_ns(replay, op));
    at_ns = at_ns > NEVER / 2 ? at_ns : replay->begin_ns;
    replay->start[ordinal] = at_ns;
    replay->end[ordinal] = at_ns;
}

static void play_operation(struct replay *replay, const struct lac_graph_op *op, int32_t ordinal)
{
    const struct lac_graph *graph = replay->graph;
    const struct lac_change *change = replay->change;
    struct edited edited = edited_of(replay, op);
    if (edited.is_gone) {
        skip_operation(replay, op, ordinal);
        return;
    }
    double dur_ns = (double)(op->end_ns - op->start_ns) * change->factor[op->op_class];
    dur_ns *= edited.factor;
    double launched_ns = edited.node == LAC_NONE ? NEVER : replay->host[edited.node];
    double start_ns = time_of(replay, op->before, !op->overlaps) + (double)op->pause_ns;
    const struct lac_graph_op *depends = lac_graph_op_at(graph, op->depends);
    bool is_hidden = change->hides_comm && depends != NULL && depends->op_class == LAC_OP_COMM &&
                     op->op_class != LAC_OP_COMM;
    if (!is_hidden && !edited.is_moved) {
        start_ns = later(start_ns, done_ns(replay, op) + (double)op->depends_ns);
    }
    double ready_ns = NEVER;
    if (goes_ahead(change, op->op_class)) {
        ready_ns = copy_ahead(replay, op, later(launched_ns, replay->begin_ns), dur_ns);
        dur_ns *= change->ahead_kept;
    }
    if (edited.node != LAC_NONE) {
        start_ns = later(start_ns, launched_ns + (double)op->latency_ns);
    }
    start_ns = start_ns > NEVER / 2 ? start_ns : replay->begin_ns + (double)op->start_ns;
    replay->start[ordinal] = start_ns;
    replay->end[ordinal] = later(start_ns + dur_ns, ready_ns);
    replay->device_ns = later(replay->device_ns, replay->end[ordinal]);
}

/* -- rounds ------------------------------------------------------------------------------------ */

/** How far host, device and loader are when a round ends. */
struct progress {
    double host_ns, device_ns, loader_ns;
};

static struct progress play_round(struct replay *replay)
{
    const struct lac_graph *graph = replay->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct lac_node *node = &graph->nodes[n];
        if (node->kind == LAC_NODE_OP) {
            play_operation(replay, &graph->ops[node->of], (int32_t)(node->of - graph->first));
        } else {
            play_host(replay, n);
        }
    }
    replay->begin_ns = replay->host[graph->node_count - 1];
    double *start = replay->start;
    double *end = replay->end;
    replay->start = replay->start_before;
    replay->end = replay->end_before;
    replay->start_before = start;
    replay->end_before = end;
    replay->round++;
    struct progress progress = {replay->begin_ns, replay->device_ns, 0.0};
    for (uint32_t r = 0; r < replay->ring; r++) {
        progress.loader_ns = later(progress.loader_ns, replay->fetched[r]);
    }
    return progress;
}

static enum lac_status prepare(struct replay *replay)
{
    const struct lac_graph *graph = replay->graph;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        /* what is done with a value that was waited for is still done when nobody waits for it */
        bool is_changeable = cause == LAC_CAUSE_ALLOCATOR || cause == LAC_CAUSE_MODULE_LOAD ||
                             cause == LAC_CAUSE_HOST;
        replay->rest_factor[cause] = is_changeable ? replay->change->idle_factor[cause] : 1.0;
    }
    replay->ops = graph->op_count - graph->first;
    size_t ops = replay->ops + (size_t)1;
    replay->host = malloc((size_t)graph->node_count * sizeof(*replay->host));
    replay->start = malloc(4 * ops * sizeof(*replay->start));
    replay->copied = calloc((size_t)graph->copies_per_step + 1, sizeof(*replay->copied));
    if (replay->host == NULL || replay->start == NULL || replay->copied == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t i = 0; i < 4 * ops; i++) {
        replay->start[i] = NEVER;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        replay->host[n] = NEVER; /* an operation may come before its launch, as recorded */
    }
    replay->end = replay->start + ops;
    replay->start_before = replay->end + ops;
    replay->end_before = replay->start_before + ops;
    enum lac_status status = lac_graph_mark(graph, replay->change, &replay->marks);
    return status ? status : prepare_loader(replay);
}

double lac_graph_replay(const struct lac_graph *graph, const struct lac_change *change)
{
    struct replay replay = {.graph = graph, .change = change};
    enum lac_status status = prepare(&replay);
    double *times = replay.start;
    double window_ns = (double)NAN;
    if (!status) {
        uint32_t rounds = VISITS / (graph->node_count + 1);
        rounds = rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
        struct progress from = {0};
        struct progress to = {0};
        uint32_t settling = rounds / 2;
        for (uint32_t r = 0; r < rounds; r++) {
            to = play_round(&replay);
            from = r + 1 == settling ? to : from;
        }
        double measured = rounds - settling;
        window_ns = (to.host_ns - from.host_ns) / measured;
        window_ns = later(window_ns, (to.device_ns - from.device_ns) / measured);
        window_ns = later(window_ns, (to.loader_ns - from.loader_ns) / measured);
    }
    free(replay.host);
    free(times);
    free(replay.copied);
    lac_graph_marks_done(&replay.marks);
    free(replay.fetched);
    free(replay.taken);
    return window_ns;
}
