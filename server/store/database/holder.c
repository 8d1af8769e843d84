#include "server/store/database/holder.h"

#include "analysis/model/status.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_database.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODE_BYTES = 256, TEXTS_MAX = 512 };

/** Whether traces are in object storage, without which another folder has nothing to show. */
static enum lac_status has_storage(struct lac_db *db, bool *ret_has, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(db, "SELECT 1 FROM object_store", &get, reterr);

    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    lac_db_finalize(get);
    *ret_has = status == LAC_OK;
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** The server that holds it, and how long it has said nothing; INT64_MAX: it has stopped.
 *  @return LAC_ERR_NOT_FOUND where no server that writes this down has had it yet */
static enum lac_status read_holder(struct lac_db *db, char *node, int64_t *ret_silent_ms,
                                   struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        /* no server can say anything while PostgreSQL is away: that silence does not count */
        "SELECT node, CASE WHEN held IS NULL THEN NULL ELSE CAST(extract(epoch FROM"
        " clock_timestamp() - greatest(held, pg_postmaster_start_time())) * 1000 AS BIGINT) END"
        " FROM catalog_holder",
        &get, reterr);

    *ret_silent_ms = INT64_MAX;
    node[0] = '\0';
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(node, NODE_BYTES, "%s", lac_db_text(get, 0));
        *ret_silent_ms = lac_db_is_null(get, 1) ? INT64_MAX : lac_db_i64(get, 1);
    }
    lac_db_finalize(get);
    return status;
}

/** One statement with one text. */
static enum lac_status write_text(struct lac_db *db, const char *sql, const char *text,
                                  struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &put, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(put, 1, text);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

/** The catalog is another folder's. */
static enum lac_status take_over(struct lac_db *db, struct lac_holder *holder,
                                 struct lac_error *reterr)
{
    char node[NODE_BYTES];
    int64_t silent_ms;
    bool has = false;
    enum lac_status status = has_storage(db, &has, reterr);

    if (status == LAC_OK && !has) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "that catalog belongs to another data folder, which has the traces: two "
                        "servers share one only with --objects; or give a database or a schema of "
                        "its own");
    }
    if (status == LAC_OK) {
        status = read_holder(db, node, &silent_ms, reterr);
    }
    if (status == LAC_ERR_NOT_FOUND) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "that catalog belongs to another data folder: start the server of that "
                        "folder with this version first");
    }
    if (status != LAC_OK) {
        return status;
    }
    if (holder->node == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "that catalog is held by the server %s: do this with the data folder of "
                        "that server",
                        node);
    }
    if (silent_ms < LAC_HOLD_MS) {
        return lac_fail(reterr, LAC_ERR_BUSY, 0, "the catalog is held by the server %s", node);
    }
    status = write_text(db, "UPDATE catalog_version SET owner = ?1", holder->owner, reterr);
    /* until the folder has what the catalog says: should this be cut short, the next start goes on */
    return status == LAC_OK ? lac_db_run(db, "UPDATE catalog_holder SET is_arriving = 1", reterr)
                            : status;
}

