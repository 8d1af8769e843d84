#include "analysis/import/nsys/nsys_db.h"

#include "analysis/import/nsys/nsys_dump.h"
#include "analysis/import/nsys/nsys_pages.h"
#include "analysis/import/nsys/nsys_vfs.h"
#include "analysis/import/source/import_options.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    PROGRESS_STEPS = 20000,   /* virtual machine steps between calls of the handler */
    SILENT_CALLS_MAX = 50000, /* of them without a row: 10^9 steps */
    VALUE_BYTES_MAX = 16 << 20,
    ROW_BYTES_MIN = 4, /* a cell of a table's leaf: its pointer, sizes and header */
    TELL_ROWS = 65536,
    SCHEMA_ROWS_MAX = 5000, /* an export has some hundred */
    SCHEMA_CALLS_MAX = 10,  /* what SQLite needs to read so many: its work grows as their square */
    /* Pages that share their overflow pages, or whose overflow pages point at each other, make
     * more work and more bytes than the file has: what honest rows need, many times over. */
    WORK_ROWS = 256,          /* between looks at the pages that were asked for */
    WORK_PAGES_MIN = 1 << 22, /* of the schema and of look-ups */
    WORK_PAGES_OF_ROW = 64,
    WORK_FILES = 16, /* times that all pages are asked for, of the smallest there are */
    PAGE_BYTES_MIN = 512,
    VALUE_FILES = 8, /* times that its text is handed out: no column is read so often */
};

/* ---- opening ---- */

/* A file name as a URI: all but the plainest characters as %XX. */
static char *uri_of(const char *path)
{
    static const char HEX[] = "0123456789ABCDEF";
    size_t length = strlen(path);
    char *uri = malloc(length * 3 + 32);
    if (uri == NULL) {
        return NULL;
    }
    char *to = stpcpy(uri, "file:");
    for (const char *c = path; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
            (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' || byte == '_' ||
            byte == '-') {
            *to++ = *c;
        } else {
            *to++ = '%';
            *to++ = HEX[byte >> 4];
            *to++ = HEX[byte & 15];
        }
    }
    (void)stpcpy(to, "?immutable=1");
    return uri;
}

/* SQLite quotes the file in its messages: what is not a plain character becomes "?". */
static void plain(const char *message, char *out, size_t capacity)
{
    size_t used = 0;
    for (; message[used] != '\0' && used + 1 < capacity; used++) {
        unsigned char c = (unsigned char)message[used];
        out[used] = message[used];
        if (c < 0x20 || c >= 0x7f) {
            out[used] = '?';
        }
    }
    out[used] = '\0';
}

static enum lac_status too_many_tables(struct lac_nsys_db *db)
{
    return lac_fail(db->reterr, LAC_ERR_LIMIT, 0,
                    "an SQLite file of more than %d tables, views and indexes", SCHEMA_ROWS_MAX);
}

static enum lac_status failed(struct lac_nsys_db *db, int code, const char *table)
{
    char message[121];
    bool is_latest = db->sqlite != NULL && sqlite3_extended_errcode(db->sqlite) == code;
    plain(is_latest ? sqlite3_errmsg(db->sqlite) : sqlite3_errstr(code), message, sizeof(message));
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return lac_fail(db->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return lac_fail(db->reterr, LAC_ERR_IO, 0, "reading the SQLite file: %.120s", message);
    case SQLITE_TOOBIG:
        return lac_fail(db->reterr, LAC_ERR_LIMIT, 0,
                        "a value of more than %d MiB in table %.60s of the SQLite file",
                        VALUE_BYTES_MAX >> 20, table);
    case SQLITE_INTERRUPT:
        if (db->is_canceled) {
            return lac_fail(db->reterr, LAC_ERR_IO, 0, "canceled");
        }
        if (db->is_opening) {
            return too_many_tables(db);
        }
        return lac_fail(db->reterr, LAC_ERR_LIMIT, 0,
                        "table %.60s of the SQLite file takes too long to read: it may be damaged",
                        table);
    default:
        return lac_fail(db->reterr, LAC_ERR_CORRUPT, 0,
                        "table %.60s of the SQLite file: %.100s; export it again", table, message);
    }
}

