#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 32 };

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
    memcpy(array, (void *)&grown, sizeof(grown));
    if (is_small) {
        small = (uint32_t)wanted;
        memcpy(capacity, &small, sizeof(small));
    } else {
        memcpy(capacity, &wanted, sizeof(wanted));
    }
    return true;
}
