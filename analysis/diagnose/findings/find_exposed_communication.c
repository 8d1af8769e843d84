/* Communication that no computing hides. One rank cannot tell a late rank from a slow network. */

#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

bool lac_find_exposed_communication(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double cost_ns = time->exposed_comm_ns;
    double cost_pct = lac_pct_of_step(facts, cost_ns);
    if (cost_pct < COST_MIN_PCT) {
        return false;
    }
    double steps[LAC_CASE_COUNT_];
    /* expected: what fits behind computing is hidden; at worst nothing can be moved */
    static const double left[LAC_CASE_COUNT_] = {0.0, 0.0, 1.0};
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        change.hides_comm = left[which] < 1.0;
        steps[which] = lac_what_if_replay(facts, &change);
    }
    lac_finding_estimate_steps(facts, finding, steps);
    if (cost_pct < COST_NOTED_MIN_PCT &&
        finding->gain_mid_pct < GAIN_MIN_PCT) { /* little, and nothing to propose */
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.4;
    finding->title = lac_texts_add(
        &analysis->texts, "Exposed collectives take %s of every %s step (%s)",
        lac_format_ns(lac_round(cost_ns)).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    double hidden_pct = time->comm_ns > 0.0 ? 100.0 * (1.0 - cost_ns / time->comm_ns) : 0.0;
    finding->why = lac_texts_add(
        &analysis->texts,
        "%.0f %% of the communication overlaps with compute. A collective kernel also waits for "
        "the last rank. From one rank, a straggler and a slow network look the same.",
        fmax(0.0, hidden_pct));
    finding->brief = "add the other ranks' traces";
    finding->change =
        "lacuna analyze RANK0 RANK1 ...   # finds the straggler\n"
        "# if no rank is late, overlap more of it with the backward pass:\n"
        "model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)";
    finding->expect = lac_texts_add(
        &analysis->texts, "at best %s per step, with all %s gone; no gain if another rank is late.",
        lac_format_ns(finding->step_low_ns).text, lac_format_ns(lac_round(cost_ns)).text);
    finding->costs = "Larger buckets start to reduce later.";
    finding->wrong_if = "the other ranks' collectives take as long: then the network is the limit.";
    finding->check = "analyze all ranks together";
    uint32_t best = LAC_NONE;
    for (uint32_t row = 0; row < analysis->kernel_name_count && best == LAC_NONE; row++) {
        best = analysis->kernels[row].names.is_comm ? row : LAC_NONE;
    }
    if (best != LAC_NONE) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[best];
        lac_evidence_slice(
            facts, finding, kernel_facts->longest_slice,
            lac_texts_add(&analysis->texts, "the longest of %s",
                          lac_format_count((int64_t)kernel_facts->count, "collective").text));
    }
    return true;
}