/* Whether the pages asked for are what rows of such a file need. */
static bool is_honest_work(struct lac_nsys_db *db)
{
    static const int PAGES[] = {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS};
    for (size_t i = 0; i < LAC_COUNT_OF(PAGES); i++) {
        int count = 0;
        int highest = 0;
        if (sqlite3_db_status(db->sqlite, PAGES[i], &count, &highest, 1) == SQLITE_OK) {
            db->pages_asked += (unsigned)count;
        }
    }
    return db->pages_asked <= WORK_PAGES_MIN + WORK_PAGES_OF_ROW * db->row_count +
                                  WORK_FILES * (db->file_bytes / PAGE_BYTES_MIN);
}

/* Called every PROGRESS_STEPS; anything but 0 stops the statement. */
static int on_progress(void *context)
{
    struct lac_nsys_db *db = context;
    const uint64_t most = db->is_opening         ? SCHEMA_CALLS_MAX
                          : db->silent_most != 0 ? db->silent_most
                                                 : SILENT_CALLS_MAX;
    db->is_stuck = ++db->silent_calls > most || !is_honest_work(db);
    return db->is_stuck || db->is_canceled;
}

static enum lac_status defend(struct lac_nsys_db *db)
{
    static const struct {
        int id;
        int value;
    } LIMITS[] = {
        {SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX},
        {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
        {SQLITE_LIMIT_COLUMN, 256},
        {SQLITE_LIMIT_EXPR_DEPTH, 100},
        {SQLITE_LIMIT_COMPOUND_SELECT, 20},
        {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_FUNCTION_ARG, 16},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    static const struct {
        int id;
        int on;
    } SWITCHES[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(LIMITS); i++) {
        (void)sqlite3_limit(db->sqlite, LIMITS[i].id, LIMITS[i].value);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(SWITCHES); i++) {
        if (sqlite3_db_config(db->sqlite, SWITCHES[i].id, SWITCHES[i].on, NULL) != SQLITE_OK) {
            return lac_fail(db->reterr, LAC_ERR_IO, 0, "this SQLite cannot be secured");
        }
    }
    sqlite3_progress_handler(db->sqlite, PROGRESS_STEPS, on_progress, db);
    int code = sqlite3_exec(db->sqlite,
                            "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; "
                            "PRAGMA mmap_size=0; PRAGMA query_only=ON; PRAGMA cache_size=-16384;",
                            NULL, NULL, NULL);
    return code == SQLITE_OK ? LAC_OK : failed(db, code, "sqlite_schema");
}

/* Each look-up goes through all of the schema: it may not be long. */
static enum lac_status check_schema(struct lac_nsys_db *db)
{
    sqlite3_stmt *statement = NULL;
    int64_t count = 0;
    int code =
        sqlite3_prepare_v2(db->sqlite, "SELECT count(*) FROM sqlite_schema", -1, &statement, NULL);
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    if (code == SQLITE_ROW) {
        count = sqlite3_column_int64(statement, 0);
    }
    const enum lac_status status = code == SQLITE_ROW ? LAC_OK : failed(db, code, LAC_NSYS_SCHEMA);
    (void)sqlite3_finalize(statement);
    db->is_opening = false;
    if (status == LAC_OK && count > SCHEMA_ROWS_MAX) {
        return too_many_tables(db);
    }
    return status;
}

/* What the file system of ours opens under that name. */
static enum lac_status open_named(struct lac_nsys_db *db, const char *path)
{
    char *uri = uri_of(path);
    if (uri == NULL) {
        return lac_fail(db->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    int code = sqlite3_open_v2(uri, &db->sqlite,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE,
                               lac_nsys_vfs());
    free(uri);
    enum lac_status status = code == SQLITE_OK ? defend(db) : failed(db, code, "sqlite_schema");
    if (status == LAC_OK) {
        status = check_schema(db);
    }
    if (status != LAC_OK) {
        lac_nsys_db_close(db);
    }
    return status;
}

/* Whether SQLite left a log of changes beside the file: whoever wrote it was interrupted. */
static bool has_log(const char *path)
{
    static const char *const ENDS[] = {"-wal", "-journal"};
    bool found = false;
    for (size_t i = 0; i < LAC_COUNT_OF(ENDS); i++) {
        char beside[PATH_MAX];
        struct stat st;
        const int length = snprintf(beside, sizeof(beside), "%s%s", path, ENDS[i]);
        found = found || (length > 0 && (size_t)length < sizeof(beside) && stat(beside, &st) == 0 &&
                          S_ISREG(st.st_mode) && st.st_size > 0);
    }
    return found;
}

enum lac_status lac_nsys_db_open(struct lac_nsys_db *db, const char *path,
                                 const struct lac_import_options *options, struct lac_error *reterr)
{
    struct stat st;
    *db = (struct lac_nsys_db){.options = options, .reterr = reterr, .is_opening = true};
    if (stat(path, &st) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%.120s: %s", path, strerror(errno));
    }
    db->file_bytes = (uint64_t)st.st_size;
    db->has_log = has_log(path);
    return open_named(db, path);
}

enum lac_status lac_nsys_db_open_fd(struct lac_nsys_db *db, int fd,
                                    const struct lac_import_options *options,
                                    struct lac_error *reterr)
{
    struct stat st;
    char path[64];
    *db = (struct lac_nsys_db){.options = options, .reterr = reterr, .is_opening = true};
    if (fstat(fd, &st) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "a temporary file: %s", strerror(errno));
    }
    db->file_bytes = (uint64_t)st.st_size;
    (void)snprintf(path, sizeof(path), LAC_NSYS_VFS_FD "%d", fd);
    return open_named(db, path);
}

enum lac_status lac_nsys_db_open_dump(struct lac_nsys_db *db, struct lac_source *source,
                                      const struct lac_import_options *options,
                                      struct lac_error *reterr)
{
    *db = (struct lac_nsys_db){.options = options, .reterr = reterr};
    int code = sqlite3_open_v2(":memory:", &db->sqlite,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_PRIVATECACHE,
                               NULL);
    enum lac_status status = code == SQLITE_OK ? LAC_OK : failed(db, code, "sqlite_schema");
    if (status == LAC_OK) {
        status = lac_nsys_load_dump(db->sqlite, source, &db->file_bytes, reterr);
    }
    if (status == LAC_OK) {
        status = defend(db);
    }
    if (status != LAC_OK) {
        lac_nsys_db_close(db);
    }
    return status;
}

void lac_nsys_db_close(struct lac_nsys_db *db)
{
    (void)sqlite3_close(db->sqlite);
    db->sqlite = NULL;
}

/* ---- tables ---- */

bool lac_nsys_db_is_plain(const char *sql, size_t size)
{
    static const char BEGIN[] = "CREATE TABLE";
    return size >= sizeof(BEGIN) - 1 && strncasecmp(sql, BEGIN, sizeof(BEGIN) - 1) == 0;
}

bool lac_nsys_db_has(struct lac_nsys_db *db, const char *table)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    db->silent_calls = 0;
    int code = sqlite3_prepare_v2(db->sqlite,
                                  "SELECT sql FROM sqlite_schema WHERE type='table' AND name=?1",
                                  -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(statement, 0);
        found = sql != NULL && lac_nsys_db_is_plain(sql, strlen(sql));
        code = sql == NULL ? sqlite3_errcode(db->sqlite) : code;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE && db->broken == 0) {
        db->broken = code;
    }
    (void)sqlite3_finalize(statement);
    return found;
}

enum lac_status lac_nsys_db_status(struct lac_nsys_db *db)
{
    return db->broken == 0 ? LAC_OK : failed(db, db->broken, LAC_NSYS_SCHEMA);
}

uint64_t lac_nsys_db_row_count(struct lac_nsys_db *db, const char *table)
{
    sqlite3_stmt *statement = NULL;
    char sql[160];
    int64_t rows = 0;
    db->silent_calls = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT max(rowid) FROM \"%.80s\"", table);
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    rows = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    /* a damaged table is told where it is read; a table need not have row numbers */
    if ((code & 0xff) == SQLITE_NOMEM && db->broken == 0) {
        db->broken = code;
    }
    (void)sqlite3_finalize(statement);
    return rows > 0 ? (uint64_t)rows : 0;
}

/* What a row's fields hold of the columns that are asked for. */
struct stored {
    uint16_t field[LAC_NSYS_COLUMNS_MAX]; /* UINT16_MAX: the table has no such column */
    bool is_plain; /* each value lies in its row as it is meant: no default, no row number */
};

/* The affinity by which SQLite turns whole numbers of a row into real ones. */
static bool may_be_real(const char *type)
{
    static const char *const WORDS[] = {"REAL", "FLOA", "DOUB"};
    bool found = type == NULL;
    for (size_t i = 0; i < LAC_COUNT_OF(WORDS) && !found; i++) {
        found = strcasestr(type, WORDS[i]) != NULL;
    }
    return found;
}

/* Which of `columns` the table has as ordinary ones. hidden is 0 for those, else the column is of a
 * virtual table or generated by an expression of the file's. */
static enum lac_status find_columns(struct lac_nsys_rows *rows, const char *const *columns,
                                    struct stored *stored)
{
    enum { NAME, HIDDEN, FIELD, TYPE, DEFAULT, KEY };
    sqlite3_stmt *statement = NULL;
    memset(stored->field, 0xff, sizeof(stored->field));
    stored->is_plain = true;
    int code = sqlite3_prepare_v2(
        rows->db->sqlite,
        "SELECT name, hidden, cid, type, dflt_value, pk FROM pragma_table_xinfo(?1)", -1,
        &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_text(statement, 1, rows->table, -1, SQLITE_STATIC);
    }
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        const char *name =
            code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, NAME) : NULL;
        const bool is_ordinary = code == SQLITE_ROW && sqlite3_column_int(statement, HIDDEN) == 0;
        stored->is_plain = stored->is_plain && (is_ordinary || code != SQLITE_ROW);
        for (unsigned i = 0; name != NULL && columns[i] != NULL; i++) {
            if (strcasecmp(columns[i], name) == 0 && is_ordinary) {
                rows->present |= 1u << i;
                stored->field[i] = (uint16_t)sqlite3_column_int(statement, FIELD);
                stored->is_plain = stored->is_plain && sqlite3_column_int(statement, KEY) == 0 &&
                                   sqlite3_column_type(statement, DEFAULT) == SQLITE_NULL &&
                                   !may_be_real((const char *)sqlite3_column_text(statement, TYPE));
            }
        }
    }
    enum lac_status status = code == SQLITE_DONE ? LAC_OK : failed(rows->db, code, rows->table);
    (void)sqlite3_finalize(statement);
    return status;
}

