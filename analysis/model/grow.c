#include "analysis/model/grow.h"

#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

enum { INDEX_SLOTS_FIRST = 64 };

__extension__ typedef unsigned __int128 wide; /* both compilers have it on 64-bit machines */

static uint64_t fold(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load_8(const unsigned char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof(value));
    return value;
}

static uint64_t load_4(const unsigned char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return value;
}

/*
 * Folded 64x64 -> 128 bit products over 16 bytes at a time, the last 16 read with overlap. The
 * constants are odd and have about as many ones as zeroes; they were drawn at random.
 */
uint64_t lac_hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
    static const uint64_t k0 = UINT64_C(0x9d3a6b1c5ef0724b);
    static const uint64_t k1 = UINT64_C(0xc7561e8fb02d94a3);
    static const uint64_t k2 = UINT64_C(0x52e9d4873ca61bf5);
    const unsigned char *p = bytes;
    uint64_t state = seed ^ k0;
    uint64_t a;
    uint64_t b;

    if (length >= 8) {
        size_t left = length;

        while (left > 16) {
            state = fold(load_8(p) ^ k1, load_8(p + 8) ^ state);
            p += 16;
            left -= 16;
        }
        a = length > 16 ? load_8(p + left - 16) : load_8(p);
        b = load_8(p + left - 8);
    } else if (length >= 4) {
        a = load_4(p);
        b = load_4(p + length - 4);
    } else {
        a = length == 0 ? 0 : (uint64_t)p[0] << 16 | (uint64_t)p[length / 2] << 8 | p[length - 1];
        b = 0;
    }
    return fold(fold(a ^ k1, b ^ state) ^ k2, (uint64_t)length ^ k0);
}

uint64_t lac_hash_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        struct timespec now = {0};
        (void)timespec_get(&now, TIME_UTC);
        seed = (uint64_t)now.tv_nsec * UINT64_C(0x9d3a6b1c5ef0724b) ^ (uint64_t)(uintptr_t)&seed;
    }
    return seed;
}

uint32_t lac_index_find(const struct lac_index *index, uint32_t hash, lac_index_equal equal,
                        const void *context)
{
    uint32_t mask = index->slot_count - 1;

    if (index->slot_count == 0) {
        return UINT32_MAX;
    }
    for (uint32_t i = hash & mask; index->slot[i].id_plus_1 != 0; i = (i + 1) & mask) {
        if (index->slot[i].hash == hash && equal(context, index->slot[i].id_plus_1 - 1)) {
            return index->slot[i].id_plus_1 - 1;
        }
    }
    return UINT32_MAX;
}

enum lac_status lac_index_reserve(struct lac_index *index)
{
    struct lac_index bigger = {0};

    if (index->slot_count != 0 && index->used < index->slot_count / 2) {
        return LAC_OK;
    }
    if (index->slot_count >= UINT32_C(1) << 31) {
        return LAC_ERR_LIMIT;
    }
    bigger.slot_count = index->slot_count == 0 ? INDEX_SLOTS_FIRST : index->slot_count * 2;
    bigger.slot = calloc(bigger.slot_count, sizeof(*bigger.slot));
    if (bigger.slot == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < index->slot_count; i++) {
        if (index->slot[i].id_plus_1 != 0) {
            lac_index_add(&bigger, index->slot[i].hash, index->slot[i].id_plus_1 - 1);
        }
    }
    free(index->slot);
    *index = bigger;
    return LAC_OK;
}

void lac_index_add(struct lac_index *index, uint32_t hash, uint32_t id)
{
    uint32_t mask = index->slot_count - 1;
    uint32_t i = hash & mask;

    while (index->slot[i].id_plus_1 != 0) {
        i = (i + 1) & mask;
    }
    index->slot[i].id_plus_1 = id + 1;
    index->slot[i].hash = hash;
    index->used++;
}

void lac_index_clear(struct lac_index *index)
{
    if (index->used != 0) {
        memset(index->slot, 0, index->slot_count * sizeof(*index->slot));
        index->used = 0;
    }
}

void lac_index_done(struct lac_index *index)
{
    free(index->slot);
    *index = (struct lac_index){0};
}
