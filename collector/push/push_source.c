#include "collector/push/push_source.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/base/tar_folder.h"
#include "collector/push/push_compress.h"
#include "collector/push/push_parts.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RAW_BYTES = 256 << 10, PARTS_BYTES = 1 << 20, SKIP_HEADER_BYTES = 8 };

/*
 * Receivers refuse what expands more than 200 times, and a spool may be nearly all zeros: then a
 * skippable frame of zeros (which decompressors pass over) keeps the ratio at this.
 */
enum { RATIO_MAX = 150 };

struct lac_push_source {
    char name[300];
    /* one of the three: */
    int file; /**< -1: a folder */
    uint64_t file_left;
    struct lac_tar_folder *tar;
    struct lac_push_parts *parts;
    struct lac_push_bytes bundle; /**< what was taken of the parts */
    size_t bundle_at;             /**< given of it */
    bool bundle_ended;
    bool has_boot_id;
    uint8_t boot_id[16];
    /* compression */
    struct lac_push_compress *pack;
    uint8_t *raw;
    const uint8_t *raw_at;
    size_t raw_left;
    bool raw_ended;
    bool pack_done;
    uint64_t raw_bytes, packed_bytes;
    uint64_t filler_left;
    uint8_t filler_header[SKIP_HEADER_BYTES];
    unsigned filler_header_left;
};

static void read_boot_id(struct lac_push_source *source, int fd)
{
    static struct lac_spool_header header;

    if (!source->has_boot_id && lac_file_read_at(fd, &header, sizeof(header), 0) &&
        memcmp(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic)) == 0) {
        memcpy(source->boot_id, header.boot_id, sizeof(source->boot_id));
        source->has_boot_id = true;
    }
}

/* -- the bytes ----------------------------------------------------------------------------------*/

/* Some bytes of the file; 0 at the end, -1: it cannot be read, or became shorter. */
static int64_t read_file(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    const size_t wanted = source->file_left < size_bytes ? (size_t)source->file_left : size_bytes;
    const int64_t got = lac_read_full(source->file, out, wanted);

    if (got < (int64_t)wanted) {
        return -1;
    }
    source->file_left -= wanted;
    return got;
}

static bool take_parts(struct lac_push_source *source)
{
    bool is_all = false;

    source->bundle.size_bytes = source->bundle_at = 0;
    if (!lac_push_parts_take(source->parts, PARTS_BYTES, true, &source->bundle, &is_all)) {
        return false;
    }
    source->bundle_ended = is_all;
    return true;
}

static int64_t read_bundle(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    size_t used = 0;

    while (used < size_bytes) {
        const size_t ready = source->bundle.size_bytes - source->bundle_at;
        const size_t given = ready < size_bytes - used ? ready : size_bytes - used;

        memcpy(out + used, source->bundle.bytes + source->bundle_at, given);
        source->bundle_at += given;
        used += given;
        if (used < size_bytes) {
            if (source->bundle_ended) {
                break;
            }
            if (!take_parts(source)) {
                return -1;
            }
        }
    }
    return (int64_t)used;
}

static int64_t read_raw(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    return source->parts != NULL ? read_bundle(source, out, size_bytes)
           : source->tar != NULL ? lac_tar_folder_read(source->tar, out, size_bytes)
                                 : read_file(source, out, size_bytes);
}

/* -- compression --------------------------------------------------------------------------------*/

static void begin_filler(struct lac_push_source *source)
{
    const uint64_t least = source->raw_bytes / RATIO_MAX;

    if (source->packed_bytes < least && least - source->packed_bytes <= UINT32_MAX) {
        static const uint8_t magic[4] = {0x50, 0x2a, 0x4d, 0x18};

        source->filler_left = least - source->packed_bytes;
        source->filler_header_left = SKIP_HEADER_BYTES;
        memcpy(source->filler_header, magic, sizeof(magic));
        for (unsigned i = 0; i < 4; i++) {
            source->filler_header[4 + i] = (uint8_t)(source->filler_left >> (8 * i));
        }
    }
}

static size_t give_filler(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    size_t used = 0;

    while (source->filler_header_left > 0 && used < size_bytes) {
        out[used++] = source->filler_header[SKIP_HEADER_BYTES - source->filler_header_left];
        source->filler_header_left--;
    }
    const size_t room = size_bytes - used;
    const size_t zeros = source->filler_left < room ? (size_t)source->filler_left : room;
    memset(out + used, 0, zeros);
    source->filler_left -= zeros;
    return used + zeros;
}

static int64_t read_packed(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    size_t used = 0;

    while (used < size_bytes && !source->pack_done) {
        if (source->raw_left == 0 && !source->raw_ended) {
            const int64_t got = read_raw(source, source->raw, RAW_BYTES);

            if (got < 0) {
                return -1;
            }
            source->raw_at = source->raw;
            source->raw_left = (size_t)got;
            source->raw_bytes += (uint64_t)got;
            source->raw_ended = got < RAW_BYTES;
        }
        const int64_t packed = lac_push_compress_step(
            source->pack, &source->raw_at, &source->raw_left, source->raw_ended, out + used,
            size_bytes - used, &source->pack_done);
        if (packed < 0) {
            return -1;
        }
        used += (size_t)packed;
        source->packed_bytes += (uint64_t)packed;
        if (source->pack_done) {
            begin_filler(source);
        }
    }
    return (int64_t)(used + give_filler(source, out + used, size_bytes - used));
}

