#include "collector/hang/hang_gpus.h"

#include "collector/hang/hang_words.h"
#include "collector/sample/nvml.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * NVML's utilization is the share of time in which any kernel ran: a kernel of NCCL that waits counts
 * in full. It touches memory hardly at all, which kernels that compute do.
 */
enum { BUSY_PCT = 90, IDLE_PCT = 5, SPIN_MEMORY_PCT = 5 };

/* Reasons that hold no clock down: nothing to do, and clocks that the user or an application set. */
enum { HELD_BY_NOBODY = 0x1 | 0x2 };

static const char *comma(const char *text)
{
    return text[0] != '\0' ? ", " : "";
}

void lac_hang_say_gpu(const struct lac_gpu_now *gpu, char *text, size_t capacity)
{
    assert(gpu != NULL && text != NULL && capacity > 0);
    text[0] = '\0';
    if (!isnan(gpu->busy_pct)) {
        lac_hang_add(text, capacity, "%.0f %% busy", gpu->busy_pct);
    }
    if (!isnan(gpu->memory_pct)) {
        lac_hang_add(text, capacity, "%smemory %.0f %%", comma(text), gpu->memory_pct);
    }
    if (!isnan(gpu->sm_mhz)) {
        lac_hang_add(text, capacity, "%s%.0f MHz", comma(text), gpu->sm_mhz);
    }
    if (!isnan(gpu->power_w)) {
        lac_hang_add(text, capacity, "%s%.0f W", comma(text), gpu->power_w);
    }
    if (!isnan(gpu->memory_used_mb) && !isnan(gpu->memory_total_mb)) {
        lac_hang_add(text, capacity, "%s%.1f of %.1f GB used", comma(text),
                     gpu->memory_used_mb / 1e3, gpu->memory_total_mb / 1e3);
    }
    if (gpu->clocks_held >= 1 && gpu->clocks_held < 1e9 &&
        ((unsigned)gpu->clocks_held & ~(unsigned)HELD_BY_NOBODY) != 0) {
        lac_hang_add(text, capacity, "%sclocks held down (0x%x)", comma(text),
                     (unsigned)gpu->clocks_held);
    }
    if (gpu->processes > 0) {
        lac_hang_add(text, capacity, "%s%u process%s", comma(text), gpu->processes,
                     gpu->processes > 1 ? "es" : "");
    }
}

void lac_hang_say_gpus(const struct lac_gpu_now *gpus, unsigned count, char *text, size_t capacity)
{
    assert((gpus != NULL || count == 0) && text != NULL && capacity > 0);
    unsigned busy = 0;
    unsigned spinning = 0;
    unsigned idle = 0;
    unsigned idle_index = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        const bool is_busy = gpus[i].busy_pct >= BUSY_PCT;

        busy += is_busy;
        spinning += is_busy && gpus[i].memory_pct <= SPIN_MEMORY_PCT;
        if (gpus[i].busy_pct <= IDLE_PCT) {
            idle++;
            idle_index = gpus[i].index;
        }
    }
    if (count == 0 || busy + idle < count) {
        return;
    }
    if (idle == count) {
        lac_hang_add(text, capacity, "%s", count > 1 ? "all GPUs are idle" : "the GPU is idle");
    } else if (idle == 1) {
        lac_hang_add(text, capacity, "GPU %u is idle, %u other%s busy", idle_index, busy,
                     busy > 1 ? "s are" : " is");
    } else if (idle > 0) {
        lac_hang_add(text, capacity, "%u GPUs are idle, %u are busy", idle, busy);
    } else if (spinning == count) {
        lac_hang_add(text, capacity, "%s busy, hardly with %s memory: a kernel spins",
                     count > 1 ? "all GPUs are" : "the GPU is", count > 1 ? "their" : "its");
    } else {
        lac_hang_add(text, capacity, "%s", count > 1 ? "all GPUs are busy" : "the GPU is busy");
    }
}
