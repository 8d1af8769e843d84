#ifndef LAC_SERVER_STORE_TRACE_CACHE_H
#define LAC_SERVER_STORE_TRACE_CACHE_H

/*
 * Things decoded from trace files, least recently used out first, bounded in bytes. What is in use
 * (pinned) is never freed, so the bound may be passed for as long as that lasts.
 *
 * Thread-safe.
 */

#include "analysis/model/chunk.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

struct lac_cache;

/** What an entry is of. */
struct lac_cache_key {
    uint64_t owner; /**< which trace file handle: lac_cache_new_owner() */
    uint64_t index; /**< which chunk, ... */
    uint32_t type;  /**< which columns, ... */
};

/** A pinned entry; give it back with lac_cache_unpin(). */
struct lac_cache_entry;

LAC_MUST_USE enum lac_status lac_cache_create(uint64_t bytes_max, struct lac_cache **ret_cache);

/** Nothing may be pinned. NULL is allowed. */
void lac_cache_destroy(struct lac_cache *cache);

/** A number that no other owner has. */
uint64_t lac_cache_new_owner(struct lac_cache *cache);

/** @return the entry, pinned, or NULL when it is not there */
struct lac_cache_entry *lac_cache_get(struct lac_cache *cache, const struct lac_cache_key *key);

/**
 * Add `data`, pinned. When another thread was faster, `data` is freed and its entry returned.
 *
 * @param data       owned by the cache from now on, also on failure
 * @param free_data  how to free it
 * @return NULL when out of memory
 */
struct lac_cache_entry *lac_cache_put(struct lac_cache *cache, const struct lac_cache_key *key,
                                      void *data, uint64_t size_bytes, void (*free_data)(void *));

void *lac_cache_data(const struct lac_cache_entry *entry);

/** NULL is allowed. */
void lac_cache_unpin(struct lac_cache *cache, struct lac_cache_entry *entry);

/** Forget everything of an owner; none of it may be pinned. */
void lac_cache_drop_owner(struct lac_cache *cache, uint64_t owner);

uint64_t lac_cache_used_bytes(struct lac_cache *cache);
uint64_t lac_cache_max_bytes(const struct lac_cache *cache);

/** A chunk codec for the calling thread to use for a while. NULL when out of memory. */
struct lac_chunk_codec *lac_cache_take_codec(struct lac_cache *cache);
void lac_cache_give_codec(struct lac_cache *cache, struct lac_chunk_codec *codec);

#endif
