/*
 * Imports that are tried again: what an earlier server had acknowledged, what it saw killed, what
 * somebody asks for. staging/<id>/attempts counts by its size how often an import was begun, so
 * that one which takes the whole server down with it is not begun at every start.
 */

#include "analysis/model/status.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/store/people_rows.h"
#include "server/store/publish.h"
#include "server/store/store.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS_MAX = 8 };

/** Marks a killed import that a start has tried again: it does so once. */
#define RETRIED "retried"

void lac_ingest_count_attempt(const struct lac_staging *staging, bool is_taken_back)
{
    struct stat info;
    int fd =
        openat(staging->fd, LAC_STAGED_ATTEMPTS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    /* a hole, so that it takes no room: a full disk is when this matters most */
    if (fd >= 0 && fstat(fd, &info) == 0 && (info.st_size > 0 || !is_taken_back)) {
        (void)!ftruncate(fd, info.st_size + (is_taken_back ? -1 : 1));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static bool has_no_attempt_left(const struct lac_ingest *ingest, const char *id)
{
    char path[4096];
    struct stat info;

    return lac_ingest_staged_path(ingest, id, LAC_STAGED_ATTEMPTS, path, sizeof(path)) &&
           lstat(path, &info) == 0 && info.st_size >= ATTEMPTS_MAX;
}

static void forget_attempts(const struct lac_ingest *ingest, const char *id)
{
    char path[4096];

    if (lac_ingest_staged_path(ingest, id, LAC_STAGED_ATTEMPTS, path, sizeof(path))) {
        (void)unlink(path);
    }
}

/** Whether a start has not tried it again yet; notes that it does now. */
static bool is_first_retry(const struct lac_ingest *ingest, const char *id)
{
    char path[4096];
    int fd = lac_ingest_staged_path(ingest, id, RETRIED, path, sizeof(path))
                 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                 : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/** Queue the import of a row in state importing. */
static enum lac_status queue_row(struct lac_ingest *ingest, const char *id,
                                 struct lac_error *reterr)
{
    struct lac_trace_row row;
    enum lac_status status = lac_store_get_trace(ingest->options.store, id, &row, reterr);

    if (status == LAC_OK) {
        status = lac_ingest_queue(ingest, id, row.name, row.size_bytes);
        lac_trace_row_done(&row);
    }
    return status;
}

/** What was being imported when an earlier server ended. */
static enum lac_status resume_one(struct lac_ingest *ingest, const char *id,
                                  struct lac_error *reterr)
{
    struct lac_settle *settle;

    if (!lac_store_upload_is_kept(ingest->options.store, id)) {
        return LAC_OK; /* the sweep has said so */
    }
    if (!has_no_attempt_left(ingest, id)) {
        return queue_row(ingest, id, reterr);
    }
    settle = calloc(1, sizeof(*settle));
    if (settle == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    memcpy(settle->id, id, sizeof(settle->id));
    (void)snprintf(settle->code, sizeof(settle->code), "killed");
    (void)snprintf(settle->message, sizeof(settle->message),
                   "the server ended %d times while this was imported: it may need more memory "
                   "than there is",
                   ATTEMPTS_MAX);
    (void)is_first_retry(ingest, id); /* and not again by itself */
    (void)lac_ingest_settle(ingest, settle);
    return LAC_OK;
}

/** What failed because its process was killed, by whoever stopped or moved the service. */
static enum lac_status retry_killed(struct lac_ingest *ingest, struct lac_error *reterr)
{
    struct lac_store *store = ingest->options.store;
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_store_list_failed(store, "killed", &ids, &count, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        struct lac_error error;

        if (lac_store_upload_is_kept(store, ids[i]) && is_first_retry(ingest, ids[i]) &&
            lac_store_retry(store, ids[i], &error) == LAC_OK) {
            status = queue_row(ingest, ids[i], reterr);
        }
    }
    free(ids);
    return status;
}

enum lac_status lac_ingest_resume(struct lac_ingest *ingest, struct lac_error *reterr)
{
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    enum lac_status status =
        lac_store_list_state(ingest->options.store, LAC_TRACE_IMPORTING, &ids, &count, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = resume_one(ingest, ids[i], reterr);
    }
    free(ids);
    return status == LAC_OK ? retry_killed(ingest, reterr) : status;
}

/* Whether this server is at it. */
static bool is_ours(struct lac_ingest *ingest, const char *id)
{
    bool found = false;

    (void)pthread_mutex_lock(&ingest->lock);
    for (const struct lac_import_job *job = ingest->jobs; job != NULL; job = job->next) {
        found = found || strcmp(job->id, id) == 0;
    }
    for (const struct lac_upload *upload = ingest->uploads; upload != NULL; upload = upload->next) {
        found = found || strcmp(upload->staging.id, id) == 0;
    }
    for (const struct lac_settle *settle = ingest->unsettled; settle != NULL;
         settle = settle->next) {
        found = found || strcmp(settle->id, id) == 0;
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    return found;
}

/* Whether somebody has left it: an upload that no process holds, and no file of the trace. */
static bool is_left(struct lac_ingest *ingest, const char *id)
{
    struct lac_store *store = ingest->options.store;
    struct lac_staging staging;
    struct lac_error ignored;
    char path[4096 + 64];

    (void)snprintf(path, sizeof(path), "%.4000s/traces/%s.db", lac_store_data_dir(store), id);
    if (is_ours(ingest, id) || access(path, F_OK) == 0 || !lac_store_upload_is_kept(store, id) ||
        has_no_attempt_left(ingest, id) ||
        lac_staging_adopt(store, id, &staging, &ignored) != LAC_OK) {
        return false;
    }
    lac_staging_close(&staging);
    return true;
}

static bool was_adoptable(const struct lac_ingest *ingest, const char *id)
{
    for (uint32_t i = 0; i < ingest->adoptable_count; i++) {
        if (strcmp(ingest->adoptable[i], id) == 0) {
            return true;
        }
    }
    return false;
}

void lac_ingest_take_over(struct lac_ingest *ingest)
{
    assert(ingest != NULL);
    const struct lac_ingest_progress begun = {.state = LAC_TRACE_IMPORTING, .eta_s = (double)NAN};
    struct lac_store *store = ingest->options.store;
    const int64_t version = lac_store_data_version(store);
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    uint32_t kept = 0;
    struct lac_error error;

    if ((version == ingest->adopt_version && ingest->adoptable_count == 0) ||
        lac_store_list_state(store, LAC_TRACE_IMPORTING, &ids, &count, &error) != LAC_OK) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_ours(ingest, ids[i])) {
            continue;
        }
        /* at the second look: between two of its own steps one of ours may seem to be left */
        if (!was_adoptable(ingest, ids[i]) || !is_left(ingest, ids[i])) {
            memmove(ids[kept++], ids[i], LAC_ID_SIZE);
            continue;
        }
        lac_store_forget_file(store, ids[i]);
        if (queue_row(ingest, ids[i], &error) == LAC_OK) {
            lac_ingest_tell(ingest, ids[i], false, &begun);
        }
    }
    free(ingest->adoptable);
    ingest->adoptable = ids;
    ingest->adoptable_count = kept;
    ingest->adopt_version = version;
}

enum lac_status lac_ingest_check_queue(struct lac_ingest *ingest, struct lac_error *reterr)
{
    uint64_t queued;

    (void)pthread_mutex_lock(&ingest->lock);
    queued = ingest->stats.imports_queued;
    (void)pthread_mutex_unlock(&ingest->lock);
    return queued < ingest->options.queue_max
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_BUSY, 0,
                          "%llu imports wait already: try again when some are done",
                          (unsigned long long)queued);
}

enum lac_status lac_ingest_retry(struct lac_ingest *ingest, const char *id,
                                 struct lac_error *reterr)
{
    assert(ingest != NULL && id != NULL);
    const struct lac_ingest_progress begun = {.state = LAC_TRACE_IMPORTING, .eta_s = (double)NAN};
    struct lac_store *store = ingest->options.store;
    struct lac_settle *settle;
    struct lac_trace_row row;
    enum lac_status status = lac_ingest_check_queue(ingest, reterr);

    lac_ingest_settle_all(ingest);
    if (status == LAC_OK) {
        status = lac_store_get_trace(store, id, &row, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_trace_row_done(&row);
    settle = calloc(1, sizeof(*settle));
    if (settle == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (!lac_store_upload_is_kept(store, id)) {
        status =
            lac_fail(reterr, LAC_ERR_MISUSE, 0, "what was uploaded is not kept: upload it again");
    }
    if (status == LAC_OK) {
        status = lac_store_retry(store, id, reterr);
    }
    if (status != LAC_OK) {
        free(settle);
        return status;
    }
    forget_attempts(ingest, id);
    status = queue_row(ingest, id, reterr);
    if (status != LAC_OK) {
        memcpy(settle->id, id, sizeof(settle->id));
        (void)snprintf(settle->code, sizeof(settle->code), "%s", lac_status_name(status));
        (void)snprintf(settle->message, sizeof(settle->message), "the import could not be queued");
        (void)lac_ingest_settle(ingest, settle);
        return status;
    }
    free(settle);
    lac_ingest_tell(ingest, id, false, &begun);
    return LAC_OK;
}
