#include "collector/base/io_full.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as the kernel */

/* At its place, or on from where the file is: offset -1. */
static int64_t read_all(int fd, char *out, size_t size_bytes, int64_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        const size_t left = size_bytes - done;
        const ssize_t got = offset >= 0 ? pread(fd, out + done, left, (off_t)offset + (off_t)done)
                                        : read(fd, out + done, left);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (int64_t)done;
}

static bool write_all(int fd, const char *bytes, size_t size_bytes, int64_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        const size_t left = size_bytes - done;
        const ssize_t put = offset >= 0
                                ? pwrite(fd, bytes + done, left, (off_t)offset + (off_t)done)
                                : write(fd, bytes + done, left);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            errno = put == 0 ? ENOSPC : errno;
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

int64_t lac_read_full(int fd, void *out, size_t size_bytes)
{
    return read_all(fd, out, size_bytes, -1);
}

int64_t lac_read_full_at(int fd, void *out, size_t size_bytes, uint64_t offset)
{
    return offset <= INT64_MAX ? read_all(fd, out, size_bytes, (int64_t)offset) : 0;
}

bool lac_file_read_at(int fd, void *bytes, size_t size_bytes, uint64_t offset)
{
    return lac_read_full_at(fd, bytes, size_bytes, offset) == (int64_t)size_bytes;
}

size_t lac_read_text(const char *path, char *out, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int64_t got = fd >= 0 ? lac_read_full(fd, out, capacity - 1) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

uint64_t lac_text_number(const char *text, const char *key, uint64_t otherwise)
{
    const size_t length = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 &&
            (line[length] == ' ' || line[length] == ':' || line[length] == '\t')) {
            const char *at = line + length;

            at += strspn(at, ": \t");
            return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : otherwise;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return otherwise;
}

bool lac_write_full(int fd, const void *bytes, size_t size_bytes)
{
    return write_all(fd, bytes, size_bytes, -1);
}

bool lac_file_write_at(int fd, const void *bytes, size_t size_bytes, uint64_t offset)
{
    if (offset > INT64_MAX) {
        errno = EFBIG;
        return false;
    }
    return write_all(fd, bytes, size_bytes, (int64_t)offset);
}

bool lac_file_status(int fd, struct stat *ret)
{
    return syscall(SYS_fstat, fd, ret) == 0;
}

int64_t lac_file_size(int fd)
{
    struct stat status = {0};

    return lac_file_status(fd, &status) ? (int64_t)status.st_size : -1;
}

bool lac_file_is_regular(int fd)
{
    struct stat status = {0};

    return lac_file_status(fd, &status) && S_ISREG(status.st_mode);
}

bool lac_file_same_owner(int fd, int other_fd)
{
    struct stat status = {0};
    struct stat other = {0};

    return lac_file_status(fd, &status) && lac_file_status(other_fd, &other) &&
           status.st_uid == other.st_uid;
}

static int64_t changed_ns(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

int64_t lac_file_changed_ns(int fd)
{
    struct stat status = {0};

    return lac_file_status(fd, &status) ? changed_ns(&status) : -1;
}

int64_t lac_path_changed_ns(const char *path)
{
    struct stat status = {0};

    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 ? changed_ns(&status) : -1;
}

/* `path`, a link to `to`, becomes where it leads. */
static bool follow(char *path, size_t capacity, const char *to)
{
    char *const slash = to[0] == '/' ? NULL : strrchr(path, '/');
    char *const end = slash != NULL ? slash + 1 : path;

    if (strlen(to) >= capacity - (size_t)(end - path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(end, to, strlen(to) + 1);
    return true;
}

bool lac_path_to_write(const char *path, char *out, size_t capacity, bool *ret_in_place)
{
    struct stat status = {0};
    const bool is_there = syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;

    *ret_in_place = is_there && !S_ISREG(status.st_mode);
    if ((!is_there && errno != ENOENT) || strlen(path) >= capacity) {
        errno = strlen(path) >= capacity ? ENAMETOOLONG : errno;
        return false;
    }
    memcpy(out, path, strlen(path) + 1);
    for (int links = 0; !*ret_in_place && links < LINKS_MAX; links++) {
        char to[PATH_MAX];
        const ssize_t length = readlink(out, to, sizeof(to) - 1);

        if (length < 0) { /* no link, or nothing there */
            return errno == EINVAL || errno == ENOENT;
        }
        to[length] = '\0';
        if (!follow(out, capacity, to)) {
            return false;
        }
    }
    errno = ELOOP;
    return *ret_in_place;
}
