#ifndef LAC_COLLECTOR_SAMPLE_SAMPLER_H
#define LAC_COLLECTOR_SAMPLE_SAMPLER_H

/*
 * Samples of the job's threads, of this host and of its GPUs, ten times a second, into a spool of
 * the launcher's own:
 *
 *   every launcher                 threads and processes of its own job, its GPUs (gpu_choice.h),
 *                                  throttling of its own control group
 *   the first launcher of a user   also the GPUs that no launcher chose
 *
 * A round that costs more than a fiftieth of the time between rounds makes them rarer, down to one
 * a second.
 */

#include "collector/sample/nvml.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_sampler;

/** Records the host's facts at once. @return NULL when its spool cannot be made; nothing is sampled
 * then */
struct lac_sampler *lac_sampler_create(const char *folder);
void lac_sampler_destroy(struct lac_sampler *sampler);

/** So many processes were recorded so far. A new one is looked for soon, however rare looks are
 *  otherwise: workers of a short epoch would end unseen. */
void lac_sampler_processes(struct lac_sampler *sampler, uint64_t count);

/** Take samples of the processes below this one if it is time to. */
void lac_sampler_round(struct lac_sampler *sampler);

/** A fact that belongs beside those of the host, "key", "value", written at once. */
void lac_sampler_note(struct lac_sampler *sampler, const char *key, const char *value);

/** Whether ranges are recorded from now on. Steps in which they were not say nothing. */
void lac_sampler_recording(struct lac_sampler *sampler, bool is_on);

/** Processes of the job that were found so far; those that end between two looks are not. */
uint64_t lac_sampler_births(const struct lac_sampler *sampler);

/** Of its spool, as `ls` shows it. */
uint64_t lac_sampler_bytes(const struct lac_sampler *sampler);

/** CPU time that this process has used, in ns. */
uint64_t lac_sampler_own_cpu_ns(void);

/** The share of time that each GPU had work, 0 to 1, by NVML's index; NAN: not known, or not
 * sampled here. @return how many are written */
unsigned lac_sampler_gpu_busy(struct lac_sampler *sampler, double *out, unsigned capacity);

/** What each GPU that is sampled here does. @param sampler may be NULL @return how many are written */
unsigned lac_sampler_gpus_now(struct lac_sampler *sampler, struct lac_gpu_now *out,
                              unsigned capacity);

#endif
