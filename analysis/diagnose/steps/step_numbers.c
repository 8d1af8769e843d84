/* Figures of the kept steps: their mean, how well it is known, and which are outliers. */

#include "analysis/diagnose/steps/step_pace.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int lac_by_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

int64_t lac_percentile(const int64_t *sorted, uint32_t count, uint32_t percent)
{
    uint64_t rank = ((uint64_t)count * percent + 99) / 100;
    return sorted[rank == 0 ? 0 : rank - 1];
}

/* -- outliers ---------------------------------------------------------------------------------- */

/** Steps that are compared for their length: epoch ends and the like are a kind of their own. */
static bool is_compared(const struct lac_step *step)
{
    return step->left_out == LAC_STEP_KEPT && step->kind == LAC_KIND_TRAIN;
}

/** Median of the operations of kept training steps. */
static int64_t usual_operations(const struct lac_analysis *analysis, int64_t *scratch)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_compared(&analysis->steps[s])) {
            scratch[count++] = (int64_t)analysis->steps[s].op_count;
        }
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    return lac_percentile(scratch, count, 50);
}

/** What the work of a usual step takes of the main device, by who launched it: the length of its
 *  operations, scaled to the device's busy time where they overlap. */
static double usual_work_ns(const struct lac_facts *facts, int64_t *scratch)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_slices *slices = &facts->model->slices;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    bool by_launch = facts->has_api && !facts->has_device_steps;
    double all_ns = 0.0;
    memset(scratch, 0, analysis->step_count * sizeof(*scratch));
    for (uint32_t t = 0; t < facts->model->recorded_track_count; t++) {
        const struct lac_track *track = &facts->model->tracks[t];
        if (!(facts->track_flags[t] & LAC_TRACK_HAS_GPU) || track->device != device->id) {
            continue;
        }
        uint32_t at = 0;
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            if (!lac_is_gpu_work(slices->kind[i])) {
                continue;
            }
            bool is_launched = by_launch && slices->link[i] != LAC_NONE;
            uint64_t origin = is_launched ? slices->link[i] : i;
            uint32_t found = lac_step_at(analysis, slices->start_ns[origin], at);
            all_ns += (double)slices->dur_ns[i];
            if (found != LAC_NONE) {
                at = found;
                scratch[at] += slices->dur_ns[i];
            }
        }
    }
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_compared(&analysis->steps[s])) {
            scratch[count++] = scratch[s];
        }
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    double usual_ns = count > 0 ? (double)lac_percentile(scratch, count, 50) : 0.0;
    return all_ns > 0.0 ? usual_ns * (double)device->busy_ns / all_ns : 0.0;
}

/** Whether the lengths of steps cannot be what the device took for them: where the host runs ahead,
 *  a step on it says when the queue was full. */
static bool is_ahead(const struct lac_facts *facts, int64_t median_ns, int64_t *scratch)
{
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE) {
        return false;
    }
    int64_t busy_ns = analysis->devices[analysis->main_device].busy_ns;
    if ((double)median_ns * analysis->step_count >= PACE_MIN * (double)busy_ns) {
        return false;
    }
    /* or single steps took the device very long: what a usual one takes decides */
    return (double)median_ns < PACE_MIN * usual_work_ns(facts, scratch);
}

/** The lengths of the steps that are compared, and how many those are. */
static uint32_t compared_lengths(const struct lac_analysis *analysis, int64_t *lengths_ns)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_compared(&analysis->steps[s])) {
            lengths_ns[count++] = lac_step_fed_ns(&analysis->steps[s]);
        }
    }
    return count;
}

/** Longer than steps of their kind: those that did other work (a validation, an update after
 *  micro-steps) are not compared. */
void lac_steps_mark_outliers(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t count = compared_lengths(analysis, scratch);
    if (count < 2 * STEPS_MIN) {
        return;
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    int64_t median_ns = lac_percentile(scratch, count, 50);
    if (is_ahead(facts, median_ns, scratch)) {
        return;
    }
    count = compared_lengths(analysis, scratch);
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = llabs(scratch[i] - median_ns);
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    double limit =
        (double)median_ns + OUTLIER_DEVIATIONS * (double)lac_percentile(scratch, count, 50);
    int64_t usual_ops = usual_operations(analysis, scratch);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        double length = (double)lac_step_fed_ns(step);
        bool is_of_its_kind = llabs((int64_t)step->op_count - usual_ops) <= usual_ops / 20 + 2;
        step->is_outlier = is_compared(step) && is_of_its_kind && length > limit &&
                           length > OUTLIER_RATIO * (double)median_ns;
    }
}

