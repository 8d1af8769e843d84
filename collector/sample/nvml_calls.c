#include "collector/sample/nvml_calls.h"

#include "collector/base/old_symbols.h"
#include "collector/sample/nvml_abi.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

bool lac_nvml_find(void *library, struct lac_nvml_functions *call)
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

static double read_temperature(const struct lac_nvml_functions *call, nvml_device handle)
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

void lac_nvml_read(const struct lac_nvml_functions *call, nvml_device handle, bool with_pcie,
                   double *values)
{
    struct nvml_utilization utilization;
    struct nvml_memory memory;
    unsigned number;
    unsigned long long big;

    if (call->utilization != NULL && call->utilization(handle, &utilization) == NVML_OK) {
        values[LAC_NVML_GPU_USE] = utilization.gpu_percent;
        values[LAC_NVML_MEMORY_USE] = utilization.memory_percent;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_SM, &number) == NVML_OK) {
        values[LAC_NVML_SM_CLOCK] = number;
    }
    if (call->clock != NULL && call->clock(handle, NVML_CLOCK_MEMORY, &number) == NVML_OK) {
        values[LAC_NVML_MEMORY_CLOCK] = number;
    }
    if (call->memory != NULL && call->memory(handle, &memory) == NVML_OK) {
        values[LAC_NVML_MEMORY_USED] = (double)memory.used_bytes / 1e6;
        values[LAC_NVML_MEMORY_TOTAL] = (double)memory.total_bytes / 1e6;
    }
    if (call->power != NULL && call->power(handle, &number) == NVML_OK) {
        values[LAC_NVML_POWER] = number / 1e3;
    }
    if (call->energy != NULL && call->energy(handle, &big) == NVML_OK) {
        values[LAC_NVML_ENERGY] = (double)big / 1e3;
    }
    values[LAC_NVML_TEMPERATURE] = read_temperature(call, handle);
    if (call->throttling != NULL && call->throttling(handle, &big) == NVML_OK) {
        values[LAC_NVML_CLOCKS_HELD] = (double)big;
    }
    if (with_pcie && call->pcie != NULL) { /* each of these takes 20 ms */
        if (call->pcie(handle, NVML_PCIE_SENT, &number) == NVML_OK) {
            values[LAC_NVML_PCIE_SENT] = number / 1e3;
        }
        if (call->pcie(handle, NVML_PCIE_RECEIVED, &number) == NVML_OK) {
            values[LAC_NVML_PCIE_RECEIVED] = number / 1e3;
        }
    }
}
