#include "server/ingest/ingest.h"

#include "analysis/model/status.h"
#include "collector/base/cgroup.h"
#include "server/ingest/ingest_private.h"
#include "server/store/publish.h"
#include "server/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/** Patience with a sweep that holds a folder, and with a machine that is short of something. */
enum {
    ADOPT_TRIES = 100,
    ADOPT_PAUSE_MS = 50,
    START_TRIES = 20,
    START_PAUSE_MS = 500,
    PUBLISH_TRIES = 30 /* of a catalog in PostgreSQL, each with the patience of a connection */
};

double lac_ingest_now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t lac_ingest_machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine =
        pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 4 * GIB;
    uint64_t limit = lac_cgroup_memory_limit("");

    return limit > 0 && limit < machine ? limit : machine;
}

bool lac_ingest_staged_path(const struct lac_ingest *ingest, const char *id, const char *name,
                            char *out, size_t capacity_bytes)
{
    const int length = snprintf(out, capacity_bytes, "%s/staging/%s/%s",
                                lac_store_data_dir(ingest->options.store), id, name);

    return length > 0 && (size_t)length < capacity_bytes;
}

/** What an import of a file of that size, beginning as it does, will need. */
static uint64_t estimate_bytes(const struct lac_ingest *ingest, const char *id, uint64_t size_bytes)
{
    char path[4096];
    uint8_t head[4] = {0};
    bool packed = false;
    int fd = -1;

    if (lac_ingest_staged_path(ingest, id, LAC_STAGED_UPLOAD, path, sizeof(path))) {
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd >= 0) {
        packed = read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
                 ((head[0] == 0x1F && head[1] == 0x8B) || (head[0] == 0x28 && head[1] == 0xB5));
        (void)close(fd);
    }
    /* libraries and buffers, and then: columns are a sixth of the text at most, and real traces
     * compress 15 to 25 times. An import that needs more is tried again with the whole budget. */
    return 512 * MIB + (packed ? size_bytes * 12 : size_bytes);
}

double lac_ingest_wall_seconds(const struct lac_ingest *ingest, uint64_t size_bytes)
{
    /* by default as much as it may compute, and what the slowest disk takes */
    return ingest->options.import_wall_seconds_max > 0
               ? ingest->options.import_wall_seconds_max
               : ingest->options.import_seconds_max + (double)size_bytes / (double)MIB;
}

enum lac_status lac_ingest_sort_io(enum lac_status status, struct lac_error *reterr)
{
    if (reterr == NULL) {
        return status;
    }
    if (status == LAC_ERR_IO && (reterr->sys_errno == ENOSPC || reterr->sys_errno == EDQUOT)) {
        status = LAC_ERR_NO_SPACE;
    } else if (status == LAC_ERR_IO &&
               (reterr->sys_errno == EMFILE || reterr->sys_errno == ENFILE)) {
        status = LAC_ERR_BUSY;
    }
    if (status != LAC_OK) {
        reterr->status = status;
    }
    return status;
}

enum lac_status lac_ingest_fail_io(struct lac_error *reterr, const char *what)
{
    const enum lac_status status = lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", what, strerror(errno));

    return lac_ingest_sort_io(status, reterr);
}

static bool is_stopping(struct lac_ingest *ingest)
{
    bool stopping;

    (void)pthread_mutex_lock(&ingest->lock);
    stopping = ingest->is_stopping;
    (void)pthread_mutex_unlock(&ingest->lock);
    return stopping;
}

enum lac_status lac_ingest_adopt(struct lac_ingest *ingest, const char *id,
                                 struct lac_staging *ret_staging, struct lac_error *reterr)
{
    enum lac_status status = LAC_ERR_BUSY;

    for (unsigned i = 0; i < ADOPT_TRIES; i++) {
        status = lac_staging_adopt(ingest->options.store, id, ret_staging, reterr);
        status = lac_ingest_sort_io(status, reterr);
        if ((status != LAC_ERR_MISUSE && status != LAC_ERR_BUSY) || is_stopping(ingest)) {
            break;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = ADOPT_PAUSE_MS * 1000000L}, NULL);
    }
    return status;
}

void lac_ingest_remove_staged(struct lac_ingest *ingest, const char *id)
{
    struct lac_staging staging;
    struct lac_error error;

    if (lac_ingest_adopt(ingest, id, &staging, &error) == LAC_OK) {
        lac_staging_remove(&staging);
    } /* else the next start sweeps it */
}

