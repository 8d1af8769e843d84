/* The mean kept step, taken apart: what ran, what was exposed, what each part needs on its own. */

#include "analysis/diagnose/facts/operations.h"
#include "analysis/diagnose/facts/step_operations.h"
#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "analysis/diagnose/replay/what_if_replay.h"
#include "analysis/diagnose/steps/steps_thresholds.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LAC_OP_CLASS_COUNT_ <= (int)LAC_EXPOSURE_CLASSES, "each class is told apart");

enum {
    REPLAY_OPS_MAX = 400000,     /* steps repeat: this many operations tell what a change does */
    PINNED_SEEN_BYTES = 1 << 20, /* smaller copies do not show the bandwidth */
};

double lac_pct_of_step(const struct lac_facts *facts, double ns)
{
    return fmin(100.0, 100.0 * ns / facts->time->step_ns);
}

double lac_computing_pct(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    return lac_pct_of_step(facts, time->compute_ns - time->class_ns[LAC_OP_LAYOUT]);
}

void lac_step_time_destroy(struct lac_step_time *time)
{
    if (time != NULL) {
        free(time->ops);
        free(time->fetch_ns);
        lac_graph_destroy(time->graph);
        for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
            lac_edits_destroy(time->edits[kind]);
        }
        free(time);
    }
}

/* -- shares of the kept steps ------------------------------------------------------------------ */

static double per_step(const struct lac_facts *facts, const struct lac_spans *spans)
{
    return (double)lac_spans_intersection_length(spans, &facts->kept) /
           (double)facts->analysis->step_kept_count;
}

/** The parts of the partition of the step: there is one where a device was recorded. */
static void take_partition(const struct lac_facts *facts, struct lac_step_time *time)
{
    const int64_t *part_ns = facts->analysis->partition.part_ns;
    time->compute_ns = (double)part_ns[LAC_PART_COMPUTE];
    time->exposed_comm_ns = (double)part_ns[LAC_PART_EXPOSED_COMM];
    time->exposed_copy_ns = (double)part_ns[LAC_PART_EXPOSED_COPY];
    time->busy_ns = time->compute_ns + time->exposed_comm_ns + time->exposed_copy_ns +
                    (double)part_ns[LAC_PART_EXPOSED_MEMSET];
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        time->idle_ns[cause] = (double)part_ns[lac_time_part_of((enum lac_cause)cause)];
    }
}

/** The host's own work: the step without the time it was blocked by the device or by the loader. */
static enum lac_status measure_host(const struct lac_facts *facts, struct lac_step_time *time)
{
    if (facts->main_host == LAC_NONE || !facts->has_api) {
        return LAC_OK;
    }
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_host *host = &facts->hosts[facts->main_host];
    const struct lac_spans *busy = &facts->device_sets[analysis->main_device].busy;
    struct lac_spans held = {0};
    struct lac_spans waits = {0};
    struct lac_spans full = {0};
    struct lac_spans some = {0};
    struct lac_spans all = {0};
    enum lac_status status = lac_held_launches_collect(facts, &held);
    if (!status) {
        status = lac_spans_unite(&host->queue_full, &held, &waits);
    }
    if (!status) {
        status = lac_spans_intersect(&waits, busy, &full);
    }
    if (!status) {
        status = lac_spans_unite(&host->blocked, &full, &some);
    }
    if (!status) {
        status = lac_spans_unite(&some, &facts->waits, &all);
    }
    if (!status) {
        double blocked_ns = (double)lac_spans_intersection_length(&all, &facts->host_kept) /
                            (double)analysis->step_kept_count;
        double marks_ns =
            analysis->is_paced_by_device ? (double)analysis->step_host_ns : time->step_ns;
        time->host_ns = fmin(time->step_ns, fmax(0.0, marks_ns - blocked_ns));
    }
    lac_spans_done(&held);
    lac_spans_done(&waits);
    lac_spans_done(&full);
    lac_spans_done(&some);
    lac_spans_done(&all);
    return status;
}

/** How often the loader delivers. */
static void measure_data(const struct lac_facts *facts, struct lac_step_time *time)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    time->data_ns = (double)NAN;
    time->is_in_process = loader->num_workers == 0;
    time->is_starving = time->starved_ns >= STARVING_MIN * time->step_ns;
    if (loader->fetch_mean_ns != LAC_UNKNOWN_NS && loader->num_workers >= 0) {
        int32_t workers = loader->num_workers > 0 ? loader->num_workers : 1;
        time->data_ns = fmax(lac_fetch_per_step_ns(facts) / workers, time->batches * time->pin_ns);
    } else if (time->is_starving) {
        time->data_ns = time->step_ns; /* it delivers as fast as it is consumed */
    }
}

