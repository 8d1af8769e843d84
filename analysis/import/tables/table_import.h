#ifndef LAC_ANALYSIS_IMPORT_TABLES_TABLE_IMPORT_H
#define LAC_ANALYSIS_IMPORT_TABLES_TABLE_IMPORT_H

/*
 * Tables that profilers print, as text or CSV: nvprof (summary, --print-gpu-trace,
 * --print-api-trace), nsys stats, Nsight Compute, rocprof and rocprofv3, the PyTorch profiler; and
 * logs of counters: nvidia-smi --query-gpu, nvidia-smi dmon, dcgmi dmon, nmon.
 *
 * What a table says without times becomes a model that has none (info.has_no_time): its slices
 * carry counts and durations, their starts mean nothing.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h" // IWYU pragma: export
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether one of the first lines is the heading of a table that is read here. */
bool lac_tables_is_table(const uint8_t *head, size_t size_bytes);

/** The importer, as importers.c calls it. */
LAC_MUST_USE enum lac_status lac_tables_import(struct lac_source *source,
                                               const struct lac_import_options *options,
                                               size_t window_bytes, const char *name,
                                               struct lac_model **ret_model,
                                               struct lac_error *reterr);

#endif
