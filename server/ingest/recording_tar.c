#include "server/ingest/recording_tar.h"

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/tar_folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20 };

static enum lac_status fail_write(struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write to the data folder: %s", strerror(errno));
}

static enum lac_status copy(struct lac_tar_folder *tar, int out, struct lac_error *reterr)
{
    char *const buffer = malloc(COPY_BYTES);
    enum lac_status status =
        buffer != NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    int64_t got = 1;

    while (status == LAC_OK && got > 0) {
        got = lac_tar_folder_read(tar, buffer, COPY_BYTES);
        if (got < 0) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "a file of the recording cannot be read: %s",
                              errno != 0 ? strerror(errno) : "it became shorter meanwhile");
        } else if (!lac_write_full(out, buffer, (size_t)got)) {
            status = fail_write(reterr);
        }
    }
    free(buffer);
    return status;
}

enum lac_status lac_recording_tar(const char *folder, const char *tar_path,
                                  struct lac_error *reterr)
{
    assert(folder != NULL && tar_path != NULL);
    struct lac_tar_folder *const tar = lac_tar_folder_open(folder);
    enum lac_status status;
    int out;

    if (tar == NULL) {
        return errno == ENODATA
                   ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0,
                              "the folder holds no recording of its own; give the path of one")
                   : lac_fail(reterr, LAC_ERR_IO, 0, "cannot open the folder: %s", strerror(errno));
    }
    out = open(tar_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    status = out >= 0 ? copy(tar, out, reterr) : fail_write(reterr);
    if (out >= 0 && close(out) != 0 && status == LAC_OK) {
        status = fail_write(reterr);
    }
    lac_tar_folder_close(tar);
    return status;
}
