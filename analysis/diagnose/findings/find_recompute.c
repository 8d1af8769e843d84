/*
 * Activations computed twice to save memory (checkpointing): forward operators inside the backward
 * pass. What they cost is in the trace; whether memory still needs it only where memory is.
 */

#include "analysis/diagnose/facts/gpu_memory.h"
#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stdint.h>

struct recomputed {
    double ns; /**< of all covered steps */
    uint64_t count;
    struct lac_shorter shorter;
    uint32_t longest;
};

static void collect(const struct lac_facts *facts, struct recomputed *recomputed)
{
    static const double saved[LAC_CASE_COUNT_] = {1.0, 0.9, 0.5};
    const struct lac_step_operations *work = facts->step_operations;
    uint32_t longest_ns = 0;
    recomputed->longest = LAC_NONE;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_step_operation *op = &work->ops[i];
        if ((op->context & LAC_OPERATION_IS_RECOMPUTED) == 0) {
            continue;
        }
        recomputed->ns += op->exposed_ns;
        recomputed->count++;
        lac_shorter_add(facts, &recomputed->shorter, op, saved);
        if (op->exposed_ns >= longest_ns) {
            longest_ns = op->exposed_ns;
            recomputed->longest = op->slice;
        }
    }
}

/** Whether what is free holds twice of what a step now adds at its peak. */
static bool has_room(const struct lac_gpu_memory_use *memory)
{
    return memory->peak > 0 && memory->device > 0 &&
           memory->device - memory->peak >= 2 * (memory->peak - memory->floor);
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct recomputed *recomputed, const struct lac_gpu_memory_use *memory)
{
    struct lac_analysis *analysis = facts->analysis;
    double steps = facts->step_operations->steps;
    finding->title = lac_texts_add(
        &analysis->texts, "Activations are computed twice: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    const char *room = "GPU memory was not recorded";
    if (has_room(memory)) {
        room = lac_texts_add(&analysis->texts, "%s of %s are free at the peak",
                             lac_format_bytes(memory->device - memory->peak).text,
                             lac_format_bytes(memory->device).text);
    } else if (memory->peak > 0 && memory->device > 0) {
        room = lac_texts_add(
            &analysis->texts, "memory may require it: %s of %s are in use at the peak",
            lac_format_bytes(memory->peak).text, lac_format_bytes(memory->device).text);
    }
    finding->why = lac_texts_add(&analysis->texts,
                                 "%s operations per step are forward operators inside the backward "
                                 "pass (checkpointing); %s.",
                                 lac_format_rate((double)recomputed->count / steps).text, room);
    finding->brief = "checkpoint fewer blocks";
    finding->change = "# every second block, then fewer, while memory allows:\n"
                      "x = checkpoint(block, x, use_reentrant=False) if i % 2 else block(x)";
    finding->costs = "Memory for the kept activations; results are unchanged.";
    finding->wrong_if = "the forward operators in the backward pass belong to a gradient penalty.";
    finding->check = "torch.cuda.max_memory_allocated() after a step, with fewer blocks";
    if (recomputed->longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, recomputed->longest,
                           "the longest operation that runs a second time");
    }
}

bool lac_find_recompute(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_step_operations *work = facts->step_operations;
    struct recomputed recomputed = {0};
    struct lac_change changes[LAC_CASE_COUNT_];
    lac_shorter_begin(facts, finding->kind, &recomputed.shorter);
    collect(facts, &recomputed);
    if (work->steps <= 0.0 || (double)recomputed.count < 4.0 * work->steps ||
        lac_pct_of_step(facts, recomputed.ns / work->steps) < COST_OF_WORK_MIN_PCT) {
        return false;
    }
    /* what runs beside it stays: a step without it is not shorter by all of it */
    lac_changes_from_shorter(facts, &recomputed.shorter, changes);
    const double cost_ns =
        fmin(recomputed.ns / work->steps,
             facts->time->step_ns - lac_what_if_replay(facts, &changes[LAC_CASE_BEST]));
    if (lac_pct_of_step(facts, cost_ns) < COST_OF_WORK_MIN_PCT) {
        return false;
    }
    struct lac_gpu_memory_use memory;
    lac_gpu_memory_measure(facts, &memory);
    bool is_estimated = false;
    if (has_room(&memory)) {
        is_estimated =
            lac_finding_open_changes(facts, finding, cost_ns, COST_OF_WORK_MIN_PCT, changes);
    }
    if (!is_estimated) {
        lac_finding_open_fact(finding);
    }
    lac_finding_cost(facts, finding, cost_ns);
    if (finding->step_mid_ns != LAC_UNKNOWN_NS) {
        finding->expect = lac_finding_expect(facts, finding);
    }
    explain(facts, finding, &recomputed, &memory);
    return true;
}
