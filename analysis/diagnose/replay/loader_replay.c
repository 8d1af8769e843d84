/*
 * The loader's queue, played again: workers take batches in turn, two ahead each (unless told
 * otherwise), and deliver in order; where one thread pins their batches, through it one by one. With fetches that all take as long this is max(s, fetch /
 * workers); a slow one among them holds up all that come after it.
 */

#include "analysis/diagnose/replay/what_if_replay.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLAY_WORKERS_MAX = 512, ROUNDS = 2, BATCHES_MIN = 400, WINDOW_MAX = 2048, AHEAD = 2 };

double lac_loader_step_prefetch(const struct lac_step_time *time, double s_ns, int32_t workers,
                                int32_t ahead, double factor)
{
    double free_at[REPLAY_WORKERS_MAX] = {0.0};
    double taken_at[WINDOW_MAX] = {0.0}; /* when batch i was taken, modulo the window */
    if (workers > REPLAY_WORKERS_MAX || workers < 1 || ahead < 1 || ahead > WINDOW_MAX / workers ||
        time->fetch_ns == NULL || time->fetch_count == 0) {
        return s_ns;
    }
    uint64_t window = (uint64_t)workers * (uint64_t)ahead;
    uint64_t total = time->fetch_count * ROUNDS;
    total = total < BATCHES_MIN ? BATCHES_MIN : total;
    uint64_t skipped = window < total / 4 ? window : total / 4;
    double batch_ns = s_ns / time->batches; /* between two batches, while none is late */
    double pinned_ns = 0.0;
    double now_ns = 0.0;
    double begin_ns = 0.0;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t worker = i % (uint64_t)workers;
        /* a window has a batch or more NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
        double asked_ns = i < window ? 0.0 : taken_at[i % window];
        double ready_ns =
            fmax(asked_ns, free_at[worker]) + factor * time->fetch_ns[i % time->fetch_count];
        free_at[worker] = ready_ns;
        pinned_ns = fmax(pinned_ns, ready_ns) + time->pin_ns;
        now_ns = fmax(now_ns, pinned_ns);
        taken_at[i % window] = now_ns;
        if (i == skipped) {
            begin_ns = now_ns;
        }
        now_ns += batch_ns;
    }
    return time->batches * (now_ns - batch_ns - begin_ns) / (double)(total - 1 - skipped);
}

double lac_loader_step(const struct lac_step_time *time, double s_ns, int32_t workers,
                       double factor)
{
    return lac_loader_step_prefetch(time, s_ns, workers, AHEAD, factor);
}
