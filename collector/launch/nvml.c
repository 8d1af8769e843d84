#include "collector/launch/nvml.h"

#include "collector/inject/old_symbols.h"
#include "collector/launch/nvml_abi.h"
#include "collector/launch/nvml_gpm.h"
#include "collector/launch/sample_spool.h"
#include "collector/launch/status_line.h"
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

enum { DEVICES_MAX = 64, ROUND_MS = 100, PCIE_ROUNDS = 10, READINGS_MAX = 16 };
#define AGAIN_NS 1000000000u /* means are told again after this even when they are the same */

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
    int (*temperature_v)(nvml_device, struct nvml_temperature *);
    int (*throttling)(nvml_device, unsigned long long *);
    int (*pcie)(nvml_device, int, unsigned *);
};

/* Of a GPU. GPM tells of the two of PCIe where it can, and of all from SM_ACTIVE on. */
enum value {
    GPU_USE,
    MEMORY_USE,
    SM_CLOCK,
    MEMORY_CLOCK,
    MEMORY_USED,
    POWER,
    ENERGY,
    TEMPERATURE,
    CLOCKS_HELD,
    PCIE_SENT,
    PCIE_RECEIVED,
    MEMORY_TOTAL,
    SM_ACTIVE,
    SM_OCCUPANCY,
    TENSOR_ACTIVE,
    MEMORY_BANDWIDTH,
    NVLINK_SENT,
    NVLINK_RECEIVED,
    VALUES,
};

static const struct {
    const char *what;
    const char *unit;
} series[VALUES] = {
    [GPU_USE] = {"GPU utilisation", "%"},
    [MEMORY_USE] = {"memory utilisation", "%"},
    [SM_CLOCK] = {"SM clock", "MHz"},
    [MEMORY_CLOCK] = {"memory clock", "MHz"},
    [MEMORY_USED] = {"memory used", "MB"},
    [POWER] = {"power", "W"},
    [ENERGY] = {"energy", "J"},
    [TEMPERATURE] = {"temperature", "C"},
    [CLOCKS_HELD] = {"clocks held down", "reasons"},
    [PCIE_SENT] = {"PCIe sent", "MB/s"},
    [PCIE_RECEIVED] = {"PCIe received", "MB/s"},
    [MEMORY_TOTAL] = {"memory total", "MB"},
    [SM_ACTIVE] = {"SMs active", "%"},
    [SM_OCCUPANCY] = {"SM occupancy", "%"},
    [TENSOR_ACTIVE] = {"tensor cores active", "%"},
    [MEMORY_BANDWIDTH] = {"memory bandwidth", "%"},
    [NVLINK_SENT] = {"NVLink sent", "MB/s"},
    [NVLINK_RECEIVED] = {"NVLink received", "MB/s"},
};

static const enum value value_of_gpm[LAC_GPM_VALUES] = {
    [LAC_GPM_SM_ACTIVE] = SM_ACTIVE,         [LAC_GPM_SM_OCCUPANCY] = SM_OCCUPANCY,
    [LAC_GPM_TENSOR_ACTIVE] = TENSOR_ACTIVE, [LAC_GPM_MEMORY_BANDWIDTH] = MEMORY_BANDWIDTH,
    [LAC_GPM_PCIE_SENT] = PCIE_SENT,         [LAC_GPM_PCIE_RECEIVED] = PCIE_RECEIVED,
    [LAC_GPM_NVLINK_SENT] = NVLINK_SENT,     [LAC_GPM_NVLINK_RECEIVED] = NVLINK_RECEIVED,
};

struct device {
    nvml_device handle;
    unsigned index;        /* as NVML counts */
    double values[VALUES]; /* NAN: not told */
    double written[VALUES];
    uint64_t written_ns[VALUES];
    uint32_t ids[VALUES];
    struct lac_gpm gpm; /* the reading thread's */
    bool has_gpm_pcie;
    /* for the writer, under the mutex */
    struct lac_gpm_reading readings[READINGS_MAX];
    unsigned reading_count;
    char gpm_off[sizeof(((struct lac_gpm *)NULL)->why_off)];
    bool was_told;
};

struct lac_nvml {
    void *library;
    struct functions call;
    struct lac_gpm_functions gpm;
    bool has_gpm;
    struct device devices[DEVICES_MAX];
    unsigned count;
    pthread_t thread;
    pthread_mutex_t mutex;
    bool stop;
    bool said_off;
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
        {"nvmlDeviceGetTemperatureV", &call->temperature_v, false},
        {"nvmlDeviceGetCurrentClocksEventReasons", &call->throttling, false},
        {"nvmlDeviceGetPcieThroughput", &call->pcie, false},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *const function = dlsym(library, wanted[i].name);

        memcpy(wanted[i].to, &function, sizeof(function));
        if (function == NULL && wanted[i].needed) {
            return false;
        }
    }
    if (call->throttling == NULL) { /* before driver 535 */
        void *const function = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");

        memcpy(&call->throttling, &function, sizeof(function));
    }
    return true;
}

