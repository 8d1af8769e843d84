#ifndef LAC_ANALYSIS_DIAGNOSE_GPU_MEMORY_H
#define LAC_ANALYSIS_DIAGNOSE_GPU_MEMORY_H

/*
 * Private: memory of the main device inside kept steps, and samples of it. What the framework's
 * allocator gave to tensors (allocated) is not what it holds (reserved), nor what the driver counts
 * for all processes together (used).
 */

#include "analysis/diagnose/facts/step_operations.h" // IWYU pragma: export

/** Bytes; -1 where not recorded. */
struct lac_gpu_memory_use {
    int64_t device;      /**< the device has */
    int64_t peak;        /**< allocated at most */
    int64_t floor;       /**< allocated at least: what stays from step to step */
    int64_t used;        /**< used at most, the allocator's cache and other processes included */
    uint32_t peak_slice; /**< the allocation that reached the peak, or LAC_NONE */
};
void lac_gpu_memory_measure(const struct lac_facts *facts, struct lac_gpu_memory_use *ret_memory);

/** Samples of one figure of the main device, as steps: a value holds until the next one. */
struct lac_gpu_series {
    const int64_t *ts_ns;
    const double *value;
    uint64_t count;
};

/**
 * The series "WHAT (UNIT)" of the main device: "power (W)".
 *
 * @return false when it was not sampled, or when the trace does not say which of several GPUs is
 *         the main device
 */
bool lac_gpu_series_find(const struct lac_facts *facts, const char *what,
                         struct lac_gpu_series *ret_series);

/** Mean over [start, end), NaN before the first sample. */
double lac_gpu_series_mean(const struct lac_gpu_series *series, int64_t start_ns, int64_t end_ns);

/** Largest value that held in [start, end); NaN when none did. */
double lac_gpu_series_max(const struct lac_gpu_series *series, int64_t start_ns, int64_t end_ns);

/** Share of [start, end), in percent, in which the value had one of the bits; NaN unknown. */
double lac_gpu_series_bits_pct(const struct lac_gpu_series *series, uint64_t bits, int64_t start_ns,
                               int64_t end_ns);

#endif
