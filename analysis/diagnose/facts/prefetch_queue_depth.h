#ifndef LAC_ANALYSIS_DIAGNOSE_PREFETCH_QUEUE_DEPTH_H
#define LAC_ANALYSIS_DIAGNOSE_PREFETCH_QUEUE_DEPTH_H

#include "analysis/model/model.h"  // IWYU pragma: export
#include "analysis/model/status.h" // IWYU pragma: export

/**
 * Append the counter "batches ready": how many batches lay ready for the training thread. A batch
 * is ready from the end of its loader.fetch in a worker (or of its loader.pin, where there is one)
 * until the end of the loader.wait that took it, which are matched by the number of the batch.
 *
 * Nothing is appended where that was not recorded, where the training process loads by itself,
 * where several processes wait for batches (a number alone does not tell whose batch it is), and
 * where the trace has such a counter already. O(slices of threads + n log n of the batches).
 */
LAC_MUST_USE enum lac_status lac_prefetch_queue_depth_add(struct lac_model *model);

#endif
