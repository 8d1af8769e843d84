#ifndef LAC_ANALYSIS_MODEL_GROW_H
#define LAC_ANALYSIS_MODEL_GROW_H

/* Private to analysis/model: growable arrays and the hash that the small tables share. */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Make the array that `array` (a pointer to a pointer) points to hold at least `need` elements.
 *
 * Doubles, so appends are amortized O(1). `*capacity` is kept apart from the array because several
 * columns share one: pass a copy per column and store the result once all have grown.
 */
LAC_MUST_USE enum lac_status lac_grow(void *array, uint64_t *capacity, uint64_t need,
                                      size_t element_bytes);

/** lac_grow() of an array variable, which knows its element. */
#define LAC_GROW(array, capacity, need)                                                            \
    lac_grow((void *)&(array), (capacity), (need), sizeof(*(array)))

/** One of several arrays that a loop allocates, grows or permutes alike. */
struct lac_array_ref {
    void *array; /**< address of the variable that points to it */
    size_t element_bytes;
};
#define LAC_ARRAY_REF(variable)                                                                    \
    {                                                                                              \
        (void *)&(variable), sizeof(*(variable))                                                   \
    }

/** Hash of `length` bytes. Quality of a good 64-bit hash, about 10 GB/s on long keys. */
uint64_t lac_hash_bytes(const void *bytes, size_t length, uint64_t seed);

/** A number that other processes cannot guess; for hash seeds. */
uint64_t lac_hash_seed(void);

/** Maps hashes to ids of an array the caller owns; open addressing. Zeroed is empty. */
struct lac_index {
    struct lac_index_slot {
        uint32_t id_plus_1; /**< 0 is free */
        uint32_t hash;
    } * slot;
    uint32_t slot_count; /**< a power of two, or 0 */
    uint32_t used;
};

/** Whether entry `id` is the one searched for. */
typedef int (*lac_index_equal)(const void *context, uint32_t id);

/** Id of the entry with that hash for which `equal` says yes, or UINT32_MAX. */
uint32_t lac_index_find(const struct lac_index *index, uint32_t hash, lac_index_equal equal,
                        const void *context);

/** Room for one more entry. */
LAC_MUST_USE enum lac_status lac_index_reserve(struct lac_index *index);

/** Add an entry after lac_index_reserve(). */
void lac_index_add(struct lac_index *index, uint32_t hash, uint32_t id);

/** Forget all entries, keep the memory. */
void lac_index_clear(struct lac_index *index);

void lac_index_done(struct lac_index *index);

#endif
