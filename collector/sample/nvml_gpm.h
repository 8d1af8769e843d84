#ifndef LAC_COLLECTOR_SAMPLE_NVML_GPM_H
#define LAC_COLLECTOR_SAMPLE_NVML_GPM_H

/*
 * What a GPU's own counters say (NVML's GPM: Hopper and later, not when divided by MIG, not in
 * virtual machines). Each reading is the mean since the one before it. One thread at a time.
 *
 * Readings cost: one that takes long makes them rarer, three of more than 20 ms in a row end them.
 */

#include "collector/base/nvml_functions.h"

#include <stdbool.h>
#include <stdint.h>

/* Order of the values of a reading. */
enum lac_gpm_value {
    LAC_GPM_SM_ACTIVE,        /**< percent */
    LAC_GPM_SM_OCCUPANCY,     /**< percent */
    LAC_GPM_TENSOR_ACTIVE,    /**< percent */
    LAC_GPM_MEMORY_BANDWIDTH, /**< percent */
    LAC_GPM_PCIE_SENT,        /**< MB/s, as those that follow */
    LAC_GPM_PCIE_RECEIVED,
    LAC_GPM_NVLINK_SENT,
    LAC_GPM_NVLINK_RECEIVED,
    LAC_GPM_VALUES,
};

/** One GPU's. */
struct lac_gpm {
    void *device;
    void *samples[2];
    unsigned newest;   /**< which of them */
    uint64_t taken_ns; /**< when; 0: it holds nothing */
    uint64_t next_ns;  /**< no reading before this */
    uint64_t took_ns;  /**< all readings */
    unsigned reading_count;
    unsigned slow_count;
    unsigned failed_count;
    bool is_on;
    char why_off[64];
};

/** Means of [start, end), CLOCK_MONOTONIC. What the GPU does not tell is NAN. */
struct lac_gpm_reading {
    uint64_t start_ns;
    uint64_t end_ns;
    double values[LAC_GPM_VALUES];
};

/** Begin on a GPU. Afterwards `is_on`, or `why_off` says why not. lac_gpm_close() either way. */
void lac_gpm_open(const struct lac_nvml_functions *call, void *device, struct lac_gpm *gpm);
void lac_gpm_close(const struct lac_nvml_functions *call, struct lac_gpm *gpm);

/** Read if it is time to. @return whether there is a reading; `is_on` may be false afterwards */
bool lac_gpm_read(const struct lac_nvml_functions *call, struct lac_gpm *gpm,
                  struct lac_gpm_reading *ret_reading);

#endif
