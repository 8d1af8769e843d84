/* Code that is loaded or compiled inside steps, after warm-up: new shapes, or a recompilation. */

#include "analysis/diagnose/findings.h"

#include <math.h>
#include <stdint.h>

/** Kept steps in which the device waited for it. */
static uint32_t steps_hit(const struct lac_diagnosis *diagnosis)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
    if (diagnosis->main_host == LAC_NONE) {
        return 0;
    }
    const struct lac_spans *modules = &diagnosis->hosts[diagnosis->main_host].sets[LAC_SET_MODULE];
    uint32_t hit = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        hit += step->left_out == LAC_STEP_KEPT &&
               lac_spans_length_inside(modules, step->start_ns, step->start_ns + step->dur_ns) > 0;
    }
    return hit;
}

void lac_find_module_load(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_module_load = 1;
    double cost_ns = diagnosis->time->idle_ns[LAC_CAUSE_MODULE_LOAD];
    struct lac_finding *finding =
        lac_finding_open(diagnosis, "module-load", cost_ns, 1.0, &what_if);
    if (!finding) {
        return;
    }
    uint32_t hit = steps_hit(diagnosis);
    finding->title =
        lac_texts_add(&analysis->texts, "Code is loaded or compiled for %s of every %s step (%s)",
                      lac_say_ns(llround(cost_ns)).text, lac_say_ns(analysis->step_mean_ns).text,
                      lac_say_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "It happens in %u of %s after warm-up. Kernels are loaded at their first use: later "
        "loads mean new shapes, or a compiler that starts again for them.",
        (unsigned)hit, lac_say_count(analysis->step_kept_count, "step").text);
    bool is_once = hit * 10 <= analysis->step_kept_count || hit <= 1;
    finding->brief = is_once ? "load before the loop" : "one shape for all steps";
    finding->change = is_once
                          ? "CUDA_MODULE_LOADING=EAGER python train.py   # or run each shape "
                            "once before the loop"
                          : "torch._dynamo.mark_dynamic(batch, 0)         # if torch.compile is "
                            "used\nDataLoader(..., drop_last=True)               # no shorter "
                            "last batch";
    finding->expect = lac_finding_expect(diagnosis, finding);
    finding->costs = is_once ? "A longer start." : "A partial batch an epoch is not trained on.";
    finding->wrong_if = "the loads go on with one shape for all steps.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps and analyze them: %s a step",
                                   lac_say_ns(finding->step_mid_ns).text);
    if (is_once) { /* a long job pays it once: no promise about an epoch */
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = 0.5;
    }
    lac_evidence_gaps(diagnosis, finding, LAC_CAUSE_MODULE_LOAD, 3);
}
