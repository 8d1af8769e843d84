#ifndef LAC_SERVER_HTTP_POOL_H
#define LAC_SERVER_HTTP_POOL_H

/*
 * Threads for what may block. Two queues: quick jobs go first, and slow jobs never hold all
 * threads, so that a flame graph does not make the timeline wait. Both queues are bounded.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

/** A job lives in its owner's structure; the pool only links it. */
struct lac_pool_job {
    void (*run)(struct lac_pool_job *job);
    struct lac_pool_job *next; /**< the pool's */
};

struct lac_pool;

/** @param thread_count 2 or more. @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_pool_create(unsigned thread_count, unsigned queue_max,
                                             struct lac_pool **ret_pool, struct lac_error *reterr);

/** Run what is queued, then stop. NULL is allowed. */
void lac_pool_destroy(struct lac_pool *pool);

/** Queue a job; the caller keeps it alive until it has run. @return false when the queue is full */
LAC_MUST_USE bool lac_pool_submit(struct lac_pool *pool, struct lac_pool_job *job, bool is_slow);

/** Like submit, but never refused: for the rest of work that was already accepted. */
void lac_pool_submit_always(struct lac_pool *pool, struct lac_pool_job *job, bool is_slow);

struct lac_pool_stats {
    unsigned thread_count, running, queued_quick, queued_slow;
    uint64_t done, refused;
};
void lac_pool_stats(struct lac_pool *pool, struct lac_pool_stats *ret_stats);

#endif
