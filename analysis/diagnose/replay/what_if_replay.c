/* The step with a change: from the graph, else from the device's operations (what_if_replay.h). */

#include "analysis/diagnose/replay/what_if_replay.h"

#include "analysis/crew/crew.h"
#include "analysis/diagnose/facts/step_operations.h"
#include "analysis/diagnose/replay/edits.h"
#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* An operation cannot start earlier after its launch than launches take to arrive. */
enum { LATENCY_NS = 10000 };

void lac_change_clear(struct lac_change *change)
{
    *change = (struct lac_change){.workers = LAC_WHAT_IF_UNSET,
                                  .fetch_factor = 1.0,
                                  .host_factor = 1.0,
                                  .layout_launches = 1.0,
                                  .edits_share = 1.0,
                                  .optimizer_factor = 1.0};
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        change->factor[op_class] = 1.0;
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        change->idle_factor[cause] = 1.0;
    }
}

void lac_change_shorten(struct lac_change *change, struct lac_edits *edits, double part)
{
    assert(change != NULL && part >= 0.0 && part <= 1.0);
    if (edits == NULL || change->edits_count == LAC_CHANGE_EDITS_MAX) {
        return;
    }
    lac_edits_seal(edits);
    change->edits_part[change->edits_count] = (float)part;
    change->edits[change->edits_count++] = edits;
}

void lac_change_edit(struct lac_change *change, struct lac_edits *edits, double share)
{
    assert(change != NULL && share >= 0.0 && share <= 1.0);
    change->edits_share = share;
    lac_change_shorten(change, edits, 1.0);
}

static bool changes_operations(const struct lac_change *change)
{
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        if (change->factor[op_class] < 1.0 || change->factor[op_class] > 1.0) {
            return true;
        }
    }
    return false;
}

/** Blocking calls in order of their return. */
struct returns {
    const struct lac_blocking_call *calls[2];
    uint64_t count[2];
    uint64_t next[2];
};

/** The next blocking call that returned by `at_ns`, or NULL. */
static const struct lac_blocking_call *next_return(struct returns *returns, int64_t at_ns)
{
    int which = -1;
    for (int i = 0; i < 2; i++) {
        if (returns->next[i] == returns->count[i]) {
            continue;
        }
        int64_t end_ns = returns->calls[i][returns->next[i]].end_ns;
        if (end_ns <= at_ns &&
            (which < 0 || end_ns < returns->calls[which][returns->next[which]].end_ns)) {
            which = i;
        }
    }
    return which < 0 ? NULL : &returns->calls[which][returns->next[which]++];
}

/**
 * Time saved per step when operations take `factor` of their time.
 *
 * @param is_transparent a wait for data does not swallow what was saved (the loader is counted
 *                       apart)
 */
static double replay(const struct lac_facts *facts, const struct lac_change *change,
                     bool is_transparent)
{
    const struct lac_step_time *time = facts->time;
    struct returns returns = {0};
    if (facts->main_host != LAC_NONE) {
        const struct lac_host *host = &facts->hosts[facts->main_host];
        returns.calls[0] = host->blocking;
        returns.count[0] = host->blocking_count;
        returns.calls[1] = host->copy_blocking;
        returns.count[1] = host->copy_blocking_count;
    }
    double saved = 0.0;      /* the device is this much earlier */
    double host_shift = 0.0; /* and the host this much */
    for (uint64_t i = 0; i < time->op_count; i++) {
        const struct lac_replay_op *op = &time->ops[i];
        bool is_launch_known = op->launch_ns != LAC_UNKNOWN_NS;
        const struct lac_blocking_call *call;
        while ((call = next_return(&returns, is_launch_known ? op->launch_ns : op->start_ns))) {
            double blocked = (double)(call->end_ns - call->start_ns);
            host_shift = fmin(fmax(saved, host_shift), host_shift + blocked);
        }
        if (op->is_after_data && is_transparent) {
            host_shift = fmax(host_shift, saved);
        }
        if (change->saves_launches) {
            /* what is launched in fewer calls is launched sooner */
        } else if (!is_launch_known) {
            saved = op->gap_ns > LATENCY_NS ? fmin(saved, host_shift) : saved;
        } else {
            double delay = (double)(op->start_ns - op->launch_ns);
            double latency = fmin(fmax(delay, 0.0), (double)LATENCY_NS);
            saved = fmin(saved, delay - latency + host_shift);
        }
        saved += (1.0 - change->factor[op->op_class]) * op->alone_ns;
    }
    return time->op_steps > 0.0 ? saved / time->op_steps : 0.0;
}

