#include "server/base/output_file.h"

#include "analysis/model/status.h"
#include "collector/base/io_full.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum lac_status cannot(struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_IO, 0, "cannot be written: %s", strerror(errno));
}

/* The stream that the path leads to: stdout, stderr, or -1. Also what `>>` made it: a fresh file in
 * the place of that would lose what is in it already. */
static int stream_of(const char *path)
{
    struct stat named, ours;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (stat(path, &named) == 0 && fstat(fd, &ours) == 0 && named.st_dev == ours.st_dev &&
            named.st_ino == ours.st_ino) {
            return fd;
        }
    }
    return -1;
}

enum lac_status lac_output_file_find(struct lac_output_file *output, const char *path,
                                     struct lac_error *reterr)
{
    assert(output != NULL && path != NULL);
    bool is_in_place;

    *output = (struct lac_output_file){0};
    if (!lac_path_to_write(path, output->path, sizeof(output->path), &is_in_place)) {
        return cannot(reterr);
    }
    if (!is_in_place && stream_of(path) < 0) {
        (void)snprintf(output->staged, sizeof(output->staged), "%s.XXXXXX", output->path);
    }
    return LAC_OK;
}

int lac_output_file_open(struct lac_output_file *output, struct lac_error *reterr)
{
    assert(output != NULL);
    int fd;

    if (output->staged[0] != '\0') {
        fd = mkostemp(output->staged, O_CLOEXEC);
    } else if (stream_of(output->path) >= 0) { /* a socket cannot be opened by its name */
        fd = fcntl(stream_of(output->path), F_DUPFD_CLOEXEC, 0);
    } else {
        fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (fd < 0) {
        output->staged[0] = '\0'; /* nothing to remove */
        (void)cannot(reterr);
        return -1;
    }
    if (output->staged[0] != '\0') {
        const mode_t mask = umask(0);
        (void)umask(mask);
        (void)fchmod(fd, 0666 & ~mask);
    }
    return fd;
}

enum lac_status lac_output_file_publish(struct lac_output_file *output, struct lac_error *reterr)
{
    assert(output != NULL);
    if (output->staged[0] != '\0' && rename(output->staged, output->path) != 0) {
        const int error = errno;

        lac_output_file_remove(output);
        errno = error;
        return cannot(reterr);
    }
    return LAC_OK;
}

void lac_output_file_remove(void *output)
{
    const struct lac_output_file *file = output;

    if (file->staged[0] != '\0') {
        (void)unlink(file->staged);
    }
}
