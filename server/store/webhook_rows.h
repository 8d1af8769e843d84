#ifndef LAC_SERVER_STORE_WEBHOOK_ROWS_H
#define LAC_SERVER_STORE_WEBHOOK_ROWS_H

/*
 * Webhooks of projects, and what is to be delivered to them. A delivery is in the catalog before
 * anything is sent, so that no news is lost by a restart; the same news of the same object is
 * delivered to a webhook once.
 */

#include "analysis/model/status.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_WEBHOOK_URL_BYTES = 1024,
    LAC_WEBHOOK_SECRET_BYTES = 65,
    LAC_WEBHOOK_EVENTS_BYTES = 160,
    LAC_WEBHOOKS_MAX = 20, /**< of a project */
};

struct lac_webhook {
    char id[LAC_ID_SIZE];
    char project[LAC_PROJECT_BYTES]; /**< "" what belongs to none */
    char url[LAC_WEBHOOK_URL_BYTES];
    bool is_slack;
    char secret[LAC_WEBHOOK_SECRET_BYTES]; /**< of the signature */
    char events[LAC_WEBHOOK_EVENTS_BYTES]; /**< " a b " with a blank around each */
    char author[128];
    int64_t created_unix_ms;
    /* what became of the newest delivery */
    uint64_t delivered_count, waiting_count, failed_count;
    int last_status; /**< of HTTP; 0 none came */
    int64_t last_unix_ms;
    char problem[256]; /**< why the newest attempt failed; "" it did not */
};

/** @param hooks room for LAC_WEBHOOKS_MAX */
LAC_MUST_USE enum lac_status lac_webhooks_list(struct lac_store *store, const char *project,
                                               struct lac_webhook *hooks, uint32_t *ret_count,
                                               struct lac_error *reterr);

/** Makes id and secret; sets them in `hook`. @return LAC_ERR_LIMIT: the project has
 *  LAC_WEBHOOKS_MAX */
LAC_MUST_USE enum lac_status lac_webhooks_add(struct lac_store *store, struct lac_webhook *hook,
                                              struct lac_error *reterr);

/** With what waits for it. @return LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_webhooks_remove(struct lac_store *store, const char *project,
                                                 const char *id, struct lac_error *reterr);

/** News for the webhooks of a project that want it. */
struct lac_webhook_news {
    const char *project, *event;
    const char *object; /**< what it is about, for "once": an id, and what tells times apart */
    const char *body;   /**< JSON; NULL: who delivers finds out whether there is news */
    const char *text;   /**< one line */
    const char *only;   /**< id of the one webhook that it is for, whatever it wants; NULL all */
    int64_t object_unix_ms; /**< webhooks that are newer do not get it; 0 all */
};
/** @param ret_count how many webhooks it waits for */
LAC_MUST_USE enum lac_status lac_webhooks_queue(struct lac_store *store,
                                                const struct lac_webhook_news *news,
                                                uint32_t *ret_count, struct lac_error *reterr);

/** A delivery that is due. */
struct lac_webhook_delivery {
    int64_t seq;
    struct lac_webhook hook; /**< without the counts */
    char event[32];
    char object[64];
    char *body, *text; /**< owned; NULL as queued */
    uint32_t attempts; /**< before this one */
};
void lac_webhook_delivery_done(struct lac_webhook_delivery *delivery);

/** The one that is due first. @param ret_next_ms when there is something to do, INT64_MAX never
 *  @return LAC_OK, LAC_ERR_NOT_FOUND (none is due at `now_ms`) */
LAC_MUST_USE enum lac_status lac_webhooks_due(struct lac_store *store, int64_t now_ms,
                                              struct lac_webhook_delivery *ret_delivery,
                                              int64_t *ret_next_ms, struct lac_error *reterr);

/** What became of an attempt. @param next_ms when to try again, 0: it is over
 *  @param problem "" delivered */
LAC_MUST_USE enum lac_status lac_webhooks_attempted(struct lac_store *store, int64_t seq,
                                                    int status, const char *problem,
                                                    int64_t next_ms, struct lac_error *reterr);

#endif
