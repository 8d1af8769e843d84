#include "server/sql/sql_query.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The progress handler is called after so many instructions of SQLite's machine: about 0.1 ms. */
enum { PROGRESS_STEPS = 10000 };

/** What one value may take, and so one text that a function makes. */
enum { VALUE_BYTES_MAX = 16 << 20 };

static struct lac_sql_trace *find_trace(void *context)
{
    return context;
}

static int check_time(void *context)
{
    return lac_sql_trace_is_late(context);
}

/** Only reading, and only what is here. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)context;
    (void)first;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return second != NULL && strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static void set_limits(sqlite3 *db)
{
    static const struct {
        int id, value;
    } limits[] = {{SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX},
                  {SQLITE_LIMIT_SQL_LENGTH, LAC_SQL_TEXT_BYTES_MAX},
                  {SQLITE_LIMIT_COLUMN, 256},
                  {SQLITE_LIMIT_EXPR_DEPTH, 200},
                  {SQLITE_LIMIT_COMPOUND_SELECT, 100},
                  {SQLITE_LIMIT_VDBE_OP, 250000},
                  {SQLITE_LIMIT_FUNCTION_ARG, 64},
                  {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
                  {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < LAC_COUNT_OF(limits); i++) {
        (void)sqlite3_limit(db, limits[i].id, limits[i].value);
    }
}

/** SQLite's last error as ours. */
static enum lac_status fail(sqlite3 *db, int code, const struct lac_sql_trace *trace,
                            const struct lac_sql_limits *limits, struct lac_error *reterr)
{
    if (code == SQLITE_INTERRUPT || lac_sql_trace_is_late(trace)) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the query took longer than %u s",
                        limits->seconds);
    }
    if (code == SQLITE_NOMEM && limits->memory_bytes > 0) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the query needs more than %llu MiB of memory",
                        (unsigned long long)(limits->memory_bytes >> 20));
    }
    if (code == SQLITE_NOMEM) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (code == SQLITE_AUTH) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "only queries that read are allowed: SELECT");
    }
    return lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s", sqlite3_errmsg(db));
}

/** Make SQLite declare every table now: declaring is what the authorizer refuses later. */
static int declare_all(sqlite3 *db)
{
    int code = SQLITE_OK;
    for (const struct lac_sql_table *const *table = lac_sql_tables();
         *table != NULL && code == SQLITE_OK; table++) {
        sqlite3_stmt *statement = NULL;
        char *text = sqlite3_mprintf("SELECT 1 FROM \"%w\"", (*table)->name);
        code = text != NULL ? sqlite3_prepare_v2(db, text, -1, &statement, NULL) : SQLITE_NOMEM;
        (void)sqlite3_finalize(statement);
        sqlite3_free(text);
    }
    return code;
}

static enum lac_status open_db(struct lac_sql_trace *trace, struct lac_sql_many *many,
                               sqlite3 **ret_db, struct lac_error *reterr)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);
    if (code == SQLITE_OK) {
        /* what does not fit into memory fails, and writes no file */
        code = sqlite3_exec(db, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        code = many != NULL ? lac_sql_register_many(db, many)
                            : lac_sql_register(db, find_trace, trace);
    }
    if (code == SQLITE_OK) {
        code = declare_all(db);
    }
    if (code != SQLITE_OK) {
        (void)sqlite3_close(db);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite could not be started");
    }
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    set_limits(db);
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    *ret_db = db;
    return LAC_OK;
}

static enum lac_status prepare(sqlite3 *db, const char *text, sqlite3_stmt **ret_statement,
                               const struct lac_sql_trace *trace,
                               const struct lac_sql_limits *limits, struct lac_error *reterr)
{
    const char *rest = NULL;
    sqlite3_stmt *more = NULL;
    if (strlen(text) > LAC_SQL_TEXT_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a query has at most %d bytes",
                        LAC_SQL_TEXT_BYTES_MAX);
    }
    int code = sqlite3_prepare_v2(db, text, -1, ret_statement, &rest);
    if (code != SQLITE_OK) {
        return fail(db, code, trace, limits, reterr);
    }
    if (*ret_statement == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the query is empty");
    }
    /* what follows may be blanks and comments, but no second statement */
    code = sqlite3_prepare_v2(db, rest, -1, &more, NULL);
    bool is_more = code != SQLITE_OK || more != NULL;
    (void)sqlite3_finalize(more);
    if (is_more) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "one query at a time: text follows the first");
    }
    return sqlite3_stmt_readonly(*ret_statement) != 0 && sqlite3_column_count(*ret_statement) > 0
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_MISUSE, 0, "only queries that read are allowed: SELECT");
}