/* -- the operations of the window -------------------------------------------------------------- */

/** The walk that fills the window. */
struct window {
    struct lac_facts *facts;
    struct lac_step_time *time;
    int64_t start_ns, end_ns; /**< from the first kept step to the last */
    uint64_t gap;             /**< next gap of the main device */
    double copies_ns; /**< of copies that kept steps launched, time with several counted once */
    int64_t copies_end_ns;
    int64_t replay_end_ns;
};

/** Whether the gap that this operation ended held waiting for data; its length in *ret_ns. */
static bool gap_before(struct window *window, uint64_t slice, int64_t *ret_ns)
{
    const struct lac_analysis *analysis = window->facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    uint64_t end = device->first_gap + device->gap_count;
    int64_t start_ns = window->facts->model->slices.start_ns[slice];
    while (window->gap < end &&
           analysis->gaps[window->gap].start_ns + analysis->gaps[window->gap].dur_ns < start_ns) {
        window->gap++;
    }
    *ret_ns = 0;
    if (window->gap == end || analysis->gaps[window->gap].ended_by != slice) {
        return false;
    }
    const struct lac_gap *gap = &analysis->gaps[window->gap];
    *ret_ns = gap->dur_ns;
    for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
        if (analysis->pieces[p].cause == LAC_CAUSE_DATA_WAIT) {
            return true;
        }
    }
    return false;
}

/** Copies come in the order of their starts. */
static void add_copy(struct window *window, int64_t start_ns, int64_t end_ns)
{
    const int64_t from_ns = start_ns > window->copies_end_ns ? start_ns : window->copies_end_ns;
    if (end_ns > from_ns) {
        window->copies_ns += (double)(end_ns - from_ns);
        window->copies_end_ns = end_ns;
    }
}

/** What is known of an operation when it begins: which one of the replay it is, or OUTSIDE, and
 *  whether a kept step launched it. */
enum { OUTSIDE = INT32_MAX };
#define OF_KEPT ((uint32_t)1 << 31)

static void take_exposed(void *context, const struct lac_running_operation *operation,
                         struct lac_exposed exposed)
{
    struct lac_step_time *time = context;
    const uint32_t at = operation->user & ~OF_KEPT;
    if (operation->user & OF_KEPT) {
        time->class_ns[operation->op_class] += exposed.share_ns;
    }
    if (at != OUTSIDE) {
        time->ops[at].alone_ns = exposed.alone_ns;
    }
}

/** @return what it is to take_exposed() */
static uint32_t add_operation(struct window *window, uint64_t slice, enum lac_op_class op_class,
                              int64_t bytes)
{
    struct lac_step_time *time = window->time;
    const struct lac_slices *slices = &window->facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    uint32_t user = OUTSIDE;
    if (op_class == LAC_OP_COPY_PINNED && bytes >= PINNED_SEEN_BYTES && end_ns > start_ns) {
        time->pinned_gb_s = fmax(time->pinned_gb_s, (double)bytes / (double)(end_ns - start_ns));
        time->is_pinned_seen = true;
    }
    int64_t gap_ns = 0;
    bool is_after_data = gap_before(window, slice, &gap_ns);
    if (start_ns >= window->start_ns && start_ns < window->end_ns &&
        time->op_count < REPLAY_OPS_MAX) {
        uint32_t call = slices->link[slice];
        user = (uint32_t)time->op_count;
        time->ops[time->op_count++] = (struct lac_replay_op){
            .start_ns = start_ns,
            .launch_ns = call == LAC_NONE ? LAC_UNKNOWN_NS : slices->start_ns[call],
            .gap_ns = gap_ns,
            .op_class = (uint8_t)op_class,
            .is_after_data = is_after_data};
        window->replay_end_ns = start_ns;
    }
    if (!lac_is_of_kept_step(window->facts, slices->link[slice], slice)) {
        return user;
    }
    if (slices->kind[slice] == LAC_SLICE_COPY) {
        add_copy(window, start_ns, end_ns);
    }
    time->class_total_ns[op_class] += (double)(end_ns - start_ns);
    time->class_bytes[op_class] += bytes > 0 ? (double)bytes : 0.0;
    time->class_count[op_class] += 1.0;
    return user | OF_KEPT;
}