int64_t lac_push_source_read(struct lac_push_source *source, void *buffer, size_t size_bytes)
{
    return source->pack != NULL ? read_packed(source, buffer, size_bytes)
                                : read_raw(source, buffer, size_bytes);
}

/* -- opening ------------------------------------------------------------------------------------*/

/* Compressed already, or a database, which can be read as it is only. */
static bool is_better_plain(int fd)
{
    static const struct {
        const char *bytes;
        size_t length;
    } known[] = {
        {"\x1f\x8b", 2}, {"\x28\xb5\x2f\xfd", 4}, {"SQLite format 3", 15}, {"PK\x03\x04", 4}};
    char head[16] = {0};

    if (pread(fd, head, sizeof(head), 0) < 4) {
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (memcmp(head, known[i].bytes, known[i].length) == 0) {
            return true;
        }
    }
    return false;
}

const char *lac_push_last_part(const char *path, size_t *ret_length)
{
    size_t end = strlen(path);
    size_t begin;

    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    *ret_length = end - begin;
    return path + begin;
}

static void set_name(struct lac_push_source *source, const char *path)
{
    size_t length;
    const char *const name = lac_push_last_part(path, &length);

    (void)snprintf(source->name, sizeof(source->name), "%.*s%s%s",
                   (int)(length < 200 ? length : 200), name, source->tar != NULL ? ".tar" : "",
                   source->pack != NULL ? ".zst" : "");
}

/* Whether a folder is a recording and holds nothing else; the boot id of its first spool. */
static bool is_recording(struct lac_push_source *source, const char *path)
{
    DIR *const folder = opendir(path);
    const int folder_fd = folder != NULL ? dirfd(folder) : -1;
    bool is_recording = folder_fd >= 0;

    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && folder_fd >= 0;
         entry = readdir(folder)) {
        const char *const name = entry->d_name;

        if (name[0] == '.' || (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)) {
            continue;
        }
        if (lac_spool_is_name(name)) {
            const int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

            read_boot_id(source, fd);
            if (fd >= 0) {
                (void)close(fd);
            }
        } else if (strncmp(name, LAC_SPOOL_PROFILER, sizeof(LAC_SPOOL_PROFILER) - 1) != 0) {
            is_recording = false;
        }
    }
    (void)closedir(folder);
    return is_recording && source->has_boot_id;
}

/* A recording is sent as a bundle, any other folder as an archive.
 * @return what is wrong, or NULL */
static const char *open_folder(struct lac_push_source *source, const char *path)
{
    if (!is_recording(source, path)) {
        source->tar = lac_tar_folder_open(path);
        return source->tar != NULL ? NULL
               : errno == ENODATA  ? "the folder holds no file; give the path of a recording"
                                   : strerror(errno);
    }
    source->parts = lac_push_parts_create(path);
    if (source->parts == NULL ||
        !lac_push_bytes_reserve(&source->bundle, sizeof(LAC_BUNDLE_MAGIC) - 1)) {
        return "out of memory";
    }
    memcpy(source->bundle.bytes, LAC_BUNDLE_MAGIC, sizeof(LAC_BUNDLE_MAGIC) - 1);
    source->bundle.size_bytes = sizeof(LAC_BUNDLE_MAGIC) - 1;
    return NULL;
}

static const char *open_file(struct lac_push_source *source, const char *path)
{
    int64_t size;

    source->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size = source->file >= 0 ? lac_file_size(source->file) : -1;
    if (size <= 0) {
        return size == 0 ? "the file is empty" : strerror(errno);
    }
    read_boot_id(source, source->file);
    source->file_left = (uint64_t)size;
    return NULL;
}

/* @return what is wrong, or NULL */
static const char *open_input(struct lac_push_source *source, const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *const wrong = folder >= 0 ? open_folder(source, path) : open_file(source, path);

    if (folder >= 0) {
        (void)close(folder);
    }
    if (wrong == NULL) {
        if (source->file < 0 || !is_better_plain(source->file)) {
            source->raw = malloc(RAW_BYTES);
            source->pack = source->raw != NULL ? lac_push_compress_open() : NULL;
        }
        set_name(source, path);
    }
    return wrong;
}

struct lac_push_source *lac_push_source_open(const char *path, char *problem, size_t capacity)
{
    struct lac_push_source *const source = calloc(1, sizeof(*source));
    const char *wrong = "out of memory";

    if (source != NULL) {
        source->file = -1;
        wrong = open_input(source, path);
    }
    if (wrong != NULL) {
        (void)snprintf(problem, capacity, "%s: %s", path, wrong);
        lac_push_source_close(source);
        return NULL;
    }
    return source;
}

void lac_push_source_close(struct lac_push_source *source)
{
    if (source == NULL) {
        return;
    }
    lac_tar_folder_close(source->tar);
    lac_push_parts_destroy(source->parts);
    free(source->bundle.bytes);
    free(source->raw);
    lac_push_compress_close(source->pack);
    if (source->file >= 0) {
        (void)close(source->file);
    }
    free(source);
}

const char *lac_push_source_name(const struct lac_push_source *source)
{
    return source->name;
}

bool lac_push_source_boot(const struct lac_push_source *source, uint8_t *ret_boot_id)
{
    if (source->has_boot_id) {
        memcpy(ret_boot_id, source->boot_id, sizeof(source->boot_id));
    }
    return source->has_boot_id;
}
