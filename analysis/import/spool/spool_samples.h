#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SAMPLES_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SAMPLES_H

/*
 * Samples that a launcher took of the host, its GPUs and the job's threads, as counter tracks.
 * Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"

#include <stddef.h>

struct lac_spool_samples;

/** @return NULL when out of memory. `process` is borrowed: its builder, names and settings. */
struct lac_spool_samples *lac_spool_samples_open(struct lac_spool_process *process);
void lac_spool_samples_close(struct lac_spool_samples *samples);

/** The records of one segment, in order of their segments. */
LAC_MUST_USE enum lac_status lac_spool_samples_read(struct lac_spool_samples *samples,
                                                    const struct lac_sample *records, size_t count);

#endif
