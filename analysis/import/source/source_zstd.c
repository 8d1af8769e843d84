/* zstd, streaming, several frames in a row. */

#include "analysis/import/source/source.h"
#include "analysis/import/source/source_private.h"
#include "analysis/model/status.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* The largest window a frame may ask for: 128 MiB, as `zstd -d` allows without --long. */
enum { WINDOW_LOG_MAX = 27 };

/* A frame's header up to the byte that says how large its window is. */
enum { WINDOW_AT = 5, HEAD_BYTES = WINDOW_AT + 1 };

struct zstd_source {
    struct lac_source base;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t hint; /**< 0 between frames */
    bool ended;
    uint8_t head[HEAD_BYTES]; /**< the beginning of the frame that is read */
    size_t head_size;
    uint8_t input[LAC_SOURCE_INPUT_BYTES];
};

static void note_damage(struct zstd_source *zstd, const char *what)
{
    zstd->ended = true;
    (void)snprintf(zstd->base.damage, sizeof(zstd->base.damage), "%s", what);
}

/* Remember how the frame began: an error says less than its header. */
static void take_head(struct zstd_source *zstd)
{
    if (zstd->hint == 0) {
        zstd->head_size = 0;
    }
    for (size_t at = zstd->in.pos; zstd->head_size < HEAD_BYTES && at < zstd->in.size; at++) {
        zstd->head[zstd->head_size++] = zstd->input[at];
    }
}

/* The window that the frame wants, in MiB, rounded up; 0: it does not say. */
static uint64_t window_mib(const struct zstd_source *zstd)
{
    bool has_size = zstd->head_size == HEAD_BYTES && (zstd->head[WINDOW_AT - 1] & 0x20) == 0;
    uint64_t base = has_size ? (uint64_t)1 << (10 + (zstd->head[WINDOW_AT] >> 3)) : 0;
    uint64_t bytes = base + base / 8 * (zstd->head[WINDOW_AT] & 7);
    return (bytes + (1 << 20) - 1) >> 20;
}

/* What stands in the way. LAC_OK: it was noted, and what came before it is read */
static enum lac_status take_error(struct zstd_source *zstd, size_t code, struct lac_error *reterr)
{
    char text[32] = "";
    switch ((int)ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    case ZSTD_error_frameParameter_windowTooLarge:
        if (window_mib(zstd) > 0) {
            (void)snprintf(text, sizeof(text), "of %" PRIu64 " MiB ", window_mib(zstd));
        }
        (void)snprintf(zstd->base.damage, sizeof(zstd->base.damage),
                       "the zstd data needs a window %sand at most %d MiB are allowed: unpack it "
                       "first (zstd -d --long=31)",
                       text, 1 << (WINDOW_LOG_MAX - 20));
        zstd->ended = true;
        break;
    case ZSTD_error_dictionary_wrong:
        note_damage(zstd, "the zstd data needs the dictionary it was packed with: unpack it first "
                          "(zstd -d -D DICTIONARY)");
        break;
    case ZSTD_error_checksum_wrong:
        note_damage(zstd, "the zstd checksum does not match the data");
        break;
    case ZSTD_error_prefix_unknown:
        note_damage(zstd, "bytes after the end of the zstd data that are not zstd");
        break;
    default:
        note_damage(zstd, "the zstd data is damaged");
    }
    return LAC_OK;
}

static enum lac_status zstd_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                 size_t *ret_size, struct lac_error *reterr)
{
    struct zstd_source *zstd = (struct zstd_source *)self;
    ZSTD_outBuffer out = {buffer, capacity, 0};
    while (out.pos == 0 && !zstd->ended) {
        bool at_end = false;
        if (zstd->in.pos == zstd->in.size) {
            size_t size = 0;
            enum lac_status status =
                lac_source_read(self->inner, zstd->input, sizeof(zstd->input), &size, reterr);
            if (status != LAC_OK) {
                return status;
            }
            zstd->in = (ZSTD_inBuffer){zstd->input, size, 0};
            at_end = size == 0;
        }
        if (at_end && zstd->hint == 0) {
            zstd->ended = true;
            break;
        }
        take_head(zstd);
        size_t hint = ZSTD_decompressStream(zstd->stream, &out, &zstd->in);
        if (ZSTD_isError(hint)) {
            enum lac_status status = take_error(zstd, hint, reterr);
            if (status != LAC_OK) {
                return status;
            }
        } else if (at_end && out.pos == 0) {
            note_damage(zstd, "the zstd data ends too early");
        } else {
            zstd->hint = hint;
        }
    }
    *ret_size = out.pos;
    return lac_source_count_expanded(self, out.pos, reterr);
}

static void zstd_done(struct lac_source *self)
{
    ZSTD_freeDStream(((struct zstd_source *)self)->stream);
}

enum lac_status lac_source_open_zstd(struct lac_source *inner, struct lac_source **ret_source,
                                     struct lac_error *reterr)
{
    struct zstd_source *zstd = calloc(1, sizeof(*zstd));
    ZSTD_DStream *stream = zstd != NULL ? ZSTD_createDStream() : NULL;
    if (stream == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        ZSTD_freeDStream(stream);
        free(zstd);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    zstd->base.read = zstd_read;
    zstd->base.done = zstd_done;
    zstd->base.inner = inner;
    zstd->base.budget = inner->budget;
    zstd->stream = stream;
    *ret_source = &zstd->base;
    return LAC_OK;
}
