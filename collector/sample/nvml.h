#ifndef LAC_COLLECTOR_SAMPLE_NVML_H
#define LAC_COLLECTOR_SAMPLE_NVML_H

/*
 * GPUs as the driver's management library sees them, by dlopen: utilization, clocks, memory, power,
 * energy, temperature, throttling, PCIe traffic, and what a GPU's own counters say (nvml_gpm.h).
 * Its calls can take tens of ms, so a thread of its own makes them; writing what it saw costs
 * nothing.
 */

#include <stdbool.h>

struct lac_nvml;
struct lac_sample_spool;

/** Says in the spool what it found, now or, of a driver that takes long, with what is written then.
 *  Waits 0.3 s at most.
 * @param is_first it is the launcher that samples the host: ten rounds a second, of every GPU where
 *   CUDA_VISIBLE_DEVICES does not choose (gpu_choice.h). The others read those of their own job
 *   once a second, rarer where that takes more than a 1000th of a core
 * @return NULL when there is no library */
struct lac_nvml *lac_nvml_create(struct lac_sample_spool *spool, bool is_first);
/** Write what is not written yet, and what readings of counters took. Waits 2 s at most for a
 * driver that hangs; its thread is left behind then. NULL is allowed. */
void lac_nvml_destroy(struct lac_nvml *nvml, struct lac_sample_spool *spool);
/** The share of time that each GPU had work when last asked, 0 to 1, by NVML's index; NAN where that
 * is not known, or the GPU is not sampled. @return how many are written; at most `capacity` */
unsigned lac_nvml_busy(struct lac_nvml *nvml, double *out, unsigned capacity);

/** What a GPU does, by its last round. NAN: not told. */
struct lac_gpu_now {
    unsigned index;
    double busy_pct;   /**< of the time a kernel ran, whatever it did */
    double memory_pct; /**< of the time its memory was read or written */
    double sm_mhz;
    double power_w;
    double memory_used_mb;
    double memory_total_mb;
    double clocks_held; /**< why its clocks are held down: a mask, as NVML has it */
    unsigned processes; /**< that compute on it; 0 also where that is not told */
};

/** @return how many are written, in the order of their indices */
unsigned lac_nvml_now(struct lac_nvml *nvml, struct lac_gpu_now *out, unsigned capacity);

/** Write what changed since the last time. */
void lac_nvml_write(struct lac_nvml *nvml, struct lac_sample_spool *spool);

#endif
