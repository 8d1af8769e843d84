#include "server/cli/sql_source.h"

#include "analysis/import/import.h"
#include "analysis/model/status.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/ingest/convert.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CACHE_BYTES = 512 << 20, TRACES_MAX = 10000 };

/** Whether the file says that it is one of ours: SQLite's header with our application id. */
static bool is_trace_file(const char *path)
{
    static const unsigned char id[4] = {0x4C, 0x41, 0x43, 0x54};
    unsigned char head[72];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? pread(fd, head, sizeof(head), 0) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return got == (ssize_t)sizeof(head) && memcmp(head, "SQLite format 3", 16) == 0 &&
           memcmp(head + 68, id, sizeof(id)) == 0;
}

/** Where the data folder keeps the trace with that id. @return false: it is no id */
static bool find_id(const char *path, const struct lac_options *options, char *out,
                    size_t capacity_bytes)
{
    char folder[PATH_MAX];
    if (!lac_store_id_is_valid(path) || access(path, F_OK) == 0 ||
        !lac_options_data_dir(options, folder, sizeof(folder))) {
        return false;
    }
    int length = snprintf(out, capacity_bytes, "%s/traces/%s.db", folder, path);
    return length > 0 && (size_t)length < capacity_bytes;
}

/** The folder that holds what is imported, and goes away. */
struct workplace {
    char path[PATH_MAX];
};

static void trace_path(const struct workplace *place, uint32_t number, char *out,
                       size_t capacity_bytes)
{
    (void)snprintf(out, capacity_bytes, "%s/trace-%u.db", place->path, number);
}

static void clear(void *context)
{
    const struct workplace *place = context;
    char path[PATH_MAX + 32];
    for (uint32_t i = 0; i < TRACES_MAX; i++) {
        trace_path(place, i, path, sizeof(path));
        if (unlink(path) != 0) {
            break;
        }
    }
    (void)rmdir(place->path);
}

static enum lac_status import(const char *path, const struct lac_names *names,
                              struct lac_trace_file **ret_file, struct lac_error *error)
{
    struct workplace place;
    const char *folder = getenv("TMPDIR");
    struct lac_convert_result result = {0};
    struct lac_convert_options convert = {.input_path = path, .names = names};
    struct lac_ending ending;
    char made[PATH_MAX + 32];
    int length = snprintf(place.path, sizeof(place.path), "%s/lacuna-sql-XXXXXX",
                          folder != NULL && folder[0] == '/' ? folder : "/tmp");
    if (length < 0 || (size_t)length >= sizeof(place.path) || mkdtemp(place.path) == NULL) {
        return lac_fail(error, LAC_ERR_IO, 0, "no temporary folder can be made: %s",
                        strerror(errno));
    }
    lac_ending_begin(&ending, clear, &place);
    convert.output_dir = place.path;
    lac_import_limits_default(&convert.limits);
    enum lac_status status = lac_convert(&convert, &result, error);
    if (status == LAC_OK && result.trace_count > 1) {
        status = lac_fail(error, LAC_ERR_MISUSE, 0,
                          "contains %u traces: unpack it and give one of them, or import it and "
                          "give a trace's id",
                          result.trace_count);
    }
    if (status == LAC_OK) {
        trace_path(&place, 0, made, sizeof(made));
        status = lac_trace_file_open(made, CACHE_BYTES, ret_file, error);
    }
    clear(&place); /* what is open stays readable */
    lac_ending_over(&ending);
    return status;
}

enum lac_status lac_sql_source_open(const char *command, const char *path,
                                    const struct lac_options *options,
                                    const struct lac_names *names, struct lac_trace_file **ret_file)
{
    char stored[PATH_MAX + 64];
    struct lac_error error = {0};
    enum lac_status status;
    if (is_trace_file(path)) {
        status = lac_trace_file_open(path, CACHE_BYTES, ret_file, &error);
    } else if (find_id(path, options, stored, sizeof(stored))) {
        status = is_trace_file(stored)
                     ? lac_trace_file_open(stored, CACHE_BYTES, ret_file, &error)
                     : lac_fail(&error, LAC_ERR_NOT_FOUND, 0,
                                "is no file, and no trace of the data folder (--data)");
    } else {
        status = import(path, names, ret_file, &error);
    }
    if (status) {
        lac_complain(command, path, "%s", lac_error_text(&error, status));
    }
    return status;
}