/** How often the loader delivers after the change; 0 when nothing is known that limits. */
static double data_after(const struct lac_facts *facts, const struct lac_change *change)
{
    const struct lac_step_time *time = facts->time;
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    if (change->workers > 0 && loader->fetch_mean_ns != LAC_UNKNOWN_NS) {
        return fmax(change->fetch_factor * lac_fetch_per_step_ns(facts) / change->workers,
                    time->batches * time->pin_ns);
    }
    if (change->workers > 0 && loader->num_workers > 0) {
        return time->data_ns * loader->num_workers / change->workers;
    }
    if (time->is_in_process) {
        return 0.0; /* in series: it is in the host's time */
    }
    if (time->is_starving) {
        return time->step_ns; /* it delivers as fast as it is consumed */
    }
    return isnan(time->data_ns) ? 0.0 : fmin(time->data_ns, time->step_ns);
}

/** Without a graph: what edits take off the host while the main device was idle. */
static double edited_host_ns(const struct lac_facts *facts, const struct lac_change *change)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_spans *idle = analysis->main_device != LAC_NONE
                                       ? &facts->device_sets[analysis->main_device].idle
                                       : &facts->host_kept;
    double gone_ns = 0.0;
    for (uint32_t e = 0; e < change->edits_count; e++) {
        const struct lac_edits *edits = change->edits[e];
        for (uint32_t i = 0; i < edits->stretch_count; i++) {
            const struct lac_edit_stretch *at = &edits->stretches[i];
            double part =
                (double)lac_spans_length_inside(&facts->host_kept, at->start_ns, at->end_ns) /
                (double)(at->end_ns - at->start_ns);
            gone_ns += part * (1.0 - (double)at->factor) *
                       (double)lac_spans_length_inside(idle, at->start_ns, at->end_ns);
        }
    }
    return change->edits_share * gone_ns / (double)analysis->step_kept_count;
}

/** And what edits take off the operations of a step. */
static double edited_operations_ns(const struct lac_facts *facts, const struct lac_change *change)
{
    const struct lac_step_operations *work = facts->step_operations;
    double saved_ns = 0.0;
    if (work == NULL || work->steps <= 0.0) {
        return 0.0;
    }
    for (uint32_t e = 0; e < change->edits_count; e++) {
        for (uint64_t i = 0; change->edits[e]->mark_count > 0 && i < work->count; i++) {
            const struct lac_edit_mark *mark =
                lac_edits_mark(change->edits[e], work->ops[i].slice, LAC_EDIT_OPERATION);
            saved_ns += mark != NULL ? (double)change->edits_part[e] *
                                           (1.0 - (double)mark->factor) * work->ops[i].sole_ns
                                     : 0.0;
        }
    }
    return change->edits_share * saved_ns / work->steps;
}

/** Copies that run ahead take their time on the link all the same. */
static double copies_least_ns(const struct lac_step_time *time, const struct lac_change *change)
{
    double pinned_ns =
        change->factor[LAC_OP_COPY_PINNED] * time->class_total_ns[LAC_OP_COPY_PINNED];
    double pageable_ns =
        change->factor[LAC_OP_COPY_PAGEABLE] * time->class_total_ns[LAC_OP_COPY_PAGEABLE];
    return change->copies_ahead ? pinned_ns + (change->pins_copies ? pageable_ns : 0.0) : 0.0;
}

