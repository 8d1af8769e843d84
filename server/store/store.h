#ifndef LAC_SERVER_STORE_STORE_H
#define LAC_SERVER_STORE_STORE_H

/*
 * The data folder: a catalog, and one file per trace. FORMAT.md describes both.
 *
 *   struct lac_store     the open data folder: catalog connection, open trace files, caches
 *   struct lac_trace_row what the catalog knows of a trace (list rows need nothing else)
 *   trace files          trace_file.h: tracks, tiles, names, slices, search, tables, the model
 *
 * One lac_store may be used from any number of threads. Several processes may use one data folder
 * at a time (`lacuna import` beside `lacuna serve`): SQLite's locks order their commits.
 *
 * Ids are 26 characters of lower-case base32 (128 random bits).
 */

#include "analysis/model/status.h"
#include "collector/base/sha.h"               // IWYU pragma: export
#include "server/store/trace/trace_summary.h" // IWYU pragma: export

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_store;
struct lac_model;
struct lac_names;

struct lac_store_options {
    const char *data_dir;
    /** Where traces and originals are kept beside the folder, which holds copies then (objects.h);
     * NULL: where the catalog says, or only in the folder. */
    const char *objects_url;
    /** Where the catalog is in PostgreSQL; NULL: where DIR/catalog.url says, else DIR/catalog.db. */
    const char *catalog_address;
    /** Of a server: how messages of others call it. It takes over a catalog in PostgreSQL that no
     *  server holds any more, if its traces are in object storage. NULL: not a server. */
    const char *node;
    /** Told once, from a thread, that another server has taken it over: every change fails from then
     *  on, and this server has to end. With `node`. */
    void (*overtaken)(void *context);
    void *overtaken_context;
    /** Of a server that stands by: only reads. Traces are fetched from object storage into
     *  DIR/standby, which begins empty; the rest of the folder is left as it is. */
    bool only_reads;
    uint64_t whole_bytes_max;  /**< then traces up to this are fetched whole, of larger ones what is
                                 read; 0: 32 MiB */
    uint64_t copies_bytes_max; /**< of those copies; 0: 16 GiB */
#define LAC_STORE_NO_COPIES UINT64_MAX /**< none stays: nobody else has the folder open */
    uint64_t cache_bytes;              /**< decoded columns, names, tiles; 0: 160 MiB */
    uint64_t model_cache_bytes;        /**< whole models for flame graphs; 0: 1 GiB */
    unsigned helpers;       /**< threads that help requests to read many chunks; 0: none */
#define LAC_STORE_HELPERS 3 /**< enough for hundreds of chunks */
    bool sweep;   /**< finish what an interrupted run left, and make catalog and files agree */
    bool is_live; /**< of a sweep: this process serves the folder; only traces are listed again */
    /** Told in one line each what `sweep` found and did; may be NULL. */
    void (*notice)(void *context, const char *line);
    void *notice_context;
    const struct lac_names *names; /**< rows that somebody added, for the table of kernels; borrowed
                                      for as long as the store is open; NULL: none */
    /** Told of each trace that a live sweep lists, corrects or deletes, once that is committed and
     * without a lock of the store; may be NULL. */
    void (*changed)(void *context, const char *id, bool deleted);
    void *changed_context;
};

/**
 * Open the data folder, creating it (mode 0700) with an empty catalog when absent; migrates an
 * older catalog.
 *
 * With `sweep`: a damaged catalog is moved to lost/ and made again, from what can be read of it and
 * from the trace files. Deletions and publications that were interrupted are finished; a trace file
 * whose row is missing or says something else gets its row; a row whose file is not there becomes
 * `failed` (code lost). Staging leftovers and rows in state `receiving` are removed; rows in state
 * `importing` whose upload is still staged are kept (the ingest queue resumes them), those without
 * become `failed`. What belongs to nothing is moved to lost/. No trace and no original is removed.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_CORRUPT (damaged, and not `sweep` or another
 *         process has it open), LAC_ERR_LIMIT (written by a newer version), LAC_ERR_MISUSE (the
 *         catalog of `catalog_address` is not this folder's), LAC_ERR_BUSY (another server holds it;
 *         with `only_reads`: there is nothing yet that could be read)
 */
LAC_MUST_USE enum lac_status lac_store_open(const struct lac_store_options *options,
                                            struct lac_store **ret_store, struct lac_error *reterr);

