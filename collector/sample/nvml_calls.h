#ifndef LAC_COLLECTOR_SAMPLE_NVML_CALLS_H
#define LAC_COLLECTOR_SAMPLE_NVML_CALLS_H

/* What is asked of the driver's management library, by name, so that nothing is needed where there
 * is none; and what it answers, in the units that samples have. */

#include <stdbool.h>

typedef void *nvml_device;
struct nvml_memory;
struct nvml_temperature;
struct nvml_utilization;

struct lac_nvml_functions {
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

/* Of a GPU. GPM tells of the two of PCIe where it can, and of all from LAC_NVML_SM_ACTIVE on. */
enum lac_nvml_value {
    LAC_NVML_GPU_USE,
    LAC_NVML_MEMORY_USE,
    LAC_NVML_SM_CLOCK,
    LAC_NVML_MEMORY_CLOCK,
    LAC_NVML_MEMORY_USED,
    LAC_NVML_POWER,
    LAC_NVML_ENERGY,
    LAC_NVML_TEMPERATURE,
    LAC_NVML_CLOCKS_HELD,
    LAC_NVML_PCIE_SENT,
    LAC_NVML_PCIE_RECEIVED,
    LAC_NVML_MEMORY_TOTAL,
    LAC_NVML_SM_ACTIVE,
    LAC_NVML_SM_OCCUPANCY,
    LAC_NVML_TENSOR_ACTIVE,
    LAC_NVML_MEMORY_BANDWIDTH,
    LAC_NVML_NVLINK_SENT,
    LAC_NVML_NVLINK_RECEIVED,
    LAC_NVML_VALUES,
};

/** @return false: this is no library that can be used */
bool lac_nvml_find(void *library, struct lac_nvml_functions *call);

/** One GPU, the values up to LAC_NVML_MEMORY_TOTAL. Those that are refused (virtual GPUs, old ones)
 * are left as they are. With PCIe it takes 40 ms. */
void lac_nvml_read(const struct lac_nvml_functions *call, nvml_device handle, bool with_pcie,
                   double *values);

#endif
