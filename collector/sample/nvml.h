#ifndef LAC_COLLECTOR_SAMPLE_NVML_H
#define LAC_COLLECTOR_SAMPLE_NVML_H

/*
 * GPUs as the driver's management library sees them, by dlopen: utilization, clocks, memory, power,
 * energy, temperature, throttling, PCIe traffic, and what a GPU's own counters say (nvml_gpm.h).
 * Its calls can take tens of ms, so a thread of its own makes them; writing what it saw costs
 * nothing.
 */

struct lac_nvml;
struct lac_sample_spool;

/** Says in the spool what it found, now or, of a driver that takes long, with what is written then.
 *  Waits 0.3 s at most. @return NULL when there is no library */
struct lac_nvml *lac_nvml_create(struct lac_sample_spool *spool);
/** Write what is not written yet, and what readings of counters took. Waits 2 s at most for a
 * driver that hangs; its thread is left behind then. NULL is allowed. */
void lac_nvml_destroy(struct lac_nvml *nvml, struct lac_sample_spool *spool);
/** The share of time that each GPU had work when last asked, 0 to 1, NAN where that is not known.
 * @return how many GPUs; at most `capacity` */
unsigned lac_nvml_busy(struct lac_nvml *nvml, double *out, unsigned capacity);

/** Write what changed since the last time. */
void lac_nvml_write(struct lac_nvml *nvml, struct lac_sample_spool *spool);

#endif