/* Read the table's pages where that is possible, else SQLite has to. */
static void open_pages(struct lac_nsys_rows *rows, const struct stored *stored, uint32_t count)
{
    struct lac_nsys_db *db = rows->db;
    sqlite3_stmt *statement = NULL;
    sqlite3_int64 root = 0;
    const int fd = lac_nsys_vfs_fd_of(db->sqlite);
    if (fd < 0 || !stored->is_plain) {
        return;
    }
    int code = sqlite3_prepare_v2(
        db->sqlite, "SELECT rootpage FROM sqlite_schema WHERE type='table' AND name=?1", -1,
        &statement, NULL);
    code =
        code == SQLITE_OK ? sqlite3_bind_text(statement, 1, rows->table, -1, SQLITE_STATIC) : code;
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    root = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_finalize(statement);
    if (root > 0 && root <= UINT32_MAX) {
        rows->pages =
            lac_nsys_pages_open(fd, (uint32_t)root, stored->field, count, VALUE_BYTES_MAX);
    }
}

/* Whether the rows that are left hold one integer in their first column. */
static bool is_only_in_pages(struct lac_nsys_rows *rows, bool *ret_has_rows, int64_t *ret_value)
{
    const uint64_t most = rows->db->file_bytes / ROW_BYTES_MIN;
    enum lac_nsys_page_end end = lac_nsys_pages_next(rows->pages, rows->values);
    bool is_only = lac_nsys_value_integer(&rows->values[0], ret_value);
    *ret_has_rows = end == LAC_NSYS_PAGE_ROW;
    is_only = is_only || end == LAC_NSYS_PAGE_DONE;
    for (uint64_t count = 1; is_only && end == LAC_NSYS_PAGE_ROW && count <= most; count++) {
        int64_t value = 0;
        end = lac_nsys_pages_next(rows->pages, rows->values);
        is_only = end == LAC_NSYS_PAGE_DONE ||
                  (end == LAC_NSYS_PAGE_ROW && lac_nsys_value_integer(&rows->values[0], &value) &&
                   value == *ret_value);
    }
    return is_only && end == LAC_NSYS_PAGE_DONE;
}

