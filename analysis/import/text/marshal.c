#include "analysis/import/text/marshal.h"

#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_REF = 0x80, DIGIT_BITS = 15 };

struct reader {
    const uint8_t *begin, *at, *end;
    struct lac_plain_heap *heap;
    struct lac_plain **refs; /**< values that may be named again, by number */
    uint32_t ref_count, ref_capacity;
    struct lac_error *reterr;
};

static enum lac_status broken(const struct reader *reader, const char *why)
{
    return lac_fail(reader->reterr, LAC_ERR_CORRUPT, (uint64_t)(reader->at - reader->begin),
                    "broken marshal data: %s", why);
}

static enum lac_status no_room(const struct reader *reader)
{
    const enum lac_status status =
        lac_plain_failed(reader->heap, (uint64_t)(reader->at - reader->begin), reader->reterr);
    assert(status != LAC_OK);
    return status;
}

static size_t left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Little-endian, `size` bytes. @return false: cut short */
static bool take_number(struct reader *reader, unsigned size, uint64_t *ret_number)
{
    *ret_number = 0;
    if (left(reader) < size) {
        return false;
    }
    for (unsigned i = 0; i < size; i++) {
        *ret_number |= (uint64_t)reader->at[i] << (8 * i);
    }
    reader->at += size;
    return true;
}

static enum lac_status make(struct reader *reader, enum lac_plain_kind kind,
                            struct lac_plain **ret_value)
{
    *ret_value = lac_plain_new(reader->heap, kind);
    return *ret_value != NULL ? LAC_OK : no_room(reader);
}

static enum lac_status read_text(struct reader *reader, unsigned size_bytes,
                                 struct lac_plain **ret_value)
{
    uint64_t length;
    enum lac_status status = make(reader, LAC_PLAIN_TEXT, ret_value);
    if (status == LAC_OK && (!take_number(reader, size_bytes, &length) || length > left(reader) ||
                             length > INT32_MAX)) {
        return broken(reader, "a text is cut short");
    }
    if (status == LAC_OK) {
        (*ret_value)->text = (const char *)reader->at;
        (*ret_value)->count = (uint32_t)length;
        reader->at += length;
    }
    return status;
}

/* A float: eight bytes, or digits behind their count. */
static enum lac_status read_real(struct reader *reader, bool is_binary,
                                 struct lac_plain **ret_value)
{
    char text[32] = "";
    uint64_t bits;
    enum lac_status status = make(reader, LAC_PLAIN_REAL, ret_value);
    if (status != LAC_OK) {
        return status;
    }
    if (is_binary) {
        if (!take_number(reader, 8, &bits)) {
            return broken(reader, "a number is cut short");
        }
        memcpy(&(*ret_value)->real, &bits, sizeof(bits));
        return LAC_OK;
    }
    if (!take_number(reader, 1, &bits) || bits >= sizeof(text) || bits > left(reader)) {
        return broken(reader, "a number is cut short");
    }
    memcpy(text, reader->at, bits);
    reader->at += bits;
    (*ret_value)->real = strtod(text, NULL);
    return LAC_OK;
}

static enum lac_status read_integer(struct reader *reader, unsigned size_bytes,
                                    struct lac_plain **ret_value)
{
    uint64_t bits;
    enum lac_status status = make(reader, LAC_PLAIN_INT, ret_value);
    if (status == LAC_OK && !take_number(reader, size_bytes, &bits)) {
        return broken(reader, "a number is cut short");
    }
    if (status == LAC_OK) {
        (*ret_value)->integer = size_bytes == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    }
    return status;
}

/* A long integer: digits of 15 bits, the count negative for a negative number. */
static enum lac_status read_long(struct reader *reader, struct lac_plain **ret_value)
{
    uint64_t bits;
    double real = 0.0;
    double scale = 1.0;
    enum lac_status status = make(reader, LAC_PLAIN_INT, ret_value);
    if (status != LAC_OK) {
        return status;
    }
    if (!take_number(reader, 4, &bits)) {
        return broken(reader, "a number is cut short");
    }
    const int32_t signed_count = (int32_t)(uint32_t)bits;
    const uint32_t count = signed_count < 0 ? 0U - (uint32_t)signed_count : (uint32_t)signed_count;
    if ((uint64_t)count * 2 > left(reader)) {
        return broken(reader, "a number is cut short");
    }
    uint64_t whole = 0;
    for (uint32_t i = 0; i < count; i++) {
        (void)take_number(reader, 2, &bits);
        whole |= i < 4 ? bits << (DIGIT_BITS * i) : 0;
        real += (double)bits * scale;
        scale *= 32768.0;
    }
    if (count <= 4) {
        (*ret_value)->integer = signed_count < 0 ? -(int64_t)whole : (int64_t)whole;
    } else {
        (*ret_value)->kind = LAC_PLAIN_REAL;
        (*ret_value)->real = signed_count < 0 ? -real : real;
    }
    return LAC_OK;
}

