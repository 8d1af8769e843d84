#include "collector/python/cpu_clock.h"

#include <stdint.h>
#include <time.h>

enum {
    READINGS = 5,
    COSTS_FRESH = 4, /* a reading stands for the next ones as long as so many would take */
};

static int64_t cost_ns;
static int64_t fresh_ns;
/* When this thread read its clock; 0: not yet. No fork is so quick that a child finds it fresh, whose
 * clock begins at 0. */
static __thread int64_t read_wall_ns;
static __thread int64_t read_cpu_ns;

static int64_t now_ns(clockid_t clock)
{
    struct timespec time;

    return clock_gettime(clock, &time) == 0 ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec : -1;
}

void lac_cpu_clock_begin(void)
{
    if (cost_ns != 0) {
        return;
    }
    for (int i = 0; i < READINGS; i++) {
        const int64_t began_ns = now_ns(CLOCK_MONOTONIC);
        int64_t took_ns;

        (void)now_ns(CLOCK_THREAD_CPUTIME_ID);
        took_ns = now_ns(CLOCK_MONOTONIC) - began_ns;
        if (i == 0 || took_ns < cost_ns) { /* others on the machine only make it longer */
            cost_ns = took_ns;
        }
    }
    cost_ns = cost_ns > 0 ? cost_ns : 1;
    fresh_ns = cost_ns * COSTS_FRESH < LAC_CPU_CLOCK_ERROR_NS ? cost_ns * COSTS_FRESH
                                                              : LAC_CPU_CLOCK_ERROR_NS;
}

int64_t lac_cpu_clock_cost_ns(void)
{
    return cost_ns;
}

int64_t lac_cpu_clock_now(void)
{
    const int64_t wall_ns = now_ns(CLOCK_MONOTONIC);

    if (read_wall_ns == 0 || wall_ns - read_wall_ns >= fresh_ns) {
        read_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        read_wall_ns = read_cpu_ns >= 0 ? now_ns(CLOCK_MONOTONIC) : 0;
        return read_cpu_ns;
    }
    return read_cpu_ns + (wall_ns - read_wall_ns);
}
