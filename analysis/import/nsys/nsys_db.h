#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_DB_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_DB_H

/*
 * A hostile SQLite file, read table by table.
 *
 * What a file cannot do here: run triggers, views, virtual tables or functions of its schema that
 * touch anything (trusted_schema off, defensive, generated columns refused), load extensions,
 * attach files, be written to, map memory, sort (so no temporary files), make large values (length
 * limit), or go on forever: a statement that works long without giving a row is stopped, and so is
 * one that gives more rows than the file's bytes can hold (a B-tree whose pages point at each
 * other), more text, or rows that need more pages.
 */

#include "analysis/import/nsys/nsys_pages.h"
#include "analysis/import/source/import_options.h"

struct lac_source;
struct sqlite3;
struct sqlite3_stmt;

struct lac_nsys_db {
    struct sqlite3 *sqlite;
    const struct lac_import_options *options;
    struct lac_error *reterr;
    uint64_t file_bytes;
    uint64_t event_count;   /**< rows read of tables of events */
    uint64_t rows_expected; /**< of those tables, as far as known before: for progress */
    uint64_t row_count;     /**< read of any table */
    uint64_t value_bytes;   /**< of text and blobs handed out */
    uint64_t pages_asked;   /**< by SQLite, from its cache or the file */
    uint32_t silent_calls;  /**< of the progress handler since the last row */
    uint64_t silent_most;   /**< of those that a statement may take; 0: the usual limit */
    bool is_canceled;
    bool is_stuck;
    bool is_opening; /**< the schema has not been read: that may not take long */
    bool has_log;    /**< changes lie beside the file, which are not read */
    int broken; /**< SQLite's code of a look-up that failed, 0 none: see lac_nsys_db_status() */
};

enum { LAC_NSYS_COLUMNS_MAX = 24 };

/** The list of tables, readable as a table itself. */
#define LAC_NSYS_SCHEMA "sqlite_schema"

/** Rows of one table: the named columns, NULL where the table has no such column. */
struct lac_nsys_rows {
    struct lac_nsys_db *db;
    struct sqlite3_stmt *statement; /**< NULL with `pages` NULL: the table is not there */
    struct lac_nsys_pages *pages;   /**< read without SQLite, into `values` */
    struct lac_nsys_value values[LAC_NSYS_COLUMNS_MAX];
    const char *table;
    uint64_t count;
    bool is_event;
    uint32_t present; /**< bit i: the table has column i */
};

/** @return LAC_OK, LAC_ERR_IO, LAC_ERR_CORRUPT, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_nsys_db_open(struct lac_nsys_db *db, const char *path,
                                              const struct lac_import_options *options,
                                              struct lac_error *reterr);
/** The same of an open file, which stays the caller's. */
LAC_MUST_USE enum lac_status lac_nsys_db_open_fd(struct lac_nsys_db *db, int fd,
                                                 const struct lac_import_options *options,
                                                 struct lac_error *reterr);
/** The same of a database as SQL text (nsys_dump.h), read into memory. */
LAC_MUST_USE enum lac_status lac_nsys_db_open_dump(struct lac_nsys_db *db,
                                                   struct lac_source *source,
                                                   const struct lac_import_options *options,
                                                   struct lac_error *reterr);
void lac_nsys_db_close(struct lac_nsys_db *db);

/** Whether there is an ordinary table of that name. False also when looking failed: the next
 *  lac_nsys_rows_open() or lac_nsys_db_status() says so. */
bool lac_nsys_db_has(struct lac_nsys_db *db, const char *table);

/** Whether that is how the schema makes an ordinary table: no view, nothing virtual. */
bool lac_nsys_db_is_plain(const char *sql, size_t size);

/** Highest rowid of an ordinary table: its number of rows in an export; 0 when empty. */
uint64_t lac_nsys_db_row_count(struct lac_nsys_db *db, const char *table);

/**
 * Whether all rows of a table hold the same integer in a column: far faster than reading them.
 *
 * @param ret_has_rows, ret_value  whether there is a row, and that integer
 * @return true also when there is no such table or row; false when they differ, are no integers, or
 * it cannot be told: reading the rows then says why
 */
bool lac_nsys_db_is_only(struct lac_nsys_db *db, const char *table, const char *column,
                         bool *ret_has_rows, int64_t *ret_value);

/** Whether a look-up has failed. @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_nsys_db_status(struct lac_nsys_db *db);

/**
 * Prepare to read a table.
 *
 * @param columns  names, ended by NULL, at most LAC_NSYS_COLUMNS_MAX
 * @param only     NULL, or a condition of ours on the first column ("IN (33, 39)"): no rows where
 * the table has no such column
 * @param is_event whether its rows count as events
 * @return LAC_OK (also when the table is missing), LAC_ERR_CORRUPT, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_nsys_rows_open(struct lac_nsys_rows *rows, struct lac_nsys_db *db,
                                                const char *table, const char *const *columns,
                                                const char *only, bool is_event);

/** Next row. @return LAC_OK and whether there is one; LAC_ERR_CORRUPT, _LIMIT, _IO, _NOMEM */
LAC_MUST_USE enum lac_status lac_nsys_rows_next(struct lac_nsys_rows *rows, bool *ret_found);

void lac_nsys_rows_close(struct lac_nsys_rows *rows);

/** The integer in column `column`; false when it is NULL or of another type. */
bool lac_nsys_rows_integer(const struct lac_nsys_rows *rows, int column, int64_t *ret_value);

/** The same with a default. */
int64_t lac_nsys_rows_integer_or(const struct lac_nsys_rows *rows, int column, int64_t otherwise);

/** The same, forced into uint32_t: `otherwise` when it does not fit. */
uint32_t lac_nsys_rows_u32(const struct lac_nsys_rows *rows, int column, uint32_t otherwise);

/** The finite number in a column, whole or not; false when it is none. */
bool lac_nsys_rows_real(const struct lac_nsys_rows *rows, int column, double *ret_value);

/** Bytes of a text column, any content; NULL when it is not text. Valid until the next row. */
const char *lac_nsys_rows_text(const struct lac_nsys_rows *rows, int column, size_t *ret_size);

/** Bytes of a blob; NULL when it is none or empty. Valid until the next row. */
const unsigned char *lac_nsys_rows_blob(const struct lac_nsys_rows *rows, int column,
                                        size_t *ret_size);

/** Whether the table has that column. */
static inline bool lac_nsys_rows_has(const struct lac_nsys_rows *rows, int column)
{
    return ((rows->present >> (unsigned)column) & 1u) != 0;
}

#endif