/** Without a graph: what device and host need for a step, by the device's operations replayed. */
static double device_after(const struct lac_facts *facts, const struct lac_change *given)
{
    const struct lac_step_time *time = facts->time;
    struct lac_change ahead = *given;
    const struct lac_change *change = &ahead;
    if (given->copies_ahead) {
        ahead.factor[LAC_OP_COPY_PINNED] *= given->ahead_kept;
        ahead.factor[LAC_OP_COPY_PAGEABLE] *= given->pins_copies ? given->ahead_kept : 1.0;
    }
    if (given->hides_comm) {
        double too_long_ns = fmax(0.0, time->comm_ns - time->compute_ns);
        ahead.factor[LAC_OP_COMM] *= fmin(1.0, too_long_ns / fmax(1.0, time->exposed_comm_ns));
    }
    bool stays_in_series = time->is_in_process && change->workers <= 0;
    double s_ns = stays_in_series ? time->step_ns : time->s_ns;
    double removed_ns = 0.0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        removed_ns += (1.0 - change->idle_factor[cause]) * time->idle_ns[cause];
    }
    if (change->idle_factor[LAC_CAUSE_SYNC] < 1.0 && !isnan(time->host_ns)) {
        /* a host that no longer waits still has its own work to do */
        removed_ns = fmin(removed_ns, fmax(0.0, s_ns - time->host_ns));
    }
    double saved_ns = changes_operations(change) ? replay(facts, change, !stays_in_series) : 0.0;
    removed_ns += edited_host_ns(facts, change);
    saved_ns += edited_operations_ns(facts, change);
    return fmax(copies_least_ns(time, given), (s_ns - removed_ns - saved_ns) * change->host_factor);
}

/** A step that needs `s_ns`, with the loader as it is after the change. */
static double with_loader(const struct lac_facts *facts, const struct lac_change *change,
                          double s_ns)
{
    const struct lac_step_time *time = facts->time;
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    if (change->is_loader_free) {
        return s_ns;
    }
    if (change->workers == 0 && !time->is_in_process && loader->fetch_mean_ns != LAC_UNKNOWN_NS) {
        double host_ns = isnan(time->host_ns) ? 0.0 : time->host_ns;
        return fmax(s_ns, host_ns + lac_fetch_per_step_ns(facts));
    }
    if (change->workers > 0 && time->fetch_ns != NULL && loader->num_workers > 0) {
        double queue_ns = lac_loader_step(time, s_ns, change->workers, change->fetch_factor);
        return fmax(fmax(s_ns, queue_ns), time->cores_ns);
    }
    bool is_as_it_was = change->workers < 0 && !time->is_starving && loader->num_workers > 0;
    if (is_as_it_was && time->fetch_ns != NULL) {
        return fmax(s_ns,
                    fmin(lac_loader_step(time, s_ns, loader->num_workers, 1.0), time->step_ns));
    }
    double data_ns = data_after(facts, change);
    return isnan(data_ns) ? s_ns : fmax(s_ns, data_ns);
}

enum lac_trust lac_graph_trust(const struct lac_step_time *time)
{
    const struct lac_graph *graph = time->graph;
    if (graph == NULL) {
        return LAC_TRUST_NONE;
    }
    double free_ns = graph->base_free_ns / graph->step_count;
    bool is_near =
        graph->workers != 0 && fabs(free_ns - time->s_ns) <= REPLAY_ERROR_MAX * time->s_ns;
    /* the waits of a few slow batches can all lie outside of the window */
    bool has_waits =
        !time->is_starving || graph->base_ns - graph->base_free_ns >=
                                  WAITS_SEEN_MIN * time->starved_ns * graph->step_count;
    if (fabs(graph->base_error) <= REPLAY_ERROR_MAX && (has_waits || !is_near)) {
        return LAC_TRUST_ALL;
    }
    return is_near ? LAC_TRUST_DEVICE : LAC_TRUST_NONE;
}

double lac_step_without_waiting(const struct lac_facts *facts)
{
    struct lac_change change;
    lac_change_clear(&change);
    change.is_loader_free = true;
    return lac_what_if_replay(facts, &change);
}

