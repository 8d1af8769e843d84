#include "server/sql/export_sqlite.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/sql/sql_query.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char indexes[] = "CREATE INDEX slices_track ON slices(track, start_ns);"
                              "CREATE INDEX slices_name ON slices(name);"
                              "CREATE INDEX slices_kind ON slices(kind);"
                              "CREATE INDEX gaps_device ON gaps(device, start_ns);"
                              "COMMIT;";

struct writer {
    const struct lac_export_sqlite *source;
    struct lac_sql_trace trace;
    sqlite3 *from, *to;
    const struct lac_sql_table *table;
    int kind_column; /**< of the table, -1 none */
};

static struct lac_sql_trace *find_trace(void *context)
{
    return context;
}

static unsigned shown_columns(const struct lac_sql_table *table)
{
    return table->column_count - table->argument_count;
}

static const struct lac_sql_table *slices_table(void)
{
    return &lac_sql_slice_tables[0];
}

/** Whether `slices` says all that the table says. */
static bool is_view(const struct lac_sql_table *table)
{
    const struct lac_sql_table *slices = slices_table();
    if (table == slices || table->slice_columns == NULL) {
        return false;
    }
    for (unsigned c = 0; c < table->column_count; c++) {
        if (memchr(slices->slice_columns, table->slice_columns[c], slices->column_count) == NULL) {
            return false;
        }
    }
    return true;
}

/** "CREATE VIEW t AS SELECT ... FROM slices WHERE kind IN (...)"; sqlite3_free() it. */
static char *view_text(const struct lac_sql_table *table)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    const char *before = "";
    sqlite3_str_appendf(text, "CREATE VIEW \"%w\" AS SELECT ", table->name);
    for (unsigned c = 0; c < table->column_count; c++) {
        sqlite3_str_appendf(text, "%s\"%w\"", c > 0 ? "," : "",
                            lac_sql_table_column(table, c)->name);
    }
    sqlite3_str_appendall(text, " FROM slices WHERE kind IN (");
    for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_; kind++) {
        if ((table->kinds >> kind & 1) != 0) {
            sqlite3_str_appendf(text, "%s'%q'", before,
                                lac_slice_kind_name((enum lac_slice_kind)kind));
            before = ",";
        }
    }
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

/** "CREATE TABLE t(...)", or with `is_insert` "INSERT INTO t VALUES(?,...)". */
static char *table_text(const struct lac_sql_table *table, bool is_insert)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, is_insert ? "INSERT INTO \"%w\" VALUES(" : "CREATE TABLE \"%w\"(",
                        table->name);
    for (unsigned c = 0; c < shown_columns(table); c++) {
        const struct lac_sql_column *column = lac_sql_table_column(table, c);
        bool is_key = strcmp(column->name, "id") == 0 && strcmp(column->type, "INTEGER") == 0;
        sqlite3_str_appendall(text, c > 0 ? "," : "");
        if (is_insert) {
            sqlite3_str_appendall(text, "?");
        } else {
            sqlite3_str_appendf(text, "\"%w\" %s%s", column->name, column->type,
                                is_key ? " PRIMARY KEY" : "");
        }
    }
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

/* -- one value --------------------------------------------------------------------------------- */

static bool names_people(const char *kind)
{
    return kind == NULL || strcmp(kind, "range") == 0 || strcmp(kind, "python") == 0 ||
           strcmp(kind, "gpu_range") == 0 || strcmp(kind, "instant") == 0 ||
           strcmp(kind, "other") == 0;
}

