/* Model -> analysis: the order of the parts. Each part is a file; what it needs is in facts.h. */

#include "analysis/diagnose/diagnose.h"

#include "analysis/diagnose/diagnose_private.h"
#include "analysis/diagnose/facts/collectives.h"
#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/facts/products.h"
#include "analysis/diagnose/facts/program.h"
#include "analysis/diagnose/facts/recorded/gpu_allocations.h"
#include "analysis/diagnose/facts/recorded/python_frames.h"
#include "analysis/diagnose/facts/recorded/python_samples.h"
#include "analysis/diagnose/facts/step_operations.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/loading/loading.h"
#include "analysis/diagnose/replay/what_if_replay.h"
#include "analysis/diagnose/steps/steps.h"
#include "analysis/diagnose/wording/wording.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static void set_unknown(struct lac_analysis *analysis)
{
    analysis->step_method = "none";
    analysis->step_mean_ns = LAC_UNKNOWN_NS;
    analysis->step_median_ns = LAC_UNKNOWN_NS;
    analysis->step_p95_ns = LAC_UNKNOWN_NS;
    analysis->step_host_ns = LAC_UNKNOWN_NS;
    analysis->step_without_starvation_ns = LAC_UNKNOWN_NS;
    analysis->step_spread_pct = (double)NAN;
    analysis->step_uncertain_pct = (double)NAN;
    analysis->throughput_unit = "steps";
    analysis->throughput_per_s = (double)NAN;
    analysis->padding_pct = (double)NAN;
    analysis->batch_size = LAC_UNKNOWN_NS;
    analysis->layout_pct = (double)NAN;
    analysis->tensor_used_pct = (double)NAN;
    analysis->partition = (struct lac_time_partition){.device = LAC_NONE, .per = ""};
    analysis->needs = lac_needs_unknown();
    analysis->verdict = (struct lac_verdict){"unknown", '?', "", "", 0};
    analysis->unknown_kernels_pct = (double)NAN;
    analysis->efficiency = (struct lac_efficiency){.basis = "none",
                                                   .why_not = "",
                                                   .flops_per_step = (double)NAN,
                                                   .model_flops_per_step = (double)NAN,
                                                   .achieved_flops_per_s = (double)NAN,
                                                   .peak_flops_per_s = (double)NAN,
                                                   .mfu_pct = (double)NAN,
                                                   .hfu_pct = (double)NAN,
                                                   .products_pct = (double)NAN,
                                                   .counted_pct = (double)NAN,
                                                   .device = "",
                                                   .source = "",
                                                   .text = ""};
    analysis->loader = (struct lac_loader_facts){.wait_ns = LAC_UNKNOWN_NS,
                                                 .starved_ns = LAC_UNKNOWN_NS,
                                                 .wait_pct_of_steps = (double)NAN,
                                                 .num_workers = -1,
                                                 .recommended_num_workers = -1,
                                                 .fetch_mean_ns = LAC_UNKNOWN_NS,
                                                 .fetch_p95_ns = LAC_UNKNOWN_NS,
                                                 .pin_mean_ns = LAC_UNKNOWN_NS,
                                                 .batches_per_step = -1,
                                                 .fetch_cpu_mean_ns = LAC_UNKNOWN_NS,
                                                 .worker_busy_pct = (double)NAN,
                                                 .fetch_spread = (double)NAN};
    analysis->python_samples.text = "";
    analysis->replay = (struct lac_replay_facts){"none", 0, (double)NAN};
}

void lac_facts_done(struct lac_facts *facts)
{
    lac_collectives_destroy(facts->collectives);
    lac_python_frames_destroy(facts->python_frames);
    lac_step_operations_destroy(facts->step_operations);
    lac_host_activity_done(facts);
    for (uint32_t d = 0; d < facts->analysis->device_count && facts->device_sets != NULL; d++) {
        struct lac_device_sets *sets = &facts->device_sets[d];
        lac_spans_done(&sets->compute);
        lac_spans_done(&sets->comm);
        lac_spans_done(&sets->kernels);
        lac_spans_done(&sets->copies);
        lac_spans_done(&sets->busy);
        lac_spans_done(&sets->idle);
    }
    free(facts->device_sets);
    free(facts->outside);
    free(facts->api_class);
    free(facts->host_class);
    free(facts->other_work);
    free(facts->step_numbers);
    free(facts->stretches);
    free(facts->kernel_row);
    free(facts->track_flags);
    free(facts->launched_from_ns);
    lac_spans_done(&facts->kept);
    lac_spans_done(&facts->host_kept);
    lac_spans_done(&facts->steps);
    lac_products_destroy(facts->products);
    lac_step_time_destroy(facts->time);
    lac_loading_destroy(facts->loading);
}

