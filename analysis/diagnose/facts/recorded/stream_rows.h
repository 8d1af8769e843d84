#ifndef LAC_ANALYSIS_DIAGNOSE_STREAM_ROWS_H
#define LAC_ANALYSIS_DIAGNOSE_STREAM_ROWS_H

/* Private: rows that are derived of a stream, below it. */

#include "analysis/model/model.h"  // IWYU pragma: export
#include "analysis/model/status.h" // IWYU pragma: export

/** "modules stream 7" of what it shows; the stream's own name where that is too long.
 *  @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_stream_row_name(struct lac_model *model, const char *what,
                                                 const struct lac_track *stream,
                                                 uint32_t *ret_name);

/**
 * Append to each stream whose work names a module (lac_kernel_config.module, lac_copy.module: of
 * annotated CUDA graphs) a LAC_TRACK_GPU_RANGE track "graph modules ...": work of one module that
 * follows each other in one launch is a slice of its name, from the first start to the last end. A
 * kernel without a module ends it, a copy does not.
 *
 * Nothing, and no pass over the slices, where no launch configuration names one. Linear otherwise.
 */
LAC_MUST_USE enum lac_status lac_graph_modules_add(struct lac_model *model);

#endif
