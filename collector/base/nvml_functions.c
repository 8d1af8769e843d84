#include "collector/base/nvml_functions.h"

#include "collector/base/count_of.h"
#include "collector/base/old_symbols.h" /* IWYU pragma: keep */

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The only portable way from what dlsym() returns to a function. */
static void find(void *library, const char *name, void *place)
{
    void *const function = dlsym(library, name);

    memcpy(place, &function, sizeof(function));
}

bool lac_nvml_find(void *library, struct lac_nvml_functions *call)
{
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"nvmlInit_v2", &call->init},
        {"nvmlShutdown", &call->shutdown},
        {"nvmlDeviceGetCount_v2", &call->count},
        {"nvmlDeviceGetHandleByIndex_v2", &call->handle},
        {"nvmlDeviceGetName", &call->name},
        {"nvmlDeviceGetUUID", &call->uuid},
        {"nvmlDeviceGetHandleByUUID", &call->by_uuid},
        {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &call->whole_of},
        {"nvmlSystemGetDriverVersion", &call->driver},
        {"nvmlSystemGetCudaDriverVersion", &call->cuda},
        {"nvmlDeviceGetMigMode", &call->mig},
        {"nvmlDeviceGetCurrPcieLinkWidth", &call->link_width},
        {"nvmlDeviceGetMaxPcieLinkWidth", &call->link_width_max},
        {"nvmlDeviceGetMaxPcieLinkGeneration", &call->link_generation_max},
        {"nvmlDeviceGetComputeRunningProcesses", &call->processes},
        {"nvmlDeviceGetUtilizationRates", &call->utilization},
        {"nvmlDeviceGetClockInfo", &call->clock},
        {"nvmlDeviceGetMemoryInfo", &call->memory},
        {"nvmlDeviceGetPowerUsage", &call->power},
        {"nvmlDeviceGetTotalEnergyConsumption", &call->energy},
        {"nvmlDeviceGetTemperature", &call->temperature},
        {"nvmlDeviceGetTemperatureV", &call->temperature_v},
        {"nvmlDeviceGetCurrentClocksEventReasons", &call->throttling},
        {"nvmlDeviceGetPcieThroughput", &call->pcie},
        {"nvmlGpmQueryDeviceSupport", &call->gpm_support},
        {"nvmlGpmSampleAlloc", &call->gpm_alloc},
        {"nvmlGpmSampleFree", &call->gpm_free},
        {"nvmlGpmSampleGet", &call->gpm_sample},
        {"nvmlGpmMetricsGet", &call->gpm_metrics},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(wanted); i++) {
        find(library, wanted[i].name, wanted[i].place);
    }
    if (call->throttling == NULL) { /* before driver 535 */
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &call->throttling);
    }
    return call->init != NULL && call->shutdown != NULL && call->count != NULL &&
           call->handle != NULL;
}

bool lac_nvml_has_gpm(const struct lac_nvml_functions *call)
{
    return call->gpm_support != NULL && call->gpm_alloc != NULL && call->gpm_free != NULL &&
           call->gpm_sample != NULL && call->gpm_metrics != NULL;
}
