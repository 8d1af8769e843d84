#ifndef LAC_COLLECTOR_HANG_HANG_DUMPS_H
#define LAC_COLLECTOR_HANG_HANG_DUMPS_H

/*
 * Dumps of PyTorch's flight recorder at a hang. Where the job has a pipe for it
 * (TORCH_NCCL_DEBUG_INFO_PIPE_FILE), a byte in it has PyTorch write one; nothing else is done to the
 * job. A dump that a timeout of PyTorch's own has written counts, too.
 */

#include "collector/hang/hang_flight.h"

#include <stdbool.h>
#include <stdint.h>

/** Ask a rank for a dump. @return false: it has no pipe for that */
bool lac_hang_dumps_ask(int32_t rank);

/** Read the dump of a rank if there is one since `since_s` (of the real-time clock). A dump that is
 * being written is none. @return false: there is none */
bool lac_hang_dumps_read(int32_t rank, int64_t since_s, struct lac_flight *ret);

#endif
