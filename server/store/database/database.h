#ifndef LAC_SERVER_STORE_DATABASE_DATABASE_H
#define LAC_SERVER_STORE_DATABASE_DATABASE_H

/*
 * The catalog's database: connections, transactions, statements, in terms that do not say which one
 * it is. Not thread-safe: who has a connection holds a lock around every call.
 *
 * Statements are SQL as SQLite reads it, the one driver that there is; parameters are `?`, or `?1`,
 * `?2`, ...
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_db;
struct lac_statement;

/** Close a connection; its statements are finalized before. NULL is allowed. */
void lac_db_close(struct lac_db *db);

/** Run statements without parameters and results.
 *  @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_NO_SPACE, LAC_ERR_IO, LAC_ERR_NOMEM, as all below */
LAC_MUST_USE enum lac_status lac_db_run(struct lac_db *db, const char *sql,
                                        struct lac_error *reterr);

/** Begin a transaction that writes; a durable one is on disk when it ends. */
LAC_MUST_USE enum lac_status lac_db_begin(struct lac_db *db, bool durable,
                                          struct lac_error *reterr);

/** Commit when status is LAC_OK, else roll back. @return status, or what the commit said */
LAC_MUST_USE enum lac_status lac_db_end(struct lac_db *db, enum lac_status status,
                                        struct lac_error *reterr);

/** Rows that the statement run last has changed. */
int lac_db_changes(struct lac_db *db);

/** Another number whenever another connection has changed the database. 0: it cannot be told. */
int64_t lac_db_data_version(struct lac_db *db);

/** Whether it has all tables of this version: a catalog of an older one that there was no room to
 *  convert is read, and takes nothing new. */
bool lac_db_is_current(struct lac_db *db);

/** Prepare a statement. */
LAC_MUST_USE enum lac_status lac_db_prepare(struct lac_db *db, const char *sql,
                                            struct lac_statement **ret_statement,
                                            struct lac_error *reterr);

/** NULL is allowed. */
void lac_db_finalize(struct lac_statement *statement);

/** How many parameters it has. */
int lac_db_parameter_count(struct lac_statement *statement);

/** Step a statement that gives no row, then reset it and clear its bindings. */
LAC_MUST_USE enum lac_status lac_db_step_done(struct lac_statement *statement, const char *what,
                                              struct lac_error *reterr);

/** Step once. @return LAC_OK with a row, LAC_ERR_NOT_FOUND at the end, else an error */
LAC_MUST_USE enum lac_status lac_db_step_row(struct lac_statement *statement, const char *what,
                                             struct lac_error *reterr);

/* Bindings: an index that does not exist is our bug, memory shows when stepping. What is not bound
 * is null, and so is a NULL text and a double that is not a number. */
void lac_db_bind_i64(struct lac_statement *statement, int index, int64_t value);
void lac_db_bind_f64(struct lac_statement *statement, int index, double value);
/** Borrowed until the statement is reset. */
void lac_db_bind_text(struct lac_statement *statement, int index, const char *text);
/** Borrowed until the statement is reset. */
void lac_db_bind_blob(struct lac_statement *statement, int index, const void *data,
                      size_t size_bytes);

/* Columns of the row, from 0: null is 0, and NULL as text or blob. What is borrowed is valid until
 * the next step, reset or finalize. */
bool lac_db_is_null(struct lac_statement *statement, int column);
int64_t lac_db_i64(struct lac_statement *statement, int column);
int lac_db_int(struct lac_statement *statement, int column);
double lac_db_f64(struct lac_statement *statement, int column);
const char *lac_db_text(struct lac_statement *statement, int column);
/** A blob and its size: first the blob, then the size. */
const void *lac_db_blob(struct lac_statement *statement, int column);
size_t lac_db_bytes(struct lac_statement *statement, int column);

/** Column as text that the caller frees; NULL stays NULL. Sets *status on lack of memory. */
char *lac_db_take_text(struct lac_statement *statement, int column, enum lac_status *status);

#endif
