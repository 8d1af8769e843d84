#include "server/store/trace/column.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { BLOCK_VERSION = 1, BLOCK_HEADER_BYTES = 8, COLUMN_HEADER_BYTES = 8, ZSTD_LEVEL = 1 };

enum lac_status lac_bytes_reserve(struct lac_bytes *bytes, size_t size_bytes)
{
    size_t need;
    size_t capacity = bytes->capacity_bytes > 0 ? bytes->capacity_bytes : 256;
    uint8_t *data;

    if (__builtin_add_overflow(bytes->size_bytes, size_bytes, &need) || need > SIZE_MAX / 2) {
        return LAC_ERR_NOMEM;
    }
    if (need <= bytes->capacity_bytes) {
        return LAC_OK;
    }
    while (capacity < need) {
        capacity *= 2;
    }
    data = realloc(bytes->data, capacity);
    if (data == NULL) {
        return LAC_ERR_NOMEM;
    }
    bytes->data = data;
    bytes->capacity_bytes = capacity;
    return LAC_OK;
}

enum lac_status lac_bytes_append(struct lac_bytes *bytes, const void *data, size_t size_bytes)
{
    enum lac_status status = lac_bytes_reserve(bytes, size_bytes);

    if (status == LAC_OK && size_bytes > 0) {
        memcpy(bytes->data + bytes->size_bytes, data, size_bytes);
        bytes->size_bytes += size_bytes;
    }
    return status;
}

enum lac_status lac_bytes_append_leb(struct lac_bytes *bytes, uint64_t value)
{
    uint8_t text[10];
    size_t length = 0;

