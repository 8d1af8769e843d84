#include "server/ingest/recording_tar.h"

#include "analysis/model/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* POSIX.1-1988 ustar, the fields that we fill. */
enum {
    BLOCK_BYTES = 512,
    NAME_BYTES = 100,
    MODE_AT = 100,
    SIZE_AT = 124,
    TIME_AT = 136,
    CHECKSUM_AT = 148,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    COPY_BYTES = 1 << 20
};

static enum lac_status write_all(int fd, const void *bytes, size_t size_bytes,
                                 struct lac_error *reterr)
{
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t written = write(fd, (const char *)bytes + done, size_bytes - done);

        if (written < 0 && errno != EINTR) {
            return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s",
                            strerror(errno));
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return LAC_OK;
}

static enum lac_status write_header(int out, const char *name, uint64_t size_bytes,
                                    struct lac_error *reterr)
{
    char block[BLOCK_BYTES] = {0};
    unsigned sum = 0;

    memcpy(block, name, strlen(name));
    memcpy(block + MODE_AT, "0000600", 7);
    (void)snprintf(block + SIZE_AT, 12, "%011" PRIo64, size_bytes);
    memcpy(block + TIME_AT, "00000000000", 11);
    memset(block + CHECKSUM_AT, ' ', 8);
    block[TYPE_AT] = '0';
    memcpy(block + MAGIC_AT, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++) {
        sum += (unsigned char)block[i];
    }
    (void)snprintf(block + CHECKSUM_AT, 8, "%06o", sum);
    return write_all(out, block, sizeof block, reterr);
}

static enum lac_status copy_file(int in, int out, uint64_t size_bytes, char *buffer,
                                 struct lac_error *reterr)
{
    static const char zeros[BLOCK_BYTES];
    uint64_t left = size_bytes;
    enum lac_status status = LAC_OK;

    while (left > 0 && status == LAC_OK) {
        const ssize_t got = read(in, buffer, left < COPY_BYTES ? (size_t)left : COPY_BYTES);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return lac_fail(reterr, LAC_ERR_IO, 0,
                            "a file of the recording changed while it was read");
        }
        status = write_all(out, buffer, (size_t)got, reterr);
        left -= (uint64_t)got;
    }
    return status == LAC_OK ? write_all(out, zeros, (size_t)(-size_bytes % BLOCK_BYTES), reterr)
                            : status;
}

static enum lac_status add_file(int folder, const char *name, int out, char *buffer,
                                struct lac_error *reterr)
{
    const int in = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat file;
    enum lac_status status;

    if (in < 0 || fstat(in, &file) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot read %s: %s", name, strerror(errno));
    } else if ((uint64_t)file.st_size >= (uint64_t)1 << 33 || strlen(name) > NAME_BYTES) {
        status = lac_fail(reterr, LAC_ERR_LIMIT, 0, "%s does not fit into an archive", name);
    } else {
        status = write_header(out, name, (uint64_t)file.st_size, reterr);
        if (status == LAC_OK) {
            status = copy_file(in, out, (uint64_t)file.st_size, buffer, reterr);
        }
    }
    if (in >= 0) {
        (void)close(in);
    }
    return status;
}

static int is_member(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN);
}

static enum lac_status add_all(const char *path, struct dirent **entries, int count, int out,
                               struct lac_error *reterr)
{
    static const char end[2 * BLOCK_BYTES];
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *const buffer = malloc(COPY_BYTES);
    enum lac_status status = LAC_OK;

    if (folder < 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot open the folder: %s", strerror(errno));
    } else if (buffer == NULL) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (int i = 0; folder >= 0 && i < count && status == LAC_OK; i++) {
        status = add_file(folder, entries[i]->d_name, out, buffer, reterr);
    }
    if (status == LAC_OK) {
        status = write_all(out, end, sizeof end, reterr);
    }
    free(buffer);
    if (folder >= 0) {
        (void)close(folder);
    }
    return status;
}

enum lac_status lac_recording_tar(const char *folder, const char *tar_path,
                                  struct lac_error *reterr)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_member, alphasort);
    enum lac_status status;
    int out;

    if (count <= 0) {
        free(entries);
        return count == 0
                   ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "the folder holds no recording")
                   : lac_fail(reterr, LAC_ERR_IO, 0, "cannot open the folder: %s", strerror(errno));
    }
    out = open(tar_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    status = out >= 0 ? add_all(folder, entries, count, out, reterr)
                      : lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s",
                                 strerror(errno));
    if (out >= 0 && close(out) != 0 && status == LAC_OK) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s", strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
    return status;
}
