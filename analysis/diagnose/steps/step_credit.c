/*
 * Loader's workers that nothing names show in the waits for batches: those of n workers come back
 * every n steps, and so do sums over n steps, while single ones differ. What comes before such
 * periods and is faster was given free: batches that lay ready when the recording, or the epoch,
 * began. The pace is that of whole periods.
 */

#include "analysis/diagnose/steps/step_pace.h"

#include <math.h>
#include <stdint.h>

enum { PERIODS_MIN = 3, WORKERS_MAX = 32 };

static double sum_of(const int64_t *lengths_ns, uint32_t first, uint32_t count)
{
    double sum_ns = 0.0;
    for (uint32_t i = first; i < first + count; i++) {
        sum_ns += (double)lengths_ns[i];
    }
    return sum_ns;
}

/** How many steps at the end are whole periods of `period` that take the same time. */
static uint32_t steps_in_periods(const int64_t *lengths_ns, uint32_t count, uint32_t period)
{
    double first_ns = sum_of(lengths_ns, count - period, period);
    uint32_t covered = period;
    while (covered + period <= count) {
        double ns = sum_of(lengths_ns, count - covered - period, period);
        if (fabs(ns - first_ns) > PERIODS_ALIKE_MAX * first_ns) {
            break;
        }
        covered += period;
    }
    return covered;
}

/** Whether the steps are alike one by one: then they need no period. */
static bool are_even(const int64_t *lengths_ns, uint32_t count)
{
    double mean_ns = sum_of(lengths_ns, 0, count) / count;
    for (uint32_t i = 0; i < count; i++) {
        if (fabs((double)lengths_ns[i] - mean_ns) > STEPS_UNEVEN_MIN * mean_ns) {
            return false;
        }
    }
    return true;
}

/** Whether enough of the kept steps' time is waiting for data, by workers of unknown number. */
static bool starves_by_unknown(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t starved_ns = 0;
    int64_t sum_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            starved_ns = lac_sum_ns(starved_ns, analysis->steps[s].starved_ns);
            sum_ns = lac_sum_ns(sum_ns, analysis->steps[s].dur_ns);
        }
    }
    return analysis->loader.is_present && analysis->loader.num_workers < 0 &&
           (double)starved_ns > STARVING_MIN * (double)sum_ns;
}

/** Steps with batches that lay ready are faster than the loader: not those that are compared with its
 *  pace. */
static void leave_out_ready(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_inferred_loader *inferred = &facts->inferred_loader;
    uint32_t limited = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        limited += analysis->steps[s].left_out == LAC_STEP_KEPT &&
                   analysis->steps[s].host_start_ns >= inferred->limited_from;
    }
    for (uint32_t s = 0; s < analysis->step_count && limited >= (uint32_t)inferred->workers; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT && step->host_start_ns < inferred->limited_from) {
            step->left_out = LAC_STEP_WARM_UP;
            step->kind = LAC_KIND_WARM_UP;
        }
    }
}

uint32_t lac_steps_loader_period(struct lac_facts *facts, int64_t *scratch)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t count = 0;
    if (!starves_by_unknown(facts)) {
        return 0;
    }
    if (facts->inferred_loader.workers > 1) {
        leave_out_ready(facts);
        return (uint32_t)facts->inferred_loader.workers;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            scratch[count++] = analysis->steps[s].dur_ns;
        }
    }
    for (uint32_t period = 2; period <= WORKERS_MAX && period * PERIODS_MIN <= count; period++) {
        uint32_t covered = steps_in_periods(scratch, count, period);
        uint32_t before = count - covered;
        if (covered < period * PERIODS_MIN || are_even(&scratch[before], covered)) {
            continue;
        }
        double mean_ns = sum_of(scratch, before, covered) / covered;
        bool has_credit =
            before > period && sum_of(scratch, 0, before) < CREDIT_SHORT_MAX * mean_ns * before;
        for (uint32_t s = 0; s < analysis->step_count && has_credit && before > 0; s++) {
            if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
                analysis->steps[s].left_out = LAC_STEP_WARM_UP;
                analysis->steps[s].kind = LAC_KIND_WARM_UP;
                before--;
            }
        }
        return period;
    }
    return 0;
}
