#ifndef LAC_ANALYSIS_MODEL_STRINGS_H
#define LAC_ANALYSIS_MODEL_STRINGS_H

/*
 * Interned strings: every distinct byte string of a trace is stored once and has a number.
 *
 * Id 0 is always the empty string. Ids are dense and given in order of first appearance, so the
 * same input gives the same ids. Strings may hold any bytes but are NUL-terminated for
 * convenience; the importers only intern valid UTF-8.
 */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/** Most bytes all strings of one trace may take together; more is LAC_ERR_LIMIT. */
#define LAC_STRINGS_BYTES_MAX ((uint64_t)1 << 32)

struct lac_strings {
    uint32_t count;          /**< ids 0 .. count-1 are valid */
    uint32_t capacity;       /**< entries allocated in `offset` */
    uint64_t bytes_used;     /**< bytes used in `bytes`, NULs included */
    uint64_t bytes_capacity; /**< bytes allocated in `bytes` */
    char *bytes;             /**< all strings, one after another, each NUL-terminated */
    uint64_t *offset;        /**< offset[id] into bytes; offset[count] = bytes_used */
    uint32_t *slot;          /**< open-addressing table of ids + 1; 0 is free */
    uint32_t *slot_hash;     /**< hash of the string in the same slot */
    uint32_t slot_count;     /**< a power of two */
    uint64_t seed;           /**< of the hash; random, so that no input can be made to collide */
};

/** Prepare an empty pool that holds only id 0. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_strings_init(struct lac_strings *strings);

/** Free the contents. A zeroed struct is allowed. */
void lac_strings_done(struct lac_strings *strings);

/**
 * Id of the `length` bytes at `text`, added if new.
 *
 * @param ret_id set only on LAC_OK
 * @return LAC_OK, LAC_ERR_NOMEM or LAC_ERR_LIMIT
 * Cost: one hash of the bytes and usually one comparison.
 */
LAC_MUST_USE enum lac_status lac_strings_intern(struct lac_strings *strings, const char *text,
                                                size_t length, uint32_t *ret_id);

/** Id of the string, or 0 when it was never interned (0 also for the empty string). */
uint32_t lac_strings_find(const struct lac_strings *strings, const char *text, size_t length);

/** The string, NUL-terminated. Borrowed: valid until the next intern or done. */
static inline const char *lac_strings_get(const struct lac_strings *strings, uint32_t id)
{
    return strings->bytes + strings->offset[id];
}

/** Length in bytes, without the NUL. */
static inline size_t lac_strings_length(const struct lac_strings *strings, uint32_t id)
{
    return (size_t)(strings->offset[id + 1] - strings->offset[id] - 1);
}

#endif
