#include "analysis/import/spool_archive.h"

#include "analysis/import/import.h"
#include "analysis/import/source.h"
#include "analysis/import/spool_import.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 256 * 1024 };

bool lac_spool_archive_is_spool(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 8 && memcmp(head, LAC_SPOOL_MAGIC, 8) == 0;
}

static enum lac_status make_folder(struct lac_spool_archive *archive, const char *parent,
                                   struct lac_error *reterr)
{
    const char *place = parent != NULL ? parent : getenv("TMPDIR");

    if (place == NULL || place[0] == '\0') {
        place = "/tmp";
    }
    if ((size_t)snprintf(archive->folder, sizeof archive->folder, "%s/lacuna-spools-XXXXXX",
                         place) >= sizeof archive->folder ||
        mkdtemp(archive->folder) == NULL) {
        archive->folder[0] = '\0';
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make a folder for the spools in %.200s: %s",
                        place, strerror(errno));
    }
    return LAC_OK;
}

static bool write_all(int fd, const uint8_t *bytes, size_t size_bytes)
{
    while (size_bytes > 0) {
        const ssize_t put = write(fd, bytes, size_bytes);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        bytes += put;
        size_bytes -= (size_t)put;
    }
    return true;
}

static enum lac_status copy(struct lac_source *source, int fd, struct lac_error *reterr)
{
    uint8_t *const buffer = malloc(COPY_BYTES);
    enum lac_status status =
        buffer != NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    size_t got = 1;

    while (status == LAC_OK && got > 0) {
        status = lac_source_read(source, buffer, COPY_BYTES, &got, reterr);
        if (status == LAC_OK && !write_all(fd, buffer, got)) {
            status =
                lac_fail(reterr, LAC_ERR_IO, 0, "cannot lay out the spools: %s", strerror(errno));
        }
    }
    free(buffer);
    return status;
}

/* Members are numbered: their own names are a stranger's, and may stand twice. */
void lac_spool_archive_path(const struct lac_spool_archive *archive, unsigned number, char *out)
{
    (void)snprintf(out, LAC_SPOOL_ARCHIVE_PATH_BYTES, "%s/%08u.spool", archive->folder, number);
}

/* A new, empty one. */
static enum lac_status create_spool(struct lac_spool_archive *archive, const char *parent,
                                    int *ret_fd, struct lac_error *reterr)
{
    char path[LAC_SPOOL_ARCHIVE_PATH_BYTES];
    enum lac_status status =
        archive->folder[0] != '\0' ? LAC_OK : make_folder(archive, parent, reterr);

    if (status != LAC_OK) {
        return status;
    }
    lac_spool_archive_path(archive, archive->count, path);
    archive->count++;
    *ret_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *ret_fd >= 0
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, 0, "cannot lay out the spools: %s", strerror(errno));
}

enum lac_status lac_spool_archive_new(struct lac_spool_archive *archive, const char *parent,
                                      unsigned *ret_number, struct lac_error *reterr)
{
    int fd = -1;
    const enum lac_status status = create_spool(archive, parent, &fd, reterr);

    if (status == LAC_OK) {
        (void)close(fd);
        *ret_number = archive->count - 1;
    }
    return status;
}

enum lac_status lac_spool_archive_add(struct lac_spool_archive *archive, const char *parent,
                                      struct lac_source *source, struct lac_error *reterr)
{
    int fd = -1;
    enum lac_status status = create_spool(archive, parent, &fd, reterr);

    if (status != LAC_OK) {
        return status;
    }
    status = copy(source, fd, reterr);
    if (close(fd) != 0 && status == LAC_OK) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot lay out the spools: %s", strerror(errno));
    }
    return status;
}

enum lac_status lac_spool_archive_import(const struct lac_spool_archive *archive,
                                         const struct lac_import_options *options, const char *name,
                                         lac_import_sink sink, void *context,
                                         struct lac_error *reterr)
{
    struct lac_import_options named = *options;

    named.name = name;
    return lac_spool_import(archive->folder, &named, sink, context, reterr);
}

void lac_spool_archive_done(struct lac_spool_archive *archive)
{
    char path[LAC_SPOOL_ARCHIVE_PATH_BYTES];

    if (archive->folder[0] == '\0') {
        return;
    }
    for (unsigned i = 0; i < archive->count; i++) {
        lac_spool_archive_path(archive, i, path);
        (void)unlink(path);
    }
    (void)rmdir(archive->folder);
    archive->folder[0] = '\0';
    archive->count = 0;
}