/** NULL is allowed. All trace files must have been released. */
void lac_store_close(struct lac_store *store);

const char *lac_store_data_dir(const struct lac_store *store);

enum lac_trace_state {
    LAC_TRACE_RECEIVING = 0,
    LAC_TRACE_IMPORTING = 1,
    LAC_TRACE_READY = 2,
    LAC_TRACE_FAILED = 3,
};

/** "receiving", "importing", "ready", "failed". */
const char *lac_trace_state_name(enum lac_trace_state state);

/** A line of the import report, as in struct lac_report_line. */
struct lac_trace_report_line {
    char code[40];
    int severity; /**< enum lac_report_severity */
    uint64_t count;
    uint64_t first_offset_bytes;
    char text[160];
};

/** One trace as the catalog knows it. Strings are UTF-8, owned by the row. */
struct lac_trace_row {
    char id[LAC_ID_SIZE];
    char *name;
    char *project;         /**< name, "" when none */
    char *file_name;       /**< what it was uploaded as, where somebody renamed it; else NULL */
    char *notes;           /**< of people; NULL none */
    char *tags;            /**< of people, '\n' between them; NULL none */
    char run[LAC_ID_SIZE]; /**< "" when none */
    enum lac_trace_state state;
    int64_t created_unix_ms;
    uint8_t sha256[LAC_SHA256_SIZE]; /**< of the uploaded bytes */
    bool has_sha256;
    uint64_t size_bytes; /**< of the upload */
    uint32_t generation; /**< 1 for a complete trace */
    char *error_code;    /**< NULL when not failed */
    char *error_message;
    /* the rest is 0 or NULL until ready */
    char *format; /**< "kineto", ... */
    uint64_t event_count, slice_count, dropped_count, repaired_count;
    int64_t duration_ns;
    int64_t t0_ns;
    bool has_clock;          /**< the host's clock was compared with the server's: */
    int64_t clock_offset_ns; /**< server minus host */
    int64_t clock_error_ns;
    int32_t rank; /**< -1 unknown */
    char *host;   /**< NULL unknown */
    bool is_simulated;
    uint32_t device_count;
    char *device_names;  /**< distinct names, '\n' between them; NULL none */
    uint64_t file_bytes; /**< size of the trace file */
    struct lac_trace_summary summary;
    struct lac_trace_report_line *report; /**< only from lac_store_get_trace() */
    uint32_t report_count;
};

/** Free the contents; a zeroed struct is allowed. */
void lac_trace_row_done(struct lac_trace_row *row);

/** A page of rows, newest first. */
struct lac_trace_list {
    struct lac_trace_row *rows;
    uint32_t count;
    bool has_more;
    char next[64]; /**< cursor for `after` when has_more */
};

struct lac_trace_query {
    const char *text;    /**< case-insensitive substring of the name, NULL or "" all */
    const char *project; /**< NULL all */
    const char *run;     /**< NULL all */
    const char *after;   /**< cursor, NULL from the newest */
    uint32_t limit;      /**< 1..1000 */
    const char *among;   /**< only of these projects, a JSON array of names; NULL all */
};

/** @return LAC_OK, LAC_ERR_MISUSE (bad cursor), LAC_ERR_IO, LAC_ERR_NOMEM. Free with
 * lac_trace_list_done(). */
LAC_MUST_USE enum lac_status lac_store_list_traces(struct lac_store *store,
                                                   const struct lac_trace_query *query,
                                                   struct lac_trace_list *ret_list,
                                                   struct lac_error *reterr);
void lac_trace_list_done(struct lac_trace_list *list);

/** What people say of a trace. NULL: as it was. */
struct lac_trace_labels {
    const char *name;    /**< "": what its file says */
    const char *project; /**< "": none */
    const char *notes;   /**< "": none */
    const char *tags;    /**< '\n' between them, "": none */
};

/** Set what people say of a trace, on disk when it returns. Rows of lists and traces have it from
 *  then on.
 *  @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_set_labels(struct lac_store *store, const char *id,
                                                  const struct lac_trace_labels *labels,
                                                  struct lac_error *reterr);

/** Its file is another now, or none: who opens it next reads anew. */
void lac_store_forget_file(struct lac_store *store, const char *id);

/** Traces by state, for /metrics. counts has 4 entries. */
LAC_MUST_USE enum lac_status lac_store_count_states(struct lac_store *store, uint64_t counts[4],
                                                    struct lac_error *reterr);

