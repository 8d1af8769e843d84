/* Integers as byte planes: the layer below the columns of a chunk. */

#include "analysis/model/chunk_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <string.h>

/* Words of planes are copied as they are; a port to a big-endian machine swaps them. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "planes are little endian");

enum {
    HEAD_WIDTH = 0x0f,   /* bytes a value; 0: all are equal */
    HEAD_DIVISOR = 0x10, /* a common divisor follows */

    PLANE_CONSTANT = 0,
    PLANE_RAW = 1,
    PLANE_ZSTD = 2,

    RAW_BELOW = 64, /* a frame would not be much smaller, and starting one takes time */
};

enum lac_status lac_chunk_put_byte(struct lac_chunk_codec *codec, uint8_t byte)
{
    enum lac_status status = LAC_GROW(codec->out, &codec->out_capacity, codec->out_size + 1);

    if (status == LAC_OK) {
        codec->out[codec->out_size++] = byte;
    }
    return status;
}

enum lac_status lac_chunk_put_varint(struct lac_chunk_codec *codec, uint64_t value)
{
    enum lac_status status = LAC_GROW(codec->out, &codec->out_capacity, codec->out_size + 10);

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
    enum lac_status status = LAC_GROW(codec->out, &codec->out_capacity, codec->out_size + count);

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
 * multiples of 512 bytes. Ends at the first value that is not a multiple, so noise is cheap.
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

/* What the values have in common. Blocks of fixed length: compilers make vectors of them. */
struct bits {
    uint64_t any;     /* bits that are set in some value */
    uint64_t differs; /* bits that are not the same in all */
};

static struct bits bits_of(const uint64_t *values, uint64_t padded)
{
    uint64_t any[LAC_CHUNK_BLOCK] = {0};
    uint64_t differs[LAC_CHUNK_BLOCK] = {0};
    uint64_t first = values[0];
    struct bits bits = {0};

