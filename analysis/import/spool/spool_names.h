#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_NAMES_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_NAMES_H

/*
 * Names that a program gave to its threads, streams and devices through NVTX. The rows may come
 * later than the names, so these are put when all of a process was read. Private to the spool
 * importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdint.h>

/** Take note of a THREAD_NAME, DEVICE_NAME or STREAM_NAME event of the thread `tid`. */
LAC_MUST_USE enum lac_status lac_spool_name_given(struct lac_spool_process *process, int32_t tid,
                                                  const struct lac_event *event);
/** Name the rows that are there. */
LAC_MUST_USE enum lac_status lac_spool_names_store(struct lac_spool_process *process);
void lac_spool_names_destroy(struct lac_spool_process *process);

#endif
