#ifndef LAC_COLLECTOR_LAUNCH_STATUS_LINE_H
#define LAC_COLLECTOR_LAUNCH_STATUS_LINE_H

/* What a person at a terminal sees of a recording while it goes on. Nothing when stderr is none. */

#include "collector/gather/drain.h"
#include "collector/launch/plan.h"
#include "collector/launch/run_options.h"

#include <stdint.h>

/** One line before the job starts: what will be recorded, and how much at most. */
void lac_status_announce(const struct lac_plan *plan, const struct lac_run_options *options);

/** The line in place, once a second. */
void lac_status_show(const struct lac_plan *plan, const struct lac_drain_counts *counts,
                     uint64_t elapsed_ms, const struct lac_run_options *options);

#endif
