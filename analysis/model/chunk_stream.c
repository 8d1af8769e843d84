/* Integers as byte planes: the layer below the columns of a chunk. */

#include "analysis/model/chunk_private.h"

#include <string.h>

enum {
    HEAD_WIDTH = 0x0f,   /* bytes a value; 0: all are equal */
    HEAD_DIVISOR = 0x10, /* a common divisor follows */
    HEAD_MINIMUM = 0x20, /* the smallest value follows; it was subtracted */

    PLANE_CONSTANT = 0,
    PLANE_RAW = 1,
    PLANE_ZSTD = 2,

    RAW_BELOW = 64, /* a frame would not be much smaller, and starting one takes its time */
};

enum lac_status lac_chunk_put_byte(struct lac_chunk_codec *codec, uint8_t byte)
{
    enum lac_status status = lac_grow(&codec->out, &codec->out_capacity, codec->out_size + 1, 1);

    if (status == LAC_OK) {
        codec->out[codec->out_size++] = byte;
    }
    return status;
}

enum lac_status lac_chunk_put_varint(struct lac_chunk_codec *codec, uint64_t value)
{
    enum lac_status status = lac_grow(&codec->out, &codec->out_capacity, codec->out_size + 10, 1);

    if (status != LAC_OK) {
        return status;
    }
    while (value >= 0x80) {
        codec->out[codec->out_size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    codec->out[codec->out_size++] = (uint8_t)value;
    return LAC_OK;
}

static enum lac_status put_bytes(struct lac_chunk_codec *codec, const uint8_t *bytes,
                                 uint64_t count)
{
    enum lac_status status =
        lac_grow(&codec->out, &codec->out_capacity, codec->out_size + count, 1);

    if (status == LAC_OK && count != 0) {
        memcpy(codec->out + codec->out_size, bytes, count);
        codec->out_size += count;
    }
    return status;
}

uint8_t lac_chunk_get_byte(struct lac_chunk_reader *reader)
{
    if (reader->at >= reader->size_bytes) {
        reader->failed = true;
        return 0;
    }
    return reader->bytes[reader->at++];
}

uint64_t lac_chunk_get_varint(struct lac_chunk_reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = lac_chunk_get_byte(reader);

        if (shift == 63 && byte > 1) {
            break; /* more than 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    reader->failed = true;
    return 0;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Recorders with coarse clocks leave times that are all multiples of 1000 ns, sizes that are all
 * multiples of 512 bytes. Ends at the first value that spoils it, so noise costs next to nothing.
 */
static uint64_t common_divisor(const uint64_t *values, uint64_t count)
{
    uint64_t divisor = 0;

    for (uint64_t i = 0; i < count && divisor != 1; i++) {
        if (values[i] != 0 && (divisor == 0 || values[i] % divisor != 0)) {
            divisor = gcd(values[i], divisor);
        }
    }
    return divisor == 0 ? 1 : divisor;
}

static enum lac_status put_plane(struct lac_chunk_codec *codec, uint64_t count)
{
    const uint8_t *plane = codec->plane;
    enum lac_status status;
    size_t size;

    if (memcmp(plane, plane + 1, count - 1) == 0) { /* every byte equals the next */
        status = lac_chunk_put_byte(codec, PLANE_CONSTANT);
        return status == LAC_OK ? lac_chunk_put_byte(codec, plane[0]) : status;
    }
    if (count >= RAW_BELOW) {
        status = lac_grow(&codec->frame, &codec->frame_capacity, ZSTD_compressBound(count), 1);
        if (status != LAC_OK) {
            return status;
        }
        size = ZSTD_compress2(codec->compressor, codec->frame, codec->frame_capacity, plane, count);
        if (ZSTD_isError(size)) {
            return LAC_ERR_NOMEM; /* with room for the bound nothing else can fail */
        }
        if (size < count - count / 32) {
            status = lac_chunk_put_byte(codec, PLANE_ZSTD);
            if (status == LAC_OK) {
                status = lac_chunk_put_varint(codec, size);
            }
            return status == LAC_OK ? put_bytes(codec, codec->frame, size) : status;
        }
    }
    status = lac_chunk_put_byte(codec, PLANE_RAW);
    return status == LAC_OK ? put_bytes(codec, plane, count) : status;
}

enum lac_status lac_chunk_put_values(struct lac_chunk_codec *codec, uint64_t count)
{
    uint64_t *values = codec->values;
    uint64_t minimum = UINT64_MAX;
    uint64_t maximum = 0;
    uint64_t divisor;
    uint32_t width = 0;
    enum lac_status status;

    if (count == 0) {
        return LAC_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
        maximum = values[i] > maximum ? values[i] : maximum;
    }
    if (minimum == maximum) {
        status = lac_chunk_put_byte(codec, 0);
        return status == LAC_OK ? lac_chunk_put_varint(codec, minimum) : status;
    }
    if (minimum < 256) {
        minimum = 0; /* rarely saves a plane, and zeroes are what compresses best */
    }
    for (uint64_t i = 0; minimum != 0 && i < count; i++) {
        values[i] -= minimum;
    }
    maximum -= minimum;
    divisor = common_divisor(values, count);
    for (uint64_t i = 0; divisor != 1 && i < count; i++) {
        values[i] /= divisor;
    }
    maximum /= divisor;
    while (width < 8 && maximum >> (8 * width) != 0) {
        width++;
    }
    status = lac_chunk_put_byte(codec, (uint8_t)(width | (divisor != 1 ? HEAD_DIVISOR : 0u) |
                                                 (minimum != 0 ? HEAD_MINIMUM : 0u)));
    if (status == LAC_OK && divisor != 1) {
        status = lac_chunk_put_varint(codec, divisor);
    }
    if (status == LAC_OK && minimum != 0) {
        status = lac_chunk_put_varint(codec, minimum);
    }
    if (status == LAC_OK) {
        status = lac_grow(&codec->plane, &codec->plane_capacity, count, 1);
    }
    for (uint32_t byte = 0; byte < width && status == LAC_OK; byte++) {
        for (uint64_t i = 0; i < count; i++) {
            codec->plane[i] = (uint8_t)(values[i] >> (8 * byte));
        }
        status = put_plane(codec, count);
    }
    return status;
}

/* One plane of `count` bytes: where it lies, or NULL when the bytes are broken. */
static const uint8_t *get_plane(struct lac_chunk_codec *codec, struct lac_chunk_reader *reader,
                                uint64_t count)
{
    uint8_t coding = lac_chunk_get_byte(reader);
    const uint8_t *at;
    uint64_t size = count;

    if (coding == PLANE_CONSTANT) {
        memset(codec->plane, lac_chunk_get_byte(reader), count);
        return codec->plane;
    }
    if (coding == PLANE_ZSTD) {
        size = lac_chunk_get_varint(reader);
    }
    if (coding > PLANE_ZSTD || size > reader->size_bytes - reader->at) {
        return NULL;
    }
    at = reader->bytes + reader->at;
    reader->at += size;
    if (coding == PLANE_RAW) {
        return at;
    }
    if (ZSTD_decompressDCtx(codec->decompressor, codec->plane, count, at, size) != count) {
        return NULL;
    }
    return codec->plane;
}

enum lac_status lac_chunk_get_values(struct lac_chunk_codec *codec, struct lac_chunk_reader *reader,
                                     uint64_t count)
{
    uint64_t *values = codec->values;
    uint64_t divisor = 1;
    uint64_t minimum = 0;
    uint8_t head;
    uint32_t width;

    if (count == 0) {
        return LAC_OK;
    }
    head = lac_chunk_get_byte(reader);
    width = head & HEAD_WIDTH;
    if (width == 0) {
        uint64_t value = lac_chunk_get_varint(reader);

        for (uint64_t i = 0; i < count; i++) {
            values[i] = value;
        }
        return LAC_OK;
    }
    divisor = head & HEAD_DIVISOR ? lac_chunk_get_varint(reader) : 1;
    minimum = head & HEAD_MINIMUM ? lac_chunk_get_varint(reader) : 0;
    reader->failed = reader->failed || width > 8 || head >= 2 * HEAD_MINIMUM;
    if (lac_grow(&codec->plane, &codec->plane_capacity, count, 1) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t byte = 0; byte < width && !reader->failed; byte++) {
        const uint8_t *plane = get_plane(codec, reader, count);

        if (plane == NULL) {
            reader->failed = true;
        } else if (byte == 0) {
            for (uint64_t i = 0; i < count; i++) {
                values[i] = plane[i];
            }
        } else {
            for (uint64_t i = 0; i < count; i++) {
                values[i] |= (uint64_t)plane[i] << (8 * byte);
            }
        }
    }
    if (reader->failed) {
        memset(values, 0, count * sizeof(*values));
    } else if (divisor != 1 || minimum != 0) {
        for (uint64_t i = 0; i < count; i++) {
            values[i] = values[i] * divisor + minimum;
        }
    }
    return LAC_OK;
}
