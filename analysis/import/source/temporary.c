#include "analysis/import/source/temporary.h"

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 256 * 1024 };

/* Without a name from the start where the file system can, else for an instant with one. */
static int open_nameless(const char *place)
{
    char path[4096];
    int fd = open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 ||
        (size_t)snprintf(path, sizeof(path), "%s/lacuna-spools-XXXXXX", place) >= sizeof(path)) {
        return fd;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

enum lac_status lac_temporary_file(const char *parent, int *ret_fd, struct lac_error *reterr)
{
    const char *place = parent != NULL ? parent : getenv("TMPDIR");

    if (place == NULL || place[0] == '\0') {
        place = "/tmp";
    }
    *ret_fd = open_nameless(place);
    return *ret_fd >= 0
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, 0,
                          "cannot make a temporary file in %.100s: %s; set TMPDIR to a folder "
                          "with room",
                          place, strerror(errno));
}

enum lac_status lac_temporary_copy(const char *parent, struct lac_source *source, int *ret_fd,
                                   struct lac_error *reterr)
{
    uint8_t *buffer = malloc(COPY_BYTES);
    size_t got = 1;
    *ret_fd = -1;
    enum lac_status status = buffer != NULL ? lac_temporary_file(parent, ret_fd, reterr)
                                            : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    while (status == LAC_OK && got > 0) {
        status = lac_source_read(source, buffer, COPY_BYTES, &got, reterr);
        if (status == LAC_OK && !lac_write_full(*ret_fd, buffer, got)) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot write a temporary file: %s",
                              strerror(errno));
        }
    }
    if (status != LAC_OK && *ret_fd >= 0) {
        (void)close(*ret_fd);
        *ret_fd = -1;
    }
    free(buffer);
    return status;
}
