#ifndef LAC_COLLECTOR_BASE_RESERVE_H
#define LAC_COLLECTOR_BASE_RESERVE_H

/* Arrays that grow, and large ones that are filled at once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Room for `more` elements behind `count` in the array variable `array`, whose capacity is the
 * unsigned variable `capacity`, of 32 or 64 bits. An array of NULL and 0 is empty. Doubles: appends
 * are amortized O(1). `count` and `more` are looked at twice, and their sum is below 2^64.
 *
 * Columns that share a capacity get a copy of it each; the result is stored when all have grown.
 *
 * @return false: out of memory, or more than the capacity can count; both are as they were
 */
#define LAC_RESERVE(array, capacity, count, more)                                                  \
    (((array) != NULL && (uint64_t)(count) + (uint64_t)(more) <= (uint64_t)(capacity)) ||          \
     lac_reserve((void *)&(array), &(capacity), sizeof(capacity),                                  \
                 (uint64_t)(count) + (uint64_t)(more), sizeof(*(array))))

/** As LAC_RESERVE(), for `need` elements of an array whose type is not known.
 *  @param array points to the pointer to it */
bool lac_reserve(void *array, void *capacity, size_t capacity_bytes, uint64_t need,
                 size_t element_bytes);

/**
 * Ask for huge pages under an allocation that is to be filled from front to back: one page fault
 * for 2 MiB instead of 512. lac_reserve() does it by itself. Only advice: below 4 MiB, and where the
 * kernel has none, nothing changes, nor does errno. Not for memory that is filled here and there.
 *
 * @param memory from malloc() or realloc(); NULL does nothing
 * @return `memory`
 */
void *lac_huge_pages(void *memory, size_t size_bytes);

#endif