/** @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_get_trace(struct lac_store *store, const char *id,
                                                 struct lac_trace_row *ret_row,
                                                 struct lac_error *reterr);

/** A run: what its traces have in common. One without traces is not there. */
struct lac_run_row {
    char id[LAC_ID_SIZE];
    char *name;
    char *project; /**< name, "" when none */
    int64_t created_unix_ms;
    uint32_t trace_count, ready_count, failed_count;
    uint64_t event_count; /**< of the ready ones */
};

/** A page of runs, newest first. */
struct lac_run_list {
    struct lac_run_row *rows;
    uint32_t count;
    bool has_more;
    char next[64]; /**< cursor for `after` when has_more */
};

struct lac_run_query {
    const char *project; /**< NULL all */
    const char *after;   /**< cursor, NULL from the newest */
    uint32_t limit;      /**< 1..1000 */
    const char *among;   /**< as in struct lac_trace_query */
};

/** Free the contents; zeroed structs are allowed. */
void lac_run_row_done(struct lac_run_row *row);
void lac_run_list_done(struct lac_run_list *list);

/** @return LAC_OK, LAC_ERR_MISUSE (bad cursor), LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_list_runs(struct lac_store *store,
                                                 const struct lac_run_query *query,
                                                 struct lac_run_list *ret_list,
                                                 struct lac_error *reterr);

/** @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_get_run(struct lac_store *store, const char *id,
                                               struct lac_run_row *ret_row,
                                               struct lac_error *reterr);

/**
 * Put traces into a run of their own, at once or not at all. It is a label, as names and tags are: no
 * trace file says it.
 *
 * @param ret_id LAC_ID_SIZE bytes
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_store_make_run(struct lac_store *store, const char *name,
                                                const char *project, const char *const *traces,
                                                uint32_t count, char *ret_id,
                                                struct lac_error *reterr);
/** All traces of the run belong to none then. */
LAC_MUST_USE enum lac_status lac_store_dissolve_run(struct lac_store *store, const char *id,
                                                    struct lac_error *reterr);

/**
 * Where what was uploaded of a trace is kept (server/ingest/original.h reads it). A file that holds
 * several traces is the original of each.
 *
 * @return LAC_OK, LAC_ERR_NOT_FOUND (no such trace, or nothing is kept of it), LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_store_original_path(struct lac_store *store, const char *id,
                                                     char *out, size_t capacity_bytes,
                                                     struct lac_error *reterr);

/**
 * A new empty file in scratch/, for what is written to be sent: unlink it once it is written. What a
 * program that was killed left there goes when the next one is made.
 *
 * @param ret_path LAC_SCRATCH_PATH_BYTES bytes
 * @return a descriptor, the caller's, or -1: LAC_ERR_IO
 */
enum { LAC_SCRATCH_PATH_BYTES = 4200 };
int lac_store_scratch(struct lac_store *store, char *ret_path, struct lac_error *reterr);

/** Remove the trace: its file goes to trash/, then the row, then the file and the original. Open
 *  handles stay usable until released. Works on a full disk. A trace that is being received or
 * imported is removed too: go through lac_ingest_delete(). */
LAC_MUST_USE enum lac_status lac_store_delete_trace(struct lac_store *store, const char *id,
                                                    struct lac_error *reterr);

/** Whether `id` has the shape of an id (says nothing of its existence). */
bool lac_store_id_is_valid(const char *id);

/** Write to the audit table: who did what to which object. Text is cut at 512 bytes. */
LAC_MUST_USE enum lac_status lac_store_audit(struct lac_store *store, const char *actor,
                                             const char *action, const char *object,
                                             struct lac_error *reterr);

struct lac_trace_file;

/**
 * The trace file of a ready trace, opened or taken from those already open; see trace_file.h.
 *
 * @return LAC_OK; LAC_ERR_NOT_FOUND (no such id), LAC_ERR_MISUSE (not ready), LAC_ERR_CORRUPT,
 *         LAC_ERR_LIMIT (newer format), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_store_open_trace(struct lac_store *store, const char *id,
                                                  struct lac_trace_file **ret_file,
                                                  struct lac_error *reterr);

/** Have all of its file in the folder, for another process that is to read it by its path.
 *  @return LAC_OK, LAC_ERR_IO, LAC_ERR_NO_SPACE, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_make_whole(const struct lac_trace_file *file,
                                                  struct lac_error *reterr);

/** Give a handle back. NULL is allowed. */
void lac_store_release_trace(struct lac_store *store, struct lac_trace_file *file);

