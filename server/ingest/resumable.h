#ifndef LAC_SERVER_INGEST_RESUMABLE_H
#define LAC_SERVER_INGEST_RESUMABLE_H

/*
 * Uploads that go on where they broke off.
 *
 *   DIR/uploads/<id>.part   the bytes; what lies behind the committed offset is nobody's
 *   DIR/uploads/<id>.info   length, committed offset, end of life, metadata, trace once complete
 *
 *   begin -> (take -> write ... -> finish | cancel) ... -> complete: a trace, queued as any upload
 *                                                     \-> removed, or expired
 *
 * An upload may grow: its length is said later, with the last bytes, and until then counts as what
 * is there. One that expires before becomes the trace that it is so far.
 *
 * An offset is committed when the bytes before it are on disk and .info says so. After a restart
 * the smaller of the committed offset and the file's size counts. One writer at a time.
 */

#include "analysis/model/status.h"
#include "server/ingest/ingest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_resumable;
struct lac_upload_writer;

struct lac_resumable_options {
    struct lac_ingest *ingest; /**< borrowed; destroyed after this */
    struct lac_store *store;   /**< borrowed */
    uint64_t upload_bytes_max; /**< of one; 0: 16 GiB */
    uint64_t open_bytes_max;   /**< lengths of all that are incomplete; 0: 4 uploads' worth */
    uint32_t open_count_max;   /**< incomplete ones; 0: 256 */
    uint32_t lifetime_s; /**< from the last byte that was committed, of this server's own time: the
                              time of day may jump; a quarter of it at least after a start; 0: a
                              day */
};

/** Read what an earlier server left, and start the thread that ends what expired. */
LAC_MUST_USE enum lac_status lac_resumable_create(const struct lac_resumable_options *options,
                                                  struct lac_resumable **ret_set,
                                                  struct lac_error *reterr);
/** No writer may be held. NULL is allowed. Everything stays on disk. */
void lac_resumable_destroy(struct lac_resumable *set);

uint64_t lac_resumable_bytes_max(const struct lac_resumable *set);

/** Why a request cannot be served. */
enum lac_upload_answer {
    LAC_UPLOAD_OK = 0,
    LAC_UPLOAD_UNKNOWN, /**< no such upload */
    LAC_UPLOAD_GONE,    /**< removed or expired */
    LAC_UPLOAD_BUSY,    /**< another request writes it */
    LAC_UPLOAD_OFFSET,  /**< not the offset that is expected */
    LAC_UPLOAD_TOO_LONG,
    LAC_UPLOAD_TOO_MANY, /**< too many or too large uploads are incomplete */
    LAC_UPLOAD_NO_MEMORY,
};

/** Who began an upload. */
struct lac_upload_owner {
    char name[68];           /**< of the person; "" not known: an older server took it */
    char token[LAC_ID_SIZE]; /**< id of the token, "" none */
};

/** Where an upload stands. */
struct lac_upload_state {
    char id[LAC_ID_SIZE];
    char trace[LAC_ID_SIZE]; /**< "" until complete */
    uint64_t offset_bytes;
    uint64_t length_bytes; /**< 0: its client has not said yet */
    int64_t expires_unix_s;
    char *metadata; /**< as it was given; owned by the state */
    struct lac_upload_owner owner;
};

void lac_upload_state_done(struct lac_upload_state *state);

/** Where it stands. Reads memory only. */
LAC_MUST_USE enum lac_upload_answer lac_resumable_look(struct lac_resumable *set, const char *id,
                                                       struct lac_upload_state *ret_state);

enum lac_checksum { LAC_CHECKSUM_NONE = 0, LAC_CHECKSUM_SHA1, LAC_CHECKSUM_SHA256 };

/** What a request brings. */
struct lac_upload_request {
    const char *id;                       /**< NULL: a new upload */
    const char *metadata;                 /**< of a new one: checked already (upload_metadata.h) */
    const struct lac_upload_owner *owner; /**< of a new one; NULL: anybody's */
    uint64_t length_bytes; /**< of a new one; 0: said later, in a request for a known one */
    uint64_t offset_bytes; /**< of a known one */
    uint64_t size_bytes;   /**< of the body; UINT64_MAX unknown */
    enum lac_checksum checksum;
    uint8_t expected[32];
};

/**
 * Take an upload for writing, or make a new one. Touches memory only: may run on an event loop.
 *
 * @param ret_writer hold it until finish or cancel; one thread at a time
 */
LAC_MUST_USE enum lac_upload_answer lac_resumable_take(struct lac_resumable *set,
                                                       const struct lac_upload_request *request,
                                                       struct lac_upload_writer **ret_writer);

/** Append. @return LAC_OK; LAC_ERR_LIMIT (longer than said), LAC_ERR_IO with its errno */
LAC_MUST_USE enum lac_status lac_upload_writer_write(struct lac_upload_writer *writer,
                                                     const void *bytes, size_t size_bytes,
                                                     struct lac_error *reterr);

/**
 * The request's body is whole: check it, commit it, and when the upload is complete make the trace.
 * Waits for the disk. Frees the writer, whatever it returns.
 *
 * @param ret_matches false: the checksum is another, nothing of this request was kept
 * @param ret_state   where it stands now, when LAC_OK
 */
LAC_MUST_USE enum lac_status lac_upload_writer_finish(struct lac_upload_writer *writer,
                                                      bool *ret_matches,
                                                      struct lac_upload_state *ret_state,
                                                      struct lac_error *reterr);

/** The request broke off: what came is kept unless a checksum was promised. Waits for the disk.
 * Frees the writer. A new upload whose first request breaks off stays, so that it can be resumed. */
void lac_upload_writer_cancel(struct lac_upload_writer *writer);

/** End an upload; a trace that it became stays. Waits for the disk. */
LAC_MUST_USE enum lac_upload_answer lac_resumable_remove(struct lac_resumable *set, const char *id);

/** For /metrics. */
struct lac_resumable_stats {
    uint64_t created, completed, expired, removed, mismatched;
    uint64_t open_count, open_bytes;
};
void lac_resumable_stats(struct lac_resumable *set, struct lac_resumable_stats *ret_stats);

#endif
