/* An original back as it was uploaded, or only its hash. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/ingest/original.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <zstd.h>

struct unpacking {
    int in, out;
    uint8_t *packed, *plain;
    ZSTD_DCtx *zstd;
    struct lac_sha hash;
    uint64_t size_bytes;
    uint64_t read_bytes;
    struct lac_error *reterr;
};

static enum lac_status take(struct unpacking *unpacking, size_t size_bytes)
{
    lac_sha_add(&unpacking->hash, unpacking->plain, size_bytes);
    unpacking->size_bytes += size_bytes;
    if (unpacking->out >= 0 && !lac_write_full(unpacking->out, unpacking->plain, size_bytes)) {
        return lac_fail(unpacking->reterr, LAC_ERR_IO, 0, "cannot unpack the original: %s",
                        strerror(errno));
    }
    return LAC_OK;
}

/** Everything that comes out of `size_bytes` packed ones. @param ret_is_open whether a frame goes
 * on
 */
static enum lac_status feed(struct unpacking *unpacking, size_t size_bytes, bool *ret_is_open)
{
    ZSTD_inBuffer in = {unpacking->packed, size_bytes, 0};
    bool is_full = false; /* the last output was: more may come without input */
    enum lac_status status = LAC_OK;

    while (status == LAC_OK && (in.pos < in.size || is_full)) {
        ZSTD_outBuffer out = {unpacking->plain, ZSTD_DStreamOutSize(), 0};
        size_t hint = ZSTD_decompressStream(unpacking->zstd, &out, &in);

        if (ZSTD_isError(hint)) {
            uint64_t at = unpacking->read_bytes + in.pos;

            return lac_fail(unpacking->reterr, LAC_ERR_CORRUPT, at, "is damaged at byte %llu",
                            (unsigned long long)at);
        }
        *ret_is_open = hint != 0;
        is_full = hint != 0 && out.pos == out.size;
        status = take(unpacking, out.pos);
    }
    return status;
}

static enum lac_status unpack_all(struct unpacking *unpacking)
{
    bool is_open = false;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        ssize_t got = read(unpacking->in, unpacking->packed, ZSTD_DStreamInSize());

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return lac_fail(unpacking->reterr, LAC_ERR_IO, 0, "cannot be read: %s",
                            strerror(errno));
        }
        if (got == 0) {
            break;
        }
        status = feed(unpacking, (size_t)got, &is_open);
        unpacking->read_bytes += (uint64_t)got;
    }
    if (status == LAC_OK && is_open) {
        status = lac_fail(unpacking->reterr, LAC_ERR_CORRUPT, unpacking->read_bytes, "is cut off");
    }
    return status;
}

enum lac_status lac_original_unpack(const char *path, const char *output_path, uint8_t *ret_sha256,
                                    uint64_t *ret_size_bytes, struct lac_error *reterr)
{
    assert(path != NULL && ret_sha256 != NULL && ret_size_bytes != NULL);
    struct unpacking unpacking = {.in = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW),
                                  .out = -1,
                                  .packed = malloc(ZSTD_DStreamInSize()),
                                  .plain = malloc(ZSTD_DStreamOutSize()),
                                  .zstd = ZSTD_createDCtx(),
                                  .reterr = reterr};
    enum lac_status status = LAC_OK;

    lac_sha256_init(&unpacking.hash);
    if (unpacking.in < 0) {
        status = lac_fail(reterr, errno == ENOENT ? LAC_ERR_NOT_FOUND : LAC_ERR_IO, 0,
                          "cannot be opened: %s", strerror(errno));
    } else if (unpacking.packed == NULL || unpacking.plain == NULL || unpacking.zstd == NULL) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else if (output_path != NULL) {
        unpacking.out = open(output_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (unpacking.out < 0) {
            status =
                lac_fail(reterr, LAC_ERR_IO, 0, "cannot unpack the original: %s", strerror(errno));
        }
    }
    if (status == LAC_OK) {
        status = unpack_all(&unpacking);
    }
    if (status == LAC_OK && unpacking.out >= 0 && fsync(unpacking.out) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot unpack the original: %s", strerror(errno));
    }
    lac_sha_end(&unpacking.hash, ret_sha256);
    *ret_size_bytes = unpacking.size_bytes;
    if (unpacking.in >= 0) {
        (void)close(unpacking.in);
    }
    if (unpacking.out >= 0) {
        (void)close(unpacking.out);
        if (status != LAC_OK && output_path != NULL) {
            (void)unlink(output_path);
        }
    }
    (void)ZSTD_freeDCtx(unpacking.zstd);
    free(unpacking.packed);
    free(unpacking.plain);
    return status;
}
