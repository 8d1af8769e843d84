#ifndef LAC_COLLECTOR_PYTHON_CPU_CLOCK_H
#define LAC_COLLECTOR_PYTHON_CPU_CLOCK_H

/*
 * The CPU time of the calling thread, from few readings of the kernel's clock. A reading takes 0.2
 * to several us, as machines differ, and where ranges follow each other the end of one is nearly
 * the start of the next. So a thread that read its clock a moment ago, on the wall, is taken to have
 * computed since: what that may be wrong by is below LAC_CPU_CLOCK_ERROR_NS.
 */

#include <stdint.h>

enum { LAC_CPU_CLOCK_ERROR_NS = 10000 };

/** Measures what a reading costs: a few readings, once per process. Before lac_cpu_clock_now(). */
void lac_cpu_clock_begin(void);
/** What a reading costs, in ns; 0 before lac_cpu_clock_begin(). */
int64_t lac_cpu_clock_cost_ns(void);
/** CPU time of this thread in ns, too late by less than LAC_CPU_CLOCK_ERROR_NS; -1: unknown. */
int64_t lac_cpu_clock_now(void);

#endif
