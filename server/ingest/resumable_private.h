#ifndef LAC_SERVER_INGEST_RESUMABLE_PRIVATE_H
#define LAC_SERVER_INGEST_RESUMABLE_PRIVATE_H

/* What resumable*.c share. */

#include "collector/base/sha.h"
#include "server/ingest/resumable.h"

#include <pthread.h>

enum { LAC_UPLOAD_PATH_BYTES = 4096 + 64 };

/** One upload. Its writer may read it without the lock, and changes it with the lock held. */
struct lac_entry {
    struct lac_entry *next;
    char id[LAC_ID_SIZE];
    char trace[LAC_ID_SIZE]; /**< chosen when complete; counts once is_done */
    char *metadata;
    struct lac_upload_owner owner;
    struct lac_claim *claim; /**< on the quotas, until it is a trace or gone; of who holds it */
    uint64_t length_bytes;   /**< 0: not said yet */
    uint64_t offset_bytes;   /**< committed */
    int64_t ends_s;          /**< when it expires, on lac_resumable_clock_s() */
    bool is_stored;          /**< its files are there */
    bool is_done;            /**< the trace is queued */
    bool is_gone;
    bool is_held;        /**< by a writer */
    bool has_hash;       /**< `hash` covers what is committed */
    struct lac_sha hash; /**< of the committed bytes */
};

struct lac_resumable {
    struct lac_resumable_options options;
    char folder[LAC_UPLOAD_PATH_BYTES];
    int folder_fd;
    pthread_mutex_t lock; /**< guards all below */
    pthread_cond_t wake;
    struct lac_entry *entries;
    struct lac_resumable_stats stats;
    bool is_stopping;
    pthread_t thread;
    bool has_thread;
};

struct lac_upload_writer {
    struct lac_resumable *set;
    struct lac_entry *entry;
    int fd;
    uint64_t written_bytes;
    uint64_t size_bytes;   /**< promised, UINT64_MAX unknown */
    uint64_t length_bytes; /**< of the upload once this request is whole, 0 not said yet */
    struct lac_sha whole;
    enum lac_checksum checksum;
    uint8_t expected[32];
    struct lac_sha hash; /**< of this request, by its checksum */
};

/**
 * Seconds on a clock that nobody sets. Uploads expire by it: one that stands still ends once this
 * server has seen it do so, whatever happens to the time of day.
 */
int64_t lac_resumable_clock_s(void);

/** The time of day at which an entry expires, for people and for the next server. */
int64_t lac_entry_expires_unix_s(const struct lac_entry *entry);

/** When one ends that an earlier server said would expire at that time of day. That clock may have
 *  been wrong, and so may ours be: it lives at least a quarter of a lifetime from now, and at most
 *  a whole one. */
int64_t lac_resumable_ends_s(const struct lac_resumable *set, int64_t expires_unix_s);

/** Whether all of it is committed. */
static inline bool lac_entry_is_whole(const struct lac_entry *entry)
{
    return entry->length_bytes > 0 && entry->offset_bytes == entry->length_bytes;
}

/* resumable_file.c */

/** DIR/uploads/<id><ending>. */
void lac_entry_path(const struct lac_resumable *set, const struct lac_entry *entry,
                    const char *ending, char *out);
/** Write .info, durable when it returns. */
LAC_MUST_USE enum lac_status lac_entry_save(const struct lac_resumable *set,
                                            const struct lac_entry *entry,
                                            struct lac_error *reterr);
/** Remove both files. */
void lac_entry_unlink(const struct lac_resumable *set, const struct lac_entry *entry);
/** Make DIR/uploads and read what is in it into set->entries. */
LAC_MUST_USE enum lac_status lac_resumable_load(struct lac_resumable *set,
                                                struct lac_error *reterr);
/** Hash what is committed, from the file. */
LAC_MUST_USE enum lac_status lac_entry_rehash(const struct lac_resumable *set,
                                              struct lac_entry *entry, struct lac_error *reterr);

/* resumable_trace.c */

/** Count it against the quotas, of `bytes` length. @return as lac_quota_claim() */
LAC_MUST_USE enum lac_status lac_entry_claim(const struct lac_resumable *set,
                                             struct lac_entry *entry, uint64_t bytes,
                                             bool was_begun, struct lac_error *reterr);
/** No longer, as it is a trace now, or gone. */
void lac_entry_release(const struct lac_resumable *set, struct lac_entry *entry);

/** A complete upload becomes a trace. By the one who holds the entry. */
LAC_MUST_USE enum lac_status lac_entry_complete(struct lac_resumable *set, struct lac_entry *entry,
                                                struct lac_error *reterr);
/** The sweeping thread. */
void *lac_resumable_sweep(void *context);

#endif
