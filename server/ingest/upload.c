/* Uploads: bytes to a staged file, hashed on the way, acknowledged when they are on disk. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/ingest/quota.h"
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
#include <sys/statvfs.h>
#include <unistd.h>

/** How much may come between two looks at the disk. */
#define CHECK_EVERY_BYTES ((uint64_t)64 << 20)

enum lac_status lac_ingest_check_disk(struct lac_ingest *ingest, uint64_t more_bytes,
                                      struct lac_error *reterr)
{
    struct statvfs disk;
    uint64_t free_bytes;

    if (statvfs(lac_store_data_dir(ingest->options.store), &disk) != 0) {
        return LAC_OK; /* the write will tell */
    }
    free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes >= ingest->options.free_bytes_min &&
        free_bytes - ingest->options.free_bytes_min >= more_bytes) {
        return LAC_OK;
    }
    (void)pthread_mutex_lock(&ingest->lock);
    ingest->stats.refused_disk++;
    (void)pthread_mutex_unlock(&ingest->lock);
    return lac_fail(reterr, LAC_ERR_NO_SPACE, 0,
                    "the disk of the data folder is nearly full: %llu MiB are free and %llu MiB "
                    "must stay so (--disk-free); delete traces or make room, then upload again",
                    (unsigned long long)(free_bytes >> 20),
                    (unsigned long long)(ingest->options.free_bytes_min >> 20));
}

static enum lac_status too_large(const struct lac_ingest *ingest, struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_LIMIT, 0, "an upload may have %llu MiB at most",
                    (unsigned long long)(ingest->options.upload_bytes_max >> 20));
}

/** What is not there (any more) of an upload under way was lost here. Its client must not take it for
 *  an answer to what it asked for: it has done nothing wrong, and is to try again. */
static enum lac_status sort_loss(enum lac_status status, struct lac_error *reterr)
{
    status = lac_ingest_sort_io(status, reterr);
    return status != LAC_ERR_NOT_FOUND
               ? status
               : lac_fail(reterr, LAC_ERR_BUSY, 0,
                          "the server has lost what it knew of this upload: try again");
}

static void free_upload(struct lac_upload *upload)
{
    if (upload->fd >= 0) {
        (void)close(upload->fd);
    }
    lac_quota_release(upload->ingest, upload->claim);
    free(upload->settle);
    free(upload->name);
    free(upload->project);
    free(upload);
}

/** The row of an upload that is given up goes, now or later. */
static void drop_row(struct lac_upload *upload)
{
    struct lac_settle *settle = upload->settle;

    upload->settle = NULL;
    settle->is_drop = true;
    memcpy(settle->id, upload->staging.id, sizeof(settle->id));
    (void)lac_ingest_settle(upload->ingest, settle);
}

static enum lac_status open_staged(struct lac_upload *upload,
                                   const struct lac_upload_options *options,
                                   struct lac_error *reterr)
{
    struct lac_store *store = upload->ingest->options.store;
    char id[LAC_ID_SIZE];
    enum lac_status status = lac_store_new_id(id, reterr);

