#include "server/store/database/postgres_connection.h"

#include "analysis/model/status.h"
#include "collector/base/monotonic.h"
#include "server/store/database/database_private.h"
#include "server/store/database/libpq.h"
#include "server/store/database/postgres_database.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RETRY_MS = 100, SQLSTATE_LENGTH = 5 };

static int64_t now_ms(void)
{
    return (int64_t)(lac_monotonic_ns() / 1000000);
}

static void pause_ms(int64_t ms)
{
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

/* -- what went wrong --------------------------------------------------------------------------- */

bool lac_postgres_is_connected(const struct postgres_db *db)
{
    return db->conn != NULL && db->pq.status(db->conn) == LAC_PQ_CONNECTION_OK;
}

static const char *sqlstate_of(const struct postgres_db *db, const struct pg_result *result)
{
    const char *const state = result != NULL ? db->pq.error_field(result, LAC_PQ_SQLSTATE) : NULL;

    return state != NULL ? state : "";
}

bool lac_postgres_is_lost(const struct postgres_db *db, const struct pg_result *result)
{
    const char *const state = sqlstate_of(db, result);

    return !lac_postgres_is_connected(db) || strncmp(state, "57P0", 4) == 0 ||
           strcmp(state, "25P03") == 0 || strncmp(state, "08", 2) == 0;
}

enum lac_status lac_postgres_fail_connection(const struct postgres_db *db, const char *what,
                                             struct lac_error *reterr)
{
    const char *const said = db->conn != NULL ? db->pq.error_message(db->conn) : "out of memory";

    errno = ECONNRESET; /* lac_fail() keeps it: another try may find PostgreSQL there again */
    return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %.*s", what, (int)strcspn(said, "\n"),
                    said[0] != '\0' ? said : "PostgreSQL does not answer");
}

enum lac_status lac_postgres_fail(const struct postgres_db *db, const struct pg_result *result,
                                  struct lac_error *reterr)
{
    const char *const state = sqlstate_of(db, result);
    const char *const said = result != NULL ? db->pq.error_field(result, LAC_PQ_MESSAGE) : NULL;

    if (result == NULL || said == NULL || lac_postgres_is_lost(db, result)) {
        return lac_postgres_fail_connection(db, "the connection to the catalog was lost", reterr);
    }
    if (strcmp(state, "53100") == 0) {
        errno = ENOSPC;
        return lac_fail(reterr, LAC_ERR_NO_SPACE, 0,
                        "catalog: PostgreSQL says that its disk is full: make room there");
    }
    if (strcmp(state, "53200") == 0) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "catalog: PostgreSQL is out of memory");
    }
    return lac_fail(reterr, strncmp(state, "XX", 2) == 0 ? LAC_ERR_CORRUPT : LAC_ERR_IO, 0,
                    "catalog: PostgreSQL says: %s (%.*s)", said, SQLSTATE_LENGTH, state);
}

/* -- the connection ---------------------------------------------------------------------------- */

bool lac_postgres_is_done(const struct postgres_db *db, const struct pg_result *result)
{
    const int status = result != NULL ? db->pq.result_status(result) : -1;

    return status == LAC_PQ_EMPTY || status == LAC_PQ_COMMAND_OK || status == LAC_PQ_TUPLES_OK;
}

/* A server that vanished in a transaction holds its locks for
   less time than others wait for them, and not until TCP takes it for dead. */
enum lac_status lac_postgres_set_up(struct postgres_db *db, struct lac_error *reterr)
{
    struct pg_result *const result = db->pq.exec(
        db->conn, "SET lock_timeout = '15s'; SET idle_in_transaction_session_timeout = '10s';"
                  "SET bytea_output = hex; SET extra_float_digits = 1; LISTEN lacuna_catalog");
    enum lac_status status =
        lac_postgres_is_done(db, result) ? LAC_OK : lac_postgres_fail(db, result, reterr);

    db->pq.clear(result);
    if (status == LAC_OK && db->hears_traces) {
        status = lac_db_run_postgres(&db->base, "LISTEN " LAC_DB_TRACE_CHANNEL, reterr);
    }
    return status;
}

int64_t lac_postgres_patience_ms(void)
{
    return now_ms() + LAC_POSTGRES_PATIENCE_MS;
}

void lac_db_stop_waiting(struct lac_db *db)
{
    atomic_store(&lac_postgres_of(db)->is_stopping, true);
}

enum lac_status lac_postgres_reconnect(struct postgres_db *db, int64_t until_ms,
                                       struct lac_error *reterr)
{
    while (!db->is_given_up) {
        enum lac_status status = LAC_ERR_IO;

        db->pq.reset(db->conn);
        db->version++; /* whoever changed something meanwhile was not heard */
        if (lac_postgres_is_connected(db)) {
            status = lac_postgres_set_up(db, reterr);
        }
        if (status == LAC_OK) {
            return LAC_OK;
        }
        /* one try is made of all that is still asked while stopping: each may take 5 s */
        db->is_given_up = atomic_load(&db->is_stopping);
        if (now_ms() >= until_ms) {
            break;
        }
        pause_ms(db->is_given_up ? 0 : RETRY_MS);
    }
    return lac_postgres_fail_connection(db, "the catalog cannot be reached", reterr);
}

