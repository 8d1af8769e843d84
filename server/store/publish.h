#ifndef LAC_SERVER_STORE_PUBLISH_H
#define LAC_SERVER_STORE_PUBLISH_H

/*
 * How a trace comes into the store: for server/ingest and `lacuna import`, not for the API.
 *
 *   upload:   receiving -> acknowledged (importing) -> published (ready) | failed
 *   import:   published at once
 *
 * Everything under way lives in DIR/staging/<id>/, which its process keeps locked: a lock that is
 * free belongs to a process that died.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

/** Fill `ret_id` (LAC_ID_SIZE bytes) with 128 random bits. */
LAC_MUST_USE enum lac_status lac_store_new_id(char *ret_id, struct lac_error *reterr);

/** A staging folder, locked. */
struct lac_staging {
    char id[LAC_ID_SIZE];
    char path[4096]; /**< absolute or as the data folder was given */
    int fd;          /**< of the folder, holds the lock; -1 when closed */
};

/** Make and lock DIR/staging/<id>; mode 0700. */
LAC_MUST_USE enum lac_status lac_staging_create(struct lac_store *store, const char *id,
                                                struct lac_staging *ret_staging,
                                                struct lac_error *reterr);

/** Lock one that is there. @return LAC_ERR_NOT_FOUND, or LAC_ERR_MISUSE when another
 *  process has it */
LAC_MUST_USE enum lac_status lac_staging_adopt(struct lac_store *store, const char *id,
                                               struct lac_staging *ret_staging,
                                               struct lac_error *reterr);

/** Remove the folder with all in it and let go of the lock. */
void lac_staging_remove(struct lac_staging *staging);

/** Let go of the lock, keep the folder (the server stops; the next one goes on). */
void lac_staging_close(struct lac_staging *staging);

/** Remove what dead processes left. Called by lac_store_open() with `sweep`. */
LAC_MUST_USE enum lac_status lac_store_sweep(struct lac_store *store, struct lac_error *reterr);

/** Add a trace in state receiving. `project` NULL or "": none. */
LAC_MUST_USE enum lac_status lac_store_begin_receiving(struct lac_store *store, const char *id,
                                                       const char *name, const char *project,
                                                       struct lac_error *reterr);

/** The trace belongs to the run of that name in the project, which is made if it is new. */
LAC_MUST_USE enum lac_status lac_store_join_run(struct lac_store *store, const char *id,
                                                const char *project, const char *run,
                                                struct lac_error *reterr);

/** How far the clock of the recorded host was from the server's, and how wrong that may be. */
LAC_MUST_USE enum lac_status lac_store_set_clock(struct lac_store *store, const char *id,
                                                 int64_t offset_ns, int64_t error_ns,
                                                 struct lac_error *reterr);

/** receiving -> importing, durable when it returns. */
LAC_MUST_USE enum lac_status lac_store_acknowledge(struct lac_store *store, const char *id,
                                                   const uint8_t *sha256, uint64_t size_bytes,
                                                   struct lac_error *reterr);

/** importing -> failed, durable. Nothing happens when the trace was deleted meanwhile. A staging
 *  folder that is left where it is keeps its bytes: a start removes it with the trace only. */
LAC_MUST_USE enum lac_status lac_store_fail(struct lac_store *store, const char *id,
                                            const char *code, const char *message,
                                            struct lac_error *reterr);

/** Whether the staging folder of a trace has to stay though no process holds it: it is imported, or
 *  failed by the host's fault. */
bool lac_store_staging_is_wanted(struct lac_store *store, const char *id);

/**
 * failed -> importing, durable: one caller wins.
 * @return LAC_OK; LAC_ERR_MISUSE when it has not failed by the host's fault, or is being tried
 * again
 */
LAC_MUST_USE enum lac_status lac_store_retry(struct lac_store *store, const char *id,
                                             struct lac_error *reterr);

/** Ids of failed traces with that code, oldest first; as lac_store_list_state(). */
LAC_MUST_USE enum lac_status lac_store_list_failed(struct lac_store *store, const char *code,
                                                   char (**ret_ids)[LAC_ID_SIZE],
                                                   uint32_t *ret_count, struct lac_error *reterr);

/** Remove the row of an upload that was given up. */
LAC_MUST_USE enum lac_status lac_store_drop(struct lac_store *store, const char *id,
                                            struct lac_error *reterr);

/**
 * A trace of the same project, name and content that is ready or being imported.
 * @param ret_id LAC_ID_SIZE bytes. @return LAC_OK or LAC_ERR_NOT_FOUND
 */
LAC_MUST_USE enum lac_status lac_store_find_content(struct lac_store *store, const char *project,
                                                    const char *name, const uint8_t *sha256,
                                                    char *ret_id, struct lac_error *reterr);

/** Ids of all traces in a state, oldest first; the caller frees the array (which may be NULL). */
LAC_MUST_USE enum lac_status lac_store_list_state(struct lac_store *store,
                                                  enum lac_trace_state state,
                                                  char (**ret_ids)[LAC_ID_SIZE],
                                                  uint32_t *ret_count, struct lac_error *reterr);

/** The bytes as they came. */
#define LAC_STAGED_UPLOAD "upload"
/** Staged trace files are called this, N from 0. */
#define LAC_STAGED_TRACE_FORMAT "trace-%u.db"
/** What an acknowledged upload's row says, for a start without that row. */
#define LAC_STAGED_FACTS "facts"
/** The compressed original, when it is kept. */
#define LAC_STAGED_ORIGINAL "original.zst"

/** What to publish. */
struct lac_publication {
    const struct lac_staging *staging;
    uint32_t trace_count;  /**< staged trace files */
    const char *name;      /**< as given: of the one trace, or of the run; NULL: from the content */
    const char *project;   /**< ignored when the row exists */
    const uint8_t *sha256; /**< NULL unknown; ignored when the row exists */
    uint64_t size_bytes;
    bool has_original;
    bool has_row; /**< an acknowledged upload: its id becomes the first trace's */
    bool (*is_ending)(void *context); /**< whether nobody can wait any more; NULL: for a while */
    void *context;
};

/**
 * Make the staged traces visible: checks each file by opening it, moves them, one durable commit.
 *
 * @param ret_ids room for trace_count ids
 * @return LAC_OK; LAC_ERR_NOT_FOUND when the row was deleted meanwhile; LAC_ERR_CORRUPT when a
 *         staged file is not a trace file; LAC_ERR_IO, LAC_ERR_NOMEM. After a failure nothing
 *         is visible. But where PostgreSQL went away with the answer to the commit, and is not back
 *         before all ends, nobody knows: then the files are left where a start looks for them.
 */
LAC_MUST_USE enum lac_status lac_store_publish(struct lac_store *store,
                                               const struct lac_publication *publication,
                                               char (*ret_ids)[LAC_ID_SIZE],
                                               struct lac_error *reterr);

#endif
