/* The operations of the kept steps and who launched them. */

#include "analysis/diagnose/facts/step_operations.h"

#include "analysis/diagnose/facts/operations.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_OPS_MAX = 400000, DEPTH_MAX = 128 };

void lac_step_operations_destroy(struct lac_step_operations *work)
{
    if (work != NULL) {
        free(work->ops);
        free(work);
    }
}

/* -- the operations -------------------------------------------------------------------------- */

struct collect {
    const struct lac_facts *facts;
    struct lac_step_operations *work;
    uint64_t capacity;
};

static bool is_inside(const struct lac_spans *spans, int64_t at_ns)
{
    uint64_t span = lac_spans_first_after(spans, at_ns);
    return span < spans->count && spans->at[span].start_ns <= at_ns;
}

bool lac_is_of_kept_step(const struct lac_facts *facts, uint32_t host_slice, uint64_t operation)
{
    const int64_t *start_ns = facts->model->slices.start_ns;
    bool has_marks = !facts->has_device_steps && facts->host_kept.count > 0;
    if (has_marks && host_slice != LAC_NONE) {
        return is_inside(&facts->host_kept, start_ns[host_slice]);
    }
    uint32_t track = lac_model_track_of(facts->model, operation);
    bool is_from_before = has_marks && start_ns[operation] < facts->launched_from_ns[track];
    return !is_from_before && is_inside(&facts->kept, start_ns[operation]);
}

static uint32_t whole_ns(double ns)
{
    return ns < (double)UINT32_MAX ? (uint32_t)lac_round(ns) : UINT32_MAX;
}

static void take_exposed(void *context, const struct lac_running_operation *operation,
                         struct lac_exposed exposed)
{
    struct lac_step_operation *ops = ((struct collect *)context)->work->ops;
    if (operation->user != LAC_NONE) {
        ops[operation->user].exposed_ns = whole_ns(exposed.share_ns);
        ops[operation->user].sole_ns = whole_ns(exposed.sole_ns);
    }
}

static enum lac_status collect_operations(struct collect *collect)
{
    const struct lac_facts *facts = collect->facts;
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_slices *slices = &facts->model->slices;
    struct lac_step_operations *work = collect->work;
    struct lac_exposure exposure = {.ended = take_exposed, .context = collect};
    struct lac_operations operations;
    enum lac_status status =
        lac_operations_init(&operations, facts, analysis->devices[analysis->main_device].id);
    uint64_t slice = 0;
    while (!status && work->count < collect->capacity && lac_operations_next(&operations, &slice)) {
        uint32_t at = LAC_NONE;
        if (lac_is_of_kept_step(facts, slices->link[slice], slice)) {
            at = (uint32_t)work->count;
            work->ops[work->count++] =
                (struct lac_step_operation){.slice = (uint32_t)slice, .op = LAC_NONE};
        }
        status = lac_exposure_begin(&exposure, facts, slice,
                                    (uint8_t)lac_operation_part(facts, slice), at);
    }
    lac_exposure_end(&exposure);
    lac_operations_done(&operations);
    return status;
}

/** Each with the ones before and behind it on its stream. */
static enum lac_status link_streams(const struct lac_facts *facts, struct lac_step_operations *work)
{
    const struct lac_model *model = facts->model;
    uint32_t *last = malloc((model->recorded_track_count + 1) * sizeof(*last));
    if (last == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        last[t] = LAC_NONE;
    }
    for (uint32_t at = 0; at < work->count; at++) {
        uint32_t *before = &last[lac_model_track_of(model, work->ops[at].slice)];
        work->ops[at].before = *before;
        work->ops[at].after = LAC_NONE;
        if (*before != LAC_NONE) {
            work->ops[*before].after = at;
        }
        *before = at;
    }
    free(last);
    return LAC_OK;
}