/**
 * Whether a code of lac_store_fail() blames this host and not the file: no memory, a full disk, a
 * limit, a kill, a crash. What was uploaded is then kept in DIR/staging/<id>/, and its import can
 * be tried again. NULL is allowed (no).
 */
bool lac_store_host_failed(const char *code);

/** Whether what was uploaded is kept for a failed trace. Looks at the disk. */
bool lac_store_upload_is_kept(const struct lac_store *store, const char *id);

/** What is kept in object storage. */
struct lac_store_objects {
    bool is_on;
    const char *url;                     /**< the store's */
    uint64_t object_count, object_bytes; /**< of the catalog */
    uint64_t waiting_count;              /**< traces and originals that are only in the folder */
    uint64_t copies_bytes;               /**< of files in the folder */
    uint64_t reads, writes, retries, failures, read_bytes, written_bytes; /**< since the start */
};

/** For /metrics and `lacuna admin`. Looks at every file of the folder. */
LAC_MUST_USE enum lac_status lac_store_count_objects(struct lac_store *store,
                                                     struct lac_store_objects *ret,
                                                     struct lac_error *reterr);

/**
 * What has to be done now and then where object storage is used: put what is only in the folder,
 * remove the copies used longest ago, remove objects that no row names and that are older than
 * `grace_ms` (INT64_MAX: look at none). Nothing without object storage.
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_store_tend_objects(struct lac_store *store, int64_t grace_ms,
                                                    struct lac_error *reterr);

/* -- several servers, of which one holds the catalog (server/store/standby.c) -------------------- */

/** What is told of an import under way. */
struct lac_store_moving {
    uint32_t state; /**< enum lac_trace_state */
    uint64_t done_bytes, total_bytes, bytes_per_s, events;
    double eta_s; /**< NaN unknown */
};

/** Tell servers that stand by of a trace: that it was deleted, or changed, or (`moving`) how far its
 *  import is. Does not wait, and may be dropped. Nothing unless this server holds a shared catalog. */
void lac_store_tell_standby(struct lac_store *store, const char *id, bool deleted,
                            const struct lac_store_moving *moving);

/** Of a server that stands by: drop its copy of a trace if that is not what the catalog has now. What
 *  the holder did is heard of anyway, but later than who had it done may ask. */
void lac_store_recheck(struct lac_store *store, const char *id);

/** Say where this server answers, and take a secret by which it will know requests that others pass
 *  on. Nothing unless it holds a shared catalog. @param ret_secret 32 bytes: "" before the first
 *  time; what it has stays, and may be read meanwhile */
LAC_MUST_USE enum lac_status lac_store_announce(struct lac_store *store, const char *address,
                                                char *ret_secret, struct lac_error *reterr);

/** The server that holds the catalog, as one that stands by sees it. */
struct lac_store_holder {
    const char *node;    /**< how messages call it */
    const char *address; /**< where it answers; "" unknown */
    const char *secret;  /**< "" none */
    bool is_there;       /**< it has said so within 10 s: else another may take over */
};

/** Called from one thread, one at a time. */
struct lac_store_ears {
    void (*changed)(void *context); /**< the catalog: users, tokens, labels, anything */
    void (*trace)(void *context, const char *id, bool deleted,
                  const struct lac_store_moving *moving);
    void (*holder)(void *context, const struct lac_store_holder *holder); /**< once a second */
    void *context;
};

/** Of a server that stands by: hear what the holder does, until lac_store_watch_stop(). Copies that
 *  are not what the catalog says any more are dropped before `trace` is told. `ears` is copied. */
LAC_MUST_USE enum lac_status lac_store_watch(struct lac_store *store,
                                             const struct lac_store_ears *ears,
                                             struct lac_error *reterr);
void lac_store_watch_stop(struct lac_store *store);

/** The program ends: nobody waits any more for object storage or a PostgreSQL that is away. May be called
 *  by a signal handler. */
void lac_store_stop_waiting(struct lac_store *store);

/** Take everything back into the folder and leave object storage. Nobody else may have it open. */
LAC_MUST_USE enum lac_status lac_store_leave_objects(struct lac_store *store,
                                                     struct lac_error *reterr);

/** Bytes the caches hold now, for /metrics. */
uint64_t lac_store_cache_used_bytes(struct lac_store *store);

#endif
