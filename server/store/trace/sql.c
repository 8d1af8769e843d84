#include "server/store/trace/sql.h"

#include "analysis/model/status.h"
#include "server/store/trace/checked_file.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum lac_status lac_sql_init(struct lac_error *reterr)
{
    return lac_checked_register()
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite could not be started");
}

void lac_sql_label(const char *path, char *out, size_t capacity_bytes)
{
    const char *name = path != NULL ? strrchr(path, '/') : NULL;
    const char *folder = name;

    while (folder != NULL && folder > path && folder[-1] != '/') {
        folder--;
    }
    if (folder != NULL && strncmp(folder, "traces/", 7) == 0) {
        name = folder; /* one of many: with its folder */
    } else {
        name = name != NULL ? name + 1 : path;
    }
    (void)snprintf(out, capacity_bytes, "%s", name != NULL && *name != '\0' ? name : "the file");
}

static void label_of(sqlite3 *db, char *out, size_t capacity_bytes)
{
    lac_sql_label(sqlite3_db_filename(db, "main"), out, capacity_bytes);
}

static enum lac_status damaged(sqlite3 *db, struct lac_error *reterr)
{
    char label[LAC_SQL_LABEL_BYTES];
    uint64_t offset = 0;

    label_of(db, label, sizeof(label));
    if (!lac_checked_damage(db, &offset)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s is damaged: " LAC_SQL_DAMAGE_ADVICE, label);
    }
    return lac_fail(reterr, LAC_ERR_CORRUPT, offset,
                    "%s is damaged (wrong checksum at byte %llu): " LAC_SQL_DAMAGE_ADVICE, label,
                    (unsigned long long)offset);
}

enum lac_status lac_sql_fail(sqlite3 *db, const char *what, struct lac_error *reterr)
{
    int extended = db != NULL ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    int code = extended & 0xFF;
    char problem[LAC_CHECKED_PROBLEM_BYTES];
    uint64_t offset = 0;

    if (code == SQLITE_NOMEM || extended == SQLITE_IOERR_NOMEM) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT ||
        code == SQLITE_ERROR || code == SQLITE_TOOBIG || code == SQLITE_MISMATCH ||
        (code == SQLITE_IOERR && lac_checked_damage(db, &offset))) {
        /* SQLITE_ERROR: a table or column is missing, so the file is not what it says it is. What
         * SQLite says of it may quote the damaged bytes. */
        return damaged(db, reterr);
    }
    lac_checked_problem(db, problem);
    if (code == SQLITE_IOERR && problem[0] != '\0') {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", what, problem);
    }
    errno = sqlite3_system_errno(db);
    if (code == SQLITE_FULL || errno == ENOSPC || errno == EDQUOT) {
        errno = errno == EDQUOT ? EDQUOT : ENOSPC;
        return lac_fail(reterr, LAC_ERR_NO_SPACE, 0, "%s: the disk is full: delete traces", what);
    }
    return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s%s%s", what, sqlite3_errstr(code),
                    errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
}

bool lac_sql_is_full(const struct lac_error *error)
{
    return error->status == LAC_ERR_NO_SPACE ||
           (error->status == LAC_ERR_IO &&
            (error->sys_errno == ENOSPC || error->sys_errno == EDQUOT));
}

enum lac_status lac_sql_run(sqlite3 *db, const char *sql, struct lac_error *reterr)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        char label[LAC_SQL_LABEL_BYTES];

        label_of(db, label, sizeof(label));
        return lac_sql_fail(db, label, reterr);
    }
    return LAC_OK;
}

enum lac_status lac_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement,
                                struct lac_error *reterr)
{
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL) ==
                   SQLITE_OK
               ? LAC_OK
               : lac_sql_fail(db, "the data folder", reterr);
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
