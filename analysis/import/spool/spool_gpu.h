#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_GPU_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_GPU_H

/* GPU records of a spool (collector/FORMAT.md) into streams and calls. Private to the spool
 * importer. */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Append the records of one segment.
 *
 * @param records     the bytes after the segment's header, untrusted
 * @param gpu_clock   enum lac_gpu_clock of the segment; an unknown one is taken for MONOTONIC
 * @param realtime_ns CLOCK_REALTIME - CLOCK_MONOTONIC, to place records that carry the former
 */
LAC_MUST_USE enum lac_status lac_spool_gpu_records(struct lac_spool_process *process,
                                                   const uint8_t *records, size_t size_bytes,
                                                   uint32_t gpu_clock, int64_t realtime_ns);

#endif
