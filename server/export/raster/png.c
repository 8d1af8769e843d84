#include "server/export/raster/png.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/raster/canvas.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FILTER_UP = 2 };

static void put_u32(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)(value >> 24);
    out[1] = (uint8_t)(value >> 16);
    out[2] = (uint8_t)(value >> 8);
    out[3] = (uint8_t)value;
}

/** @param bytes with room for the type before them: bytes[-4] */
static void put_chunk(struct lac_buffer *out, const char *type, uint8_t *bytes, uint32_t size_bytes)
{
    uint8_t word[4];

    memcpy(bytes - 4, type, 4);
    put_u32(word, size_bytes);
    lac_buffer_add(out, word, sizeof(word));
    lac_buffer_add(out, bytes - 4, (size_t)size_bytes + 4);
    put_u32(word, crc32_gzip_refl(0, bytes - 4, (uint64_t)size_bytes + 4));
    lac_buffer_add(out, word, sizeof(word));
}

/** Each row as the difference from the one above: rows of a drawing are much alike. */
static void filter(const struct lac_canvas *canvas, uint8_t *out)
{
    const size_t row_bytes = (size_t)canvas->width_px * 3;

    for (uint32_t row = 0; row < canvas->height_px; row++) {
        const uint8_t *now = canvas->rgb + row * row_bytes;

        *out++ = row > 0 ? FILTER_UP : 0;
        for (size_t i = 0; i < row_bytes; i++) {
            *out++ = (uint8_t)(now[i] - (row > 0 ? now[i - row_bytes] : 0));
        }
    }
}

/** @return bytes written, 0: it did not fit */
static uint32_t deflate(uint8_t *in, uint32_t in_bytes, uint8_t *level_buffer, uint8_t *out,
                        uint32_t capacity_bytes)
{
    struct isal_zstream stream;

    isal_deflate_init(&stream);
    stream.level = 1;
    stream.level_buf = level_buffer;
    stream.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    stream.gzip_flag = IGZIP_ZLIB;
    stream.end_of_stream = 1;
    stream.flush = NO_FLUSH;
    stream.next_in = in;
    stream.avail_in = in_bytes;
    stream.next_out = out;
    stream.avail_out = capacity_bytes;
    return isal_deflate(&stream) == COMP_OK && stream.internal_state.state == ZSTATE_END
               ? stream.total_out
               : 0;
}

enum lac_status lac_png_write(struct lac_buffer *out, const struct lac_canvas *canvas)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const uint32_t raw_bytes = canvas->height_px * (canvas->width_px * 3 + 1);
    const uint32_t packed_max = raw_bytes + raw_bytes / 8 + 1024;
    uint8_t *raw = malloc(raw_bytes);
    uint8_t *packed = malloc((size_t)packed_max + 4);
    uint8_t *level_buffer = malloc(ISAL_DEF_LVL1_DEFAULT);
    uint32_t size_bytes = 0;

    if (raw != NULL && packed != NULL && level_buffer != NULL) {
        filter(canvas, raw);
        size_bytes = deflate(raw, raw_bytes, level_buffer, packed + 4, packed_max);
    }
    if (size_bytes > 0) {
        uint8_t head[4 + 13] = {0};
        uint8_t end[4];

        put_u32(head + 4, canvas->width_px);
        put_u32(head + 8, canvas->height_px);
        head[12] = 8; /* bits */
        head[13] = 2; /* red, green, blue */
        lac_buffer_add(out, signature, sizeof(signature));
        put_chunk(out, "IHDR", head + 4, 13);
        put_chunk(out, "IDAT", packed + 4, size_bytes);
        put_chunk(out, "IEND", end + 4, 0);
    }
    free(raw);
    free(packed);
    free(level_buffer);
    return size_bytes > 0 ? out->status : LAC_ERR_NOMEM;
}