enum lac_status lac_postgres_run_patiently(struct postgres_db *db, const char *sql,
                                           struct pg_result **ret_result, struct lac_error *reterr)
{
    const int64_t until_ms = lac_postgres_patience_ms();
    enum lac_status status = LAC_OK;

    *ret_result = NULL;
    for (;;) {
        if (!lac_postgres_is_connected(db)) {
            status = lac_postgres_reconnect(db, until_ms, reterr);
        }
        if (status != LAC_OK) {
            return status;
        }
        *ret_result = db->pq.exec(db->conn, sql);
        if (lac_postgres_is_done(db, *ret_result)) {
            return LAC_OK;
        }
        if (!lac_postgres_is_lost(db, *ret_result)) {
            status = lac_postgres_fail(db, *ret_result, reterr);
        } else {
            status = lac_postgres_reconnect(db, until_ms, reterr);
        }
        db->pq.clear(*ret_result);
        *ret_result = NULL;
    }
}

enum lac_status lac_db_run_postgres(struct lac_db *base, const char *sql, struct lac_error *reterr)
{
    struct postgres_db *const db = lac_postgres_of(base);
    struct pg_result *const result = db->pq.exec(db->conn, sql);
    const enum lac_status status =
        lac_postgres_is_done(db, result) ? LAC_OK : lac_postgres_fail(db, result, reterr);

    db->pq.clear(result);
    return status;
}

enum lac_status lac_db_hear(struct lac_db *base, int wait_ms,
                            void (*hear)(void *context, const char *channel, const char *text),
                            void *context, struct lac_error *reterr)
{
    struct postgres_db *const db = lac_postgres_of(base);
    struct lac_pq_notice *notice;
    enum lac_status status = LAC_OK;

    if (!lac_postgres_is_connected(db) || !db->hears_traces) {
        const bool was_lost = db->hears_traces;

        db->hears_traces = true;
        status = was_lost ? lac_postgres_reconnect(db, now_ms(), reterr)
                          : lac_postgres_set_up(db, reterr);
        if (status == LAC_OK) {
            hear(context, "", "");
        }
    }
    if (status != LAC_OK) {
        return status;
    }
    struct pollfd wait = {.fd = db->pq.socket(db->conn), .events = POLLIN};

    (void)poll(&wait, 1, wait_ms);
    if (db->pq.consume_input(db->conn) == 0) {
        return lac_postgres_fail_connection(db, "the connection to the catalog was lost", reterr);
    }
    while ((notice = db->pq.notifies(db->conn)) != NULL) {
        hear(context, notice->channel, notice->text != NULL ? notice->text : "");
        db->pq.freemem(notice);
    }
    return LAC_OK;
}

enum lac_status lac_postgres_make_place(struct postgres_db *db, struct lac_error *reterr)
{
    struct pg_result *const result =
        db->pq.exec(db->conn, "SELECT current_setting('server_encoding'), current_schema(),"
                              " current_setting('search_path')");
    enum lac_status status =
        lac_postgres_is_done(db, result) ? LAC_OK : lac_postgres_fail(db, result, reterr);
    char sql[128];

    if (status == LAC_OK && strcmp(db->pq.value(result, 0, 0), "UTF8") != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "the catalog's database is in %s: make one with ENCODING 'UTF8'",
                          db->pq.value(result, 0, 0));
    }
    if (status == LAC_OK && db->pq.is_null(result, 0, 1) != 0) {
        const char *const path = db->pq.value(result, 0, 2);
        const size_t length = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789_");

        if (length == 0 || path[length] != '\0' || length > 60) {
            status = lac_fail(reterr, LAC_ERR_IO, 0,
                              "none of the schemas of the catalog's search_path is there");
        } else {
            (void)snprintf(sql, sizeof(sql), "CREATE SCHEMA IF NOT EXISTS \"%s\"", path);
            status = lac_db_run_postgres(&db->base, sql, reterr);
        }
    }
    db->pq.clear(result);
    return status == LAC_OK
               ? lac_db_run_postgres(
                     &db->base,
                     /* two that find nothing there would make it twice, of which one fails */
                     "SELECT pg_advisory_xact_lock(8102736455);"
                     "CREATE TABLE IF NOT EXISTS catalog_version(one INT PRIMARY KEY CHECK(one = 1)"
                     ", version BIGINT NOT NULL, owner TEXT NOT NULL);"
                     "INSERT INTO catalog_version VALUES(1, 0, '') ON CONFLICT DO NOTHING;"
                     "CREATE TABLE IF NOT EXISTS catalog_holder(one INT PRIMARY KEY CHECK(one = 1)"
                     ", node TEXT NOT NULL, held TIMESTAMPTZ,"
                     " is_arriving BIGINT NOT NULL DEFAULT 0);"
                     "CREATE TABLE IF NOT EXISTS catalog_commits(connection TEXT PRIMARY KEY,"
                     " number BIGINT NOT NULL, made TIMESTAMPTZ NOT NULL)",
                     reterr)
               : status;
}
