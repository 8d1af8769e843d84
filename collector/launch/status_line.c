#include "collector/launch/status_line.h"

#include "collector/launch/drain.h"
#include "collector/launch/plan.h"
#include "collector/launch/run_options.h"
#include "collector/launch/sampler.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SHOW_EVERY_MS = 1000, EVENT_BYTES = 16, EVENT_NS = 25 };

static bool shown;
static uint64_t shown_ms;
static uint64_t shown_steps;
static uint64_t shown_bytes;
static uint64_t shown_cpu_ns;

uint64_t lac_status_now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool is_wanted(const struct lac_run_options *options)
{
    return !options->quiet && isatty(STDERR_FILENO) != 0;
}

void lac_status_announce(const struct lac_plan *plan, const struct lac_run_options *options)
{
    char what[200];

    if (!is_wanted(options)) {
        return;
    }
    lac_plan_describe(plan, what, sizeof(what));
    (void)fprintf(stderr, "lacuna: recording %s, at most %.1f GB, to %s\n", what,
                  (double)options->limit_bytes / 1e9, options->output);
}

/* The recorder's cost: CPU time of this process, as the kernel measured it, and of the events that
 * came since, at what an event costs the job's thread. In per cent of one core. */
static double cost_percent(uint64_t cpu_ns, uint64_t bytes, uint64_t passed_ms)
{
    const double events_ns = (double)(bytes - shown_bytes) / (double)EVENT_BYTES * (double)EVENT_NS;

    return ((double)(cpu_ns - shown_cpu_ns) + events_ns) / ((double)passed_ms * 1e6) * 100;
}

void lac_status_show(const struct lac_plan *plan, const struct lac_drain_counts *counts,
                     uint64_t elapsed_ms, const struct lac_run_options *options)
{
    const uint64_t passed_ms = elapsed_ms - shown_ms;
    const uint64_t cpu_ns = lac_sampler_own_cpu_ns();
    const uint64_t steps = counts->steps - shown_steps;

    if (!is_wanted(options) || passed_ms < SHOW_EVERY_MS) {
        return;
    }
    (void)fputs("\r\033[K", stderr);
    if (counts->steps > 0) {
        (void)fprintf(stderr, "step %" PRIu64 " - ", counts->steps);
    }
    if (steps > 0) {
        (void)fprintf(stderr, "%.0f ms - ", (double)passed_ms / (double)steps);
    }
    (void)fprintf(stderr, "%s - %" PRIu64 " processes - %.1f MB - recorder %.1f %% of a core",
                  plan->wish == LAC_SPOOL_RECORD ? "recording" : "paused", counts->processes,
                  (double)counts->bytes / 1e6, cost_percent(cpu_ns, counts->bytes, passed_ms));
    (void)fflush(stderr);
    shown = true;
    shown_ms = elapsed_ms;
    shown_steps = counts->steps;
    shown_bytes = counts->bytes;
    shown_cpu_ns = cpu_ns;
}

void lac_status_line_clear(void)
{
    if (shown) {
        (void)fputs("\r\033[K", stderr);
        shown = false;
    }
}
