#include "analysis/crew/crew.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Addresses only: a process may be limited in them. */
enum { STACK_BYTES = 1 << 20 };

struct lac_crew {
    pthread_mutex_t mutex;
    pthread_cond_t has_work;   /**< a job was begun, or the crew ends */
    pthread_cond_t is_done;    /**< a job's last part ended */
    struct lac_crew_job *jobs; /**< the oldest first */
    bool is_ending;
    lac_crew_enter enter;
    void *enter_context;
    unsigned size;
    pthread_t threads[LAC_CREW_HELPERS_MAX];
};

unsigned lac_crew_helpers(unsigned most)
{
    cpu_set_t cores;
    int count = 1;

    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        count = CPU_COUNT(&cores);
    }
    return count <= 1 ? 0 : ((unsigned)count - 1 < most ? (unsigned)count - 1 : most);
}

/** Do one part of the job. Called and left with the mutex held. */
static void do_part(struct lac_crew *crew, struct lac_crew_job *job)
{
    const uint32_t part = job->taken++;

    (void)pthread_mutex_unlock(&crew->mutex);
    job->part(job->context, part);
    (void)pthread_mutex_lock(&crew->mutex);
    job->done++;
    if (job->done == job->count) {
        (void)pthread_cond_broadcast(&crew->is_done);
    }
}

static struct lac_crew_job *next_job(const struct lac_crew *crew)
{
    struct lac_crew_job *job = crew->jobs;

    while (job != NULL && job->taken == job->count) {
        job = job->later;
    }
    return job;
}

static void *help(void *context)
{
    struct lac_crew *crew = context;

    if (crew->enter != NULL && !crew->enter(crew->enter_context)) {
        return NULL;
    }
    (void)pthread_mutex_lock(&crew->mutex);
    while (!crew->is_ending) {
        struct lac_crew_job *job = next_job(crew);

        if (job != NULL) {
            do_part(crew, job);
        } else {
            (void)pthread_cond_wait(&crew->has_work, &crew->mutex);
        }
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

static bool start(struct lac_crew *crew, pthread_t *thread)
{
    pthread_attr_t attributes;
    bool good = pthread_attr_init(&attributes) == 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    good = good && pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
#endif
    good = good && pthread_create(thread, &attributes, help, crew) == 0;
    (void)pthread_attr_destroy(&attributes);
    return good;
}

bool lac_crew_create(unsigned helper_count, lac_crew_enter enter, void *enter_context,
                     struct lac_crew **ret_crew)
{
    assert(helper_count <= LAC_CREW_HELPERS_MAX && ret_crew != NULL);
    struct lac_crew *crew = calloc(1, sizeof(*crew));

    if (crew == NULL) {
        return false;
    }
    crew->enter = enter;
    crew->enter_context = enter_context;
    (void)pthread_mutex_init(&crew->mutex, NULL);
    (void)pthread_cond_init(&crew->has_work, NULL);
    (void)pthread_cond_init(&crew->is_done, NULL);
    while (crew->size < helper_count && start(crew, &crew->threads[crew->size])) {
        crew->size++;
    }
    *ret_crew = crew;
    return true;
}

void lac_crew_destroy(struct lac_crew *crew)
{
    if (crew == NULL) {
        return;
    }
    assert(crew->jobs == NULL);
    (void)pthread_mutex_lock(&crew->mutex);
    crew->is_ending = true;
    (void)pthread_cond_broadcast(&crew->has_work);
    (void)pthread_mutex_unlock(&crew->mutex);
    for (unsigned i = 0; i < crew->size; i++) {
        (void)pthread_join(crew->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&crew->has_work);
    (void)pthread_cond_destroy(&crew->is_done);
    (void)pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

unsigned lac_crew_size(const struct lac_crew *crew)
{
    return crew != NULL ? crew->size : 0;
}

void lac_crew_begin(struct lac_crew *crew, struct lac_crew_job *job, uint32_t count,
                    lac_crew_part part, void *context)
{
    assert(job != NULL && part != NULL);
    *job = (struct lac_crew_job){.part = part, .context = context, .count = count};
    if (crew == NULL || crew->size == 0) {
        return;
    }
    (void)pthread_mutex_lock(&crew->mutex);
    struct lac_crew_job **last = &crew->jobs;

    while (*last != NULL) {
        last = &(*last)->later;
    }
    *last = job;
    (void)pthread_cond_broadcast(&crew->has_work);
    (void)pthread_mutex_unlock(&crew->mutex);
}

void lac_crew_end(struct lac_crew *crew, struct lac_crew_job *job)
{
    if (crew == NULL || crew->size == 0) {
        while (job->taken < job->count) {
            job->part(job->context, job->taken++);
        }
        return;
    }
    (void)pthread_mutex_lock(&crew->mutex);
    while (job->taken < job->count) {
        do_part(crew, job);
    }
    while (job->done < job->count) {
        (void)pthread_cond_wait(&crew->is_done, &crew->mutex);
    }
    struct lac_crew_job **at = &crew->jobs;

    while (*at != job) {
        at = &(*at)->later;
    }
    *at = job->later;
    (void)pthread_mutex_unlock(&crew->mutex);
}

void lac_crew_run(struct lac_crew *crew, uint32_t count, lac_crew_part part, void *context)
{
    struct lac_crew_job job;

    lac_crew_begin(crew, &job, count, part, context);
    lac_crew_end(crew, &job);
}
