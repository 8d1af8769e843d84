#include "server/ingest/tender.h"

#include "analysis/model/status.h"
#include "server/base/log.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/** How often storage is looked after, and every which of these times the bucket is listed. */
enum { TEND_S = 30, SWEEP_EVERY = 120 };

/** Objects younger than this may belong to a publication that is under way. */
#define GRACE_MS ((int64_t)86400 * 1000)

struct lac_tender {
    struct lac_store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
};

static void *tend(void *context)
{
    struct lac_tender *tender = context;

    (void)pthread_mutex_lock(&tender->lock);
    for (unsigned round = 0; !tender->is_stopping; round++) {
        struct lac_error error = {0};
        struct timespec until;

        (void)pthread_mutex_unlock(&tender->lock);
        if (lac_store_tend_objects(tender->store, round % SWEEP_EVERY == 0 ? GRACE_MS : INT64_MAX,
                                   &error) != LAC_OK) {
            LAC_LOG(LAC_LOG_WARN, "object storage", lac_log_text("what", error.message));
        }
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += TEND_S;
        (void)pthread_mutex_lock(&tender->lock);
        while (!tender->is_stopping &&
               pthread_cond_timedwait(&tender->wake, &tender->lock, &until) == 0) {
        }
    }
    (void)pthread_mutex_unlock(&tender->lock);
    return NULL;
}

enum lac_status lac_tender_start(struct lac_store *store, struct lac_tender **ret_tender,
                                 struct lac_error *reterr)
{
    struct lac_store_objects objects;
    struct lac_tender *tender;
    enum lac_status status = lac_store_count_objects(store, &objects, reterr);

    *ret_tender = NULL;
    if (status != LAC_OK || !objects.is_on) {
        return status;
    }
    tender = calloc(1, sizeof(*tender));
    if (tender == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory to start");
    }
    tender->store = store;
    (void)pthread_mutex_init(&tender->lock, NULL);
    (void)pthread_cond_init(&tender->wake, NULL);
    if (pthread_create(&tender->thread, NULL, tend, tender) != 0) {
        (void)pthread_cond_destroy(&tender->wake);
        (void)pthread_mutex_destroy(&tender->lock);
        free(tender);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory to start");
    }
    *ret_tender = tender;
    return LAC_OK;
}

void lac_tender_stop(struct lac_tender *tender)
{
    if (tender == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&tender->lock);
    tender->is_stopping = true;
    (void)pthread_cond_signal(&tender->wake);
    (void)pthread_mutex_unlock(&tender->lock);
    (void)pthread_join(tender->thread, NULL);
    (void)pthread_cond_destroy(&tender->wake);
    (void)pthread_mutex_destroy(&tender->lock);
    free(tender);
}
