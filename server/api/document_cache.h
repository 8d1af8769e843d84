#ifndef LAC_SERVER_API_DOCUMENT_CACHE_H
#define LAC_SERVER_API_DOCUMENT_CACHE_H

/*
 * Documents of several traces that were computed: comparing ranks or runs takes seconds, and what
 * ready traces say never changes. A document belongs to a key (whose it is) and to a stamp of the
 * traces behind it; a run that got or lost a trace has another stamp. Least recently used out
 * first. Thread-safe.
 */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest key and stamp, with their NUL. */
enum { LAC_DOCUMENT_KEY_SIZE = 80, LAC_DOCUMENT_STAMP_SIZE = 40 };

struct lac_document_cache;

/** @param max_bytes of all documents together. @return NULL: no memory */
struct lac_document_cache *lac_document_cache_create(uint64_t max_bytes);
/** NULL is allowed. */
void lac_document_cache_destroy(struct lac_document_cache *cache);

/** Append the document to `out` if it is here. */
bool lac_document_cache_get(struct lac_document_cache *cache, const char *key, const char *stamp,
                            struct lac_buffer *out);

/** Keep a copy of a document, instead of what there was under its key; without memory it is not
 *  kept. */
void lac_document_cache_put(struct lac_document_cache *cache, const char *key, const char *stamp,
                            const char *text, size_t length);

/** One computation at a time: it is what bounds their memory. */
void lac_document_cache_begin_work(struct lac_document_cache *cache);
void lac_document_cache_end_work(struct lac_document_cache *cache);

#endif
