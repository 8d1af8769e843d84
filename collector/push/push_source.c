#include "collector/push/push_source.h"

#include "collector/push/push_pack.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ustar, the fields that we fill. */
enum {
    BLOCK_BYTES = 512,
    NAME_BYTES = 100,
    MODE_AT = 100,
    SIZE_AT = 124,
    TIME_AT = 136,
    CHECKSUM_AT = 148,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    RAW_BYTES = 256 << 10,
    SKIP_HEADER_BYTES = 8
};

/*
 * Receivers refuse what expands more than 200 times, and a spool may be nearly all zeros: then a
 * skippable frame of zeros (which decompressors pass over) keeps the ratio at this.
 */
enum { RATIO_MAX = 150 };

enum stage {
    STAGE_MEMBER, /**< the next file's header, or the end of the archive */
    STAGE_CONTENT,
    STAGE_PADDING,
    STAGE_TRAILER,
    STAGE_DONE,
};

struct lac_push_source {
    char name[300];
    int folder; /**< -1: a single file */
    struct dirent **entries;
    int entry_count;
    int entry_next;
    int file;
    uint64_t file_left;
    unsigned padding_left;
    unsigned block_at; /**< given of `block` */
    char block[2 * BLOCK_BYTES];
    unsigned block_bytes;
    enum stage stage;
    bool has_boot_id;
    uint8_t boot_id[16];
    /* compression */
    struct lac_pack *pack;
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

static int is_member(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN);
}

/* By bytes: alphasort() goes by the locale. */
static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

/* stat() itself is too new a symbol. */
static int64_t size_of(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);

    return size >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? (int64_t)size : -1;
}

static void read_boot_id(struct lac_push_source *source, int fd)
{
    static struct lac_spool_header header;

    if (!source->has_boot_id && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
        memcmp(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic)) == 0) {
        memcpy(source->boot_id, header.boot_id, sizeof(source->boot_id));
        source->has_boot_id = true;
    }
}

/* -- the archive -------------------------------------------------------------------------------*/

static void make_header(struct lac_push_source *source, const char *name, uint64_t size_bytes)
{
    char *const block = source->block;
    const size_t length = strlen(name);
    unsigned sum = 0;

    memset(block, 0, BLOCK_BYTES);
    memcpy(block, name, length < NAME_BYTES ? length : NAME_BYTES);
    memcpy(block + MODE_AT, "0000600", 7);
    if (size_bytes < (uint64_t)1 << 33) {
        (void)snprintf(block + SIZE_AT, 12, "%011" PRIo64, size_bytes);
    } else { /* base 256, as GNU tar writes it */
        block[SIZE_AT] = (char)0x80;
        for (unsigned i = 0; i < 8; i++) {
            block[SIZE_AT + 4 + i] = (char)(size_bytes >> (56 - 8 * i));
        }
    }
    memcpy(block + TIME_AT, "00000000000", 11);
    memset(block + CHECKSUM_AT, ' ', 8);
    block[TYPE_AT] = '0';
    memcpy(block + MAGIC_AT, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        sum += (unsigned char)block[i];
    }
    (void)snprintf(block + CHECKSUM_AT, 8, "%06o", sum);
    source->block_at = 0;
    source->block_bytes = BLOCK_BYTES;
}

