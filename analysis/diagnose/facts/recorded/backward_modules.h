#ifndef LAC_ANALYSIS_DIAGNOSE_BACKWARD_MODULES_H
#define LAC_ANALYSIS_DIAGNOSE_BACKWARD_MODULES_H

/* Private: the modules whose backward pass a thread runs. */

#include "analysis/model/model.h"  // IWYU pragma: export
#include "analysis/model/status.h" // IWYU pragma: export

/** Names of the innermost slices: what they enclose is not the first forward pass. */
#define LAC_BACKWARD_NAME   "backward"
#define LAC_RECOMPUTED_NAME "recomputed"

/**
 * Append to each thread that runs a backward pass a LAC_TRACK_BACKWARD track: for what autograd
 * runs there, the modules ("nn.Module: ...") that the operator of the forward pass lay in, with the
 * ranges in them, the outermost first, and innermost a slice LAC_BACKWARD_NAME. Each is of kind
 * LAC_SLICE_GPU_RANGE; a module's links to its forward pass, and "backward" to the operator there.
 * Functions of one module that follow each other are one slice of it, with what ran between them
 * (the accumulation of its gradients, which PyTorch assigns to no operator), unless that began a
 * collective: a bucket holds gradients of many modules.
 *
 * The two are tied by the arrows that PyTorch's profiler records ("fwdbwd"). Sequence numbers alone
 * would not do: each thread counts its own, and one that recomputes activations counts, too.
 * Modules that are open where the backward function runs (a gradient taken inside forward()) are not
 * repeated. A module whose forward pass a function inside it runs again (activations that were not
 * kept) lies in what is around it, under a slice LAC_RECOMPUTED_NAME. Of modules nested deeper than 64 the outer ones count. A track
 * would have at most as many slices as the trace recorded, or is left out.
 *
 * Nothing, after one pass over the threads' slices, without modules or without arrows; n log n in
 * the arrows otherwise. 8 bytes an arrow and 16 a module while it runs.
 */
LAC_MUST_USE enum lac_status lac_backward_modules_add(struct lac_model *model);

#endif
