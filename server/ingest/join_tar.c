#include "server/ingest/join_tar.h"

#include "analysis/import/import_join.h"
#include "analysis/import/join/join_models.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "collector/base/tar.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/ingest/original.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20 };

/** Where the archive goes: a file, or an upload. */
struct join_out {
    int fd;
    struct lac_upload *upload; /**< NULL: to fd */
    struct lac_error *reterr;
};

static enum lac_status put(const struct join_out *out, const void *bytes, size_t size_bytes)
{
    if (out->upload != NULL) {
        return lac_upload_write(out->upload, bytes, size_bytes, out->reterr);
    }
    return lac_write_full(out->fd, bytes, size_bytes)
               ? LAC_OK
               : lac_fail(out->reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s",
                          strerror(errno));
}

static enum lac_status put_padding(const struct join_out *out, uint64_t size_bytes)
{
    static const uint8_t zeros[LAC_TAR_BLOCK_BYTES];
    return put(out, zeros, (size_t)lac_tar_padding(size_bytes));
}

static enum lac_status put_end(const struct join_out *out)
{
    static const uint8_t zeros[2 * LAC_TAR_BLOCK_BYTES];
    return put(out, zeros, sizeof(zeros));
}

static enum lac_status put_header(const struct join_out *out, uint32_t member, uint64_t size_bytes)
{
    uint8_t block[LAC_TAR_BLOCK_BYTES];
    char name[32]; /* the list has the real one: here it would have to be short and plain */
    (void)snprintf(name, sizeof(name), "file-%u", member);
    lac_tar_header_make(block, member == 0 ? LAC_JOIN_MEMBER_NAME : name, '0', size_bytes);
    return put(out, block, sizeof(block));
}

static enum lac_status put_list(const struct join_out *out, const struct lac_join_entry *entries,
                                uint32_t count)
{
    char *text = malloc(LAC_JOIN_TEXT_MAX);
    if (text == NULL) {
        return lac_fail(out->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    size_t size = lac_join_list_write(entries, count, text, LAC_JOIN_TEXT_MAX);
    enum lac_status status =
        size > 0 ? put_header(out, 0, size)
                 : lac_fail(out->reterr, LAC_ERR_LIMIT, 0, "too many files are joined");
    if (status == LAC_OK) {
        status = put(out, text, size);
    }
    free(text);
    return status == LAC_OK ? put_padding(out, size) : status;
}

/* A file as a member: as long as it was when it was opened. */
static enum lac_status put_file(const struct join_out *out, uint32_t member, const char *path)
{
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint8_t *buffer = malloc(COPY_BYTES);
    enum lac_status status = LAC_OK;
    if (buffer == NULL) {
        status = lac_fail(out->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else if (fd < 0 || fstat(fd, &st) != 0) {
        status = lac_fail(out->reterr, LAC_ERR_IO, 0, "%.120s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = lac_fail(out->reterr, LAC_ERR_IO, 0, "%.120s is no file", path);
    }
    const uint64_t size = status == LAC_OK ? (uint64_t)st.st_size : 0;
    if (status == LAC_OK) {
        status = put_header(out, member, size);
    }
    for (uint64_t at = 0; at < size && status == LAC_OK;) {
        size_t wanted = size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES;
        int64_t got = lac_read_full_at(fd, buffer, wanted, at);
        if (got != (int64_t)wanted) {
            status = lac_fail(out->reterr, LAC_ERR_IO, 0, "%.120s cannot be read: %s", path,
                              got < 0 ? strerror(errno) : "it became shorter meanwhile");
        } else {
            status = put(out, buffer, wanted);
        }
        at += wanted;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(buffer);
    return status == LAC_OK ? put_padding(out, size) : status;
}

enum lac_status lac_join_tar(const struct lac_join_file *files, uint32_t count, const char *path,
                             struct lac_error *reterr)
{
    assert(files != NULL && path != NULL);
    struct join_out out = {.reterr = reterr};
    struct lac_join_entry *entries = calloc(count, sizeof(*entries));
    if (entries == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i].has_offset = files[i].has_offset;
        entries[i].offset_ns = files[i].offset_ns;
        (void)snprintf(entries[i].name, sizeof(entries[i].name), "%s", files[i].name);
    }
    out.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    enum lac_status status = count > LAC_JOIN_MEMBERS_MAX
                                 ? lac_fail(reterr, LAC_ERR_LIMIT, 0,
                                            "more than %d files are joined", LAC_JOIN_MEMBERS_MAX)
                             : out.fd < 0
                                 ? lac_fail(reterr, LAC_ERR_IO, 0,
                                            "cannot write to the data folder: %s", strerror(errno))
                                 : put_list(&out, entries, count);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = put_file(&out, i + 1, files[i].path);
    }
    if (status == LAC_OK) {
        status = put_end(&out);
    }
    if (out.fd >= 0 && close(out.fd) != 0 && status == LAC_OK) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s", strerror(errno));
    }
    free(entries);
    return status;
}

bool lac_join_seconds(const char *text, int64_t *ret_ns)
{
    const bool is_negative = text[0] == '-';
    const char *at = text + (is_negative || text[0] == '+' ? 1 : 0);
    int64_t ns = 0;
    int digits = 0;
    int behind = -1; /* digits behind the point, -1: no point yet */
    for (; *at != '\0' && digits < 18; at++) {
        if (*at == '.' && behind < 0) {
            behind = 0;
        } else if (*at >= '0' && *at <= '9') {
            digits++;
            if (behind < 9) { /* less than a ns is left out */
                ns = ns * 10 + (*at - '0');
                behind += behind >= 0 ? 1 : 0;
            }
        } else {
            return false;
        }
    }
    if (*at != '\0' || digits == 0) {
        return false;
    }
    for (int i = behind < 0 ? 0 : behind; i < 9; i++) {
        if (ns > LAC_TIME_MAX_NS) {
            return false;
        }
        ns *= 10;
    }
    *ret_ns = is_negative ? -ns : ns;
    return ns <= LAC_TIME_MAX_NS;
}

/* ---- uploads ---- */

enum lac_status lac_join_upload_begin(struct lac_upload *upload,
                                      const struct lac_join_entry entries[2], uint64_t size_bytes,
                                      struct lac_error *reterr)
{
    const struct join_out out = {.fd = -1, .upload = upload, .reterr = reterr};
    enum lac_status status = put_list(&out, entries, 2);
    return status == LAC_OK ? put_header(&out, 1, size_bytes) : status;
}

enum lac_status lac_join_upload_finish(struct lac_upload *upload, uint64_t size_bytes,
                                       const char *original_path, struct lac_error *reterr)
{
    const struct join_out out = {.fd = -1, .upload = upload, .reterr = reterr};
    char path[4096 + 32];
    uint8_t sha256[LAC_SHA256_SIZE];
    uint64_t original_bytes = 0;
    enum lac_status status = put_padding(&out, size_bytes);
    (void)snprintf(path, sizeof(path), "%s/joined", upload->staging.path);
    if (status == LAC_OK) {
        status = lac_original_unpack(original_path, path, sha256, &original_bytes, reterr);
    }
    if (status == LAC_OK) {
        status = put_file(&out, 2, path);
    }
    (void)unlink(path);
    return status == LAC_OK ? put_end(&out) : status;
}
