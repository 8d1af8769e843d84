#ifndef LAC_TESTS_SUPPORT_TRAINING_MODEL_H
#define LAC_TESTS_SUPPORT_TRAINING_MODEL_H

/* A model of any size, shaped like a trace of data-parallel training: for benches. */

#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

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

enum { TRAINING_RANKS_MAX = 64 };

/**
 * Takes one slice of a training.
 *
 * @param words   names, tracks, processes and details that the slice refers to
 * @param numbers External id and correlation: arguments, where the slice has any
 */
typedef void (*training_take)(void *context, const struct lac_model *words,
                              const struct lac_slice_in *slice, const int64_t numbers[2]);

/** The same training on `rank_count` GPUs, told slice by slice: at most one step of each rank more than
 *  `slice_count`. Takes no memory for what it tells. */
LAC_MUST_USE enum lac_status training_model_tell(uint32_t rank_count, uint64_t slice_count,
                                                 training_take take, void *context);

/** Told as a Kineto JSON file, all ranks in one, as tools write it that merge those of a job. */
LAC_MUST_USE enum lac_status training_text_write(const char *path, uint32_t rank_count,
                                                 uint64_t slice_count, uint64_t *ret_count);

#endif
