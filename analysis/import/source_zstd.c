/* zstd, streaming, several frames in a row. */

#include "analysis/import/source.h"
#include "analysis/import/source_private.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

/* The largest window a frame may ask for: 128 MiB, as `zstd -d` allows without --long. */
enum { WINDOW_LOG_MAX = 27 };

struct zstd_source {
    struct lac_source base;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t hint; /**< 0 between frames */
    bool ended;
    uint8_t input[LAC_SOURCE_INPUT_BYTES];
};

static void note_damage(struct zstd_source *zstd, const char *what)
{
    zstd->ended = true;
    (void)snprintf(zstd->base.damage, sizeof zstd->base.damage, "%s", what);
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
                lac_source_read(self->inner, zstd->input, sizeof zstd->input, &size, reterr);
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
        size_t hint = ZSTD_decompressStream(zstd->stream, &out, &zstd->in);
        if (ZSTD_isError(hint)) {
            note_damage(zstd, "the zstd data is damaged");
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
    struct zstd_source *zstd = calloc(1, sizeof *zstd);
    ZSTD_DStream *stream = zstd ? ZSTD_createDStream() : NULL;
    if (!stream ||
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
