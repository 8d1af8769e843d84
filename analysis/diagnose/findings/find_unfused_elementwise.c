/*
 * Chains of elementwise kernels: each reads what the one before it wrote. They are bound by memory,
 * so a compiler that makes one kernel of a chain saves the passes between. What a compiler made
 * already, and the optimizer's own kernels, are not meant.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct chains {
    double ns; /**< of kernels in chains, all covered steps */
    uint64_t count;
    struct lac_shorter shorter;
    uint32_t longest_first, longest_last; /**< the chain that takes longest, in the work */
    uint64_t longest_count;
    double longest_ns;
};

/** Whether a compiler can fuse it with its neighbors. */
static bool is_fusible(const struct lac_facts *facts, const struct lac_step_operation *op)
{
    const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, op);
    if (kernel == NULL || kernel->names.is_comm ||
        (op->context & (LAC_OPERATION_IN_OPTIMIZER | LAC_OPERATION_ACCUMULATES)) != 0) {
        return false;
    }
    const char *around = lac_step_operation_name(facts, op);
    if (strcmp(around, "aten::zero_") == 0 || strcmp(around, "aten::fill_") == 0) {
        return false; /* it reads nothing */
    }
    enum lac_family family = kernel->names.family;
    /* copies are casts, permutes, concatenations; reductions of a normalization written out */
    return family == LAC_FAMILY_ELEMENTWISE || family == LAC_FAMILY_COPY ||
           family == LAC_FAMILY_REDUCE;
}

/** A chain of `count` kernels of a stream from `first` on: all but one pass through memory can go. */
static void add_chain(const struct lac_facts *facts, struct chains *chains, uint32_t first,
                      uint64_t count)
{
    static const double saved[LAC_CASE_COUNT_] = {0.9, 0.6, 0.3};
    const struct lac_step_operation *ops = facts->step_operations->ops;
    const double removable = (double)(count - 1) / (double)count;
    double parts[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        parts[which] = saved[which] * removable;
    }
    double sum_ns = 0.0;
    uint32_t last = first;
    for (uint64_t i = 0; i < count; i++) {
        last = i == 0 ? first : ops[last].after;
        sum_ns += ops[last].exposed_ns;
        lac_shorter_add(facts, &chains->shorter, &ops[last], parts);
    }
    chains->ns += sum_ns;
    chains->count += count;
    if (sum_ns > chains->longest_ns) {
        chains->longest_ns = sum_ns;
        chains->longest_first = first;
        chains->longest_last = last;
        chains->longest_count = count;
    }
}

/** Whether a kernel goes on with the chain that the one before it on its stream is in. */
static bool goes_on(const struct lac_facts *facts, uint32_t at)
{
    const struct lac_step_operation *ops = facts->step_operations->ops;
    const uint32_t before = ops[at].before;
    return before != LAC_NONE && is_fusible(facts, &ops[before]) &&
           ((ops[before].context ^ ops[at].context) & LAC_OPERATION_IN_BACKWARD) == 0;
}

static void collect(const struct lac_facts *facts, struct chains *chains)
{
    const struct lac_step_operations *work = facts->step_operations;
    for (uint32_t first = 0; first < work->count; first++) {
        if (!is_fusible(facts, &work->ops[first]) || goes_on(facts, first)) {
            continue;
        }
        uint64_t count = 1;
        uint32_t next = work->ops[first].after;
        while (next != LAC_NONE && is_fusible(facts, &work->ops[next]) && goes_on(facts, next)) {
            next = work->ops[next].after;
            count++;
        }
        if (count >= 2) {
            add_chain(facts, chains, first, count);
        }
    }
}

bool lac_find_unfused_elementwise(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct chains chains = {0};
    lac_shorter_begin(facts, finding->kind, &chains.shorter);
    collect(facts, &chains);
    double steps = facts->step_operations->steps;
    if (steps <= 0.0 || chains.ns <= 0.0 || lac_compiled_of(facts) != LAC_COMPILED_NOT ||
        lac_framework_of(facts->model) != LAC_FRAMEWORK_PYTORCH) {
        return false;
    }
    struct lac_change changes[LAC_CASE_COUNT_];
    lac_changes_from_shorter(facts, &chains.shorter, changes);
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        changes[which].saves_launches = true;
    }
    double cost_ns = chains.ns / steps;
    if (!lac_finding_open_changes(facts, finding, cost_ns, FACT_MIN_PCT, changes)) {
        return false;
    }
    /* which of them share data the trace does not say: where they are not most of what can be done, they
     * are no first thing to do */
    finding->confidence = 0.5;
    if (finding->cost_pct < ELEMENTWISE_MIN_PCT) {
        finding->severity = LAC_SEVERITY_INFO;
    }
    finding->title = lac_texts_add(
        &analysis->texts, "Chains of elementwise kernels take %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s kernels per step read what the kernel before them wrote; a compiler can fuse them.",
        lac_format_rate((double)chains.count / steps).text);
    finding->brief = "fuse elementwise kernels";
    finding->change = lac_texts_add(&analysis->texts, "model = torch.compile(model)%s",
                                    lac_torch_from(facts, LAC_TORCH_2_0));
    finding->expect =
        lac_texts_add(&analysis->texts,
                      "%s. Assumes that fusion saves 30 to 90 %% of the memory traffic between "
                      "them; the trace does not show which share data.",
                      lac_finding_expect(facts, finding));
    finding->costs =
        "Minutes of compilation at the start and for each new shape; rounding differs slightly.";
    finding->wrong_if = "the kernels in a chain do not share data.";
    finding->check = "record ten steps of the compiled model: triton_ kernels replace the chains";
    const struct lac_step_operation *first = &facts->step_operations->ops[chains.longest_first];
    const struct lac_step_operation *last = &facts->step_operations->ops[chains.longest_last];
    lac_evidence_slice(facts, finding, first->slice,
                       lac_texts_add(&analysis->texts,
                                     "the longest chain starts here: %s, %s in total",
                                     lac_format_count((int64_t)chains.longest_count, "kernel").text,
                                     lac_format_ns(lac_round(chains.longest_ns)).text));
    lac_evidence_slice(facts, finding, last->slice, "the longest chain ends here");
    return true;
}
