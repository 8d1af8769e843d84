/* Findings: pricing, evidence, order. */

#include "analysis/diagnose/findings/findings.h"

#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lac_finding *lac_finding_new(struct lac_diagnosis *diagnosis, const char *id)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    if (analysis->finding_count == LAC_FINDINGS_MAX) {
        return NULL;
    }
    struct lac_finding *finding = &analysis->findings[analysis->finding_count++];
    *finding = (struct lac_finding){
        .id = id,
        .cost_ns_per_step = LAC_UNKNOWN_NS,
        .cost_pct = (double)NAN,
        .gain_low_pct = (double)NAN,
        .gain_mid_pct = (double)NAN,
        .gain_high_pct = (double)NAN,
        .step_low_ns = LAC_UNKNOWN_NS,
        .step_mid_ns = LAC_UNKNOWN_NS,
        .step_high_ns = LAC_UNKNOWN_NS,
        .title = "",
        .why = "",
        .change = "",
        .where = "",
        .brief = "",
        .expect = "",
        .costs = "",
        .wrong_if = "",
        .check = "",
    };
    return finding;
}

double lac_pct_of_step(const struct lac_diagnosis *diagnosis, double ns)
{
    return 100.0 * ns / diagnosis->time->step_ns;
}

void lac_finding_cost(const struct lac_diagnosis *diagnosis, struct lac_finding *finding,
                      double cost_ns)
{
    finding->cost_ns_per_step = llround(cost_ns);
    finding->cost_pct = lac_pct_of_step(diagnosis, cost_ns);
}

void lac_finding_price_steps(const struct lac_diagnosis *diagnosis, struct lac_finding *finding,
                             const double step_ns[LAC_CASE_COUNT_])
{
    double now_ns = diagnosis->time->step_ns;
    double best_ns = fmin(step_ns[LAC_CASE_BEST], step_ns[LAC_CASE_MID]);
    double worst_ns = fmin(now_ns, fmax(step_ns[LAC_CASE_WORST], step_ns[LAC_CASE_MID]));
    double mid_ns = fmin(now_ns, step_ns[LAC_CASE_MID]);
    finding->step_low_ns = llround(best_ns);
    finding->step_mid_ns = llround(mid_ns);
    finding->step_high_ns = llround(worst_ns);
    finding->gain_low_pct = 100.0 * (now_ns - worst_ns) / now_ns;
    finding->gain_mid_pct = 100.0 * (now_ns - mid_ns) / now_ns;
    finding->gain_high_pct = 100.0 * fmax(0.0, now_ns - best_ns) / now_ns;
}

/** Whether the change leaves the device's work as it is: then a step takes that long at least. */
static bool keeps_device_work(const struct lac_what_if_changes *what_if)
{
    return what_if->layout_nhwc <= 0 && what_if->pinned <= 0 && what_if->async_copies <= 0 &&
           what_if->comm < 0.0 && what_if->kernels < 0.0;
}

/** Whether the step with the change would be shorter yet if every batch were there in time. */
static bool is_bound_by_loader(const struct lac_diagnosis *diagnosis,
                               const struct lac_what_if_changes *what_if, double step_ns)
{
    static const double felt = 1.03;
    struct lac_change change;
    lac_change_from_what_if(diagnosis, what_if, LAC_CASE_MID, &change);
    change.is_loader_free = true;
    return diagnosis->analysis->loader.is_present &&
           step_ns > felt * lac_retime(diagnosis, &change);
}

void lac_finding_price(const struct lac_diagnosis *diagnosis, struct lac_finding *finding,
                       const struct lac_what_if_changes *what_if)
{
    double step_ns[LAC_CASE_COUNT_];
    double least_ns = keeps_device_work(what_if) ? diagnosis->time->busy_ns : 0.0;
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_from_what_if(diagnosis, what_if, (enum lac_case)which, &change);
        step_ns[which] = fmax(least_ns, lac_retime(diagnosis, &change));
    }
    lac_finding_price_steps(diagnosis, finding, step_ns);
    finding->ends_at_loader = is_bound_by_loader(diagnosis, what_if, step_ns[LAC_CASE_MID]);
}

enum lac_severity lac_severity_of_gain(double gain_pct)
{
    if (gain_pct >= 20.0) {
        return LAC_SEVERITY_CRITICAL;
    }
    return gain_pct >= 3.0 ? LAC_SEVERITY_WARNING : LAC_SEVERITY_INFO;
}