    while (value >= 0x80) {
        text[length++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    text[length++] = (uint8_t)value;
    return lac_bytes_append(bytes, text, length);
}

void lac_bytes_done(struct lac_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct lac_bytes){0};
}

bool lac_leb_read(const uint8_t *bytes, size_t size_bytes, size_t *position, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && *position < size_bytes; shift += 7) {
        uint8_t byte = bytes[(*position)++];

        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/*
 * What zstd works with, one of each kind a thread: made anew for each of the thousands of small blobs that
 * a question reads, it takes longer than the blobs.
 */
struct contexts {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
};

static pthread_key_t contexts_key;
static pthread_once_t contexts_once = PTHREAD_ONCE_INIT;
static bool has_contexts_key;

static void contexts_done(void *context)
{
    struct contexts *contexts = context;

    (void)ZSTD_freeCCtx(contexts->compressor);
    (void)ZSTD_freeDCtx(contexts->decompressor);
    free(contexts);
}

static void make_contexts_key(void)
{
    has_contexts_key = pthread_key_create(&contexts_key, contexts_done) == 0;
}

/** Those of this thread, or NULL. */
static struct contexts *contexts_of_thread(void)
{
    struct contexts *contexts;

    (void)pthread_once(&contexts_once, make_contexts_key);
    if (!has_contexts_key) {
        return NULL;
    }
    contexts = pthread_getspecific(contexts_key);
    if (contexts == NULL) {
        contexts = calloc(1, sizeof(*contexts));
        if (contexts != NULL && pthread_setspecific(contexts_key, contexts) != 0) {
            free(contexts);
            contexts = NULL;
        }
    }
    return contexts;
}

enum lac_status lac_zstd_pack(const void *data, size_t size_bytes, int level, struct lac_bytes *out)
{
    struct contexts *contexts;
    size_t written;

    out->size_bytes = 0;
    if (lac_bytes_reserve(out, ZSTD_compressBound(size_bytes)) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    contexts = contexts_of_thread();
    if (contexts != NULL && contexts->compressor == NULL) {
        contexts->compressor = ZSTD_createCCtx();
    }
    if (contexts == NULL || contexts->compressor == NULL) {
        return LAC_ERR_NOMEM;
    }
    written = ZSTD_compressCCtx(contexts->compressor, out->data, out->capacity_bytes, data,
                                size_bytes, level);
    if (ZSTD_isError(written)) {
        return LAC_ERR_NOMEM; /* with a bound-sized buffer nothing else can go wrong */
    }
    out->size_bytes = written;
    return LAC_OK;
}

enum lac_status lac_zstd_unpack(const void *data, size_t size_bytes, uint64_t raw_size_bytes,
                                uint8_t **ret_data)
{
    unsigned long long content = ZSTD_getFrameContentSize(data, size_bytes);
    struct contexts *contexts;
    uint8_t *raw;

    /* zstd's own frame says the size before anything is allocated; 1:131072 is more than its
     * blocks can express, so a small blob cannot claim gigabytes */
    if (content != raw_size_bytes || raw_size_bytes / 131072 > size_bytes ||
        raw_size_bytes >= SIZE_MAX) {
        return LAC_ERR_CORRUPT;
    }
    raw = malloc((size_t)raw_size_bytes + 1);
    if (raw == NULL) {
        return LAC_ERR_NOMEM;
    }
    contexts = contexts_of_thread();
    if (contexts != NULL && contexts->decompressor == NULL) {
        contexts->decompressor = ZSTD_createDCtx();
    }
    if (contexts == NULL || contexts->decompressor == NULL) {
        free(raw);
        return LAC_ERR_NOMEM;
    }
    if (ZSTD_decompressDCtx(contexts->decompressor, raw, (size_t)raw_size_bytes, data,
                            size_bytes) != raw_size_bytes) {
        free(raw);
        return LAC_ERR_CORRUPT;
    }
    raw[raw_size_bytes] = '\0';
    *ret_data = raw;
    return LAC_OK;
}

enum lac_status lac_zstd_size(const void *data, size_t size_bytes, uint64_t *ret_raw_size_bytes)
{
    unsigned long long content = ZSTD_getFrameContentSize(data, size_bytes);

    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR) {
        return LAC_ERR_CORRUPT;
    }
    *ret_raw_size_bytes = content;
    return LAC_OK;
}

static uint64_t zigzag(uint64_t value)
{
    return (value << 1) ^ (0 - (value >> 63));
}

static uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

static uint8_t width_of(uint64_t bits)
{
    uint8_t width = 0;

    while (bits != 0) {
        width++;
        bits >>= 8;
    }
    return width;
}

/** Byte planes of one column under one coding. @return the width; planes hold width * rows bytes */
static uint8_t to_planes(const int64_t *values, uint32_t row_count, bool delta, uint8_t *planes)
{
    uint64_t bits = 0;
    uint64_t before = 0;
    uint8_t width;

    for (uint32_t i = 0; i < row_count; i++) {
        uint64_t value = (uint64_t)values[i];

        bits |= zigzag(value - before);
        before = delta ? value : 0;
    }
    width = width_of(bits);
    before = 0;
    for (uint32_t i = 0; i < row_count; i++) {
        uint64_t value = (uint64_t)values[i];
        uint64_t coded = zigzag(value - before);

        for (uint8_t w = 0; w < width; w++) {
            planes[(size_t)w * row_count + i] = (uint8_t)(coded >> (8U * w));
        }
        before = delta ? value : 0;
    }
    return width;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8U * i));
    }
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

enum lac_status lac_columns_encode(const int64_t *const *columns, uint32_t column_count,
                                   uint32_t row_count, struct lac_bytes *out)
{
    uint8_t header[BLOCK_HEADER_BYTES] = {BLOCK_VERSION, (uint8_t)column_count};
    size_t directory = out->size_bytes + BLOCK_HEADER_BYTES;
    struct lac_bytes packed[2] = {{0}, {0}};
    uint8_t *planes = malloc((size_t)row_count * 8 + 1);
    enum lac_status status = planes != NULL ? LAC_OK : LAC_ERR_NOMEM;

    assert(column_count <= LAC_COLUMN_BLOCK_COLUMNS);
    put_u32(header + 4, row_count);
    if (status == LAC_OK) {
        status = lac_bytes_append(out, header, sizeof(header));
    }
    for (uint32_t c = 0; c < column_count && status == LAC_OK; c++) {
        static const uint8_t empty[COLUMN_HEADER_BYTES];

        status = lac_bytes_append(out, empty, sizeof(empty));
    }
    for (uint32_t c = 0; c < column_count && status == LAC_OK; c++) {
        uint8_t width[2];
        uint8_t best = 0;
        uint8_t *entry;

        for (uint8_t delta = 0; delta < 2 && status == LAC_OK; delta++) {
            width[delta] = to_planes(columns[c], row_count, delta == 1, planes);
            packed[delta].size_bytes = 0;
            if (width[delta] > 0) {
                status = lac_zstd_pack(planes, (size_t)width[delta] * row_count, ZSTD_LEVEL,
                                       &packed[delta]);
            }
        }
        if (status != LAC_OK) {
            break;
        }
        best = packed[1].size_bytes < packed[0].size_bytes ? 1 : 0;
        entry = out->data + directory + (size_t)c * COLUMN_HEADER_BYTES;
        entry[0] = best;
        entry[1] = width[best];
        put_u32(entry + 4, (uint32_t)packed[best].size_bytes);
        status = lac_bytes_append(out, packed[best].data, packed[best].size_bytes);
    }
    lac_bytes_done(&packed[0]);
    lac_bytes_done(&packed[1]);
    free(planes);
    return status;
}