    for (uint64_t i = 0; i < padded; i += LAC_CHUNK_BLOCK) {
        for (uint64_t j = 0; j < LAC_CHUNK_BLOCK; j++) {
            any[j] |= values[i + j];
            differs[j] |= values[i + j] ^ first;
        }
    }
    for (uint64_t j = 0; j < LAC_CHUNK_BLOCK; j++) {
        bits.any |= any[j];
        bits.differs |= differs[j];
    }
    return bits;
}

/*
 * Two planes at a time: bytes shift / 8 and shift / 8 + 1 of each value. Eight values make one word
 * of each plane by three rounds of folding, in registers; byte by byte takes three times as long.
 */
static void take_planes(const uint64_t *values, uint64_t padded, uint32_t shift, uint8_t *low,
                        uint8_t *high)
{
    static const uint64_t low_bytes = UINT64_C(0x00ff00ff00ff00ff);

    for (uint64_t i = 0; i < padded; i += 8) {
        uint64_t a[4];
        uint64_t even; /* 16 bits of the values 0, 2, 4, 6 */
        uint64_t odd;
        uint64_t word;

        for (uint64_t j = 0; j < 4; j++) {
            a[j] = (values[i + j] >> shift & 0xffff) | (values[i + j + 4] >> shift & 0xffff) << 32;
        }
        even = a[0] | a[2] << 16;
        odd = a[1] | a[3] << 16;
        word = (even & low_bytes) | (odd & low_bytes) << 8;
        memcpy(low + i, &word, sizeof(word));
        word = (even >> 8 & low_bytes) | (odd & ~low_bytes);
        memcpy(high + i, &word, sizeof(word));
    }
}

static void put_back_plane(uint64_t *values, uint64_t count, uint32_t shift, const uint8_t *plane)
{
    uint64_t whole = count - count % LAC_CHUNK_BLOCK;

    for (uint64_t i = 0; i < whole; i += LAC_CHUNK_BLOCK) {
        for (uint64_t j = 0; j < LAC_CHUNK_BLOCK; j++) {
            values[i + j] |= (uint64_t)plane[i + j] << shift;
        }
    }
    for (uint64_t i = whole; i < count; i++) {
        values[i] |= (uint64_t)plane[i] << shift;
    }
}

static uint64_t padded_count(uint64_t count)
{
    return (count + LAC_CHUNK_BLOCK - 1) / LAC_CHUNK_BLOCK * LAC_CHUNK_BLOCK;
}

static enum lac_status put_plane(struct lac_chunk_codec *codec, const uint8_t *plane,
                                 uint64_t count)
{
    enum lac_status status;
    size_t size;

    if (memcmp(plane, plane + 1, count - 1) == 0) { /* every byte equals the next */
        status = lac_chunk_put_byte(codec, PLANE_CONSTANT);
        return status == LAC_OK ? lac_chunk_put_byte(codec, plane[0]) : status;
    }
    if (count >= RAW_BELOW) {
        status = LAC_GROW(codec->frame, &codec->frame_capacity, ZSTD_compressBound(count));
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

enum lac_status lac_chunk_put_values(struct lac_chunk_codec *codec, uint64_t count, bool divide)
{
    uint64_t *values = codec->values;
    uint64_t padded = padded_count(count);
    uint64_t divisor;
    struct bits bits;
    uint32_t width = 0;
    enum lac_status status;

    if (count == 0) {
        return LAC_OK;
    }
    for (uint64_t i = count; i < padded; i++) {
        values[i] = values[0];
    }
    bits = bits_of(values, padded);
    if (bits.differs == 0) {
        status = lac_chunk_put_byte(codec, 0);
        return status == LAC_OK ? lac_chunk_put_varint(codec, values[0]) : status;
    }
    divisor = divide ? common_divisor(values, count) : 1;
    for (uint64_t i = 0; divisor != 1 && i < padded; i++) {
        values[i] /= divisor;
    }
    bits.any /= divisor; /* not less than the largest value divided */
    while (width < 8 && bits.any >> (8 * width) != 0) {
        width++;
    }
    status = lac_chunk_put_byte(codec, (uint8_t)(width | (divisor != 1 ? HEAD_DIVISOR : 0u)));
    if (status == LAC_OK && divisor != 1) {
        status = lac_chunk_put_varint(codec, divisor);
    }
    if (status == LAC_OK) {
        status = LAC_GROW(codec->plane, &codec->plane_capacity, 2 * padded);
    }
    for (uint32_t byte = 0; byte < width && status == LAC_OK; byte++) {
        if (byte % 2 == 0) {
            take_planes(values, padded, 8 * byte, codec->plane, codec->plane + padded);
        }
        status = put_plane(codec, codec->plane + byte % 2 * padded, count);
    }
    return status;
}

/* One plane of `count` bytes: its address, or NULL when the bytes are damaged. */
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
    uint8_t head = count == 0 ? 0 : lac_chunk_get_byte(reader);
    uint32_t width = head & HEAD_WIDTH;
    uint64_t divisor = head & HEAD_DIVISOR ? lac_chunk_get_varint(reader) : 1;
    uint64_t value = width == 0 && count != 0 ? lac_chunk_get_varint(reader) : 0;

    reader->failed = reader->failed || width > 8 || head > (HEAD_DIVISOR | HEAD_WIDTH);
    if (LAC_GROW(codec->plane, &codec->plane_capacity, count) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    if (value == 0) {
        memset(values, 0, count * sizeof(*values));
    }
    for (uint64_t i = 0; value != 0 && i < count; i++) {
        values[i] = value;
    }
    for (uint32_t byte = 0; byte < width && !reader->failed; byte++) {
        const uint8_t *plane = get_plane(codec, reader, count);

        if (plane == NULL) {
            reader->failed = true;
        } else {
            put_back_plane(values, count, 8 * byte, plane);
        }
    }
    for (uint64_t i = 0; divisor != 1 && i < count; i++) {
        values[i] *= divisor;
    }
    return LAC_OK;
}
