/* Findings: pricing, evidence, order. */

#include "analysis/diagnose/findings/findings.h"

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A wait for data that a change takes away is worth as much as any other wait: from 3 % a warning.
 */
static void weigh_data_wait(struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (finding->severity == LAC_SEVERITY_INFO && finding->gain_mid_pct >= 3.0 &&
            lac_is_about_loading(finding->id)) {
            finding->severity = LAC_SEVERITY_WARNING;
        }
    }
}

bool lac_finding_says_it_all(const struct lac_finding *finding)
{
    return strcmp(finding->id, "out-of-memory") == 0 ||
           (strcmp(finding->id, "debug-switches") == 0 &&
            finding->severity == LAC_SEVERITY_CRITICAL);
}

/** Three steps show what they were, but not what to change: findings are remarks then. */
static bool is_too_few_to_act(const struct lac_analysis *analysis)
{
    return analysis->subject == LAC_SUBJECT_TRAINING && analysis->step_kept_count <= STEPS_MIN;
}

static void weigh_few_steps(struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count && is_too_few_to_act(analysis); i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (lac_finding_says_it_all(finding)) {
            continue;
        }
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = fmin(0.4, finding->confidence);
        finding->brief = finding->change = finding->expect = finding->costs = finding->where = "";
        finding->check = "record ten steps after five of warm-up";
    }
}

/** What to do first: by gain; what every step pays before what is paid once; "the GPU is the limit"
 *  before what gains less than a percent. */
static double rank_of(const struct lac_finding *finding)
{
    if (lac_finding_says_it_all(finding)) {
        return HUGE_VAL;
    }
    if (strcmp(finding->id, "gpu-bound") == 0) {
        return 1.0;
    }
    if (strcmp(finding->id, "unfused-elementwise") == 0) { /* what the trace cannot confirm */
        return 0.9;
    }
    if (isnan(finding->gain_mid_pct)) {
        return -1.0;
    }
    return finding->is_once ? fmin(0.5, finding->gain_mid_pct) : finding->gain_mid_pct;
}

static int by_rank(const void *a, const void *b)
{
    const struct lac_finding *x = a;
    const struct lac_finding *y = b;
    double rank_x = rank_of(x);
    double rank_y = rank_of(y);
    if (rank_x > rank_y || rank_x < rank_y) {
        return rank_x > rank_y ? -1 : 1;
    }
    return strcmp(x->id, y->id);
}

/** What holds beside the step's own limits: memory, clocks, the host, the rest of the job. */
static void find_facts(struct lac_diagnosis *diagnosis)
{
    lac_find_memory_headroom(diagnosis);
    lac_find_missing_no_grad(diagnosis);
    lac_find_recompute(diagnosis);
    lac_find_phase_overhead(diagnosis);
    lac_find_clocks_held_down(diagnosis);
    lac_find_energy(diagnosis);
    lac_find_host_single_thread(diagnosis);
    lac_find_gc_pauses(diagnosis);
    lac_find_padding_waste(diagnosis);
}

void lac_findings_make(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    lac_find_out_of_memory(diagnosis);
    bool is_distorted = lac_find_debug_switches(diagnosis);
    bool may_advise = analysis->subject == LAC_SUBJECT_TRAINING && diagnosis->time && !is_distorted;
    bool may_judge_loading = analysis->subject == LAC_SUBJECT_HOST_TRAINING && !is_distorted;
    if (may_advise || may_judge_loading) {
        lac_padding_take_setting(diagnosis);
    }
    if (may_judge_loading) {
        lac_find_loading(diagnosis);
        lac_find_padding_waste(diagnosis);
    }
    if (may_advise) {
        lac_find_loading(diagnosis);
        lac_find_layout_conversion(diagnosis);
        lac_find_pageable_copy(diagnosis);
        lac_find_blocking_copy(diagnosis);
        lac_find_numa_remote(diagnosis);
        lac_find_tensor_cores_unused(diagnosis);
        lac_find_gpu_bound(diagnosis);
        lac_find_sync_stall(diagnosis);
        lac_find_launch_bound(diagnosis);
        lac_find_exposed_communication(diagnosis);
        lac_find_allocator_thrash(diagnosis);
        lac_find_module_load(diagnosis);
        lac_find_dependency_stall(diagnosis);
        lac_find_profiler_overhead(diagnosis);
        lac_find_step_outliers(diagnosis);
        lac_find_unnamed_wait(diagnosis);
        lac_find_drift(diagnosis);
        lac_find_unfused_attention(diagnosis);
        lac_find_unfused_elementwise(diagnosis);
        lac_find_slow_optimizer(diagnosis);
        lac_find_small_grid(diagnosis);
        lac_find_tensor_cores_misaligned(diagnosis);
        find_facts(diagnosis);
    }
    weigh_data_wait(analysis);
    weigh_few_steps(analysis);
    if (analysis->finding_count > 1) {
        qsort(analysis->findings, analysis->finding_count, sizeof *analysis->findings, by_rank);
    }
    if (may_advise && !is_too_few_to_act(analysis)) {
        lac_plan_make(diagnosis);
    }
}
