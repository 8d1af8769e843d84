#include "server/store/sql.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_vfs plain_vfs;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;
static bool plain_ready;

static int plain_full_pathname(sqlite3_vfs *vfs, const char *name, int capacity_bytes, char *out)
{
    size_t length = strlen(name);

    (void)vfs;
    if (length + 1 > (size_t)capacity_bytes) {
        return SQLITE_CANTOPEN;
    }
    memcpy(out, name, length + 1);
    return SQLITE_OK;
}

static void register_plain(void)
{
    const sqlite3_vfs *base;

    if (sqlite3_initialize() != SQLITE_OK) {
        return;
    }
    base = sqlite3_vfs_find("unix");
    if (base == NULL) {
        return;
    }
    plain_vfs = *base;
    plain_vfs.zName = LAC_SQL_PLAIN_VFS;
    plain_vfs.pNext = NULL;
    plain_vfs.xFullPathname = plain_full_pathname;
    plain_ready = sqlite3_vfs_register(&plain_vfs, 0) == SQLITE_OK;
}

enum lac_status lac_sql_init(struct lac_error *reterr)
{
    (void)pthread_once(&plain_once, register_plain);
    return plain_ready ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite could not be started");
}

enum lac_status lac_sql_fail(sqlite3 *db, const char *what, struct lac_error *reterr)
{
    int code = db != NULL ? sqlite3_errcode(db) & 0xFF : SQLITE_NOMEM;
    const char *message = db != NULL ? sqlite3_errmsg(db) : "out of memory";
    enum lac_status status = LAC_ERR_IO;

    if (code == SQLITE_NOMEM) {
        status = LAC_ERR_NOMEM;
    } else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT ||
               code == SQLITE_ERROR || code == SQLITE_TOOBIG || code == SQLITE_MISMATCH) {
        /* SQLITE_ERROR: a table or column is missing, so the file is not what it says it is */
        status = LAC_ERR_CORRUPT;
    }
    errno = db != NULL ? sqlite3_system_errno(db) : 0;
    return lac_fail(reterr, status, 0, "%s: %s", what, message);
}

enum lac_status lac_sql_run(sqlite3 *db, const char *sql, struct lac_error *reterr)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? LAC_OK
                                                                : lac_sql_fail(db, sql, reterr);
}

enum lac_status lac_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement,
                                struct lac_error *reterr)
{
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL) ==
                   SQLITE_OK
               ? LAC_OK
               : lac_sql_fail(db, "database", reterr);
}

enum lac_status lac_sql_step_done(sqlite3_stmt *statement, const char *what,
                                  struct lac_error *reterr)
{
    int code = sqlite3_step(statement);
    enum lac_status status = LAC_OK;

    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        status = lac_sql_fail(sqlite3_db_handle(statement), what, reterr);
    }
    lac_sql_reset(statement);
    return status;
}

enum lac_status lac_sql_step_row(sqlite3_stmt *statement, const char *what,
                                 struct lac_error *reterr)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW) {
        return LAC_OK;
    }
    return code == SQLITE_DONE ? LAC_ERR_NOT_FOUND
                               : lac_sql_fail(sqlite3_db_handle(statement), what, reterr);
}

void lac_sql_reset(sqlite3_stmt *statement)
{
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
}

static void check_bind(int code)
{
    assert(code == SQLITE_OK || code == SQLITE_NOMEM || code == SQLITE_TOOBIG);
    (void)code;
}

void lac_sql_bind_i64(sqlite3_stmt *statement, int index, int64_t value)
{
    check_bind(sqlite3_bind_int64(statement, index, value));
}

void lac_sql_bind_f64(sqlite3_stmt *statement, int index, double value)
{
    check_bind(sqlite3_bind_double(statement, index, value));
}

void lac_sql_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    check_bind(sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC));
}

void lac_sql_bind_blob(sqlite3_stmt *statement, int index, const void *data, size_t size_bytes)
{
    check_bind(sqlite3_bind_blob64(statement, index, data, size_bytes, SQLITE_STATIC));
}

char *lac_sql_take_text(sqlite3_stmt *statement, int column, enum lac_status *status)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    char *copy;

    if (text == NULL) {
        if (sqlite3_column_type(statement, column) != SQLITE_NULL) {
            *status = LAC_ERR_NOMEM;
        }
        return NULL;
    }
    copy = strdup((const char *)text);
    if (copy == NULL) {
        *status = LAC_ERR_NOMEM;
    }
    return copy;
}
