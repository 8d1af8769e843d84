#include "collector/launch/plan.h"

#include "collector/launch/run_options.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum {
    FIRST_STEPS = 60, /* ten to warm up and fifty steady ones */
    FIRST_MS = 60 * 1000,
    WINDOW_STEPS = 20,
    WINDOW_EVERY_MS = 600 * 1000,
};

void lac_plan_begin(struct lac_plan *plan, const struct lac_run_options *options)
{
    *plan = (struct lac_plan){.options = options, .windows = 1};
    plan->wish =
        options->delay_ms > 0 || options->step_first > 1 ? LAC_SPOOL_PAUSE : LAC_SPOOL_RECORD;
}

static enum lac_spool_stop next_by_step(const struct lac_plan *plan, uint64_t step_count)
{
    /* step A is the one that begins when A - 1 have ended */
    return step_count >= plan->options->step_last        ? LAC_SPOOL_STOP
           : step_count + 1 >= plan->options->step_first ? LAC_SPOOL_RECORD
                                                         : LAC_SPOOL_PAUSE;
}

static enum lac_spool_stop next_window(struct lac_plan *plan, uint64_t elapsed_ms,
                                       uint64_t step_count)
{
    const uint64_t steps = plan->windows == 1 ? FIRST_STEPS : WINDOW_STEPS;
    const uint64_t least_ms = plan->windows == 1 ? FIRST_MS : 0;

    if (plan->wish == LAC_SPOOL_RECORD) {
        return step_count > 0 && step_count - plan->window_began_step >= steps &&
                       elapsed_ms - plan->window_began_ms >= least_ms
                   ? LAC_SPOOL_PAUSE
                   : LAC_SPOOL_RECORD;
    }
    if (elapsed_ms - plan->window_began_ms < WINDOW_EVERY_MS) {
        return LAC_SPOOL_PAUSE;
    }
    plan->windows++;
    plan->window_began_ms = elapsed_ms;
    plan->window_began_step = step_count;
    return LAC_SPOOL_RECORD;
}

enum lac_spool_stop lac_plan_next(struct lac_plan *plan, uint64_t elapsed_ms, uint64_t step_count)
{
    const struct lac_run_options *const options = plan->options;

    if (plan->wish == LAC_SPOOL_STOP) {
        return LAC_SPOOL_STOP;
    }
    if (elapsed_ms < options->delay_ms) {
        plan->wish = LAC_SPOOL_PAUSE;
    } else if (options->duration_ms > 0 && elapsed_ms >= options->delay_ms + options->duration_ms) {
        plan->wish = LAC_SPOOL_STOP;
    } else if (options->step_first > 0) {
        plan->wish = next_by_step(plan, step_count);
    } else if (options->all || options->duration_ms > 0) {
        plan->wish = LAC_SPOOL_RECORD;
    } else if (plan->windows == 1 && plan->window_began_ms < options->delay_ms) {
        plan->window_began_ms = elapsed_ms;
        plan->window_began_step = step_count;
        plan->wish = LAC_SPOOL_RECORD;
    } else {
        plan->wish = next_window(plan, elapsed_ms, step_count);
    }
    return plan->wish;
}

void lac_plan_describe(const struct lac_plan *plan, char *out, size_t capacity)
{
    const struct lac_run_options *const options = plan->options;
    char delay[64] = "";

    if (options->delay_ms > 0) {
        (void)snprintf(delay, sizeof(delay), "after %.1f s, ", (double)options->delay_ms / 1e3);
    }
    if (options->step_first > 0) {
        (void)snprintf(out, capacity, "%ssteps %" PRIu64 " to %" PRIu64, delay, options->step_first,
                       options->step_last);
    } else if (options->duration_ms > 0) {
        (void)snprintf(out, capacity, "%s%.1f s in full", delay,
                       (double)options->duration_ms / 1e3);
    } else if (options->all) {
        (void)snprintf(out, capacity, "%severything", delay);
    } else {
        (void)snprintf(out, capacity,
                       "%s%d steps and at least a minute in full, then %d steps every %d min",
                       delay, FIRST_STEPS, WINDOW_STEPS, WINDOW_EVERY_MS / 60000);
    }
}
