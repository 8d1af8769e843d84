#ifndef LAC_SERVER_EXPORT_PROTOBUF_H
#define LAC_SERVER_EXPORT_PROTOBUF_H

/* Writes fields of protocol buffers. Messages inside of others are written into a buffer of their
 * own first. Private to this folder. */

#include "server/base/buffer.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void lac_proto_varint(struct lac_buffer *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    } while (value != 0);
    bytes[count - 1] &= 0x7f;
    lac_buffer_add(out, bytes, count);
}

static inline void lac_proto_uint(struct lac_buffer *out, uint32_t field, uint64_t value)
{
    lac_proto_varint(out, (uint64_t)field << 3);
    lac_proto_varint(out, value);
}

static inline void lac_proto_int(struct lac_buffer *out, uint32_t field, int64_t value)
{
    lac_proto_uint(out, field, (uint64_t)value);
}

static inline void lac_proto_fixed64(struct lac_buffer *out, uint32_t field, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    lac_proto_varint(out, ((uint64_t)field << 3) | 1);
    lac_buffer_add(out, bytes, sizeof(bytes));
}

static inline void lac_proto_double(struct lac_buffer *out, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    lac_proto_fixed64(out, field, bits);
}

static inline void lac_proto_bytes(struct lac_buffer *out, uint32_t field, const void *bytes,
                                   size_t size_bytes)
{
    lac_proto_varint(out, ((uint64_t)field << 3) | 2);
    lac_proto_varint(out, size_bytes);
    lac_buffer_add(out, bytes, size_bytes);
}

static inline void lac_proto_text(struct lac_buffer *out, uint32_t field, const char *text)
{
    lac_proto_bytes(out, field, text, strlen(text));
}

/** A message that was written into `message`, which is empty afterwards. Its failure sticks. */
static inline void lac_proto_message(struct lac_buffer *out, uint32_t field,
                                     struct lac_buffer *message)
{
    lac_proto_bytes(out, field, message->bytes != NULL ? message->bytes : "", message->size_bytes);
    out->status = out->status ? out->status : message->status;
    message->size_bytes = 0;
}

#endif
