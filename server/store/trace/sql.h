#ifndef LAC_SERVER_STORE_TRACE_SQL_H
#define LAC_SERVER_STORE_TRACE_SQL_H

/* SQLite in our terms: statuses, error sentences, statements that are one line to use. */

#include "analysis/model/status.h"

#include <sqlite3.h> // IWYU pragma: export
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What to do about a damaged file, for the end of a sentence. */
#define LAC_SQL_DAMAGE_ADVICE "stop the server and run `lacuna admin repair`"

/** Room for what a file is called in messages. */
enum { LAC_SQL_LABEL_BYTES = 64 };

/** Register our VFS; any number of times, from any thread. */
LAC_MUST_USE enum lac_status lac_sql_init(struct lac_error *reterr);

/** What a file is called in messages: "catalog.db", "traces/<id>.db", never a path
 *  of the machine. */
void lac_sql_label(const char *path, char *out, size_t capacity_bytes);

/** Turn SQLite's last error on `db` into ours: `what` says what was being done. The sentence names
 *  the file and holds neither SQL nor bytes of the file. */
enum lac_status lac_sql_fail(sqlite3 *db, const char *what, struct lac_error *reterr);

/** Whether the error says that the disk is full: LAC_ERR_IO with ENOSPC or EDQUOT. */
bool lac_sql_is_full(const struct lac_error *error);

/** Run statements without results. */
LAC_MUST_USE enum lac_status lac_sql_run(sqlite3 *db, const char *sql, struct lac_error *reterr);

/** Prepare a statement that is kept. */
LAC_MUST_USE enum lac_status lac_sql_prepare(sqlite3 *db, const char *sql,
                                             sqlite3_stmt **ret_statement,
                                             struct lac_error *reterr);

/** Step a statement that gives no row, then reset it and clear its bindings. */
LAC_MUST_USE enum lac_status lac_sql_step_done(sqlite3_stmt *statement, const char *what,
                                               struct lac_error *reterr);

/** Step once. @return LAC_OK with a row, LAC_ERR_NOT_FOUND at the end, else an error */
LAC_MUST_USE enum lac_status lac_sql_step_row(sqlite3_stmt *statement, const char *what,
                                              struct lac_error *reterr);

/** Reset and clear bindings. */
void lac_sql_reset(sqlite3_stmt *statement);

/* Bindings: an index that does not exist is our bug, memory shows when stepping. */
void lac_sql_bind_i64(sqlite3_stmt *statement, int index, int64_t value);
void lac_sql_bind_f64(sqlite3_stmt *statement, int index, double value);
/** Borrowed until the statement is reset. NULL binds null. */
void lac_sql_bind_text(sqlite3_stmt *statement, int index, const char *text);
/** Borrowed until the statement is reset. */
void lac_sql_bind_blob(sqlite3_stmt *statement, int index, const void *data, size_t size_bytes);

#endif
