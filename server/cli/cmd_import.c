#include "analysis/diagnose/names/names.h"
#include "analysis/import/import.h"
#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/ingest/convert.h"
#include "server/ingest/original.h"
#include "server/ingest/recording_tar.h"
#include "server/store/publish.h"
#include "server/store/store.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "lacuna import PATH... [--data DIR] [--name NAME] [--project NAME]\n"
    "\n"
    "Imports traces into the data folder: PyTorch profiler, TensorFlow timeline, any Chrome trace\n"
    "(also .gz, .zst, or .tar.gz of ranks), Nsight Systems exports, and recordings of lacuna run.\n"
    "A file that was already imported is skipped.\n";

static const struct lac_option options_table[] = {
    {.name = "data", .letter = 'd', .value = "DIR", .help = "the data folder"},
    {.name = "name", .value = "NAME", .help = "name of the trace (one PATH)", .flag_only = true},
    {.name = "project", .value = "NAME", .help = "project of the trace"},
    {.name = "keep-originals", .help = "keep the files as they are, compressed (default on)"},
    LAC_OPTION_NAMES,
    {.name = "again", .help = "import even if already imported", .flag_only = true},
    {0},
};

enum { REMOVALS_MAX = 100 };

/** Progress on a terminal: one line, rewritten a few times a second. */
struct meter {
    const char *path;
    bool is_shown;
    bool is_dirty;
    double last_s;
};

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool show_progress(void *context, uint64_t done_bytes, uint64_t total_bytes,
                          uint64_t event_count)
{
    struct meter *meter = context;
    double now = now_s();

    if (meter->is_shown && now - meter->last_s > 0.1) {
        int percent = total_bytes > 0 ? (int)(100.0 * (double)done_bytes / (double)total_bytes) : 0;

        char path[200];

        (void)fprintf(stderr, "\r%s: %3d %%  %.1f M events ",
                      lac_terminal_string(meter->path, path, sizeof(path)), percent,
                      (double)event_count / 1e6);
        (void)fflush(stderr);
        meter->is_dirty = true;
        meter->last_s = now;
    }
    return true;
}

static void clear_progress(struct meter *meter)
{
    if (meter->is_dirty) {
        (void)fprintf(stderr, "\r\033[K");
        meter->is_dirty = false;
    }
}

struct import_run {
    struct lac_store *store;
    const char *name;
    const char *project;
    const struct lac_names *names;
    bool keep_originals;
    bool again;
};

static void print_traces(const struct import_run *run, char (*ids)[LAC_ID_SIZE], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct lac_trace_row row;
        struct lac_error error;

        if (lac_store_get_trace(run->store, ids[i], &row, &error) != LAC_OK) {
            continue;
        }
        printf("%s  ", ids[i]);
        lac_terminal_print(stdout, row.name, strlen(row.name));
        printf("  %llu events", (unsigned long long)row.event_count);
        if (row.repaired_count > 0) {
            printf(", %llu repaired", (unsigned long long)row.repaired_count);
        }
        if (row.dropped_count > 0) {
            printf(", %llu dropped", (unsigned long long)row.dropped_count);
        }
        printf("%s", row.summary.present ? ": " : "");
        lac_terminal_print(stdout, row.summary.text, strlen(row.summary.text));
        printf("\n");
        lac_trace_row_done(&row);
    }
}

/** What a run is called that came as one archive: the file, without folder and endings. */
static char *run_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    char *ending = name != NULL ? strstr(name, ".tar") : NULL;

    if (ending == NULL && name != NULL) {
        ending = strstr(name, ".tgz");
    }
    if (ending != NULL && ending != name) {
        *ending = '\0';
    }
    return name;
}

/** Convert and publish; the staging folder is the caller's. */
static enum lac_status convert_and_publish(const struct import_run *run, const char *path,
                                           const struct lac_publication *base, struct meter *meter,
                                           struct lac_error *error)
{
    struct lac_publication publication = *base;
    struct lac_convert_options convert = {.input_path = path,
                                          .output_dir = base->staging->path,
                                          .name = run->name,
                                          .names = run->names,
                                          .progress = show_progress,
                                          .progress_context = meter};
    struct lac_convert_result result = {0};
    char(*ids)[LAC_ID_SIZE];
    char *name = NULL;
    enum lac_status status;

    lac_import_limits_default(&convert.limits);
    status = lac_convert(&convert, &result, error);
    clear_progress(meter);
    if (status != LAC_OK) {
        return status;
    }
    publication.trace_count = result.trace_count;
    if (result.trace_count > 1 && publication.name == NULL) {
        name = run_name(path);
        publication.name = name;
    }
    ids = calloc(result.trace_count, sizeof(*ids));
    status = ids != NULL ? lac_store_publish(run->store, &publication, ids, error)
                         : lac_fail(error, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        print_traces(run, ids, result.trace_count);
    }
    free(ids);
    free(name);
    return status;
}