void lac_change_optimizer(const struct lac_facts *facts, double saved, double cost_ns,
                          struct lac_change *change)
{
    const struct lac_step_time *time = facts->time;
    double idle_ns = time->idle_ns[LAC_CAUSE_LAUNCH] + time->idle_ns[LAC_CAUSE_HOST];
    if (lac_graph_trust(time) != LAC_TRUST_NONE) {
        change->optimizer_factor = 1.0 - saved;
    } else if (idle_ns > 0.0) {
        change->idle_factor[LAC_CAUSE_LAUNCH] = 1.0 - saved * cost_ns / idle_ns;
        change->idle_factor[LAC_CAUSE_HOST] = 1.0 - saved * cost_ns / idle_ns;
    }
}

/** Causes whose idle time no node of the graph carries: what goes away is taken off. */
static double idle_beside_graph(const struct lac_step_time *time, const struct lac_change *change)
{
    static const enum lac_cause causes[] = {LAC_CAUSE_COPY_WAIT,  LAC_CAUSE_COMM,
                                            LAC_CAUSE_DEPENDENCY, LAC_CAUSE_PROFILER,
                                            LAC_CAUSE_DATA_WAIT,  LAC_CAUSE_UNATTRIBUTED};
    double removed_ns = 0.0;
    for (size_t i = 0; i < LAC_COUNT_OF(causes); i++) {
        removed_ns += (1.0 - change->idle_factor[causes[i]]) * time->idle_ns[causes[i]];
    }
    return removed_ns;
}

/** The window with the change; where waits of that cause go in part, between waiting as now and not.
 *  `inner` plays either. */
static double
partly(const struct lac_graph *graph, const struct lac_change *change, enum lac_cause cause,
       double (*inner)(const struct lac_graph *graph, const struct lac_change *change))
{
    double left = change->idle_factor[cause];
    if (left <= 0.0 || left >= 1.0) {
        return inner(graph, change);
    }
    struct lac_change without = *change;
    without.idle_factor[cause] = 0.0;
    struct lac_change with = *change;
    with.idle_factor[cause] = 1.0;
    return left * inner(graph, &with) + (1.0 - left) * inner(graph, &without);
}

static double allocator_window(const struct lac_graph *graph, const struct lac_change *change)
{
    return partly(graph, change, LAC_CAUSE_ALLOCATOR, lac_graph_replay_once);
}

static double sync_window(const struct lac_graph *graph, const struct lac_change *change)
{
    return partly(graph, change, LAC_CAUSE_SYNC, allocator_window);
}

/** The same; where edits come true in part, between all of them and none. */
static double graph_window(const struct lac_graph *graph, const struct lac_change *change)
{
    double share = change->edits_share;
    if (change->edits_count == 0 || share >= 1.0) {
        return sync_window(graph, change);
    }
    struct lac_change without = *change;
    without.edits_count = 0;
    return share * sync_window(graph, change) + (1.0 - share) * sync_window(graph, &without);
}

/** What a step of the graph gets longer (or, below 0, shorter); NaN when out of memory. */
static double graph_difference(const struct lac_step_time *time, const struct lac_change *change,
                               double base_ns)
{
    const struct lac_graph *graph = time->graph;
    double difference_ns = (graph_window(graph, change) - base_ns) / graph->step_count;
    return difference_ns - idle_beside_graph(time, change);
}

/** Whether it is the loader's change, and the step's own part stays as it is. */
static bool is_of_loader_alone(const struct lac_change *change)
{
    bool is_alone = (change->workers > 0 || change->is_loader_free) && change->edits_count == 0 &&
                    !change->copies_ahead && !change->pins_copies && !change->hides_comm &&
                    change->optimizer_factor >= 1.0 && change->layout_launches >= 1.0;
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        is_alone = is_alone && change->factor[op_class] >= 1.0;
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        is_alone = is_alone && change->idle_factor[cause] >= 1.0;
    }
    return is_alone;
}

