#include "collector/base/io_full.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int64_t lac_read_full(int fd, void *out, size_t size_bytes)
{
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t got = read(fd, (char *)out + done, size_bytes - done);

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

int64_t lac_read_full_at(int fd, void *out, size_t size_bytes, uint64_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t got =
            pread(fd, (char *)out + done, size_bytes - done, (off_t)(offset + done));

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
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t written = write(fd, (const char *)bytes + done, size_bytes - done);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

bool lac_file_write_at(int fd, const void *bytes, size_t size_bytes, uint64_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t written =
            pwrite(fd, (const char *)bytes + done, size_bytes - done, (off_t)(offset + done));

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

/* fstat() itself is too new a symbol. */
static bool status_of(int fd, struct stat *ret)
{
    return syscall(SYS_fstat, fd, ret) == 0;
}

bool lac_file_is_regular(int fd)
{
    struct stat status = {0};

    return status_of(fd, &status) && S_ISREG(status.st_mode);
}

bool lac_file_same_owner(int fd, int other_fd)
{
    struct stat status = {0};
    struct stat other = {0};

    return status_of(fd, &status) && status_of(other_fd, &other) && status.st_uid == other.st_uid;
}

int64_t lac_file_changed_ns(int fd)
{
    struct stat status = {0};

    return status_of(fd, &status)
               ? (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec
               : -1;
}