bool lac_nsys_db_is_only(struct lac_nsys_db *db, const char *table, const char *column,
                         bool *ret_has_rows, int64_t *ret_value)
{
    enum { STEPS_OF_ROW = 8 };
    sqlite3_stmt *first = NULL;
    sqlite3_stmt *other = NULL;
    char sql[256];
    bool is_only = false;
    *ret_has_rows = false;
    if (!lac_nsys_db_has(db, table)) {
        return true;
    }
    const char *const columns[] = {column, NULL};
    struct lac_nsys_rows rows = {.db = db, .table = table};
    struct stored stored;
    if (find_columns(&rows, columns, &stored) != LAC_OK || !lac_nsys_rows_has(&rows, 0)) {
        return false; /* it has no such column, or one that an expression of the file's makes */
    }
    open_pages(&rows, &stored, 1);
    if (rows.pages != NULL) {
        is_only = is_only_in_pages(&rows, ret_has_rows, ret_value);
        lac_nsys_rows_close(&rows);
        return is_only;
    }
    /* what takes longer than rows that the file has room for is left to who reads them */
    db->silent_calls = 0;
    db->silent_most = 1 + db->file_bytes / ROW_BYTES_MIN * STEPS_OF_ROW / PROGRESS_STEPS;
    (void)snprintf(sql, sizeof(sql), "SELECT \"%.60s\" FROM main.\"%.80s\" LIMIT 1", column, table);
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &first, NULL);
    code = code == SQLITE_OK ? sqlite3_step(first) : code;
    *ret_has_rows = code == SQLITE_ROW;
    if (code == SQLITE_ROW && sqlite3_column_type(first, 0) == SQLITE_INTEGER) {
        *ret_value = sqlite3_column_int64(first, 0);
        (void)snprintf(sql, sizeof(sql), "SELECT 1 FROM main.\"%.80s\" WHERE \"%.60s\" IS NOT ?1",
                       table, column);
        code = sqlite3_prepare_v2(db->sqlite, sql, -1, &other, NULL);
        code = code == SQLITE_OK ? sqlite3_bind_int64(other, 1, *ret_value) : code;
        code = code == SQLITE_OK ? sqlite3_step(other) : code;
        is_only = code == SQLITE_DONE;
    } else {
        is_only = code == SQLITE_DONE;
    }
    (void)sqlite3_finalize(first);
    (void)sqlite3_finalize(other);
    db->silent_most = 0;
    return is_only;
}

