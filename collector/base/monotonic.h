#ifndef LAC_COLLECTOR_BASE_MONOTONIC_H
#define LAC_COLLECTOR_BASE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of a clock that nobody sets. */
static inline uint64_t lac_monotonic_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
