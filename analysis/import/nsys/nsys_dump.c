#include "analysis/import/nsys/nsys_dump.h"

#include "analysis/import/source/source.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    READ_BYTES = 64 * 1024,
    STATEMENT_BYTES_MAX = 16 << 20,
    COLUMNS_MAX = 256,
    TABLES_MAX = 1000,
    NAME_BYTES = 96,
};

struct dump {
    sqlite3 *sqlite;
    struct lac_source *source;
    struct lac_error *reterr;
    char *text; /* of the statement */
    size_t size;
    size_t capacity;
    uint8_t buffer[READ_BYTES];
    size_t at;
    size_t end;
    uint64_t offset_bytes;
    sqlite3_stmt *insert; /* into `table` */
    char table[NAME_BYTES];
    int column_count;
    int table_count;
};

bool lac_nsys_is_dump(const uint8_t *head, size_t size_bytes)
{
    static const char *const BEGINS[] = {"PRAGMA ", "BEGIN TRANSACTION", "CREATE TABLE "};
    static const char *const HOLDS[] = {"CUPTI_ACTIVITY_KIND_", "StringTable", "StringIds"};
    bool begins = false;
    bool holds = false;
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(BEGINS[i]);
        begins = begins || (size_bytes >= size && memcmp(head, BEGINS[i], size) == 0);
        holds = holds ||
                (size_bytes > 0 && memmem(head, size_bytes, HOLDS[i], strlen(HOLDS[i])) != NULL);
    }
    return begins && holds;
}

/* ---- statements ---- */

static enum lac_status next_byte(struct dump *dump, int *ret_byte)
{
    if (dump->at == dump->end) {
        size_t got = 0;
        enum lac_status status =
            lac_source_read(dump->source, dump->buffer, sizeof(dump->buffer), &got, dump->reterr);
        if (status != LAC_OK) {
            return status;
        }
        dump->at = 0;
        dump->end = got;
    }
    *ret_byte = dump->at == dump->end ? -1 : dump->buffer[dump->at++];
    dump->offset_bytes += *ret_byte >= 0 ? 1 : 0;
    return LAC_OK;
}