/** Whether a person named the row of the timeline that a line is about: of GPUs and of ours none did. */
static bool names_row(const struct writer *writer, sqlite3_stmt *get, const char *name)
{
    static const char *const ours[] = {"stream", "gpu_range", "steps", "gaps"};
    const char *kind = "counter";
    for (unsigned c = 0; c < shown_columns(writer->table); c++) {
        if (strcmp(lac_sql_table_column(writer->table, c)->name, "kind") == 0) {
            kind = (const char *)sqlite3_column_text(get, (int)c);
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(ours); i++) {
        if (kind == NULL || strcmp(kind, ours[i]) == 0) {
            return false;
        }
    }
    return strcmp(kind, "counter") != 0 || !lac_names_counter_is_measured(name);
}

/** Whose words the value is. */
static enum lac_export_text words_of(const struct writer *writer, sqlite3_stmt *get, int column,
                                     const char *text)
{
    uint8_t words = lac_sql_table_column(writer->table, (unsigned)column)->words;
    const char *kind = writer->kind_column >= 0
                           ? (const char *)sqlite3_column_text(get, writer->kind_column)
                           : NULL;
    switch (words) {
    case LAC_SQL_WORDS_ARGV:
        return LAC_EXPORT_TEXT_ARGV;
    case LAC_SQL_WORDS_ARGS:
        return LAC_EXPORT_TEXT_ARGS;
    case LAC_SQL_WORDS_SENTENCE:
        return LAC_EXPORT_TEXT_SENTENCE;
    case LAC_SQL_WORDS_TRACK:
        return names_row(writer, get, text) ? LAC_EXPORT_TEXT_ROW : LAC_EXPORT_TEXT_PLAIN;
    case LAC_SQL_WORDS_GIVEN:
        if (writer->table->slice_columns != NULL && writer->kind_column < 0 &&
            (writer->table->kinds &
             (1U << LAC_SLICE_RANGE | 1U << LAC_SLICE_PYTHON | 1U << LAC_SLICE_INSTANT)) == 0) {
            return LAC_EXPORT_TEXT_PLAIN;
        }
        return names_people(kind) && lac_names_host_class(text, strlen(text)) == LAC_HOST_OTHER
                   ? LAC_EXPORT_TEXT_GIVEN
                   : LAC_EXPORT_TEXT_PLAIN;
    default:
        return LAC_EXPORT_TEXT_PLAIN;
    }
}

/** Text is copied: what text() gives is borrowed only until its next call. */
static void bind_value(const struct writer *writer, sqlite3_stmt *get, sqlite3_stmt *put,
                       int column)
{
    if (sqlite3_column_type(get, column) != SQLITE_TEXT) {
        (void)sqlite3_bind_value(put, column + 1, sqlite3_column_value(get, column));
        return;
    }
    const char *text = (const char *)sqlite3_column_text(get, column);
    const char *plain = text != NULL
                            ? writer->source->text(writer->source->context,
                                                   words_of(writer, get, column, text), text)
                            : "";
    if (plain[0] == '\0') {
        (void)sqlite3_bind_null(put, column + 1);
    } else {
        (void)sqlite3_bind_text(put, column + 1, plain, -1, SQLITE_TRANSIENT);
    }
}

/* -- one table --------------------------------------------------------------------------------- */

static enum lac_status run_made(sqlite3 *db, char *text, struct lac_error *reterr)
{
    enum lac_status status = text != NULL ? lac_sql_run(db, text, reterr)
                                          : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    sqlite3_free(text);
    return status;
}

static enum lac_status prepare_made(sqlite3 *db, char *text, sqlite3_stmt **ret_statement,
                                    struct lac_error *reterr)
{
    enum lac_status status = text != NULL ? lac_sql_prepare(db, text, ret_statement, reterr)
                                          : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    sqlite3_free(text);
    return status;
}

static int kind_column(const struct lac_sql_table *table)
{
    for (unsigned c = 0; table->slice_columns != NULL && c < table->column_count; c++) {
        if (strcmp(lac_sql_table_column(table, c)->name, "kind") == 0) {
            return (int)c;
        }
    }
    return -1;
}

static enum lac_status copy_rows(struct writer *writer, struct lac_error *reterr)
{
    const struct lac_sql_table *table = writer->table;
    sqlite3_stmt *get = NULL;
    sqlite3_stmt *put = NULL;
    enum lac_status status = prepare_made(
        writer->from, sqlite3_mprintf("SELECT * FROM \"%w\"", table->name), &get, reterr);
    if (status == LAC_OK) {
        status = prepare_made(writer->to, table_text(table, true), &put, reterr);
    }
    while (status == LAC_OK) {
        int code = sqlite3_step(get);
        if (code == SQLITE_DONE) {
            break;
        }
        if (code != SQLITE_ROW) {
            status = lac_fail(reterr, code == SQLITE_NOMEM ? LAC_ERR_NOMEM : LAC_ERR_CORRUPT, 0,
                              "%s", sqlite3_errmsg(writer->from));
            break;
        }
        for (unsigned c = 0; c < shown_columns(table); c++) {
            bind_value(writer, get, put, (int)c);
        }
        status = lac_sql_step_done(put, "writing a table", reterr);
    }
    (void)sqlite3_finalize(get);
    (void)sqlite3_finalize(put);
    return status;
}

static bool is_exported(const struct lac_sql_table *table)
{
    bool is_function = false;
    for (unsigned f = 0; f < lac_sql_function_count; f++) {
        is_function = is_function || table == lac_sql_functions[f];
    }
    return !is_function && strcmp(table->name, "strings") != 0;
}

static enum lac_status write_tables(struct writer *writer, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    for (const struct lac_sql_table *const *table = lac_sql_tables();
         *table != NULL && status == LAC_OK; table++) {
        if (!is_exported(*table)) {
            continue;
        }
        writer->table = *table;
        writer->kind_column = kind_column(*table);
        if (is_view(*table)) {
            status = run_made(writer->to, view_text(*table), reterr);
        } else {
            status = run_made(writer->to, table_text(*table, false), reterr);
            status = status ? status : copy_rows(writer, reterr);
        }
    }
    return status;
}

enum lac_status lac_export_sqlite(const struct lac_export_sqlite *source, const char *path,
                                  struct lac_error *reterr)
{
    assert(source != NULL && path != NULL);
    struct writer writer = {.source = source};
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    lac_sql_trace_init(&writer.trace, source->file);
    enum lac_status status = lac_sql_init(reterr);
    if (!status && sqlite3_open_v2(path, &writer.to, flags, LAC_CHECKED_VFS) != SQLITE_OK) {
        status = lac_sql_fail(writer.to, "opening the file", reterr);
    }
    if (!status && (sqlite3_open_v2(":memory:", &writer.from, flags, NULL) != SQLITE_OK ||
                    lac_sql_register(writer.from, find_trace, &writer.trace) != SQLITE_OK)) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite could not be started");
    }
    if (!status) {
        status = lac_sql_run(writer.to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;",
                             reterr);
    }
    if (!status) {
        status = write_tables(&writer, reterr);
    }
    if (!status) {
        status = lac_sql_run(writer.to, indexes, reterr);
    }
    (void)sqlite3_close(writer.from);
    (void)sqlite3_close(writer.to);
    lac_sql_trace_done(&writer.trace);
    return status;
}

