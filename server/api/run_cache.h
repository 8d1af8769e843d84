#ifndef LAC_SERVER_API_RUN_CACHE_H
#define LAC_SERVER_API_RUN_CACHE_H

/*
 * Documents of runs that were computed: comparing many ranks takes seconds, and what the ready
 * traces of a run say never changes. A document belongs to a run and to a stamp of its traces; a
 * run that got or lost a trace has another stamp. Least recently used out first.
 */

#include "analysis/model/status.h"
#include "server/http/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_RUN_DETAIL_FULL = 0, LAC_RUN_DETAIL_BRIEF, LAC_RUN_DETAIL_COUNT_ };

struct lac_run_cache;

/** @param max_bytes of all documents together. @return NULL: no memory */
struct lac_run_cache *lac_run_cache_create(uint64_t max_bytes);
/** NULL is allowed. */
void lac_run_cache_destroy(struct lac_run_cache *cache);

/** Append the document to `out` if it is here. Thread-safe, as all of these. */
bool lac_run_cache_get(struct lac_run_cache *cache, const char *run, uint64_t stamp, int detail,
                       struct lac_buffer *out);

/** Keep documents; `text` and its members are taken over, whatever happens. */
void lac_run_cache_put(struct lac_run_cache *cache, const char *run, uint64_t stamp,
                       char *text[LAC_RUN_DETAIL_COUNT_]);

/** One comparison at a time: it is what bounds their memory. */
void lac_run_cache_begin_work(struct lac_run_cache *cache);
void lac_run_cache_end_work(struct lac_run_cache *cache);

#endif
