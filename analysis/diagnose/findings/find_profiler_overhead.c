/* What the recorder itself cost: no change to the training, but a step is shorter without it. */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

bool lac_find_profiler_overhead(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    double cost_ns = facts->time->idle_ns[LAC_CAUSE_PROFILER];
    if (lac_pct_of_step(facts, cost_ns) < COST_MIN_PCT) {
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.8;
    finding->title = lac_texts_add(
        &analysis->texts, "The profiler stalls the GPU for %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = "It flushes buffers inside steps. Without it, steps are that much shorter: "
                   "compare only runs recorded the same way.";
    lac_evidence_gaps(facts, finding, LAC_CAUSE_PROFILER, 3);
    return true;
}
