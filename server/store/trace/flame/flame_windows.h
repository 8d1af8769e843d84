#ifndef LAC_SERVER_STORE_TRACE_FLAME_FLAME_WINDOWS_H
#define LAC_SERVER_STORE_TRACE_FLAME_FLAME_WINDOWS_H

/*
 * The flame graph of a large area, made of one small part of the trace after another, on as many
 * threads as the file's crew has.
 */

#include "analysis/flame/flame.h"
#include "analysis/model/status.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"

#include <stdint.h>

/** Slices of a part, about: 31 bytes each. */
enum { LAC_FLAME_WINDOW_SLICES = 1 << 19 };

/**
 * The graph that the whole model gives, number by number, as long as it has fewer frames than a
 * growing tree may have.
 *
 * @param options       any metric but PROFILE and MEMORY, in the order of value; `whole` and
 *                      `counted_from_ns` are not read
 * @param window_slices LAC_FLAME_WINDOW_SLICES, except for tests
 * @param ret_flame     its names are of lac_trace_file_head(); lac_flame_destroy()
 * @return as lac_trace_flame_part(); LAC_ERR_LIMIT where one moment takes more than that allows
 * Cost: decodes the chunks of the area about once; memory: a few parts and the trees.
 */
LAC_MUST_USE enum lac_status lac_flame_in_windows(struct lac_trace_file *file,
                                                  const struct lac_flame_options *options,
                                                  uint64_t window_slices,
                                                  struct lac_flame **ret_flame,
                                                  struct lac_error *reterr);

#endif
