/* Webhooks and what waits for them. See webhook_rows.h. */

#include "server/store/webhook_rows.h"

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/** Deliveries that are over are kept so long, so that the same news is not sent twice. */
#define KEPT_MS (INT64_C(90) * 86400000)

#define HOOK_COLUMNS "w.id, w.project, w.url, w.form, w.secret, w.events, w.author, w.created_ms"

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

static void read_hook(struct lac_statement *get, struct lac_webhook *hook)
{
    char form[16];

    *hook = (struct lac_webhook){.created_unix_ms = lac_db_i64(get, 7)};
    copy_text(get, 0, hook->id, sizeof(hook->id));
    copy_text(get, 1, hook->project, sizeof(hook->project));
    copy_text(get, 2, hook->url, sizeof(hook->url));
    copy_text(get, 3, form, sizeof(form));
    hook->is_slack = strcmp(form, "slack") == 0;
    copy_text(get, 4, hook->secret, sizeof(hook->secret));
    copy_text(get, 5, hook->events, sizeof(hook->events));
    copy_text(get, 6, hook->author, sizeof(hook->author));
}

enum lac_status lac_webhooks_list(struct lac_store *store, const char *project,
                                  struct lac_webhook *hooks, uint32_t *ret_count,
                                  struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && hooks != NULL && ret_count != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret_count = 0;
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(
        store->catalog,
        "SELECT " HOOK_COLUMNS ","
        " (SELECT count(*) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.next_ms IS NULL"
        " AND d.problem = ''),"
        " (SELECT count(*) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.next_ms IS NOT"
        " NULL AND d.body IS NOT NULL),"
        " (SELECT count(*) FROM webhook_deliveries d WHERE d.webhook = w.id AND d.next_ms IS NULL"
        " AND d.problem <> ''), d.status, d.at_ms, d.problem FROM webhooks w"
        " LEFT JOIN webhook_deliveries d ON d.seq = (SELECT max(seq) FROM webhook_deliveries x"
        " WHERE x.webhook = w.id AND x.attempts > 0) WHERE w.project = ?1 ORDER BY w.created_ms",
        &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, project);
    }
    while (status == LAC_OK && *ret_count < LAC_WEBHOOKS_MAX) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            struct lac_webhook *hook = &hooks[*ret_count];

            read_hook(get, hook);
            hook->delivered_count = (uint64_t)lac_db_i64(get, 8);
            hook->waiting_count = (uint64_t)lac_db_i64(get, 9);
            hook->failed_count = (uint64_t)lac_db_i64(get, 10);
            hook->last_status = lac_db_int(get, 11);
            hook->last_unix_ms = lac_db_i64(get, 12);
            copy_text(get, 13, hook->problem, sizeof(hook->problem));
            *ret_count += 1;
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status make_secret(char *out, struct lac_error *reterr)
{
    uint8_t random[(LAC_WEBHOOK_SECRET_BYTES - 1) / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no random numbers: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", random[i]);
    }
    return LAC_OK;
}

enum lac_status lac_webhooks_add(struct lac_store *store, struct lac_webhook *hook,
                                 struct lac_error *reterr)
{
    assert(store != NULL && hook != NULL);
    char now[24];
    char most[16];
    int changes = 0;
    enum lac_status status = lac_store_new_id(hook->id, reterr);

