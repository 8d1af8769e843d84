#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum lac_spool_clock lac_clock = LAC_SPOOL_CLOCK_MONOTONIC;

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t lac_clock_now_slow(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

/* The TSC is used only if the kernel trusts it, that is, uses it as its clock source. */
void lac_clock_choose(void)
{
#if defined(__x86_64__)
    char name[16] = {0};
    const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        const ssize_t length = read(fd, name, sizeof(name) - 1);

        (void)close(fd);
        if (length >= 3 && strncmp(name, "tsc", 3) == 0) {
            lac_clock = LAC_SPOOL_CLOCK_TSC;
        }
    }
#endif
}

/* The three clocks cannot be read at the same instant: the tightest of five readings is kept. */
struct lac_sync_point lac_clock_sync(void)
{
    struct lac_sync_point best = {0};
    uint64_t best_width = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        const uint64_t before = lac_clock_now();
        const uint64_t monotonic = read_ns(CLOCK_MONOTONIC);
        const uint64_t after = lac_clock_now();

        if (after - before < best_width) {
            best_width = after - before;
            best.ticks = before + (after - before) / 2;
            best.monotonic_ns = monotonic;
        }
    }
    best.realtime_ns = read_ns(CLOCK_REALTIME) - (read_ns(CLOCK_MONOTONIC) - best.monotonic_ns);
    return best;
}
