#ifndef LAC_SERVER_STORE_DATABASE_POSTGRES_DATABASE_H
#define LAC_SERVER_STORE_DATABASE_POSTGRES_DATABASE_H

/*
 * A database of PostgreSQL as one of database.h: one connection, as with a file.
 *
 * Writing transactions come one after the other: each holds the table catalog_version, so none ever
 * fails for what another did at the same time. A connection that is lost is made again: queries
 * outside of a transaction and the beginning of one wait for it for LAC_POSTGRES_PATIENCE_MS. Within
 * a transaction they fail with LAC_ERR_IO (as does what waited in vain; sys_errno is ECONNRESET), and
 * nothing of it stays. Each commit writes its number into the table catalog_commits: one whose answer
 * was lost is looked for there, so that it is never said to have failed when it has not, nor to have
 * been made when it was not.
 */

#include "server/store/database/database.h"

#include <stdbool.h>

enum { LAC_POSTGRES_PATIENCE_MS = 20000, LAC_OWNER_BYTES = 32 };

/** Whether it is the address of such a database: postgresql://, postgres://, or words of libpq
 *  (host=/run/postgresql dbname=lacuna). */
bool lac_db_is_postgres(const char *address);

/**
 * Connect once, without patience, and make the schema and the tables catalog_version, catalog_holder
 * and catalog_commits when they are not there. No message contains the address.
 * @return LAC_OK, LAC_ERR_IO (no libpq, nobody answers, it does not let us in), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_db_connect(const char *address, struct lac_db **ret_db,
                                            struct lac_error *reterr);

/** From now on a transaction that writes begins only while `owner` is the owner in the table
 *  catalog_version; else it fails with LAC_ERR_IO. `db` is one of lac_db_connect(). */
void lac_db_fence(struct lac_db *db, const char *owner);

/** From now on no transaction that writes begins: LAC_ERR_BUSY. `db` is one of lac_db_connect(). */
void lac_db_only_read(struct lac_db *db);

/** From now on PostgreSQL is waited for no longer: one more try is made where it is away, and what is
 *  asked after that fails at once. For ending; from any thread, also while another one waits. `db` is
 *  one of lac_db_connect(). */
void lac_db_stop_waiting(struct lac_db *db);

/** Where the holder of a catalog says which trace has changed. */
#define LAC_DB_TRACE_CHANNEL "lacuna_trace"

/**
 * Wait for what other connections say: changes of the catalog (channel "lacuna_catalog") and of
 * traces (LAC_DB_TRACE_CHANNEL, with a text). A connection that was lost is made again, and then
 * heard of with the channel "": whatever was said meanwhile was missed. `db` is one of
 * lac_db_connect(), and used by no other thread.
 * @return LAC_OK, also when nothing came; LAC_ERR_IO (PostgreSQL is away)
 */
LAC_MUST_USE enum lac_status lac_db_hear(struct lac_db *db, int wait_ms,
                                         void (*hear)(void *context, const char *channel,
                                                      const char *text),
                                         void *context, struct lac_error *reterr);

/** Run statements in PostgreSQL's own words. `db` is one of lac_db_connect(). */
LAC_MUST_USE enum lac_status lac_db_run_postgres(struct lac_db *db, const char *sql,
                                                 struct lac_error *reterr);

#endif
