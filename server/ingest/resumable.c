#include "server/ingest/resumable.h"

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/ingest/ingest_private.h"
#include "server/ingest/resumable_private.h"
#include "server/store/publish.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)

static int64_t seconds_of(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec;
}

int64_t lac_resumable_clock_s(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

int64_t lac_entry_expires_unix_s(const struct lac_entry *entry)
{
    const int64_t at_s = seconds_of(CLOCK_REALTIME) + entry->ends_s - lac_resumable_clock_s();

    return at_s > 0 ? at_s : 0;
}

int64_t lac_resumable_ends_s(const struct lac_resumable *set, int64_t expires_unix_s)
{
    const int64_t most_s = set->options.lifetime_s;
    const int64_t least_s = most_s >= 4 ? most_s / 4 : 1;
    const int64_t left_s = expires_unix_s - seconds_of(CLOCK_REALTIME);

    return lac_resumable_clock_s() + (left_s < least_s  ? least_s
                                      : left_s > most_s ? most_s
                                                        : left_s);
}

/* -- the set ------------------------------------------------------------------------------------*/

static void set_defaults(struct lac_resumable_options *options)
{
    if (options->upload_bytes_max == 0) {
        options->upload_bytes_max = 16 * GIB;
    }
    if (options->open_bytes_max == 0) {
        options->open_bytes_max = options->upload_bytes_max * 4;
    }
    if (options->open_count_max == 0) {
        options->open_count_max = 256;
    }
    if (options->lifetime_s == 0) {
        options->lifetime_s = 86400;
    }
}

enum lac_status lac_resumable_create(const struct lac_resumable_options *options,
                                     struct lac_resumable **ret_set, struct lac_error *reterr)
{
    assert(options != NULL && ret_set != NULL);
    struct lac_resumable *set = calloc(1, sizeof(*set));
    pthread_condattr_t attributes;
    enum lac_status status;

    if (set == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    set->options = *options;
    set->folder_fd = -1;
    set_defaults(&set->options);
    (void)pthread_mutex_init(&set->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&set->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    status = lac_resumable_load(set, reterr);
    if (status == LAC_OK) {
        if (pthread_create(&set->thread, NULL, lac_resumable_sweep, set) == 0) {
            set->has_thread = true;
        } else {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a thread for uploads");
        }
    }
    if (status != LAC_OK) {
        lac_resumable_destroy(set);
        return status;
    }
    *ret_set = set;
    return LAC_OK;
}

void lac_resumable_destroy(struct lac_resumable *set)
{
    if (set == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&set->lock);
    set->is_stopping = true;
    (void)pthread_cond_broadcast(&set->wake);
    (void)pthread_mutex_unlock(&set->lock);
    if (set->has_thread) {
        (void)pthread_join(set->thread, NULL);
    }
    while (set->entries != NULL) {
        struct lac_entry *const entry = set->entries;

        set->entries = entry->next;
        lac_entry_release(set, entry);
        free(entry->metadata);
        free(entry);
    }
    if (set->folder_fd >= 0) {
        (void)close(set->folder_fd);
    }
    (void)pthread_cond_destroy(&set->wake);
    (void)pthread_mutex_destroy(&set->lock);
    free(set);
}

uint64_t lac_resumable_bytes_max(const struct lac_resumable *set)
{
    return set->options.upload_bytes_max;
}

/* With the lock held. */
static struct lac_entry *find(const struct lac_resumable *set, const char *id)
{
    for (struct lac_entry *entry = set->entries; entry != NULL; entry = entry->next) {
        if (strcmp(entry->id, id) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* How much of the limits an upload takes: one that grows, what it has. */
static uint64_t claim_of(const struct lac_entry *entry)
{
    return entry->length_bytes > 0 ? entry->length_bytes : entry->offset_bytes;
}

/* With the lock held. */
static void count_open(const struct lac_resumable *set, uint64_t *ret_count, uint64_t *ret_bytes,
                       uint64_t *ret_missing_bytes)
{
    *ret_count = *ret_bytes = *ret_missing_bytes = 0;
    for (const struct lac_entry *entry = set->entries; entry != NULL; entry = entry->next) {
        if (!entry->is_gone && !entry->is_done) {
            (*ret_count)++;
            *ret_bytes += claim_of(entry);
            *ret_missing_bytes += claim_of(entry) - entry->offset_bytes;
        }
    }
}

void lac_resumable_stats(struct lac_resumable *set, struct lac_resumable_stats *ret_stats)
{
    assert(set != NULL && ret_stats != NULL);
    uint64_t missing_bytes;

    (void)pthread_mutex_lock(&set->lock);
    *ret_stats = set->stats;
    count_open(set, &ret_stats->open_count, &ret_stats->open_bytes, &missing_bytes);
    (void)pthread_mutex_unlock(&set->lock);
}

/* With the lock held. @return false: no memory */
static bool describe(const struct lac_entry *entry, struct lac_upload_state *state)
{
    *state = (struct lac_upload_state){.offset_bytes = entry->offset_bytes,
                                       .length_bytes = entry->length_bytes,
                                       .expires_unix_s = lac_entry_expires_unix_s(entry),
                                       .owner = entry->owner};
    memcpy(state->id, entry->id, sizeof(state->id));
    if (entry->is_done) {
        memcpy(state->trace, entry->trace, sizeof(state->trace));
    }
    state->metadata = strdup(entry->metadata);
    return state->metadata != NULL;
}

void lac_upload_state_done(struct lac_upload_state *state)
{
    free(state->metadata);
    state->metadata = NULL;
}

enum lac_upload_answer lac_resumable_look(struct lac_resumable *set, const char *id,
                                          struct lac_upload_state *ret_state)
{
    assert(set != NULL && id != NULL && ret_state != NULL);
    enum lac_upload_answer answer = LAC_UPLOAD_UNKNOWN;
    const struct lac_entry *entry;

    *ret_state = (struct lac_upload_state){0};
    (void)pthread_mutex_lock(&set->lock);
    entry = find(set, id);
    if (entry != NULL && (entry->is_gone || entry->ends_s <= lac_resumable_clock_s())) {
        answer = LAC_UPLOAD_GONE;
    } else if (entry != NULL) {
        answer = describe(entry, ret_state) ? LAC_UPLOAD_OK : LAC_UPLOAD_NO_MEMORY;
    }
    (void)pthread_mutex_unlock(&set->lock);
    return answer;
}

/* -- a request that writes ---------------------------------------------------------------------*/

/* With the lock held: a new entry on the list, or why not. */
static enum lac_upload_answer add_entry(struct lac_resumable *set,
                                        const struct lac_upload_request *request,
                                        struct lac_entry **ret_entry)
{
    uint64_t count, bytes, missing_bytes;
    struct lac_entry *entry;
    struct lac_error error;

    if (request->length_bytes > set->options.upload_bytes_max) {
        return LAC_UPLOAD_TOO_LONG;
    }
    count_open(set, &count, &bytes, &missing_bytes);
    if (count >= set->options.open_count_max ||
        request->length_bytes > set->options.open_bytes_max ||
        bytes > set->options.open_bytes_max - request->length_bytes) {
        return LAC_UPLOAD_TOO_MANY;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return LAC_UPLOAD_NO_MEMORY;
    }
    entry->metadata = strdup(request->metadata != NULL ? request->metadata : "");
    if (entry->metadata == NULL || lac_store_new_id(entry->id, &error) != LAC_OK) {
        free(entry->metadata);
        free(entry);
        return LAC_UPLOAD_NO_MEMORY;
    }
    if (request->owner != NULL) {
        entry->owner = *request->owner;
    }
    entry->length_bytes = request->length_bytes;
    entry->ends_s = lac_resumable_clock_s() + set->options.lifetime_s;
    lac_sha256_init(&entry->hash);
    entry->has_hash = true;
    entry->next = set->entries;
    set->entries = entry;
    set->stats.created++;
    *ret_entry = entry;
    return LAC_UPLOAD_OK;
}

/* With the lock held. */
static enum lac_upload_answer choose_entry(struct lac_resumable *set,
                                           const struct lac_upload_request *request,
                                           struct lac_entry **ret_entry)
{
    struct lac_entry *entry;

    if (request->id == NULL) {
        return add_entry(set, request, ret_entry);
    }
    entry = find(set, request->id);
    if (entry == NULL) {
        return LAC_UPLOAD_UNKNOWN;
    }
    if (entry->is_gone || entry->ends_s <= lac_resumable_clock_s()) {
        return LAC_UPLOAD_GONE;
    }
    if (entry->is_held) {
        return LAC_UPLOAD_BUSY;
    }
    if (entry->offset_bytes != request->offset_bytes) {
        return LAC_UPLOAD_OFFSET;
    }
    *ret_entry = entry;
    return LAC_UPLOAD_OK;
}

/*
 * With the lock held: whether the upload may be as long as the request makes it, and how long it
 * is then known to be.
 */
static enum lac_upload_answer check_length(const struct lac_resumable *set,
                                           const struct lac_entry *entry,
                                           const struct lac_upload_request *request,
                                           uint64_t *ret_length_bytes)
{
    const uint64_t length = entry->length_bytes > 0 ? entry->length_bytes : request->length_bytes;
    const uint64_t most = length > 0 ? length : set->options.upload_bytes_max;
    const uint64_t size = request->size_bytes == UINT64_MAX ? 0 : request->size_bytes;
    uint64_t count, bytes, missing_bytes;

    *ret_length_bytes = length;
    if (request->length_bytes > 0 && request->length_bytes != length) {
        return LAC_UPLOAD_OFFSET; /* it was said, and otherwise */
    }
    if (length > set->options.upload_bytes_max || entry->offset_bytes > most ||
        size > most - entry->offset_bytes) {
        return LAC_UPLOAD_TOO_LONG;
    }
    count_open(set, &count, &bytes, &missing_bytes);
    return entry->length_bytes == 0 && (bytes > set->options.open_bytes_max ||
                                        size > set->options.open_bytes_max - bytes)
               ? LAC_UPLOAD_TOO_MANY
               : LAC_UPLOAD_OK;
}

enum lac_upload_answer lac_resumable_take(struct lac_resumable *set,
                                          const struct lac_upload_request *request,
                                          struct lac_upload_writer **ret_writer)
{
    assert(set != NULL && request != NULL && ret_writer != NULL);
    struct lac_upload_writer *writer = calloc(1, sizeof(*writer));
    struct lac_entry *entry = NULL;
    enum lac_upload_answer answer;
    uint64_t length_bytes = 0;

    if (writer == NULL) {
        return LAC_UPLOAD_NO_MEMORY;
    }
    (void)pthread_mutex_lock(&set->lock);
    answer = choose_entry(set, request, &entry);
    if (answer == LAC_UPLOAD_OK) {
        answer = check_length(set, entry, request, &length_bytes);
    }
    if (answer == LAC_UPLOAD_OK) {
        entry->is_held = true;
    }
    (void)pthread_mutex_unlock(&set->lock);
    if (answer != LAC_UPLOAD_OK) {
        free(writer);
        return answer;
    }
    *writer = (struct lac_upload_writer){.set = set,
                                         .entry = entry,
                                         .fd = -1,
                                         .size_bytes = request->size_bytes,
                                         .length_bytes = length_bytes,
                                         .checksum = request->checksum};
    memcpy(writer->expected, request->expected, sizeof(writer->expected));
    if (request->checksum == LAC_CHECKSUM_SHA1) {
        lac_sha1_init(&writer->hash);
    } else {
        lac_sha256_init(&writer->hash);
    }
    *ret_writer = writer;
    return LAC_UPLOAD_OK;
}

/* With the errno of the failure in the error: a full disk is answered as one. */
static enum lac_status fail_io(struct lac_error *reterr, const char *what)
{
    const int error = errno;

    (void)lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", what, strerror(error));
    if (reterr != NULL) {
        reterr->sys_errno = error;
    }
    return LAC_ERR_IO;
}

/* Whether what is missing fits, and leaves what must stay free: of a new upload, beside all that is
 * missing of those begun before. */
static enum lac_status check_disk(const struct lac_upload_writer *writer, struct lac_error *reterr)
{
    struct lac_resumable *set = writer->set;
    const uint64_t missing = writer->length_bytes > 0
                                 ? writer->length_bytes - writer->entry->offset_bytes
                             : writer->size_bytes != UINT64_MAX ? writer->size_bytes
                                                                : 0;
    uint64_t count;
    uint64_t bytes;
    uint64_t all_missing = 0;

    if (!writer->entry->is_stored && writer->length_bytes > 0) {
        (void)pthread_mutex_lock(&set->lock);
        count_open(set, &count, &bytes, &all_missing);
        (void)pthread_mutex_unlock(&set->lock);
    }
    return lac_ingest_check_disk(set->options.ingest, all_missing > missing ? all_missing : missing,
                                 reterr);
}

/* Of a new upload, and of each piece of one that grows; never of one whose length was taken. */
static enum lac_status check_quota(const struct lac_upload_writer *writer, struct lac_error *reterr)
{
    struct lac_entry *const entry = writer->entry;
    const uint64_t size_bytes = writer->size_bytes != UINT64_MAX ? writer->size_bytes : 0;

    if (entry->is_stored && entry->length_bytes > 0) {
        return LAC_OK;
    }
    return lac_entry_claim(writer->set, entry,
                           writer->length_bytes > 0 ? writer->length_bytes
                                                    : entry->offset_bytes + size_bytes,
                           false, reterr);
}

/* The file, cut back to what is committed. */
static enum lac_status open_file(struct lac_upload_writer *writer, struct lac_error *reterr)
{
    struct lac_entry *const entry = writer->entry;
    char path[LAC_UPLOAD_PATH_BYTES];
    enum lac_status status = check_disk(writer, reterr);

    if (status == LAC_OK) {
        status = check_quota(writer, reterr);
    }
    if (status == LAC_OK && !entry->has_hash) {
        status = lac_entry_rehash(writer->set, entry, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    writer->whole = entry->hash;
    lac_entry_path(writer->set, entry, ".part", path);
    writer->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer->fd < 0 || ftruncate(writer->fd, (off_t)entry->offset_bytes) != 0 ||
        lseek(writer->fd, (off_t)entry->offset_bytes, SEEK_SET) < 0) {
        return fail_io(reterr, "cannot store the upload");
    }
    if (!entry->is_stored) {
        status = lac_entry_save(writer->set, entry, reterr);
        entry->is_stored = status == LAC_OK;
    }
    return status;
}

enum lac_status lac_upload_writer_write(struct lac_upload_writer *writer, const void *bytes,
                                        size_t size_bytes, struct lac_error *reterr)
{
    assert(writer != NULL);
    assert(bytes != NULL || size_bytes == 0);
    const struct lac_entry *const entry = writer->entry;

    const uint64_t most =
        writer->length_bytes > 0 ? writer->length_bytes : writer->set->options.upload_bytes_max;

    if (size_bytes > most - entry->offset_bytes - writer->written_bytes) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        writer->length_bytes > 0
                            ? "the upload is longer than the %llu bytes it said"
                            : "more than the %llu bytes an upload may have",
                        (unsigned long long)most);
    }
    if (writer->fd < 0) {
        const enum lac_status status = open_file(writer, reterr);

        if (status != LAC_OK) {
            return status;
        }
    }
    if (!lac_write_full(writer->fd, bytes, size_bytes)) {
        return fail_io(reterr, "cannot store the upload");
    }
    lac_sha_add(&writer->whole, bytes, size_bytes);
    if (writer->checksum != LAC_CHECKSUM_NONE) {
        lac_sha_add(&writer->hash, bytes, size_bytes);
    }
    writer->written_bytes += size_bytes;
    return LAC_OK;
}

static bool checksum_matches(struct lac_upload_writer *writer)
{
    uint8_t digest[LAC_SHA256_SIZE];

    if (writer->checksum == LAC_CHECKSUM_NONE) {
        return true;
    }
    lac_sha_end(&writer->hash, digest);
    return memcmp(digest, writer->expected, writer->hash.digest_bytes) == 0;
}

/* Bytes to the disk, then the offset, and the length if that is known only now. */
static enum lac_status commit(struct lac_upload_writer *writer, struct lac_error *reterr)
{
    struct lac_resumable *const set = writer->set;
    struct lac_entry *const entry = writer->entry;
    struct lac_entry after = *entry;
    enum lac_status status;

    if (writer->written_bytes > 0 && (writer->fd < 0 || fsync(writer->fd) != 0)) {
        return fail_io(reterr, "cannot sync the upload");
    }
    after.length_bytes = writer->length_bytes;
    after.offset_bytes += writer->written_bytes;
    after.ends_s = lac_resumable_clock_s() + set->options.lifetime_s;
    status = lac_entry_save(set, &after, reterr);
    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&set->lock); /* nobody is told of it before it is on disk */
    entry->length_bytes = after.length_bytes;
    entry->offset_bytes = after.offset_bytes;
    entry->ends_s = after.ends_s;
    (void)pthread_mutex_unlock(&set->lock);
    if (writer->written_bytes > 0) {
        entry->hash = writer->whole;
    }
    return LAC_OK;
}

/* Give the entry back, and free the writer. An entry that never reached the disk vanishes. */
static void release(struct lac_upload_writer *writer)
{
    struct lac_resumable *const set = writer->set;

    if (writer->fd >= 0) {
        (void)close(writer->fd);
    }
    (void)pthread_mutex_lock(&set->lock);
    writer->entry->is_held = false;
    if (!writer->entry->is_stored) {
        lac_entry_release(set, writer->entry);
        writer->entry->is_gone = true;
        writer->entry->ends_s = INT64_MIN / 2; /* and is forgotten at once */
    }
    (void)pthread_mutex_unlock(&set->lock);
    free(writer);
}

enum lac_status lac_upload_writer_finish(struct lac_upload_writer *writer, bool *ret_matches,
                                         struct lac_upload_state *ret_state,
                                         struct lac_error *reterr)
{
    assert(writer != NULL && ret_state != NULL);
    struct lac_resumable *const set = writer->set;
    struct lac_entry *const entry = writer->entry;
    enum lac_status status = LAC_OK;

    *ret_state = (struct lac_upload_state){0};
    if (writer->fd < 0 && !entry->is_stored) { /* created without content */
        status = open_file(writer, reterr);
    }
    *ret_matches = status != LAC_OK || checksum_matches(writer);
    if (status == LAC_OK && *ret_matches &&
        (writer->written_bytes > 0 || writer->length_bytes != entry->length_bytes)) {
        status = commit(writer, reterr);
    }
    if (status == LAC_OK && *ret_matches && lac_entry_is_whole(entry) && !entry->is_done) {
        status = lac_entry_complete(set, entry, reterr);
    }
    (void)pthread_mutex_lock(&set->lock);
    set->stats.mismatched += *ret_matches ? 0 : 1;
    if (status == LAC_OK && !describe(entry, ret_state)) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    (void)pthread_mutex_unlock(&set->lock);
    release(writer);
    return status;
}

void lac_upload_writer_cancel(struct lac_upload_writer *writer)
{
    assert(writer != NULL);
    struct lac_error error;

    if (writer->checksum == LAC_CHECKSUM_NONE && writer->written_bytes > 0 && writer->fd >= 0) {
        (void)!commit(writer, &error);
    }
    release(writer);
}

enum lac_upload_answer lac_resumable_remove(struct lac_resumable *set, const char *id)
{
    assert(set != NULL && id != NULL);
    enum lac_upload_answer answer = LAC_UPLOAD_UNKNOWN;
    struct lac_entry *entry;

    (void)pthread_mutex_lock(&set->lock);
    entry = find(set, id);
    if (entry != NULL) {
        answer = entry->is_gone   ? LAC_UPLOAD_GONE
                 : entry->is_held ? LAC_UPLOAD_BUSY
                                  : LAC_UPLOAD_OK;
    }
    if (answer == LAC_UPLOAD_OK) {
        entry->is_held = true;
        entry->is_gone = true;
        set->stats.removed++;
    }
    (void)pthread_mutex_unlock(&set->lock);
    if (answer == LAC_UPLOAD_OK) {
        lac_entry_unlink(set, entry);
        lac_entry_release(set, entry);
        (void)pthread_mutex_lock(&set->lock);
        entry->is_held = false;
        (void)pthread_mutex_unlock(&set->lock);
    }
    return answer;
}
