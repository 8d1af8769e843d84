#ifndef LAC_KERNELS_DEVICE_H
#define LAC_KERNELS_DEVICE_H

/*
 * What the example workload asks of a device: two in-order queues (compute and copy), events
 * between them, and a few kernels. device_cuda.cu is a GPU; device_cpu.c is a thread that plays
 * one, so that the same program runs, and can be recorded, without a GPU.
 *
 * All functions end the program with a message when the device fails: this is an example, not a
 * library.
 */

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum device_queue { DEVICE_COMPUTE = 0, DEVICE_COPY = 1 };

struct device_tensor; /* float NCHW or NHWC on the device */

/** Whether this program was linked with device_cuda.cu; --cpu is then the program next to it. */
bool device_is_gpu(void);

/** @return "NVIDIA H200", "CPU thread", ... static storage */
const char *device_open(void);
void device_close(void);

struct device_tensor *device_alloc(size_t float_count);
void device_free(struct device_tensor *tensor);

/** Host memory that a copy can read while the host continues: page-locked on a GPU. */
float *device_host_alloc(size_t float_count);
void device_host_free(float *memory);
/** Page-lock memory that somebody else allocated (a mapping shared with workers). @return false:
 * not possible */
bool device_host_register(void *memory, size_t size_bytes);

/** Copy to the device in the queue. Pageable memory makes the host wait, as CUDA does. */
void device_copy_in(enum device_queue queue, struct device_tensor *to, const float *from,
                    size_t float_count, bool pinned);
/** Copy to the host and wait for it. */
void device_copy_out(float *to, const struct device_tensor *from, size_t float_count);

/** `to` waits for all that is in `from` now. */
void device_queue_wait(enum device_queue to, enum device_queue from);
/** The host waits until all queues are empty. */
void device_synchronize(void);

/** The arithmetic of a convolution over the tensor: `work` multiply-adds per value. */
void device_convolve(struct device_tensor *tensor, size_t float_count, int work);
/** Layout conversions between N x C x (H*W) and N x (H*W) x C; tiled through shared memory, or
 * naive. */
void device_nchw_to_nhwc(struct device_tensor *to, const struct device_tensor *from, int n, int c,
                         int hw, bool tiled);
void device_nhwc_to_nchw(struct device_tensor *to, const struct device_tensor *from, int n, int c,
                         int hw, bool tiled);
/** value -= rate * gradient, over `float_count` values from `first` on: the optimizer's small
 * kernel. */
void device_update(struct device_tensor *tensor, size_t first, size_t float_count, float rate);

/** Bytes per second of a copy on the device itself, and of each layout kernel: calibration. */
double device_copy_bandwidth(size_t float_count);

#ifdef __cplusplus
}
#endif

#endif
