#include "analysis/crew/crew.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/import/import.h"
#include "analysis/import/importers.h"
#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "lacuna/spool.h"
#include "server/base/project_name.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/ingest/convert.h"
#include "server/ingest/join_tar.h"
#include "server/ingest/original.h"
#include "server/ingest/recording_tar.h"
#include "server/store/publish.h"
#include "server/store/store.h"

#include <dirent.h>
#include <malloc.h>
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
    "lacuna import PATH PATH... --join [--offset SECONDS]\n"
    "\n"
    "Imports traces into the data folder, also compressed (.gz, .zst), or as a folder or\n"
    "a .tar.gz of ranks; what a file holds decides, not its name. Recordings of lacuna run, and:\n"
    "%s.\n"
    "A file that was already imported is skipped.\n"
    "\n"
    "--join makes one trace of a trace, logs recorded beside it (nvidia-smi, dmon, nmon, event\n"
    "files of TensorBoard) and profiles (py-spy, folded stacks): counters go beside the GPU's\n"
    "rows, a profile without times becomes a flame graph of its own; annotations of CUDA graphs\n"
    "name the modules of kernels. Files that tell the time of day are laid by it. For others\n"
    "--offset says when they begin, counted from the start of the trace.\n";

static const struct lac_option options_table[] = {
    {.name = "data", .letter = 'd', .value = "DIR", .help = "the data folder"},
    {.name = "name", .value = "NAME", .help = "name of the trace (one PATH)", .flag_only = true},
    {.name = "project", .value = "NAME", .help = "project of the trace"},
    {.name = "join",
     .help = "the files are one trace and what was recorded beside it",
     .flag_only = true},
    {.name = "offset",
     .value = "SECONDS",
     .help = "with --join: move all files but the first",
     .flag_only = true},
    {.name = "keep-originals", .help = "keep the files as they are, compressed (default on)"},
    LAC_OPTION_NAMES,
    {.name = "again", .help = "import even if already imported", .flag_only = true},
    {0},
};

enum { REMOVALS_MAX = 100 };

struct import_run {
    struct lac_store *store;
    const char *name;
    const char *project;
    const struct lac_names *names;
    bool keep_originals;
    bool again;
};

/** Progress on a terminal: one line, rewritten a few times a second. The file is hashed meanwhile:
 *  once that is done, one that is there already is read no further. */
struct meter {
    const struct import_run *run;
    const struct lac_original_task *hashing;
    const uint8_t *sha256;
    const char *path;  /**< as it was given */
    const char *input; /**< what is read: that, or an archive of it */
    bool is_shown;
    bool is_dirty;
    bool is_looked_up;
    bool is_known;
    char existing[LAC_ID_SIZE]; /**< the trace, where it is known */
    double last_s;
};

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/** The hash is known: look whether the content is. */
static enum lac_status look_up(struct meter *meter, struct lac_error *error)
{
    const struct import_run *run = meter->run;
    enum lac_status status = run->again
                                 ? LAC_ERR_NOT_FOUND
                                 : lac_store_find_content(run->store, run->project, run->name,
                                                          meter->sha256, meter->existing, error);

    meter->is_looked_up = true;
    meter->is_known = status == LAC_OK;
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
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
    if (!meter->is_looked_up && lac_original_task_is_done(meter->hashing)) {
        struct lac_error error;

        meter->is_looked_up =
            look_up(meter, &error) == LAC_OK; /* else it is asked for at the end */
    }
    return !meter->is_known;
}

static void clear_progress(struct meter *meter)
{
    if (meter->is_dirty) {
        (void)fprintf(stderr, "\r\033[K");
        meter->is_dirty = false;
    }
}

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
        printf("  %llu event%s", (unsigned long long)row.event_count,
               row.event_count == 1 ? "" : "s");
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

static void print_known(const struct meter *meter)
{
    printf("%s  ", meter->existing);
    lac_terminal_print(stdout, meter->path, strlen(meter->path));
    printf(" is already imported\n");
}

static enum lac_status publish(const struct import_run *run, const char *path,
                               struct lac_publication *publication, struct lac_error *error)
{
    char(*ids)[LAC_ID_SIZE] = calloc(publication->trace_count, sizeof(*ids));
    char *name = NULL;
    enum lac_status status = LAC_OK;

    if (publication->trace_count > 1 && publication->name == NULL) {
        name = run_name(path);
        publication->name = name;
    }
    status = ids != NULL ? lac_store_publish(run->store, publication, ids, error)
                         : lac_fail(error, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        print_traces(run, ids, publication->trace_count);
    }
    free(ids);
    free(name);
    return status;
}

/** Convert while the original is hashed and kept. What is wrong with reading the file comes before
 *  what is wrong with its content. */
