#ifndef LAC_ANALYSIS_COMPARE_COMPARE_THRESHOLDS_H
#define LAC_ANALYSIS_COMPARE_COMPARE_THRESHOLDS_H

/* Thresholds of the comparison, each with its unit and why. */

/* Two recordings are of different programs when they have less than this in common, in percent of
 * their kernels' time by name, and of the GPU time of their outermost operators. Another GPU or
 * another precision renames most kernels but no operator, a profiler without operators leaves the
 * kernels; pairs of one program share 50 and more of one of the two. */
#define KERNELS_COMMON_MIN_PCT   20.0
#define OPERATORS_COMMON_MIN_PCT 25.0
/* Without operators on both sides, generic kernels alone make as much; and where one side is compiled
 * (this part of its kernel time is Triton's, in percent), which renames operators and fuses kernels,
 * the products and the optimizer that stay as they were. */
#define KERNELS_ALONE_MIN_PCT 5.0
#define COMPILED_MIN_PCT      5.0

/* A trait of a program is told from kernels that take this part of the kernel time, in percent... */
#define TRAIT_MIN_PCT 5.0
/* ... when this part of them, in percent, agree. */
#define TRAIT_MAJORITY_PCT 60.0
/* Conversions of layout that a program in channels-last has at most, in percent of kernel time. */
#define CONVERTED_MAX_PCT 1.0

/* By ranks a difference is real at this chance of none. The band of the mean has its own test. */
#define RANK_TEST_P_MAX 0.01

/* Numbers of workers make the same step when their predictions differ by less than this part. */
#define WORKERS_ALIKE_MAX 0.02

#endif