void lac_ingest_tell(struct lac_ingest *ingest, const char *id, bool is_deleted,
                     const struct lac_ingest_progress *progress)
{
    if (ingest->options.changed != NULL) {
        ingest->options.changed(ingest->options.changed_context, id, is_deleted, progress);
    }
}

static void free_job(struct lac_import_job *job)
{
    if (job != NULL) {
        free(job->settle);
        free(job->name);
        free(job);
    }
}

enum lac_status lac_ingest_queue(struct lac_ingest *ingest, const char *id, const char *name,
                                 uint64_t size_bytes)
{
    struct lac_import_job *job = calloc(1, sizeof(*job));
    struct lac_import_job **link = &ingest->jobs;
    uint64_t budget = ingest->options.memory_budget_bytes;

    if (job != NULL) {
        job->settle = calloc(1, sizeof(*job->settle));
        job->name = strdup(name != NULL ? name : "");
    }
    if (job == NULL || job->settle == NULL || job->name == NULL) {
        free_job(job);
        return LAC_ERR_NOMEM;
    }
    (void)snprintf(job->id, sizeof(job->id), "%s", id);
    job->size_bytes = size_bytes;
    job->reserve_bytes = estimate_bytes(ingest, id, size_bytes);
    job->reserve_bytes = job->reserve_bytes < budget ? job->reserve_bytes : budget;
    job->progress = (struct lac_ingest_progress){
        .state = LAC_TRACE_IMPORTING, .total_bytes = size_bytes, .eta_s = (double)NAN};
    (void)pthread_mutex_lock(&ingest->lock);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = job;
    ingest->stats.imports_queued++;
    (void)pthread_cond_broadcast(&ingest->wake);
    (void)pthread_mutex_unlock(&ingest->lock);
    return LAC_OK;
}

/** The oldest job that waits, if its memory is free: later ones do not overtake it. */
static struct lac_import_job *next_job(struct lac_ingest *ingest)
{
    for (struct lac_import_job *job = ingest->jobs; job != NULL; job = job->next) {
        if (!job->is_running) {
            uint64_t reserved = ingest->stats.memory_reserved_bytes;
            uint64_t budget = ingest->options.memory_budget_bytes;

            return reserved == 0 || job->reserve_bytes <= budget - reserved ? job : NULL;
        }
    }
    return NULL;
}

static void unlink_job(struct lac_ingest *ingest, struct lac_import_job *job)
{
    struct lac_import_job **link = &ingest->jobs;

    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
}

