#include "server/http/pool.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

struct job_queue {
    struct lac_pool_job *first;
    struct lac_pool_job *last;
    unsigned count;
};

struct lac_pool {
    pthread_mutex_t mutex; /* guards everything below but thread */
    pthread_cond_t wake;
    struct job_queue quick;
    struct job_queue slow;
    unsigned queue_max;
    unsigned running;
    unsigned running_slow;
    unsigned slow_max; /* threads that slow jobs may hold at a time */
    bool stopping;
    uint64_t done;
    uint64_t refused;
    unsigned thread_count;
    pthread_t thread[];
};

static void push(struct job_queue *queue, struct lac_pool_job *job)
{
    job->next = NULL;
    if (queue->last == NULL) {
        queue->first = job;
    } else {
        queue->last->next = job;
    }
    queue->last = job;
    queue->count++;
}

static struct lac_pool_job *pop(struct job_queue *queue)
{
    struct lac_pool_job *job = queue->first;

    assert(job != NULL);
    queue->first = job->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    queue->count--;
    return job;
}

static void *worker(void *context)
{
    struct lac_pool *pool = context;

    pthread_mutex_lock(&pool->mutex);
    while (true) {
        const bool may_slow = pool->slow.count > 0 && pool->running_slow < pool->slow_max;

        if (pool->quick.count == 0 && !may_slow) {
            if (pool->stopping && pool->slow.count == 0) {
                break;
            }
            pthread_cond_wait(&pool->wake, &pool->mutex);
            continue;
        }
        const bool is_slow = pool->quick.count == 0;
        struct lac_pool_job *job = pop(is_slow ? &pool->slow : &pool->quick);

        pool->running++;
        pool->running_slow += is_slow ? 1 : 0;
        pthread_mutex_unlock(&pool->mutex);
        job->run(job); /* the job may be gone after this */
        pthread_mutex_lock(&pool->mutex);
        pool->running--;
        pool->running_slow -= is_slow ? 1 : 0;
        pool->done++;
        if (is_slow && (pool->slow.count > 0 || pool->stopping)) {
            pthread_cond_broadcast(&pool->wake); /* a slow place is free */
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

enum lac_status lac_pool_create(unsigned thread_count, unsigned queue_max,
                                struct lac_pool **ret_pool, struct lac_error *reterr)
{
    struct lac_pool *pool;
    sigset_t all;
    sigset_t before;

    assert(thread_count >= 2);
    pool = calloc(1, sizeof(*pool) + thread_count * sizeof(pool->thread[0]));
    if (pool == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the worker pool");
    }
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->queue_max = queue_max;
    pool->slow_max = (thread_count + 1) / 2 < thread_count ? (thread_count + 1) / 2 : 1;
    /* signals belong to the main thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < thread_count; i++) {
        if (pthread_create(&pool->thread[i], NULL, worker, pool) != 0) {
            pthread_sigmask(SIG_SETMASK, &before, NULL);
            lac_pool_destroy(pool);
            return lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a worker thread");
        }
        pool->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *ret_pool = pool;
    return LAC_OK;
}

void lac_pool_destroy(struct lac_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->thread[i], NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

static bool submit(struct lac_pool *pool, struct lac_pool_job *job, bool is_slow, bool always)
{
    struct job_queue *queue = is_slow ? &pool->slow : &pool->quick;
    bool admitted = true;

    pthread_mutex_lock(&pool->mutex);
    if (!always && queue->count >= pool->queue_max) {
        pool->refused++;
        admitted = false;
    } else {
        push(queue, job);
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->mutex);
    return admitted;
}

bool lac_pool_submit(struct lac_pool *pool, struct lac_pool_job *job, bool is_slow)
{
    return submit(pool, job, is_slow, false);
}

void lac_pool_submit_always(struct lac_pool *pool, struct lac_pool_job *job, bool is_slow)
{
    (void)submit(pool, job, is_slow, true);
}

void lac_pool_stats(struct lac_pool *pool, struct lac_pool_stats *ret_stats)
{
    pthread_mutex_lock(&pool->mutex);
    *ret_stats = (struct lac_pool_stats){
        .thread_count = pool->thread_count,
        .running = pool->running,
        .queued_quick = pool->quick.count,
        .queued_slow = pool->slow.count,
        .done = pool->done,
        .refused = pool->refused,
    };
    pthread_mutex_unlock(&pool->mutex);
}
