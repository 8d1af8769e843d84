#ifndef LAC_SERVER_STORE_DATABASE_POSTGRES_DATABASE_H
#define LAC_SERVER_STORE_DATABASE_POSTGRES_DATABASE_H

/*
 * A database of PostgreSQL as one of database.h: one connection, as with a file.
 *
 * Writing transactions come one after the other: each holds the table catalog_version, so none ever
 * fails for what another did at the same time. A connection that is lost is made again: queries
 * outside of a transaction and the beginning of one wait for it for LAC_POSTGRES_PATIENCE_MS. Within
 * a transaction they fail with LAC_ERR_IO (as does what waited in vain; sys_errno is ECONNRESET), and
 * nothing of it stays; but a commit whose answer was
 * lost is asked for, so that it is never said to have failed when it has not.
 */

#include "server/store/database/database.h"

#include <stdbool.h>

enum { LAC_POSTGRES_PATIENCE_MS = 20000, LAC_OWNER_BYTES = 32 };

/** Whether it is the address of such a database: postgresql://, postgres://, or words of libpq
 *  (host=/run/postgresql dbname=lacuna). */
bool lac_db_is_postgres(const char *address);

/**
 * Connect once, without patience, and make the schema and the tables catalog_version and
 * catalog_holder when they are not there. No message contains the address.
 * @return LAC_OK, LAC_ERR_IO (no libpq, nobody answers, it does not let us in), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_db_connect(const char *address, struct lac_db **ret_db,
                                            struct lac_error *reterr);

/** From now on a transaction that writes begins only while `owner` is the owner in the table
 *  catalog_version; else it fails with LAC_ERR_IO. `db` is one of lac_db_connect(). */
void lac_db_fence(struct lac_db *db, const char *owner);

/** Run statements in PostgreSQL's own words. `db` is one of lac_db_connect(). */
LAC_MUST_USE enum lac_status lac_db_run_postgres(struct lac_db *db, const char *sql,
                                                 struct lac_error *reterr);

#endif