/** Whether to try again with all of the memory. With the job still running. */
static bool retry_with_all(struct lac_ingest *ingest, struct lac_import_job *job,
                           const struct lac_job_outcome *outcome)
{
    bool again = false;

    (void)pthread_mutex_lock(&ingest->lock);
    if (outcome->status == LAC_ERR_NOMEM && !ingest->is_stopping && !job->is_canceled &&
        job->reserve_bytes < ingest->options.memory_budget_bytes) {
        ingest->stats.memory_reserved_bytes -= job->reserve_bytes;
        ingest->stats.imports_running--;
        ingest->stats.imports_queued++;
        job->reserve_bytes = ingest->options.memory_budget_bytes;
        lac_staging_close(job->staging);
        job->staging = NULL;
        job->is_running = false;
        again = true;
        (void)pthread_cond_broadcast(&ingest->wake);
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    return again;
}

static bool is_canceled(struct lac_ingest *ingest, const struct lac_import_job *job)
{
    bool canceled;

    (void)pthread_mutex_lock(&ingest->lock);
    canceled = job->is_canceled;
    (void)pthread_mutex_unlock(&ingest->lock);
    return canceled;
}

static bool is_ending(void *ingest)
{
    return is_stopping(ingest);
}

static void publish(struct lac_ingest *ingest, const struct lac_import_job *job,
                    struct lac_job_outcome *outcome)
{
    const struct lac_publication publication = {.staging = job->staging,
                                                .trace_count = outcome->trace_count,
                                                .name = job->name[0] != '\0' ? job->name : NULL,
                                                .size_bytes = job->size_bytes,
                                                .has_original = outcome->has_original,
                                                .has_row = true,
                                                .is_ending = is_ending,
                                                .context = ingest};
    char(*ids)[LAC_ID_SIZE] = calloc(outcome->trace_count, sizeof(*ids));
    struct lac_error error = {0};
    bool is_lost = ids != NULL; /* the connection to the catalog */

    outcome->status = LAC_ERR_NOMEM;
    for (unsigned i = 0; is_lost && i < PUBLISH_TRIES; i++) {
        outcome->status = lac_store_publish(ingest->options.store, &publication, ids, &error);
        is_lost = outcome->status == LAC_ERR_IO && error.sys_errno == ECONNRESET;
        outcome->is_interrupted = is_lost && is_stopping(ingest);
        if (outcome->is_interrupted) {
            lac_ingest_count_attempt(job->staging, true);
            break;
        }
        if (is_canceled(ingest, job)) {
            break;
        }
    }
    outcome->status = lac_ingest_sort_io(outcome->status, &error);
    if (outcome->status != LAC_OK) {
        /* a file of ours that does not open: the upload is not to blame */
        (void)snprintf(outcome->code, sizeof(outcome->code), "%s",
                       outcome->status == LAC_ERR_CORRUPT ? "crashed"
                                                          : lac_status_name(outcome->status));
        (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                       error.message[0] != '\0' ? error.message : "out of memory");
    }
    for (uint32_t i = 0; i < outcome->trace_count && outcome->status == LAC_OK; i++) {
        struct lac_ingest_progress progress = job->progress;

        progress.state = LAC_TRACE_READY;
        progress.done_bytes = job->size_bytes;
        progress.eta_s = 0;
        lac_ingest_tell(ingest, ids[i], false, &progress);
    }
    free(ids);
}

/** What an attempt left beside the upload. */
static void tidy(const struct lac_staging *staging)
{
    char name[32];

    lac_import_clear(staging);
    for (unsigned i = 0; i < LAC_IMPORT_TRACES_MAX; i++) {
        (void)snprintf(name, sizeof(name), LAC_STAGED_TRACE_FORMAT, i);
        if (unlinkat(staging->fd, name, 0) != 0) {
            break;
        }
    }
    (void)unlinkat(staging->fd, LAC_STAGED_ORIGINAL, 0);
}

/** Take the job off the list, then free it and, unless it is to be kept, its folder. */
static void end_job(struct lac_ingest *ingest, struct lac_import_job *job,
                    const struct lac_job_outcome *outcome, bool keep_folder)
{
    (void)pthread_mutex_lock(&ingest->lock);
    unlink_job(ingest, job);
    ingest->stats.memory_reserved_bytes -= job->reserve_bytes;
    ingest->stats.imports_running--;
    keep_folder = keep_folder && !job->is_canceled;
    ingest->stats.imports_done += outcome->status == LAC_OK;
    ingest->stats.imports_failed += outcome->status != LAC_OK && !outcome->is_interrupted;
    (void)pthread_cond_broadcast(&ingest->wake);
    (void)pthread_mutex_unlock(&ingest->lock);
    if (keep_folder) {
        tidy(job->staging);
        lac_staging_close(job->staging);
    } else {
        lac_staging_remove(job->staging);
    }
    free_job(job);
}

/** Say in the catalog why there is no trace. @return whether what was uploaded is kept */
static bool fail_job(struct lac_ingest *ingest, struct lac_import_job *job,
                     const struct lac_job_outcome *outcome)
{
    struct lac_settle *settle = job->settle;

    job->settle = NULL;
    memcpy(settle->id, job->id, sizeof(settle->id));
    memcpy(settle->code, outcome->code, sizeof(settle->code));
    memcpy(settle->message, outcome->message, sizeof(settle->message));
    return !lac_ingest_settle(ingest, settle) || lac_store_host_failed(outcome->code);
}

/** Open the folder of a job whose turn it is, and import; again for a while where this machine has
 *  no descriptor or process to spare. */
static void run_job(struct lac_ingest *ingest, struct lac_import_job *job,
                    struct lac_job_outcome *outcome)
{
    struct lac_error error = {0};
    enum lac_status status = lac_ingest_adopt(ingest, job->id, job->staging, &error);

    if (status != LAC_OK) {
        *outcome =
            (struct lac_job_outcome){.status = status, .is_interrupted = is_stopping(ingest)};
        (void)snprintf(outcome->code, sizeof(outcome->code), "%s",
                       status == LAC_ERR_NOT_FOUND ? "lost"
                       : status == LAC_ERR_BUSY    ? "resource_limit"
                                                   : lac_status_name(status));
        (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                       status == LAC_ERR_NOT_FOUND
                           ? "the uploaded file is no longer in the data folder: upload it again"
                           : error.message);
        return;
    }
    lac_ingest_count_attempt(job->staging, false);
    for (unsigned i = 0; i < START_TRIES; i++) {
        lac_import_run(ingest, job, outcome);
        if (!outcome->is_short || is_stopping(ingest) || is_canceled(ingest, job)) {
            break;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = START_PAUSE_MS * 1000000L}, NULL);
    }
    if (outcome->is_interrupted) {
        lac_ingest_count_attempt(job->staging, true);
    }
}

