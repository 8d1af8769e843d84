#ifndef LAC_TESTS_SIMULATOR_STEP_PLAN_H
#define LAC_TESTS_SIMULATOR_STEP_PLAN_H

/* The operators and kernels of one step of a random training loop. */

#include "analysis/model/status.h"
#include "server/demo/network.h"
#include "tests/simulator/scenario.h"

/**
 * Build one step: convolutions with their conversions, or a transformer, as the scenario says.
 *
 * @param ret_network free with lac_demo_network_done()
 * @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_MISUSE when the kernels do not fit into the time
 */
LAC_MUST_USE enum lac_status lac_demo_plan_build(const struct lac_demo_scenario *scenario,
                                                 struct lac_demo_network *ret_network);

#endif
