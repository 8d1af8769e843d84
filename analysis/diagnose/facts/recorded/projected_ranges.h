#ifndef LAC_ANALYSIS_DIAGNOSE_PROJECTED_RANGES_H
#define LAC_ANALYSIS_DIAGNOSE_PROJECTED_RANGES_H

/* Private: ranges and modules of the host as the work on a stream that was launched inside them. */

#include "analysis/model/model.h"  // IWYU pragma: export
#include "analysis/model/status.h" // IWYU pragma: export

/**
 * Append to each stream a LAC_TRACK_GPU_RANGE track of ranges and one of modules: of every host
 * range in which work for it was launched, from the start of the first operation to the end of the
 * last. A slice of it has the name of the range and links to it. Ranges are those of threads (not
 * async ones), modules those of Python stacks ("nn.Module: ...") and of the backward pass
 * (backward_modules.h, which comes before). What an autograd thread launches belongs to the ranges
 * of that thread alone, as in Nsight Systems; of two ranges that overlap and do not nest, to the
 * later.
 *
 * PyTorch's profiler projects the innermost range of each launch: where a trace has such rows, only
 * the ranges around those are added ("outer ranges stream 7").
 *
 * Operations without a recorded call, or that begin before it (clocks that disagree), are left out.
 * All tracks together have at most as many slices as the trace recorded; the streams that would
 * exceed that are left out.
 *
 * Linear in the slices, n log n in what is appended. 4 bytes a slice and 40 a range while it runs;
 * nothing of it in a trace without ranges.
 */
LAC_MUST_USE enum lac_status lac_projected_ranges_add(struct lac_model *model);

#endif