static void import(struct lac_ingest *ingest, struct lac_import_job *job)
{
    struct lac_staging staging = {.fd = -1};
    struct lac_job_outcome outcome;
    bool keep_folder = false;

    job->staging = &staging;
    lac_ingest_tell(ingest, job->id, false, &job->progress);
    run_job(ingest, job, &outcome);
    if (retry_with_all(ingest, job, &outcome)) {
        return;
    }
    if (outcome.status == LAC_OK) {
        publish(ingest, job, &outcome);
    }
    if (outcome.status != LAC_OK && !is_canceled(ingest, job)) {
        keep_folder = outcome.is_interrupted || fail_job(ingest, job, &outcome);
    }
    end_job(ingest, job, &outcome, keep_folder);
}

static void *work(void *context)
{
    struct lac_ingest *ingest = context;

    (void)pthread_mutex_lock(&ingest->lock);
    while (!ingest->is_stopping) {
        struct lac_import_job *job = next_job(ingest);

        if (job == NULL) {
            (void)pthread_cond_wait(&ingest->wake, &ingest->lock);
            continue;
        }
        job->is_running = true;
        job->started_s = lac_ingest_now_s();
        ingest->stats.memory_reserved_bytes += job->reserve_bytes;
        ingest->stats.imports_running++;
        ingest->stats.imports_queued--;
        (void)pthread_mutex_unlock(&ingest->lock);
        import(ingest, job);
        (void)pthread_mutex_lock(&ingest->lock);
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    return NULL;
}

/** One server a data folder: two would both resume the same queue. */
static enum lac_status lock_folder(struct lac_ingest *ingest, struct lac_error *reterr)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/serve.lock", lac_store_data_dir(ingest->options.store));
    ingest->serve_lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ingest->serve_lock_fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path, strerror(errno));
    }
    if (flock(ingest->serve_lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return lac_fail(reterr, errno == EWOULDBLOCK ? LAC_ERR_MISUSE : LAC_ERR_IO, 0,
                        errno == EWOULDBLOCK ? "another server runs on the data folder %s"
                                             : "cannot lock the data folder %s",
                        lac_store_data_dir(ingest->options.store));
    }
    return LAC_OK;
}

static void set_defaults(struct lac_ingest_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->memory_budget_bytes == 0) {
        options->memory_budget_bytes = lac_ingest_machine_bytes() / 2;
    }
    if (options->upload_bytes_max == 0) {
        options->upload_bytes_max = 16 * GIB;
    }
    if (options->free_bytes_min == 0) {
        options->free_bytes_min = 256 * MIB;
    }
    if (options->worker_count == 0) {
        options->worker_count = cores >= 4 ? (uint32_t)cores / 2 : 1;
    }
    if (options->import_seconds_max == 0) {
        options->import_seconds_max = 3600;
    }
    if (options->queue_max == 0) {
        options->queue_max = 10000;
    }
}

enum lac_status lac_ingest_create(const struct lac_ingest_options *options,
                                  struct lac_ingest **ret_ingest, struct lac_error *reterr)
{
    assert(options != NULL && ret_ingest != NULL);
    struct lac_ingest *ingest = calloc(1, sizeof(*ingest));
    pthread_condattr_t attributes;
    enum lac_status status;

