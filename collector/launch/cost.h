#ifndef LAC_COLLECTOR_LAUNCH_COST_H
#define LAC_COLLECTOR_LAUNCH_COST_H

/*
 * What recording costs the job, measured in this very job: blocks of steps in turn without and with
 * it (off on, on off, off on, ...), their mean step times compared pair by pair. Off, CUPTI has
 * nothing enabled. What the patches of the Python hook cost while nothing is recorded is not in it,
 * nor what CUPTI costs by being loaded.
 */

#include <stdbool.h>
#include <stdint.h>

enum { LAC_COST_PAIRS = 8, LAC_COST_BLOCK_STEPS = 10 };

struct lac_cost {
    bool has_begun;
    uint32_t block_count;    /**< that have ended */
    uint64_t began_ns;       /**< the measurement */
    uint64_t block_began_ns; /**< 0: it waits for a step to end after the switch */
    uint64_t switched_ns;    /**< when recording was last switched on or off */
    uint64_t block_began_step;
    uint64_t last_step;
    double step_ns[2 * LAC_COST_PAIRS];
};

/** To be asked often, as it sees only between two calls that a step has ended.
 * @return whether to record now */
bool lac_cost_next(struct lac_cost *cost, uint64_t now_ns, uint64_t step_count);

/** Whether there is no more to measure: all blocks have ended, or it takes too long. */
bool lac_cost_is_over(const struct lac_cost *cost, uint64_t now_ns);

/**
 * Per cent of a step, and the 95 % interval around it.
 *
 * @return false: too few blocks for either
 */
bool lac_cost_result(const struct lac_cost *cost, double *ret_percent, double *ret_spread);

#endif