/** Kept steps that the operations cover. */
static double covered_steps(const struct lac_facts *facts, const struct lac_step_operations *work)
{
    double all = (double)facts->analysis->step_kept_count;
    if (work->count < WORK_OPS_MAX) {
        return all;
    }
    int64_t last_ns = facts->model->slices.start_ns[work->ops[work->count - 1].slice];
    double covered_ns =
        (double)lac_spans_length_inside(&facts->kept, facts->kept.at[0].start_ns, last_ns + 1);
    double kept_ns = (double)lac_spans_length(&facts->kept);
    return kept_ns > 0.0 ? all * covered_ns / kept_ns : all;
}

/* -- who launched them ------------------------------------------------------------------------- */

bool lac_is_forward_operator(const char *name)
{
    static const char *const names[] = {
        "conv1d",     "conv2d",     "conv3d",   "linear",    "batch_norm",
        "layer_norm", "group_norm", "rms_norm", "embedding", "scaled_dot_product_attention",
        "relu",       "relu_",      "gelu",     "silu",      "dropout",
        "max_pool2d"};
    if (strncmp(name, "aten::", 6) != 0) {
        return false;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        if (strcmp(name + 6, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** A launch and the operation that it launched, to walk in the order of the host's slices. */
struct launch {
    uint32_t call;
    uint32_t at; /**< in work->ops */
};

static int by_call(const void *a, const void *b)
{
    const struct launch *x = a;
    const struct launch *y = b;
    const int order = LAC_ORDER(x->call, y->call);
    return order != 0 ? order : LAC_ORDER(x->at, y->at);
}

struct frame {
    int64_t end_ns;
    uint32_t slice;
    uint8_t context;
};

static uint8_t context_of(struct lac_facts *facts, uint64_t slice, uint8_t outer)
{
    uint32_t name = facts->model->slices.name[slice];
    enum lac_host_class host_class = lac_host_class_of(facts, name);
    if (host_class == LAC_HOST_OPTIMIZER) {
        return outer | LAC_OPERATION_IN_OPTIMIZER;
    }
    if (host_class == LAC_HOST_BACKWARD) {
        const bool accumulates =
            strstr(lac_model_str(facts->model, name), "AccumulateGrad") != NULL;
        return outer | LAC_OPERATION_IN_BACKWARD | (accumulates ? LAC_OPERATION_ACCUMULATES : 0);
    }
    bool is_again = (outer & LAC_OPERATION_IN_BACKWARD) != 0 &&
                    lac_is_forward_operator(lac_model_str(facts->model, name));
    return is_again ? outer | LAC_OPERATION_IS_RECOMPUTED : outer;
}

/**
 * Walk one thread from its first slice with a stack of what is open, and tell each launch.
 *
 * @return how many launches it took
 */
static uint64_t walk_thread(struct lac_facts *facts, const struct launch *launches, uint64_t count)
{
    const struct lac_slices *slices = &facts->model->slices;
    const struct lac_track *track =
        &facts->model->tracks[lac_model_track_of(facts->model, launches[0].call)];
    struct frame stack[DEPTH_MAX];
    int depth = 0;
    uint64_t taken = 0;
    uint64_t end = track->first + track->count;
    for (uint64_t i = track->first; i < end && taken < count; i++) {
        int64_t start_ns = slices->start_ns[i];
        while (depth > 0 && stack[depth - 1].end_ns <= start_ns) {
            depth--;
        }
        uint8_t kind = slices->kind[i];
        for (; taken < count && launches[taken].call == i; taken++) {
            struct lac_step_operation *op = &facts->step_operations->ops[launches[taken].at];
            op->op = depth > 0 ? stack[depth - 1].slice : LAC_NONE;
            op->context = depth > 0 ? stack[depth - 1].context : 0;
            op->context |= lac_in_inferred_optimizer(facts, i) ? LAC_OPERATION_IN_OPTIMIZER : 0;
        }
        bool is_named = kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER;
        if (is_named && depth < DEPTH_MAX) {
            uint8_t outer = depth > 0 ? stack[depth - 1].context : 0;
            stack[depth++] = (struct frame){.end_ns = start_ns + slices->dur_ns[i],
                                            .slice = (uint32_t)i,
                                            .context = context_of(facts, i, outer)};
        }
    }
    return taken;
}

static enum lac_status find_launchers(struct lac_facts *facts)
{
    struct lac_step_operations *work = facts->step_operations;
    const struct lac_model *model = facts->model;
    struct launch *launches = malloc((work->count ? work->count : 1) * sizeof(*launches));
    if (launches == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        uint32_t call = model->slices.link[work->ops[i].slice];
        if (call != LAC_NONE) {
            launches[count++] = (struct launch){.call = call, .at = (uint32_t)i};
        }
    }
    if (count > 1) {
        qsort(launches, count, sizeof(*launches), by_call);
    }
    for (uint64_t at = 0; at < count;) {
        uint32_t track = lac_model_track_of(model, launches[at].call);
        uint64_t end = model->tracks[track].first + model->tracks[track].count;
        uint64_t next = at;
        while (next < count && launches[next].call < end) {
            next++;
        }
        (void)walk_thread(facts, &launches[at], next - at);
        at = next;
    }
    free(launches);
    return LAC_OK;
}

enum lac_status lac_launched_from_collect(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    uint32_t count = model->recorded_track_count;
    facts->launched_from_ns = malloc((count + 1) * sizeof(*facts->launched_from_ns));
    if (facts->launched_from_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < count; t++) {
        uint64_t i = model->tracks[t].first;
        uint64_t end = i + model->tracks[t].count;
        bool has_work = (facts->track_flags[t] & LAC_TRACK_HAS_GPU) != 0;
        while (has_work && i < end &&
               (!lac_is_gpu_work(model->slices.kind[i]) || model->slices.link[i] == LAC_NONE)) {
            i++;
        }
        facts->launched_from_ns[t] = has_work && i < end ? model->slices.start_ns[i] : INT64_MIN;
    }
    return LAC_OK;
}

enum lac_status lac_step_operations_collect(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_step_operations *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        return LAC_ERR_NOMEM;
    }
    facts->step_operations = work;
    if (facts->time == NULL || analysis->main_device == LAC_NONE) {
        return LAC_OK;
    }
    uint64_t all = analysis->devices[analysis->main_device].op_count;
    uint64_t capacity = all < WORK_OPS_MAX ? all : WORK_OPS_MAX;
    work->ops = malloc((capacity ? capacity : 1) * sizeof(*work->ops));
    if (work->ops == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct collect collect = {.facts = facts, .work = work, .capacity = capacity};
    enum lac_status status = collect_operations(&collect);
    status = status ? status : link_streams(facts, work);
    if (status) {
        return status;
    }
    work->steps = covered_steps(facts, work);
    return find_launchers(facts);
}

/* -- names ------------------------------------------------------------------------------------- */

const struct lac_kernel_facts *lac_step_operation_kernel(const struct lac_facts *facts,
                                                         const struct lac_step_operation *op)
{
    const struct lac_slices *slices = &facts->model->slices;
    if (slices->kind[op->slice] != LAC_SLICE_KERNEL) {
        return NULL;
    }
    return &facts->analysis->kernels[facts->kernel_row[slices->name[op->slice]]];
}

const char *lac_step_operation_kernel_name(const struct lac_facts *facts, uint64_t slice)
{
    char name[64];
    uint32_t id = facts->model->slices.name[slice];
    lac_kernel_short_name(lac_model_str(facts->model, id),
                          lac_strings_length(&facts->model->strings, id), name, sizeof(name));
    return lac_texts_add(&facts->analysis->texts, "%s", name);
}

const char *lac_step_operation_name(const struct lac_facts *facts,
                                    const struct lac_step_operation *op)
{
    return op->op == LAC_NONE ? "" : lac_model_str(facts->model, facts->model->slices.name[op->op]);
}

const struct lac_device *lac_main_device(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE) {
        return NULL;
    }
    uint32_t index =
        lac_model_device_index(facts->model, analysis->devices[analysis->main_device].id);
    return index == LAC_NONE ? NULL : &facts->model->devices[index];
}
