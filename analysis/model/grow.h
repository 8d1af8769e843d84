#ifndef LAC_ANALYSIS_MODEL_GROW_H
#define LAC_ANALYSIS_MODEL_GROW_H

/* For analysis/model and import: arrays that grow, with a status; the hash and the index that small
 * tables share. */

#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stddef.h>
#include <stdint.h>

/** LAC_RESERVE() for `need` elements in all; `capacity` points to the capacity.
 *  @return LAC_OK, LAC_ERR_NOMEM */
#define LAC_GROW(array, capacity, need)                                                            \
    (lac_reserve((void *)&(array), (capacity), sizeof(*(capacity)), (need), sizeof(*(array)))      \
         ? LAC_OK                                                                                  \
         : LAC_ERR_NOMEM)

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