static double read_temperature(const struct functions *call, nvml_device handle)
{
    struct nvml_temperature sensor = {.version = NVML_TEMPERATURE_VERSION,
                                      .sensor = NVML_SENSOR_GPU};
    unsigned number;

    if (call->temperature != NULL &&
        call->temperature(handle, NVML_SENSOR_GPU, &number) == NVML_OK) {
        return number;
    }
    if (call->temperature_v != NULL && call->temperature_v(handle, &sensor) == NVML_OK) {
        return sensor.celsius;
    }
    return (double)NAN;
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
        values[GPU_USE] = utilization.gpu_percent;
        values[MEMORY_USE] = utilization.memory_percent;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_SM, &number) == NVML_OK) {
        values[SM_CLOCK] = number;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_MEMORY, &number) == NVML_OK) {
        values[MEMORY_CLOCK] = number;
    }
    if (call->memory != NULL && call->memory(handle, &memory) == NVML_OK) {
        values[MEMORY_USED] = (double)memory.used_bytes / 1e6;
        values[MEMORY_TOTAL] = (double)memory.total_bytes / 1e6;
    }
    if (call->power != NULL && call->power(handle, &number) == NVML_OK) {
        values[POWER] = number / 1e3;
    }
    if (call->energy != NULL && call->energy(handle, &big) == NVML_OK) {
        values[ENERGY] = (double)big / 1e3;
    }
    values[TEMPERATURE] = read_temperature(call, handle);
    if (call->throttling != NULL && call->throttling(handle, &big) == NVML_OK) {
        values[CLOCKS_HELD] = (double)big;
    }
    if (with_pcie && call->pcie != NULL) { /* each of these takes 20 ms */
        if (call->pcie(handle, NVML_PCIE_SENT, &number) == NVML_OK) {
            values[PCIE_SENT] = number / 1e3;
        }
        if (call->pcie(handle, NVML_PCIE_RECEIVED, &number) == NVML_OK) {
            values[PCIE_RECEIVED] = number / 1e3;
        }
    }
}

/* A reading for the writer; when it does not come, the oldest goes. */
static void keep_reading(struct device *device, const struct lac_gpm_reading *reading)
{
    if (device->reading_count == READINGS_MAX) {
        memmove(&device->readings[0], &device->readings[1],
                (READINGS_MAX - 1) * sizeof(device->readings[0]));
        device->reading_count--;
    }
    device->readings[device->reading_count++] = *reading;
}

static void read_all_of(struct lac_nvml *nvml, struct device *device, bool with_pcie)
{
    struct lac_gpm_reading reading;
    const bool was_on = device->gpm.is_on;
    const bool is_new = was_on && lac_gpm_read(&nvml->gpm, &device->gpm, &reading);
    double values[VALUES];

    if (is_new) {
        device->has_gpm_pcie = !isnan(reading.values[LAC_GPM_PCIE_SENT]) ||
                               !isnan(reading.values[LAC_GPM_PCIE_RECEIVED]);
    }
    for (int k = 0; k < VALUES; k++) {
        values[k] = (double)NAN;
    }
    read_device(&nvml->call, device->handle,
                with_pcie && !(device->gpm.is_on && device->has_gpm_pcie), values);
    (void)pthread_mutex_lock(&nvml->mutex);
    for (int k = 0; k < VALUES; k++) {
        if (!isnan(values[k])) {
            device->values[k] = values[k];
        }
    }
    if (is_new) {
        keep_reading(device, &reading);
        if (device->has_gpm_pcie) { /* one source: what the slow call said is old */
            device->values[PCIE_SENT] = (double)NAN;
            device->values[PCIE_RECEIVED] = (double)NAN;
        }
    }
    if (was_on && !device->gpm.is_on) {
        memcpy(device->gpm_off, device->gpm.why_off, sizeof(device->gpm_off));
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
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
            /* not in the first round: by then GPM has told whether it has PCIe */
            read_all_of(nvml, &nvml->devices[i], round % PCIE_ROUNDS == 2);
        }
        (void)nanosleep(&pause, NULL);
        (void)pthread_mutex_lock(&nvml->mutex);
        stop = nvml->stop;
        (void)pthread_mutex_unlock(&nvml->mutex);
    }
    return NULL;
}

static void note_device(struct lac_nvml *nvml, struct device *device,
                        struct lac_sample_spool *spool)
{
    char text[128] = "";
    char key[40];

    for (int k = 0; k < VALUES; k++) {
        device->values[k] = (double)NAN;
        device->written[k] = (double)NAN;
    }
    if (nvml->call.name != NULL && nvml->call.name(device->handle, text, sizeof(text)) == NVML_OK) {
        (void)snprintf(key, sizeof(key), "host.gpu.%u", device->index);
        lac_sample_spool_setting(spool, key, text);
    }
    if (nvml->has_gpm) {
        lac_gpm_open(&nvml->gpm, device->handle, &device->gpm);
    }
    (void)snprintf(key, sizeof(key), "host.gpm.%u", device->index);
    lac_sample_spool_setting(spool, key,
                             device->gpm.is_on ? "True"
                             : nvml->has_gpm   ? device->gpm.why_off
                                               : "this driver does not have it");
}

