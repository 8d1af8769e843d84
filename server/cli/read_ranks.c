#include "server/cli/read_ranks.h"

#include "analysis/import/import.h"
#include "analysis/import/spool/spool_import.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "collector/base/terminal_text.h"
#include "server/cli/complain.h"
#include "server/json/analysis_json.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 2, PATHS_MAX = 4096 };

/** A file to read. */
struct source {
    char *path;
    bool is_found; /**< by us in a folder: what is no trace there is skipped, and said */
    enum lac_status status;
    struct lac_error error;
};

/** What the readers share; all but `options` under the mutex. */
struct reading {
    const struct lac_read_ranks_options *options;
    pthread_mutex_t mutex;
    struct source *sources;
    size_t source_count, source_capacity;
    size_t next; /**< source that is read next */
    size_t done;
    bool has_failed;
    struct lac_read_ranks result;
    size_t capacity;
    int64_t lowest_key[3]; /**< rank, path, member */
    bool shows_progress, has_shown;
    struct timespec last_shown;
};

/** A reader's own place. */
struct reader {
    struct reading *reading;
    size_t source;
    size_t member;
};

/* -- what to read ----------------------------------------------------------------------------- */

static bool add_source(struct reading *reading, char *path, bool is_found)
{
    if (path == NULL ||
        !LAC_RESERVE(reading->sources, reading->source_capacity, reading->source_count, 1)) {
        free(path);
        return false;
    }
    reading->sources[reading->source_count++] = (struct source){.path = path, .is_found = is_found};
    return true;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Paths in the folder, in order; hidden files are left out. @return count, or -1: not all of it */
static int list_folder(const char *folder, char ***ret_paths)
{
    DIR *dir = opendir(folder);
    char **paths = calloc(PATHS_MAX + 1, sizeof(*paths));
    int count = dir != NULL && paths != NULL ? 0 : -1;
    bool is_whole = true;
    struct dirent *entry = NULL;
    while (count >= 0 && (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        bool has_room = length > 0 && (size_t)length < sizeof(path) && count < PATHS_MAX;
        paths[count] = has_room ? strdup(path) : NULL;
        if (paths[count] == NULL) {
            is_whole = false;
            break;
        }
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (!is_whole) {
        while (count > 0) {
            free(paths[--count]);
        }
        count = -1;
    }
    if (count > 1) {
        qsort(paths, (size_t)count, sizeof(*paths), by_text);
    }
    *ret_paths = paths;
    return count;
}

/** A folder of spools is one recording; any other one is a folder of traces. */
static bool add_folder(struct reading *reading, const char *folder)
{
    char **paths = NULL;
    int count = list_folder(folder, &paths);
    bool is_recording = count == 0;
    bool is_good = count >= 0;
    for (int i = 0; i < count; i++) {
        is_recording = is_recording || (!is_folder(paths[i]) && lac_spool_is_recording(paths[i]));
    }
    if (is_recording && is_good) {
        is_good = add_source(reading, strdup(folder), false);
    }
    for (int i = 0; i < count; i++) {
        if (!is_recording && is_good) {
            is_good = add_source(reading, paths[i], true);
        } else {
            free(paths[i]);
        }
    }
    free(paths);
    return is_good;
}

static enum lac_status list_sources(struct reading *reading)
{
    const struct lac_read_ranks_options *options = reading->options;
    for (size_t i = 0; i < options->path_count; i++) {
        const char *path = options->paths[i];
        bool is_good =
            is_folder(path) ? add_folder(reading, path) : add_source(reading, strdup(path), false);
        if (!is_good) {
            lac_complain(options->command, path,
                         "cannot be listed: more than %d files, or no permission", PATHS_MAX);
            return LAC_ERR_IO;
        }
    }
    return LAC_OK;
}

/* -- reading ---------------------------------------------------------------------------------- */

static void show(struct reading *reading, double share, uint64_t event_count)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    double since_s = (double)(now.tv_sec - reading->last_shown.tv_sec) +
                     (double)(now.tv_nsec - reading->last_shown.tv_nsec) * 1e-9;
    if (since_s < 0.2) {
        return;
    }
    reading->last_shown = now;
    reading->has_shown = true;
    if (reading->source_count == 1) {
        char path[60];
        (void)fprintf(stderr, "\r%s  %3.0f %%  %.1f M events",
                      lac_terminal_string(reading->sources[0].path, path, sizeof(path)),
                      100.0 * share, (double)event_count / 1e6);
    } else {
        (void)fprintf(stderr, "\r%zu of %zu traces", reading->done, reading->source_count);
    }
    (void)fflush(stderr);
}

static bool show_progress(void *context, uint64_t done_bytes, uint64_t total_bytes,
                          uint64_t event_count)
{
    struct reading *reading = ((struct reader *)context)->reading;
    if (reading->shows_progress && total_bytes > 0) {
        (void)pthread_mutex_lock(&reading->mutex);
        show(reading, (double)done_bytes / (double)total_bytes, event_count);
        (void)pthread_mutex_unlock(&reading->mutex);
    }
    return true;
}

static void rank_done(struct lac_read_rank *rank)
{
    lac_rank_table_destroy(rank->table);
    free(rank->document);
    free(rank->what_if_assumption);
    free(rank->what_if_reason);
}

/** What --what-if says of it. */
static enum lac_status take_answer(const struct lac_analysis *analysis, struct lac_read_rank *rank)
{
    rank->what_if_assumption = strdup(analysis->what_if_assumption);
    rank->what_if_reason = strdup(analysis->what_if_why_not);
    rank->what_if =
        (struct lac_rank_what_if){.step = analysis->what_if_step, .why_not = rank->what_if_reason};
    memcpy(rank->what_if.by_comm, analysis->what_if_by_comm, sizeof(rank->what_if.by_comm));
    memcpy(rank->what_if.now_by_comm_ns, analysis->what_if_now_by_comm_ns,
           sizeof(rank->what_if.now_by_comm_ns));
    bool is_taken = rank->what_if_assumption != NULL && rank->what_if_reason != NULL;
    return is_taken ? LAC_OK : LAC_ERR_NOMEM;
}

/** The number in "rank7", "run_rank-12.pt.trace"; -1 none: traces of older PyTorch do not say theirs. */
static int32_t rank_of_name(const char *name)
{
    enum { RANKS_MAX = 1000000 };
    for (const char *at = name; (at = strstr(at, "rank")) != NULL; at += 4) {
        const bool begins = at == name || !isalnum((unsigned char)at[-1]);
        const char *digits = at + 4 + (at[4] != '\0' && strchr("-_.=", at[4]) != NULL);
        const size_t count = strspn(digits, "0123456789");
        if (begins && count > 0 && count < 7 && !isalnum((unsigned char)digits[count])) {
            const long rank = strtol(digits, NULL, 10);
            return rank < RANKS_MAX ? (int32_t)rank : -1;
        }
    }
    return -1;
}

/** What is kept of one rank. */
static enum lac_status take_rank(const struct reader *reader, const struct lac_model *model,
                                 const struct lac_analysis *analysis, struct lac_read_rank *ret)
{
    struct lac_read_rank rank = {
        .path = reader->source,
        .member = reader->member,
        .step_mean_ns = analysis->step_mean_ns,
        .start_ns = model->info.t0_ns,
        .end_ns = model->info.t0_ns > INT64_MAX - model->info.duration_ns
                      ? INT64_MAX
                      : model->info.t0_ns + model->info.duration_ns,
    };
    enum lac_status status = lac_rank_table_create(model, analysis, &rank.table);
    if (status == LAC_OK && lac_rank_table_rank(rank.table) < 0) {
        const int32_t named = rank_of_name(lac_model_str(model, model->info.name));
        rank.is_named = named >= 0;
        lac_rank_table_number(rank.table, named);
    }
    if (!status && analysis->has_what_if) {
        status = take_answer(analysis, &rank);
    }
    if (!status && reader->reading->options->wants_documents) {
        const struct lac_analyzed_trace analyzed = {model, analysis};
        status = lac_analysis_json(&analyzed, true, &rank.document, NULL);
    }
    if (status) {
        rank_done(&rank);
        return status;
    }
    *ret = rank;
    return LAC_OK;
}

/** Whether the rank with this key comes before the other one. */
static bool is_lower(const int64_t key[3], const int64_t other[3])
{
    for (int i = 0; i < 3; i++) {
        if (key[i] != other[i]) {
            return key[i] < other[i];
        }
    }
    return false;
}

/** Share of its own steps in which a rank waits for data, in percent; 0 where that is unknown. */
static double own_wait_pct(const struct lac_analysis *analysis)
{
    double pct = analysis->loader.is_present ? analysis->loader.wait_pct_of_steps : 0.0;
    return isfinite(pct) ? pct : 0.0;
}

/** Whether this rank is to be shown, and not the kept one: the others wait for the one that waits for
 *  data, and it alone shows for what. */
static bool shows_more(const struct reading *reading, const int64_t key[3],
                       const struct lac_analysis *analysis)
{
    enum { WAITS_MORE_PCT = 10 }; /* of its steps: less is chance */
    const struct lac_read_ranks *result = &reading->result;
    double more_pct = own_wait_pct(analysis) - own_wait_pct(result->analysis);
    if (reading->options->keeps_waiting && fabs(more_pct) >= WAITS_MORE_PCT) {
        return more_pct > 0.0;
    }
    return is_lower(key, result->kept_key);
}

static void drop_kept(struct lac_read_ranks *result)
{
    lac_analysis_destroy(result->analysis);
    lac_model_destroy(result->model);
    result->analysis = NULL;
    result->model = NULL;
}

/** Add the rank; model and analysis are kept or freed. */
static enum lac_status add_rank(struct reading *reading, const struct lac_read_rank *rank,
                                struct lac_model *model, struct lac_analysis *analysis)
{
    struct lac_read_ranks *result = &reading->result;
    int32_t number = lac_rank_table_rank(rank->table);
    const int64_t key[3] = {number < 0 ? INT32_MAX : number, (int64_t)rank->path,
                            (int64_t)rank->member};
    if (!LAC_RESERVE(result->ranks, reading->capacity, result->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    result->ranks[result->count++] = *rank;
    bool is_first = result->count == 1;
    bool is_kept =
        is_first || (reading->options->keeps_lowest && shows_more(reading, key, analysis));
    if (is_first || is_lower(key, reading->lowest_key)) {
        memcpy(reading->lowest_key, key, sizeof(key));
    }
    if (is_kept || !reading->options->keeps_lowest) {
        drop_kept(result);
    }
    if (is_kept) {
        result->model = model;
        result->analysis = analysis;
        memcpy(result->kept_key, key, sizeof(key));
    } else {
        lac_analysis_destroy(analysis);
        lac_model_destroy(model);
    }
    return LAC_OK;
}

static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct reader *reader = context;
    struct reading *reading = reader->reading;
    struct lac_analysis *analysis = NULL;
    struct lac_read_rank rank = {0};
    enum lac_status status = lac_diagnose(model, reading->options->diagnose, &analysis, reterr);
    if (!status) {
        status = take_rank(reader, model, analysis, &rank);
    }
    if (!status) {
        (void)pthread_mutex_lock(&reading->mutex);
        status = add_rank(reading, &rank, model, analysis);
        (void)pthread_mutex_unlock(&reading->mutex);
        if (status) {
            rank_done(&rank);
        }
    }
    if (status) {
        lac_analysis_destroy(analysis);
        lac_model_destroy(model);
        /* the diagnosis says what it refuses; keeping its result can only lack memory */
        return reterr->status == status
                   ? status
                   : lac_fail(reterr, status, 0, "%s", lac_status_text(status));
    }
    reader->member++;
    return LAC_OK;
}

static void read_source(struct reader *reader, struct source *source)
{
    struct lac_import_options import = {.progress = show_progress, .progress_context = reader};
    lac_import_limits_default(&import.limits);
    source->status = lac_import_file(source->path, &import, take_model, reader, &source->error);
    if (!source->status && reader->member == 0) {
        source->status =
            lac_fail(&source->error, LAC_ERR_CORRUPT, 0,
                     "contains no trace; give a PyTorch profiler, TensorFlow or Chrome trace");
    }
}

/** A file of a folder that holds something else. */
static bool is_no_trace(const struct source *source)
{
    return source->is_found &&
           (source->status == LAC_ERR_CORRUPT || source->status == LAC_ERR_NOT_FOUND);
}

static void *read_some(void *context)
{
    struct reading *reading = context;
    for (;;) {
        (void)pthread_mutex_lock(&reading->mutex);
        size_t own = reading->next;
        bool has_one = own < reading->source_count && !reading->has_failed;
        reading->next += has_one;
        (void)pthread_mutex_unlock(&reading->mutex);
        if (!has_one) {
            return NULL;
        }
        struct reader reader = {.reading = reading, .source = own};
        struct source *source = &reading->sources[own];
        read_source(&reader, source);
        (void)pthread_mutex_lock(&reading->mutex);
        bool is_skipped = is_no_trace(source);
        reading->has_failed = reading->has_failed || (source->status && !is_skipped);
        reading->done++;
        (void)pthread_mutex_unlock(&reading->mutex);
    }
}

/** One line on stderr: the file, the place in it, what is wrong and what to do. */
static void complain(const struct reading *reading, const struct source *source)
{
    if (is_no_trace(source)) {
        lac_complain_skipped(reading->options->command, source->path, &source->error);
    } else {
        lac_complain_error(reading->options->command, source->path, &source->error);
    }
}

static void read_all(struct reading *reading)
{
    pthread_t other;
    bool has_other = reading->source_count >= READERS && sysconf(_SC_NPROCESSORS_ONLN) >= READERS &&
                     pthread_create(&other, NULL, read_some, reading) == 0;
    (void)read_some(reading);
    if (has_other) {
        (void)pthread_join(other, NULL);
    }
    if (reading->has_shown) {
        (void)fprintf(stderr, "\r\033[K");
    }
}

static int by_place(const void *a, const void *b)
{
    const struct lac_read_rank *x = a;
    const struct lac_read_rank *y = b;
    const int order = LAC_ORDER(x->path, y->path);
    return order != 0 ? order : LAC_ORDER(x->member, y->member);
}

static int by_rank(const void *a, const void *b)
{
    int32_t x = lac_rank_table_rank(((const struct lac_read_rank *)a)->table);
    int32_t y = lac_rank_table_rank(((const struct lac_read_rank *)b)->table);
    return x != y ? (x < y ? -1 : 1) : by_place(a, b);
}

/** What names say holds where each of several has a number of its own. */
static void judge_names(struct lac_read_ranks *result)
{
    bool holds = result->count > 1;
    for (size_t i = 0; i < result->count && holds; i++) {
        const int32_t rank = lac_rank_table_rank(result->ranks[i].table);
        holds = rank >= 0 && (i == 0 || lac_rank_table_rank(result->ranks[i - 1].table) != rank);
    }
    for (size_t i = 0; i < result->count && !holds; i++) {
        if (result->ranks[i].is_named) {
            lac_rank_table_number(result->ranks[i].table, -1);
        }
    }
}

static void put_in_order(struct lac_read_ranks *result)
{
    bool is_ranked = true;
    if (result->count > 1) {
        qsort(result->ranks, result->count, sizeof(*result->ranks), by_rank);
    }
    judge_names(result);
    for (size_t i = 0; i < result->count; i++) {
        is_ranked = is_ranked && lac_rank_table_rank(result->ranks[i].table) >= 0;
    }
    if (result->count > 1) {
        qsort(result->ranks, result->count, sizeof(*result->ranks), is_ranked ? by_rank : by_place);
    }
}

static int by_start(const void *a, const void *b)
{
    return LAC_ORDER(((const struct lac_read_rank *)a)->start_ns,
                     ((const struct lac_read_rank *)b)->start_ns);
}

/** Whether no trace says its rank, all know the time of day, and no two were recorded at a time. */
static bool are_one_after_another(const struct lac_read_ranks *result)
{
    enum { YEAR_2001_S = 1000000000 }; /* what is before counts from the start of the machine */
    struct lac_read_rank *ranks = calloc(result->count + 1, sizeof(*ranks));
    bool are = ranks != NULL && result->count > 1;
    if (are) {
        memcpy(ranks, result->ranks, result->count * sizeof(*ranks));
        qsort(ranks, result->count, sizeof(*ranks), by_start);
    }
    for (size_t i = 0; are && i < result->count; i++) {
        are = (lac_rank_table_rank(ranks[i].table) < 0 || ranks[i].is_named) &&
              ranks[i].start_ns >= YEAR_2001_S * INT64_C(1000000000) &&
              (i == 0 || ranks[i].start_ns >= ranks[i - 1].end_ns);
    }
    free(ranks);
    return are;
}

/** Say what failed; the first in the order given decides. */
static enum lac_status judge(struct reading *reading)
{
    enum lac_status status = LAC_OK;
    for (size_t i = 0; i < reading->source_count; i++) {
        const struct source *source = &reading->sources[i];
        bool is_skipped = is_no_trace(source);
        if (source->status && (is_skipped || !status)) {
            complain(reading, source);
        }
        status = status || is_skipped ? status : source->status;
    }
    if (!status && reading->result.count == 0) {
        lac_complain(reading->options->command, reading->options->paths[0], "contains no trace");
        status = LAC_ERR_CORRUPT;
    }
    return status;
}

enum lac_status lac_read_ranks(const struct lac_read_ranks_options *options,
                               struct lac_read_ranks *ret_ranks)
{
    struct reading reading = {.options = options, .shows_progress = isatty(STDERR_FILENO) == 1};
    (void)pthread_mutex_init(&reading.mutex, NULL);
    enum lac_status status = list_sources(&reading);
    if (!status) {
        read_all(&reading);
        status = judge(&reading);
    }
    for (size_t i = 0; i < reading.source_count; i++) {
        free(reading.sources[i].path);
    }
    free(reading.sources);
    (void)pthread_mutex_destroy(&reading.mutex);
    if (status) {
        lac_read_ranks_done(&reading.result);
        return status;
    }
    reading.result.is_waiting =
        memcmp(reading.result.kept_key, reading.lowest_key, sizeof(reading.lowest_key)) != 0;
    put_in_order(&reading.result);
    for (size_t i = 0; i < reading.result.count; i++) {
        reading.result.has_rank =
            reading.result.has_rank || lac_rank_table_rank(reading.result.ranks[i].table) >= 0;
    }
    reading.result.are_runs = are_one_after_another(&reading.result);
    if (reading.result.are_runs && !options->tells_runs) {
        lac_complain(options->command, options->paths[0],
                     "traces recorded one after another are runs, not ranks of one run; "
                     "lacuna compare A B compares two");
    }
    *ret_ranks = reading.result;
    return LAC_OK;
}

void lac_read_ranks_done(struct lac_read_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++) {
        rank_done(&ranks->ranks[i]);
    }
    free(ranks->ranks);
    drop_kept(ranks);
    *ranks = (struct lac_read_ranks){0};
}

enum lac_status lac_read_ranks_join(const struct lac_read_ranks *ranks, struct lac_run **ret_run)
{
    const struct lac_rank_table **tables = calloc(ranks->count + 1, sizeof(*tables));
    if (tables == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t i = 0; i < ranks->count; i++) {
        tables[i] = ranks->ranks[i].table;
    }
    enum lac_status status = lac_ranks_join(tables, (uint32_t)ranks->count, ret_run);
    free(tables);
    return status;
}

enum lac_status lac_read_ranks_what_if(const struct lac_read_ranks *ranks, struct lac_run *run,
                                       struct lac_run_what_if *ret_what_if)
{
    struct lac_rank_what_if *answers = calloc(ranks->count + 1, sizeof(*answers));
    if (answers == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t i = 0; i < ranks->count; i++) {
        answers[i] = ranks->ranks[i].what_if;
    }
    lac_run_what_if(run, answers, ret_what_if);
    free(answers);
    return LAC_OK;
}
