#include "collector/base/io_full.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

bool lac_file_read_at(int fd, void *bytes, size_t size_bytes, uint64_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        const ssize_t got =
            pread(fd, (char *)bytes + done, size_bytes - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
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