/* -- the rows of one table, as text ------------------------------------------------------------ */

enum { COLUMNS_MAX = 64 };

/** The row that `get` is at. Texts are copied into `texts`: what text() gives is borrowed only until
 *  its next call. @return false: out of memory */
static bool read_row(const struct writer *writer, sqlite3_stmt *get, struct lac_buffer *texts,
                     struct lac_sql_cell *cells, unsigned count)
{
    size_t at[COLUMNS_MAX] = {0};
    texts->size_bytes = 0;
    for (unsigned c = 0; c < count; c++) {
        const int type = sqlite3_column_type(get, (int)c);
        cells[c] = (struct lac_sql_cell){.type = type == SQLITE_INTEGER ? LAC_SQL_INTEGER
                                                 : type == SQLITE_FLOAT ? LAC_SQL_REAL
                                                 : type == SQLITE_TEXT  ? LAC_SQL_TEXT
                                                                        : LAC_SQL_NULL,
                                         .integer = sqlite3_column_int64(get, (int)c),
                                         .real = sqlite3_column_double(get, (int)c)};
        const char *text =
            cells[c].type == LAC_SQL_TEXT ? (const char *)sqlite3_column_text(get, (int)c) : NULL;
        if (text != NULL) {
            const char *plain = writer->source->text(writer->source->context,
                                                     words_of(writer, get, (int)c, text), text);
            at[c] = texts->size_bytes;
            cells[c].size_bytes = strlen(plain);
            cells[c].type = plain[0] != '\0' ? LAC_SQL_TEXT : LAC_SQL_NULL;
            lac_buffer_add(texts, plain, cells[c].size_bytes + 1);
        }
    }
    for (unsigned c = 0; c < count && texts->status == LAC_OK; c++) {
        cells[c].bytes = cells[c].type == LAC_SQL_TEXT ? texts->bytes + at[c] : "";
    }
    return texts->status == LAC_OK;
}

static enum lac_status give_rows(const struct writer *writer, const struct lac_sql_sink *sink,
                                 struct lac_error *reterr)
{
    const unsigned count = shown_columns(writer->table);
    const char *names[COLUMNS_MAX];
    struct lac_sql_cell cells[COLUMNS_MAX];
    struct lac_buffer texts = {0};
    sqlite3_stmt *get = NULL;
    assert(count <= COLUMNS_MAX);
    for (unsigned c = 0; c < count; c++) {
        names[c] = lac_sql_table_column(writer->table, c)->name;
    }
    enum lac_status status = prepare_made(
        writer->from, sqlite3_mprintf("SELECT * FROM \"%w\"", writer->table->name), &get, reterr);
    bool goes_on = !status && sink->columns(sink->context, names, count);
    while (goes_on) {
        int code = sqlite3_step(get);
        if (code == SQLITE_ROW && read_row(writer, get, &texts, cells, count)) {
            goes_on = sink->row(sink->context, cells, count);
            continue;
        }
        if (code != SQLITE_DONE) {
            bool has_memory = code != SQLITE_NOMEM && texts.status == LAC_OK;
            status = lac_fail(reterr, has_memory ? LAC_ERR_CORRUPT : LAC_ERR_NOMEM, 0, "%s",
                              has_memory ? sqlite3_errmsg(writer->from) : "out of memory");
        }
        goes_on = false;
    }
    (void)sqlite3_finalize(get);
    lac_buffer_done(&texts);
    return status;
}

enum lac_status lac_export_table(const struct lac_export_sqlite *source, const char *table,
                                 const struct lac_sql_sink *sink, struct lac_error *reterr)
{
    assert(source != NULL && table != NULL && sink != NULL);
    struct writer writer = {.source = source, .table = lac_sql_table_named(table)};
    if (writer.table == NULL) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "there is no table of that name");
    }
    writer.kind_column = kind_column(writer.table);
    lac_sql_trace_init(&writer.trace, source->file);
    enum lac_status status = lac_sql_init(reterr);
    if (!status &&
        (sqlite3_open_v2(":memory:", &writer.from, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                         NULL) != SQLITE_OK ||
         lac_sql_register(writer.from, find_trace, &writer.trace) != SQLITE_OK)) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite could not be started");
    }
    if (!status) {
        status = give_rows(&writer, sink, reterr);
    }
    (void)sqlite3_close(writer.from);
    lac_sql_trace_done(&writer.trace);
    return status;
}