double lac_what_if_replay(const struct lac_facts *facts, const struct lac_change *change)
{
    const struct lac_step_time *time = facts->time;
    enum lac_trust trust = lac_graph_trust(time);
    if (trust == LAC_TRUST_NONE) {
        return with_loader(facts, change, device_after(facts, change));
    }
    struct lac_change asked = *change;
    asked.is_loader_free = change->is_loader_free || trust == LAC_TRUST_DEVICE;
    double difference_ns = graph_difference(
        time, &asked, trust == LAC_TRUST_DEVICE ? time->graph->base_free_ns : time->graph->base_ns);
    if (isnan(difference_ns)) {
        return with_loader(facts, change, device_after(facts, change));
    }
    if (trust == LAC_TRUST_DEVICE) {
        return with_loader(facts, change, fmax(0.0, time->s_ns + difference_ns));
    }
    double step_ns = fmax(0.0, time->step_ns + difference_ns);
    if (is_of_loader_alone(change) && (!time->is_in_process || change->workers > 0)) {
        /* the replay of the waits is off by a percent or so, that of steps without them is not; what
         * is gained in a validation among them is no part of the step */
        double free_ns = time->graph->base_free_ns / time->graph->step_count;
        double data_ns = time->is_in_process ? data_after(facts, change) : 0.0;
        double least_ns = fmax(fmin(free_ns, time->s_ns), data_ns);
        step_ns = fmax(step_ns, fmin(least_ns, time->step_ns));
    }
    return change->workers > 0 ? fmax(step_ns, time->cores_ns) : step_ns;
}

struct replays {
    const struct lac_facts *facts;
    const struct lac_change *changes;
    double *step_ns;
};

static void replay_part(void *context, uint32_t part)
{
    const struct replays *replays = context;
    replays->step_ns[part] = lac_what_if_replay(replays->facts, &replays->changes[part]);
}

void lac_what_if_replays(const struct lac_facts *facts, const struct lac_change *changes,
                         uint32_t count, double *ret_step_ns)
{
    struct replays replays = {facts, changes, ret_step_ns};
    lac_crew_run(facts->crew, count, replay_part, &replays);
}

/** New duration of pageable copies as a factor when their memory is pinned. */
static double pinned_factor(const struct lac_step_time *time, double gb_s)
{
    double now_ns = time->class_total_ns[LAC_OP_COPY_PAGEABLE];
    if (now_ns <= 0.0 || gb_s <= 0.0) {
        return 1.0;
    }
    double then_ns = time->class_bytes[LAC_OP_COPY_PAGEABLE] / gb_s;
    return fmin(1.0, then_ns / now_ns);
}

static void change_copies(const struct lac_facts *facts, const struct lac_what_if_changes *what_if,
                          enum lac_case which, struct lac_change *change)
{
    const struct lac_step_time *time = facts->time;
    static const double bandwidth[LAC_CASE_COUNT_] = {1.1, 1.0, 0.75};
    /* copies beside kernels slow them a little: what they lose of their gain */
    static const double kept[LAC_CASE_COUNT_] = {0.0, 0.03, 0.15};
    bool is_pinned = what_if->pinned == 1;
    bool is_async = what_if->async_copies == 1;
    if (is_pinned) {
        double certain = time->is_pinned_seen ? 1.0 : bandwidth[which];
        change->factor[LAC_OP_COPY_PAGEABLE] = pinned_factor(time, certain * time->pinned_gb_s);
        if (which != LAC_CASE_WORST) { /* the host goes on; at worst what follows waits as well */
            lac_change_edit(change, lac_pinned_copies(facts, LAC_FINDING_PAGEABLE_COPY),
                            which == LAC_CASE_MID ? PINNED_FREE_MID : 1.0);
        }
    }
    change->copies_ahead = is_async;
    change->pins_copies = is_pinned;
    change->ahead_kept = kept[which];
}

/** How much longer the process' own work takes beside its first workers, by the graph. Nothing in a
 *  trace without workers says so: assumed, and said with the answer. */
static const double longer_beside[LAC_CASE_COUNT_] = {0.0, 0.1, 0.4};

