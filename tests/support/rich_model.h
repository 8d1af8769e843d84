#ifndef LAC_TESTS_SUPPORT_RICH_MODEL_H
#define LAC_TESTS_SUPPORT_RICH_MODEL_H

/* A model with something in every table, made of a seed: for what stores and reads models. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

/**
 * A thread of nested operators and API calls, a stream of kernels and copies launched by them, a
 * second thread, marks, two counters, arrows, loader ranges, allocations, a report.
 *
 * @param launches kernels on the stream: three slices each
 * @param ret_model the caller destroys it
 */
LAC_MUST_USE enum lac_status rich_model_create(uint32_t seed, uint32_t launches,
                                               struct lac_model **ret_model);

/** What differs between two models, in a static sentence; NULL when they are equal. Numbers of
 *  arguments may be in another order: they are compared as text. */
const char *models_differ(const struct lac_model *a, const struct lac_model *b);

#endif
