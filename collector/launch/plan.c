#include "collector/launch/plan.h"

#include "collector/launch/cost.h"
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
    WARM_STEPS = 20,            /* before --cost measures */
    ASKED_MS = 10 * 1000,       /* a window on demand where no steps are seen */
    ASKED_MS_MAX = 3600 * 1000, /* and where they stop to come */
    SWITCH_ON_MS =
        2000, /* before a window: by then CUPTI has enabled all again, on a busy node too */
};

void lac_plan_begin(struct lac_plan *plan, const struct lac_run_options *options)
{
    *plan = (struct lac_plan){.options = options, .windows = 1};
    plan->wish = options->on_demand                                 ? LAC_SPOOL_OFF
                 : options->delay_ms > 0 || options->step_first > 1 ? LAC_SPOOL_PAUSE
                                                                    : LAC_SPOOL_RECORD;
}

void lac_plan_open_window(struct lac_plan *plan, uint64_t elapsed_ns, uint64_t step_count,
                          uint64_t duration_ms, uint64_t steps, char *words, size_t capacity)
{
    const uint64_t elapsed_ms = elapsed_ns / 1000000;

    if (steps == 0 && duration_ms == 0) {
        steps = step_count > 0 ? WINDOW_STEPS : 0;
        duration_ms = step_count > 0 ? 0 : ASKED_MS;
    }
    plan->asked_until_ms = elapsed_ms + (duration_ms > 0 ? duration_ms : ASKED_MS_MAX);
    plan->asked_until_step = steps > 0 ? step_count + steps : UINT64_MAX;
    if (!plan->was_measured) { /* blocks of steps that it compares would not be what they seem */
        plan->cost = (struct lac_cost){0};
        plan->is_measuring = false;
    }
    if (steps > 0) {
        (void)snprintf(words, capacity, "records %" PRIu64 " steps now%s", steps,
                       step_count > 0 ? "" : ", but no step was seen yet");
    } else {
        (void)snprintf(words, capacity, "records %.1f s now", (double)duration_ms / 1e3);
    }
}

/* The window that was asked for. @return false: there is none */
static bool is_asked_open(struct lac_plan *plan, uint64_t elapsed_ms, uint64_t step_count)
{
    if (plan->asked_until_ms > 0 &&
        (elapsed_ms >= plan->asked_until_ms || step_count >= plan->asked_until_step)) {
        plan->asked_until_ms = 0;
    }
    return plan->asked_until_ms > 0;
}

/* A pause of which so much is left. */
static enum lac_spool_stop pause(uint64_t left_ms)
{
    return left_ms > SWITCH_ON_MS ? LAC_SPOOL_OFF : LAC_SPOOL_PAUSE;
}

static enum lac_spool_stop next_by_step(const struct lac_plan *plan, uint64_t elapsed_ms,
                                        uint64_t step_count)
{
    /* step A is the one that begins when A - 1 have ended */
    const uint64_t missing =
        plan->options->step_first > step_count + 1 ? plan->options->step_first - 1 - step_count : 0;

    if (step_count >= plan->options->step_last) {
        return LAC_SPOOL_STOP;
    }
    /* of steps as long as those before */
    return missing == 0 ? LAC_SPOOL_RECORD
           : step_count > 0
               ? pause((uint64_t)((double)elapsed_ms / (double)step_count * (double)missing))
               : LAC_SPOOL_PAUSE;
}

/* Steps with and without recording in turn, until that is over. */
static enum lac_spool_stop next_to_compare(struct lac_plan *plan, uint64_t elapsed_ns,
                                           uint64_t step_count)
{
    const bool is_on = lac_cost_next(&plan->cost, elapsed_ns, step_count);

    if (lac_cost_is_over(&plan->cost, elapsed_ns)) {
        plan->is_measuring = false;
        plan->was_measured = true;
        return LAC_SPOOL_PAUSE; /* what the plan goes on with decides in the next round */
    }
    plan->is_measuring = true;
    return is_on ? LAC_SPOOL_RECORD : LAC_SPOOL_OFF;
}

static bool is_first_over(const struct lac_plan *plan, uint64_t elapsed_ms, uint64_t step_count)
{
    return step_count > 0 && step_count - plan->window_began_step >= FIRST_STEPS &&
           elapsed_ms - plan->window_began_ms >= FIRST_MS;
}

