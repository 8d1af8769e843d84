#include "collector/base/reserve.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FIRST = 32,
    HUGE_FROM_BYTES = 4 << 20, /* holds one huge page wherever it begins; what rounds up is small */
};

static bool has_room(const void *capacity, bool is_small, uint64_t need)
{
    uint64_t have = 0;
    uint32_t small = 0;

    if (is_small) {
        memcpy(&small, capacity, sizeof(small));
        return need <= small;
    }
    memcpy(&have, capacity, sizeof(have));
    return need <= have;
}

bool lac_reserve(void *array, void *capacity, size_t capacity_bytes, uint64_t need,
                 size_t element_bytes)
{
    const bool is_small = capacity_bytes == sizeof(uint32_t);
    const uint64_t most = is_small ? UINT32_MAX : UINT64_MAX;
    uint64_t wanted = FIRST;
    uint32_t small;
    size_t size_bytes;
    void *old;
    void *grown;

    assert(is_small || capacity_bytes == sizeof(uint64_t));
    if (has_room(capacity, is_small, need)) {
        return true;
    }
    while (wanted < need && wanted <= most / 2) {
        wanted *= 2;
    }
    wanted = wanted < need ? most : wanted; /* the last doubling: as far as it can count */
    if (wanted < need || __builtin_mul_overflow(wanted, element_bytes, &size_bytes)) {
        return false;
    }
    memcpy((void *)&old, array, sizeof(old)); /* any object pointer has this representation here */
    grown = realloc(old, size_bytes);
    if (grown == NULL) {
        return false;
    }
    (void)lac_huge_pages(grown, size_bytes);
    memcpy(array, (void *)&grown, sizeof(grown));
    if (is_small) {
        small = (uint32_t)wanted;
        memcpy(capacity, &small, sizeof(small));
    } else {
        memcpy(capacity, &wanted, sizeof(wanted));
    }
    return true;
}

void *lac_huge_pages(void *memory, size_t size_bytes)
{
    if (memory != NULL && size_bytes >= HUGE_FROM_BYTES) {
        const int error = errno;
        const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        const uintptr_t begin = (uintptr_t)memory & (page_bytes - 1);
        const uintptr_t end = begin + malloc_usable_size(memory);

        /* All of malloc's mapping: advice for a part would cut it in two, which realloc() could
           then only move by copying. */
        (void)madvise((uint8_t *)memory - begin, (end + page_bytes - 1) & ~(page_bytes - 1),
                      MADV_HUGEPAGE);
        errno = error;
    }
    return memory;
}
