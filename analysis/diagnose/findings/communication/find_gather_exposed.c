/*
 * Weights that are gathered when their layer is reached: the gather begins when the layer before has
 * computed, and computing waits until it ends. Gathered while the layer before computes, it would be
 * there.
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct gathers {
    uint64_t count;
    double exposed_ns;
    int64_t most_bytes;
    const struct lac_message *longest;
};

/** Whether the kernel at `at` computes. */
static bool computes(const struct lac_facts *facts, uint64_t at)
{
    const struct lac_kernel_facts *kernel =
        lac_step_operation_kernel(facts, &facts->step_operations->ops[at]);
    return kernel != NULL && !kernel->names.is_comm;
}

/** Whether the gather began right behind what was computed, and computing went on right behind it. */
static bool is_between_layers(const struct lac_facts *facts, const struct lac_message *gather)
{
    const struct lac_step_operations *work = facts->step_operations;
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t slice = work->ops[gather->at].slice;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    bool is_behind = false;
    for (uint32_t back = 1; back <= GATHER_NEIGHBORS && back <= gather->at && !is_behind; back++) {
        uint32_t before = work->ops[gather->at - back].slice;
        int64_t before_ns = slices->start_ns[before] + slices->dur_ns[before];
        is_behind = computes(facts, gather->at - back) && before_ns <= start_ns + GATHER_NEAR_NS &&
                    before_ns >= start_ns - GATHER_NEAR_NS;
    }
    for (uint64_t next = gather->at + 1;
         is_behind && next < work->count && next <= (uint64_t)gather->at + GATHER_NEIGHBORS;
         next++) {
        if (computes(facts, next)) {
            int64_t next_ns = slices->start_ns[work->ops[next].slice];
            return next_ns >= end_ns - GATHER_NEAR_NS && next_ns <= end_ns + GATHER_NEAR_NS;
        }
    }
    return false;
}

/** Mark each gather that waits for its layer: it is launched where the one before it is. */
static void collect(const struct lac_facts *facts, struct gathers *gathers, struct lac_edits *edits)
{
    const struct lac_collectives *all = facts->collectives;
    const struct lac_message *before = NULL;
    for (uint64_t i = 0; i < all->count; i++) {
        const struct lac_message *at = &all->at[i];
        if (at->kind != LAC_COLLECTIVE_ALL_GATHER || at->is_in_line) {
            continue;
        }
        bool is_exposed = (double)at->exposed_ns >= GATHER_EXPOSED_MIN * (double)at->dur_ns;
        if (before != NULL && is_exposed && is_between_layers(facts, at)) {
            const struct lac_step_operation *ops = facts->step_operations->ops;
            lac_edits_launched_with(edits, ops[at->at].slice, ops[before->at].slice);
            gathers->count++;
            gathers->exposed_ns += (double)at->exposed_ns;
            gathers->most_bytes = at->bytes > gathers->most_bytes ? at->bytes : gathers->most_bytes;
            if (gathers->longest == NULL || at->exposed_ns > gathers->longest->exposed_ns) {
                gathers->longest = at;
            }
        }
        before = at;
    }
}

/** What a step gets shorter. Launched where the one before is, a gather may still follow what its
 *  stream was recorded to wait for; then the part of all communication that they are, with no computing
 *  that waits for any, says it. Never more than they are exposed. */
static double gained(const struct lac_facts *facts, struct lac_edits *edits, double cost_ns)
{
    const struct lac_step_time *time = facts->time;
    struct lac_change earlier;
    struct lac_change hidden;
    lac_change_clear(&earlier);
    lac_change_clear(&hidden);
    lac_change_edit(&earlier, edits, 1.0);
    hidden.hides_comm = true;
    double part = fmin(1.0, cost_ns / fmax(1.0, time->exposed_comm_ns));
    double earlier_ns = time->step_ns - lac_what_if_replay(facts, &earlier);
    double hidden_ns = part * (time->step_ns - lac_what_if_replay(facts, &hidden));
    return fmax(0.0, fmin(cost_ns, fmax(earlier_ns, hidden_ns)));
}

bool lac_find_gather_exposed(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_collectives *all = facts->collectives;
    if (all->count == 0 || all->steps <= 0.0) {
        return false;
    }
    struct gathers gathers = {.most_bytes = -1};
    struct lac_edits *edits = lac_edits_begin(facts, finding->kind);
    collect(facts, &gathers, edits);
    double count = (double)gathers.count / all->steps;
    double cost_ns = gathers.exposed_ns / all->steps;
    if (gathers.longest == NULL || count < GATHERS_MIN ||
        lac_pct_of_step(facts, cost_ns) < COST_MIN_PCT) {
        return false;
    }
    static const double share[LAC_CASE_COUNT_] = {1.0, GATHER_SHARE_MID, GATHER_SHARE_WORST};
    double gain_ns = gained(facts, edits, cost_ns);
    double steps[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        steps[which] = facts->time->step_ns - share[which] * gain_ns;
    }
    lac_finding_estimate_steps(facts, finding, steps);
    if (finding->gain_mid_pct < GAIN_MIN_PCT) {
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.65;
    finding->effort = LAC_EFFORT_SETTING;
    struct lac_communication_advice advice = lac_communication_advice(LAC_COLLECTIVE_ALL_GATHER);
    finding->title = lac_texts_add(
        &analysis->texts, "Computing waits for %s all-gathers per step: %s of every %s (%s)",
        lac_format_rate(count).text, lac_format_ns(lac_round(cost_ns)).text,
        lac_format_ns(analysis->step_mean_ns).text, lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "Each begins when the layer before has computed, and the next layer waits until it ends "
        "(%s on average). Gathered one layer earlier, they run beside computing.",
        lac_format_ns(lac_round(gathers.exposed_ns / (double)gathers.count)).text);
    finding->brief = advice.brief;
    finding->change = advice.change;
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs =
        gathers.most_bytes > 0
            ? lac_texts_add(&analysis->texts, "Memory for the weights of one more layer: %s.",
                            lac_format_bytes(gathers.most_bytes).text)
            : advice.costs;
    finding->wrong_if =
        "they are long because another rank is late: then they wait earlier instead.";
    finding->check = lac_texts_add(
        &analysis->texts, "record ten steps: all-gathers beside kernels; expect %s per step",
        lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_slice(facts, finding, facts->step_operations->ops[gathers.longest->at].slice,
                       "nothing computes beside it");
    return true;
}