/** What stands in the way after the change, or "". */
static const char *next_limit(const struct lac_diagnosis *diagnosis,
                              const struct lac_finding *finding)
{
    const struct lac_loader_facts *loader = &diagnosis->analysis->loader;
    bool is_unknown =
        loader->is_present && loader->num_workers != 0 && loader->fetch_mean_ns == LAC_UNKNOWN_NS;
    if (lac_is_about_loading(finding->id)) {
        return "";
    }
    if (finding->ends_at_loader) {
        return "; then batches come no faster";
    }
    return is_unknown && finding->gain_mid_pct >= 10.0
               ? "; if batches come that fast, which was not recorded"
               : "";
}

const char *lac_finding_expect(struct lac_diagnosis *diagnosis, const struct lac_finding *finding)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_said step = lac_say_ns(finding->step_mid_ns);
    double factor = (double)analysis->step_mean_ns / (double)finding->step_mid_ns;
    struct lac_said rate = lac_say_rate(analysis->throughput_per_s * factor);
    struct lac_said band = lac_say_band(finding->gain_low_pct, finding->gain_high_pct);
    struct lac_said mid = lac_say_band(finding->gain_mid_pct, finding->gain_mid_pct);
    bool is_wide = strcmp(band.text, mid.text) != 0;
    return lac_texts_add(&analysis->texts,
                         "%s a step, %s %s/s: %s less time a step (%s%s%s measured)%s", step.text,
                         rate.text, analysis->throughput_unit, mid.text, is_wide ? band.text : "",
                         is_wide ? ", " : "", lac_say_count(analysis->step_kept_count, "step").text,
                         next_limit(diagnosis, finding));
}

const char *lac_track_label(struct lac_diagnosis *diagnosis, uint32_t track)
{
    const struct lac_model *model = diagnosis->model;
    const struct lac_track *at = &model->tracks[track];
    const char *name = lac_model_str(model, at->name);
    if (name[0] != '\0') {
        return lac_texts_add(&diagnosis->analysis->texts, "%.80s", name);
    }
    return lac_texts_add(&diagnosis->analysis->texts, "%s %.40s", lac_track_kind_name(at->kind),
                         lac_model_str(model, at->id_text));
}

void lac_evidence_slice(struct lac_diagnosis *diagnosis, struct lac_finding *finding,
                        uint64_t slice, const char *text)
{
    if (finding->evidence_count == LAC_EVIDENCE_MAX) {
        return;
    }
    const struct lac_slices *slices = &diagnosis->model->slices;
    uint32_t track = lac_model_track_of(diagnosis->model, slice);
    finding->evidence[finding->evidence_count++] =
        (struct lac_evidence){.track = track,
                              .slice = (uint32_t)slice,
                              .track_name = lac_track_label(diagnosis, track),
                              .t0_ns = slices->start_ns[slice],
                              .t1_ns = slices->start_ns[slice] + slices->dur_ns[slice],
                              .text = text};
}

void lac_evidence_gap(struct lac_diagnosis *diagnosis, struct lac_finding *finding, uint64_t gap,
                      const char *text)
{
    if (finding->evidence_count == LAC_EVIDENCE_MAX) {
        return;
    }
    const struct lac_gap *at = &diagnosis->analysis->gaps[gap];
    long long id = (long long)diagnosis->analysis->devices[at->device].id;
    finding->evidence[finding->evidence_count++] = (struct lac_evidence){
        .track = LAC_NONE,
        .slice = LAC_NONE,
        .track_name = lac_texts_add(&diagnosis->analysis->texts, "GPU %lld", id),
        .t0_ns = at->start_ns,
        .t1_ns = at->start_ns + at->dur_ns,
        .text = text};
}

enum lac_framework lac_framework_of(const struct lac_model *model)
{
    switch (model->info.format) {
    case LAC_FORMAT_KINETO:
    case LAC_FORMAT_LACUNA:
        return LAC_FRAMEWORK_PYTORCH;
    case LAC_FORMAT_TENSORFLOW:
        return LAC_FRAMEWORK_TENSORFLOW;
    case LAC_FORMAT_UNKNOWN:
    case LAC_FORMAT_CHROME:
    case LAC_FORMAT_NSYS:
    case LAC_FORMAT_NVPROF:
        break;
    }
    return LAC_FRAMEWORK_UNKNOWN;
}

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

enum lac_status lac_findings_make(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    lac_subject_decide(diagnosis);
    enum lac_status status = lac_phases_measure(diagnosis);
    if (!status) {
        status = lac_loading_measure(diagnosis);
    }
    if (status) {
        return status;
    }
    lac_find_out_of_memory(diagnosis);
    bool is_distorted = lac_find_debug_switches(diagnosis);
    bool may_advise = analysis->subject == LAC_SUBJECT_TRAINING && diagnosis->time && !is_distorted;
    if (analysis->subject == LAC_SUBJECT_HOST_TRAINING && !is_distorted) {
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
    lac_verdict_say(diagnosis);
    lac_notes_write(diagnosis);
    return LAC_OK;
}
