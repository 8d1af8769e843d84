#ifndef LAC_COLLECTOR_SAMPLE_GPU_CORES_H
#define LAC_COLLECTOR_SAMPLE_GPU_CORES_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Cores on the same socket as the host's NVIDIA GPUs, as the kernel writes lists ("0-15,32-47").
 *
 * @param devices "/sys/bus/pci/devices"
 * @return false when there is no GPU, or when they are on different sockets: which of them a job
 *         uses is not known here
 */
bool lac_gpu_local_cores(const char *devices, char *out, size_t capacity);

#endif
