#ifndef LAC_SERVER_STORE_TRACE_FLAME_FLAME_KEPT_H
#define LAC_SERVER_STORE_TRACE_FLAME_FLAME_KEPT_H

/* Graphs that took long, in the cache of columns: for whoever asks for the same again. Those of chosen
 * rows or steps are not kept. */

#include "analysis/flame/flame.h"
#include "server/store/trace/trace_file.h"

/** @return a copy, for lac_flame_destroy(); NULL: it is not there, or out of memory */
struct lac_flame *lac_flame_kept_get(struct lac_trace_file *file,
                                     const struct lac_flame_options *options);

/** Keep a copy, where there is memory for it. */
void lac_flame_kept_put(struct lac_trace_file *file, const struct lac_flame_options *options,
                        const struct lac_flame *flame);

#endif
