#include "collector/launch/status_line.h"

#include "collector/base/debug.h"
#include "collector/base/progress_line.h"
#include "collector/gather/drain.h"
#include "collector/launch/plan.h"
#include "collector/launch/run_options.h"
#include "collector/sample/sampler.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { SHOW_EVERY_MS = 1000 };

static uint64_t shown_ms;
static uint64_t shown_steps;
static uint64_t shown_cpu_ns;

static bool is_wanted(const struct lac_run_options *options)
{
    return !options->quiet && !lac_debug_is_any() && isatty(STDERR_FILENO) != 0;
}

void lac_status_announce(const struct lac_plan *plan, const struct lac_run_options *options)
{
    char what[200];

    if (!is_wanted(options)) {
        return;
    }
    lac_plan_describe(plan, what, sizeof(what));
    (void)fprintf(
        stderr,
        options->limit_bytes < 1000000000 ? "lacuna: recording %s, at most %.0f MB, to %s\n"
                                          : "lacuna: recording %s, at most %.1f GB, to %s\n",
        what, (double)options->limit_bytes / (options->limit_bytes < 1000000000 ? 1e6 : 1e9),
        options->output);
}

void lac_status_show(const struct lac_plan *plan, const struct lac_drain_counts *counts,
                     uint64_t elapsed_ms, const struct lac_run_options *options)
{
    const uint64_t passed_ms = elapsed_ms - shown_ms;
    const uint64_t cpu_ns = lac_sampler_own_cpu_ns();
    const uint64_t steps = counts->steps - shown_steps;
    char cost[100];

    if (!is_wanted(options) || passed_ms < SHOW_EVERY_MS) {
        return;
    }
    lac_progress_line_begin();
    if (counts->steps > 0) {
        (void)fprintf(stderr, "step %" PRIu64 " - ", counts->steps);
    }
    if (steps > 0) {
        (void)fprintf(stderr, "%.0f ms - ", (double)passed_ms / (double)steps);
    }
    lac_plan_cost(plan, cost, sizeof(cost));
    (void)fprintf(
        stderr, "%s - %" PRIu64 " processes - %.1f MB - recording costs: %s, and %.1f %% of a core",
        plan->is_measuring               ? "measuring"
        : plan->wish == LAC_SPOOL_RECORD ? "recording"
                                         : "paused",
        counts->processes, (double)counts->bytes / 1e6, cost,
        (double)(cpu_ns - shown_cpu_ns) / ((double)passed_ms * 1e4));
    (void)fflush(stderr);
    shown_ms = elapsed_ms;
    shown_steps = counts->steps;
    shown_cpu_ns = cpu_ns;
}
