#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_SATURATE_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_SATURATE_H

/* Numbers of a hostile trace may be anything: what is summed, scaled or rounded stays within what
 * JSON carries exactly. */

#include <math.h>
#include <stdint.h>

/** 2^53 - 1: 104 days in ns. */
#define LAC_NUMBER_MAX INT64_C(9007199254740991)

static inline int64_t lac_saturate(int64_t value)
{
    return value > LAC_NUMBER_MAX    ? LAC_NUMBER_MAX
           : value < -LAC_NUMBER_MAX ? -LAC_NUMBER_MAX
                                     : value;
}

/** The nearest integer, halves away from zero; of what is no number 0. */
static inline int64_t lac_round(double value)
{
    const double most = (double)LAC_NUMBER_MAX;
    return isnan(value) ? 0 : llround(fmax(-most, fmin(value, most)));
}

/** Sum of two lengths, or other numbers that are not negative. */
static inline int64_t lac_sum_ns(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? lac_saturate(a) : lac_saturate(sum);
}

#endif
