#include "analysis/model/strings.h"

#include "analysis/model/grow.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 1024 };

static uint32_t hash_of(const struct lac_strings *strings, const char *text, size_t length)
{
    return (uint32_t)(lac_hash_bytes(text, length, strings->seed) >> 32);
}

/* Slot of the string, or the free slot where it belongs. */
static uint32_t probe(const struct lac_strings *strings, const char *text, size_t length,
                      uint32_t hash)
{
    uint32_t mask = strings->slot_count - 1;
    uint32_t i = hash & mask;

    while (strings->slot[i] != 0) {
        if (strings->slot_hash[i] == hash) {
            uint32_t id = strings->slot[i] - 1;

            if (lac_strings_length(strings, id) == length &&
                memcmp(lac_strings_get(strings, id), text, length) == 0) {
                break;
            }
        }
        i = (i + 1) & mask;
    }
    return i;
}

static enum lac_status grow_slots(struct lac_strings *strings, uint32_t slot_count)
{
    uint32_t *slot = calloc(slot_count, sizeof(*slot));
    uint32_t *slot_hash = malloc(slot_count * sizeof(*slot_hash));
    uint32_t mask = slot_count - 1;

    if (slot == NULL || slot_hash == NULL) {
        free(slot);
        free(slot_hash);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t old = 0; old < strings->slot_count; old++) {
        uint32_t i = strings->slot_hash[old] & mask;

        if (strings->slot[old] == 0) {
            continue;
        }
        while (slot[i] != 0) {
            i = (i + 1) & mask;
        }
        slot[i] = strings->slot[old];
        slot_hash[i] = strings->slot_hash[old];
    }
    free(strings->slot);
    free(strings->slot_hash);
    strings->slot = slot;
    strings->slot_hash = slot_hash;
    strings->slot_count = slot_count;
    return LAC_OK;
}

/* Room for one more string of `length` bytes: text, offsets and a free slot. */
static enum lac_status reserve(struct lac_strings *strings, size_t length)
{
    uint64_t capacity = strings->capacity;
    enum lac_status status;

    if (length >= LAC_STRINGS_BYTES_MAX - strings->bytes_used || strings->count >= UINT32_MAX - 2) {
        return LAC_ERR_LIMIT;
    }
    status = LAC_GROW(strings->bytes, &strings->bytes_capacity, strings->bytes_used + length + 1);
    if (status != LAC_OK) {
        return status;
    }
    /* One entry more than strings: offset[count] ends the last one. */
    status = LAC_GROW(strings->offset, &capacity, (uint64_t)strings->count + 2);
    if (status != LAC_OK) {
        return status;
    }
    strings->capacity = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity;
    if (strings->slot_count == 0) {
        return grow_slots(strings, SLOTS_FIRST);
    }
    if (strings->count >= strings->slot_count / 2) {
        return strings->slot_count >= UINT32_C(1) << 31
                   ? LAC_ERR_LIMIT
                   : grow_slots(strings, strings->slot_count * 2);
    }
    return LAC_OK;
}

static uint32_t add(struct lac_strings *strings, const char *text, size_t length, uint32_t hash)
{
    uint32_t i = probe(strings, text, length, hash);
    uint32_t id = strings->count;

    if (length != 0) {
        memcpy(strings->bytes + strings->bytes_used, text, length);
    }
    strings->bytes[strings->bytes_used + length] = '\0';
    strings->offset[id] = strings->bytes_used;
    strings->bytes_used += length + 1;
    strings->offset[id + 1] = strings->bytes_used;
    strings->slot[i] = id + 1;
    strings->slot_hash[i] = hash;
    strings->count++;
    return id;
}

enum lac_status lac_strings_init(struct lac_strings *strings)
{
    enum lac_status status;

    *strings = (struct lac_strings){.seed = lac_hash_seed()};
    status = reserve(strings, 0);
    if (status != LAC_OK) {
        lac_strings_done(strings);
        return status;
    }
    (void)add(strings, "", 0, hash_of(strings, "", 0));
    return LAC_OK;
}

void lac_strings_done(struct lac_strings *strings)
{
    free(strings->bytes);
    free(strings->offset);
    free(strings->slot);
    free(strings->slot_hash);
    *strings = (struct lac_strings){0};
}

enum lac_status lac_strings_intern(struct lac_strings *strings, const char *text, size_t length,
                                   uint32_t *ret_id)
{
    uint32_t hash = hash_of(strings, text, length);
    uint32_t i = probe(strings, text, length, hash);
    enum lac_status status;

    if (strings->slot[i] != 0) {
        *ret_id = strings->slot[i] - 1;
        return LAC_OK;
    }
    status = reserve(strings, length);
    if (status == LAC_OK) {
        *ret_id = add(strings, text, length, hash);
    }
    return status;
}

uint32_t lac_strings_find(const struct lac_strings *strings, const char *text, size_t length)
{
    uint32_t i = probe(strings, text, length, hash_of(strings, text, length));

    return strings->slot[i] == 0 ? 0 : strings->slot[i] - 1;
}