/* -- the mean ---------------------------------------------------------------------------------- */

/** Student's t: the mean lies within so many standard errors in 95 of 100 cases. */
static double student(uint32_t degrees)
{
    static const double t[] = {0.0,   12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447, 2.365,  2.306, 2.262, 2.228};
    return degrees < LAC_COUNT_OF(t) ? t[degrees] : 1.96 + 2.7 / degrees;
}

double lac_uncertain_pct(const int64_t *lengths_ns, uint32_t count, uint32_t at_once,
                         double *ret_error_pct)
{
    uint32_t sums = count / at_once;
    double all_ns = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < sums * at_once; i++) {
        all_ns += (double)lengths_ns[i];
    }
    double mean_ns = sums > 0 ? all_ns / sums : 0.0;
    *ret_error_pct = (double)NAN;
    if (sums < 2 || mean_ns <= 0.0) {
        return (double)NAN;
    }
    for (uint32_t i = 0; i < sums; i++) {
        double ns = 0.0;
        for (uint32_t k = 0; k < at_once; k++) {
            ns += (double)lengths_ns[i * at_once + k];
        }
        squares += (ns - mean_ns) * (ns - mean_ns);
    }
    double error = sqrt(squares / (double)(sums - 1)) / sqrt((double)sums);
    *ret_error_pct = 100.0 * error / mean_ns;
    return fmin(100.0, student(sums - 1) * *ret_error_pct);
}

struct lac_step_mean lac_steps_mean(const struct lac_facts *facts, int64_t *scratch)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_step_mean mean = {.uncertain_pct = (double)NAN, .error_pct = (double)NAN};
    double sum_ns = 0.0;
    double starved_ns = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            scratch[mean.kept_count++] = analysis->steps[s].dur_ns;
            sum_ns += (double)analysis->steps[s].dur_ns;
            starved_ns += (double)analysis->steps[s].starved_ns;
        }
    }
    if (mean.kept_count == 0) {
        return mean;
    }
    mean.mean_ns = sum_ns / mean.kept_count;
    mean.uncertain_pct = lac_uncertain_pct(scratch, mean.kept_count, 1, &mean.error_pct);
    /* what comes back with the workers' turns, or with the update, is no noise */
    uint32_t cycle = lac_steps_cycle(facts, mean.kept_count);
    bool is_turning = analysis->is_step_micro || starved_ns > STARVING_MIN * sum_ns;
    if (cycle < 2 || !is_turning || mean.kept_count % cycle != 0) {
        return mean;
    }
    double error_pct = mean.error_pct;
    double uncertain_pct = (double)NAN;
    if (mean.kept_count / cycle >= STEPS_MIN) {
        uncertain_pct = lac_uncertain_pct(scratch, mean.kept_count, cycle, &error_pct);
    } else if (facts->loader_rhythm.period == cycle) { /* few turns, but the waits show more */
        double off = fabs(mean.mean_ns * cycle - facts->loader_rhythm.turn_ns);
        uncertain_pct =
            fmax(facts->loader_rhythm.uncertain_pct, 100.0 * off / (mean.mean_ns * (double)cycle));
        error_pct = uncertain_pct;
    }
    if (uncertain_pct < mean.uncertain_pct) {
        mean.uncertain_pct = uncertain_pct;
        mean.error_pct = error_pct;
    }
    return mean;
}

void lac_steps_summarise(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_step_mean mean = lac_steps_mean(facts, scratch);
    int64_t host_ns = 0;
    int64_t starved_ns = 0;
    uint32_t count = mean.kept_count;
    analysis->step_kept_count = count;
    if (count == 0) {
        return;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            host_ns = lac_sum_ns(host_ns, step->host_dur_ns);
            starved_ns = lac_sum_ns(starved_ns, step->starved_ns);
        }
    }
    qsort(scratch, count, sizeof(*scratch), lac_by_int64);
    analysis->step_mean_ns = lac_round(mean.mean_ns);
    if (!facts->has_device_steps) {
        analysis->step_host_ns = lac_round((double)host_ns / (double)count);
    }
    analysis->step_median_ns = lac_percentile(scratch, count, 50);
    analysis->step_p95_ns = lac_percentile(scratch, count, 95);
    analysis->step_without_starvation_ns =
        lac_round(mean.mean_ns - (double)starved_ns / (double)count);
    analysis->step_uncertain_pct = mean.uncertain_pct;
    if (count >= STEPS_MIN) {
        analysis->step_spread_pct = mean.error_pct;
    }
}
