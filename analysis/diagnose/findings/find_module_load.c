/* Code that is loaded or compiled inside steps, after warm-up: new shapes, or a recompilation. */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

/** Steps in which something was loaded: of a cycle that was cut, too. */
struct hits {
    uint32_t count, late_count; /**< all; in the last half of them */
    uint32_t steps;
};

static bool is_usual(const struct lac_step *step)
{
    return step->left_out == LAC_STEP_KEPT || step->left_out == LAC_STEP_PARTIAL_CYCLE;
}

static struct hits steps_hit(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct hits hits = {0};
    if (facts->main_host == LAC_NONE) {
        return hits;
    }
    const struct lac_spans *modules = &facts->hosts[facts->main_host].sets[LAC_SET_MODULE];
    uint32_t seen = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        hits.steps += is_usual(&analysis->steps[s]);
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!is_usual(step)) {
            continue;
        }
        bool is_late = 2 * seen++ >= hits.steps;
        if (lac_spans_length_inside(modules, step->host_start_ns,
                                    step->host_start_ns + step->host_dur_ns) > 0) {
            hits.count++;
            hits.late_count += is_late;
        }
    }
    return hits;
}

/** Loads that come in few steps, or stop coming, are first uses: a long job pays them once. */
static bool is_paid_once(const struct hits *hits)
{
    return hits->count <= 2 || hits->count * 10 <= hits->steps || hits->late_count == 0;
}

bool lac_find_module_load(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_module_load = 1;
    double cost_ns = facts->time->idle_ns[LAC_CAUSE_MODULE_LOAD];
    if (!lac_finding_open(facts, finding, cost_ns, COST_MIN_PCT, &what_if)) {
        return false;
    }
    struct hits hits = steps_hit(facts);
    finding->title = lac_texts_add(
        &analysis->texts, "Loading or compiling code takes %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(&analysis->texts,
                                 "It happens in %u of %s after warm-up. Kernels load at first use: "
                                 "later loads mean new shapes or recompilation.",
                                 (unsigned)hits.count, lac_format_count(hits.steps, "step").text);
    bool is_one_time_cost = is_paid_once(&hits);
    finding->brief = is_one_time_cost ? "load before the loop" : "one shape for all steps";
    finding->change = is_one_time_cost
                          ? "CUDA_MODULE_LOADING=EAGER python train.py   # or run each shape "
                            "once before the loop"
                          : "torch._dynamo.mark_dynamic(batch, 0)         # if torch.compile is "
                            "used\nDataLoader(..., drop_last=True)               # no shorter "
                            "last batch";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs =
        is_one_time_cost ? "A longer start." : "One partial batch per epoch is skipped.";
    finding->wrong_if = "the loads continue with one shape for all steps.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    finding->is_one_time_cost = is_one_time_cost;
    if (is_one_time_cost) { /* no promise about an epoch */
        finding->change_kind = LAC_CHANGE_COMMAND;
        finding->effort = LAC_EFFORT_SETTING;
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = 0.5;
    }
    lac_evidence_gaps(facts, finding, LAC_CAUSE_MODULE_LOAD, 3);
    return true;
}
