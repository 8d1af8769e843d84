/* A bundle (collector/FORMAT.md): parts of spools, as a running job sent them, laid out as spools.
 */

#include "analysis/import/source.h"
#include "analysis/import/spool_archive.h"
#include "analysis/model/status.h"
#include "lacuna/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 65536, NAMES_STEP = 64 };

/* What the files may have in all: parts leave zeros out, which then take no disk, but time to read.
 */
static const uint64_t HOLES_FREE_BYTES = (uint64_t)1 << 30;
static const uint64_t HOLES_RATIO = 64;

struct bundle_file {
    char *name;
    unsigned number; /* in the archive */
    uint64_t size_bytes;
};

struct bundle {
    struct lac_spool_archive *archive;
    const char *parent;
    struct lac_source *source;
    struct lac_error *reterr;
    struct bundle_file *files;
    uint32_t file_count, file_capacity;
    uint64_t received_bytes;
    uint64_t laid_out_bytes;
    uint8_t *data;
};

bool lac_spool_archive_is_bundle(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 8 && memcmp(head, LAC_BUNDLE_MAGIC, 8) == 0;
}

/* Exactly so many bytes. *ret_whole false: the bundle ended before. */
static enum lac_status read_whole(struct bundle *bundle, void *out, size_t size_bytes,
                                  bool *ret_whole)
{
    size_t done = 0;

    while (done < size_bytes) {
        size_t got = 0;
        const enum lac_status status = lac_source_read(bundle->source, (uint8_t *)out + done,
                                                       size_bytes - done, &got, bundle->reterr);

        if (status != LAC_OK) {
            return status;
        }
        if (got == 0) {
            break;
        }
        done += got;
    }
    bundle->received_bytes += done;
    *ret_whole = done == size_bytes;
    return LAC_OK;
}

/* The file of that name: names are compared, and never used as places. */
static enum lac_status find_file(struct bundle *bundle, const char *name,
                                 struct bundle_file **ret_file)
{
    for (uint32_t i = bundle->file_count; i > 0; i--) { /* the latest are asked for most */
        if (strcmp(bundle->files[i - 1].name, name) == 0) {
            *ret_file = &bundle->files[i - 1];
            return LAC_OK;
        }
    }
    if (bundle->file_count == FILES_MAX) {
        return lac_fail(bundle->reterr, LAC_ERR_LIMIT, 0, "more than %d files in the recording",
                        FILES_MAX);
    }
    if (bundle->file_count == bundle->file_capacity) {
        const uint32_t bigger = bundle->file_capacity + NAMES_STEP + bundle->file_capacity / 2;
        struct bundle_file *const grown = realloc(bundle->files, bigger * sizeof *grown);

        if (grown == NULL) {
            return lac_fail(bundle->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
        bundle->files = grown;
        bundle->file_capacity = bigger;
    }
    struct bundle_file *const file = &bundle->files[bundle->file_count];
    *file = (struct bundle_file){.name = strdup(name)};
    if (file->name == NULL) {
        return lac_fail(bundle->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    bundle->file_count++;
    *ret_file = file;
    return lac_spool_archive_new(bundle->archive, bundle->parent, &file->number, bundle->reterr);
}

static enum lac_status lay_out(struct bundle *bundle, struct bundle_file *file,
                               const struct lac_bundle_part *part)
{
    const uint64_t end = part->offset + part->size_bytes;
    const uint64_t grown = end > file->size_bytes ? end - file->size_bytes : 0;
    char path[LAC_SPOOL_ARCHIVE_PATH_BYTES];
    size_t done = 0;
    int fd;

    if (bundle->laid_out_bytes + grown > HOLES_FREE_BYTES + HOLES_RATIO * bundle->received_bytes) {
        return lac_fail(bundle->reterr, LAC_ERR_LIMIT, 0, "the recording is nearly all holes");
    }
    lac_spool_archive_path(bundle->archive, file->number, path);
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && done < part->data_bytes) {
        const ssize_t put =
            pwrite(fd, bundle->data + done, part->data_bytes - done, (off_t)(part->offset + done));

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            break;
        }
        done += (size_t)put;
    }
    if (fd < 0 || done < part->data_bytes || (grown > 0 && ftruncate(fd, (off_t)end) != 0)) {
        (void)lac_fail(bundle->reterr, LAC_ERR_IO, 0, "cannot lay out the spools: %s",
                       strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return LAC_ERR_IO;
    }
    (void)close(fd);
    file->size_bytes += grown;
    bundle->laid_out_bytes += grown;
    return LAC_OK;
}

static bool is_sound(const struct lac_bundle_part *part)
{
    return part->magic == LAC_BUNDLE_PART_MAGIC && part->name_bytes >= 1 &&
           part->name_bytes <= LAC_BUNDLE_NAME_BYTES && part->size_bytes <= LAC_BUNDLE_DATA_BYTES &&
           part->data_bytes <= part->size_bytes && part->offset <= (uint64_t)1 << 34;
}

static enum lac_status read_part(struct bundle *bundle, const struct lac_bundle_part *part,
                                 bool *ret_whole)
{
    char name[LAC_BUNDLE_NAME_BYTES + 1];
    struct bundle_file *file = NULL;
    enum lac_status status = read_whole(bundle, name, part->name_bytes, ret_whole);

    if (status == LAC_OK && *ret_whole) {
        name[part->name_bytes] = '\0';
        status = read_whole(bundle, bundle->data, part->data_bytes, ret_whole);
    }
    if (status == LAC_OK && *ret_whole) {
        status = find_file(bundle, name, &file);
    }
    return status == LAC_OK && *ret_whole && file != NULL ? lay_out(bundle, file, part) : status;
}

static enum lac_status read_parts(struct bundle *bundle)
{
    uint8_t magic[8];
    bool is_whole = false;
    enum lac_status status = read_whole(bundle, magic, sizeof magic, &is_whole);

    while (status == LAC_OK) {
        const uint64_t before = bundle->received_bytes;
        struct lac_bundle_part part;

        status = read_whole(bundle, &part, sizeof part, &is_whole);
        if (status != LAC_OK || bundle->received_bytes == before) {
            return status; /* the end, where one may be */
        }
        if (is_whole && !is_sound(&part)) {
            return lac_fail(bundle->reterr, LAC_ERR_CORRUPT, 0,
                            "a part of the recording is damaged (at byte %llu of it)",
                            (unsigned long long)before);
        }
        if (is_whole) {
            status = read_part(bundle, &part, &is_whole);
        }
        if (status == LAC_OK && !is_whole) {
            bundle->archive->is_cut = true;
            return LAC_OK;
        }
    }
    return status;
}

enum lac_status lac_spool_archive_add_bundle(struct lac_spool_archive *archive, const char *parent,
                                             struct lac_source *source, struct lac_error *reterr)
{
    struct bundle bundle = {.archive = archive,
                            .parent = parent,
                            .source = source,
                            .reterr = reterr,
                            .data = malloc(LAC_BUNDLE_DATA_BYTES)};
    enum lac_status status = bundle.data != NULL
                                 ? read_parts(&bundle)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    if (status == LAC_OK && bundle.file_count == 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the recording has no file");
    }
    for (uint32_t i = 0; i < bundle.file_count; i++) {
        free(bundle.files[i].name);
    }
    free(bundle.files);
    free(bundle.data);
    return status;
}
