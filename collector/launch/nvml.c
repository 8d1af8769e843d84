#include "collector/launch/nvml.h"

#include "collector/inject/old_symbols.h"
#include "collector/launch/sample_spool.h"
#include "lacuna/spool.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES_MAX = 64, VALUES = 12, ROUND_MS = 100, NVML_OK = 0 };

/* Structs and numbers that NVML fixes. */
struct nvml_utilization {
    unsigned gpu_percent;
    unsigned memory_percent;
};
struct nvml_memory {
    unsigned long long total_bytes;
    unsigned long long free_bytes;
    unsigned long long used_bytes;
};
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_PCIE_SENT = 0, NVML_PCIE_RECEIVED = 1 };

typedef void *nvml_device;

struct functions {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, nvml_device *);
    int (*name)(nvml_device, char *, unsigned);
    int (*driver)(char *, unsigned);
    int (*utilization)(nvml_device, struct nvml_utilization *);
    int (*clock)(nvml_device, int, unsigned *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*power)(nvml_device, unsigned *);
    int (*energy)(nvml_device, unsigned long long *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*throttling)(nvml_device, unsigned long long *);
    int (*pcie)(nvml_device, int, unsigned *);
};

static const struct {
    const char *what;
    const char *unit;
} series[VALUES] = {
    {"GPU utilisation", "%"}, {"memory utilisation", "%"}, {"SM clock", "MHz"},
    {"memory clock", "MHz"},  {"memory used", "MB"},       {"power", "W"},
    {"energy", "J"},          {"temperature", "C"},        {"clocks held down", "reasons"},
    {"PCIe sent", "MB/s"},    {"PCIe received", "MB/s"},   {"memory total", "MB"},
};

struct device {
    nvml_device handle;
    double values[VALUES]; /* NAN: not told */
    double written[VALUES];
    uint32_t ids[VALUES];
};

struct lac_nvml {
    void *library;
    struct functions call;
    struct device devices[DEVICES_MAX];
    unsigned count;
    pthread_t thread;
    pthread_mutex_t mutex;
    bool stop;
};

static bool find_functions(void *library, struct functions *call)
{
    const struct {
        const char *name;
        void *to;
        bool needed;
    } wanted[] = {
        {"nvmlInit_v2", &call->init, true},
        {"nvmlShutdown", &call->shutdown, true},
        {"nvmlDeviceGetCount_v2", &call->count, true},
        {"nvmlDeviceGetHandleByIndex_v2", &call->handle, true},
        {"nvmlDeviceGetName", &call->name, false},
        {"nvmlSystemGetDriverVersion", &call->driver, false},
        {"nvmlDeviceGetUtilizationRates", &call->utilization, false},
        {"nvmlDeviceGetClockInfo", &call->clock, false},
        {"nvmlDeviceGetMemoryInfo", &call->memory, false},
        {"nvmlDeviceGetPowerUsage", &call->power, false},
        {"nvmlDeviceGetTotalEnergyConsumption", &call->energy, false},
        {"nvmlDeviceGetTemperature", &call->temperature, false},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", &call->throttling, false},
        {"nvmlDeviceGetPcieThroughput", &call->pcie, false},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *const function = dlsym(library, wanted[i].name);

        memcpy(wanted[i].to, &function, sizeof(function));
        if (function == NULL && wanted[i].needed) {
            return false;
        }
    }
    return true;
}

/* One device, all values; each call may be refused (virtual GPUs, old ones). */
static void read_device(const struct functions *call, nvml_device handle, bool with_pcie,
                        double *values)
{
    struct nvml_utilization utilization;
    struct nvml_memory memory;
    unsigned number;
    unsigned long long big;

    if (call->utilization != NULL && call->utilization(handle, &utilization) == NVML_OK) {
        values[0] = utilization.gpu_percent;
        values[1] = utilization.memory_percent;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_SM, &number) == NVML_OK) {
        values[2] = number;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_MEMORY, &number) == NVML_OK) {
        values[3] = number;
    }
    if (call->memory != NULL && call->memory(handle, &memory) == NVML_OK) {
        values[4] = (double)memory.used_bytes / 1e6;
        values[11] = (double)memory.total_bytes / 1e6;
    }
    if (call->power != NULL && call->power(handle, &number) == NVML_OK) {
        values[5] = number / 1e3;
    }
    if (call->energy != NULL && call->energy(handle, &big) == NVML_OK) {
        values[6] = (double)big / 1e3;
    }
    if (call->temperature != NULL && call->temperature(handle, 0, &number) == NVML_OK) {
        values[7] = number;
    }
    if (call->throttling != NULL && call->throttling(handle, &big) == NVML_OK) {
        values[8] = (double)big;
    }
    if (with_pcie && call->pcie != NULL) { /* each of these takes 20 ms */
        if (call->pcie(handle, NVML_PCIE_SENT, &number) == NVML_OK) {
            values[9] = number / 1e3;
        }
        if (call->pcie(handle, NVML_PCIE_RECEIVED, &number) == NVML_OK) {
            values[10] = number / 1e3;
        }
    }
}

