/* Links that show one report, trace or view to whoever has them. The token is told once; the catalog
 * has its hash. A hash of so many random bits needs neither salt nor a slow function. */

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/reports/report_rows.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/** What expired is listed for a month, so that its owner sees why a link ended. */
#define EXPIRED_KEPT_MS INT64_C(2678400000)

static void hash_of(const char *token, uint8_t *out)
{
    struct lac_sha hash;

    lac_sha256_init(&hash);
    lac_sha_add(&hash, token, strlen(token));
    lac_sha_end(&hash, out);
}

static enum lac_status make_token(char *out, struct lac_error *reterr)
{
    uint8_t random[20];

    _Static_assert(LAC_BASE32_TEXT_BYTES(sizeof(random)) == LAC_SHARE_TOKEN_LENGTH + 1, "160 bits");
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no random numbers: %s", strerror(errno));
    }
    lac_base32_encode(random, sizeof(random), out);
    return LAC_OK;
}

static void bind_optional(struct lac_statement *statement, int index, int64_t value)
{
    if (value != 0) {
        lac_db_bind_i64(statement, index, value);
    }
}

static enum lac_status insert_share(struct lac_store *store, const struct lac_share *share,
                                    const char *id, const uint8_t *hash, struct lac_error *reterr)
{
    const int64_t now_ms = lac_now_unix_ms();
    struct lac_statement *insert = NULL;
    enum lac_status status =
        lac_db_prepare(store->catalog,
                       "INSERT INTO shares(id, hash, kind, target, redact, snapshot, author,"
                       " created_ms, expires_ms) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE"
                       " (SELECT count(*) FROM shares WHERE target = ?4) < ?10",
                       &insert, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(insert, 1, id);
        lac_db_bind_blob(insert, 2, hash, LAC_SHA256_SIZE);
        lac_db_bind_text(insert, 3, share->kind);
        lac_db_bind_text(insert, 4, share->target);
        lac_db_bind_text(insert, 5, share->redact);
        lac_db_bind_text(insert, 6, share->snapshot);
        lac_db_bind_text(insert, 7, share->author);
        lac_db_bind_i64(insert, 8, now_ms);
        bind_optional(insert, 9, share->expires_unix_ms);
        lac_db_bind_i64(insert, 10, LAC_SHARES_MAX);
        status = lac_db_step_done(insert, "catalog", reterr);
    }
    lac_db_finalize(insert);
    if (status == LAC_OK && lac_db_changes(store->catalog) == 0) {
        status =
            lac_fail(reterr, LAC_ERR_LIMIT, 0,
                     "%d links show this already: revoke one that is not needed", LAC_SHARES_MAX);
    }
    return status;
}

enum lac_status lac_shares_create(struct lac_store *store, const struct lac_share *share,
                                  char *ret_id, char *ret_token, struct lac_error *reterr)
{
    assert(store != NULL && share != NULL && ret_id != NULL && ret_token != NULL);
    uint8_t hash[LAC_SHA256_SIZE];
    char before[LAC_NUMBER_SIZE];
    const char *texts[1] = {lac_catalog_number_text(before, lac_now_unix_ms() - EXPIRED_KEPT_MS)};
    enum lac_status status = lac_store_new_id(ret_id, reterr);

    if (status == LAC_OK) {
        status = make_token(ret_token, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    hash_of(ret_token, hash);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, true, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "DELETE FROM shares WHERE expires_ms < CAST(?1 AS INTEGER)",
                                    texts, 1, NULL, reterr);
        if (status == LAC_OK) {
            status = insert_share(store, share, ret_id, hash, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

static void visit_share(struct lac_statement *get, lac_share_fn *visit, void *context)
{
    const struct lac_share share = {
        .id = lac_catalog_text(get, 0),
        .kind = lac_catalog_text(get, 1),
        .target = lac_catalog_text(get, 2),
        .redact = lac_catalog_text(get, 3),
        .snapshot = lac_db_text(get, 4),
        .author = lac_catalog_text(get, 5),
        .created_unix_ms = lac_db_i64(get, 6),
        .expires_unix_ms = lac_db_i64(get, 7),
        .used_unix_ms = lac_db_i64(get, 8),
        .used_count = lac_db_i64(get, 9),
    };

    visit(context, &share);
}

#define SHARE_COLUMNS(snapshot_)                                                                   \
    "SELECT id, kind, target, redact, " snapshot_                                                  \
    ", author, created_ms, coalesce(expires_ms, 0), coalesce(used_ms, 0), used_count FROM shares "

enum lac_status lac_shares_list(struct lac_store *store, const char *target, lac_share_fn *visit,
                                void *context, struct lac_error *reterr)
{
    assert(store != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                SHARE_COLUMNS("NULL") "WHERE (?1 IS NULL OR target = ?1) AND"
                                                      " (expires_ms IS NULL OR expires_ms > ?2)"
                                                      " ORDER BY created_ms DESC, id",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, target);
        lac_db_bind_i64(get, 2, lac_now_unix_ms() - EXPIRED_KEPT_MS);
        while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
            visit_share(get, visit, context);
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_shares_open(struct lac_store *store, const char *token, lac_share_fn *visit,
                                void *context, struct lac_error *reterr)
{
    assert(store != NULL && token != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    uint8_t hash[LAC_SHA256_SIZE];
    char now[LAC_NUMBER_SIZE];
    char id[LAC_ID_SIZE] = "";
    const char *texts[2] = {id, lac_catalog_number_text(now, lac_now_unix_ms())};
    enum lac_status status;

    hash_of(token, hash);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                SHARE_COLUMNS("snapshot") "WHERE hash = ?1 AND (expires_ms IS NULL"
                                                          " OR expires_ms > ?2)",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_blob(get, 1, hash, sizeof(hash));
        lac_db_bind_i64(get, 2, lac_now_unix_ms());
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(id, sizeof(id), "%s", lac_catalog_text(get, 0));
        visit_share(get, visit, context);
    }
    lac_db_finalize(get);
    if (status == LAC_OK) { /* a full disk keeps nobody from reading */
        struct lac_error unsaid = {0};

        (void)!lac_catalog_change_alone(store->catalog, false,
                                        "UPDATE shares SET used_ms = CAST(?2 AS INTEGER),"
                                        " used_count = used_count + 1 WHERE id = ?1",
                                        texts, 2, NULL, &unsaid);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_shares_target(struct lac_store *store, const char *id, char *ret_target,
                                  struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_target != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status =
            lac_db_prepare(store->catalog, "SELECT target FROM shares WHERE id = ?1", &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(ret_target, LAC_ID_SIZE, "%s", lac_catalog_text(get, 0));
    } else if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no such link");
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_shares_revoke(struct lac_store *store, const char *id, char *ret_target,
                                  struct lac_error *reterr)
{
    const char *texts[1] = {id};
    enum lac_status status = lac_shares_target(store, id, ret_target, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_change_alone(store->catalog, true, "DELETE FROM shares WHERE id = ?1",
                                      texts, 1, NULL, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