/** Counts, times, causes, steps. */
static enum lac_status find_facts(struct lac_facts *facts)
{
    enum lac_status status = lac_scan_slices(facts);
    if (status) {
        return status;
    }
    lac_kernels_sort(facts);
    lac_layout_measure(facts);
    lac_tensor_core_measure(facts);
    status = lac_host_activity_collect(facts);
    if (!status) {
        status = lac_pauses_collect(facts);
    }
    if (!status) {
        status = lac_devices_measure(facts);
    }
    if (!status) {
        status = lac_main_host_choose(facts);
    }
    if (!status) {
        status = lac_before_capture_collect(facts);
    }
    if (status) {
        return status;
    }
    lac_layout_expose(facts);
    status = lac_copies_measure(facts);
    if (!status) {
        status = lac_gaps_attribute(facts);
    }
    if (!status) {
        status = lac_main_host_follow(facts);
    }
    lac_settings_read(facts);
    lac_loader_count_workers(facts);
    if (!status) {
        status = lac_steps_detect(facts);
    }
    if (!status) {
        status = lac_steps_filter(facts);
    }
    if (!status) {
        status = lac_launched_from_collect(facts);
    }
    if (!status) {
        status = lac_loader_measure(facts);
    }
    if (!status) {
        status = lac_partition_of_step(facts);
    }
    return status ? status : lac_gaps_sign(facts);
}

enum lac_status lac_facts_find(struct lac_facts *facts)
{
    set_unknown(facts->analysis);
    facts->analysis->duration_ns = facts->model->info.duration_ns;
    facts->main_host = LAC_NONE;
    facts->python_samples_track = LAC_NONE;
    enum lac_status status = find_facts(facts);
    if (!status) {
        status = lac_optimizer_infer(facts);
    }
    if (!status) {
        status = lac_step_time_measure(facts);
    }
    if (!status) {
        status = lac_step_operations_collect(facts);
    }
    if (!status) {
        status = lac_python_frames_measure(facts);
    }
    if (!status) {
        status = lac_python_samples_measure(facts);
    }
    if (!status) {
        status = lac_gpu_allocations_measure(facts);
    }
    if (!status) {
        status = lac_trained_model_find(facts);
    }
    return status ? status : lac_collectives_collect(facts);
}

/** What it means: kind of trace, phases, why batches are late, findings, and what is
 *  said of all. */
static enum lac_status draw_conclusions(struct lac_facts *facts)
{
    lac_workload_kind_decide(facts);
    lac_partition_settle(facts);
    enum lac_status status = lac_phases_measure(facts);
    if (!status) {
        status = lac_loading_measure(facts);
    }
    if (!status) {
        lac_findings_make(facts);
        status = lac_findings_tell_lines(facts);
    }
    if (!status) {
        lac_views_choose(facts);
        lac_unit_words_apply(facts);
        lac_verdict_say(facts);
        lac_notes_write(facts);
    }
    return status;
}

/** A profile without times: what ran, how often and how long, never when; no gap, no step. */
static enum lac_status sum_up_without_time(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    set_unknown(analysis);
    facts->main_host = LAC_NONE;
    analysis->main_device = LAC_NONE;
    analysis->workload = LAC_WORKLOAD_NO_STEPS;
    analysis->efficiency.why_not = "the file holds no times";
    enum lac_status status = lac_scan_slices(facts);
    if (!status) {
        lac_kernels_sort(facts);
        lac_layout_measure(facts);
        lac_tensor_core_measure(facts);
        status = lac_copies_measure(facts);
    }
    if (!status) {
        status = lac_gpu_allocations_measure(facts); /* without a device: unknown */
    }
    if (!status) {
        status = lac_loading_measure(facts); /* without steps: unknown */
    }
    if (!status) {
        lac_verdict_without_time(facts);
    }
    return status;
}

enum lac_status lac_diagnose(const struct lac_model *model,
                             const struct lac_diagnose_options *options,
                             struct lac_analysis **ret_analysis, struct lac_error *reterr)
{
    assert(model != NULL && ret_analysis != NULL);
    struct lac_analysis *analysis = calloc(1, sizeof(*analysis));
    if (analysis == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory in diagnosis");
    }
    struct lac_facts facts = {.model = model,
                              .analysis = analysis,
                              .reterr = reterr,
                              .names = options != NULL ? options->names : NULL,
                              .crew = options != NULL ? options->crew : NULL};
    const bool has_time = !model->info.has_no_time;
    enum lac_status status = has_time ? lac_facts_find(&facts) : sum_up_without_time(&facts);
    if (!status && has_time) {
        status = lac_products_measure(&facts);
    }
    if (!status && has_time) {
        status = draw_conclusions(&facts);
    }
    if (!status && has_time && options != NULL && options->has_what_if) {
        lac_what_if_answer(&facts, &options->what_if);
    }
    if (!status && has_time && options != NULL && options->wants_worker_steps) {
        lac_worker_steps_measure(&facts);
    }
    lac_facts_done(&facts);
    if (!status && lac_texts_failed(analysis->texts)) {
        status = LAC_ERR_NOMEM;
    }
    if (status) {
        lac_analysis_destroy(analysis);
        return status == LAC_ERR_NOMEM
                   ? lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory in diagnosis")
                   : status;
    }
    assert(lac_analysis_adds_up(analysis));
    *ret_analysis = analysis;
    return LAC_OK;
}