/**
 * Loading leaves the training process. Without a graph: at best the whole wait goes away, not only
 * the part in which the device starved, while the process' own work becomes a tenth longer beside
 * the workers; at worst only the starved part goes, and the own work becomes a fifth longer.
 */
static double beside_first_workers(const struct lac_facts *facts, enum lac_case which)
{
    static const double longer[LAC_CASE_COUNT_] = {0.1, 0.1, 0.2};
    const struct lac_step_time *time = facts->time;
    if (lac_graph_trust(time) == LAC_TRUST_ALL) {
        return 1.0 + longer_beside[which];
    }
    if (time->s_ns <= 0.0) {
        return 1.0;
    }
    double wait_ns = (double)lac_spans_intersection_length(&facts->waits, &facts->host_kept) /
                     (double)facts->analysis->step_kept_count;
    double own_ns = fmax(0.0, time->step_ns - wait_ns);
    if (which == LAC_CASE_BEST) {
        double best_ns = fmax(time->busy_ns, (1.0 + longer[which]) * own_ns);
        return fmin(1.0, best_ns / time->s_ns);
    }
    return 1.0 + longer[which] * fmin(1.0, own_ns / time->s_ns);
}

/** How much longer a batch takes with so many workers than it did, where workers take turns; 1
 *  where they do not. */
static double serialization_factor(const struct lac_facts *facts, int32_t workers)
{
    bool takes_turns = facts->serialized_workers > 0.0 && workers >= 1;
    return takes_turns ? workers / facts->serialized_workers : 1.0;
}

void lac_change_from_what_if(const struct lac_facts *facts,
                             const struct lac_what_if_changes *what_if, enum lac_case which,
                             struct lac_change *ret_change)
{
    static const double layout_left[LAC_CASE_COUNT_] = {0.0, 0.15, 0.5};
    static const double fetch[LAC_CASE_COUNT_] = {1.0, 1.0, 1.1};
    static const double host[LAC_CASE_COUNT_] = {1.0, 1.0, 1.02};
    static const double idle_left[LAC_CASE_COUNT_] = {0.0, 0.0, 0.2};
    static const double launch_left[LAC_CASE_COUNT_] = {0.0, 0.0, 0.5};
    const struct lac_step_time *time = facts->time;
    struct lac_change change;
    lac_change_clear(&change);
    bool is_as_now = what_if->workers == facts->analysis->loader.num_workers;
    if (what_if->workers != LAC_WHAT_IF_UNSET && !is_as_now) {
        bool is_first = time->is_in_process && what_if->workers > 0;
        change.workers = what_if->workers;
        change.fetch_factor = fetch[which] * serialization_factor(facts, what_if->workers);
        change.host_factor = is_first ? beside_first_workers(facts, which) : host[which];
    }
    if (what_if->layout_nhwc == 1) {
        change.factor[LAC_OP_LAYOUT] = layout_left[which];
        change.layout_launches = layout_left[which];
    }
    change_copies(facts, what_if, which, &change);
    change.idle_factor[LAC_CAUSE_SYNC] = what_if->no_sync == 1 ? idle_left[which] : 1.0;
    change.idle_factor[LAC_CAUSE_ALLOCATOR] = what_if->no_allocator == 1 ? idle_left[which] : 1.0;
    change.idle_factor[LAC_CAUSE_MODULE_LOAD] =
        what_if->no_module_load == 1 ? idle_left[which] : 1.0;
    change.idle_factor[LAC_CAUSE_LAUNCH] = what_if->no_launch == 1 ? launch_left[which] : 1.0;
    if (what_if->comm >= 0.0) {
        change.factor[LAC_OP_COMM] = what_if->comm;
    }
    if (what_if->kernels >= 0.0) {
        change.factor[LAC_OP_COMPUTE] *= what_if->kernels;
        change.factor[LAC_OP_LAYOUT] *= what_if->kernels;
        change.factor[LAC_OP_UNUSED_TENSOR] *= what_if->kernels;
    }
    *ret_change = change;
}
