#ifndef LAC_ANALYSIS_DIAGNOSE_LAUNCH_QUEUE_H
#define LAC_ANALYSIS_DIAGNOSE_LAUNCH_QUEUE_H

/*
 * Private: how far the host is ahead of a device: the work that it has launched and that has not
 * begun.
 */

#include "analysis/model/model.h"  // IWYU pragma: export
#include "analysis/model/status.h" // IWYU pragma: export

/** The call that launched an operation of a stream; LAC_NONE of what is none, where no call was
 *  recorded, and where it begins after the operation (clocks that disagree). */
uint32_t lac_launch_call(const struct lac_model *model, uint64_t slice);

/** Up to as many changes are kept as they are. */
enum { LAC_LAUNCH_QUEUE_EXACT_MAX = 1 << 20 };

/**
 * Append a counter to each device: operations whose launching call has begun and that have not
 * begun themselves. Operations without a recorded call, or that begin before it (clocks that
 * disagree), are left out. Above LAC_LAUNCH_QUEUE_EXACT_MAX changes each of half as many equal
 * parts of the time keeps its largest and its last value.
 *
 * Nothing is appended where no operation has a call, and where the trace has such a counter.
 * n log k in the n operations of a device whose times come in k ascending runs (one a stream, mostly), 24
 * bytes each while it runs.
 */
LAC_MUST_USE enum lac_status lac_launch_queue_add(struct lac_model *model);

/** The same with another limit, 2 or more: for tests. */
LAC_MUST_USE enum lac_status lac_launch_queue_add_within(struct lac_model *model,
                                                         uint64_t exact_max);

#endif
