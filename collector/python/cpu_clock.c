#include "collector/python/cpu_clock.h"

#include <stdint.h>
#include <time.h>

enum {
    READINGS = 5,
    COSTS_FRESH = 8, /* a reading stands for the next ones as long as so many would take */
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

static int64_t cpu_at(int64_t wall_ns, int64_t moment_ns)
{
    if (read_wall_ns == 0 || wall_ns - read_wall_ns >= moment_ns) {
        read_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        read_wall_ns = read_cpu_ns >= 0 ? now_ns(CLOCK_MONOTONIC) : 0;
        return read_cpu_ns;
    }
    return read_cpu_ns + (wall_ns - read_wall_ns);
}

struct lac_cpu_time lac_cpu_clock_now(void)
{
    const int64_t wall_ns = now_ns(CLOCK_MONOTONIC);

    return (struct lac_cpu_time){.wall_ns = wall_ns, .cpu_ns = cpu_at(wall_ns, fresh_ns)};
}

int64_t lac_cpu_clock_since(const struct lac_cpu_time *start)
{
    int64_t wall_ns;
    int64_t took_ns;
    int64_t moment_ns;
    int64_t cpu_ns;

    if (start->cpu_ns < 0) {
        return -1;
    }
    wall_ns = now_ns(CLOCK_MONOTONIC);
    took_ns = wall_ns - start->wall_ns;
    if (took_ns < fresh_ns) { /* too short for a wait to matter */
        return took_ns;
    }
    moment_ns = took_ns / LAC_CPU_CLOCK_ERROR_SHARE;
    moment_ns = moment_ns < LAC_CPU_CLOCK_ERROR_MAX_NS ? moment_ns : LAC_CPU_CLOCK_ERROR_MAX_NS;
    cpu_ns = cpu_at(wall_ns, moment_ns > fresh_ns ? moment_ns : fresh_ns);
    if (cpu_ns < 0) {
        return -1;
    }
    return cpu_ns > start->cpu_ns ? cpu_ns - start->cpu_ns : 0;
}