static enum lac_status read_value(struct reader *reader, uint32_t depth,
                                  struct lac_plain **ret_value);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_items(struct reader *reader, uint32_t depth, unsigned size_bytes,
                                  struct lac_plain *list)
{
    uint64_t count;
    enum lac_status status = LAC_OK;
    if (!take_number(reader, size_bytes, &count) || count > left(reader)) {
        return broken(reader, "a list is cut short");
    }
    for (uint64_t i = 0; i < count && status == LAC_OK; i++) {
        struct lac_plain *item = NULL;
        status = read_value(reader, depth + 1, &item);
        if (status == LAC_OK && item == NULL) {
            status = broken(reader, "an item is none");
        }
        if (status == LAC_OK && lac_plain_append(reader->heap, list, item) != LAC_OK) {
            status = no_room(reader);
        }
    }
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_dict(struct reader *reader, uint32_t depth, struct lac_plain *dict)
{
    enum lac_status status = LAC_OK;
    while (status == LAC_OK) {
        struct lac_plain *pair[2] = {NULL, NULL};
        status = read_value(reader, depth + 1, &pair[0]);
        if (status != LAC_OK || pair[0] == NULL) {
            return status; /* NULL ends it */
        }
        status = read_value(reader, depth + 1, &pair[1]);
        if (status == LAC_OK && pair[1] == NULL) {
            return broken(reader, "a key without a value");
        }
        for (int i = 0; i < 2 && status == LAC_OK; i++) {
            if (lac_plain_append(reader->heap, dict, pair[i]) != LAC_OK) {
                status = no_room(reader);
            }
        }
    }
    return status;
}

/* A container is in the table of references before its items are. */
static enum lac_status keep(struct reader *reader, bool is_flagged, struct lac_plain *value)
{
    if (!is_flagged) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(reader->refs, reader->ref_capacity, reader->ref_count, 1)) {
        return lac_fail(reader->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    reader->refs[reader->ref_count++] = value;
    return LAC_OK;
}

static enum lac_status read_ref(struct reader *reader, struct lac_plain **ret_value)
{
    uint64_t number;
    if (!take_number(reader, 4, &number) || number >= reader->ref_count) {
        return broken(reader, "it names a value that is not there");
    }
    *ret_value = reader->refs[number];
    return LAC_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_container(struct reader *reader, uint32_t depth, uint8_t type,
                                      bool is_flagged, struct lac_plain **ret_value)
{
    enum lac_status status = make(reader, type == '{' ? LAC_PLAIN_DICT : LAC_PLAIN_LIST, ret_value);
    if (status == LAC_OK) {
        status = keep(reader, is_flagged, *ret_value);
    }
    if (status != LAC_OK) {
        return status;
    }
    return type == '{' ? read_dict(reader, depth, *ret_value)
                       : read_items(reader, depth, type == ')' ? 1 : 4, *ret_value);
}

/* @return LAC_OK with NULL for the mark that ends a dictionary */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the limit */
static enum lac_status read_value(struct reader *reader, uint32_t depth,
                                  struct lac_plain **ret_value)
{
    uint64_t byte;
    enum lac_status status;
    *ret_value = NULL;
    if (depth > reader->heap->limits.depth_max) {
        return lac_fail(reader->reterr, LAC_ERR_LIMIT, (uint64_t)(reader->at - reader->begin),
                        "marshal data that nests more than %u deep",
                        reader->heap->limits.depth_max);
    }
    if (!take_number(reader, 1, &byte)) {
        return broken(reader, "it is cut short");
    }
    const bool is_flagged = (byte & FLAG_REF) != 0;
    const uint8_t type = (uint8_t)(byte & ~(unsigned)FLAG_REF);
    switch (type) {
    case '0':
        return LAC_OK;
    case 'r':
        return read_ref(reader, ret_value);
    case '{':
    case '(':
    case ')':
    case '[':
    case '<':
    case '>':
        return read_container(reader, depth, type, is_flagged, ret_value);
    case 'N':
        status = make(reader, LAC_PLAIN_NONE, ret_value);
        break;
    case 'T':
    case 'F':
        status = make(reader, LAC_PLAIN_BOOL, ret_value);
        if (status == LAC_OK) {
            (*ret_value)->integer = type == 'T';
        }
        break;
    case 'i':
    case 'I':
        status = read_integer(reader, type == 'i' ? 4 : 8, ret_value);
        break;
    case 'l':
        status = read_long(reader, ret_value);
        break;
    case 'g':
    case 'f':
        status = read_real(reader, type == 'g', ret_value);
        break;
    case 'z':
    case 'Z':
        status = read_text(reader, 1, ret_value);
        break;
    case 's':
    case 't':
    case 'u':
    case 'a':
    case 'A':
        status = read_text(reader, 4, ret_value);
        break;
    default:
        return broken(reader, "it holds something else than numbers, texts and containers");
    }
    return status == LAC_OK ? keep(reader, is_flagged, *ret_value) : status;
}

enum lac_status lac_marshal_read(const uint8_t *bytes, size_t size_bytes,
                                 struct lac_plain_heap *heap, struct lac_plain **ret_value,
                                 struct lac_error *reterr)
{
    struct reader reader = {
        .begin = bytes, .at = bytes, .end = bytes + size_bytes, .heap = heap, .reterr = reterr};
    enum lac_status status = read_value(&reader, 0, ret_value);
    if (status == LAC_OK && *ret_value == NULL) {
        status = broken(&reader, "it is empty");
    }
    free(reader.refs);
    return status;
}
