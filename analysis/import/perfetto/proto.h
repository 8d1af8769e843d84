#ifndef LAC_ANALYSIS_IMPORT_PERFETTO_PROTO_H
#define LAC_ANALYSIS_IMPORT_PERFETTO_PROTO_H

/* Fields of a protocol buffer in memory, one after another. Nothing is read past the end, and a
 * field that does not fit ends the message and marks it as damaged. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum lac_proto_wire {
    LAC_PROTO_VARINT = 0,
    LAC_PROTO_FIXED64 = 1,
    LAC_PROTO_BYTES = 2,
    LAC_PROTO_FIXED32 = 5
};

struct lac_proto {
    const uint8_t *at;
    const uint8_t *end;
    bool is_damaged;
};

struct lac_proto_field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;       /**< of a varint, fixed64 or fixed32 */
    const uint8_t *bytes; /**< of LAC_PROTO_BYTES, never NULL then */
    size_t size_bytes;
};

/** @return false: it does not end before `end`, or is longer than 10 bytes */
static inline bool lac_proto_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static inline bool lac_proto_fixed(struct lac_proto *proto, size_t size, uint64_t *ret_value)
{
    *ret_value = 0;
    if ((size_t)(proto->end - proto->at) < size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        *ret_value |= (uint64_t)proto->at[i] << (8 * i);
    }
    proto->at += size;
    return true;
}

/** The next field. @return false at the end, or where it is damaged */
static inline bool lac_proto_next(struct lac_proto *proto, struct lac_proto_field *field)
{
    uint64_t key = 0;
    *field = (struct lac_proto_field){.bytes = proto->end};
    if (proto->at >= proto->end || proto->is_damaged) {
        return false;
    }
    bool is_good = lac_proto_varint(&proto->at, proto->end, &key) && key >> 3 != 0 &&
                   key >> 3 < (UINT64_C(1) << 29);
    field->number = (uint32_t)(key >> 3);
    field->wire = (uint32_t)(key & 7);
    if (is_good && field->wire == LAC_PROTO_VARINT) {
        is_good = lac_proto_varint(&proto->at, proto->end, &field->value);
    } else if (is_good && field->wire == LAC_PROTO_BYTES) {
        is_good = lac_proto_varint(&proto->at, proto->end, &field->value) &&
                  field->value <= (uint64_t)(proto->end - proto->at);
        if (is_good) {
            field->bytes = proto->at;
            field->size_bytes = (size_t)field->value;
            proto->at += field->size_bytes;
        }
    } else if (is_good && field->wire == LAC_PROTO_FIXED64) {
        is_good = lac_proto_fixed(proto, 8, &field->value);
    } else if (is_good) {
        is_good = field->wire == LAC_PROTO_FIXED32 && lac_proto_fixed(proto, 4, &field->value);
    }
    proto->is_damaged = !is_good;
    return is_good;
}

static inline struct lac_proto lac_proto_of(const uint8_t *bytes, size_t size_bytes)
{
    return (struct lac_proto){.at = bytes, .end = bytes + size_bytes};
}

/** The message in a field. */
static inline struct lac_proto lac_proto_inside(const struct lac_proto_field *field)
{
    return lac_proto_of(field->bytes, field->size_bytes);
}

static inline double lac_proto_double(const struct lac_proto_field *field)
{
    double value;
    memcpy(&value, &field->value, sizeof(value));
    return value;
}

#endif
