#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_EXTERNAL_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_EXTERNAL_H

/*
 * Ids that a program pushed around its calls: arguments of the calls and of what these launched.
 * They are collected before the calls are read. Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Keep the ids among the GPU records of one segment, untrusted; 16 bytes each, at most 2^20, more
 * are counted and reported. Damage is left to lac_spool_gpu_records() to report.
 */
LAC_MUST_USE enum lac_status lac_spool_externals_collect(struct lac_spool_process *process,
                                                         const uint8_t *records, size_t size_bytes);
/** All were collected: make them ready, say what was left out. */
void lac_spool_externals_sort(struct lac_spool_process *process);
/** Free them. */
void lac_spool_externals_destroy(struct lac_spool_externals *externals);

/**
 * Set slice->args and arg_num: the ids of its correlation, "External id" as other recorders call it
 * for the first kind, and the number of its CUDA graph unless that is 0. O(log ids).
 */
LAC_MUST_USE enum lac_status lac_spool_external_store(const struct lac_spool_process *process,
                                                      uint32_t graph, struct lac_slice_in *slice);

#endif
