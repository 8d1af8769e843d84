/*
 * Rows to settle: an upload that was given up, an import that failed. What the catalog cannot take
 * now (a full disk) is tried again, so that no row stays `receiving` or `importing` for ever.
 */

#include "analysis/model/status.h"
#include "server/ingest/ingest.h"
#include "server/ingest/ingest_private.h"
#include "server/store/publish.h"
#include "server/store/store.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static enum lac_status carry_out(struct lac_ingest *ingest, const struct lac_settle *settle)
{
    struct lac_error error;

    return settle->is_drop ? lac_store_drop(ingest->options.store, settle->id, &error)
                           : lac_store_fail(ingest->options.store, settle->id, settle->code,
                                            settle->message, &error);
}

static void tell(struct lac_ingest *ingest, const struct lac_settle *settle)
{
    const struct lac_ingest_progress none = {.state = LAC_TRACE_FAILED, .eta_s = (double)NAN};

    lac_ingest_tell(ingest, settle->id, settle->is_drop, &none);
}

static void put_back(struct lac_ingest *ingest, struct lac_settle *settle)
{
    (void)pthread_mutex_lock(&ingest->lock);
    settle->next = ingest->unsettled;
    ingest->unsettled = settle;
    (void)pthread_cond_broadcast(&ingest->wake);
    (void)pthread_mutex_unlock(&ingest->lock);
}

bool lac_ingest_settle(struct lac_ingest *ingest, struct lac_settle *settle)
{
    if (carry_out(ingest, settle) != LAC_OK) {
        put_back(ingest, settle);
        return false;
    }
    tell(ingest, settle);
    free(settle);
    return true;
}

void lac_ingest_settle_all(struct lac_ingest *ingest)
{
    struct lac_settle *list;

    (void)pthread_mutex_lock(&ingest->lock);
    list = ingest->unsettled;
    ingest->unsettled = NULL;
    (void)pthread_mutex_unlock(&ingest->lock);
    while (list != NULL) {
        struct lac_settle *settle = list;

        list = settle->next;
        if (carry_out(ingest, settle) != LAC_OK) {
            put_back(ingest, settle);
            continue;
        }
        if (!settle->is_drop && !lac_store_host_failed(settle->code)) {
            lac_ingest_remove_staged(ingest, settle->id); /* kept until the row said why */
        }
        tell(ingest, settle);
        free(settle);
    }
}

void *lac_ingest_settler(void *context)
{
    struct lac_ingest *ingest = context;

    (void)pthread_mutex_lock(&ingest->lock);
    while (!ingest->is_stopping) {
        struct timespec until;

        if (ingest->unsettled == NULL) {
            (void)pthread_cond_wait(&ingest->wake, &ingest->lock);
            continue;
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        while (!ingest->is_stopping &&
               pthread_cond_timedwait(&ingest->wake, &ingest->lock, &until) == 0) {
        }
        if (!ingest->is_stopping) {
            (void)pthread_mutex_unlock(&ingest->lock);
            lac_ingest_settle_all(ingest);
            (void)pthread_mutex_lock(&ingest->lock);
        }
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    return NULL;
}