enum lac_status lac_nsys_rows_open(struct lac_nsys_rows *rows, struct lac_nsys_db *db,
                                   const char *table, const char *const *columns, const char *only,
                                   bool is_event)
{
    char sql[1024];
    size_t used = (size_t)snprintf(sql, sizeof(sql), "SELECT ");
    *rows = (struct lac_nsys_rows){.db = db, .table = table, .is_event = is_event};
    bool is_schema = strcmp(table, LAC_NSYS_SCHEMA) == 0;
    if (!is_schema && !lac_nsys_db_has(db, table)) {
        return lac_nsys_db_status(db);
    }
    enum lac_status status = LAC_OK;
    struct stored stored = {.is_plain = false};
    uint32_t count = 0;
    if (is_schema) {
        rows->present = UINT32_MAX; /* its columns are SQLite's own */
    } else {
        status = find_columns(rows, columns, &stored);
    }
    if (status != LAC_OK) {
        return status;
    }
    while (columns[count] != NULL) {
        count++;
    }
    if (only == NULL) {
        open_pages(rows, &stored, count);
    }
    if (rows->pages != NULL) {
        return LAC_OK;
    }
    for (int i = 0; columns[i] != NULL; i++) {
        used += (size_t)snprintf(sql + used, sizeof(sql) - used,
                                 lac_nsys_rows_has(rows, i) ? "%s\"%s\"" : "%sNULL",
                                 i == 0 ? "" : ",", columns[i]);
    }
    used += (size_t)snprintf(sql + used, sizeof(sql) - used, " FROM main.\"%s\"", table);
    if (only != NULL && !lac_nsys_rows_has(rows, 0)) {
        return LAC_OK;
    }
    if (only != NULL) {
        used +=
            (size_t)snprintf(sql + used, sizeof(sql) - used, " WHERE \"%s\" %s", columns[0], only);
    }
    if (used >= sizeof(sql)) {
        return lac_fail(db->reterr, LAC_ERR_MISUSE, 0, "too many columns of %s", table);
    }
    db->silent_calls = 0;
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &rows->statement, NULL);
    return code == SQLITE_OK ? LAC_OK : failed(db, code, table);
}

