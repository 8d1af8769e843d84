#include "collector/sample/nvml_calls.h"

#include "collector/base/nvml_abi.h"
#include "collector/base/nvml_functions.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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
