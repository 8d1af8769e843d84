#include "collector/base/tar_folder.h"

#include "collector/base/io_full.h"
#include "collector/base/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum stage {
    STAGE_MEMBER, /**< the next file's header, or the end of the archive */
    STAGE_CONTENT,
    STAGE_DONE,
};

struct lac_tar_folder {
    int folder;
    struct dirent **entries;
    int entry_count;
    int entry_next;
    int file; /* -1: none is open */
    uint64_t file_left;
    uint64_t file_padding;
    enum stage stage;
    /* what comes before anything else: headers, padding, the end */
    uint8_t block[3 * LAC_TAR_BLOCK_BYTES];
    size_t block_at;
    size_t block_bytes;
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

struct lac_tar_folder *lac_tar_folder_open(const char *path)
{
    struct lac_tar_folder *const tar = calloc(1, sizeof(*tar));
    int error;

    if (tar == NULL) {
        return NULL;
    }
    tar->file = -1;
    tar->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tar->entry_count =
        tar->folder >= 0 ? scandir(path, &tar->entries, is_member, by_name) : tar->folder;
    if (tar->entry_count > 0) {
        return tar;
    }
    error = tar->entry_count == 0 ? ENODATA : errno;
    lac_tar_folder_close(tar);
    errno = error;
    return NULL;
}

void lac_tar_folder_close(struct lac_tar_folder *tar)
{
    if (tar == NULL) {
        return;
    }
    for (int i = 0; i < tar->entry_count; i++) {
        free(tar->entries[i]);
    }
    free(tar->entries);
    if (tar->file >= 0) {
        (void)close(tar->file);
    }
    if (tar->folder >= 0) {
        (void)close(tar->folder);
    }
    free(tar);
}

/* A name that is too long for a header stands in a pax header before it: "LENGTH path=NAME\n". */
static void put_long_name(struct lac_tar_folder *tar, const char *name)
{
    char *const record = (char *)tar->block + LAC_TAR_BLOCK_BYTES;
    /* three digits and a blank before it: names of a folder have at most 255 bytes */
    const size_t length = strlen(name) + sizeof("100 path=\n") - 1;

    (void)snprintf(record, LAC_TAR_BLOCK_BYTES, "%zu path=%s\n", length, name);
    lac_tar_header_make(tar->block, "././@PaxHeader", 'x', length);
    tar->block_bytes = (size_t)2 * LAC_TAR_BLOCK_BYTES;
}

/* The next member's headers, or the end of the archive. @return false: it cannot be read */
static bool next_member(struct lac_tar_folder *tar)
{
    const char *name;
    int64_t size;

    memset(tar->block, 0, sizeof(tar->block));
    tar->block_at = tar->block_bytes = 0;
    if (tar->entry_next == tar->entry_count) {
        tar->block_bytes = (size_t)2 * LAC_TAR_BLOCK_BYTES;
        tar->stage = STAGE_DONE;
        return true;
    }
    name = tar->entries[tar->entry_next++]->d_name;
    tar->file = openat(tar->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (tar->file >= 0 && !lac_file_is_regular(tar->file)) { /* a file system without d_type */
        (void)close(tar->file);
        tar->file = -1;
        return next_member(tar);
    }
    size = tar->file >= 0 ? lac_file_size(tar->file) : -1;
    if (size < 0) {
        return false;
    }
    if (strlen(name) > LAC_TAR_NAME_BYTES) {
        put_long_name(tar, name);
    }
    lac_tar_header_make(tar->block + tar->block_bytes, name, '0', (uint64_t)size);
    tar->block_bytes += LAC_TAR_BLOCK_BYTES;
    tar->file_left = (uint64_t)size;
    tar->file_padding = lac_tar_padding((uint64_t)size);
    tar->stage = STAGE_CONTENT;
    return true;
}

static void end_member(struct lac_tar_folder *tar)
{
    (void)close(tar->file);
    tar->file = -1;
    memset(tar->block, 0, LAC_TAR_BLOCK_BYTES);
    tar->block_at = 0;
    tar->block_bytes = (size_t)tar->file_padding;
    tar->stage = STAGE_MEMBER;
}

/* @return bytes, -1 */
static int64_t give_content(struct lac_tar_folder *tar, uint8_t *out, size_t size_bytes)
{
    const size_t wanted = tar->file_left < size_bytes ? (size_t)tar->file_left : size_bytes;
    ssize_t got;

    do {
        got = read(tar->file, out, wanted);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        errno = got == 0 ? 0 : errno;
        return -1;
    }
    tar->file_left -= (uint64_t)got;
    return got;
}

/* Some bytes; 0 at the end. */
static int64_t give_some(struct lac_tar_folder *tar, uint8_t *out, size_t size_bytes)
{
    for (;;) {
        const size_t ready = tar->block_bytes - tar->block_at;
        const size_t given = ready < size_bytes ? ready : size_bytes;

        if (given > 0) {
            memcpy(out, tar->block + tar->block_at, given);
            tar->block_at += given;
            return (int64_t)given;
        }
        if (tar->stage == STAGE_DONE) {
            return 0;
        }
        if (tar->stage == STAGE_MEMBER) {
            if (!next_member(tar)) {
                return -1;
            }
        } else if (tar->file_left > 0) {
            return give_content(tar, out, size_bytes);
        } else {
            end_member(tar);
        }
    }
}

int64_t lac_tar_folder_read(struct lac_tar_folder *tar, void *out, size_t size_bytes)
{
    size_t used = 0;

    while (used < size_bytes) {
        const int64_t got = give_some(tar, (uint8_t *)out + used, size_bytes - used);

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