/* Tell how far we are; the share of rows stands for the share of bytes. */
static bool go_on(struct lac_nsys_db *db)
{
    if (db->options->progress == NULL || db->rows_expected == 0) {
        return true;
    }
    double share = (double)db->event_count / (double)db->rows_expected;
    uint64_t bytes = share >= 1.0 ? db->file_bytes : (uint64_t)(share * (double)db->file_bytes);
    return db->options->progress(db->options->progress_context, bytes, db->file_bytes,
                                 db->event_count);
}

static enum lac_status claims_too_much(const struct lac_nsys_rows *rows)
{
    return lac_fail(rows->db->reterr, LAC_ERR_CORRUPT, 0,
                    "table %.60s of the SQLite file: its rows claim more bytes than the file "
                    "has; export it again",
                    rows->table);
}

/* A row of SQLite's, or of the pages. */
static enum lac_status step(struct lac_nsys_rows *rows, bool *ret_found)
{
    if (rows->pages == NULL) {
        const int code = sqlite3_step(rows->statement);
        rows->db->silent_calls = 0;
        *ret_found = code == SQLITE_ROW;
        return code == SQLITE_ROW || code == SQLITE_DONE ? LAC_OK
                                                         : failed(rows->db, code, rows->table);
    }
    switch (lac_nsys_pages_next(rows->pages, rows->values)) {
    case LAC_NSYS_PAGE_ROW:
        *ret_found = true;
        return LAC_OK;
    case LAC_NSYS_PAGE_DONE:
        return LAC_OK;
    case LAC_NSYS_PAGE_CLAIMS:
        return claims_too_much(rows);
    case LAC_NSYS_PAGE_LARGE:
        return failed(rows->db, SQLITE_TOOBIG, rows->table);
    case LAC_NSYS_PAGE_READ:
        return failed(rows->db, SQLITE_IOERR, rows->table);
    case LAC_NSYS_PAGE_NOMEM:
        return failed(rows->db, SQLITE_NOMEM, rows->table);
    case LAC_NSYS_PAGE_DAMAGED:
    default:
        return failed(rows->db, SQLITE_CORRUPT, rows->table);
    }
}

