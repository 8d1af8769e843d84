#ifndef LAC_COLLECTOR_SAMPLE_NVML_CALLS_H
#define LAC_COLLECTOR_SAMPLE_NVML_CALLS_H

/* What the driver's management library answers, in the units that samples have. */

#include "collector/base/nvml_functions.h"

#include <stdbool.h>

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

/** One GPU, the values up to LAC_NVML_MEMORY_TOTAL. Those that are refused (virtual GPUs, old ones)
 * are left as they are. With PCIe it takes 40 ms. */
void lac_nvml_read(const struct lac_nvml_functions *call, nvml_device handle, bool with_pcie,
                   double *values);

#endif
