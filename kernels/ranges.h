#ifndef LAC_KERNELS_RANGES_H
#define LAC_KERNELS_RANGES_H

/*
 * NVTX ranges without NVTX's headers, so that the workload builds anywhere: the same handshake with
 * the library in NVTX_INJECTION64_PATH as NVTX's own. Without a library, the calls do nothing.
 * Loader ranges carry batch and worker when the library is Lacuna's.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Once, before threads and workers are started. */
void range_open_library(void);
void range_push(const char *name);
void range_push_loader(const char *name, int64_t batch, int32_t worker);
void range_pop(void);

#ifdef __cplusplus
}
#endif

#endif