static void *read_again_and_again(void *context)
{
    struct lac_nvml *const nvml = context;
    sigset_t all;
    bool stop = false;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (unsigned round = 0; !stop; round++) {
        const struct timespec pause = {.tv_nsec = ROUND_MS * 1000000L};

        for (unsigned i = 0; i < nvml->count; i++) {
            double values[VALUES];

            for (int k = 0; k < VALUES; k++) {
                values[k] = (double)NAN;
            }
            read_device(&nvml->call, nvml->devices[i].handle, round % 10 == 0, values);
            (void)pthread_mutex_lock(&nvml->mutex);
            for (int k = 0; k < VALUES; k++) {
                if (!isnan(values[k])) {
                    nvml->devices[i].values[k] = values[k];
                }
            }
            (void)pthread_mutex_unlock(&nvml->mutex);
        }
        (void)nanosleep(&pause, NULL);
        (void)pthread_mutex_lock(&nvml->mutex);
        stop = nvml->stop;
        (void)pthread_mutex_unlock(&nvml->mutex);
    }
    return NULL;
}

static void note_devices(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    char text[128] = "";
    char key[40];

    if (nvml->call.driver != NULL && nvml->call.driver(text, sizeof(text)) == NVML_OK) {
        lac_sample_spool_setting(spool, "host.driver_version", text);
    }
    for (unsigned i = 0; i < nvml->count; i++) {
        for (int k = 0; k < VALUES; k++) {
            nvml->devices[i].values[k] = (double)NAN;
            nvml->devices[i].written[k] = (double)NAN;
        }
        if (nvml->call.name != NULL &&
            nvml->call.name(nvml->devices[i].handle, text, sizeof(text)) == NVML_OK) {
            (void)snprintf(key, sizeof(key), "host.gpu.%u", i);
            lac_sample_spool_setting(spool, key, text);
        }
    }
}

static bool start(struct lac_nvml *nvml)
{
    unsigned count = 0;

    if (!find_functions(nvml->library, &nvml->call) || nvml->call.init() != NVML_OK) {
        return false;
    }
    if (nvml->call.count(&count) != NVML_OK || count == 0) {
        (void)nvml->call.shutdown();
        return false;
    }
    for (unsigned i = 0; i < count && nvml->count < DEVICES_MAX; i++) {
        if (nvml->call.handle(i, &nvml->devices[nvml->count].handle) == NVML_OK) {
            nvml->count++;
        }
    }
    return nvml->count > 0;
}

struct lac_nvml *lac_nvml_create(struct lac_sample_spool *spool)
{
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    struct lac_nvml *const nvml = library != NULL ? calloc(1, sizeof(*nvml)) : NULL;

    if (nvml != NULL) {
        nvml->library = library;
    }
    if (nvml == NULL || !start(nvml)) {
        lac_sample_spool_setting(spool, "host.gpu_monitor",
                                 library == NULL ? "libnvidia-ml.so.1 was not found"
                                                 : "the driver shows no GPU");
        free(nvml);
        return NULL;
    }
    note_devices(nvml, spool);
    (void)pthread_mutex_init(&nvml->mutex, NULL);
    if (pthread_create(&nvml->thread, NULL, read_again_and_again, nvml) != 0) {
        free(nvml);
        return NULL;
    }
    lac_sample_spool_setting(spool, "host.gpu_monitor", "nvml");
    return nvml;
}

void lac_nvml_destroy(struct lac_nvml *nvml)
{
    if (nvml == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&nvml->mutex);
    nvml->stop = true;
    (void)pthread_mutex_unlock(&nvml->mutex);
    (void)pthread_join(nvml->thread, NULL);
    (void)nvml->call.shutdown();
    free(nvml);
}

void lac_nvml_write(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    (void)pthread_mutex_lock(&nvml->mutex);
    for (unsigned i = 0; i < nvml->count; i++) {
        struct device *const device = &nvml->devices[i];

        for (int k = 0; k < VALUES; k++) {
            char text[128];

            if (isnan(device->values[k]) || device->values[k] == device->written[k]) {
                continue;
            }
            if (device->ids[k] == 0) {
                (void)snprintf(text, sizeof(text), "%c%c%c%cGPU %u: %s%c%s", LAC_SERIES_SEPARATOR,
                               LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR, i,
                               series[k].what, LAC_SERIES_SEPARATOR, series[k].unit);
                device->ids[k] = lac_sample_spool_name(spool, text);
            }
            lac_sample_spool_value(spool, device->ids[k], device->values[k]);
            device->written[k] = device->values[k];
        }
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
}
