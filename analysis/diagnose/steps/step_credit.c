/*
 * Loader's workers that nothing names show in the waits for batches: those of n workers come back
 * every n steps, and so do sums over n steps, while single ones differ. What comes before such
 * periods and is faster was given free: batches that lay ready when the recording, or the epoch,
 * began. The pace is that of whole periods.
 */

#include "analysis/diagnose/steps/step_pace.h"

#include <math.h>
#include <stdint.h>

enum {
    PERIODS_MIN = 3,
    WORKERS_MAX = 32,
    PERIODS_STEADY_MIN = 2, /* where single steps are alike */
    STEADIER_MIN = 4,       /* so many times less drift */
};

/** Lengths of the kept steps as sums up to each, so that any stretch is a difference. */
struct lengths {
    const int64_t *up_to_ns;
    uint32_t count;
};

static double sum_of(struct lengths lengths, uint32_t first, uint32_t count)
{
    int64_t before_ns = first > 0 ? lengths.up_to_ns[first - 1] : 0;
    return count > 0 ? (double)(lengths.up_to_ns[first + count - 1] - before_ns) : 0.0;
}

/** Whole periods that take the same time, up to `after` steps before the end. */
struct periods {
    uint32_t period, covered, after;
};

/** How many steps, `after` of them left at the end, are such periods. */
static uint32_t steps_in_periods(struct lengths lengths, uint32_t period, uint32_t after)
{
    uint32_t end = lengths.count - after;
    double last_ns = sum_of(lengths, end - period, period);
    uint32_t covered = period;
    while (covered + period <= end) {
        double ns = sum_of(lengths, end - covered - period, period);
        if (fabs(ns - last_ns) > PERIODS_ALIKE_MAX * last_ns) {
            break;
        }
        covered += period;
    }
    return covered;
}

/** Whether the steps are alike one by one: then they need no period. */
static bool are_even(struct lengths lengths, const struct periods *periods)
{
    uint32_t first = lengths.count - periods->after - periods->covered;
    double mean_ns = sum_of(lengths, first, periods->covered) / periods->covered;
    for (uint32_t i = first; i < first + periods->covered; i++) {
        if (fabs(sum_of(lengths, i, 1) - mean_ns) > STEPS_UNEVEN_MIN * mean_ns) {
            return false;
        }
    }
    return true;
}

/** A round begins with the batch that all workers are late for: where in it the recording ended shows in
 *  how many steps fit. */
static struct periods best_of_period(struct lengths lengths, uint32_t period)
{
    struct periods best = {.period = period};
    for (uint32_t after = 0; after < period && after + period <= lengths.count; after++) {
        uint32_t covered = steps_in_periods(lengths, period, after);
        if (covered > best.covered) {
            best.covered = covered;
            best.after = after;
        }
    }
    return best;
}

/** How much a step differs from the one a period later, on average. */
static double drift_of(struct lengths lengths, const struct periods *periods)
{
    uint32_t first = lengths.count - periods->after - periods->covered;
    uint32_t count = periods->covered - periods->period;
    double sum_ns = 0.0;
    for (uint32_t i = first; i < first + count; i++) {
        sum_ns += fabs(sum_of(lengths, i, 1) - sum_of(lengths, i + periods->period, 1));
    }
    return count > 0 ? sum_ns / count : 0.0;
}

/** Where one step of n is long, n - 1 steps hold one just as well for up to n periods, each time at
 *  another place: the true period is the one after which single steps are alike, if it holds for
 *  about as many. */
static bool is_steadier(struct lengths lengths, const struct periods *here,
                        const struct periods *best)
{
    return best->period > 0 && here->covered >= here->period * PERIODS_STEADY_MIN &&
           here->covered + here->period > best->covered &&
           drift_of(lengths, here) < drift_of(lengths, best) / STEADIER_MIN;
}

