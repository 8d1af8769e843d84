/*
 * What bench_ranges measures, with LTTng-UST instead: cost of a push and its pop, medians of rounds
 * of 20,000 pairs over one second. bench.py starts the session. Prints one line of JSON.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 20000, ROUNDS_MAX = 8000, RUN_NS = 1000000000 };

static double now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

int main(void)
{
    static double rounds[ROUNDS_MAX];
    const double start = now_ns();
    double after = start;
    int round_count = 0;

    if (!lttng_ust_tracepoint_enabled(lacuna_bench, push)) {
        (void)fprintf(stderr, "bench_lttng: no session records lacuna_bench:*\n");
        return 1;
    }
    while (round_count < ROUNDS_MAX && after - start < RUN_NS) {
        const double before = after;

        for (unsigned i = 0; i < PAIRS; i++) {
            lttng_ust_tracepoint(lacuna_bench, push, "forward of layer number 0");
            lttng_ust_tracepoint(lacuna_bench, pop);
        }
        after = now_ns();
        rounds[round_count++] = (after - before) / PAIRS;
    }
    qsort(rounds, (size_t)round_count, sizeof(rounds[0]), compare);
    (void)printf("{\"pair_ns\":%.2f,\"pairs\":%d}\n", rounds[round_count / 2], round_count * PAIRS);
    return 0;
}
