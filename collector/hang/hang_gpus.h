#ifndef LAC_COLLECTOR_HANG_HANG_GPUS_H
#define LAC_COLLECTOR_HANG_HANG_GPUS_H

/* What the GPUs of a job that stands still do, in words. Pure. */

#include "collector/sample/nvml.h"

#include <stddef.h>

/** One: "97 % busy, memory 41 %, 1755 MHz, 612 W, 30.0 of 80.0 GB used, clocks held down (0x4), 1
 * process"; what is not told is left out. */
void lac_hang_say_gpu(const struct lac_gpu_now *gpu, char *text, size_t capacity);

/** All: "all GPUs are busy, hardly with their memory: a kernel spins", "GPU 1 is idle, 3 others are
 * busy". "" where nothing is known, or they are neither. */
void lac_hang_say_gpus(const struct lac_gpu_now *gpus, unsigned count, char *text, size_t capacity);

#endif