/* `content` is the file that is hashed and kept: `path` itself, or the archive of that folder. */
static enum lac_status import_staged(const struct import_run *run, const char *path,
                                     const char *content, const struct lac_staging *staging,
                                     struct lac_error *error)
{
    char original_path[sizeof(staging->path) + 32];
    uint8_t sha256[LAC_SHA256_SIZE];
    char existing[LAC_ID_SIZE];
    struct meter meter = {.path = path, .is_shown = isatty(STDERR_FILENO) == 1};
    const struct lac_original_options original = {.input_path = content,
                                                  .output_path =
                                                      run->keep_originals ? original_path : NULL,
                                                  .ret_sha256 = sha256};
    struct lac_publication publication = {.staging = staging,
                                          .name = run->name,
                                          .project = run->project,
                                          .sha256 = sha256,
                                          .has_original = run->keep_originals};
    enum lac_status status;

    (void)snprintf(original_path, sizeof(original_path), "%s/" LAC_STAGED_ORIGINAL, staging->path);
    status = lac_original_read(&original, &publication.size_bytes, error);
    if (status != LAC_OK) {
        return status;
    }
    status = run->again ? LAC_ERR_NOT_FOUND
                        : lac_store_find_content(run->store, run->project, run->name, sha256,
                                                 existing, error);
    if (status == LAC_OK) {
        printf("%s  ", existing);
        lac_terminal_print(stdout, path, strlen(path));
        printf(" is already imported\n");
        return LAC_OK;
    }
    return status == LAC_ERR_NOT_FOUND ? convert_and_publish(run, path, &publication, &meter, error)
                                       : status;
}

/* A recording of `lacuna run` is a folder: it is hashed and kept as one archive. */
static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static enum lac_status import_folder(const struct import_run *run, const char *path,
                                     const struct lac_staging *staging, struct lac_error *error)
{
    char tar_path[sizeof(staging->path) + 32];
    enum lac_status status;

    (void)snprintf(tar_path, sizeof(tar_path), "%s/recording.tar", staging->path);
    status = lac_recording_tar(path, tar_path, error);
    if (status == LAC_OK) {
        status = import_staged(run, path, tar_path, staging, error);
    }
    (void)unlink(tar_path);
    return status;
}

/* Of an import that is ended: the folder goes, though the import may still be writing into it. */
static void remove_staged(void *context)
{
    const struct lac_staging *staging = context;

    for (int i = 0; i < REMOVALS_MAX && access(staging->path, F_OK) == 0; i++) {
        struct lac_staging again = *staging;

        again.fd = dup(staging->fd);
        lac_staging_remove(&again);
    }
}

static bool import_one(const struct import_run *run, const char *path)
{
    struct lac_staging staging = {.fd = -1};
    struct lac_error error = {0};
    char id[LAC_ID_SIZE];
    enum lac_status status = lac_store_new_id(id, &error);

    if (status == LAC_OK) {
        status = lac_staging_create(run->store, id, &staging, &error);
    }
    if (status == LAC_OK) {
        struct lac_ending ending;

        lac_ending_begin(&ending, remove_staged, &staging);
        status = is_folder(path) ? import_folder(run, path, &staging, &error)
                                 : import_staged(run, path, path, &staging, &error);
        lac_ending_over(&ending);
    }
    lac_staging_remove(&staging);
    if (status == LAC_OK) {
        return fflush(stdout) == 0;
    }
    error.status = status;
    lac_complain_error("lacuna import", path, &error);
    return false;
}

static void tell_notice(void *context, const char *line)
{
    (void)context;
    (void)fprintf(stderr, "lacuna import: %s\n", line);
}

int lac_cmd_import(int argc, char **argv)
{
    char data_dir[4096];
    struct lac_options options;
    struct lac_store_options store_options = {
        .data_dir = data_dir, .sweep = true, .notice = tell_notice};
    struct import_run run = {0};
    struct lac_own_names own = {NULL, NULL};
    struct lac_error error = {0};
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    bool good = true;

    (void)signal(SIGXFSZ, SIG_IGN); /* a limit of files is an error that says so */
    if (status >= 0) {
        return status;
    }
    run.name = lac_options_text(&options, "name", NULL);
    run.project = lac_options_text(&options, "project", NULL);
    run.keep_originals = lac_options_on(&options, "keep-originals", true);
    run.again = lac_options_on(&options, "again", false);
    if (options.operand_count == 0 || (run.name != NULL && options.operand_count > 1)) {
        (void)fprintf(stderr, "lacuna import: %s (see lacuna import --help)\n",
                      options.operand_count == 0 ? "no file given" : "--name takes one PATH");
        status = 2;
    } else if (!lac_options_data_dir(&options, data_dir, sizeof(data_dir))) {
        status = 2;
    } else if (lac_own_names_read("lacuna import", &options, &own)) {
        status = 1;
    } else if (lac_store_open(&store_options, &run.store, &error) != LAC_OK) {
        lac_complain("lacuna import", data_dir, "%s", error.message);
        status = 1;
    } else {
        run.names = own.names;
        for (int i = 0; i < options.operand_count; i++) {
            good = import_one(&run, options.operands[i]) && good;
        }
        status = good ? 0 : 1;
    }
    lac_store_close(run.store);
    lac_own_names_done(&own);
    lac_options_done(&options);
    return status;
}
