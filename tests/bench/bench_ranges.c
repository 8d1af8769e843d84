/* Cost of a push and its pop, as the traced program sees it: medians of rounds of 20,000 pairs over
 * two seconds. */
#include "kernels/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 20000, ROUNDS_MAX = 4000, NAMES_MAX = 512, RUN_NS = 2000000000 };

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

int main(int argc, char **argv)
{
    static char names[NAMES_MAX][40];
    static double rounds[ROUNDS_MAX];
    const unsigned count = argc > 1 && argv[1][0] == '5' ? NAMES_MAX : 1;
    const double start = now_ns();
    int round_count = 0;

    for (int i = 0; i < NAMES_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "forward of layer number %d", i);
    }
    range_open_library();
    while (round_count < ROUNDS_MAX && now_ns() - start < RUN_NS) {
        const double before = now_ns();

        for (unsigned i = 0; i < PAIRS; i++) {
            range_push(names[i & (count - 1)]);
            range_pop();
        }
        rounds[round_count++] = (now_ns() - before) / PAIRS;
    }
    qsort(rounds, (size_t)round_count, sizeof(rounds[0]), compare);
    (void)printf("{\"pair_ns\":%.2f,\"pairs\":%d}\n", rounds[round_count / 2], round_count * PAIRS);
    return 0;
}
