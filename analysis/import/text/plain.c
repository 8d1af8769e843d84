#include "analysis/import/text/plain.h"

#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_VALUES = 512, DEPTH_DEFAULT = 64 };

struct lac_plain_block {
    struct lac_plain_block *next;
    uint32_t count;
    struct lac_plain values[BLOCK_VALUES];
};

struct lac_plain_copy {
    struct lac_plain_copy *next;
    char bytes[];
};

void lac_plain_limits_default(struct lac_plain_limits *limits)
{
    *limits = (struct lac_plain_limits){.memory_bytes_max = (uint64_t)1 << 30,
                                        .depth_max = DEPTH_DEFAULT};
}

static bool has_items(const struct lac_plain *value)
{
    return value->kind == LAC_PLAIN_LIST || value->kind == LAC_PLAIN_DICT ||
           value->kind == LAC_PLAIN_OBJECT;
}

void lac_plain_done(struct lac_plain_heap *heap)
{
    while (heap->blocks != NULL) {
        struct lac_plain_block *const block = heap->blocks;
        heap->blocks = block->next;
        for (uint32_t i = 0; i < block->count; i++) {
            if (has_items(&block->values[i])) {
                free(block->values[i].items);
            }
        }
        free(block);
    }
    while (heap->copies != NULL) {
        struct lac_plain_copy *const copy = heap->copies;
        heap->copies = copy->next;
        free(copy);
    }
    heap->memory_bytes = 0;
}

/* Whether `more` bytes stay within the limit; they are counted either way. */
static bool take(struct lac_plain_heap *heap, uint64_t more)
{
    heap->memory_bytes += more;
    return heap->memory_bytes <= heap->limits.memory_bytes_max;
}

struct lac_plain *lac_plain_new(struct lac_plain_heap *heap, enum lac_plain_kind kind)
{
    struct lac_plain_block *block = heap->blocks;
    if (block == NULL || block->count == BLOCK_VALUES) {
        if (!take(heap, sizeof(*block))) {
            return NULL;
        }
        block = malloc(sizeof(*block));
        if (block == NULL) {
            return NULL;
        }
        block->next = heap->blocks;
        block->count = 0;
        heap->blocks = block;
    }
    struct lac_plain *const value = &block->values[block->count++];
    *value = (struct lac_plain){.kind = kind};
    return value;
}

enum lac_status lac_plain_append(struct lac_plain_heap *heap, struct lac_plain *list,
                                 struct lac_plain *item)
{
    const uint32_t before = list->capacity;
    if (list->count == before && !take(heap, (before + UINT64_C(1)) * sizeof(struct lac_plain *))) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(list->items, list->capacity, list->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    list->items[list->count++] = item;
    return LAC_OK;
}

char *lac_plain_room(struct lac_plain_heap *heap, size_t size_bytes)
{
    if (!take(heap, size_bytes + sizeof(struct lac_plain_copy))) {
        return NULL;
    }
    struct lac_plain_copy *const copy = malloc(sizeof(*copy) + size_bytes);
    if (copy == NULL) {
        return NULL;
    }
    copy->next = heap->copies;
    heap->copies = copy;
    return copy->bytes;
}

enum lac_status lac_plain_failed(const struct lac_plain_heap *heap, uint64_t offset_bytes,
                                 struct lac_error *reterr)
{
    if (heap->memory_bytes > heap->limits.memory_bytes_max) {
        return lac_fail(reterr, LAC_ERR_LIMIT, offset_bytes,
                        "its values take more than %llu MiB of memory (limit memory_bytes_max)",
                        (unsigned long long)(heap->limits.memory_bytes_max >> 20));
    }
    return lac_fail(reterr, LAC_ERR_NOMEM, offset_bytes, "out of memory");
}

/* --- looking ---------------------------------------------------------------------------------- */

bool lac_plain_is(const struct lac_plain *value, enum lac_plain_kind kind)
{
    return value != NULL && value->kind == kind;
}

bool lac_plain_equals(const struct lac_plain *value, const char *text)
{
    const size_t length = strlen(text);
    return lac_plain_is(value, LAC_PLAIN_TEXT) && value->count == length &&
           memcmp(value->text, text, length) == 0;
}

const struct lac_plain *lac_plain_at(const struct lac_plain *list, uint32_t index)
{
    return lac_plain_is(list, LAC_PLAIN_LIST) && index < list->count ? list->items[index] : NULL;
}

const struct lac_plain *lac_plain_get(const struct lac_plain *dict, const char *key)
{
    if (lac_plain_is(dict, LAC_PLAIN_OBJECT)) {
        dict = dict->items[2];
    }
    if (!lac_plain_is(dict, LAC_PLAIN_DICT)) {
        return NULL;
    }
    uint32_t pairs = dict->count / 2;
    for (pairs = pairs < LAC_PLAIN_KEYS_MAX ? pairs : LAC_PLAIN_KEYS_MAX; pairs > 0; pairs--) {
        if (lac_plain_equals(dict->items[2 * pairs - 2], key)) {
            return dict->items[2 * pairs - 1];
        }
    }
    return NULL;
}

bool lac_plain_integer(const struct lac_plain *value, int64_t *ret_integer)
{
    if (lac_plain_is(value, LAC_PLAIN_INT) || lac_plain_is(value, LAC_PLAIN_BOOL)) {
        *ret_integer = value->integer;
        return true;
    }
    if (lac_plain_is(value, LAC_PLAIN_REAL) && value->real >= -0x1p62 && value->real <= 0x1p62 &&
        value->real == floor(value->real)) {
        *ret_integer = (int64_t)value->real;
        return true;
    }
    return false;
}

bool lac_plain_number(const struct lac_plain *value, double *ret_number)
{
    if (lac_plain_is(value, LAC_PLAIN_REAL) && isfinite(value->real)) {
        *ret_number = value->real;
        return true;
    }
    if (lac_plain_is(value, LAC_PLAIN_INT) || lac_plain_is(value, LAC_PLAIN_BOOL)) {
        *ret_number = (double)value->integer;
        return true;
    }
    return false;
}