enum lac_status lac_nsys_rows_next(struct lac_nsys_rows *rows, bool *ret_found)
{
    struct lac_nsys_db *db = rows->db;
    bool found = false;
    *ret_found = false;
    if (rows->statement == NULL && rows->pages == NULL) {
        return LAC_OK;
    }
    enum lac_status status = step(rows, &found);
    if (status != LAC_OK || !found) {
        return status;
    }
    db->row_count++;
    rows->count++;
    if ((rows->pages == NULL && rows->count % WORK_ROWS == 0 && !is_honest_work(db)) ||
        db->value_bytes / VALUE_FILES > db->file_bytes + VALUE_BYTES_MAX) {
        return claims_too_much(rows);
    }
    if (rows->count > db->file_bytes / ROW_BYTES_MIN) {
        return lac_fail(db->reterr, LAC_ERR_CORRUPT, 0,
                        "table %.60s of the SQLite file has more rows than the file can hold",
                        rows->table);
    }
    if (rows->is_event && ++db->event_count % TELL_ROWS == 0 && !go_on(db)) {
        db->is_canceled = true;
        return lac_fail(db->reterr, LAC_ERR_IO, 0, "canceled");
    }
    *ret_found = true;
    return LAC_OK;
}

void lac_nsys_rows_close(struct lac_nsys_rows *rows)
{
    (void)sqlite3_finalize(rows->statement);
    lac_nsys_pages_close(rows->pages);
    rows->statement = NULL;
    rows->pages = NULL;
}

bool lac_nsys_rows_integer(const struct lac_nsys_rows *rows, int column, int64_t *ret_value)
{
    assert(column >= 0 && column < LAC_NSYS_COLUMNS_MAX);
    if (rows->pages != NULL) {
        return lac_nsys_value_integer(&rows->values[column], ret_value);
    }
    /* the column is looked up once; nobody else uses the connection, so it stays as it is */
    sqlite3_value *value = sqlite3_column_value(rows->statement, column);
    if (sqlite3_value_type(value) != SQLITE_INTEGER) {
        return false;
    }
    *ret_value = sqlite3_value_int64(value);
    return true;
}

bool lac_nsys_rows_real(const struct lac_nsys_rows *rows, int column, double *ret_value)
{
    if (rows->pages != NULL) {
        return lac_nsys_value_real(&rows->values[column], ret_value) && isfinite(*ret_value);
    }
    const int type = sqlite3_column_type(rows->statement, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        return false;
    }
    *ret_value = sqlite3_column_double(rows->statement, column);
    return isfinite(*ret_value);
}

int64_t lac_nsys_rows_integer_or(const struct lac_nsys_rows *rows, int column, int64_t otherwise)
{
    int64_t value = otherwise;
    return lac_nsys_rows_integer(rows, column, &value) ? value : otherwise;
}

uint32_t lac_nsys_rows_u32(const struct lac_nsys_rows *rows, int column, uint32_t otherwise)
{
    int64_t value = lac_nsys_rows_integer_or(rows, column, otherwise);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : otherwise;
}

const char *lac_nsys_rows_text(const struct lac_nsys_rows *rows, int column, size_t *ret_size)
{
    const char *text = NULL;
    if (rows->pages != NULL) {
        text = (const char *)lac_nsys_value_bytes(&rows->values[column], true, ret_size);
    } else if (sqlite3_column_type(rows->statement, column) == SQLITE_TEXT) {
        text = (const char *)sqlite3_column_text(rows->statement, column);
        *ret_size = (size_t)sqlite3_column_bytes(rows->statement, column);
    }
    rows->db->value_bytes += text != NULL ? *ret_size : 0;
    return text;
}

const unsigned char *lac_nsys_rows_blob(const struct lac_nsys_rows *rows, int column,
                                        size_t *ret_size)
{
    const unsigned char *bytes = NULL;
    if (rows->pages != NULL) {
        bytes = lac_nsys_value_bytes(&rows->values[column], false, ret_size);
        bytes = bytes != NULL && *ret_size > 0 ? bytes : NULL;
    } else if (sqlite3_column_type(rows->statement, column) == SQLITE_BLOB) {
        bytes = sqlite3_column_blob(rows->statement, column);
        *ret_size = (size_t)sqlite3_column_bytes(rows->statement, column);
    }
    rows->db->value_bytes += bytes != NULL ? *ret_size : 0;
    return bytes;
}
