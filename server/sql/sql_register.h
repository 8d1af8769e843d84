#ifndef LAC_SERVER_SQL_SQL_REGISTER_H
#define LAC_SERVER_SQL_SQL_REGISTER_H

/*
 * A connection to SQLite that has the tables of a trace and nothing else: in memory, read only.
 */

#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/** Finds the trace that a connection reads; @return NULL: none yet. */
typedef struct lac_sql_trace *(*lac_sql_finder)(void *context);

/**
 * Register tables, table functions and aggregate functions (median, percentile, stddev).
 *
 * @param finder, context asked when a query begins; both live as long as the connection
 * @return a code of SQLite
 */
int lac_sql_register(sqlite3 *db, lac_sql_finder finder, void *context);

/* slice_module.c and row_module.c: one module each; the table is in the context. */
struct lac_sql_module {
    const struct lac_sql_table *table;
    lac_sql_finder finder;
    void *context;
    bool is_one_of_many; /**< a rowid is no slices.id: several traces have the same */
};
extern const sqlite3_module lac_sql_slice_module;
extern const sqlite3_module lac_sql_row_module;

/** The module that reads the table of one trace. */
const sqlite3_module *lac_sql_module_of(const struct lac_sql_table *table);

/** The same tables over several traces at once, each with a column `trace` (sql_many.c). `many`
 *  lives as long as the connection. @return a code of SQLite */
int lac_sql_register_many(sqlite3 *db, struct lac_sql_many *many);

/** aggregates.c */
int lac_sql_register_aggregates(sqlite3 *db);

/** Declare the columns of a table, and one more (NULL: none). */
int lac_sql_declare(sqlite3 *db, const struct lac_sql_table *table, const char *more);

/** What a module keeps of a table; begins with SQLite's part. */
struct lac_sql_vtab {
    sqlite3_vtab base;
    const struct lac_sql_module *module;
};

int lac_sql_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                    sqlite3_vtab **ret_vtab, char **ret_error);
int lac_sql_disconnect(sqlite3_vtab *vtab);

/** The rows of a sqlite3_module whose functions have these names in its file; each is read only. */
#define LAC_SQL_MODULE(connect_table, disconnect_table)                                            \
    {                                                                                              \
        .iVersion = 1, .xConnect = (connect_table), .xBestIndex = best_index,                      \
        .xDisconnect = (disconnect_table), .xDestroy = (disconnect_table), .xOpen = open_cursor,   \
        .xClose = close_cursor, .xFilter = filter, .xNext = next_row, .xEof = is_at_end,           \
        .xColumn = put_column, .xRowid = put_rowid,                                                \
    }

/** Narrow [*min, *max] by a number, by '<', '=' or '>', both ends included (by '{' and '}' and a whole
 *  number, not); what is no number narrows nothing (slice_module.c). */
void lac_sql_narrow(int64_t *min, int64_t *max, char comparison, sqlite3_value *value);

/** Turn a failure into SQLite's: sets the table's message. */
int lac_sql_vtab_fail(sqlite3_vtab *vtab, enum lac_status status, const struct lac_error *error);

#endif
