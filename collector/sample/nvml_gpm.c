#include "collector/sample/nvml_gpm.h"

#include "collector/base/nvml_abi.h"
#include "collector/base/nvml_functions.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    COST_FRACTION = 50, /* of the time that readings may take */
    APART_MAX_MS = 1000,
    SLOW_MS = 20,
    TRIES = 3,
};
#define NS_PER_MS 1000000u

static const struct {
    unsigned id;
    double factor;
} wanted[LAC_GPM_VALUES] = {
    [LAC_GPM_SM_ACTIVE] = {NVML_GPM_SM_ACTIVE, 1},
    [LAC_GPM_SM_OCCUPANCY] = {NVML_GPM_SM_OCCUPANCY, 1},
    [LAC_GPM_TENSOR_ACTIVE] = {NVML_GPM_TENSOR_ACTIVE, 1},
    [LAC_GPM_MEMORY_BANDWIDTH] = {NVML_GPM_MEMORY_BANDWIDTH, 1},
    [LAC_GPM_PCIE_SENT] = {NVML_GPM_PCIE_SENT, 1.048576},
    [LAC_GPM_PCIE_RECEIVED] = {NVML_GPM_PCIE_RECEIVED, 1.048576},
    [LAC_GPM_NVLINK_SENT] = {NVML_GPM_NVLINK_SENT, 1.048576},
    [LAC_GPM_NVLINK_RECEIVED] = {NVML_GPM_NVLINK_RECEIVED, 1.048576},
};

static uint64_t now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void turn_off(struct lac_gpm *gpm, int status)
{
    gpm->is_on = false;
    switch (status) {
    case NVML_NOT_SUPPORTED:
        (void)snprintf(gpm->why_off, sizeof(gpm->why_off),
                       "not this GPU, or not while it is divided (MIG) or virtual");
        break;
    case NVML_NO_PERMISSION:
        (void)snprintf(gpm->why_off, sizeof(gpm->why_off),
                       "the driver keeps them for administrators");
        break;
    default:
        (void)snprintf(gpm->why_off, sizeof(gpm->why_off), "the driver answers with error %d",
                       status);
    }
}

void lac_gpm_open(const struct lac_nvml_functions *call, void *device, struct lac_gpm *gpm)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    int status = call->gpm_support(device, &support);

    *gpm = (struct lac_gpm){.device = device};
    if (status == NVML_OK && support.is_supported == 0) {
        status = NVML_NOT_SUPPORTED;
    }
    for (int i = 0; i < 2 && status == NVML_OK; i++) {
        status = call->gpm_alloc(&gpm->samples[i]);
    }
    /* what is supported may still be refused: only a sample shows */
    status = status == NVML_OK ? call->gpm_sample(device, gpm->samples[0]) : status;
    if (status != NVML_OK) {
        turn_off(gpm, status);
        return;
    }
    gpm->is_on = true;
    gpm->taken_ns = now_ns();
    gpm->next_ns = gpm->taken_ns + (uint64_t)NVML_GPM_APART_MS * NS_PER_MS;
}

void lac_gpm_close(const struct lac_nvml_functions *call, struct lac_gpm *gpm)
{
    for (int i = 0; i < 2; i++) {
        if (gpm->samples[i] != NULL) {
            (void)call->gpm_free(gpm->samples[i]);
        }
        gpm->samples[i] = NULL;
    }
    gpm->is_on = false;
}

/* The values between two samples; an error of one of them leaves out that one. */
static int compare(const struct lac_nvml_functions *call, void *older, void *newer, double *values)
{
    struct nvml_gpm_metrics metrics;
    int status;

    memset(&metrics, 0, sizeof(metrics));
    metrics.version = NVML_GPM_METRICS_VERSION;
    metrics.count = LAC_GPM_VALUES;
    metrics.older = older;
    metrics.newer = newer;
    for (int i = 0; i < LAC_GPM_VALUES; i++) {
        metrics.metrics[i].id = wanted[i].id;
    }
    status = call->gpm_metrics(&metrics);
    for (int i = 0; i < LAC_GPM_VALUES; i++) {
        const struct nvml_gpm_metric *const metric = &metrics.metrics[i];
        const bool is_told = status == NVML_OK && metric->status == NVML_OK &&
                             isfinite(metric->value) && metric->value >= 0;

        values[i] = is_told ? metric->value * wanted[i].factor : (double)NAN;
    }
    return status;
}

/* When the next one may be, by what this one took; three that took long are enough. */
static void weigh(struct lac_gpm *gpm, uint64_t begin_ns, uint64_t end_ns)
{
    const uint64_t took_ns = end_ns - begin_ns;
    uint64_t apart_ns = took_ns * COST_FRACTION;

    gpm->took_ns += took_ns;
    gpm->reading_count++;
    apart_ns = apart_ns < (uint64_t)NVML_GPM_APART_MS * NS_PER_MS
                   ? (uint64_t)NVML_GPM_APART_MS * NS_PER_MS
                   : apart_ns;
    apart_ns = apart_ns > (uint64_t)APART_MAX_MS * NS_PER_MS ? (uint64_t)APART_MAX_MS * NS_PER_MS
                                                             : apart_ns;
    gpm->next_ns = end_ns + apart_ns;
    gpm->slow_count = took_ns > (uint64_t)SLOW_MS * NS_PER_MS ? gpm->slow_count + 1 : 0;
    if (gpm->slow_count == TRIES) {
        gpm->is_on = false;
        (void)snprintf(gpm->why_off, sizeof(gpm->why_off), "a reading took %llu ms",
                       (unsigned long long)(took_ns / NS_PER_MS));
    }
}

bool lac_gpm_read(const struct lac_nvml_functions *call, struct lac_gpm *gpm,
                  struct lac_gpm_reading *ret_reading)
{
    const uint64_t begin_ns = now_ns();
    const unsigned spare = 1 - gpm->newest;
    const uint64_t before_ns = gpm->taken_ns;
    uint64_t taken_ns;
    int status;

    if (!gpm->is_on || begin_ns <= gpm->next_ns) {
        return false;
    }
    status = call->gpm_sample(gpm->device, gpm->samples[spare]);
    taken_ns = now_ns();
    if (status == NVML_OK) {
        *ret_reading = (struct lac_gpm_reading){.start_ns = before_ns, .end_ns = taken_ns};
        gpm->newest = spare;
        gpm->taken_ns = taken_ns;
        if (before_ns != 0) {
            status =
                compare(call, gpm->samples[1 - spare], gpm->samples[spare], ret_reading->values);
        }
    } else {
        gpm->taken_ns = 0; /* what comes next has nothing to be compared with */
    }
    gpm->failed_count = status == NVML_OK ? 0 : gpm->failed_count + 1;
    weigh(gpm, begin_ns, now_ns());
    if (gpm->failed_count == TRIES) {
        turn_off(gpm, status);
    }
    return status == NVML_OK && before_ns != 0;
}