/* The next statement, without its semicolon; size 0 at the end. A quoted text may hold anything. */
static enum lac_status next_statement(struct dump *dump)
{
    int quote = 0;
    dump->size = 0;
    for (;;) {
        int byte = 0;
        enum lac_status status = next_byte(dump, &byte);
        if (status != LAC_OK || byte < 0) {
            dump->size = byte < 0 ? 0 : dump->size; /* a statement that is cut off is left out */
            return status;
        }
        if (quote == 0 && dump->size == 0 && (byte <= ' ' || byte == ';')) {
            continue;
        }
        if (quote == 0 && byte == ';') {
            return LAC_OK;
        }
        if (quote == 0 && (byte == '\'' || byte == '"')) {
            quote = byte;
        } else if (byte == quote) {
            quote = 0; /* a doubled quote opens again at once */
        }
        if (dump->size >= STATEMENT_BYTES_MAX) {
            return lac_fail(dump->reterr, LAC_ERR_LIMIT, dump->offset_bytes,
                            "a statement of more than %d MiB in the SQL dump",
                            STATEMENT_BYTES_MAX >> 20);
        }
        if (LAC_GROW(dump->text, &dump->capacity, dump->size + 1) != LAC_OK) {
            return lac_fail(dump->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
        dump->text[dump->size++] = (char)byte;
    }
}

/* ---- words ---- */

struct words {
    const char *at;
    const char *end;
};

static void skip_space(struct words *words)
{
    while (words->at < words->end && (unsigned char)*words->at <= ' ') {
        words->at++;
    }
}

static bool take(struct words *words, const char *word)
{
    size_t size = strlen(word);
    skip_space(words);
    if ((size_t)(words->end - words->at) < size || strncasecmp(words->at, word, size) != 0) {
        return false;
    }
    words->at += size;
    return true;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A name of a table or column: letters, digits and "_", bare or in quotes. */
static bool take_name(struct words *words, char out[NAME_BYTES])
{
    size_t used = 0;
    skip_space(words);
    char quote = '\0';
    if (words->at < words->end && (*words->at == '"' || *words->at == '\'' || *words->at == '`')) {
        quote = *words->at++;
    }
    while (words->at < words->end && is_plain(*words->at) && used + 1 < NAME_BYTES) {
        out[used++] = *words->at++;
    }
    out[used] = '\0';
    if (quote != '\0') {
        const bool is_closed = words->at < words->end && *words->at == quote;
        words->at += is_closed;
        return used > 0 && is_closed;
    }
    return used > 0;
}

/* Past the next comma outside of brackets and quotes; false: the list ends here. */
static bool next_item(struct words *words)
{
    int depth = 0;
    char quote = '\0';
    for (; words->at < words->end; words->at++) {
        char c = *words->at;
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(') {
            depth++;
        } else if (c == ')' && depth-- == 0) {
            return false;
        } else if (c == ',' && depth == 0) {
            words->at++;
            return true;
        }
    }
    return false;
}

/* ---- what is taken over ---- */

static enum lac_status sql_status(struct dump *dump, int code)
{
    if (code == SQLITE_NOMEM) {
        return lac_fail(dump->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (code == SQLITE_FULL) {
        return lac_fail(dump->reterr, LAC_ERR_LIMIT, dump->offset_bytes,
                        "the SQL dump holds more than 1 GiB of rows");
    }
    return lac_fail(dump->reterr, LAC_ERR_CORRUPT, dump->offset_bytes,
                    "a row of the SQL dump cannot be kept: %.80s", sqlite3_errstr(code));
}

static bool is_constraint(const char *name)
{
    static const char *const WORDS[] = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"};
    for (size_t i = 0; i < LAC_COUNT_OF(WORDS); i++) {
        if (strcasecmp(name, WORDS[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum lac_status create_table(struct dump *dump, struct words *words)
{
    char name[NAME_BYTES];
    char column[NAME_BYTES];
    char sql[COLUMNS_MAX * (NAME_BYTES + 4)];
    (void)take(words, "IF NOT EXISTS ");
    if (!take_name(words, name) || !take(words, "(") || dump->table_count == TABLES_MAX) {
        return LAC_OK;
    }
    size_t used = (size_t)snprintf(sql, sizeof(sql), "CREATE TABLE \"%s\"(", name);
    bool is_first = true;
    do {
        if (!take_name(words, column) || used + sizeof(column) + 8 > sizeof(sql)) {
            return LAC_OK;
        }
        if (!is_constraint(column)) {
            used += (size_t)snprintf(sql + used, sizeof(sql) - used, "%s\"%s\"",
                                     is_first ? "" : ",", column);
            is_first = false;
        }
    } while (next_item(words));
    (void)snprintf(sql + used, sizeof(sql) - used, ")");
    int code = is_first ? SQLITE_OK : sqlite3_exec(dump->sqlite, sql, NULL, NULL, NULL);
    dump->table_count++;
    /* a table that is there already, or a name of SQLite's own, is left out */
    return code == SQLITE_NOMEM || code == SQLITE_FULL ? sql_status(dump, code) : LAC_OK;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A blob in place: its bytes overwrite its digits. */
static int bind_blob(struct dump *dump, struct words *words, int column)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the bytes are the reader's own */
    char *to = (char *)(uintptr_t)words->at;
    const char *from = words->at;
    char *begin = to;
    while (from + 1 < words->end && digit_of(from[0]) >= 0 && digit_of(from[1]) >= 0) {
        *to++ = (char)(digit_of(from[0]) << 4 | digit_of(from[1]));
        from += 2;
    }
    words->at = from < words->end && *from == '\'' ? from + 1 : words->end;
    return sqlite3_bind_blob(dump->insert, column, begin, (int)(to - begin), SQLITE_STATIC);
}

/* A text in place: doubled quotes become one. */
static int bind_text(struct dump *dump, struct words *words, int column)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the bytes are the reader's own */
    char *to = (char *)(uintptr_t)words->at;
    const char *from = words->at;
    char *begin = to;
    for (; from < words->end; from++) {
        if (*from == '\'' && from + 1 < words->end && from[1] == '\'') {
            from++;
        } else if (*from == '\'') {
            break;
        }
        *to++ = *from;
    }
    words->at = from < words->end ? from + 1 : from;
    return sqlite3_bind_text(dump->insert, column, begin, (int)(to - begin), SQLITE_STATIC);
}

/* One literal; false: it is none. */
static bool bind_literal(struct dump *dump, struct words *words, int column, int *ret_code)
{
    char number[64];
    char *end = NULL;
    skip_space(words);
    *ret_code = SQLITE_OK;
    if (take(words, "NULL")) {
        return true;
    }
    if (take(words, "X'")) {
        *ret_code = bind_blob(dump, words, column);
        return true;
    }
    if (take(words, "'")) {
        *ret_code = bind_text(dump, words, column);
        return true;
    }
    size_t used = 0;
    while (words->at < words->end && used + 1 < sizeof(number) &&
           strchr("+-.0123456789eE", *words->at) != NULL && *words->at != '\0') {
        number[used++] = *words->at++;
    }
    number[used] = '\0';
    errno = 0;
    long long integer = strtoll(number, &end, 10);
    if (used > 0 && *end == '\0' && errno == 0) {
        *ret_code = sqlite3_bind_int64(dump->insert, column, integer);
        return true;
    }
    double real = strtod(number, &end);
    *ret_code = sqlite3_bind_double(dump->insert, column, real);
    return used > 0 && *end == '\0';
}

/* An INSERT for the table, kept for the rows that follow. None: there is no such table. */
static enum lac_status prepare_insert(struct dump *dump, const char *name)
{
    char sql[COLUMNS_MAX * 2 + NAME_BYTES + 64];
    if (dump->insert != NULL && strcmp(name, dump->table) == 0) {
        return LAC_OK;
    }
    (void)sqlite3_finalize(dump->insert);
    dump->insert = NULL;
    sqlite3_stmt *columns = NULL;
    int count = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\"", name);
    int code = sqlite3_prepare_v2(dump->sqlite, sql, -1, &columns, NULL);
    if (code == SQLITE_OK) {
        count = sqlite3_column_count(columns);
    }
    (void)sqlite3_finalize(columns);
    if (count == 0 || count > COLUMNS_MAX) {
        return code == SQLITE_NOMEM ? sql_status(dump, code) : LAC_OK;
    }
    size_t used = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO \"%s\" VALUES(?", name);
    for (int i = 1; i < count; i++) {
        used += (size_t)snprintf(sql + used, sizeof(sql) - used, ",?");
    }
    (void)snprintf(sql + used, sizeof(sql) - used, ")");
    code = sqlite3_prepare_v2(dump->sqlite, sql, -1, &dump->insert, NULL);
    if (code != SQLITE_OK) {
        return code == SQLITE_NOMEM ? sql_status(dump, code) : LAC_OK;
    }
    (void)snprintf(dump->table, sizeof(dump->table), "%s", name);
    dump->column_count = count;
    return LAC_OK;
}

/* "(1,NULL,'text')"; a row that is not all literals is left out. */
static enum lac_status insert_row(struct dump *dump, struct words *words, bool *ret_is_good)
{
    int code = SQLITE_OK;
    *ret_is_good = take(words, "(");
    (void)sqlite3_reset(dump->insert);
    (void)sqlite3_clear_bindings(dump->insert);
    for (int column = 1; *ret_is_good && code == SQLITE_OK; column++) {
        *ret_is_good = column <= dump->column_count && bind_literal(dump, words, column, &code);
        if (*ret_is_good && !take(words, ",")) {
            *ret_is_good = take(words, ")");
            break;
        }
    }
    if (code == SQLITE_OK && *ret_is_good) {
        code = sqlite3_step(dump->insert);
        code = code == SQLITE_DONE ? SQLITE_OK : code;
        (void)sqlite3_reset(dump->insert);
    }
    return code == SQLITE_OK || code == SQLITE_TOOBIG ? LAC_OK : sql_status(dump, code);
}

static enum lac_status insert_rows(struct dump *dump, struct words *words)
{
    char name[NAME_BYTES];
    bool is_good = true;
    enum lac_status status = LAC_OK;
    if (!take_name(words, name) || strncasecmp(name, "sqlite_", 7) == 0) {
        return LAC_OK;
    }
    status = prepare_insert(dump, name);
    if (status != LAC_OK || dump->insert == NULL) {
        return status;
    }
    if (take(words, "(")) { /* names of columns, which .dump writes in the table's order */
        while (next_item(words)) {
        }
        words->at += words->at < words->end ? 1 : 0;
    }
    if (!take(words, "VALUES")) {
        return LAC_OK;
    }
    do {
        status = insert_row(dump, words, &is_good);
    } while (status == LAC_OK && is_good && take(words, ","));
    return status;
}

static enum lac_status on_statement(struct dump *dump)
{
    struct words words = {dump->text, dump->text + dump->size};
    if (take(&words, "CREATE TABLE ")) {
        return create_table(dump, &words);
    }
    return take(&words, "INSERT INTO ") ? insert_rows(dump, &words) : LAC_OK;
}

enum lac_status lac_nsys_load_dump(sqlite3 *sqlite, struct lac_source *source, uint64_t *ret_bytes,
                                   struct lac_error *reterr)
{
    struct dump *dump = calloc(1, sizeof(*dump));
    if (dump == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    dump->sqlite = sqlite;
    dump->source = source;
    dump->reterr = reterr;
    int code = sqlite3_exec(sqlite,
                            "PRAGMA temp_store=MEMORY; PRAGMA journal_mode=OFF; "
                            "PRAGMA page_size=4096; PRAGMA max_page_count=262144; BEGIN",
                            NULL, NULL, NULL);
    enum lac_status status = code == SQLITE_OK ? LAC_OK : sql_status(dump, code);
    while (status == LAC_OK) {
        status = next_statement(dump);
        if (status != LAC_OK || dump->size == 0) {
            break;
        }
        status = on_statement(dump);
    }
    (void)sqlite3_finalize(dump->insert);
    if (status == LAC_OK) {
        code = sqlite3_exec(sqlite, "COMMIT", NULL, NULL, NULL);
        status = code == SQLITE_OK ? LAC_OK : sql_status(dump, code);
    }
    *ret_bytes = dump->offset_bytes;
    free(dump->text);
    free(dump);
    return status;
}
