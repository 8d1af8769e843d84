/* First look whether this is a steady training step at all: if not, that is said, and no more. */

#include "analysis/diagnose/steps/steps.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/** A first use takes so many times as long as a later one, at least. */
enum { FIRST_USE_TIMES = 20 };

/** Whether a kernel's name shows training. */
static bool has_training_kernels(const struct lac_facts *facts)
{
    for (uint32_t row = 0; row < facts->analysis->kernel_name_count; row++) {
        if (lac_kernel_name_trains(facts, row)) {
            return true;
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

/** The hole in the main device's work that is most of its span; false where none is. */
static bool longest_hole(const struct lac_analysis *analysis, struct lac_span *ret_hole)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        if (gap->dur_ns > device->span_ns / 2) {
            *ret_hole = (struct lac_span){gap->start_ns, gap->start_ns + gap->dur_ns};
            return true;
        }
    }
    return false;
}

/** The first operator of a thread that was in it for all of a hole, or LAC_NONE. */
static uint32_t operator_around(const struct lac_facts *facts, struct lac_span hole)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t slack_ns = (hole.end_ns - hole.start_ns) / 20;
    for (uint32_t t = 0; t < facts->model->recorded_track_count; t++) {
        const struct lac_track *track = &facts->model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER || (facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
            bool is_around = slices->start_ns[i] <= hole.start_ns + slack_ns &&
                             end_ns >= hole.end_ns - slack_ns &&
                             slices->dur_ns[i] <= hole.end_ns - hole.start_ns + 2 * slack_ns;
            bool is_operator = /* TensorFlow's timeline does not say what its rows are */
                slices->kind[i] == LAC_SLICE_OP || slices->kind[i] == LAC_SLICE_OTHER;
            if (is_operator && is_around) {
                return (uint32_t)i;
            }
        }
    }
    return LAC_NONE;
}

/** Whether the device waits for most of its time while an operator is used for the first time: later uses
 *  of it take next to nothing. Calls would say what it loads; this is for recordings without. */
static bool is_first_use_of_operator(struct lac_facts *facts)
{
    const struct lac_slices *slices = &facts->model->slices;
    struct lac_span hole;
    if (facts->has_api || facts->analysis->step_count > 0 ||
        !longest_hole(facts->analysis, &hole)) {
        return false;
    }
    uint32_t first = operator_around(facts, hole);
    uint64_t later = 0;
    for (uint32_t t = 0; first != LAC_NONE && t < facts->model->recorded_track_count; t++) {
        const struct lac_track *track = &facts->model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER || (facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            if (i == first || slices->name[i] != slices->name[first]) {
                continue;
            }
            if (slices->start_ns[i] < slices->start_ns[first] ||
                slices->dur_ns[i] > slices->dur_ns[first] / FIRST_USE_TIMES) {
                return false;
            }
            later++;
        }
    }
    if (later > 0) {
        facts->first_use.name = slices->name[first];
        facts->first_use.dur_ns = slices->dur_ns[first];
    }
    return later > 0;
}

/** Whether first use of the GPU fills the trace: loading modules and allocating. */
static bool is_cold(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t first_use_ns = device->idle_by_cause_ns[LAC_CAUSE_MODULE_LOAD] +
                           device->idle_by_cause_ns[LAC_CAUSE_ALLOCATOR];
    return first_use_ns > device->span_ns / 2 || is_first_use_of_operator(facts);
}

/** Whether the steps are one turn of workers whose rhythm the waits show: then that is their mean. */
static bool are_one_turn(const struct lac_analysis *analysis)
{
    return analysis->loader.are_workers_inferred &&
           analysis->step_kept_count == (uint32_t)analysis->loader.num_workers &&
           analysis->step_uncertain_pct <= ALIKE_MAX_PCT;
}

/** Whether the steps have a mean: two that are alike do, ten that are not do not. */
static bool have_mean(const struct lac_analysis *analysis)
{
    if (are_one_turn(analysis)) {
        return true;
    }
    return analysis->step_kept_count >= STEPS_MIN ||
           (analysis->step_kept_count == 2 &&
            (double)(analysis->step_p95_ns - analysis->step_median_ns) * 100.0 <=
                ALIKE_MAX_PCT * (double)analysis->step_mean_ns);
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
    if (analysis->device_count == 0 || lac_why_no_kernels(facts) != NULL) {
        bool is_training =
            facts->has_backward && facts->time != NULL && has_step_names && have_mean(analysis);
        analysis->workload = is_training ? LAC_WORKLOAD_HOST_TRAINING : LAC_WORKLOAD_NO_GPU;
    } else if (is_cold(facts) && (!have_mean(analysis) || !has_step_names)) {
        analysis->workload = LAC_WORKLOAD_COLD_START;
    } else if (!facts->has_backward && facts->has_operators && !has_training_kernels(facts)) {
        analysis->is_part_of_step =
            (!has_step_names || analysis->step_count == 0) && builds_graph(facts);
        analysis->workload =
            analysis->is_part_of_step ? LAC_WORKLOAD_NO_STEPS : LAC_WORKLOAD_INFERENCE;
    } else if (facts->repeats_inside_pass) {
        analysis->is_part_of_step = true;
        analysis->workload = LAC_WORKLOAD_NO_STEPS;
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
