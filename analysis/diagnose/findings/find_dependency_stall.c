/* Streams that wait for each other while the device does nothing. */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

bool lac_find_dependency_stall(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    double cost_ns = facts->time->idle_ns[LAC_CAUSE_DEPENDENCY];
    if (lac_pct_of_step(facts, cost_ns) < COST_OF_WORK_MIN_PCT) {
        return false;
    }
    double steps[LAC_CASE_COUNT_];
    static const double left[LAC_CASE_COUNT_] = {0.0, 0.5, 1.0};
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        change.idle_factor[LAC_CAUSE_DEPENDENCY] = left[which];
        if (which == LAC_CASE_MID) {
            lac_finding_note(facts, LAC_FINDING_DEPENDENCY_STALL, &change);
        }
        steps[which] = lac_what_if_replay(facts, &change);
    }
    lac_finding_estimate_steps(facts, finding, steps);
    if (finding->gain_mid_pct < GAIN_MIN_PCT) { /* something longer hides it: nothing to propose */
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.5;
    finding->title = lac_texts_add(
        &analysis->texts, "Streams wait for each other for %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = "The next operation was launched in time, but its stream waits for an event on "
                   "another stream, and nothing else is queued.";
    finding->brief = "wait later";
    finding->change = "# wait for the other stream only where its result is used:\n"
                      "torch.cuda.current_stream().wait_stream(other)";
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes that half of it can be moved.",
                                    lac_finding_expect(facts, finding));
    finding->costs = "Risk: without a needed wait, kernels read data that is not ready.";
    finding->wrong_if = "the operation after the wait needs everything the other stream computes.";
    finding->check = "record ten steps and check what the other stream ran in the gaps";
    lac_evidence_gaps(facts, finding, LAC_CAUSE_DEPENDENCY, 3);
    return true;
}
