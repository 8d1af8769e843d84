#ifndef LAC_SERVER_STORE_DATABASE_POSTGRES_CONNECTION_H
#define LAC_SERVER_STORE_DATABASE_POSTGRES_CONNECTION_H

/*
 * The connection below postgres_database.c: what every new one is told, what its failures mean, and
 * how a lost one is made again. Not thread-safe, but for stopping to wait.
 */

#include "collector/base/encode.h"
#include "server/store/database/database_private.h"
#include "server/store/database/libpq.h"
#include "server/store/database/postgres_database.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LAC_POSTGRES_IDENTITY_BYTES = 16 };

struct postgres_db {
    struct lac_db base;
    struct lac_libpq pq;
    struct pg_conn *conn;
    bool is_in_transaction;
    char identity[LAC_BASE32_TEXT_BYTES(
        LAC_POSTGRES_IDENTITY_BYTES)]; /**< by which the catalog knows its commits */
    int64_t commit_count;              /**< the number of the one that was tried last */
    char owner[LAC_OWNER_BYTES];       /**< who has to be the owner to write; "": nobody */
    bool only_reads;                   /**< another server writes */
    bool hears_traces;                 /**< listens to LAC_DB_TRACE_CHANNEL, too */
    int changed_rows;                  /**< by the last statement that changes */
    int64_t version;                   /**< counts the changes of others that were heard of */
    atomic_bool is_stopping;           /**< waits for PostgreSQL no longer */
    bool is_given_up;                  /**< it was not there when tried while stopping */
};

static inline struct postgres_db *lac_postgres_of(struct lac_db *db)
{
    return (struct postgres_db *)db;
}

bool lac_postgres_is_connected(const struct postgres_db *db);

/** Whether the server, or the way to it, went away. */
bool lac_postgres_is_lost(const struct postgres_db *db, const struct pg_result *result);

/** Whether it did what it was told. NULL is allowed, as by the two below: then it did not. */
bool lac_postgres_is_done(const struct postgres_db *db, const struct pg_result *result);

/** `what`, and the first line of what libpq says of the connection: it names the host and the user.
 *  @return LAC_ERR_IO, with sys_errno ECONNRESET */
enum lac_status lac_postgres_fail_connection(const struct postgres_db *db, const char *what,
                                             struct lac_error *reterr);

/** What a result that is not done means. @return as lac_db_run() */
enum lac_status lac_postgres_fail(const struct postgres_db *db, const struct pg_result *result,
                                  struct lac_error *reterr);

/** Tell a new connection what every one is told. */
LAC_MUST_USE enum lac_status lac_postgres_set_up(struct postgres_db *db, struct lac_error *reterr);

/** Refuse what cannot hold the catalog; make what is missing. */
LAC_MUST_USE enum lac_status lac_postgres_make_place(struct postgres_db *db,
                                                     struct lac_error *reterr);

/** When the patience that begins now ends, for lac_postgres_reconnect(). */
int64_t lac_postgres_patience_ms(void);

/** Another connection in place of a lost one, within the time. */
LAC_MUST_USE enum lac_status lac_postgres_reconnect(struct postgres_db *db, int64_t until_ms,
                                                    struct lac_error *reterr);

/** Run what may be run again: outside of a transaction, and changing nothing that stays.
 *  @param ret_result what came, to be cleared; NULL when it failed */
LAC_MUST_USE enum lac_status lac_postgres_run_patiently(struct postgres_db *db, const char *sql,
                                                        struct pg_result **ret_result,
                                                        struct lac_error *reterr);

#endif
