#include "collector/push/push_parts.h"

#include "collector/base/io_full.h"
#include "collector/base/reserve.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PLAIN_BYTES = 1 << 20 };

/* How much of a segment was given, in bytes; this: all, for good. */
static const uint32_t WHOLE = UINT32_MAX;

struct parts_file {
    char name[LAC_BUNDLE_NAME_BYTES + 1];
    bool has_header; /* given, some state of it */
    bool has_end;    /* its final header, or for other files all of it */
    uint32_t *given; /* by segment */
    uint64_t given_count;
    uint64_t plain_bytes; /* given of a file that is no spool */
    struct parts_file *next;
};

struct lac_push_parts {
    const char *folder;
    struct parts_file *files;
    struct lac_spool_header header; /* of the file that is looked at */
    uint64_t segment_count;         /* that are in it */
};

bool lac_push_bytes_reserve(struct lac_push_bytes *bytes, size_t more_bytes)
{
    return LAC_RESERVE(bytes->bytes, bytes->capacity_bytes, bytes->size_bytes, more_bytes);
}

struct lac_push_parts *lac_push_parts_create(const char *folder)
{
    struct lac_push_parts *const parts = calloc(1, sizeof(*parts));

    if (parts != NULL) {
        parts->folder = folder;
    }
    return parts;
}

void lac_push_parts_restart(struct lac_push_parts *parts)
{
    while (parts->files != NULL) {
        struct parts_file *const next = parts->files->next;

        free(parts->files->given);
        free(parts->files);
        parts->files = next;
    }
}

void lac_push_parts_destroy(struct lac_push_parts *parts)
{
    if (parts != NULL) {
        lac_push_parts_restart(parts);
        free(parts);
    }
}

/* -- one part -----------------------------------------------------------------------------------*/

/* Room for a part's content. NULL: out of memory */
static uint8_t *begin_part(struct lac_push_bytes *out, const struct parts_file *file,
                           size_t size_bytes)
{
    const size_t before = sizeof(struct lac_bundle_part) + strlen(file->name);

    return lac_push_bytes_reserve(out, before + size_bytes) ? out->bytes + out->size_bytes + before
                                                            : NULL;
}

/* @return how much of the content is not zeros at the end */
static uint32_t end_part(struct lac_push_bytes *out, const struct parts_file *file, uint64_t offset,
                         size_t size_bytes)
{
    const size_t name_bytes = strlen(file->name);
    uint8_t *const at = out->bytes + out->size_bytes;
    const uint8_t *const data = at + sizeof(struct lac_bundle_part) + name_bytes;
    struct lac_bundle_part part = {.magic = LAC_BUNDLE_PART_MAGIC,
                                   .name_bytes = (uint32_t)name_bytes,
                                   .size_bytes = (uint32_t)size_bytes,
                                   .data_bytes = (uint32_t)size_bytes,
                                   .offset = offset};

    while (part.data_bytes > 0 && data[part.data_bytes - 1] == 0) {
        part.data_bytes--;
    }
    memcpy(at, &part, sizeof(part));
    memcpy(at + sizeof(part), file->name, name_bytes);
    out->size_bytes += sizeof(part) + name_bytes + part.data_bytes;
    return part.data_bytes;
}

static bool give_header(const struct lac_push_parts *parts, const struct parts_file *file,
                        struct lac_push_bytes *out)
{
    uint8_t *const data = begin_part(out, file, sizeof(parts->header));

    if (data == NULL) {
        return false;
    }
    memcpy(data, &parts->header, sizeof(parts->header));
    (void)end_part(out, file, 0, sizeof(parts->header));
    return true;
}

/* -- a spool ------------------------------------------------------------------------------------*/

