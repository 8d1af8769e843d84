#include "server/cli/sql_source.h"

#include "analysis/import/import.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/ingest/convert.h"
#include "server/sql/reference.h"
#include "server/sql/result_text.h"
#include "server/sql/sql_query.h"
#include "server/sql/sql_trace.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CACHE_BYTES = 512 << 20, FOLDERS_OPEN = 16, REMOVALS_MAX = 100 };

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
    pthread_mutex_t lock; /**< held while the folder is made and while it goes away */
    char path[PATH_MAX];  /**< "": there is none */
};

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

static void clear(struct workplace *place)
{
    for (int i = 0; i < REMOVALS_MAX && place->path[0] != '\0' && access(place->path, F_OK) == 0;
         i++) {
        /* again where the thread that imports has just made a file */
        (void)nftw(place->path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    }
    place->path[0] = '\0';
}

/** At the end of the program; the lock stays, so that no folder is made any more. */
static void clear_at_end(void *context)
{
    struct workplace *place = context;
    (void)pthread_mutex_lock(&place->lock);
    clear(place);
}

static enum lac_status make_workplace(struct workplace *place, struct lac_error *reterr)
{
    const char *folder = getenv("TMPDIR");
    bool is_made;
    int error;
    (void)pthread_mutex_lock(&place->lock);
    int length = snprintf(place->path, sizeof(place->path), "%s/lacuna-sql-XXXXXX",
                          folder != NULL && folder[0] == '/' ? folder : "/tmp");
    errno = ENAMETOOLONG;
    is_made = length > 0 && (size_t)length < sizeof(place->path) && mkdtemp(place->path) != NULL;
    error = errno;
    if (!is_made) {
        place->path[0] = '\0'; /* nothing to remove */
    }
    (void)pthread_mutex_unlock(&place->lock);
    return is_made ? LAC_OK
                   : lac_fail(reterr, LAC_ERR_IO, 0, "no temporary folder can be made: %s",
                              strerror(error));
}

static enum lac_status convert_in(const struct workplace *place, const char *path,
                                  const struct lac_names *names, struct lac_trace_file **ret_file,
                                  struct lac_error *reterr)
{
    struct lac_convert_result result = {0};
    struct lac_convert_options convert = {
        .input_path = path, .names = names, .output_dir = place->path};
    char made[PATH_MAX + 32];
    lac_import_limits_default(&convert.limits);
    enum lac_status status = lac_convert(&convert, &result, reterr);
    if (status) {
        return status;
    }
    if (result.trace_count > 1) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "contains %u traces: unpack it and give one of them, or import it and "
                        "give a trace's id",
                        result.trace_count);
    }
    (void)snprintf(made, sizeof(made), "%s/trace-0.db", place->path);
    return lac_trace_file_open(made, CACHE_BYTES, ret_file, reterr);
}

static enum lac_status import(const char *path, const struct lac_names *names,
                              struct lac_trace_file **ret_file, struct lac_error *error)
{
    struct workplace place = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct lac_ending ending;
    lac_ending_begin(&ending, clear_at_end, &place);
    enum lac_status status = make_workplace(&place, error);
    if (!status) {
        status = convert_in(&place, path, names, ret_file, error);
    }
    (void)pthread_mutex_lock(&place.lock);
    clear(&place); /* what is open stays readable */
    (void)pthread_mutex_unlock(&place.lock);
    lac_ending_over(&ending);
    return status;
}

bool lac_sql_source_is_stored(const char *path, const struct lac_options *options, char *out,
                              size_t capacity_bytes)
{
    if (!is_trace_file(path)) {
        return find_id(path, options, out, capacity_bytes);
    }
    const int length = snprintf(out, capacity_bytes, "%s", path);
    return length >= 0 && (size_t)length < capacity_bytes;
}

