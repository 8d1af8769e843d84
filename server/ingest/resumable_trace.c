/* What becomes of resumable uploads: traces, or nothing. */

#include "analysis/model/status.h"
#include "collector/base/sha.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/ingest/quota.h"
#include "server/ingest/resumable_private.h"
#include "server/ingest/upload_metadata.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/** Ended uploads are remembered so long, so that their clients read 410 and not 404. */
enum { REMEMBER_GONE_S = 86400, SWEEP_PERIOD_S_MAX = 60, RETRY_PERIOD_S = 2 };

enum lac_status lac_entry_claim(const struct lac_resumable *set, struct lac_entry *entry,
                                uint64_t bytes, bool was_begun, struct lac_error *reterr)
{
    struct lac_upload_metadata metadata = {0};
    struct lac_claim_request request = {
        .token = entry->owner.token, .bytes = bytes, .was_begun = was_begun};
    const enum lac_status status = lac_upload_metadata_parse(entry->metadata, &metadata, reterr);

    request.project = metadata.project;
    return status == LAC_OK ? lac_quota_claim(set->options.ingest, &request, &entry->claim, reterr)
                            : status;
}

void lac_entry_release(const struct lac_resumable *set, struct lac_entry *entry)
{
    lac_quota_release(set->options.ingest, entry->claim);
    entry->claim = NULL;
}

static void set_trace(struct lac_resumable *set, struct lac_entry *entry, const char *trace,
                      bool is_done)
{
    (void)pthread_mutex_lock(&set->lock);
    memcpy(entry->trace, trace, LAC_ID_SIZE);
    entry->is_done = is_done;
    if (is_done) {
        set->stats.completed++;
    }
    (void)pthread_mutex_unlock(&set->lock);
}

/*
 * A crash at any point leaves either an upload that is completed again, or a trace that .info
 * names: the file is linked, not moved, and .info names the trace before its row can survive.
 */
enum lac_status lac_entry_complete(struct lac_resumable *set, struct lac_entry *entry,
                                   struct lac_error *reterr)
{
    struct lac_upload_metadata metadata;
    struct lac_upload *upload = NULL;
    char path[LAC_UPLOAD_PATH_BYTES];
    char trace[LAC_ID_SIZE] = "";
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;
    struct lac_error error;
    enum lac_status status = lac_upload_metadata_parse(entry->metadata, &metadata, reterr);

    if (status == LAC_OK && !entry->has_hash) {
        status = lac_entry_rehash(set, entry, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    const struct lac_upload_options options = {.name = metadata.name,
                                               .project = metadata.project,
                                               .run = metadata.run,
                                               .total_bytes = entry->length_bytes,
                                               .token = entry->owner.token,
                                               .is_claimed = true,
                                               .reuse_existing = metadata.reuse_existing,
                                               .has_clock = metadata.has_clock,
                                               .clock_offset_ns = metadata.clock_offset_ns,
                                               .clock_error_ns = metadata.clock_error_ns};
    status = lac_ingest_begin(set->options.ingest, &options, &upload, reterr);
    if (status != LAC_OK) {
        return status;
    }
    hash = entry->hash;
    lac_sha_end(&hash, digest);
    lac_entry_path(set, entry, ".part", path);
    status = lac_upload_adopt(upload, path, entry->length_bytes, digest, reterr);
    if (status == LAC_OK) {
        set_trace(set, entry, lac_upload_id(upload), false);
        status = lac_entry_save(set, entry, reterr);
    }
    if (status != LAC_OK) {
        lac_upload_abort(upload);
        return status;
    }
    status = lac_upload_commit(upload, trace, NULL, reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (strcmp(trace, entry->trace) != 0) { /* the same content was there already */
        set_trace(set, entry, trace, false);
        (void)!lac_entry_save(set, entry, &error);
    }
    set_trace(set, entry, trace, true);
    lac_entry_release(set, entry);
    (void)unlink(path);
    return LAC_OK;
}

/* With the lock held: something to do with an entry, which is then held. */
static struct lac_entry *next_due(struct lac_resumable *set, int64_t now_s)
{
    for (struct lac_entry *entry = set->entries; entry != NULL; entry = entry->next) {
        const bool is_complete = entry->is_stored && lac_entry_is_whole(entry);

        if (!entry->is_held && !entry->is_gone &&
            (entry->ends_s <= now_s || (is_complete && !entry->is_done))) {
            entry->is_held = true;
            return entry;
        }
    }
    return NULL;
}

/* With the lock held: forget what has been gone for long. */
static void forget(struct lac_resumable *set, int64_t now_s)
{
    struct lac_entry **link = &set->entries;

    while (*link != NULL) {
        struct lac_entry *const entry = *link;

        if (entry->is_gone && !entry->is_held && entry->ends_s + REMEMBER_GONE_S <= now_s) {
            *link = entry->next;
            free(entry->metadata);
            free(entry);
        } else {
            link = &entry->next;
        }
    }
}

/*
 * A job that sent what it recorded while it ran, and was killed with its node: what came is a
 * recording up to there, and nobody has more.
 */
static void keep_what_grew(struct lac_resumable *set, struct lac_entry *entry)
{
    struct lac_error error;

    (void)pthread_mutex_lock(&set->lock);
    entry->length_bytes = entry->offset_bytes;
    (void)pthread_mutex_unlock(&set->lock);
    (void)!lac_entry_complete(set, entry, &error);
}

/* One round; gives up the lock while it works. @return false when a completion failed */
static bool sweep_round(struct lac_resumable *set)
{
    const int64_t now_s = lac_resumable_clock_s();
    struct lac_entry *entry;
    struct lac_error error;
    bool is_whole = true;

    forget(set, now_s);
    while (is_whole && !set->is_stopping && (entry = next_due(set, now_s)) != NULL) {
        const bool is_expired = entry->ends_s <= now_s;

        const bool is_half_grown =
            entry->is_stored && entry->length_bytes == 0 && entry->offset_bytes > 0;
        (void)pthread_mutex_unlock(&set->lock);
        if (is_expired && is_half_grown) {
            keep_what_grew(set, entry);
        }
        if (is_expired) {
            lac_entry_unlink(set, entry);
            lac_entry_release(set, entry);
        } else {
            is_whole = lac_entry_complete(set, entry, &error) == LAC_OK;
        }
        (void)pthread_mutex_lock(&set->lock);
        entry->is_gone = entry->is_gone || is_expired;
        set->stats.expired += is_expired ? 1 : 0;
        entry->is_held = false;
    }
    return is_whole;
}

void *lac_resumable_sweep(void *context)
{
    struct lac_resumable *set = context;
    const uint32_t quarter_s = set->options.lifetime_s / 4;
    const uint32_t period_s = quarter_s == 0                   ? 1
                              : quarter_s > SWEEP_PERIOD_S_MAX ? SWEEP_PERIOD_S_MAX
                                                               : quarter_s;

    (void)pthread_mutex_lock(&set->lock);
    while (!set->is_stopping) {
        const bool is_whole = sweep_round(set);
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)(is_whole || period_s < RETRY_PERIOD_S ? period_s : RETRY_PERIOD_S);
        if (!set->is_stopping) {
            (void)pthread_cond_timedwait(&set->wake, &set->lock, &until);
        }
    }
    (void)pthread_mutex_unlock(&set->lock);
    return NULL;
}
