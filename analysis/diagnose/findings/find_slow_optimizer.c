/*
 * An optimizer that updates one parameter after the other: some kernels for each, most of them
 * shorter than their launch. Grouped (foreach) or fused, the same update takes a few launches.
 */

#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/replay/edits.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { KERNELS_MIN = 50, LAUNCH_NS = 10000 };

struct optimizer {
    uint64_t count, grouped_count; /**< kernels of all covered steps */
    struct lac_saving saving;      /**< kernels shorter than a launch */
    double range_ns;               /**< host time in it, a step */
    uint32_t longest_range;        /**< slice of an Optimizer.step range, or LAC_NONE */
};

static void collect_kernels(const struct lac_facts *facts, struct optimizer *optimizer)
{
    const struct lac_step_operations *work = facts->step_operations;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_step_operation *op = &work->ops[i];
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, op);
        if (kernel == NULL || kernel->names.is_comm ||
            (op->context & LAC_OPERATION_IN_OPTIMIZER) == 0) {
            continue;
        }
        optimizer->count++;
        optimizer->grouped_count += kernel->names.family == LAC_FAMILY_OPTIMIZER ||
                                    kernel->names.family == LAC_FAMILY_TRITON;
        if (facts->model->slices.dur_ns[op->slice] < LAUNCH_NS) {
            lac_saving_add(facts, &optimizer->saving, op->slice, op->sole_ns);
        }
    }
}

/** Optimizer.step ranges of kept steps: their mean length, and the longest one. */
static double mean_range_ns(const struct lac_facts *facts, uint32_t *ret_longest)
{
    int64_t sum_ns = 0;
    int64_t longest_ns = -1;
    *ret_longest = LAC_NONE;
    for (uint64_t i = 0; i < facts->optimizer_marks.count; i++) {
        const struct lac_mark *mark = &facts->optimizer_marks.at[i];
        if (lac_spans_length_inside(&facts->host_kept, mark->start_ns, mark->start_ns + 1) == 0) {
            continue;
        }
        sum_ns = lac_sum_ns(sum_ns, mark->dur_ns);
        if (mark->dur_ns > longest_ns) {
            longest_ns = mark->dur_ns;
            *ret_longest = mark->slice;
        }
    }
    return (double)sum_ns / (double)facts->analysis->step_kept_count;
}

/** "SGD" of "Optimizer.step#SGD.step"; "" when the name says nothing. */
static void class_of_range(const struct lac_facts *facts, uint32_t range, char *out,
                           size_t capacity_bytes)
{
    out[0] = '\0';
    if (range == LAC_NONE) {
        return;
    }
    const char *name = lac_model_str(facts->model, facts->model->slices.name[range]);
    const char *at = strchr(name, '#');
    if (at != NULL) {
        (void)snprintf(out, capacity_bytes, "%.*s", (int)strcspn(at + 1, "."), at + 1);
    }
}

/** Optimizers of PyTorch that take foreach, and those that take fused. */
static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *change_of(const struct lac_facts *facts, const char *optimizer_class)
{
    static const char *const foreach[] = {"SGD",     "Adam",   "AdamW",    "NAdam",
                                          "RAdam",   "Adamax", "Adadelta", "Adagrad",
                                          "RMSprop", "ASGD",   "Rprop"};
    static const char *const fused[] = {"SGD", "Adam", "AdamW", "Adagrad"};
    struct lac_text **texts = &facts->analysis->texts;
    if (lac_framework_of(facts->model) != LAC_FRAMEWORK_PYTORCH) {
        return "group the updates: one launch for all parameters";
    }
    int fused_from = strcmp(optimizer_class, "SGD") == 0       ? 3
                     : strcmp(optimizer_class, "Adagrad") == 0 ? 8
                                                               : 0; /* of PyTorch 2, on CUDA */
    const char *from = lac_torch_from(facts, LAC_TORCH_1_12);
    if (is_one_of(optimizer_class, fused, LAC_COUNT_OF(fused))) {
        return lac_texts_add(texts,
                             "optimizer = torch.optim.%s(model.parameters(), ..., "
                             "foreach=True)%s\n"
                             "# or fused=True: from PyTorch 2.%d, one kernel for all",
                             optimizer_class, from, fused_from);
    }
    if (is_one_of(optimizer_class, foreach, LAC_COUNT_OF(foreach))) {
        return lac_texts_add(texts,
                             "optimizer = torch.optim.%s(model.parameters(), ..., "
                             "foreach=True)%s",
                             optimizer_class, from);
    }
    return "# in the optimizer's step(), all parameters at once:\n"
           "torch._foreach_mul_(momenta, beta)\n"
           "torch._foreach_add_(momenta, gradients)\n"
           "torch._foreach_add_(parameters, momenta, alpha=-lr)";
}