/** By the kept steps alone: the period that holds for most of them, the shortest of such. */
static struct periods find_periods(struct lengths lengths)
{
    struct periods best = {0};
    for (uint32_t period = 2; period <= WORKERS_MAX && period * PERIODS_STEADY_MIN <= lengths.count;
         period++) {
        struct periods here = best_of_period(lengths, period);
        bool is_longer = here.covered >= period * PERIODS_MIN &&
                         (best.period == 0 || here.covered >= best.covered + period);
        if ((is_longer || is_steadier(lengths, &here, &best)) && !are_even(lengths, &here)) {
            best = here;
        }
    }
    return best;
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

/** Whether a step takes one batch. */
static bool has_a_wait_each(const struct lac_facts *facts)
{
    uint64_t waits = facts->wait_marks.count;
    uint32_t steps = facts->analysis->step_count;
    return waits >= steps && waits <= (uint64_t)steps + 2;
}

/* -- what is kept ------------------------------------------------------------------------------ */

/** Keep the periods: the first steps were given free where they took less time, what is left of a
 *  round at the ends is a part of one. */
static void keep_periods(struct lac_analysis *analysis, struct lengths lengths,
                         const struct periods *periods, bool is_sure)
{
    uint32_t before = lengths.count - periods->after - periods->covered;
    double mean_ns = sum_of(lengths, before, periods->covered) / periods->covered;
    bool has_credit = (is_sure || before > periods->period) &&
                      sum_of(lengths, 0, before) < CREDIT_SHORT_MAX * mean_ns * before;
    uint32_t at = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (step->left_out != LAC_STEP_KEPT) {
            continue;
        }
        if (at < before && has_credit) {
            step->left_out = LAC_STEP_WARM_UP;
            step->kind = LAC_KIND_WARM_UP;
        } else if (at < before % periods->period || at >= before + periods->covered) {
            step->left_out = LAC_STEP_PARTIAL_CYCLE;
        }
        at++;
    }
}

/** The rhythm that the waits show, where the steps go by it: on the device those of batches that lay
 *  ready come later. */
static bool take_rhythm_of_waits(struct lac_facts *facts, struct lengths lengths)
{
    const struct lac_inferred_loader *inferred = &facts->inferred_loader;
    uint32_t period = (uint32_t)inferred->workers;
    if (inferred->workers < 2 || !has_a_wait_each(facts) || lengths.count < period) {
        return false;
    }
    struct periods periods = best_of_period(lengths, period);
    double turn_ns = sum_of(lengths, lengths.count - periods.after - period, period);
    if (fabs(turn_ns - inferred->fetch_ns) > PERIODS_ALIKE_MAX * inferred->fetch_ns) {
        return false;
    }
    facts->loader_rhythm =
        (struct lac_loader_rhythm){period, inferred->fetch_ns, 200.0 * inferred->spread};
    keep_periods(facts->analysis, lengths, &periods, true);
    return true;
}

static struct lengths kept_lengths(const struct lac_analysis *analysis, int64_t *scratch)
{
    struct lengths lengths = {scratch, 0};
    int64_t sum_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            sum_ns = lac_sum_ns(sum_ns, analysis->steps[s].dur_ns);
            scratch[lengths.count++] = sum_ns;
        }
    }
    return lengths;
}

void lac_steps_find_rhythm(struct lac_facts *facts, int64_t *scratch)
{
    facts->loader_rhythm = (struct lac_loader_rhythm){0, (double)NAN, (double)NAN};
    if (!starves_by_unknown(facts)) {
        return;
    }
    if (facts->inferred_loader.workers > 1) {
        leave_out_ready(facts);
    }
    struct lengths lengths = kept_lengths(facts->analysis, scratch);
    if (take_rhythm_of_waits(facts, lengths)) {
        return;
    }
    struct periods periods = find_periods(lengths);
    facts->loader_rhythm.period = periods.period;
    if (periods.period > 0) {
        keep_periods(facts->analysis, lengths, &periods, false);
    } else if (facts->inferred_loader.workers > 1) {
        facts->loader_rhythm.period = (uint32_t)facts->inferred_loader.workers;
    }
}
