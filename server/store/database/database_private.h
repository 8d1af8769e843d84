#ifndef LAC_SERVER_STORE_DATABASE_DATABASE_PRIVATE_H
#define LAC_SERVER_STORE_DATABASE_DATABASE_PRIVATE_H

/* What a database is to database.c. Each function does what the one of its name in database.h says. */

#include "server/store/database/database.h"

struct lac_db_driver {
    void (*close)(struct lac_db *db);
    enum lac_status (*run)(struct lac_db *db, const char *sql, struct lac_error *reterr);
    enum lac_status (*begin)(struct lac_db *db, bool durable, struct lac_error *reterr);
    enum lac_status (*commit)(struct lac_db *db, struct lac_error *reterr);
    void (*rollback)(struct lac_db *db); /**< nothing outside of a transaction */
    int (*changes)(struct lac_db *db);
    int64_t (*data_version)(struct lac_db *db);
    bool (*is_current)(struct lac_db *db);
    enum lac_status (*prepare)(struct lac_db *db, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr);
    void (*finalize)(struct lac_statement *statement);
    int (*parameter_count)(struct lac_statement *statement);
    enum lac_status (*step_done)(struct lac_statement *statement, const char *what,
                                 struct lac_error *reterr);
    enum lac_status (*step_row)(struct lac_statement *statement, const char *what,
                                struct lac_error *reterr);
    void (*bind_i64)(struct lac_statement *statement, int index, int64_t value);
    void (*bind_f64)(struct lac_statement *statement, int index, double value);
    void (*bind_text)(struct lac_statement *statement, int index, const char *text);
    void (*bind_blob)(struct lac_statement *statement, int index, const void *data,
                      size_t size_bytes);
    bool (*is_null)(struct lac_statement *statement, int column);
    int64_t (*column_i64)(struct lac_statement *statement, int column);
    double (*column_f64)(struct lac_statement *statement, int column);
    const char *(*column_text)(struct lac_statement *statement, int column);
    const void *(*column_blob)(struct lac_statement *statement, int column);
    size_t (*column_bytes)(struct lac_statement *statement, int column);
};

/** A driver whose functions have these names in its file. */
#define LAC_DB_DRIVER                                                                              \
    {                                                                                              \
        .close = close_database, .run = run, .begin = begin, .commit = commit,                     \
        .rollback = roll_back, .changes = changes, .data_version = data_version,                   \
        .is_current = is_current, .prepare = prepare, .finalize = finalize,                        \
        .parameter_count = parameter_count, .step_done = step_done, .step_row = step_row,          \
        .bind_i64 = bind_i64, .bind_f64 = bind_f64, .bind_text = bind_text,                        \
        .bind_blob = bind_blob, .is_null = is_null, .column_i64 = column_i64,                      \
        .column_f64 = column_f64, .column_text = column_text, .column_blob = column_blob,          \
        .column_bytes = column_bytes,                                                              \
    }

/** The first member of each driver's own. */
struct lac_db {
    const struct lac_db_driver *driver;
};

/** The first member of each driver's own. */
struct lac_statement {
    const struct lac_db_driver *driver;
};

#endif
