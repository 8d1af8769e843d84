#ifndef LAC_COLLECTOR_LAUNCH_PLAN_H
#define LAC_COLLECTOR_LAUNCH_PLAN_H

/*
 * When to record: by time, by step, or in windows.
 *
 *   WAITING -> RECORDING -> PAUSED -> RECORDING ... -> OVER
 *
 * With --duration or --steps there is one window. By default the first one lasts until 60 steps and
 * a minute have passed, and a window of 20 steps follows every 10 minutes. Without steps there is
 * nothing to count windows in: all is recorded.
 */

#include "collector/launch/run_options.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>

struct lac_plan {
    const struct lac_run_options *options;
    uint64_t windows;         /**< begun so far */
    uint64_t window_began_ms; /**< since the start */
    uint64_t window_began_step;
    enum lac_spool_stop wish; /**< what the recorders are to do */
};

/** @param options borrowed */
void lac_plan_begin(struct lac_plan *plan, const struct lac_run_options *options);

/** What the recorders are to do now. LAC_SPOOL_STOP is for good. */
enum lac_spool_stop lac_plan_next(struct lac_plan *plan, uint64_t elapsed_ms, uint64_t step_count);

/** One sentence that says what will be recorded. */
void lac_plan_describe(const struct lac_plan *plan, char *out, size_t capacity);

#endif
