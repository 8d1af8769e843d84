#include "collector/python/open_ranges.h"

#include "collector/inject/api.h"
#include "collector/python/cpu_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEPTH_MAX = 64 };

static const struct lacuna_api *recorder;
static __thread struct {
    bool is_ready; /* the recorder is, for this thread */
    int depth;
    struct lac_cpu_time start[DEPTH_MAX]; /* CPU time < 0: not measured */
} of_thread;

void lac_ranges_use(const struct lacuna_api *api)
{
    recorder = api;
}

void lac_ranges_begin(void)
{
    of_thread.is_ready = false;
}

void lac_range_open(const char *name, size_t length, int64_t batch, int32_t worker,
                    bool measures_cpu)
{
    const bool is_first = !of_thread.is_ready;

    if (is_first) { /* it opens its spool now, for milliseconds that are not the range's */
        recorder->push(name, length, batch, worker);
        of_thread.is_ready = true;
    }
    if (of_thread.depth < DEPTH_MAX) {
        of_thread.start[of_thread.depth] =
            measures_cpu ? lac_cpu_clock_now() : (struct lac_cpu_time){.cpu_ns = -1};
    }
    of_thread.depth++;
    if (!is_first) {
        recorder->push(name, length, batch, worker);
    }
}

void lac_range_close(void)
{
    int64_t cpu_ns = -1;

    if (of_thread.depth == 0) {
        return;
    }
    of_thread.depth--;
    if (of_thread.depth < DEPTH_MAX) {
        cpu_ns = lac_cpu_clock_since(&of_thread.start[of_thread.depth]);
    }
    recorder->pop(cpu_ns);
}
