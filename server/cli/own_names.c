#include "server/cli/own_names.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "server/cli/complain.h"
#include "server/cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Where the file is when nobody says: "" without a home. */
static void usual_path(char *out, size_t capacity_bytes)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    out[0] = '\0';
    if (xdg != NULL && *xdg == '/') {
        (void)snprintf(out, capacity_bytes, "%s/lacuna/names", xdg);
    } else if (home != NULL && *home == '/') {
        (void)snprintf(out, capacity_bytes, "%s/.config/lacuna/names", home);
    }
}

/** The whole of a regular file. */
static enum lac_status read_file(int fd, char **ret_text, struct lac_error *reterr)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "is no file");
    }
    if (status.st_size > LAC_NAMES_FILE_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "has more than %d bytes",
                        LAC_NAMES_FILE_BYTES_MAX);
    }
    char *text = malloc((size_t)status.st_size + 1);
    if (text == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    int64_t length = lac_read_full(fd, text, (size_t)status.st_size);
    if (length < 0) {
        free(text);
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s", strerror(errno));
    }
    text[length] = '\0';
    if (strlen(text) != (size_t)length) {
        free(text);
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "holds a NUL byte");
    }
    *ret_text = text;
    return LAC_OK;
}

enum lac_status lac_own_names_read(const char *command, const struct lac_options *options,
                                   struct lac_own_names *ret_own)
{
    char usual[4096];
    struct lac_error error = {0};
    struct lac_own_names own = {NULL, NULL};
    *ret_own = own;
    usual_path(usual, sizeof(usual));
    const char *given = lac_options_text(options, "names", NULL);
    const char *path = given != NULL ? given : usual;
    int fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        if (given == NULL) {
            return LAC_OK;
        }
        lac_complain(command, path, "%s", strerror(errno));
        return LAC_ERR_IO;
    }
    enum lac_status status = read_file(fd, &own.text, &error);
    (void)close(fd);
    if (!status && own.text != NULL) {
        status = lac_names_parse(own.text, strlen(own.text), &own.names, &error);
    }
    if (status) {
        lac_complain(command, path, "%s", error.message);
        lac_own_names_done(&own);
        return status;
    }
    *ret_own = own;
    return LAC_OK;
}

void lac_own_names_done(struct lac_own_names *own)
{
    lac_names_destroy(own->names);
    free(own->text);
    *own = (struct lac_own_names){NULL, NULL};
}
