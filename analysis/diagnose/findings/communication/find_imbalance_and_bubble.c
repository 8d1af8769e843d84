/*
 * A stage of a pipeline waits while the first micro-batches fill it and the last ones drain it. How
 * long follows from the number of stages and of micro-batches, which are counted:
 *
 *   stage 0   F0 F1 F2 .  .  B0 F3 B1 .. B2 .. B3         bubble = (p - 1) / (m + p - 1)
 *   stage 1      F0 F1 .. B0 F2 B1 F3 B2 .. B3            p stages, m micro-batches
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct transfers {
    uint64_t sends, receives, others;
    double exposed_ns;
    int32_t stages;
    bool starts_with_send;    /**< the first stage */
    bool sends_after_forward; /**< not the last one */
    const struct lac_message *longest;
};

/** Whether what was computed from one operation to another is of a backward pass. */
static bool is_backward_between(const struct lac_facts *facts, uint32_t from, uint32_t to)
{
    const struct lac_step_operation *ops = facts->step_operations->ops;
    for (uint32_t i = from + 1; i < to; i++) {
        if ((ops[i].context & LAC_OPERATION_IN_BACKWARD) != 0) {
            return true;
        }
    }
    return false;
}

static void count_transfers(const struct lac_facts *facts, struct transfers *all)
{
    const struct lac_collectives *messages = facts->collectives;
    const struct lac_message *before = NULL;
    for (uint64_t i = 0; i < messages->count; i++) {
        const struct lac_message *at = &messages->at[i];
        bool is_send = at->kind == LAC_COLLECTIVE_SEND;
        if (!is_send && at->kind != LAC_COLLECTIVE_RECEIVE) {
            all->others++;
            continue;
        }
        if (before == NULL) {
            all->starts_with_send = is_send;
        } else if (is_send && before->kind == LAC_COLLECTIVE_RECEIVE &&
                   !is_backward_between(facts, before->at, at->at)) {
            all->sends_after_forward = true;
        }
        before = at;
        all->sends += is_send;
        all->receives += !is_send;
        all->exposed_ns += (double)at->exposed_ns;
        all->stages = at->ranks > all->stages ? at->ranks : all->stages;
        if (all->longest == NULL || at->exposed_ns > all->longest->exposed_ns) {
            all->longest = at;
        }
    }
}

/** Micro-batches a step: the first and the last stage send each once and receive each once, those
 *  between them twice. */
static double micro_batches(const struct transfers *all, double steps)
{
    bool is_between = !all->starts_with_send && all->sends_after_forward;
    return round((double)all->sends / steps / (is_between ? 2.0 : 1.0));
}

static void say(const struct lac_facts *facts, struct lac_finding *finding,
                const struct transfers *all, double batches, double bubble)
{
    struct lac_analysis *analysis = facts->analysis;
    double stages = (double)all->stages;
    finding->title = lac_texts_add(
        &analysis->texts, "The pipeline's stages wait for each other: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%d stages and %.0f micro-batches per step: (%d - 1) / (%.0f + %d - 1) = %s of a step is "
        "filling and draining the pipeline. With %.0f micro-batches it is %s.",
        all->stages, batches, all->stages, batches, all->stages,
        lac_format_pct(100.0 * bubble).text, 2.0 * batches,
        lac_format_pct(100.0 * (stages - 1.0) / (2.0 * batches + stages - 1.0)).text);
    finding->brief = lac_texts_add(&analysis->texts, "%.0f micro-batches per step", 2.0 * batches);
    finding->change = lac_texts_add(
        &analysis->texts,
        "schedule = Schedule1F1B(stage, n_microbatches=%.0f)   # of half the size\n"
        "# or as many, interleaved: ScheduleInterleaved1F1B(stages, n_microbatches=%.0f)\n"
        "# Megatron-LM: half --micro-batch-size, or --num-layers-per-virtual-pipeline-stage",
        2.0 * batches, batches);
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "Smaller micro-batches fill the GPU less, and each costs its launches and two "
                     "transfers; interleaved stages transfer more often.";
    finding->wrong_if = "a stage takes longer than the others: then move layers from it.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_slice(facts, finding, facts->step_operations->ops[all->longest->at].slice,
                       "the longest wait for another stage");
}

bool lac_find_imbalance_and_bubble(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_step_time *time = facts->time;
    double steps = facts->collectives->steps;
    struct transfers all = {.stages = -1};
    count_transfers(facts, &all);
    if (steps <= 0.0 || all.sends == 0 || all.receives == 0 || all.stages < 2) {
        return false;
    }
    double batches = micro_batches(&all, steps);
    double stages = (double)all.stages;
    double cost_ns = all.exposed_ns / steps;
    if (batches < 1.0 || batches > MICRO_BATCHES_MAX) {
        return false;
    }
    double bubble = (stages - 1.0) / (batches + stages - 1.0);
    double half = (stages - 1.0) / (2.0 * batches);
    double waited_ns =
        cost_ns + time->idle_ns[LAC_CAUSE_DEPENDENCY] + time->idle_ns[LAC_CAUSE_COMM];
    bool is_seen = waited_ns >= BUBBLE_SEEN_MIN * bubble * time->step_ns;
    if (!is_seen || lac_pct_of_step(facts, cost_ns) < COST_OF_WORK_MIN_PCT) {
        return false;
    }
    /* the work stays, the bubble halves: (1 + (p - 1) / 2m) for (1 + (p - 1) / m) */
    double after_ns = time->step_ns * (1.0 + half) / (1.0 + 2.0 * half);
    double gain_ns = fmin(waited_ns, time->step_ns - after_ns);
    const double step_ns[LAC_CASE_COUNT_] = {time->step_ns - gain_ns,
                                             time->step_ns - BUBBLE_SHARE_MID * gain_ns,
                                             time->step_ns - BUBBLE_SHARE_WORST * gain_ns};
    lac_finding_estimate_steps(facts, finding, step_ns);
    if (finding->gain_mid_pct < GAIN_MIN_PCT) {
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.65;
    say(facts, finding, &all, batches, bubble);
    return true;
}