static enum lac_status convert(struct meter *meter, const struct lac_original_options *original,
                               struct lac_publication *publication, struct lac_error *error)
{
    struct lac_original_task *task = NULL;
    struct lac_convert_options options = {.input_path = meter->input,
                                          .output_dir = publication->staging->path,
                                          .name = meter->run->name,
                                          .names = meter->run->names,
                                          .progress = show_progress,
                                          .progress_context = meter};
    struct lac_convert_result result = {0};
    struct lac_error of_content = {0};
    enum lac_status converted = LAC_OK;
    enum lac_status status = lac_original_task_begin(original, NULL, NULL, &task, error);

    if (status != LAC_OK) {
        return status;
    }
    meter->hashing = task;
    lac_import_limits_default(&options.limits);
    (void)mallopt(M_ARENA_MAX, 1); /* one for each helper would keep what it gave back */
    if (!lac_crew_create(lac_crew_helpers(LAC_CONVERT_HELPERS), NULL, NULL, &options.crew)) {
        options.crew = NULL; /* it takes longer */
    }
    converted = lac_convert(&options, &result, &of_content);
    lac_crew_destroy(options.crew);
    clear_progress(meter);
    status = lac_original_task_end(task, &publication->size_bytes, error);
    if (status == LAC_OK && !meter->is_looked_up) {
        status = look_up(meter, error);
    }
    if (status == LAC_OK && converted != LAC_OK && !meter->is_known) {
        *error = of_content;
        status = converted;
    }
    publication->trace_count = result.trace_count;
    return status;
}

/* `input` is what is read, `content` the file that is hashed and kept: `path` itself, or the archive of
 * that folder. */
static enum lac_status import_staged(const struct import_run *run, const char *path,
                                     const char *input, const char *content,
                                     const struct lac_staging *staging, struct lac_error *error)
{
    char original_path[sizeof(staging->path) + 32];
    uint8_t sha256[LAC_SHA256_SIZE];
    struct meter meter = {.run = run,
                          .path = path,
                          .input = input,
                          .sha256 = sha256,
                          .is_shown = isatty(STDERR_FILENO) == 1};
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
    status = convert(&meter, &original, &publication, error);
    if (status == LAC_OK && meter.is_known) {
        print_known(&meter);
        return LAC_OK;
    }
    return status == LAC_OK ? publish(run, path, &publication, error) : status;
}

/* A recording of `lacuna run` is a folder: it is hashed and kept as one archive. A folder of the ranks' files
 * is read as that archive. */
static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool holds_spools(const char *path)
{
    DIR *const folder = opendir(path);
    const struct dirent *entry = NULL;
    bool is_found = false;

    while (folder != NULL && !is_found && (entry = readdir(folder)) != NULL) {
        is_found = lac_spool_is_name(entry->d_name);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return is_found;
}

static enum lac_status import_folder(const struct import_run *run, const char *path,
                                     const struct lac_staging *staging, struct lac_error *error)
{
    char tar_path[sizeof(staging->path) + 32];
    enum lac_status status;

    (void)snprintf(tar_path, sizeof(tar_path), "%s/recording.tar", staging->path);
    status = lac_recording_tar(path, tar_path, error);
    if (status == LAC_OK) {
        status = import_staged(run, path, holds_spools(path) ? path : tar_path, tar_path, staging,
                               error);
    }
    (void)unlink(tar_path);
    return status;
}

/* ---- several files as one trace ---- */

struct joining {
    char **paths;
    uint32_t count;
    bool has_offset;
    int64_t offset_ns;
};

/* What is given to the archive: a recording's folder as an archive of its own. */
static enum lac_status stage_folders(const struct joining *joining,
                                     const struct lac_staging *staging, char **staged,
                                     struct lac_join_file *files, struct lac_error *error)
{
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < joining->count && status == LAC_OK; i++) {
        const char *path = joining->paths[i];
        const char *slash = strrchr(path, '/');

        files[i] = (struct lac_join_file){
            .path = path,
            .name = slash != NULL && slash[1] != '\0' ? slash + 1 : path,
            .has_offset = i > 0 && joining->has_offset,
            .offset_ns = joining->offset_ns,
        };
        if (is_folder(path)) {
            if (asprintf(&staged[i], "%s/recording-%u.tar", staging->path, i) < 0) {
                staged[i] = NULL;
                return lac_fail(error, LAC_ERR_NOMEM, 0, "out of memory");
            }
            status = lac_recording_tar(path, staged[i], error);
            files[i].path = staged[i];
        }
    }
    return status;
}

