#ifndef LAC_SERVER_INGEST_INGEST_H
#define LAC_SERVER_INGEST_INGEST_H

/*
 * Uploads and imports of the server: bytes -> staged file -> limited child process -> trace file
 * -> catalog.
 *
 *   begin -> write ... -> commit (acknowledged: survives a crash) -> queued -> ready | failed
 *                      \-> abort
 *
 * One pool of children with one memory budget does all imports. What a child does wrong, crashing
 * included, is a failed import and nothing more. Imports that were acknowledged before a crash are
 * queued again by lac_ingest_create().
 *
 * What was acknowledged stays until its trace is ready or deleted, or its bytes turn out to be no
 * trace. An import that failed for reasons of this machine keeps them, and can be tried again.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_ingest;
struct lac_upload;

/** Memory of the machine, or of the cgroup when that is less: what defaults are shares of. */
uint64_t lac_ingest_machine_bytes(void);

/** Where an upload or import stands; from lac_ingest_progress() and in the callback. */
struct lac_ingest_progress {
    enum lac_trace_state state;
    uint64_t done_bytes;
    uint64_t total_bytes; /**< 0 unknown (a body without Content-Length) */
    uint64_t bytes_per_s;
    uint64_t events;
    double eta_s; /**< NaN unknown */
};

/**
 * A trace changed its state or made progress (at most four times a second a trace). Called from a
 * thread of the ingest or from within commit/abort; must not block and must not call back into
 * lac_ingest_*. The store may be used. A deleted trace is told as `deleted`.
 */
typedef void (*lac_ingest_changed)(void *context, const char *id, bool deleted,
                                   const struct lac_ingest_progress *progress);

struct lac_ingest_options {
    struct lac_store *store; /**< borrowed */
    const char *program;     /**< executable of the child; NULL: this one (/proc/self/exe) */
    uint64_t
        memory_budget_bytes;   /**< all imports together; 0: half of the machine's (or cgroup's) */
    uint64_t upload_bytes_max; /**< 0: 16 GiB */
    uint64_t quota_project_bytes;     /**< of a project without a quota of its own; 0: none */
    uint64_t quota_token_bytes;       /**< the same of a token */
    uint64_t free_bytes_min;          /**< keep this much of the disk free; 0: 256 MiB */
    uint32_t worker_count;            /**< imports at a time; 0: one per two cores, at least 1 */
    uint32_t import_seconds_max;      /**< CPU time of one import; 0: 3600 */
    uint32_t import_wall_seconds_max; /**< its time on the wall; 0: CPU time and 1 s a MiB */
    uint32_t queue_max;               /**< imports that wait; 0: 10,000 */
    bool keep_originals;
    const char *names_text; /**< rows of names for the diagnosis, checked; borrowed; NULL none */
    lac_ingest_changed changed; /**< may be NULL */
    void *changed_context;
};

/** Start the pool; queues again what was acknowledged. @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_ingest_create(const struct lac_ingest_options *options,
                                               struct lac_ingest **ret_ingest,
                                               struct lac_error *reterr);

/** Stop: running children are killed (their uploads stay queued for the next start). NULL is
 * allowed. */
void lac_ingest_destroy(struct lac_ingest *ingest);

struct lac_upload_options {
    const char *name;        /**< of the trace; NULL or "" : from the content, else "trace" */
    const char *project;     /**< NULL none */
    uint64_t total_bytes;    /**< Content-Length, 0 unknown */
    const char *token;       /**< id of the token that brings it; NULL or "" none */
    bool is_claimed;         /**< its bytes count against the quotas already (quota.h) */
    const char *run;         /**< name of the run that it joins; NULL or "" none */
    bool has_clock;          /**< the clock of the recorded host was compared with ours: */
    int64_t clock_offset_ns; /**< ours minus the host's */
    int64_t clock_error_ns;  /**< bound of what that may be wrong by */
    bool reuse_existing; /**< at commit: same project, name and content as a ready trace -> that one
                          */
};

