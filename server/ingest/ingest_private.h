#ifndef LAC_SERVER_INGEST_INGEST_PRIVATE_H
#define LAC_SERVER_INGEST_INGEST_PRIVATE_H

/* What the parts of the ingest share. */

#include "server/ingest/ingest.h"
#include "server/ingest/sha256.h"
#include "server/store/publish.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/** File names inside a staging folder. */
#define LAC_STAGED_UPLOAD "upload" /* the bytes as they came */
#define LAC_STAGED_WORK   "work"   /* folder that the child writes into */

/** Descriptors that the child is started with. */
enum { LAC_WORKER_INPUT_FD = 3, LAC_WORKER_FOLDER_FD = 4, LAC_WORKER_REPORT_FD = 5 };

/** Limits and wishes that the child is given as arguments. */
struct lac_worker_limits {
    uint64_t memory_bytes; /**< address space; 0: none */
    uint64_t file_bytes;   /**< largest file it may write */
    uint32_t cpu_seconds;
    bool keep_original;
};

struct lac_job {
    struct lac_job *next;
    struct lac_staging staging;
    char *name; /**< as given, NULL: from the content */
    uint64_t size_bytes;
    uint64_t reserve_bytes; /**< of the memory budget */
    bool is_running;
    bool is_cancelled; /**< the trace was deleted */
    struct lac_ingest_progress progress;
    double started_s;
    double told_s; /**< when the callback was last called */
};

struct lac_upload {
    struct lac_upload *next;
    struct lac_ingest *ingest;
    struct lac_staging staging;
    struct lac_sha256 hash;
    char *name, *project;
    uint64_t total_bytes, received_bytes;
    uint64_t checked_bytes; /**< received when the disk was last looked at */
    int fd;
    bool has_digest; /**< adopted: `digest` instead of `hash` */
    uint8_t digest[LAC_SHA256_SIZE];
    bool reuse_existing;
    double started_s, told_s;
};

struct lac_ingest {
    struct lac_ingest_options options;
    pthread_mutex_t lock; /**< guards all below */
    pthread_cond_t wake;
    struct lac_job *jobs; /**< oldest first */
    struct lac_upload *uploads;
    struct lac_ingest_stats stats;
    bool is_stopping;
    pthread_t *threads;
    uint32_t thread_count;
    int serve_lock_fd;
};

/** How a child ended. */
struct lac_job_outcome {
    enum lac_status status; /**< LAC_OK: `trace_count` files are staged */
    uint32_t trace_count;
    bool has_original;
    bool is_interrupted; /**< killed by us: stopping or deleted */
    char code[32];       /**< for the catalog when it failed */
    char message[256];
};

/** Run one import in a child (ingest_child.c): blocks until it has ended. */
void lac_import_run(struct lac_ingest *ingest, struct lac_job *job,
                    struct lac_job_outcome *outcome);

/** Tell the callback of a trace, at most four times a second unless `always`. */
void lac_ingest_tell(struct lac_ingest *ingest, const char *id, bool is_deleted,
                     const struct lac_ingest_progress *progress);

/** Queue an acknowledged upload; takes the staging folder on LAC_OK. */
LAC_MUST_USE enum lac_status lac_ingest_queue(struct lac_ingest *ingest,
                                              const struct lac_staging *staging, const char *name,
                                              uint64_t size_bytes);

/** Where an upload stands. With the lock held, or by its own thread. */
void lac_upload_progress(const struct lac_upload *upload, struct lac_ingest_progress *ret_progress);

/** Seconds on a clock that only goes forward. */
double lac_ingest_now_s(void);

/** What an import of a file of that size, beginning with those bytes, will need. */
uint64_t lac_ingest_estimate_bytes(const struct lac_staging *staging, uint64_t size_bytes);

#endif