static enum lac_status walk_operations(struct window *window)
{
    struct lac_facts *facts = window->facts;
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct lac_step_time *time = window->time;
    uint64_t capacity = device->op_count < REPLAY_OPS_MAX ? device->op_count : REPLAY_OPS_MAX;
    time->ops = malloc((capacity ? capacity : 1) * sizeof(*time->ops));
    if (time->ops == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct lac_exposure exposure = {.ended = take_exposed, .context = time};
    struct lac_operations operations;
    enum lac_status status = lac_operations_init(&operations, facts, device->id);
    uint64_t slice = 0;
    window->gap = device->first_gap;
    while (!status && lac_operations_next(&operations, &slice)) {
        int64_t bytes = -1;
        const enum lac_op_class op_class = lac_op_class_of(facts, slice, &bytes);
        const uint32_t user = add_operation(window, slice, op_class, bytes);
        status = lac_exposure_begin(&exposure, facts, slice, (uint8_t)op_class, user);
    }
    lac_exposure_end(&exposure);
    lac_operations_done(&operations);
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        double kept = (double)analysis->step_kept_count;
        time->class_ns[op_class] /= kept;
        time->class_total_ns[op_class] /= kept;
        time->class_bytes[op_class] /= kept;
        time->class_count[op_class] /= kept;
    }
    double length_ns = (double)(window->replay_end_ns - window->start_ns);
    time->op_steps = time->step_ns > 0.0 ? length_ns / time->step_ns : 0.0;
    if (time->op_count < REPLAY_OPS_MAX) {
        time->op_steps = (double)(window->end_ns - window->start_ns) / time->step_ns;
    }
    return status;
}

/** Usual bandwidth of pinned copies by what the device is (PCIe generation), GB/s. */
static double usual_pinned_gb_s(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t id = analysis->devices[analysis->main_device].id;
    uint32_t index = lac_model_device_index(facts->model, id);
    int32_t major = index == LAC_NONE ? 0 : facts->model->devices[index].cc_major;
    if (major >= 9) {
        return 50.0;
    }
    return major == 8 ? 24.0 : 12.0;
}

static enum lac_status measure(struct lac_facts *facts, struct lac_step_time *time)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_sets *sets = &facts->device_sets[analysis->main_device];
    const struct lac_spans *kept = &facts->kept;
    time->step_ns = (double)analysis->step_mean_ns;
    time->s_ns = (double)analysis->step_without_starvation_ns;
    time->starved_ns = time->step_ns - time->s_ns;
    time->host_ns = (double)NAN;
    take_partition(facts, time);
    time->comm_ns = per_step(facts, &sets->comm);
    measure_data(facts, time);
    enum lac_status status = measure_host(facts, time);
    if (status) {
        return status;
    }
    struct window window = {.facts = facts,
                            .time = time,
                            .start_ns = kept->at[0].start_ns,
                            .end_ns = kept->at[kept->count - 1].end_ns};
    status = walk_operations(&window);
    time->copies_ns = window.copies_ns / (double)analysis->step_kept_count;
    if (!time->is_pinned_seen) {
        time->pinned_gb_s = usual_pinned_gb_s(facts);
    }
    return status;
}

enum { FETCHES_MIN = 16, FETCHES_MAX = 4096 };

/** Fetches in the order of their batches, and what cores allow. */
static enum lac_status collect_fetches(const struct lac_facts *facts, struct lac_step_time *time)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    int32_t cores = facts->settings.allowed_cores;
    if (cores > 0 && loader->fetch_cpu_mean_ns > 0) {
        time->cores_ns = (double)loader->fetch_cpu_mean_ns * time->batches / cores;
    }
    uint64_t count = facts->fetch_count < FETCHES_MAX ? facts->fetch_count : FETCHES_MAX;
    if (count < FETCHES_MIN) {
        return LAC_OK;
    }
    struct lac_fetch *ordered = malloc(count * sizeof(*ordered));
    time->fetch_ns = malloc(count * sizeof(*time->fetch_ns));
    if (ordered == NULL || time->fetch_ns == NULL) {
        free(ordered);
        return LAC_ERR_NOMEM;
    }
    memcpy(ordered, facts->fetches, count * sizeof(*ordered));
    qsort(ordered, count, sizeof(*ordered), lac_fetch_by_batch);
    for (uint64_t i = 0; i < count; i++) {
        time->fetch_ns[i] = (double)ordered[i].dur_ns;
    }
    time->fetch_count = count;
    free(ordered);
    return LAC_OK;
}

