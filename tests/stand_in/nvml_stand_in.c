/*
 * A stand-in for libnvidia-ml, NOT NVML: it obeys a script in the environment and knows nothing of
 * GPUs. It shows that our side of the conversation holds (versions, units, refusals, order, time
 * between samples, nothing left allocated); how the real library behaves, only a machine with a GPU
 * shows. Built twice: with -DWITHOUT_GPM it is a driver from before GPM, with the old names.
 *
 *   NVML_STAND_IN_GPUS=N        how many (default 1); N=0: a driver without a GPU
 *   NVML_STAND_IN_LOST=I        GPU I gives no handle
 *   NVML_STAND_IN_GPM=no        GPM is there, but not of these GPUs
 *   NVML_STAND_IN_GPM=mig       it says yes, but the GPU is divided: no sample can be taken
 *   NVML_STAND_IN_GPM=admin     samples are for administrators
 *   NVML_STAND_IN_GPM=breaks    after the fifth sample none can be taken
 *   NVML_STAND_IN_SLOW_MS=N     each sample takes so long
 *   NVML_STAND_IN_NO_METRICS=a,b  metrics that fail, by number
 *   NVML_STAND_IN_REFUSE=1      everything but the name is refused, as by a virtual GPU
 *   NVML_STAND_IN_INIT_MS=N     it takes so long to begin
 *   NVML_STAND_IN_HANG=1        from the third question about clocks on it does not answer
 *   NVML_STAND_IN_LOG=FILE      what was called, written at the end; "wrong" counts what NVML would
 *                               not have taken
 *
 * GPU I's figures are the constants below, plus I. It has one part (MIG), with its UUID but for the
 * first letters.
 */

#include "collector/base/nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { GPUS_MAX = 8, INVALID = 2, NOT_FOUND = 6, FAR_MS = NVML_GPM_APART_MS };

static struct gpu {
    unsigned index;
} gpus[GPUS_MAX] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static struct gpu parts[GPUS_MAX];

static unsigned initialised;
static unsigned wrong;
static unsigned pcie_calls;
static unsigned sample_calls;
static unsigned allocated;
static unsigned released;

static unsigned number(const char *name, unsigned otherwise)
{
    const char *const text = getenv(name);

    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static int refused(void *device)
{
    wrong += initialised == 0 || device == NULL;
    return number("NVML_STAND_IN_REFUSE", 0) != 0;
}

static unsigned index_of(const void *device)
{
    return ((const struct gpu *)device)->index;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned length);
EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **device);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *utilization);
EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
EXPORT int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kilobytes_per_s);

static void wait_ms(unsigned ms)
{
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    (void)nanosleep(&wait, NULL);
}

int nvmlInit_v2(void)
{
    wait_ms(number("NVML_STAND_IN_INIT_MS", 0));
    initialised++;
    return NVML_OK;
}

int nvmlShutdown(void)
{
    const char *const path = getenv("NVML_STAND_IN_LOG");
    FILE *const file = path != NULL ? fopen(path, "w") : NULL;

    initialised--;
    if (file != NULL) {
        (void)fprintf(file, "wrong %u pcie %u samples %u left %u open %u\n", wrong, pcie_calls,
                      sample_calls, allocated - released, initialised);
        (void)fclose(file);
    }
    return NVML_OK;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = number("NVML_STAND_IN_GPUS", 1);
    return NVML_OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index >= GPUS_MAX || index == number("NVML_STAND_IN_LOST", GPUS_MAX)) {
        return NOT_FOUND;
    }
    *device = &gpus[index];
    return NVML_OK;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    (void)snprintf(name, length, "Stand-in GPU %u", index_of(device));
    return NVML_OK;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
    (void)snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012x", index_of(device));
    return NVML_OK;
}

/* Of parts only: nothing asks for a whole GPU. */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static const char begin[] = "MIG-00000000-0000-0000-0000-";
    const size_t length = sizeof(begin) - 1;
    const unsigned long index =
        strncmp(uuid, begin, length) == 0 ? strtoul(uuid + length, NULL, 16) : GPUS_MAX;

    wrong += initialised == 0;
    if (index >= number("NVML_STAND_IN_GPUS", 1) || index >= GPUS_MAX) {
        return NOT_FOUND;
    }
    *device = &parts[index];
    return NVML_OK;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **device)
{
    *device = &gpus[(struct gpu *)part - parts];
    return NVML_OK;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    (void)snprintf(version, length, "999.01");
    return NVML_OK;
}

int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *utilization)
{
    if (refused(device)) {
        return NVML_NOT_SUPPORTED;
    }
    *utilization = (struct nvml_utilization){97 + index_of(device), 41 + index_of(device)};
    return NVML_OK;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    static unsigned calls;

    while (++calls > 2 && number("NVML_STAND_IN_HANG", 0) != 0) {
        wait_ms(1000);
    }
    if (refused(device)) {
        return NVML_NOT_SUPPORTED;
    }
    *mhz = (type == NVML_CLOCK_SM ? 1755 : type == NVML_CLOCK_MEMORY ? 2619 : 1) + index_of(device);
    return NVML_OK;
}