enum lac_status lac_holder_is_arriving(struct lac_db *db, bool *ret_is, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(db, "SELECT is_arriving FROM catalog_holder", &get, reterr);

    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    *ret_is = status == LAC_OK && lac_db_i64(get, 0) != 0;
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_holder_has_arrived(struct lac_db *db, struct lac_error *reterr)
{
    enum lac_status status = lac_db_begin(db, true, reterr);

    return status == LAC_OK
               ? lac_db_end(db, lac_db_run(db, "UPDATE catalog_holder SET is_arriving = 0", reterr),
                            reterr)
               : status;
}

enum lac_status lac_holder_take(struct lac_db *db, const char *owner, struct lac_holder *holder,
                                struct lac_error *reterr)
{
    assert(db != NULL && owner != NULL && holder != NULL && holder->owner != NULL);
    enum lac_status status = LAC_OK;

    if (owner[0] != '\0' && strcmp(owner, holder->owner) != 0) {
        status = take_over(db, holder, reterr);
    }
    if (status == LAC_OK && holder->node != NULL) {
        /* of servers that came before those that answer while they stand by */
        status = lac_db_run_postgres(
            db,
            "ALTER TABLE catalog_holder ADD COLUMN IF NOT EXISTS address TEXT NOT NULL DEFAULT '',"
            " ADD COLUMN IF NOT EXISTS secret TEXT NOT NULL DEFAULT ''",
            reterr);
    }
    if (status == LAC_OK && holder->node != NULL) {
        status = write_text(db,
                            "INSERT INTO catalog_holder(one, node, held)"
                            " VALUES(1, ?1, clock_timestamp()) ON CONFLICT(one) DO UPDATE"
                            " SET node = excluded.node, held = excluded.held, address = '',"
                            " secret = ''",
                            holder->node, reterr);
    }
    return status == LAC_OK ? lac_holder_is_arriving(db, &holder->is_arriving, reterr) : status;
}

enum lac_status lac_holder_announce(struct lac_db *db, const char *address, const char *secret,
                                    struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_begin(db, true, reterr);

    if (status != LAC_OK) {
        return status;
    }
    status =
        lac_db_prepare(db, "UPDATE catalog_holder SET address = ?1, secret = ?2", &put, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(put, 1, address);
        lac_db_bind_text(put, 2, secret);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return lac_db_end(db, status, reterr);
}

enum lac_status lac_holder_look(struct lac_db *db, struct lac_holder_seen *ret_seen,
                                struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret_seen = (struct lac_holder_seen){0};
    status = read_holder(db, ret_seen->node, &ret_seen->silent_ms, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(db, "SELECT address, secret FROM catalog_holder", &get, reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(ret_seen->address, sizeof(ret_seen->address), "%s", lac_db_text(get, 0));
        (void)snprintf(ret_seen->secret, sizeof(ret_seen->secret), "%s", lac_db_text(get, 1));
    }
    lac_db_finalize(get);
    return status;
}

/* -- while a server runs ------------------------------------------------------------------------ */

struct lac_hold {
    struct lac_db *db; /**< its own: the server's may be busy with a long query */
    char *owner;
    void (*is_lost)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
    unsigned text_count; /**< what the others are still to be told */
    char texts[TEXTS_MAX][LAC_HOLD_TEXT_BYTES];
};

/** @return whether the catalog is still this folder's, as far as can be told */
static bool renew(struct lac_hold *hold)
{
    struct lac_error ignored = {0};
    const enum lac_status status =
        write_text(hold->db,
                   "UPDATE catalog_holder SET held = clock_timestamp() WHERE EXISTS"
                   " (SELECT 1 FROM catalog_version WHERE owner = ?1)",
                   hold->owner, &ignored);

    (void)lac_db_data_version(hold->db); /* hears what others did, so that it does not pile up */
    return status != LAC_OK || lac_db_changes(hold->db) > 0;
}

void lac_hold_tell(struct lac_hold *hold, const char *text, size_t key_length)
{
    assert(hold != NULL && text != NULL && strlen(text) < LAC_HOLD_TEXT_BYTES);
    unsigned i = 0;

    (void)pthread_mutex_lock(&hold->lock);
    while (i < hold->text_count && strncmp(hold->texts[i], text, key_length) != 0) {
        i++;
    }
    if (i < TEXTS_MAX) {
        (void)snprintf(hold->texts[i], sizeof(hold->texts[i]), "%s", text);
        hold->text_count += i == hold->text_count;
        (void)pthread_cond_signal(&hold->wake);
    }
    (void)pthread_mutex_unlock(&hold->lock);
}

/** Send what waits. With the lock, which is free meanwhile. */
static void tell_texts(struct lac_hold *hold)
{
    while (hold->text_count > 0 && !hold->is_stopping) {
        char text[LAC_HOLD_TEXT_BYTES];
        struct lac_statement *say = NULL;
        struct lac_error ignored = {0};

        memcpy(text, hold->texts[0], sizeof(text));
        hold->text_count--;
        memmove(hold->texts[0], hold->texts[1], hold->text_count * sizeof(hold->texts[0]));
        (void)pthread_mutex_unlock(&hold->lock);
        if (lac_db_prepare(hold->db, "SELECT pg_notify('" LAC_DB_TRACE_CHANNEL "', ?1)", &say,
                           &ignored) == LAC_OK) {
            lac_db_bind_text(say, 1, text);
            (void)!lac_db_step_row(say, "catalog", &ignored);
        }
        lac_db_finalize(say);
        (void)pthread_mutex_lock(&hold->lock);
    }
}

static void *keep_holding(void *context)
{
    struct lac_hold *const hold = context;

    (void)pthread_mutex_lock(&hold->lock);
    while (!hold->is_stopping) {
        struct timespec until;
        bool is_ours;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LAC_HOLD_RENEW_MS / 1000;
        while (!hold->is_stopping &&
               pthread_cond_timedwait(&hold->wake, &hold->lock, &until) == 0) {
            tell_texts(hold);
        }
        tell_texts(hold);
        if (hold->is_stopping) {
            break;
        }
        (void)pthread_mutex_unlock(&hold->lock);
        is_ours = renew(hold);
        if (!is_ours) {
            hold->is_lost(hold->context);
        }
        (void)pthread_mutex_lock(&hold->lock);
        if (!is_ours) {
            break;
        }
    }
    (void)pthread_mutex_unlock(&hold->lock);
    return NULL;
}

static void free_hold(struct lac_hold *hold)
{
    lac_db_close(hold->db);
    (void)pthread_cond_destroy(&hold->wake);
    (void)pthread_mutex_destroy(&hold->lock);
    free(hold->owner);
    free(hold);
}

enum lac_status lac_hold_start(const char *address, const char *owner,
                               void (*is_lost)(void *context), void *context,
                               struct lac_hold **ret_hold, struct lac_error *reterr)
{
    assert(address != NULL && owner != NULL && is_lost != NULL && ret_hold != NULL);
    struct lac_hold *hold = calloc(1, sizeof(*hold));
    pthread_condattr_t attributes;
    enum lac_status status;

    if (hold == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    (void)pthread_mutex_init(&hold->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&hold->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    hold->is_lost = is_lost;
    hold->context = context;
    hold->owner = strdup(owner);
    status = hold->owner != NULL ? lac_db_connect(address, &hold->db, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK && pthread_create(&hold->thread, NULL, keep_holding, hold) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot start the thread that holds the catalog");
    }
    if (status != LAC_OK) {
        free_hold(hold);
        return status;
    }
    *ret_hold = hold;
    return LAC_OK;
}

void lac_hold_stop(struct lac_hold *hold)
{
    struct lac_error ignored = {0};

    if (hold == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&hold->lock);
    hold->is_stopping = true;
    (void)pthread_cond_signal(&hold->wake);
    (void)pthread_mutex_unlock(&hold->lock);
    lac_db_stop_waiting(hold->db);
    (void)pthread_join(hold->thread, NULL);
    /* where it fails the others wait for LAC_HOLD_MS */
    (void)write_text(hold->db,
                     "UPDATE catalog_holder SET held = NULL WHERE EXISTS"
                     " (SELECT 1 FROM catalog_version WHERE owner = ?1)",
                     hold->owner, &ignored);
    free_hold(hold);
}
