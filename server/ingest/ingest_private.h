#ifndef LAC_SERVER_INGEST_INGEST_PRIVATE_H
#define LAC_SERVER_INGEST_INGEST_PRIVATE_H

/* What the parts of the ingest share. */

#include "collector/base/sha.h"
#include "server/ingest/ingest.h"
#include "server/store/publish.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/** File names inside a staging folder. */
#define LAC_STAGED_WORK     "work"     /* folder that the child writes into */
#define LAC_STAGED_ATTEMPTS "attempts" /* its size: how often an import was begun (attempts.c) */

/** Descriptors that the child is started with. */
enum { LAC_WORKER_INPUT_FD = 3, LAC_WORKER_FOLDER_FD = 4, LAC_WORKER_REPORT_FD = 5 };

/** Limits and wishes that the child is given as arguments. */
struct lac_worker_limits {
    uint64_t memory_bytes; /**< address space; 0: none */
    uint64_t file_bytes;   /**< largest file it may write */
    uint32_t cpu_seconds;
    bool keep_original;
};

/** A row that must not stay `receiving` or `importing` (settle.c). */
struct lac_settle {
    struct lac_settle *next;
    char id[LAC_ID_SIZE];
    bool is_drop;  /**< the row goes; else it fails with: */
    char code[32]; /**< static texts of the catalog */
    char message[256];
};

struct lac_import_job {
    struct lac_import_job *next;
    char id[LAC_ID_SIZE];
    struct lac_staging *staging; /**< while it runs: what waits holds no descriptor */
    struct lac_settle *settle;   /**< made with the job, so that its end needs no memory */
    char *name;                  /**< as given, NULL: from the content */
    uint64_t size_bytes;
    uint64_t reserve_bytes; /**< of the memory budget */
    bool is_running;
    bool is_canceled; /**< the trace was deleted */
    struct lac_ingest_progress progress;
    double started_s;
    double told_s; /**< when the callback was last called */
};

struct lac_upload {
    struct lac_upload *next;
    struct lac_ingest *ingest;
    struct lac_staging staging;
    struct lac_sha hash;
    char *name, *project;
    uint64_t total_bytes, received_bytes;
    uint64_t checked_bytes; /**< received when the disk was last looked at */
    int fd;
    bool has_digest; /**< adopted: `digest` instead of `hash` */
    uint8_t digest[LAC_SHA256_SIZE];
    bool reuse_existing;
    struct lac_settle *settle; /**< for when it is given up */
    struct lac_claim *claim;   /**< NULL: somebody else's */
    bool is_claimed;
    double started_s, told_s;
};

struct lac_ingest {
    struct lac_ingest_options options;
    pthread_mutex_t lock; /**< guards all below */
    pthread_cond_t wake;
    struct lac_import_job *jobs; /**< oldest first */
    struct lac_upload *uploads;
    struct lac_settle *unsettled;
    struct lac_ingest_stats stats;
    int64_t
        adopt_version; /**< of the catalog when the last look was taken; of lac_ingest_take_over() */
    char (*adoptable)[LAC_ID_SIZE]; /**< seen by that look, owned */
    uint32_t adoptable_count;
    pthread_mutex_t quota_lock; /**< guards `claims`; before `lock` and the store's */
    struct lac_claim *claims;
    bool is_stopping;
    pthread_t *threads;
    uint32_t thread_count;
    pthread_t settler;
    bool has_settler;
    int serve_lock_fd;
};

/** Whether `more_bytes` fit on the disk and leave what must stay free; counts where they do not.
 *  @return LAC_OK or LAC_ERR_NO_SPACE, with a sentence for who uploads */
LAC_MUST_USE enum lac_status lac_ingest_check_disk(struct lac_ingest *ingest, uint64_t more_bytes,
                                                   struct lac_error *reterr);

/** How a child ended. */
struct lac_job_outcome {
    enum lac_status status; /**< LAC_OK: `trace_count` files are staged */
    uint32_t trace_count;
    bool has_original;
    bool is_interrupted; /**< killed by us: stopping or deleted */
    bool is_short;       /**< no descriptor or process to start it: later there may be */
    char code[32];       /**< for the catalog when it failed */
    char message[256];
};

enum { LAC_IMPORT_TRACES_MAX = 4096 };

/** Remove what an earlier child left in its folder. */
void lac_import_clear(const struct lac_staging *staging);

/** Run one import in a child (ingest_child.c): blocks until it has ended. */
void lac_import_run(struct lac_ingest *ingest, struct lac_import_job *job,
                    struct lac_job_outcome *outcome);

/** Tell the callback of a trace, at most four times a second unless `always`. */
void lac_ingest_tell(struct lac_ingest *ingest, const char *id, bool is_deleted,
                     const struct lac_ingest_progress *progress);

/** Queue the import of what lies in DIR/staging/<id>/. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_ingest_queue(struct lac_ingest *ingest, const char *id,
                                              const char *name, uint64_t size_bytes);

/** DIR/staging/<id>/<name>. @return false when too long */
bool lac_ingest_staged_path(const struct lac_ingest *ingest, const char *id, const char *name,
                            char *out, size_t capacity_bytes);

/** Lock a staging folder; waits a while for a sweep that looks at it, and for a descriptor.
 *  @return as lac_staging_adopt(), LAC_ERR_BUSY when no descriptor came free */
LAC_MUST_USE enum lac_status lac_ingest_adopt(struct lac_ingest *ingest, const char *id,
                                              struct lac_staging *ret_staging,
                                              struct lac_error *reterr);

/** Remove the staging folder of a trace, if there is one. */
void lac_ingest_remove_staged(struct lac_ingest *ingest, const char *id);

/** A failure of the system by errno: a full disk, no descriptors, or else. @return its status */
LAC_MUST_USE enum lac_status lac_ingest_fail_io(struct lac_error *reterr, const char *what);

/** The same for one that a lower layer reported as LAC_ERR_IO. @return its status */
LAC_MUST_USE enum lac_status lac_ingest_sort_io(enum lac_status status, struct lac_error *reterr);

/* settle.c */

/** Carry it out now, or keep it to be tried again; frees it then. @return whether it is done */
bool lac_ingest_settle(struct lac_ingest *ingest, struct lac_settle *settle);
/** Try again what could not be carried out. */
void lac_ingest_settle_all(struct lac_ingest *ingest);
/** The thread that does so, once a second while there is something. */
void *lac_ingest_settler(void *context);

/* retry.c */

/** Queue what an earlier server acknowledged, and once more what it saw killed. */
LAC_MUST_USE enum lac_status lac_ingest_resume(struct lac_ingest *ingest, struct lac_error *reterr);
/** @return LAC_ERR_BUSY when too many imports wait already */
LAC_MUST_USE enum lac_status lac_ingest_check_queue(struct lac_ingest *ingest,
                                                    struct lac_error *reterr);
/** One more attempt begins, or one of ours did not count: it was we who ended it. */
void lac_ingest_count_attempt(const struct lac_staging *staging, bool is_taken_back);

/** Where an upload stands. With the lock held, or by its own thread. */
void lac_upload_progress(const struct lac_upload *upload, struct lac_ingest_progress *ret_progress);

/** Seconds on a clock that only goes forward. */
double lac_ingest_now_s(void);

/** Seconds of the clock on the wall that an import may take. */
double lac_ingest_wall_seconds(const struct lac_ingest *ingest, uint64_t size_bytes);

#endif
