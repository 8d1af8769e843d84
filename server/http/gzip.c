#include "server/http/gzip.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>

enum lac_status lac_gzip(const void *bytes, size_t size_bytes, struct lac_buffer *ret_out)
{
    struct isal_zstream stream;
    /* the library's pointer is not const, though it only reads */
    const union {
        const void *given;
        uint8_t *taken;
    } in = {.given = bytes};
    uint8_t *level_buffer;
    uint8_t *out;

    if (size_bytes < LAC_GZIP_BYTES_MIN || size_bytes > UINT32_MAX / 2) {
        return LAC_ERR_LIMIT;
    }
    /* output as large as the input is not a gain: the compressor stops there */
    out = malloc(size_bytes);
    level_buffer = malloc(ISAL_DEF_LVL1_DEFAULT);
    if (out == NULL || level_buffer == NULL) {
        free(out);
        free(level_buffer);
        return LAC_ERR_NOMEM;
    }
    isal_deflate_init(&stream);
    stream.level = 1;
    stream.level_buf = level_buffer;
    stream.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.flush = NO_FLUSH;
    stream.next_in = in.taken;
    stream.avail_in = (uint32_t)size_bytes;
    stream.next_out = out;
    stream.avail_out = (uint32_t)size_bytes - 1;
    const int result = isal_deflate(&stream);
    free(level_buffer);
    if (result != COMP_OK || stream.internal_state.state != ZSTATE_END) {
        free(out);
        return LAC_ERR_LIMIT;
    }
    ret_out->bytes = (char *)out;
    ret_out->size_bytes = stream.total_out;
    ret_out->capacity_bytes = size_bytes;
    ret_out->status = LAC_OK;
    return LAC_OK;
}
