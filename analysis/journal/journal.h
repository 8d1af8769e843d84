#ifndef LAC_ANALYSIS_JOURNAL_JOURNAL_H
#define LAC_ANALYSIS_JOURNAL_JOURNAL_H

/*
 * Runs over time, the arithmetic of it: how fast a run was and how well that is known, whether it
 * is slower than the runs before it, what a team's predictions came to, and whether another change
 * is worth a try. Pure functions of numbers; no memory is kept.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

/** How fast a run was: the logarithm of its step time, so that a difference is a ratio. */
struct lac_run_pace {
    double log_step; /**< natural logarithm of the step in ns; NaN: no step */
    double variance; /**< of log_step, by the noise of the steps inside the run */
    uint32_t count;  /**< steps that it stands on */
};

/**
 * Pace of one run: the winsorized mean of its kept steps.
 *
 * @param step_ns kept steps in order @param cycle steps that depend on each other (the number of
 *        loader workers), 1: none. Whole cycles are averaged first, where there are three or more.
 * @return LAC_OK or LAC_ERR_NOMEM. Cost: O(n log n)
 */
LAC_MUST_USE enum lac_status lac_run_pace_of(const int64_t *step_ns, uint32_t count, uint32_t cycle,
                                             struct lac_run_pace *ret_pace);

enum lac_regression_verdict {
    LAC_REGRESSION_UNKNOWN = 0, /**< no step, or nothing to compare with */
    LAC_REGRESSION_NONE,        /**< as fast as before, as far as these runs can tell */
    LAC_REGRESSION_SLOWER,
    LAC_REGRESSION_FASTER,
};
/** "unknown", "none", "slower", "faster". */
const char *lac_regression_name(enum lac_regression_verdict verdict);

/** A slowdown that more than chance explains: this run, and so many of its like before it. */
struct lac_slowdown {
    uint32_t run_count; /**< 0 none */
    double pct;         /**< of the step time, all of them together */
    double confidence;  /**< by a limit that twenty runs without a change rarely pass */
};

/** A run against the runs of its baseline. */
struct lac_regression {
    enum lac_regression_verdict verdict;
    double change_pct;           /**< of the step time: positive is slower */
    double low_pct, high_pct;    /**< 95 % */
    double confidence;           /**< 0.5 to 1: that the sign of the change is not noise */
    double visible_pct;          /**< the slowdown that 95 of 100 such comparisons would flag */
    uint32_t baseline_count;     /**< runs with a step */
    struct lac_slowdown lasting; /**< by lac_pace_watch_judge() alone */
};

/** Runs of a baseline that are looked at. */
enum { LAC_BASELINE_RUNS_MAX = 20 };

/**
 * Whether a run is slower or faster than its baseline. Two runs of the same job differ by more than
 * the noise of their steps says: how much is learned from the runs of the baseline, and begins at
 * an assumption that they outweigh.
 */
void lac_regression_judge(const struct lac_run_pace *baseline, uint32_t count,
                          const struct lac_run_pace *run, struct lac_regression *ret_regression);

/** A change that was made: what was predicted and what came, as percent of the step before. */
struct lac_try {
    double predicted_pct, achieved_pct;
};

/** What a team's predictions came to. */
struct lac_calibration {
    uint32_t count;  /**< tries that count: with a prediction of a gain */
    double ratio;    /**< predicted over achieved, all together; NaN: none, or nothing achieved */
    double factor;   /**< what a next prediction is multiplied with, 1 without tries */
    double widening; /**< and by which part of itself its band grows on both sides */
};

void lac_calibrate(const struct lac_try *tries, uint32_t count,
                   struct lac_calibration *ret_calibration);

/** A band in percent of the step; NaN unknown. */
struct lac_gain_band {
    double low_pct, mid_pct, high_pct;
};

/** A predicted band as this team's tries correct it; within 0 and 100. */
struct lac_gain_band lac_calibrated(const struct lac_gain_band *band,
                                    const struct lac_calibration *calibration);

enum lac_stop {
    LAC_STOP_GO_ON = 0,
    LAC_STOP_NOTHING_LEFT, /**< no finding of the last run promises a gain */
    LAC_STOP_TOO_SMALL,    /**< what is left is less than is worth a try */
    LAC_STOP_BELOW_NOISE,  /**< and could not be told from noise with these steps */
};
/** "go_on", "nothing_left", "too_small", "below_noise". */
const char *lac_stop_name(enum lac_stop stop);

/** @param best the best change that is left, calibrated @param noise_pct the smallest difference
 *         that the last run's steps can show; NaN unknown */
enum lac_stop lac_stop_when(const struct lac_gain_band *best, double noise_pct);

#endif