/** Whether it updates one parameter after the other. */
static bool is_one_by_one(const struct lac_facts *facts, const struct optimizer *optimizer)
{
    double steps = facts->step_operations->steps;
    return steps > 0.0 && (double)optimizer->count >= KERNELS_MIN * steps &&
           optimizer->grouped_count * 4 <= optimizer->count;
}

const char *lac_grouped_optimizer_line(const struct lac_facts *facts)
{
    struct optimizer optimizer = {0};
    char optimizer_class[40];
    collect_kernels(facts, &optimizer);
    if (!is_one_by_one(facts, &optimizer)) {
        return "";
    }
    (void)mean_range_ns(facts, &optimizer.longest_range);
    class_of_range(facts, optimizer.longest_range, optimizer_class, sizeof(optimizer_class));
    return optimizer_class[0] == '\0'
               ? ""
               : lac_texts_add(&facts->analysis->texts, "%s\n", change_of(facts, optimizer_class));
}

/**
 * What a faster optimizer saves, the next copy from pageable memory may eat: its call waits until the
 * device is through with the step. Whether that is so; then *changes also pin the memory.
 */
static bool needs_pinned(const struct lac_facts *facts, struct lac_change changes[LAC_CASE_COUNT_])
{
    double now_ns = facts->time->step_ns;
    double alone_ns = lac_what_if_replay(facts, &changes[LAC_CASE_MID]);
    struct lac_edits *edits = lac_pinned_copies(facts, LAC_FINDING_SLOW_OPTIMIZER);
    struct lac_change pinned;
    lac_change_clear(&pinned);
    struct lac_change both = changes[LAC_CASE_MID];
    if (edits == NULL) {
        return false;
    }
    lac_change_edit(&pinned, edits, 1.0);
    lac_change_edit(&both, edits, 1.0);
    double saved_ns = lac_what_if_replay(facts, &pinned) - lac_what_if_replay(facts, &both);
    if (saved_ns < EATEN_MIN * fmax(0.0, now_ns - alone_ns) ||
        lac_pct_of_step(facts, saved_ns) < GAIN_MIN_PCT) {
        return false;
    }
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        lac_change_edit(&changes[which], edits, 1.0);
        changes[which].pins_copies = true;
    }
    return true;
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct optimizer *optimizer)
{
    struct lac_analysis *analysis = facts->analysis;
    char optimizer_class[40];
    class_of_range(facts, optimizer->longest_range, optimizer_class, sizeof(optimizer_class));
    double steps = facts->step_operations->steps;
    finding->title = lac_texts_add(
        &analysis->texts,
        "The optimizer updates parameters one by one: it costs %s of every %s step (%s)%s",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text, lac_finding_parts(facts, finding));
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s%s launches %s kernels per step, %s of them one by one, and takes %s on the host.%s",
        optimizer_class, optimizer_class[0] == '\0' ? "It" : "",
        lac_format_rate((double)optimizer->count / steps).text,
        lac_format_pct(lac_pct((int64_t)(optimizer->count - optimizer->grouped_count),
                               (int64_t)optimizer->count))
            .text,
        lac_format_ns(lac_round(optimizer->range_ns)).text,
        facts->is_optimizer_inferred
            ? " No range names it: dozens of updates in place follow each other."
            : "");
    finding->brief = "foreach or fused optimizer";
    finding->change = change_of(facts, optimizer_class);
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "With foreach, memory for one more copy of what it updates; with fused, none. "
                     "Results change only by rounding.";
    finding->wrong_if = "the optimizer already groups its parameters, and other code runs in its "
                        "range.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    if (optimizer->longest_range != LAC_NONE) {
        lac_evidence_slice(facts, finding, optimizer->longest_range,
                           "the longest step of the optimizer");
    }
}