    if (ingest == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    ingest->serve_lock_fd = -1;
    ingest->options = *options;
    set_defaults(&ingest->options);
    ingest->stats.free_bytes_min = ingest->options.free_bytes_min;
    ingest->stats.memory_budget_bytes = ingest->options.memory_budget_bytes;
    (void)pthread_mutex_init(&ingest->lock, NULL);
    (void)pthread_mutex_init(&ingest->quota_lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&ingest->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    status = lock_folder(ingest, reterr);
    if (status == LAC_OK) {
        status = lac_ingest_resume(ingest, reterr);
    }
    if (status == LAC_OK) {
        ingest->has_settler =
            pthread_create(&ingest->settler, NULL, lac_ingest_settler, ingest) == 0;
        status = ingest->has_settler
                     ? LAC_OK
                     : lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a thread for imports");
    }
    if (status == LAC_OK) {
        ingest->threads = calloc(ingest->options.worker_count, sizeof(*ingest->threads));
        status = ingest->threads != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < ingest->options.worker_count && status == LAC_OK; i++) {
        if (pthread_create(&ingest->threads[i], NULL, work, ingest) == 0) {
            ingest->thread_count++;
        } else if (i == 0) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a thread for imports");
        }
    }
    if (status != LAC_OK) {
        lac_ingest_destroy(ingest);
        return status;
    }
    *ret_ingest = ingest;
    return LAC_OK;
}

void lac_ingest_destroy(struct lac_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&ingest->lock);
    ingest->is_stopping = true;
    (void)pthread_cond_broadcast(&ingest->wake);
    (void)pthread_mutex_unlock(&ingest->lock);
    for (uint32_t i = 0; i < ingest->thread_count; i++) {
        (void)pthread_join(ingest->threads[i], NULL);
    }
    if (ingest->has_settler) {
        (void)pthread_join(ingest->settler, NULL);
    }
    while (ingest->jobs != NULL) { /* they wait for the next server */
        struct lac_import_job *job = ingest->jobs;

        ingest->jobs = job->next;
        free_job(job);
    }
    while (ingest->unsettled != NULL) { /* the next server sweeps or resumes them */
        struct lac_settle *settle = ingest->unsettled;

        ingest->unsettled = settle->next;
        free(settle);
    }
    if (ingest->serve_lock_fd >= 0) {
        (void)close(ingest->serve_lock_fd);
    }
    (void)pthread_cond_destroy(&ingest->wake);
    (void)pthread_mutex_destroy(&ingest->lock);
    (void)pthread_mutex_destroy(&ingest->quota_lock);
    free(ingest->adoptable);
    free(ingest->threads);
    free(ingest);
}

bool lac_ingest_progress(struct lac_ingest *ingest, const char *id,
                         struct lac_ingest_progress *ret_progress)
{
    assert(ingest != NULL && id != NULL && ret_progress != NULL);
    bool found = false;

    (void)pthread_mutex_lock(&ingest->lock);
    for (const struct lac_import_job *job = ingest->jobs; job != NULL && !found; job = job->next) {
        if (strcmp(job->id, id) == 0) {
            *ret_progress = job->progress;
            found = true;
        }
    }
    for (const struct lac_upload *upload = ingest->uploads; upload != NULL && !found;
         upload = upload->next) {
        if (strcmp(upload->staging.id, id) == 0) {
            lac_upload_progress(upload, ret_progress);
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    return found;
}

enum lac_status lac_ingest_delete(struct lac_ingest *ingest, const char *id,
                                  struct lac_error *reterr)
{
    assert(ingest != NULL && id != NULL);
    const struct lac_ingest_progress none = {.state = LAC_TRACE_FAILED, .eta_s = (double)NAN};
    bool receiving = false;
    struct lac_import_job *waiting = NULL;
    bool is_running = false;
    enum lac_status status;

    (void)pthread_mutex_lock(&ingest->lock);
    for (const struct lac_upload *upload = ingest->uploads; upload != NULL; upload = upload->next) {
        receiving = receiving || strcmp(upload->staging.id, id) == 0;
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    if (receiving) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the trace is being uploaded: stop that first");
    }
    /* the row first: without it nothing that still runs can be published */
    status = lac_store_delete_trace(ingest->options.store, id, reterr);
    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&ingest->lock);
    for (struct lac_import_job *job = ingest->jobs; job != NULL; job = job->next) {
        if (strcmp(job->id, id) == 0) {
            job->is_canceled = true; /* a running one sees it within a moment */
            is_running = is_running || job->is_running;
            waiting = job->is_running ? waiting : job;
        }
    }
    if (waiting != NULL) {
        unlink_job(ingest, waiting);
        ingest->stats.imports_queued--;
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    free_job(waiting);
    if (!is_running) {
        lac_ingest_remove_staged(ingest, id);
    }
    lac_ingest_tell(ingest, id, true, &none);
    lac_ingest_settle_all(ingest); /* there may be room for it now */
    return LAC_OK;
}

void lac_ingest_stats(struct lac_ingest *ingest, struct lac_ingest_stats *ret_stats)
{
    assert(ingest != NULL && ret_stats != NULL);
    (void)pthread_mutex_lock(&ingest->lock);
    *ret_stats = ingest->stats;
    (void)pthread_mutex_unlock(&ingest->lock);
}
