/* Whether a wait for data is worth telling. */

#include "analysis/diagnose/loading/loading.h"

#include <stddef.h>
#include <stdint.h>

/** Whether the device felt the wait in a step again and again: in three of each half. */
static bool returns(const struct lac_analysis *analysis)
{
    enum { TIMES = 3 };
    uint32_t felt[2] = {0};
    uint32_t seen = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            felt[2 * seen++ >= analysis->step_kept_count] += step->starved_ns * 100 >= step->dur_ns;
        }
    }
    return felt[0] >= TIMES && felt[1] >= TIMES;
}

enum lac_waiting lac_waiting_for_data(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    double starved_pct = lac_pct_of_step(facts, facts->time->starved_ns);
    if (!analysis->loader.is_present || facts->loading == NULL || starved_pct < STARVED_LEAST_PCT) {
        return LAC_WAITING_NOT;
    }
    if (starved_pct >= STARVED_PCT) {
        return LAC_WAITING;
    }
    return returns(analysis) ? LAC_WAITING_LITTLE : LAC_WAITING_NOT;
}
