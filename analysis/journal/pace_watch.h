#ifndef LAC_ANALYSIS_JOURNAL_PACE_WATCH_H
#define LAC_ANALYSIS_JOURNAL_PACE_WATCH_H

/*
 * A job's runs one after the other, against the level of its baseline. One run is soon judged and
 * often wrong; that a slowdown stays is known from the runs that follow it, and is what people are
 * told of. No memory is kept.
 */

#include "analysis/journal/journal.h"

#include <stdbool.h>
#include <stdint.h>

/** Runs that are taken together at most. */
enum { LAC_WATCH_RUNS = 8 };

struct lac_pace_watch {
    struct {
        struct lac_run_pace pace;
        bool is_doubtful;           /**< it looked slower by itself */
    } level[LAC_BASELINE_RUNS_MAX]; /**< what counts as before, oldest first */
    uint32_t level_count;
    uint32_t baseline;                              /**< in `level`: never dropped */
    struct lac_run_pace latest[LAC_WATCH_RUNS - 1]; /**< runs with the baseline's settings */
    bool latest_is_level[LAC_WATCH_RUNS - 1];       /**< whether it is the level's, too */
    uint32_t latest_count;
};

void lac_pace_watch_begin(struct lac_pace_watch *watch, const struct lac_run_pace *baseline);

/**
 * A run with the baseline's settings from before it; the newest first.
 *
 * @return false: it differs from the baseline, or there are enough; what came before it says
 *         nothing of the baseline either
 */
bool lac_pace_watch_precede(struct lac_pace_watch *watch, const struct lac_run_pace *pace);

/**
 * The next run: by itself (as lac_regression_judge()), and together with those before it.
 *
 * @param is_alike it has the baseline's settings. Cost: O(runs of the level * LAC_WATCH_RUNS)
 */
void lac_pace_watch_judge(struct lac_pace_watch *watch, const struct lac_run_pace *pace,
                          bool is_alike, struct lac_regression *ret_regression);

#endif
