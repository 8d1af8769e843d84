#ifndef LAC_COLLECTOR_BASE_NVML_ABI_H
#define LAC_COLLECTOR_BASE_NVML_ABI_H

/*
 * What NVML's binary interface fixes, of what we call: structs, numbers, units. NVML's own header
 * is not needed to build. Everything here is the same in drivers 450 to 590; GPM (readings of a
 * GPU's own counters) came with 520 and Hopper.
 */

enum {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,

    NVML_CLOCK_SM = 1, /* MHz */
    NVML_CLOCK_MEMORY = 2,
    NVML_SENSOR_GPU = 0, /* degrees C */
    NVML_PCIE_SENT = 0,  /* by the GPU, in KB/s over 20 ms, in which the call waits */
    NVML_PCIE_RECEIVED = 1,
};

/* nvmlDeviceGetUtilizationRates: over a sixth of a second to a second. */
struct nvml_utilization {
    unsigned gpu_percent;
    unsigned memory_percent;
};

/* nvmlDeviceGetMemoryInfo; what the driver keeps for itself is in `used`. */
struct nvml_memory {
    unsigned long long total_bytes;
    unsigned long long free_bytes;
    unsigned long long used_bytes;
};

/* nvmlDeviceGetTemperatureV, where nvmlDeviceGetTemperature is no more. */
struct nvml_temperature {
    unsigned version; /* NVML_TEMPERATURE_VERSION */
    int sensor;
    int celsius;
};
#define NVML_TEMPERATURE_VERSION ((unsigned)sizeof(struct nvml_temperature) | 1u << 24)

/* ---- GPM: the difference of two samples, which the driver allocates, gives metrics */

enum nvml_gpm_metric_id {
    NVML_GPM_SM_ACTIVE = 2,         /* percent of the multiprocessors with work, over time */
    NVML_GPM_SM_OCCUPANCY = 3,      /* percent of the warps that fit */
    NVML_GPM_TENSOR_ACTIVE = 5,     /* percent of the time, any kind of tensor operation */
    NVML_GPM_MEMORY_BANDWIDTH = 10, /* percent of what the memory can deliver */
    NVML_GPM_PCIE_SENT = 20,        /* MiB/s, from this GPU */
    NVML_GPM_PCIE_RECEIVED = 21,
    NVML_GPM_NVLINK_RECEIVED = 60, /* MiB/s, all links together */
    NVML_GPM_NVLINK_SENT = 61,
};

enum {
    NVML_GPM_SUPPORT_VERSION = 1,
    NVML_GPM_METRICS_VERSION = 1,
    NVML_GPM_APART_MS = 100, /* two samples must be further apart than this */
};

struct nvml_gpm_support {
    unsigned version; /* NVML_GPM_SUPPORT_VERSION */
    unsigned is_supported;
};

struct nvml_gpm_metric {
    unsigned id;
    int status; /* anything but NVML_OK: there is no value */
    double value;
    char *short_name;
    char *long_name;
    char *unit;
};

/* The array is as long as the newest list of metrics; only the first `count` are looked at. */
struct nvml_gpm_metrics {
    unsigned version; /* NVML_GPM_METRICS_VERSION */
    unsigned count;
    void *older;
    void *newer;
    struct nvml_gpm_metric metrics[333];
};

#endif
