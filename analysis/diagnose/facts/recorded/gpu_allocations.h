#ifndef LAC_ANALYSIS_DIAGNOSE_GPU_ALLOCATIONS_H
#define LAC_ANALYSIS_DIAGNOSE_GPU_ALLOCATIONS_H

/*
 * Private: memory of the GPU over time, by the allocations and releases that the profiler recorded.
 * Newer ones carry what is allocated after them; of older ones the changes are summed from the
 * recording's begin on.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** Fill analysis->memory of the main device: the peak, and what held it. n log n in the events. */
LAC_MUST_USE enum lac_status lac_gpu_allocations_measure(struct lac_facts *facts);

/** Add a counter of each device's allocated memory to the model, unless it is there. */
LAC_MUST_USE enum lac_status lac_gpu_allocations_add(struct lac_model *model);

#endif