static bool make_places(struct parts_file *file, uint64_t count)
{
    uint32_t *grown;

    if (count <= file->given_count) {
        return true;
    }
    grown = realloc(file->given, (size_t)count * 2 * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    memset(grown + file->given_count, 0, (size_t)(count * 2 - file->given_count) * sizeof(*grown));
    file->given = grown;
    file->given_count = count * 2;
    return true;
}

/* Samples are written in place: a segment of them is whole once the next one is there. */
static bool is_whole(const struct lac_push_parts *parts, int fd, uint64_t index)
{
    struct lac_segment_header head;

    for (uint64_t i = index + 1; i < parts->segment_count; i++) {
        if (lac_file_read_at(fd, &head, sizeof(head),
                             LAC_SPOOL_SEGMENTS_OFFSET + i * parts->header.segment_bytes) &&
            head.kind == LAC_SEGMENT_SAMPLES) {
            return true;
        }
    }
    return false;
}

static bool give_segment(const struct lac_push_parts *parts, struct parts_file *file, int fd,
                         uint64_t index, bool is_final, struct lac_push_bytes *out)
{
    const size_t size_bytes = parts->header.segment_bytes;
    const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + index * size_bytes;
    const size_t before = out->size_bytes;
    struct lac_segment_header head;
    uint8_t *data;
    uint32_t used;

    if (file->given[index] == WHOLE || !lac_file_read_at(fd, &head, sizeof(head), offset) ||
        head.magic != LAC_SEGMENT_MAGIC ||
        (head.kind == LAC_SEGMENT_SAMPLES && !is_final && !is_whole(parts, fd, index))) {
        return true;
    }
    data = begin_part(out, file, size_bytes);
    if (data == NULL || !lac_file_read_at(fd, data, size_bytes, offset)) {
        return data != NULL && !is_final; /* it may be on its way to the disk */
    }
    used = end_part(out, file, offset, size_bytes);
    if (!is_final && (head.kind == LAC_SEGMENT_STRINGS || head.state == LAC_SEGMENT_OPEN) &&
        head.kind != LAC_SEGMENT_SAMPLES) {
        if (used <= file->given[index]) {
            out->size_bytes = before; /* as it was */
        }
        file->given[index] = used;
    } else {
        file->given[index] = WHOLE;
    }
    return true;
}

static bool give_spool(struct lac_push_parts *parts, struct parts_file *file, int fd,
                       size_t enough_bytes, bool is_final, struct lac_push_bytes *out,
                       bool *ret_is_all)
{
    if (!make_places(file, parts->segment_count)) {
        return false;
    }
    if (!file->has_header) {
        file->has_header = give_header(parts, file, out);
    }
    for (uint64_t i = 0; i < parts->segment_count; i++) {
        if (out->size_bytes >= enough_bytes) {
            *ret_is_all = false;
            return true;
        }
        if (!give_segment(parts, file, fd, i, is_final, out)) {
            return false;
        }
    }
    if (is_final && !file->has_end) {
        file->has_end = give_header(parts, file, out);
        return file->has_end;
    }
    return file->has_header;
}

/* -- any other file -----------------------------------------------------------------------------*/

static bool give_plain(struct parts_file *file, int fd, size_t enough_bytes,
                       struct lac_push_bytes *out, bool *ret_is_all)
{
    while (!file->has_end) {
        uint8_t *const data = begin_part(out, file, PLAIN_BYTES);
        ssize_t got;

        if (out->size_bytes >= enough_bytes) {
            *ret_is_all = false;
            return true;
        }
        if (data == NULL) {
            return false;
        }
        got = pread(fd, data, PLAIN_BYTES, (off_t)file->plain_bytes);
        if (got < 0 && errno != EISDIR) {
            return false;
        }
        if (got > 0) {
            (void)end_part(out, file, file->plain_bytes, (size_t)got);
        }
        file->plain_bytes += got > 0 ? (uint64_t)got : 0;
        file->has_end = got <= 0;
    }
    return true;
}

/* -- the folder ---------------------------------------------------------------------------------*/

static struct parts_file *file_of(struct lac_push_parts *parts, const char *name)
{
    struct parts_file **link = &parts->files;

    while (*link != NULL && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link != NULL) {
            memcpy((*link)->name, name, strlen(name) + 1);
        }
    }
    return *link;
}

static bool give_file(struct lac_push_parts *parts, int folder, const char *name,
                      size_t enough_bytes, bool is_final, struct lac_push_bytes *out,
                      bool *ret_is_all)
{
    struct parts_file *const file = file_of(parts, name);
    bool is_good = true;
    off_t size;
    int fd;

    if (file == NULL || folder < 0) {
        return false;
    }
    if (file->has_end) {
        return true;
    }
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size < 0) {
        is_good = fd >= 0 || !is_final;
    } else if ((!is_final || file->has_header) && lac_spool_is_name(name) &&
               lac_file_read_at(fd, &parts->header, sizeof(parts->header), 0) &&
               lac_spool_header_check(&parts->header)) {
        parts->segment_count = lac_spool_segments_in(parts->header.segment_count, (uint64_t)size,
                                                     parts->header.segment_bytes);
        is_good = give_spool(parts, file, fd, enough_bytes, is_final, out, ret_is_all);
    } else if (is_final) {
        is_good = give_plain(file, fd, enough_bytes, out, ret_is_all);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_good;
}

static int is_member(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strlen(entry->d_name) <= LAC_BUNDLE_NAME_BYTES &&
           (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN);
}

/* By bytes: alphasort() goes by the locale. */
static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

bool lac_push_parts_take(struct lac_push_parts *parts, size_t enough_bytes, bool is_final,
                         struct lac_push_bytes *out, bool *ret_is_all)
{
    const int folder = open(parts->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **entries = NULL;
    const int count = folder >= 0 ? scandir(parts->folder, &entries, is_member, by_name) : -1;
    bool is_good = count >= 0;

    *ret_is_all = true;
    for (int i = 0; i < count; i++) {
        if (is_good && *ret_is_all) {
            is_good = give_file(parts, folder, entries[i]->d_name, enough_bytes, is_final, out,
                                ret_is_all);
        }
        free(entries[i]);
    }
    free(entries);
    if (folder >= 0) {
        (void)close(folder);
    }
    return is_good;
}
