#include "server/store/database/copy.h"

#include "analysis/model/status.h"
#include "server/store/database/database.h"
#include "server/store/database/sqlite_database.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES_MAX = 64, COLUMNS_MAX = 64, NAME_BYTES = 64, SQL_BYTES = 16384 };

struct column {
    char name[NAME_BYTES];
    char type; /**< 'I', 'R', 'T' or 'B': the first letter of its declaration */
};

struct table {
    char name[NAME_BYTES];
    struct column columns[COLUMNS_MAX];
    int column_count;
    int number_column; /**< which column the database fills with the next number, or -1 */
};

struct copy {
    struct lac_db *from, *to;
    struct table *tables;
    int table_count;
    char sql[SQL_BYTES];
    struct lac_db_copied copied;
    struct lac_error *reterr;
};

/* -- tables ------------------------------------------------------------------------------------ */

static enum lac_status too_many(struct copy *copy)
{
    return lac_fail(copy->reterr, LAC_ERR_CORRUPT, 0,
                    "the catalog has tables that are not of this program");
}

static bool take_name(struct lac_statement *get, int column, char *out)
{
    const char *const name = lac_db_text(get, column);
    const int length = snprintf(out, NAME_BYTES, "%s", name != NULL ? name : "");

    return length > 0 && length < NAME_BYTES &&
           strspn(out, "abcdefghijklmnopqrstuvwxyz0123456789_") == (size_t)length;
}

static enum lac_status read_columns(struct copy *copy, struct lac_db *file, struct table *table)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        file, "SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid", &get, copy->reterr);
    int key_count = 0;

    table->number_column = -1;
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, table->name);
    }
    while (status == LAC_OK &&
           (status = lac_db_step_row(get, "catalog.db", copy->reterr)) == LAC_OK) {
        struct column *const column = &table->columns[table->column_count];

        if (table->column_count == COLUMNS_MAX || !take_name(get, 0, column->name)) {
            status = too_many(copy);
            break;
        }
        column->type = lac_db_text(get, 1)[0];
        if (lac_db_int(get, 2) > 0) {
            table->number_column = key_count == 0 && column->type == 'I' ? table->column_count : -1;
            key_count++;
        }
        table->column_count++;
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** In the order in which they were made: what a row refers to comes before it. */
static enum lac_status read_tables(struct copy *copy, struct lac_db *file)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(file,
                                            "SELECT name FROM sqlite_master WHERE type = 'table'"
                                            " AND substr(name, 1, 7) <> 'sqlite_' ORDER BY rowid",
                                            &get, copy->reterr);

    while (status == LAC_OK &&
           (status = lac_db_step_row(get, "catalog.db", copy->reterr)) == LAC_OK) {
        if (copy->table_count == TABLES_MAX ||
            !take_name(get, 0, copy->tables[copy->table_count].name)) {
            status = too_many(copy);
            break;
        }
        copy->table_count++;
    }
    lac_db_finalize(get);
    status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    for (int i = 0; i < copy->table_count && status == LAC_OK; i++) {
        status = read_columns(copy, file, &copy->tables[i]);
    }
    return status;
}

/* -- rows -------------------------------------------------------------------------------------- */

/** "BEFORE a, b, c": all columns of a table. */
static void list_columns(struct copy *copy, const char *before, const struct table *table)
{
    int length = snprintf(copy->sql, sizeof(copy->sql), "%s", before);

    for (int i = 0; i < table->column_count; i++) {
        length += snprintf(copy->sql + length, sizeof(copy->sql) - (size_t)length, "%s%s",
                           i > 0 ? ", " : "", table->columns[i].name);
    }
}

static enum lac_status prepare_get(struct copy *copy, const struct table *table,
                                   struct lac_statement **ret_get)
{
    list_columns(copy, "SELECT ", table);
    const size_t length = strlen(copy->sql);

    (void)snprintf(copy->sql + length, sizeof(copy->sql) - length, " FROM %s", table->name);
    return lac_db_prepare(copy->from, copy->sql, ret_get, copy->reterr);
}

