#include "collector/hang/hang_dumps.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/hang/hang_flight.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DUMP_BYTES_MAX = 64 << 20 };

static const char *first_variable(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *const value = getenv(names[i]);

        if (value != NULL && value[0] != '\0') {
            return value;
        }
    }
    return NULL;
}

bool lac_hang_dumps_ask(int32_t rank)
{
    static const char *const names[] = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                        "TORCH_FR_DEBUG_INFO_PIPE_FILE"};
    const char *const stem = first_variable(names, LAC_COUNT_OF(names));
    char path[PATH_MAX];
    struct stat is;
    bool is_asked;
    int fd;

    if (stem == NULL ||
        snprintf(path, sizeof(path), "%s%d.pipe", stem, (int)rank) >= (int)sizeof(path)) {
        return false;
    }
    fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC); /* fails where nobody reads */
    if (fd < 0) {
        return false;
    }
    is_asked = lac_file_status(fd, &is) && S_ISFIFO(is.st_mode) && write(fd, "1\n", 2) == 2;
    (void)close(fd);
    return is_asked;
}

/* The files that PyTorch may write: where it is told to, else where its versions do. */
static bool dump_path(unsigned which, int32_t rank, char *path, size_t capacity)
{
    static const char *const names[] = {"TORCH_FR_DUMP_TEMP_FILE",
                                        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};
    const char *const told = first_variable(names, LAC_COUNT_OF(names));
    const char *const cache = getenv("XDG_CACHE_HOME");
    const char *const home = getenv("HOME");
    int length = -1;

    if (told != NULL) {
        length = which == 0 ? snprintf(path, capacity, "%s%d", told, (int)rank) : -1;
    } else if (which == 0 && cache != NULL) {
        length = snprintf(path, capacity, "%s/torch/comm_lib_trace_rank_%d", cache, (int)rank);
    } else if (which == 1 && home != NULL) {
        length =
            snprintf(path, capacity, "%s/.cache/torch/comm_lib_trace_rank_%d", home, (int)rank);
    } else if (which == 2) { /* before PyTorch 2.7 */
        length = snprintf(path, capacity, "/tmp/nccl_trace_rank_%d", (int)rank);
    }
    return length > 0 && (size_t)length < capacity;
}

static bool read_dump(const char *path, int64_t since_s, struct lac_flight *ret)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat is;
    char *bytes = NULL;
    int64_t length = -1;
    bool is_read = false;

    if (fd < 0) {
        return false;
    }
    if (lac_file_status(fd, &is) && S_ISREG(is.st_mode) && is.st_uid == geteuid() &&
        (int64_t)is.st_mtime >= since_s && is.st_size > 0 && is.st_size <= DUMP_BYTES_MAX) {
        bytes = malloc((size_t)is.st_size);
        length = bytes != NULL ? lac_read_full(fd, bytes, (size_t)is.st_size) : -1;
    }
    (void)close(fd);
    if (length > 0) {
        is_read = lac_flight_read(bytes, (size_t)length, ret);
    }
    free(bytes);
    return is_read;
}

bool lac_hang_dumps_read(int32_t rank, int64_t since_s, struct lac_flight *ret)
{
    char path[PATH_MAX];

    ret->rank = rank;
    for (unsigned which = 0; which < 3; which++) {
        if (dump_path(which, rank, path, sizeof(path)) && read_dump(path, since_s, ret)) {
            return true;
        }
    }
    return false;
}
