#ifndef LAC_ANALYSIS_FLAME_FLAME_SUM_H
#define LAC_ANALYSIS_FLAME_FLAME_SUM_H

/*
 * One flame graph of several areas, each with a model of its own that holds what the area takes:
 * how a trace that is larger than memory becomes one.
 *
 *   create, add area by area (other threads fill sums of their own), merge, finish
 *
 * What lies in two areas counts once if the later one has lac_flame_options.counted_from_ns. Idle
 * time (LAC_FLAME_WAITING) may not be cut: no gap may lie in two areas. The finished graph does not
 * depend on the order in which areas were added.
 */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

struct lac_flame_sum;

/** @return LAC_OK, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_sum_create(struct lac_flame_sum **ret_sum);

/** NULL is allowed. */
void lac_flame_sum_destroy(struct lac_flame_sum *sum);

/**
 * Add an area. The strings and the rows of steps, with all their slices, are the same in all models.
 *
 * @param options metric and by the same for all; in the order of value
 * @return LAC_OK, LAC_ERR_NOMEM; then the sum is good for destroying only
 */
LAC_MUST_USE enum lac_status lac_flame_sum_add(struct lac_flame_sum *sum,
                                               const struct lac_model *model,
                                               const struct lac_flame_options *options);

/** Add what another sum has. @return as lac_flame_sum_add() */
LAC_MUST_USE enum lac_status lac_flame_sum_merge(struct lac_flame_sum *sum,
                                                 const struct lac_flame_sum *more);

/**
 * @param model   has the strings and the rows of steps
 * @param options the area of all
 * @return LAC_OK, LAC_ERR_NOMEM. The sum is used up by it, and to be destroyed.
 */
LAC_MUST_USE enum lac_status lac_flame_sum_finish(struct lac_flame_sum *sum,
                                                  const struct lac_model *model,
                                                  const struct lac_flame_options *options,
                                                  struct lac_flame **ret_flame);

#endif
