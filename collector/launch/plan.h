#ifndef LAC_COLLECTOR_LAUNCH_PLAN_H
#define LAC_COLLECTOR_LAUNCH_PLAN_H

/*
 * When to record: by time, by step, or in windows.
 *
 *   WAITING -> RECORDING -> PAUSED -> RECORDING ... -> OVER
 *
 * With --duration or --steps there is one window. With --on-demand there is none but those that are
 * asked for while the job runs, which come on top of any plan. By default the first one lasts until 60 steps and
 * a minute have passed; then what recording costs is measured (cost.h), and a window of 20 steps
 * follows every 10 minutes. Without steps there is nothing to count windows in: all is recorded.
 * With --cost the measurement comes first, after some steps to warm up. Pauses that are not about to
 * end switch the GPU's recording off, so that they cost nothing.
 */

#include "collector/launch/cost.h"
#include "collector/launch/run_options.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_plan {
    const struct lac_run_options *options;
    uint64_t windows;         /**< begun so far */
    uint64_t window_began_ms; /**< since the start */
    uint64_t window_began_step;
    enum lac_spool_stop wish; /**< what the recorders are to do */
    struct lac_cost cost;
    bool is_measuring; /**< ask again within a few milliseconds */
    bool was_measured; /**< it is over, with or without a result */
    /* a window that somebody asked for */
    uint64_t asked_until_ms; /**< since the start; 0: none is open */
    uint64_t asked_until_step;
    bool is_over; /**< the plan */
};

/** @param options borrowed */
void lac_plan_begin(struct lac_plan *plan, const struct lac_run_options *options);

/**
 * Record from now on, whatever the plan says (and though it is over), for `duration_ms` or until
 * `steps` more have ended; with 0 and 0 for as many steps as the plan's own windows have.
 *
 * @param words one sentence that says what is recorded now
 */
void lac_plan_open_window(struct lac_plan *plan, uint64_t elapsed_ns, uint64_t step_count,
                          uint64_t duration_ms, uint64_t steps, char *words, size_t capacity);

/** What the recorders are to do now. LAC_SPOOL_STOP is for good: the recorders let go of the
 * job, and no window can be had anymore. */
enum lac_spool_stop lac_plan_next(struct lac_plan *plan, uint64_t elapsed_ns, uint64_t step_count);

/** What recording costs, as "0.6 % of a step (+-0.4)", or why that is not known. */
void lac_plan_cost(const struct lac_plan *plan, char *out, size_t capacity);

/** One sentence that says what will be recorded. */
void lac_plan_describe(const struct lac_plan *plan, char *out, size_t capacity);

#endif