    if (status == LAC_OK) {
        status = make_secret(hook->secret, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    hook->created_unix_ms = lac_now_unix_ms();
    (void)snprintf(now, sizeof(now), "%" PRId64, hook->created_unix_ms);
    (void)snprintf(most, sizeof(most), "%d", LAC_WEBHOOKS_MAX);

    const char *texts[] = {
        hook->id,     hook->project, hook->url,    hook->is_slack ? "slack" : "json",
        hook->secret, hook->events,  hook->author, now,
        most};

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_change_alone(
        store->catalog, true,
        "INSERT INTO webhooks SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE"
        " (SELECT count(*) FROM webhooks WHERE project = ?2) < CAST(?9 AS INTEGER)",
        texts, 9, &changes, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_OK && changes == 0
               ? lac_fail(reterr, LAC_ERR_LIMIT, 0, "a project has %d webhooks at most",
                          LAC_WEBHOOKS_MAX)
               : status;
}

enum lac_status lac_webhooks_remove(struct lac_store *store, const char *project, const char *id,
                                    struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && id != NULL);
    const char *texts[2] = {id, project};
    int changes = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, true, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "DELETE FROM webhooks WHERE id = ?1 AND project = ?2", texts, 2,
                                    &changes, reterr);
        if (status == LAC_OK && changes == 0) {
            status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no such webhook");
        }
        if (status == LAC_OK) {
            status = lac_catalog_change(store->catalog,
                                        "DELETE FROM webhook_deliveries WHERE webhook = ?1", texts,
                                        1, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_webhooks_queue(struct lac_store *store, const struct lac_webhook_news *news,
                                   uint32_t *ret_count, struct lac_error *reterr)
{
    assert(store != NULL && news != NULL && ret_count != NULL);
    char now[24];
    char made[24];
    struct lac_statement *get = NULL;
    int changes = 0;
    bool has_any = false;
    enum lac_status status;

    *ret_count = 0;
    (void)snprintf(now, sizeof(now), "%" PRId64, lac_now_unix_ms());
    (void)snprintf(made, sizeof(made), "%" PRId64,
                   news->object_unix_ms > 0 ? news->object_unix_ms : INT64_MAX);
    const char *texts[] = {news->project, news->event, news->object, news->body,
                           news->text,    news->only,  now,          made};

    (void)pthread_mutex_lock(&store->lock);
    /* most projects have none: then nothing is written */
    status =
        lac_db_prepare(store->catalog, "SELECT 1 FROM webhooks WHERE project = ?1", &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, news->project);
        status = lac_db_step_row(get, "catalog", reterr);
        has_any = status == LAC_OK;
        status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    }
    lac_db_finalize(get);
    if (status == LAC_OK && has_any) {
        status = lac_catalog_change_alone(
            store->catalog, true,
            "INSERT INTO webhook_deliveries(webhook, event, object, body, text, at_ms,"
            " next_ms) SELECT id, ?2, ?3, ?4, ?5, ?7, ?7 FROM webhooks WHERE project = ?1 AND"
            " ((?6 IS NULL AND instr(events, ' ' || ?2 || ' ') > 0) OR id = ?6)"
            " AND created_ms <= CAST(?8 AS INTEGER) ON CONFLICT DO NOTHING",
            texts, 8, &changes, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    *ret_count = status == LAC_OK && changes > 0 ? (uint32_t)changes : 0;
    return status;
}

void lac_webhook_delivery_done(struct lac_webhook_delivery *delivery)
{
    free(delivery->body);
    free(delivery->text);
    *delivery = (struct lac_webhook_delivery){0};
}

enum lac_status lac_webhooks_due(struct lac_store *store, int64_t now_ms,
                                 struct lac_webhook_delivery *ret_delivery, int64_t *ret_next_ms,
                                 struct lac_error *reterr)
{
    assert(store != NULL && ret_delivery != NULL && ret_next_ms != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret_delivery = (struct lac_webhook_delivery){0};
    *ret_next_ms = INT64_MAX;
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            "SELECT " HOOK_COLUMNS ", d.seq, d.event, d.object, d.body, d.text,"
                            " d.attempts, d.next_ms FROM webhook_deliveries d JOIN webhooks w"
                            " ON w.id = d.webhook WHERE d.next_ms IS NOT NULL"
                            " ORDER BY d.next_ms, d.seq LIMIT 1",
                            &get, reterr);
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        *ret_next_ms = lac_db_i64(get, 14);
        if (*ret_next_ms > now_ms) {
            status = LAC_ERR_NOT_FOUND;
        } else {
            read_hook(get, &ret_delivery->hook);
            ret_delivery->seq = lac_db_i64(get, 8);
            copy_text(get, 9, ret_delivery->event, sizeof(ret_delivery->event));
            copy_text(get, 10, ret_delivery->object, sizeof(ret_delivery->object));
            ret_delivery->body = lac_db_take_text(get, 11, &status);
            ret_delivery->text = lac_db_take_text(get, 12, &status);
            ret_delivery->attempts = (uint32_t)lac_db_int(get, 13);
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_webhooks_attempted(struct lac_store *store, int64_t seq, int status_code,
                                       const char *problem, int64_t next_ms,
                                       struct lac_error *reterr)
{
    assert(store != NULL && problem != NULL);
    char numbers[5][24];
    enum lac_status status;

    (void)snprintf(numbers[0], sizeof(numbers[0]), "%" PRId64, seq);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%d", status_code);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%" PRId64, next_ms);
    (void)snprintf(numbers[3], sizeof(numbers[3]), "%" PRId64, lac_now_unix_ms());
    (void)snprintf(numbers[4], sizeof(numbers[4]), "%" PRId64, lac_now_unix_ms() - KEPT_MS);
    const char *texts[] = {numbers[0], numbers[1], problem, next_ms != 0 ? numbers[2] : NULL,
                           numbers[3]};
    const char *old[] = {numbers[4]};

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "UPDATE webhook_deliveries SET attempts = attempts + 1,"
                                    " status = ?2, problem = ?3, next_ms = ?4, at_ms = ?5"
                                    " WHERE seq = CAST(?1 AS INTEGER)",
                                    texts, 5, NULL, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_change(store->catalog,
                                        "DELETE FROM webhook_deliveries WHERE next_ms IS NULL AND"
                                        " at_ms < CAST(?1 AS INTEGER)",
                                        old, 1, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
