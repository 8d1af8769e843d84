#ifndef LAC_ANALYSIS_DIAGNOSE_GPU_COUNTERS_H
#define LAC_ANALYSIS_DIAGNOSE_GPU_COUNTERS_H

/*
 * Private: what the main device's own counters say of kept steps (samples of a launcher; GPUs from
 * Hopper on have them). A kernel that runs says nothing of how much of the GPU it uses: these do.
 */

#include "analysis/diagnose/facts/step_operations.h" // IWYU pragma: export

/** Means over kept steps in percent; NaN where they were not sampled for half of their time. */
struct lac_gpu_counters {
    double sms_active;       /**< multiprocessors with work */
    double tensor_active;    /**< of the time */
    double memory_bandwidth; /**< of what the memory delivers */
};

/** Linear in the samples. */
void lac_gpu_counters_measure(const struct lac_facts *facts, struct lac_gpu_counters *ret_counters);

/** " Averaged over these steps, the GPU's own counters say: ...", or "" when
 *  nothing was sampled. */
const char *lac_gpu_counters_text(const struct lac_facts *facts,
                                  const struct lac_gpu_counters *counters);

#endif
