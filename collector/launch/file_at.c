#include "collector/launch/file_at.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
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