static void read_cell(sqlite3_stmt *statement, int column, struct lac_sql_cell *cell)
{
    *cell = (struct lac_sql_cell){.type = LAC_SQL_NULL};
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        cell->type = LAC_SQL_INTEGER;
        cell->integer = sqlite3_column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        cell->type = LAC_SQL_REAL;
        cell->real = sqlite3_column_double(statement, column);
        break;
    case SQLITE_TEXT:
        cell->type = LAC_SQL_TEXT;
        cell->bytes = (const char *)sqlite3_column_text(statement, column);
        cell->size_bytes = (size_t)sqlite3_column_bytes(statement, column);
        break;
    case SQLITE_BLOB:
        cell->type = LAC_SQL_BLOB;
        cell->bytes = sqlite3_column_blob(statement, column);
        cell->size_bytes = (size_t)sqlite3_column_bytes(statement, column);
        break;
    default:
        break;
    }
    if (cell->bytes == NULL && cell->size_bytes > 0) {
        cell->size_bytes = 0; /* out of memory: the next step says so */
    }
}

static enum lac_status run(sqlite3 *db, sqlite3_stmt *statement, const struct lac_sql_trace *trace,
                           const struct lac_sql_limits *limits, const struct lac_sql_sink *sink,
                           struct lac_error *reterr)
{
    unsigned count = (unsigned)sqlite3_column_count(statement);
    const char **names = calloc(count + 1, sizeof(*names));
    struct lac_sql_cell *cells = calloc(count + 1, sizeof(*cells));
    bool is_wanted = names != NULL && cells != NULL;
    enum lac_status status =
        is_wanted ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    for (unsigned c = 0; c < count && is_wanted; c++) {
        const char *name = sqlite3_column_name(statement, (int)c);
        names[c] = name != NULL ? name : "";
    }
    is_wanted = is_wanted && sink->columns(sink->context, names, count);
    while (is_wanted) {
        int code = sqlite3_step(statement);
        if (code != SQLITE_ROW) {
            status = code == SQLITE_DONE ? LAC_OK : fail(db, code, trace, limits, reterr);
            break;
        }
        for (unsigned c = 0; c < count; c++) {
            read_cell(statement, (int)c, &cells[c]);
        }
        is_wanted = sink->row(sink->context, cells, count);
    }
    free((void *)names);
    free(cells);
    return status;
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** @param trace the one; with `many` the first of them, whose clock counts for all */
static enum lac_status query(struct lac_sql_trace *trace, struct lac_sql_many *many,
                             const char *text, const struct lac_sql_limits *limits,
                             const struct lac_sql_sink *sink, struct lac_error *reterr)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    enum lac_status status = open_db(trace, many, &db, reterr);
    if (status) {
        return status;
    }
    trace->late_ns = limits->seconds > 0 ? now_ns() + (int64_t)limits->seconds * 1000000000 : 0;
    for (unsigned i = 0; many != NULL && i < many->count; i++) {
        many->traces[i].late_ns = trace->late_ns;
    }
    sqlite3_progress_handler(db, PROGRESS_STEPS, check_time, trace);
    if (limits->memory_bytes > 0) {
        (void)sqlite3_hard_heap_limit64(sqlite3_memory_used() +
                                        (sqlite3_int64)limits->memory_bytes);
    }
    status = prepare(db, text, &statement, trace, limits, reterr);
    if (status == LAC_OK) {
        status = run(db, statement, trace, limits, sink, reterr);
    }
    (void)sqlite3_finalize(statement);
    if (limits->memory_bytes > 0) {
        (void)sqlite3_hard_heap_limit64(0);
    }
    (void)sqlite3_close(db);
    trace->late_ns = 0;
    for (unsigned i = 0; many != NULL && i < many->count; i++) {
        many->traces[i].late_ns = 0;
    }
    return status;
}

enum lac_status lac_sql_query(struct lac_sql_trace *trace, const char *text,
                              const struct lac_sql_limits *limits, const struct lac_sql_sink *sink,
                              struct lac_error *reterr)
{
    assert(trace != NULL && text != NULL && limits != NULL && sink != NULL);
    return query(trace, NULL, text, limits, sink, reterr);
}

enum lac_status lac_sql_query_many(struct lac_sql_many *many, const char *text,
                                   const struct lac_sql_limits *limits,
                                   const struct lac_sql_sink *sink, struct lac_error *reterr)
{
    assert(many != NULL && many->count > 0 && text != NULL && limits != NULL && sink != NULL);
    return query(&many->traces[0], many, text, limits, sink, reterr);
}
