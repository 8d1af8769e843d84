/* First look whether this is a steady training step at all: if not, that is said, and no more. */

#include "analysis/diagnose/steps/steps.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/** Whether a kernel's name shows training: gradients or an optimizer. */
static bool has_training_kernels(const struct lac_facts *facts)
{
    static const char *const signs[] = {"ackward", "ackprop", "dgrad", "wgrad",
                                        "_bwd",    "bn_bw",   "Grad"};
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        if (analysis->kernels[row].names.family == LAC_FAMILY_OPTIMIZER) {
            return true;
        }
        const char *name = lac_model_str(facts->model, analysis->kernels[row].name);
        for (size_t i = 0; i < LAC_COUNT_OF(signs); i++) {
            if (strstr(name, signs[i]) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/** Whether an autograd graph is being built: operators have numbers in it, and these grow. A forward
 *  pass that was not told that no gradient is wanted does so as well: where whole steps were marked, a
 *  backward pass would be in them. */
static bool builds_graph(const struct lac_facts *facts)
{
    enum { OPERATORS_MAX = 4000, NODES_MIN = 10 };
    const struct lac_model *model = facts->model;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        int64_t first = -1;
        int64_t last = -1;
        uint64_t seen = 0;
        if (track->kind != LAC_TRACK_THREAD) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count && seen < OPERATORS_MAX;
             i++) {
            if (model->slices.kind[i] != LAC_SLICE_OP) {
                continue;
            }
            seen++;
            int64_t number = lac_sequence_number(model, i);
            if (number >= 0) {
                first = first < 0 ? number : first;
                last = number > last ? number : last;
            }
        }
        if (first >= 0 && last - first >= NODES_MIN) {
            return true;
        }
    }
    return false;
}

/** Whether first use of the GPU fills the trace: loading modules and allocating. */
static bool is_cold(const struct lac_analysis *analysis)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t first_use_ns = device->idle_by_cause_ns[LAC_CAUSE_MODULE_LOAD] +
                           device->idle_by_cause_ns[LAC_CAUSE_ALLOCATOR];
    return first_use_ns > device->span_ns / 2;
}

/** Whether the steps have a mean: two that are alike do, ten that are not do not. */
static bool have_mean(const struct lac_analysis *analysis)
{
    return analysis->step_kept_count >= STEPS_MIN ||
           analysis->step_uncertain_pct <= UNCERTAIN_MAX_PCT;
}

/** Throughput is of steps: none is said where they are not known to be steps, or are too few. */
static bool has_throughput(const struct lac_analysis *analysis, bool has_step_names)
{
    bool is_loop = analysis->workload == LAC_WORKLOAD_TRAINING ||
                   analysis->workload == LAC_WORKLOAD_HOST_TRAINING ||
                   (analysis->workload == LAC_WORKLOAD_INFERENCE && has_step_names);
    return is_loop && have_mean(analysis);
}

void lac_workload_kind_decide(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    bool has_step_names = strcmp(analysis->step_method, "period") != 0;
    if (analysis->device_count == 0) {
        bool is_training =
            facts->has_backward && facts->time != NULL && has_step_names && have_mean(analysis);
        analysis->workload = is_training ? LAC_WORKLOAD_HOST_TRAINING : LAC_WORKLOAD_NO_GPU;
    } else if (is_cold(analysis) && (!have_mean(analysis) || !has_step_names)) {
        analysis->workload = LAC_WORKLOAD_COLD_START;
    } else if (!facts->has_backward && facts->has_operators && !has_training_kernels(facts)) {
        analysis->is_part_of_step =
            (!has_step_names || analysis->step_count == 0) && builds_graph(facts);
        analysis->workload =
            analysis->is_part_of_step ? LAC_WORKLOAD_NO_STEPS : LAC_WORKLOAD_INFERENCE;
    } else if (analysis->step_count == 0 ||
               (!has_step_names && !facts->has_backward && !has_training_kernels(facts))) {
        analysis->workload = LAC_WORKLOAD_NO_STEPS;           /* what repeats may be a layer */
    } else if (!have_mean(analysis) || facts->time == NULL) { /* or of no length */
        analysis->workload = LAC_WORKLOAD_FEW_STEPS;
    } else {
        analysis->workload = LAC_WORKLOAD_TRAINING;
    }
    if (!has_throughput(analysis, has_step_names)) {
        analysis->throughput_per_s = (double)NAN;
        if (analysis->workload != LAC_WORKLOAD_FEW_STEPS) { /* nor what a step needs */
            analysis->needs = lac_needs_unknown();
        }
    }
}