/**
 * Begin an upload: makes the trace (state receiving) and its staged file.
 *
 * @param ret_upload owned by the caller until commit or abort; one thread at a time
 * @return LAC_OK; LAC_ERR_LIMIT (total_bytes too large), LAC_ERR_NO_SPACE (disk nearly full, or a quota),
 *         LAC_ERR_BUSY (too many imports wait, no descriptors), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_ingest_begin(struct lac_ingest *ingest,
                                              const struct lac_upload_options *options,
                                              struct lac_upload **ret_upload,
                                              struct lac_error *reterr);

/** Id of the trace being uploaded. Borrowed from the upload. */
const char *lac_upload_id(const struct lac_upload *upload);

/** Append. Writes to the page cache and hashes (about 0.8 ns/byte); does not sync.
 *  @return LAC_OK; LAC_ERR_LIMIT, LAC_ERR_NO_SPACE, LAC_ERR_IO: abort it then */
LAC_MUST_USE enum lac_status lac_upload_write(struct lac_upload *upload, const void *bytes,
                                              size_t size_bytes, struct lac_error *reterr);

/**
 * Instead of writing: take a file that is there, on the same file system, as the whole content. It
 * is linked, so `path` stays until the caller removes it.
 *
 * @param sha256 of its size_bytes bytes, which must be on disk already
 * @return LAC_OK or LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_upload_adopt(struct lac_upload *upload, const char *path,
                                              uint64_t size_bytes, const uint8_t *sha256,
                                              struct lac_error *reterr);

/**
 * The upload is complete: sync the file, commit the catalog, queue the import. May take as long as
 * the disk takes: not on an event loop. Frees the upload, whatever it returns.
 *
 * @param ret_id      LAC_ID_SIZE bytes; with reuse_existing perhaps an older trace's
 * @param ret_existed may be NULL
 * @return LAC_OK (it survives a crash from now on); LAC_ERR_MISUSE (empty, or fewer bytes than
 *         total_bytes), LAC_ERR_NO_SPACE, LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_BUSY (its row or its
 *         folder was lost here: to be sent again; never LAC_ERR_NOT_FOUND). After a failure nothing is
 *         left of it; where the disk is so full that its row cannot go, that goes later.
 */
LAC_MUST_USE enum lac_status lac_upload_commit(struct lac_upload *upload, char *ret_id,
                                               bool *ret_existed, struct lac_error *reterr);

/** Give up: the file and the trace vanish. Frees the upload. NULL is allowed. */
void lac_upload_abort(struct lac_upload *upload);

/** @return false when the trace is neither received nor imported now (look in the catalog) */
bool lac_ingest_progress(struct lac_ingest *ingest, const char *id,
                         struct lac_ingest_progress *ret_progress);

/** Delete a trace in any state; an import under way is stopped. @return as
 * lac_store_delete_trace(); LAC_ERR_MISUSE while it is being received (abort the upload) */
LAC_MUST_USE enum lac_status lac_ingest_delete(struct lac_ingest *ingest, const char *id,
                                               struct lac_error *reterr);

/**
 * Import once more what is kept of a failed trace.
 *
 * @return LAC_OK (it is queued, state importing), LAC_ERR_NOT_FOUND, LAC_ERR_MISUSE (it has not
 *         failed, or its upload is not kept), LAC_ERR_BUSY, LAC_ERR_NO_SPACE, LAC_ERR_IO,
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_ingest_retry(struct lac_ingest *ingest, const char *id,
                                              struct lac_error *reterr);

/** Take over what another process has left to be imported (`lacuna admin repair`). Called about once a
 *  second, by one thread. Cost: 10 us where no other process has changed the catalog. */
void lac_ingest_take_over(struct lac_ingest *ingest);

/** For /metrics. */
struct lac_ingest_stats {
    uint64_t uploads_started, uploads_committed, uploads_aborted, upload_bytes;
    uint64_t imports_done, imports_failed, imports_running, imports_queued;
    uint64_t memory_budget_bytes, memory_reserved_bytes;
    uint64_t refused_quota;
    uint64_t free_bytes_min, refused_disk; /**< the disk's low-water mark, and requests below it */
};
void lac_ingest_stats(struct lac_ingest *ingest, struct lac_ingest_stats *ret_stats);

#endif
