#include "server/store/database/sqlite_database.h"

#include "analysis/model/status.h"
#include "server/store/database/database_private.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct sqlite_db {
    struct lac_db base;
    sqlite3 *file;
};

struct sqlite_statement {
    struct lac_statement base;
    sqlite3_stmt *statement;
};

static sqlite3 *file_of(struct lac_db *db)
{
    return ((struct sqlite_db *)db)->file;
}

static sqlite3_stmt *inner(struct lac_statement *statement)
{
    return ((struct sqlite_statement *)statement)->statement;
}

static void close_database(struct lac_db *db)
{
    (void)sqlite3_close(file_of(db));
    free(db);
}

static enum lac_status run(struct lac_db *db, const char *sql, struct lac_error *reterr)
{
    return lac_sql_run(file_of(db), sql, reterr);
}

static enum lac_status begin(struct lac_db *db, bool durable, struct lac_error *reterr)
{
    enum lac_status status = lac_sql_run(
        file_of(db), durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", reterr);

    return status == LAC_OK ? lac_sql_run(file_of(db), "BEGIN IMMEDIATE", reterr) : status;
}

static enum lac_status commit(struct lac_db *db, struct lac_error *reterr)
{
    return lac_sql_run(file_of(db), "COMMIT", reterr);
}

static void roll_back(struct lac_db *db)
{
    if (sqlite3_get_autocommit(file_of(db)) == 0) {
        (void)sqlite3_exec(file_of(db), "ROLLBACK", NULL, NULL, NULL);
    }
}

static int changes(struct lac_db *db)
{
    return sqlite3_changes(file_of(db));
}

static int64_t data_version(struct lac_db *db)
{
    struct lac_error error;
    sqlite3_stmt *get = NULL;
    int64_t version = 0;

    if (lac_sql_prepare(file_of(db), "PRAGMA data_version", &get, &error) == LAC_OK &&
        lac_sql_step_row(get, "catalog", &error) == LAC_OK) {
        version = sqlite3_column_int64(get, 0);
    }
    (void)sqlite3_finalize(get);
    return version;
}

static bool is_current(struct lac_db *db)
{
    return lac_checked_is_on(file_of(db));
}

static enum lac_status prepare(struct lac_db *db, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr);

static void finalize(struct lac_statement *statement)
{
    (void)sqlite3_finalize(inner(statement));
    free(statement);
}

static int parameter_count(struct lac_statement *statement)
{
    return sqlite3_bind_parameter_count(inner(statement));
}

static enum lac_status step_done(struct lac_statement *statement, const char *what,
                                 struct lac_error *reterr)
{
    return lac_sql_step_done(inner(statement), what, reterr);
}

static enum lac_status step_row(struct lac_statement *statement, const char *what,
                                struct lac_error *reterr)
{
    return lac_sql_step_row(inner(statement), what, reterr);
}

static void bind_i64(struct lac_statement *statement, int index, int64_t value)
{
    lac_sql_bind_i64(inner(statement), index, value);
}

static void bind_f64(struct lac_statement *statement, int index, double value)
{
    lac_sql_bind_f64(inner(statement), index, value); /* NaN becomes null */
}

static void bind_text(struct lac_statement *statement, int index, const char *text)
{
    lac_sql_bind_text(inner(statement), index, text);
}

static void bind_blob(struct lac_statement *statement, int index, const void *data,
                      size_t size_bytes)
{
    lac_sql_bind_blob(inner(statement), index, data, size_bytes);
}

static bool is_null(struct lac_statement *statement, int column)
{
    return sqlite3_column_type(inner(statement), column) == SQLITE_NULL;
}

static int64_t column_i64(struct lac_statement *statement, int column)
{
    return sqlite3_column_int64(inner(statement), column);
}

static double column_f64(struct lac_statement *statement, int column)
{
    return sqlite3_column_double(inner(statement), column);
}

static const char *column_text(struct lac_statement *statement, int column)
{
    return (const char *)sqlite3_column_text(inner(statement), column);
}

static const void *column_blob(struct lac_statement *statement, int column)
{
    return sqlite3_column_blob(inner(statement), column);
}

static size_t column_bytes(struct lac_statement *statement, int column)
{
    return (size_t)sqlite3_column_bytes(inner(statement), column);
}

static const struct lac_db_driver driver = LAC_DB_DRIVER;

static enum lac_status prepare(struct lac_db *db, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr)
{
    struct sqlite_statement *made = calloc(1, sizeof(*made));
    enum lac_status status;

    if (made == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    made->base.driver = &driver;
    status = lac_sql_prepare(file_of(db), sql, &made->statement, reterr);
    if (status != LAC_OK) {
        free(made);
        return status;
    }
    *ret_statement = &made->base;
    return LAC_OK;
}

enum lac_status lac_db_of_sqlite(sqlite3 *file, struct lac_db **ret_db, struct lac_error *reterr)
{
    struct sqlite_db *db = calloc(1, sizeof(*db));

    if (db == NULL) {
        (void)sqlite3_close(file);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    db->base.driver = &driver;
    db->file = file;
    *ret_db = &db->base;
    return LAC_OK;
}

sqlite3 *lac_db_sqlite(struct lac_db *db)
{
    return db->driver == &driver ? file_of(db) : NULL;
}
