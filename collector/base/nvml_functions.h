#ifndef LAC_COLLECTOR_BASE_NVML_FUNCTIONS_H
#define LAC_COLLECTOR_BASE_NVML_FUNCTIONS_H

/* The functions of the driver's management library that we call, looked up by name, so that nothing
 * is needed where there is none. */

#include "collector/base/nvml_abi.h"

#include <stdbool.h>

#define LAC_NVML_LIBRARY "libnvidia-ml.so.1"

typedef void *nvml_device;

/** NULL: this driver does not have it. The first four are always there. */
struct lac_nvml_functions {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, nvml_device *);
    /* what there is */
    int (*name)(nvml_device, char *, unsigned);
    int (*uuid)(nvml_device, char *, unsigned);
    int (*by_uuid)(const char *, nvml_device *); /* of a GPU, or of a part of one (MIG) */
    int (*whole_of)(nvml_device, nvml_device *); /* the GPU that a part is of */
    int (*driver)(char *, unsigned);
    int (*cuda)(int *);
    int (*mig)(nvml_device, unsigned *, unsigned *);
    int (*link_width)(nvml_device, unsigned *);
    int (*link_width_max)(nvml_device, unsigned *);
    int (*link_generation_max)(nvml_device, unsigned *);
    int (*processes)(nvml_device, unsigned *, void *);
    /* what it does */
    int (*utilization)(nvml_device, struct nvml_utilization *);
    int (*clock)(nvml_device, int, unsigned *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*power)(nvml_device, unsigned *);
    int (*energy)(nvml_device, unsigned long long *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*temperature_v)(nvml_device, struct nvml_temperature *);
    int (*throttling)(nvml_device, unsigned long long *);
    int (*pcie)(nvml_device, int, unsigned *);
    /* GPM */
    int (*gpm_support)(nvml_device, struct nvml_gpm_support *);
    int (*gpm_alloc)(void **sample);
    int (*gpm_free)(void *sample);
    int (*gpm_sample)(nvml_device, void *sample);
    int (*gpm_metrics)(struct nvml_gpm_metrics *);
};

/** @param library of dlopen() @return false: it is none that can be used */
bool lac_nvml_find(void *library, struct lac_nvml_functions *call);

/** Whether this driver knows of GPM; a GPU may still not have it. */
bool lac_nvml_has_gpm(const struct lac_nvml_functions *call);

#endif