/* The next member's header, or the trailer. @return false: it cannot be read */
static bool next_member(struct lac_push_source *source)
{
    int64_t size;

    if (source->file >= 0) {
        (void)close(source->file);
        source->file = -1;
    }
    if (source->entry_next == source->entry_count) {
        memset(source->block, 0, sizeof(source->block));
        source->block_at = 0;
        source->block_bytes = sizeof(source->block);
        source->stage = STAGE_TRAILER;
        return true;
    }
    const char *const name = source->entries[source->entry_next++]->d_name;
    source->file = openat(source->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size = source->file >= 0 ? size_of(source->file) : -1;
    if (size < 0 || strlen(name) > NAME_BYTES) {
        return false;
    }
    read_boot_id(source, source->file);
    make_header(source, name, (uint64_t)size);
    source->file_left = (uint64_t)size;
    source->padding_left = (unsigned)(-(uint64_t)size % BLOCK_BYTES);
    source->stage = STAGE_CONTENT;
    return true;
}

/* What is left of a small block. */
static size_t give_block(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    const size_t left = source->block_bytes - source->block_at;
    const size_t given = left < size_bytes ? left : size_bytes;

    memcpy(out, source->block + source->block_at, given);
    source->block_at += (unsigned)given;
    return given;
}

/* @return bytes; 0: the file has ended; -1 */
static int64_t give_content(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    const size_t wanted = source->file_left < size_bytes ? (size_t)source->file_left : size_bytes;
    ssize_t got;

    do {
        got = read(source->file, out, wanted);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return -1; /* it became shorter while we read */
    }
    source->file_left -= (uint64_t)got;
    return got;
}

/* Some bytes of the archive or file; 0 at the end, -1 when a file cannot be read. */
static int64_t read_some(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    for (;;) {
        size_t given = give_block(source, out, size_bytes);

        if (given > 0) {
            return (int64_t)given;
        }
        switch (source->stage) {
        case STAGE_MEMBER:
            if (!next_member(source)) {
                return -1;
            }
            break;
        case STAGE_CONTENT:
            if (source->file_left > 0) {
                return give_content(source, out, size_bytes);
            }
            source->stage = source->folder >= 0 ? STAGE_PADDING : STAGE_DONE;
            break;
        case STAGE_PADDING:
            memset(source->block, 0, BLOCK_BYTES);
            source->block_at = 0;
            source->block_bytes = source->padding_left;
            source->stage = STAGE_MEMBER;
            break;
        case STAGE_TRAILER:
            source->stage = STAGE_DONE;
            break;
        case STAGE_DONE:
        default:
            return 0;
        }
    }
}

static int64_t read_raw(struct lac_push_source *source, uint8_t *out, size_t size_bytes)
{
    size_t used = 0;

    while (used < size_bytes) {
        const int64_t got = read_some(source, out + used, size_bytes - used);

        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (int64_t)used;
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
        const int64_t packed =
            lac_pack_step(source->pack, &source->raw_at, &source->raw_left, source->raw_ended,
                          out + used, size_bytes - used, &source->pack_done);
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
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
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
                   (int)(length < 200 ? length : 200), name, source->folder >= 0 ? ".tar" : "",
                   source->pack != NULL ? ".zst" : "");
}

/* @return what is wrong, or NULL */
static const char *open_input(struct lac_push_source *source, const char *path)
{
    bool is_plain = false;
    int64_t size;

    source->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source->folder >= 0) {
        source->entry_count = scandir(path, &source->entries, is_member, by_name);
        if (source->entry_count <= 0) {
            return source->entry_count == 0 ? "the folder is empty" : strerror(errno);
        }
        source->stage = STAGE_MEMBER;
    } else {
        source->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        size = source->file >= 0 ? size_of(source->file) : -1;
        if (size <= 0) {
            return size == 0 ? "the file is empty" : strerror(errno);
        }
        read_boot_id(source, source->file);
        is_plain = is_better_plain(source->file);
        source->file_left = (uint64_t)size;
        source->stage = STAGE_CONTENT;
    }
    if (!is_plain) {
        source->raw = malloc(RAW_BYTES);
        source->pack = source->raw != NULL ? lac_pack_open() : NULL;
    }
    set_name(source, path);
    return NULL;
}

struct lac_push_source *lac_push_source_open(const char *path, char *problem, size_t capacity)
{
    struct lac_push_source *const source = calloc(1, sizeof(*source));
    const char *wrong = "out of memory";

    if (source != NULL) {
        source->folder = -1;
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
    for (int i = 0; i < source->entry_count; i++) {
        free(source->entries[i]);
    }
    free(source->entries);
    free(source->raw);
    lac_pack_close(source->pack);
    if (source->file >= 0) {
        (void)close(source->file);
    }
    if (source->folder >= 0) {
        (void)close(source->folder);
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