enum lac_status lac_sql_source_open(const char *command, const char *path,
                                    const struct lac_options *options,
                                    const struct lac_names *names, struct lac_trace_file **ret_file)
{
    char stored[PATH_MAX + 64];
    struct lac_error error = {0};
    enum lac_status status;
    if (lac_sql_source_is_stored(path, options, stored, sizeof(stored))) {
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

/* -- answers -------------------------------------------------------------------------------------- */

/** The traces that a query reads. */
struct sources {
    struct lac_trace_file **files;
    struct lac_sql_trace *traces;
    char **names;
    int count;
};

static void close_sources(struct sources *sources)
{
    for (int i = 0; i < sources->count; i++) {
        lac_sql_trace_done(&sources->traces[i]);
        lac_trace_file_close(sources->files[i]);
        free(sources->names[i]);
    }
    free((void *)sources->files);
    free(sources->traces);
    free((void *)sources->names);
}

/** @return NULL: out of memory */
static char *name_of(const struct sources *sources, const char *path)
{
    const struct lac_sql_many many = {.names = (const char *const *)sources->names,
                                      .count = (unsigned)sources->count};
    const struct lac_model *head = lac_trace_file_head(sources->files[sources->count]);
    const char *own = lac_model_str(head, head->info.name);
    const char *slash = strrchr(path, '/');
    return lac_sql_many_name(&many, own[0] != '\0' ? own : slash != NULL ? slash + 1 : path);
}

static enum lac_status open_sources(const struct lac_sql_job *job,
                                    const struct lac_options *options, struct sources *sources)
{
    const size_t count = (size_t)job->path_count;
    sources->files = calloc(count, sizeof(*sources->files));
    sources->traces = calloc(count, sizeof(*sources->traces));
    sources->names = calloc(count, sizeof(*sources->names));
    enum lac_status status =
        sources->files != NULL && sources->traces != NULL && sources->names != NULL ? LAC_OK
                                                                                    : LAC_ERR_NOMEM;
    for (int i = 0; i < job->path_count && !status; i++) {
        status = lac_sql_source_open(job->command, job->paths[i], options, job->names,
                                     &sources->files[i]);
        if (status) {
            return status; /* which is said */
        }
        sources->names[i] = name_of(sources, job->paths[i]);
        lac_sql_trace_init(&sources->traces[i], sources->files[i]);
        status = sources->names[i] != NULL ? LAC_OK : LAC_ERR_NOMEM;
        sources->count++;
    }
    if (status) {
        lac_complain(job->command, NULL, "out of memory");
    }
    return status;
}

static int answer(struct lac_sql_job *job, struct sources *sources)
{
    struct lac_error error = {0};
    struct lac_sql_sink sink = lac_sql_result_sink(&job->result);
    struct lac_sql_many many = {.traces = sources->traces,
                                .names = (const char *const *)sources->names,
                                .count = (unsigned)sources->count};
    enum lac_status status =
        sources->count > 1
            ? lac_sql_query_many(&many, job->query, &job->limits, &sink, &error)
            : lac_sql_query(sources->traces, job->query, &job->limits, &sink, &error);
    if (status) {
        (void)fflush(stdout);
        lac_complain(job->command, NULL, "%s%s", lac_error_text(&error, status),
                     status != LAC_ERR_LIMIT                   ? ""
                     : strstr(error.message, "memory") != NULL ? " (--memory)"
                                                               : " (--timeout)");
        return EXIT_FAILURE;
    }
    status = lac_sql_result_finish(&job->result);
    if (status && !ferror(stdout)) {
        lac_complain(job->command, NULL, "%s", lac_status_text(status));
    }
    if (fflush(stdout) != 0 || status) {
        return EXIT_FAILURE;
    }
    if (job->result.cut != NULL && job->result.form != LAC_SQL_FORM_JSON) {
        (void)fprintf(stderr, "%s: the first %" PRIu64 " rows; --limit 0 prints all of them\n",
                      job->command, job->result.row_count);
    }
    return EXIT_SUCCESS;
}

int lac_sql_job_run(struct lac_sql_job *job, const struct lac_options *options)
{
    struct sources sources = {.count = 0};
    job->result.file = stdout;
    job->result.width = isatty(STDOUT_FILENO) == 1;
    const int exit_status =
        open_sources(job, options, &sources) ? EXIT_FAILURE : answer(job, &sources);
    close_sources(&sources);
    lac_sql_result_done(&job->result);
    return exit_status;
}

int lac_sql_report_run(const char *name, const struct lac_options *options,
                       const struct lac_names *names)
{
    const struct lac_sql_question *report = lac_sql_report_of(name);
    const bool is_json = lac_options_on(options, "json", false);
    const bool is_csv = lac_options_on(options, "csv", false);
    if (report == NULL) {
        (void)fprintf(stderr, "lacuna analyze: --report must be one of:");
        for (unsigned i = 0; i < lac_sql_report_count; i++) {
            (void)fprintf(stderr, " %s", lac_sql_reports[i].id);
        }
        (void)fputc('\n', stderr);
        return 2;
    }
    if (options->operand_count != 1 || (is_json && is_csv)) {
        (void)fprintf(stderr, is_json && is_csv ? "lacuna analyze: give --json or --csv, not both\n"
                                                : "lacuna analyze: --report takes one trace\n");
        return 2;
    }
    struct lac_sql_job job = {.command = "lacuna analyze",
                              .paths = options->operands,
                              .path_count = 1,
                              .query = report->sql,
                              .names = names};
    job.result.form = is_json ? LAC_SQL_FORM_JSON : is_csv ? LAC_SQL_FORM_CSV : LAC_SQL_FORM_TABLE;
    return lac_sql_job_run(&job, options);
}