static enum lac_status prepare_put(struct copy *copy, const struct table *table,
                                   struct lac_statement **ret_put)
{
    char before[NAME_BYTES + 16];

    (void)snprintf(before, sizeof(before), "INSERT INTO %s(", table->name);
    list_columns(copy, before, table);
    size_t length = strlen(copy->sql);

    length += (size_t)snprintf(copy->sql + length, sizeof(copy->sql) - length, ") VALUES(");
    for (int i = 0; i < table->column_count; i++) {
        length += (size_t)snprintf(copy->sql + length, sizeof(copy->sql) - length, "%s?",
                                   i > 0 ? ", " : "");
    }
    (void)snprintf(copy->sql + length, sizeof(copy->sql) - length, ")");
    return lac_db_prepare(copy->to, copy->sql, ret_put, copy->reterr);
}

/** What the row of `get` has; null stays null. */
static void bind_row(const struct table *table, struct lac_statement *get,
                     struct lac_statement *put)
{
    for (int i = 0; i < table->column_count; i++) {
        if (lac_db_is_null(get, i)) {
            continue;
        }
        switch (table->columns[i].type) {
        case 'I':
            lac_db_bind_i64(put, i + 1, lac_db_i64(get, i));
            break;
        case 'R':
            lac_db_bind_f64(put, i + 1, lac_db_f64(get, i));
            break;
        case 'B': {
            const void *const bytes = lac_db_blob(get, i);

            lac_db_bind_blob(put, i + 1, bytes != NULL ? bytes : "", lac_db_bytes(get, i));
            break;
        }
        default:
            lac_db_bind_text(put, i + 1, lac_db_text(get, i));
        }
    }
}

static enum lac_status copy_rows(struct copy *copy, const struct table *table)
{
    struct lac_statement *get = NULL;
    struct lac_statement *put = NULL;
    enum lac_status status = prepare_get(copy, table, &get);

    if (status == LAC_OK) {
        status = prepare_put(copy, table, &put);
    }
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", copy->reterr)) == LAC_OK) {
        bind_row(table, get, put);
        status = lac_db_step_done(put, table->name, copy->reterr);
        copy->copied.row_count += status == LAC_OK;
    }
    lac_db_finalize(put);
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status empty(struct copy *copy)
{
    enum lac_status status = LAC_OK;

    for (int i = copy->table_count - 1; i >= 0 && status == LAC_OK; i--) {
        (void)snprintf(copy->sql, sizeof(copy->sql), "DELETE FROM %s", copy->tables[i].name);
        status = lac_db_run(copy->to, copy->sql, copy->reterr);
    }
    return status;
}

/* -- numbers ----------------------------------------------------------------------------------- */

/** The first column of the one row; 0 where it is null or there is none. `sql` has one parameter at
 *  most, the name of the table. */