static enum lac_spool_stop next_window(struct lac_plan *plan, uint64_t elapsed_ns,
                                       uint64_t step_count)
{
    const uint64_t elapsed_ms = elapsed_ns / 1000000;

    if (plan->windows == 1) {
        if (!plan->is_measuring && !is_first_over(plan, elapsed_ms, step_count)) {
            return LAC_SPOOL_RECORD;
        }
        if (!plan->was_measured) {
            return next_to_compare(plan, elapsed_ns, step_count);
        }
    } else if (plan->wish == LAC_SPOOL_RECORD &&
               step_count - plan->window_began_step < WINDOW_STEPS) {
        return LAC_SPOOL_RECORD;
    }
    if (elapsed_ms - plan->window_began_ms < WINDOW_EVERY_MS) {
        return pause(WINDOW_EVERY_MS - (elapsed_ms - plan->window_began_ms));
    }
    plan->windows++;
    plan->window_began_ms = elapsed_ms;
    plan->window_began_step = step_count;
    return LAC_SPOOL_RECORD;
}

enum lac_spool_stop lac_plan_next(struct lac_plan *plan, uint64_t elapsed_ns, uint64_t step_count)
{
    const struct lac_run_options *const options = plan->options;
    const uint64_t elapsed_ms = elapsed_ns / 1000000;

    if (is_asked_open(plan, elapsed_ms, step_count)) {
        return plan->wish = LAC_SPOOL_RECORD;
    }
    if (plan->is_over || options->on_demand) {
        return plan->wish = options->on_demand ? LAC_SPOOL_OFF : LAC_SPOOL_STOP;
    }
    if (elapsed_ms < options->delay_ms) {
        plan->wish = pause(options->delay_ms - elapsed_ms);
    } else if (options->duration_ms > 0 && elapsed_ms >= options->delay_ms + options->duration_ms) {
        plan->wish = LAC_SPOOL_STOP;
    } else if (options->cost && !plan->was_measured && step_count >= WARM_STEPS) {
        plan->wish = next_to_compare(plan, elapsed_ns, step_count);
    } else if (options->step_first > 0) {
        plan->wish = next_by_step(plan, elapsed_ms, step_count);
    } else if (options->all || options->duration_ms > 0) {
        plan->wish = LAC_SPOOL_RECORD;
    } else if (plan->windows == 1 && plan->window_began_ms < options->delay_ms) {
        plan->window_began_ms = elapsed_ms;
        plan->window_began_step = step_count;
        plan->wish = LAC_SPOOL_RECORD;
    } else {
        plan->wish = next_window(plan, elapsed_ns, step_count);
    }
    plan->is_over = plan->wish == LAC_SPOOL_STOP;
    return plan->wish;
}

void lac_plan_cost(const struct lac_plan *plan, char *out, size_t capacity)
{
    double percent = 0;
    double spread = 0;

    if (lac_cost_result(&plan->cost, &percent, &spread)) {
        (void)snprintf(out, capacity, "%.1f %% of a step (+-%.1f)",
                       percent > -0.05 && percent < 0.05 ? 0.0 : percent, spread);
    } else if (plan->is_measuring) {
        (void)snprintf(out, capacity, "being measured");
    } else {
        (void)snprintf(out, capacity, "not measured%s",
                       plan->was_measured ? ": the steps are too long" : "");
    }
}

void lac_plan_describe(const struct lac_plan *plan, char *out, size_t capacity)
{
    const struct lac_run_options *const options = plan->options;
    char delay[64] = "";

    if (options->delay_ms > 0) {
        (void)snprintf(delay, sizeof(delay), "after %.1f s, ", (double)options->delay_ms / 1e3);
    }
    if (options->range != NULL || options->profiler_api) {
        const bool is_both = options->range != NULL && options->profiler_api;

        (void)snprintf(delay, sizeof(delay), "inside of %s%.20s%s%s, ",
                       options->range != NULL ? "ranges " : "",
                       options->range != NULL ? options->range : "", is_both ? " and " : "",
                       options->profiler_api ? "cudaProfilerStart" : "");
    }
    if (options->on_demand) {
        (void)snprintf(out, capacity, "when lacuna window asks for it");
    } else if (options->step_first > 0) {
        (void)snprintf(out, capacity, "%ssteps %" PRIu64 " to %" PRIu64, delay, options->step_first,
                       options->step_last);
    } else if (options->duration_ms > 0) {
        (void)snprintf(out, capacity, "%s%.1f s in full", delay,
                       (double)options->duration_ms / 1e3);
    } else if (options->all) {
        (void)snprintf(out, capacity, "%severything", delay);
    } else {
        (void)snprintf(out, capacity,
                       "%s%d steps and at least a minute in full, every other ten of %d more to "
                       "measure what that costs, then %d steps every %d min",
                       delay, FIRST_STEPS, 2 * LAC_COST_PAIRS * LAC_COST_BLOCK_STEPS, WINDOW_STEPS,
                       WINDOW_EVERY_MS / 60000);
    }
}
