#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SYNC_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SYNC_H

/*
 * What a wait for a CUDA event waits for: the last time that the event was recorded before, and in
 * which stream. Records come in any order, so waits are held back until all of a process were read.
 * Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_spool_syncs;

struct lac_spool_sync {
    struct lac_slice_in slice;
    uint32_t context;
    uint32_t stream; /**< UINT32_MAX: none */
    uint32_t event;
    bool has_event;
};

/** Take a synchronization; its slice is put now or when all are known. */
LAC_MUST_USE enum lac_status lac_spool_sync_add(struct lac_spool_process *process,
                                                const struct lac_spool_sync *sync);
/** An event was recorded. */
LAC_MUST_USE enum lac_status lac_spool_sync_event(struct lac_spool_process *process,
                                                  const struct lac_gpu_call *event);
/** All were read: put what was held back. */
LAC_MUST_USE enum lac_status lac_spool_sync_finish(struct lac_spool_process *process);
void lac_spool_sync_destroy(struct lac_spool_syncs *syncs);

#endif
