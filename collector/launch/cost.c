#include "collector/launch/cost.h"

#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>

enum { PAIRS_MIN = 4 };

static const uint64_t BLOCK_NS_MIN = 500000000; /* so that a late look does not matter */
static const uint64_t SETTLE_NS = 300000000;    /* until all is switched over: not measured */
static const uint64_t LONGEST_NS = 300 * 1000000000ull; /* of the whole measurement */

/* Student's t for 95 %, by degrees of freedom from PAIRS_MIN - 1 to LAC_COST_PAIRS - 1. */
static const double student[] = {3.182, 2.776, 2.571, 2.447, 2.365};

_Static_assert(LAC_COUNT_OF(student) == LAC_COST_PAIRS - PAIRS_MIN + 1, "t");

/* off on, on off, off on, ...: what drifts falls out. */
static bool is_on(uint32_t block)
{
    return block % 4 == 1 || block % 4 == 2;
}

bool lac_cost_next(struct lac_cost *cost, uint64_t now_ns, uint64_t step_count)
{
    const bool has_stepped = step_count > cost->last_step;
    const uint64_t steps = step_count - cost->block_began_step;

    cost->last_step = step_count;
    if (!cost->has_begun) {
        cost->has_begun = true;
        cost->began_ns = now_ns;
        cost->block_began_ns = 0;
        cost->switched_ns = now_ns;
    }
    if (!has_stepped || cost->block_count == 2 * LAC_COST_PAIRS) {
        return is_on(cost->block_count);
    }
    if (cost->block_began_ns == 0) { /* it begins when a step ends */
        if (now_ns - cost->switched_ns >= SETTLE_NS) {
            cost->block_began_ns = now_ns;
            cost->block_began_step = step_count;
        }
    } else if (steps >= LAC_COST_BLOCK_STEPS && now_ns - cost->block_began_ns >= BLOCK_NS_MIN) {
        cost->step_ns[cost->block_count++] =
            (double)(now_ns - cost->block_began_ns) / (double)steps;
        if (is_on(cost->block_count) != is_on(cost->block_count - 1)) {
            cost->switched_ns = now_ns;
            cost->block_began_ns = 0;
        } else {
            cost->block_began_ns = now_ns;
            cost->block_began_step = step_count;
        }
    }
    return is_on(cost->block_count);
}

bool lac_cost_is_over(const struct lac_cost *cost, uint64_t now_ns)
{
    return cost->block_count == 2 * LAC_COST_PAIRS ||
           (cost->has_begun && now_ns - cost->began_ns > LONGEST_NS);
}

/* sqrt() would be a library more. */
static double root(double square)
{
    double guess = square > 1 ? square : 1;

    for (int i = 0; i < 200 && square > 0; i++) {
        guess = (guess + square / guess) / 2;
    }
    return square > 0 ? guess : 0;
}

bool lac_cost_result(const struct lac_cost *cost, double *ret_percent, double *ret_spread)
{
    const uint32_t pairs = cost->block_count / 2;
    double differences[LAC_COST_PAIRS];
    double mean = 0;
    double off_ns = 0;
    double squares = 0;

    if (pairs < PAIRS_MIN) {
        return false;
    }
    for (size_t i = 0; i < pairs; i++) {
        const double first = cost->step_ns[2 * i];
        const double second = cost->step_ns[2 * i + 1];

        differences[i] = is_on((uint32_t)(2 * i)) ? first - second : second - first;
        mean += differences[i] / pairs;
        off_ns += (is_on((uint32_t)(2 * i)) ? second : first) / pairs;
    }
    if (off_ns <= 0) {
        return false;
    }
    for (uint32_t i = 0; i < pairs; i++) {
        squares += (differences[i] - mean) * (differences[i] - mean);
    }
    *ret_percent = 100 * mean / off_ns;
    *ret_spread = 100 * student[pairs - PAIRS_MIN] * root(squares / (pairs - 1) / pairs) / off_ns;
    return true;
}
