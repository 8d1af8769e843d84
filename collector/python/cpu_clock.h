#ifndef LAC_COLLECTOR_PYTHON_CPU_CLOCK_H
#define LAC_COLLECTOR_PYTHON_CPU_CLOCK_H

/*
 * The CPU time of the calling thread, from few readings of the kernel's clock. A reading takes 0.2
 * to several us, as machines differ, and several times that where the job's own code has filled the
 * caches; where ranges follow each other the end of one is nearly the start of the next. So a thread
 * that read its clock a moment ago, on the wall, is taken to have computed since. A moment is what
 * eight readings take, LAC_CPU_CLOCK_ERROR_NS at most: by less than that the time at a range's start
 * is wrong. At its end a moment may be as long as a share of the range, LAC_CPU_CLOCK_ERROR_MAX_NS
 * at most: what a range is said to compute is wrong by 10 us or 3 % of it.
 */

#include <stdint.h>

enum {
    LAC_CPU_CLOCK_ERROR_NS = 10000,
    LAC_CPU_CLOCK_ERROR_SHARE = 32,
    LAC_CPU_CLOCK_ERROR_MAX_NS = 100000
};

/** A moment of the calling thread. */
struct lac_cpu_time {
    int64_t wall_ns;
    int64_t cpu_ns; /**< too late by less than LAC_CPU_CLOCK_ERROR_NS; -1: unknown */
};

/** Measures what a reading costs: a few readings, once per process. Before lac_cpu_clock_now(). */
void lac_cpu_clock_begin(void);
/** What a reading costs, in ns; 0 before lac_cpu_clock_begin(). */
int64_t lac_cpu_clock_cost_ns(void);
struct lac_cpu_time lac_cpu_clock_now(void);
/** CPU time of this thread since a moment of it; -1: unknown. */
int64_t lac_cpu_clock_since(const struct lac_cpu_time *start);

#endif