static void note_devices(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    char text[128] = "";

    if (nvml->call.driver != NULL && nvml->call.driver(text, sizeof(text)) == NVML_OK) {
        lac_sample_spool_setting(spool, "host.driver_version", text);
    }
    for (unsigned i = 0; i < nvml->count; i++) {
        note_device(nvml, &nvml->devices[i], spool);
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
            nvml->devices[nvml->count++].index = i;
        }
    }
    nvml->has_gpm = lac_gpm_find(nvml->library, &nvml->gpm);
    return nvml->count > 0;
}

static void close_all(struct lac_nvml *nvml)
{
    for (unsigned i = 0; i < nvml->count && nvml->has_gpm; i++) {
        lac_gpm_close(&nvml->gpm, &nvml->devices[i].gpm);
    }
    (void)nvml->call.shutdown();
    free(nvml);
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
        close_all(nvml);
        return NULL;
    }
    lac_sample_spool_setting(spool, "host.gpu_monitor", "nvml");
    return nvml;
}

static void write_value(struct lac_sample_spool *spool, struct device *device, enum value k,
                        double value)
{
    char text[128];

    if (device->ids[k] == 0) {
        (void)snprintf(text, sizeof(text), "%c%c%c%cGPU %u: %s%c%s", LAC_SERIES_SEPARATOR,
                       LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR,
                       device->index, series[k].what, LAC_SERIES_SEPARATOR, series[k].unit);
        device->ids[k] = lac_sample_spool_name(spool, text);
    }
    lac_sample_spool_value(spool, device->ids[k], value);
    device->written[k] = value;
}

/* A mean stands at the time at which it begins. */
static void write_readings(struct lac_sample_spool *spool, struct device *device)
{
    for (unsigned i = 0; i < device->reading_count; i++) {
        const struct lac_gpm_reading *const reading = &device->readings[i];

        lac_sample_spool_time(spool, reading->start_ns);
        for (int v = 0; v < LAC_GPM_VALUES; v++) {
            const enum value k = value_of_gpm[v];

            if (!isnan(reading->values[v]) &&
                (reading->values[v] != device->written[k] ||
                 reading->start_ns - device->written_ns[k] >= AGAIN_NS)) {
                write_value(spool, device, k, reading->values[v]);
                device->written_ns[k] = reading->start_ns;
            }
        }
    }
    device->reading_count = 0;
}

static void tell_gpm_off(struct lac_nvml *nvml, struct lac_sample_spool *spool,
                         struct device *device)
{
    char key[40];

    (void)snprintf(key, sizeof(key), "host.gpm_off.%u", device->index);
    lac_sample_spool_setting(spool, key, device->gpm_off);
    device->was_told = true;
    if (!nvml->said_off) {
        nvml->said_off = true;
        lac_status_line_clear();
        (void)fprintf(stderr, "lacuna: the counters of GPU %u are read no more: %s\n",
                      device->index, device->gpm_off);
    }
}

void lac_nvml_write(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    (void)pthread_mutex_lock(&nvml->mutex);
    for (unsigned i = 0; i < nvml->count; i++) {
        struct device *const device = &nvml->devices[i];

        for (int k = 0; k < VALUES; k++) {
            if (!isnan(device->values[k]) && device->values[k] != device->written[k]) {
                write_value(spool, device, (enum value)k, device->values[k]);
            }
        }
    }
    for (unsigned i = 0; i < nvml->count; i++) { /* with times of their own */
        struct device *const device = &nvml->devices[i];

        write_readings(spool, device);
        if (device->gpm_off[0] != '\0' && !device->was_told) {
            tell_gpm_off(nvml, spool, device);
        }
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
}

/* What a reading of the counters took, on average. */
static void note_cost(const struct device *device, struct lac_sample_spool *spool)
{
    char key[40];
    char text[32];

    if (device->gpm.reading_count > 0) {
        (void)snprintf(key, sizeof(key), "host.gpm_reading_us.%u", device->index);
        (void)snprintf(
            text, sizeof(text), "%llu",
            (unsigned long long)(device->gpm.took_ns / device->gpm.reading_count / 1000));
        lac_sample_spool_setting(spool, key, text);
    }
}

void lac_nvml_destroy(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    if (nvml == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&nvml->mutex);
    nvml->stop = true;
    (void)pthread_mutex_unlock(&nvml->mutex);
    (void)pthread_join(nvml->thread, NULL);
    lac_nvml_write(nvml, spool);
    for (unsigned i = 0; i < nvml->count; i++) {
        note_cost(&nvml->devices[i], spool);
    }
    close_all(nvml);
}
