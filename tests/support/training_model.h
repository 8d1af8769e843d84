#ifndef LAC_TESTS_SUPPORT_TRAINING_MODEL_H
#define LAC_TESTS_SUPPORT_TRAINING_MODEL_H

/* A model of any size, shaped like a trace of data-parallel training: for benches. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

/**
 * Four processes with a GPU each: steps of nested operators, launches, kernels with gaps between,
 * copies, a wait for the loader's workers and a synchronization; operators and calls with
 * arguments.
 *
 * @param slice_count made is the whole number of steps that reaches it
 * @param ret_model   the caller destroys it
 */
LAC_MUST_USE enum lac_status training_model_create(uint64_t slice_count,
                                                   struct lac_model **ret_model);

#endif