static enum lac_status import_joined(const struct import_run *run, const void *context,
                                     const struct lac_staging *staging, struct lac_error *error)
{
    const struct joining *joining = context;
    struct lac_join_file *files = calloc(joining->count, sizeof(*files));
    char **staged = calloc(joining->count, sizeof(*staged));
    char tar_path[sizeof(staging->path) + 32];
    enum lac_status status = files != NULL && staged != NULL
                                 ? stage_folders(joining, staging, staged, files, error)
                                 : lac_fail(error, LAC_ERR_NOMEM, 0, "out of memory");

    (void)snprintf(tar_path, sizeof(tar_path), "%s/joined.tar", staging->path);
    if (status == LAC_OK) {
        status = lac_join_tar(files, joining->count, tar_path, error);
    }
    if (status == LAC_OK) {
        status = import_staged(run, tar_path, tar_path, tar_path, staging, error);
    }
    (void)unlink(tar_path);
    for (uint32_t i = 0; staged != NULL && i < joining->count; i++) {
        if (staged[i] != NULL) {
            (void)unlink(staged[i]);
        }
        free(staged[i]);
    }
    free(staged);
    free(files);
    return status;
}

static enum lac_status import_path(const struct import_run *run, const void *context,
                                   const struct lac_staging *staging, struct lac_error *error)
{
    const char *path = context;

    return is_folder(path) ? import_folder(run, path, staging, error)
                           : import_staged(run, path, path, path, staging, error);
}

typedef enum lac_status (*import_work)(const struct import_run *run, const void *context,
                                       const struct lac_staging *staging, struct lac_error *error);

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

/* `path` is what is complained about. */
static bool import_one(const struct import_run *run, const char *path, import_work work,
                       const void *context)
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
        status = work(run, context, &staging, &error);
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

static bool import_all(const struct import_run *run, const struct lac_options *options,
                       const struct joining *joining)
{
    bool good = true;

    if (joining->count > 0) {
        return import_one(run, joining->paths[0], import_joined, joining);
    }
    for (int i = 0; i < options->operand_count; i++) {
        good = import_one(run, options->operands[i], import_path, options->operands[i]) && good;
    }
    return good;
}

/* @return what is wrong with how it was called, NULL: nothing */
static const char *check_usage(const struct lac_options *options, const struct import_run *run,
                               struct joining *ret_joining)
{
    const char *offset = lac_options_text(options, "offset", NULL);
    const bool joins = lac_options_on(options, "join", false);

    *ret_joining = (struct joining){.paths = options->operands};
    if (options->operand_count == 0) {
        return "no file given";
    }
    if (joins && options->operand_count < 2) {
        return "--join takes two files or more";
    }
    if (run->project != NULL && run->project[0] != '\0' &&
        !lac_project_name_is_valid(run->project)) {
        return "--project: " LAC_PROJECT_NAME_RULE;
    }
    if (run->name != NULL && options->operand_count > 1 && !joins) {
        return "--name takes one PATH";
    }
    if (offset != NULL && !joins) {
        return "--offset goes with --join";
    }
    if (offset != NULL && !lac_join_seconds(offset, &ret_joining->offset_ns)) {
        return "--offset takes seconds, as 2.5 or -3600";
    }
    ret_joining->has_offset = offset != NULL;
    ret_joining->count = joins ? (uint32_t)options->operand_count : 0;
    return NULL;
}

static void tell_notice(void *context, const char *line)
{
    (void)context;
    (void)fprintf(stderr, "lacuna import: %s\n", line);
}

/* The text of --help: what is read comes from the table of importers. */
static void write_help(char *out, size_t capacity)
{
    enum { WIDTH = 92 };
    char list[1024];
    size_t length = lac_importers_list(list, sizeof(list));
    size_t line = 0;
    size_t space = 0;
    for (size_t i = 0; i < length; i++) {
        space = list[i] == ' ' ? i : space;
        if (i - line >= WIDTH && space > line) {
            list[space] = '\n';
            line = space + 1;
        }
    }
    (void)snprintf(out, capacity, usage, list);
}

int lac_cmd_import(int argc, char **argv)
{
    char help[sizeof(usage) + 1024];
    char data_dir[4096];
    struct lac_options options;
    struct lac_store_options store_options = {
        .data_dir = data_dir, .sweep = true, .notice = tell_notice};
    struct import_run run = {0};
    struct lac_own_names own = {NULL, NULL};
    struct lac_error error = {0};
    struct joining joining;
    const char *wrong = NULL;
    int status;

    write_help(help, sizeof(help));
    status = lac_options_parse(&options, options_table, help, argc, argv);
    (void)signal(SIGXFSZ, SIG_IGN); /* a limit of files is an error that says so */
    if (status >= 0) {
        return status;
    }
    run.name = lac_options_text(&options, "name", NULL);
    run.project = lac_options_text(&options, "project", NULL);
    run.keep_originals = lac_options_on(&options, "keep-originals", true);
    run.again = lac_options_on(&options, "again", false);
    wrong = check_usage(&options, &run, &joining);
    if (wrong != NULL) {
        (void)fprintf(stderr, "lacuna import: %s (see lacuna import --help)\n", wrong);
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
        status = import_all(&run, &options, &joining) ? 0 : 1;
    }
    lac_store_close(run.store);
    lac_own_names_done(&own);
    lac_options_done(&options);
    return status;
}
