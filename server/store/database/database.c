#include "server/store/database/database.h"

#include "analysis/model/status.h"
#include "server/store/database/database_private.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_db_close(struct lac_db *db)
{
    if (db != NULL) {
        db->driver->close(db);
    }
}

enum lac_status lac_db_run(struct lac_db *db, const char *sql, struct lac_error *reterr)
{
    assert(db != NULL && sql != NULL);
    return db->driver->run(db, sql, reterr);
}

enum lac_status lac_db_begin(struct lac_db *db, bool durable, struct lac_error *reterr)
{
    assert(db != NULL);
    return db->driver->begin(db, durable, reterr);
}

enum lac_status lac_db_end(struct lac_db *db, enum lac_status status, struct lac_error *reterr)
{
    assert(db != NULL);
    if (status == LAC_OK) {
        status = db->driver->commit(db, reterr);
    }
    if (status != LAC_OK) {
        db->driver->rollback(db);
    }
    return status;
}

int lac_db_changes(struct lac_db *db)
{
    assert(db != NULL);
    return db->driver->changes(db);
}

int64_t lac_db_data_version(struct lac_db *db)
{
    assert(db != NULL);
    return db->driver->data_version(db);
}

bool lac_db_is_current(struct lac_db *db)
{
    assert(db != NULL);
    return db->driver->is_current(db);
}

enum lac_status lac_db_prepare(struct lac_db *db, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr)
{
    assert(db != NULL && sql != NULL && ret_statement != NULL);
    return db->driver->prepare(db, sql, ret_statement, reterr);
}

void lac_db_finalize(struct lac_statement *statement)
{
    if (statement != NULL) {
        statement->driver->finalize(statement);
    }
}

int lac_db_parameter_count(struct lac_statement *statement)
{
    assert(statement != NULL);
    return statement->driver->parameter_count(statement);
}

enum lac_status lac_db_step_done(struct lac_statement *statement, const char *what,
                                 struct lac_error *reterr)
{
    assert(statement != NULL);
    return statement->driver->step_done(statement, what, reterr);
}

enum lac_status lac_db_step_row(struct lac_statement *statement, const char *what,
                                struct lac_error *reterr)
{
    assert(statement != NULL);
    return statement->driver->step_row(statement, what, reterr);
}

void lac_db_bind_i64(struct lac_statement *statement, int index, int64_t value)
{
    assert(statement != NULL);
    statement->driver->bind_i64(statement, index, value);
}

void lac_db_bind_f64(struct lac_statement *statement, int index, double value)
{
    assert(statement != NULL);
    statement->driver->bind_f64(statement, index, value);
}

void lac_db_bind_text(struct lac_statement *statement, int index, const char *text)
{
    assert(statement != NULL);
    statement->driver->bind_text(statement, index, text);
}

void lac_db_bind_blob(struct lac_statement *statement, int index, const void *data,
                      size_t size_bytes)
{
    assert(statement != NULL);
    statement->driver->bind_blob(statement, index, data, size_bytes);
}

bool lac_db_is_null(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->is_null(statement, column);
}

int64_t lac_db_i64(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->column_i64(statement, column);
}

int lac_db_int(struct lac_statement *statement, int column)
{
    return (int)lac_db_i64(statement, column);
}

double lac_db_f64(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->column_f64(statement, column);
}

const char *lac_db_text(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->column_text(statement, column);
}

const void *lac_db_blob(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->column_blob(statement, column);
}

size_t lac_db_bytes(struct lac_statement *statement, int column)
{
    assert(statement != NULL);
    return statement->driver->column_bytes(statement, column);
}

char *lac_db_take_text(struct lac_statement *statement, int column, enum lac_status *status)
{
    const char *text = lac_db_text(statement, column);
    char *copy;

    if (text == NULL) {
        if (!lac_db_is_null(statement, column)) {
            *status = LAC_ERR_NOMEM;
        }
        return NULL;
    }
    copy = strdup(text);
    if (copy == NULL) {
        *status = LAC_ERR_NOMEM;
    }
    return copy;
}