    if (status == LAC_OK) {
        status = lac_staging_create(store, id, &upload->staging, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    upload->fd = openat(upload->staging.fd, LAC_STAGED_UPLOAD,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (upload->fd < 0) {
        return lac_ingest_fail_io(reterr, "cannot store the upload");
    }
    status = lac_store_begin_receiving(store, id, upload->name, upload->project, reterr);
    if (status == LAC_OK && options->run != NULL && options->run[0] != '\0') {
        status = lac_store_join_run(store, id, upload->project, options->run, reterr);
    }
    if (status == LAC_OK && options->has_clock) {
        status = lac_store_set_clock(store, id, options->clock_offset_ns, options->clock_error_ns,
                                     reterr);
    }
    if (status == LAC_OK && options->token != NULL && options->token[0] != '\0') {
        status = lac_store_set_uploader(store, id, options->token, reterr);
    }
    if (status != LAC_OK) {
        drop_row(upload);
    }
    return status;
}

/** Count an upload, as long as it is known to be, against its quotas. */
static enum lac_status claim(struct lac_upload *upload, const char *token, uint64_t bytes,
                             struct lac_error *reterr)
{
    const struct lac_claim_request request = {
        .project = upload->project, .token = token, .bytes = bytes};

    return upload->is_claimed ? LAC_OK
                              : lac_quota_claim(upload->ingest, &request, &upload->claim, reterr);
}

enum lac_status lac_upload_adopt(struct lac_upload *upload, const char *path, uint64_t size_bytes,
                                 const uint8_t *sha256, struct lac_error *reterr)
{
    if (unlinkat(upload->staging.fd, LAC_STAGED_UPLOAD, 0) != 0 ||
        linkat(AT_FDCWD, path, upload->staging.fd, LAC_STAGED_UPLOAD, 0) != 0) {
        return lac_ingest_fail_io(reterr, "cannot take the upload");
    }
    (void)close(upload->fd);
    upload->fd = openat(upload->staging.fd, LAC_STAGED_UPLOAD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (upload->fd < 0) {
        return lac_ingest_fail_io(reterr, "cannot take the upload");
    }
    (void)pthread_mutex_lock(&upload->ingest->lock);
    upload->received_bytes = size_bytes;
    upload->ingest->stats.upload_bytes += size_bytes;
    (void)pthread_mutex_unlock(&upload->ingest->lock);
    memcpy(upload->digest, sha256, sizeof(upload->digest));
    upload->has_digest = true;
    return LAC_OK;
}

enum lac_status lac_ingest_begin(struct lac_ingest *ingest,
                                 const struct lac_upload_options *options,
                                 struct lac_upload **ret_upload, struct lac_error *reterr)
{
    assert(ingest != NULL && options != NULL && ret_upload != NULL);
    struct lac_upload *upload;
    enum lac_status status;

    if (options->total_bytes > ingest->options.upload_bytes_max) {
        return too_large(ingest, reterr);
    }
    lac_ingest_settle_all(ingest);
    status = lac_ingest_check_queue(ingest, reterr);
    if (status == LAC_OK) {
        status = lac_ingest_check_disk(ingest, options->total_bytes, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    upload = calloc(1, sizeof(*upload));
    if (upload == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    *upload = (struct lac_upload){.ingest = ingest,
                                  .staging = {.fd = -1},
                                  .fd = -1,
                                  .total_bytes = options->total_bytes,
                                  .reuse_existing = options->reuse_existing,
                                  .is_claimed = options->is_claimed,
                                  .started_s = lac_ingest_now_s()};
    lac_sha256_init(&upload->hash);
    upload->name = strdup(options->name != NULL ? options->name : "");
    upload->project = strdup(options->project != NULL ? options->project : "");
    upload->settle = calloc(1, sizeof(*upload->settle));
    status = upload->name != NULL && upload->project != NULL && upload->settle != NULL
                 ? claim(upload, options->token, options->total_bytes, reterr)
                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        status = sort_loss(open_staged(upload, options, reterr), reterr);
    }
    if (status != LAC_OK) {
        lac_staging_remove(&upload->staging);
        free_upload(upload);
        return status;
    }
    (void)pthread_mutex_lock(&ingest->lock);
    upload->next = ingest->uploads;
    ingest->uploads = upload;
    ingest->stats.uploads_started++;
    (void)pthread_mutex_unlock(&ingest->lock);
    *ret_upload = upload;
    return LAC_OK;
}

const char *lac_upload_id(const struct lac_upload *upload)
{
    return upload->staging.id;
}

void lac_upload_progress(const struct lac_upload *upload, struct lac_ingest_progress *ret_progress)
{
    double elapsed_s = lac_ingest_now_s() - upload->started_s;
    double per_s = elapsed_s > 0.05 ? (double)upload->received_bytes / elapsed_s : 0;

    *ret_progress = (struct lac_ingest_progress){.state = LAC_TRACE_RECEIVING,
                                                 .done_bytes = upload->received_bytes,
                                                 .total_bytes = upload->total_bytes,
                                                 .bytes_per_s = (uint64_t)per_s,
                                                 .eta_s = (double)NAN};
    if (per_s > 0 && upload->total_bytes >= upload->received_bytes) {
        ret_progress->eta_s = (double)(upload->total_bytes - upload->received_bytes) / per_s;
    }
}

static enum lac_status check_size(struct lac_upload *upload, size_t size_bytes,
                                  struct lac_error *reterr)
{
    uint64_t after = upload->received_bytes + size_bytes;

    if (after > upload->ingest->options.upload_bytes_max) {
        return too_large(upload->ingest, reterr);
    }
    if (upload->total_bytes > 0 && after > upload->total_bytes) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "the upload is longer than the %llu bytes it said",
                        (unsigned long long)upload->total_bytes);
    }
    if (after - upload->checked_bytes < CHECK_EVERY_BYTES) {
        return LAC_OK;
    }
    upload->checked_bytes = after;
    if (upload->total_bytes == 0) {
        const enum lac_status status = claim(upload, NULL, after, reterr);

        if (status != LAC_OK) {
            return status;
        }
    }
    return lac_ingest_check_disk(upload->ingest, size_bytes, reterr);
}

/** Take the upload off the list of those under way. */
static void unlink_upload(struct lac_upload *upload)
{
    struct lac_ingest *ingest = upload->ingest;
    struct lac_upload **link = &ingest->uploads;

    (void)pthread_mutex_lock(&ingest->lock);
    while (*link != upload) {
        link = &(*link)->next;
    }
    *link = upload->next;
    (void)pthread_mutex_unlock(&ingest->lock);
}

enum lac_status lac_upload_write(struct lac_upload *upload, const void *bytes, size_t size_bytes,
                                 struct lac_error *reterr)
{
    assert(upload != NULL);
    assert(bytes != NULL || size_bytes == 0);
    double now_s;
    enum lac_status status = check_size(upload, size_bytes, reterr);

    if (status != LAC_OK) {
        return status;
    }
    if (!lac_write_full(upload->fd, bytes, size_bytes)) {
        return lac_ingest_fail_io(reterr, "cannot store the upload");
    }
    lac_sha_add(&upload->hash, bytes, size_bytes);
    (void)pthread_mutex_lock(&upload->ingest->lock);
    upload->received_bytes += size_bytes;
    upload->ingest->stats.upload_bytes += size_bytes;
    (void)pthread_mutex_unlock(&upload->ingest->lock);
    now_s = lac_ingest_now_s();
    if (now_s - upload->told_s >= 0.25) {
        struct lac_ingest_progress progress;

        upload->told_s = now_s;
        lac_upload_progress(upload, &progress);
        lac_ingest_tell(upload->ingest, upload->staging.id, false, &progress);
    }
    return LAC_OK;
}

static enum lac_status check_complete(const struct lac_upload *upload, struct lac_error *reterr)
{
    if (upload->received_bytes == 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the upload is empty");
    }
    if (upload->total_bytes > 0 && upload->received_bytes != upload->total_bytes) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the upload ended after %llu of %llu bytes",
                        (unsigned long long)upload->received_bytes,
                        (unsigned long long)upload->total_bytes);
    }
    return LAC_OK;
}

/** File, its folder, and the folder of that: after this a crash cannot lose it. */
static enum lac_status sync_upload(const struct lac_upload *upload, struct lac_error *reterr)
{
    char path[4096 + 16];
    int parent;
    bool synced = fsync(upload->fd) == 0 && fsync(upload->staging.fd) == 0;

    (void)snprintf(path, sizeof(path), "%s/staging",
                   lac_store_data_dir(upload->ingest->options.store));
    parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    synced = synced && parent >= 0 && fsync(parent) == 0;
    if (parent >= 0) {
        (void)close(parent);
    }
    return synced ? LAC_OK : lac_ingest_fail_io(reterr, "cannot sync the upload");
}

/** Off the list, off the disk (which makes room), out of the catalog. */
static void give_up(struct lac_upload *upload)
{
    unlink_upload(upload);
    if (upload->fd >= 0) {
        (void)close(upload->fd);
        upload->fd = -1;
    }
    lac_staging_remove(&upload->staging);
    drop_row(upload);
    (void)pthread_mutex_lock(&upload->ingest->lock);
    upload->ingest->stats.uploads_aborted++;
    (void)pthread_mutex_unlock(&upload->ingest->lock);
    free_upload(upload);
}

void lac_upload_abort(struct lac_upload *upload)
{
    if (upload != NULL) {
        give_up(upload);
    }
}

/** It is acknowledged, but cannot be imported now. */
static void fail_row(struct lac_upload *upload, const char *code, const char *message)
{
    struct lac_settle *settle = upload->settle;

    upload->settle = NULL;
    memcpy(settle->id, upload->staging.id, sizeof(settle->id));
    (void)snprintf(settle->code, sizeof(settle->code), "%s", code);
    (void)snprintf(settle->message, sizeof(settle->message), "%s", message);
    (void)lac_ingest_settle(upload->ingest, settle);
}

/** Sync, commit, queue. From the commit on it is acknowledged, whatever happens. */
static enum lac_status acknowledge(struct lac_upload *upload, const uint8_t *sha256,
                                   struct lac_error *reterr)
{
    struct lac_ingest *ingest = upload->ingest;
    enum lac_status status = sync_upload(upload, reterr);

    if (status == LAC_OK) {
        status = lac_store_acknowledge(ingest->options.store, upload->staging.id, sha256,
                                       upload->received_bytes, reterr);
    }
    status = sort_loss(status, reterr);
    if (status == LAC_OK) {
        /* no descriptor is held while it waits; its row keeps the folder from being swept */
        lac_staging_close(&upload->staging);
        if (lac_ingest_queue(ingest, upload->staging.id, upload->name, upload->received_bytes) !=
            LAC_OK) {
            fail_row(upload, "out_of_memory", "no memory to queue the import");
        }
    }
    return status;
}

enum lac_status lac_upload_commit(struct lac_upload *upload, char *ret_id, bool *ret_existed,
                                  struct lac_error *reterr)
{
    assert(upload != NULL && ret_id != NULL);
    struct lac_ingest *ingest = upload->ingest;
    uint8_t sha256[LAC_SHA256_SIZE];
    struct lac_error ignored;
    enum lac_status status = check_complete(upload, reterr);

    if (status == LAC_OK && upload->total_bytes == 0) { /* how long it is, is known only now */
        status = claim(upload, NULL, upload->received_bytes, reterr);
    }
    if (ret_existed != NULL) {
        *ret_existed = false;
    }
    if (status == LAC_OK) {
        if (upload->has_digest) {
            memcpy(sha256, upload->digest, sizeof(sha256));
        } else {
            lac_sha_end(&upload->hash, sha256);
        }
        if (upload->reuse_existing &&
            lac_store_find_content(ingest->options.store, upload->project,
                                   upload->name[0] != '\0' ? upload->name : NULL, sha256, ret_id,
                                   &ignored) == LAC_OK) {
            if (ret_existed != NULL) {
                *ret_existed = true;
            }
            give_up(upload);
            return LAC_OK;
        }
        status = acknowledge(upload, sha256, reterr);
    }
    if (status != LAC_OK) {
        give_up(upload);
        return status;
    }
    memcpy(ret_id, upload->staging.id, LAC_ID_SIZE);
    unlink_upload(upload);
    (void)pthread_mutex_lock(&ingest->lock);
    ingest->stats.uploads_committed++;
    (void)pthread_mutex_unlock(&ingest->lock);
    free_upload(upload);
    return LAC_OK;
}
