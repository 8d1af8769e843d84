#ifndef LAC_TESTS_SIMULATOR_RANDOM_WHAT_IF_H
#define LAC_TESTS_SIMULATOR_RANDOM_WHAT_IF_H

/*
 * What --what-if is asked of a random loop, answered by running the loop with the change: every
 * change that means something there, and every two of them.
 */

#include "analysis/model/status.h"
#include "tests/simulator/scenario.h"

#include <stdint.h>

enum { LAC_DEMO_WHAT_IF_KEYS = 10, LAC_DEMO_WHAT_IF_MAX = 55, LAC_DEMO_WHAT_IF_BYTES = 48 };

struct lac_demo_what_if {
    char change[LAC_DEMO_WHAT_IF_BYTES]; /**< "workers=7,pinned=1" */
    int64_t mean_ns;
};

struct lac_demo_what_ifs {
    struct lac_demo_what_if at[LAC_DEMO_WHAT_IF_MAX];
    uint32_t count;
};

/**
 * A loop of one rank, with each change.
 *
 * @param workers what workers=N asks for
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_MISUSE. Cost: one simulation each
 */
LAC_MUST_USE enum lac_status lac_demo_try_what_ifs(const struct lac_demo_scenario *scenario,
                                                   int32_t workers,
                                                   struct lac_demo_what_ifs *ret_what_ifs);

#endif