enum { OCTET = 8 };

/** Byte w of value i from byte i of value w: eight values of eight planes at a time. */
static void transpose(uint64_t x[OCTET])
{
    static const uint64_t low_half[] = {UINT64_C(0xFFFFFFFF), UINT64_C(0x0000FFFF0000FFFF),
                                        UINT64_C(0x00FF00FF00FF00FF)};

#pragma GCC unroll 3
    for (unsigned stage = 0; stage < 3; stage++) {
        const unsigned step = OCTET >> (stage + 1);
        const unsigned shift = 8 * step;

#pragma GCC unroll 8
        for (unsigned i = 0; i < OCTET; i++) {
            if ((i & step) == 0) {
                const uint64_t swapped = ((x[i] >> shift) ^ x[i + step]) & low_half[stage];

                x[i + step] ^= swapped;
                x[i] ^= swapped << shift;
            }
        }
    }
}

static void from_planes(const uint8_t *planes, uint8_t width, uint32_t row_count, bool delta,
                        int64_t *values)
{
    const uint64_t keep = delta ? UINT64_MAX : 0;
    uint64_t before = 0;
    uint32_t i = 0;

    for (; i + OCTET <= row_count; i += OCTET) {
        uint64_t coded[OCTET] = {0};

        for (uint8_t w = 0; w < width; w++) {
            memcpy(&coded[w], planes + (size_t)w * row_count + i, sizeof(coded[w]));
            coded[w] = le64toh(coded[w]);
        }
        transpose(coded);
        for (unsigned k = 0; k < OCTET; k++) {
            before = unzigzag(coded[k]) + (before & keep);
            values[i + k] = (int64_t)before;
        }
    }
    for (; i < row_count; i++) {
        uint64_t coded = 0;

        for (uint8_t w = 0; w < width; w++) {
            coded |= (uint64_t)planes[(size_t)w * row_count + i] << (8U * w);
        }
        before = unzigzag(coded) + (before & keep);
        values[i] = (int64_t)before;
    }
}

enum lac_status lac_columns_decode(const uint8_t *bytes, size_t size_bytes, uint32_t column_count,
                                   uint32_t row_count, int64_t *const *columns)
{
    size_t position = BLOCK_HEADER_BYTES + (size_t)column_count * COLUMN_HEADER_BYTES;

    if (size_bytes < position || bytes[0] != BLOCK_VERSION || bytes[1] != column_count ||
        get_u32(bytes + 4) != row_count) {
        return LAC_ERR_CORRUPT;
    }
    for (uint32_t c = 0; c < column_count; c++) {
        const uint8_t *entry = bytes + BLOCK_HEADER_BYTES + (size_t)c * COLUMN_HEADER_BYTES;
        uint32_t stored = get_u32(entry + 4);
        uint8_t *planes = NULL;

        if (entry[0] > 1 || entry[1] > 8 || stored > size_bytes - position) {
            return LAC_ERR_CORRUPT;
        }
        if (columns[c] == NULL) {
            position += stored;
            continue;
        }
        if (entry[1] == 0) {
            memset(columns[c], 0, (size_t)row_count * sizeof(int64_t));
        } else {
            enum lac_status status =
                lac_zstd_unpack(bytes + position, stored, (uint64_t)entry[1] * row_count, &planes);

            if (status != LAC_OK) {
                return status;
            }
            from_planes(planes, entry[1], row_count, entry[0] == 1, columns[c]);
            free(planes);
        }
        position += stored;
    }
    return position == size_bytes ? LAC_OK : LAC_ERR_CORRUPT;
}
