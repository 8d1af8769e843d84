#include "server/demo/files.h"

#include "analysis/model/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum lac_status io_error(const char *path, struct lac_error *reterr)
{
    int saved = errno;
    enum lac_status status = lac_fail(reterr, LAC_ERR_IO, 0, "%.120s: %s", path, strerror(saved));
    if (reterr != NULL) {
        reterr->sys_errno = saved;
    }
    return status;
}

enum lac_status lac_demo_make_dir(const char *dir, struct lac_error *reterr)
{
    char path[LAC_DEMO_PATH_BYTES];
    int length = snprintf(path, sizeof(path), "%s", dir);
    if (length <= 0 || (size_t)length >= sizeof(path) - 64) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the folder's name is empty or too long");
    }
    for (char *c = path + 1;; c++) {
        if (*c == '/' || *c == '\0') {
            char kept = *c;
            *c = '\0';
            if (mkdir(path, 0777) != 0 && errno != EEXIST) {
                return io_error(path, reterr);
            }
            *c = kept;
            if (kept == '\0') {
                return LAC_OK;
            }
        }
    }
}

enum lac_status lac_demo_write_file(const char *path, lac_demo_write_fn *write, const void *what,
                                    struct lac_error *reterr)
{
    char part[LAC_DEMO_PATH_BYTES];
    if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the folder's name is too long");
    }
    FILE *out = fopen(part, "w");
    if (out == NULL) {
        return io_error(part, reterr);
    }
    enum lac_status status = write(out, what, reterr);
    if (status == LAC_OK && ferror(out)) {
        status = io_error(part, reterr);
    }
    if (fclose(out) != 0 && status == LAC_OK) {
        status = io_error(part, reterr);
    }
    if (status == LAC_OK && rename(part, path) != 0) {
        status = io_error(path, reterr);
    }
    if (status != LAC_OK) {
        (void)unlink(part);
    }
    return status;
}