/**
 * Idle time of a step that goes when the host is through with its optimizer sooner. What the host
 * spends in it while the device still has work counts only where nothing makes the host wait
 * afterwards: time that it would be blocked by the device anyway is taken off.
 */
static double waiting_for(const struct lac_facts *facts, double range_ns)
{
    const struct lac_step_time *time = facts->time;
    double idle_ns = time->idle_ns[LAC_CAUSE_LAUNCH] + time->idle_ns[LAC_CAUSE_HOST];
    if (isnan(time->host_ns)) {
        return 0.0;
    }
    double wait_ns = (double)lac_spans_intersection_length(&facts->waits, &facts->host_kept) /
                     (double)facts->analysis->step_kept_count;
    double slack_ns = fmax(0.0, time->step_ns - time->host_ns - wait_ns);
    return fmin(idle_ns, fmax(0.0, range_ns - slack_ns));
}

bool lac_find_slow_optimizer(const struct lac_facts *facts, struct lac_finding *finding)
{
    /* how much of the host's time in it goes, and of its short kernels */
    static const double host_saved[LAC_CASE_COUNT_] = {0.95, 0.85, 0.5};
    static const double kernels_saved[LAC_CASE_COUNT_] = {0.8, 0.5, 0.1};
    struct optimizer optimizer = {0};
    collect_kernels(facts, &optimizer);
    /* a recording of every Python function makes the host slow: it cannot tell */
    if (!is_one_by_one(facts, &optimizer) || facts->has_python) {
        return false;
    }
    optimizer.range_ns = mean_range_ns(facts, &optimizer.longest_range);
    double cost_ns = waiting_for(facts, optimizer.range_ns);
    struct lac_change changes[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        lac_change_from_saving(facts, &optimizer.saving, kernels_saved[which], &changes[which]);
        lac_change_optimizer(facts, host_saved[which], cost_ns, &changes[which]);
    }
    bool pins_first = needs_pinned(facts, changes);
    /* what goes without it: other waits may take its place */
    double gone_ns = facts->time->step_ns - lac_what_if_replay(facts, &changes[LAC_CASE_BEST]);
    if (lac_pct_of_step(facts, cost_ns) < COST_OF_WORK_MIN_PCT ||
        !lac_finding_open_changes(facts, finding, fmax(0.0, gone_ns), COST_OF_WORK_MIN_PCT,
                                  changes)) {
        return false;
    }
    finding->confidence = 0.7;
    explain(facts, finding, &optimizer);
    if (pins_first) {
        struct lac_text **texts = &facts->analysis->texts;
        finding->brief = "pin_memory=True, foreach optimizer";
        finding->why = lac_texts_add(texts,
                                     "%s The copy of the batch comes from pageable memory and "
                                     "waits for the GPU: pin it first, "
                                     "else the copy eats what the optimizer saves.",
                                     finding->why);
        finding->change = lac_texts_add(texts,
                                        "DataLoader(..., pin_memory=True)   # first, with "
                                        "images.to(device, non_blocking=True)\n%s",
                                        finding->change);
        finding->costs =
            lac_texts_add(texts, "%s Locked memory for the batches in flight.", finding->costs);
    }
    return true;
}