static enum lac_status ask_number(struct copy *copy, struct lac_db *db, const struct table *table,
                                  const char *sql, int64_t *ret_number)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &get, copy->reterr);

    *ret_number = 0;
    if (status == LAC_OK) {
        if (lac_db_parameter_count(get) > 0) {
            lac_db_bind_text(get, 1, table->name);
        }
        status = lac_db_step_row(get, "catalog", copy->reterr);
    }
    if (status == LAC_OK) {
        *ret_number = lac_db_i64(get, 0);
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** The largest number that `from` gave, also to a row that is no more. */
static enum lac_status last_number(struct copy *copy, const struct table *table, int64_t *ret_last)
{
    const char *const column = table->columns[table->number_column].name;
    int64_t given = 0;
    enum lac_status status;

    (void)snprintf(copy->sql, sizeof(copy->sql), "SELECT max(%s) FROM %s", column, table->name);
    status = ask_number(copy, copy->from, table, copy->sql, ret_last);
    if (status != LAC_OK) {
        return status;
    }
    if (lac_db_sqlite(copy->from) != NULL) {
        status = ask_number(copy, copy->from, table,
                            "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1", &given);
    } else {
        (void)snprintf(
            copy->sql, sizeof(copy->sql),
            "SELECT pg_sequence_last_value(pg_get_serial_sequence('%s', '%s')::regclass)",
            table->name, column);
        status = ask_number(copy, copy->from, table, copy->sql, &given);
    }
    *ret_last = given > *ret_last ? given : *ret_last;
    return status;
}

static enum lac_status number_behind(struct copy *copy, const struct table *table)
{
    int64_t last = 0;
    int64_t known = 0;
    enum lac_status status = last_number(copy, table, &last);

    if (status != LAC_OK || last <= 0) {
        return status;
    }
    if (lac_db_sqlite(copy->to) == NULL) {
        (void)snprintf(copy->sql, sizeof(copy->sql),
                       "SELECT setval(pg_get_serial_sequence('%s', '%s'), %lld)", table->name,
                       table->columns[table->number_column].name, (long long)last);
        return ask_number(copy, copy->to, table, copy->sql, &known);
    }
    /* a table that only counts its rows has no line there: its next number is behind the largest */
    (void)snprintf(copy->sql, sizeof(copy->sql),
                   "UPDATE sqlite_sequence SET seq = %lld WHERE name = '%s'", (long long)last,
                   table->name);
    status = lac_db_run(copy->to, copy->sql, copy->reterr);
    if (status == LAC_OK && lac_db_changes(copy->to) == 0) {
        (void)snprintf(copy->sql, sizeof(copy->sql),
                       "INSERT INTO sqlite_sequence(name, seq) SELECT name, %lld FROM sqlite_master"
                       " WHERE name = '%s' AND sql LIKE '%%AUTOINCREMENT%%'",
                       (long long)last, table->name);
        status = lac_db_run(copy->to, copy->sql, copy->reterr);
    }
    return status;
}

/* -- all of it --------------------------------------------------------------------------------- */

static enum lac_status copy_all(struct copy *copy)
{
    enum lac_status status =
        read_tables(copy, lac_db_sqlite(copy->from) != NULL ? copy->from : copy->to);

    if (status == LAC_OK) {
        status = empty(copy);
    }
    for (int i = 0; i < copy->table_count && status == LAC_OK; i++) {
        status = copy_rows(copy, &copy->tables[i]);
        if (status == LAC_OK && copy->tables[i].number_column >= 0) {
            status = number_behind(copy, &copy->tables[i]);
        }
    }
    copy->copied.table_count = (uint32_t)copy->table_count;
    return status;
}

enum lac_status lac_db_copy(struct lac_db *from, struct lac_db *to,
                            struct lac_db_copied *ret_copied, struct lac_error *reterr)
{
    assert(from != NULL && to != NULL && ret_copied != NULL);
    assert(lac_db_sqlite(from) != NULL || lac_db_sqlite(to) != NULL);
    struct copy *const copy = calloc(1, sizeof(*copy));
    enum lac_status status = LAC_OK;

    *ret_copied = (struct lac_db_copied){0};
    if (copy != NULL) {
        copy->tables = calloc(TABLES_MAX, sizeof(*copy->tables));
    }
    if (copy == NULL || copy->tables == NULL) {
        free(copy);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    copy->from = from;
    copy->to = to;
    copy->reterr = reterr;
    status = lac_db_begin(from, false, reterr);
    if (status == LAC_OK) {
        struct lac_error ignored;

        if (lac_db_sqlite(from) == NULL) { /* while the rows of a large table are written */
            status = lac_db_run(from, "SET LOCAL idle_in_transaction_session_timeout = 0", reterr);
        }
        if (status == LAC_OK) {
            status = lac_db_begin(to, true, reterr);
        }
        if (status == LAC_OK) {
            status = lac_db_end(to, copy_all(copy), reterr);
        }
        (void)!lac_db_end(from, LAC_ERR_NOT_FOUND, &ignored); /* nothing to commit */
    }
    *ret_copied = copy->copied;
    free(copy->tables);
    free(copy);
    return status;
}