int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory)
{
    if (refused(device)) {
        return NVML_NOT_SUPPORTED;
    }
    memory->total_bytes = 80000000000ull;
    memory->used_bytes = 30000000000ull + index_of(device) * 1000000ull;
    memory->free_bytes = memory->total_bytes - memory->used_bytes;
    return NVML_OK;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 612500 + index_of(device) * 1000;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

/* A joule more each time it is asked. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    static unsigned long long joules[GPUS_MAX];

    *millijoules = 5000000000ull + ++joules[index_of(device)] * 1000;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

/* It waits, as the real one does. */
int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kilobytes_per_s)
{
    wait_ms(20);
    pcie_calls++;
    *kilobytes_per_s = (counter == NVML_PCIE_SENT ? 3000 : 12000) + index_of(device) * 1000;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);

static int is_script(const char *word)
{
    const char *const script = getenv("NVML_STAND_IN_GPM");

    return script != NULL && strcmp(script, word) == 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = (unsigned)is_script("mig");
    *pending = *current;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

#ifdef WITHOUT_GPM

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    wrong += sensor != NVML_SENSOR_GPU;
    *celsius = 61 + index_of(device);
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = 0x4;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

#else

EXPORT int nvmlDeviceGetTemperatureV(void *device, struct nvml_temperature *temperature);
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
EXPORT int nvmlGpmQueryDeviceSupport(void *device, struct nvml_gpm_support *support);
EXPORT int nvmlGpmSampleAlloc(void **sample);
EXPORT int nvmlGpmSampleFree(void *sample);
EXPORT int nvmlGpmSampleGet(void *device, void *sample);
EXPORT int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics);

int nvmlDeviceGetTemperatureV(void *device, struct nvml_temperature *temperature)
{
    wrong += temperature->version != (12u | 1u << 24) || temperature->sensor != NVML_SENSOR_GPU;
    temperature->celsius = 61 + (int)index_of(device);
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    *reasons = 0x4;
    return refused(device) ? NVML_NOT_SUPPORTED : NVML_OK;
}

struct sample {
    unsigned gpu;
    unsigned long long taken_ns; /* 0: empty */
};

int nvmlGpmQueryDeviceSupport(void *device, struct nvml_gpm_support *support)
{
    wrong += device == NULL || initialised == 0;
    if (support->version != 1) {
        wrong++;
        return INVALID;
    }
    support->is_supported = !is_script("no");
    return number("NVML_STAND_IN_REFUSE", 0) != 0 ? NVML_NOT_SUPPORTED : NVML_OK;
}

int nvmlGpmSampleAlloc(void **sample)
{
    *sample = calloc(1, sizeof(struct sample));
    allocated += *sample != NULL;
    return *sample != NULL ? NVML_OK : INVALID;
}

int nvmlGpmSampleFree(void *sample)
{
    wrong += sample == NULL || initialised == 0;
    released += sample != NULL;
    free(sample);
    return NVML_OK;
}

int nvmlGpmSampleGet(void *device, void *into)
{
    struct sample *const sample = into;
    struct timespec now;

    wait_ms(number("NVML_STAND_IN_SLOW_MS", 0));
    sample_calls++;
    wrong += sample == NULL || initialised == 0;
    if (is_script("mig") || (is_script("breaks") && sample_calls > 5)) {
        return NVML_NOT_SUPPORTED;
    }
    if (is_script("admin")) {
        return NVML_NO_PERMISSION;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    sample->gpu = index_of(device);
    sample->taken_ns = (unsigned long long)now.tv_sec * 1000000000u + (unsigned)now.tv_nsec;
    return NVML_OK;
}

static int fails(unsigned id)
{
    const char *text = getenv("NVML_STAND_IN_NO_METRICS");

    while (text != NULL && *text != '\0') {
        char *end;
        const unsigned long each = strtoul(text, &end, 10);

        if (each == id) {
            return 1;
        }
        text = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

static double value_of(unsigned id)
{
    switch (id) {
    case 2:
        return 38.5; /* SMs active, % */
    case 3:
        return 12.25;
    case 5:
        return 7.75; /* tensor cores, % */
    case 10:
        return 22.5; /* memory bandwidth, % */
    case 20:
        return 100; /* PCIe sent, MiB/s */
    case 21:
        return 2000;
    case 60:
        return 300; /* NVLink received, MiB/s */
    case 61:
        return 400;
    default:
        wrong++;
        return 0;
    }
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
    const struct sample *const older = metrics->older;
    const struct sample *const newer = metrics->newer;

    if (metrics->version != 1 || metrics->count == 0 || metrics->count > 98 || older == NULL ||
        newer == NULL || older == newer || older->taken_ns == 0 || older->gpu != newer->gpu ||
        newer->taken_ns <= older->taken_ns + (unsigned long long)FAR_MS * 1000000u) {
        wrong++;
        return INVALID;
    }
    for (unsigned i = 0; i < metrics->count; i++) {
        struct nvml_gpm_metric *const metric = &metrics->metrics[i];

        metric->status = fails(metric->id) ? NVML_NOT_SUPPORTED : NVML_OK;
        metric->value = metric->status == NVML_OK ? value_of(metric->id) + newer->gpu : 777;
    }
    return NVML_OK;
}

#endif