/** Without a device: the training process, its waits for data, and the loader. */
static void measure_host_only(struct lac_facts *facts, struct lac_step_time *time)
{
    const struct lac_analysis *analysis = facts->analysis;
    time->step_ns = (double)analysis->step_mean_ns;
    time->s_ns = (double)analysis->step_without_starvation_ns;
    time->starved_ns = time->step_ns - time->s_ns;
    time->host_ns = time->s_ns;
    if (time->cores_ns > 0.0) { /* the training computes on the same cores */
        time->cores_ns += time->s_ns / facts->settings.allowed_cores;
    }
    measure_data(facts, time);
}

/** What each part needs, for the analysis. */
static void fill_needs(struct lac_facts *facts, const struct lac_step_time *time)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_needs *needs = &analysis->needs;
    if (analysis->main_device != LAC_NONE) {
        needs->gpu_ns = lac_round(time->compute_ns);
    }
    /* none of a kind in the trace is not known to need nothing */
    if (time->copies_ns > 0) {
        needs->copies_ns = lac_round(time->copies_ns);
    }
    if (time->comm_ns > 0) {
        needs->comm_ns = lac_round(time->comm_ns);
    }
    if (!isnan(time->host_ns)) {
        needs->host_ns = lac_round(time->host_ns);
    }
    if (!isnan(time->data_ns)) {
        needs->data_ns = lac_round(time->data_ns);
    }
}

/** What is left of the step when no collective takes any time. A host of which nothing is recorded
 *  may wait for one: that is no work. */
static void measure_alone(struct lac_facts *facts)
{
    struct lac_change change;
    if (facts->analysis->main_device == LAC_NONE || facts->time->comm_ns <= 0.0 ||
        lac_graph_trust(facts->time) == LAC_TRUST_NONE) {
        return;
    }
    lac_change_clear(&change);
    change.factor[LAC_OP_COMM] = 0.0;
    change.idle_factor[LAC_CAUSE_HOST] = 0.0;
    /* a loader of which only the waits are known delivers as fast as it is asked, and is no limit */
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    change.is_loader_free = loader->fetch_mean_ns == LAC_UNKNOWN_NS || loader->num_workers < 0;
    facts->analysis->needs.alone_ns = lac_round(lac_what_if_replay(facts, &change));
}

/** By what part the step differs from the recorded one when nothing changes: by the queue where it
 *  answers for the loader, else by the graph. */
static double own_error(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    if (lac_graph_trust(time) != LAC_TRUST_DEVICE) {
        return time->graph->base_error;
    }
    struct lac_change none;
    lac_change_clear(&none);
    return lac_what_if_replay(facts, &none) / time->step_ns - 1.0;
}

static void fill_replay(const struct lac_facts *facts, struct lac_replay_facts *ret_facts)
{
    static const char *const methods[] = {[LAC_TRUST_NONE] = "device",
                                          [LAC_TRUST_DEVICE] = "graph_and_queue",
                                          [LAC_TRUST_ALL] = "graph"};
    const struct lac_step_time *time = facts->time;
    ret_facts->method = methods[lac_graph_trust(time)];
    if (time->graph != NULL) {
        ret_facts->step_count = time->graph->step_count;
        ret_facts->error_pct = 100.0 * own_error(facts);
    }
}

enum lac_status lac_step_time_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->step_kept_count > 0 && analysis->step_mean_ns >= STEP_LEAST_NS) {
        analysis->throughput_per_s = 1e9 / (double)analysis->step_mean_ns;
        analysis->batch_size = facts->settings.batch_size;
        const double samples = lac_step_samples(analysis);
        if (isfinite(samples)) {
            analysis->throughput_unit = "samples";
            analysis->throughput_per_s *= samples;
        }
    }
    bool can_tell = analysis->step_kept_count > 0 && analysis->step_mean_ns >= STEP_LEAST_NS &&
                    facts->kept.count > 0;
    if (!can_tell) {
        return LAC_OK;
    }
    struct lac_step_time *time = calloc(1, sizeof(*time));
    if (time == NULL) {
        return LAC_ERR_NOMEM;
    }
    facts->time = time;
    time->batches = lac_batches_per_step(facts);
    time->pin_ns = fmax(0.0, (double)analysis->loader.pin_mean_ns);
    enum lac_status status = collect_fetches(facts, time);
    if (!status && analysis->main_device == LAC_NONE) {
        measure_host_only(facts, time);
    } else if (!status) {
        status = measure(facts, time);
    }
    if (!status) {
        fill_needs(facts, time);
        status = lac_graph_build(facts, &time->graph);
        if (analysis->main_device != LAC_NONE) {
            fill_replay(facts, &analysis->replay);
        }
    }
    if (!status) {
        measure_alone(facts);
    }
    return status;
}
