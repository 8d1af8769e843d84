/* Tables read from their pages: each value is what SQLite gives, whatever the size of a page, of a
 * row and of the tree; what only SQLite can compute is left to it. */

#include "analysis/import/import.h"
#include "analysis/import/nsys/nsys_db.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 3000 };

static const char *const COLUMNS[] = {"number", "text", "later", "bytes", "none", NULL};
enum { NUMBER, TEXT, LATER, BYTES, NONE, COLUMN_COUNT };

struct made {
    char path[64];
    sqlite3 *db;
};

static void run(struct made *made, const char *sql)
{
    char *message = NULL;
    const int code = sqlite3_exec(made->db, sql, NULL, NULL, &message);
    ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, message);
}

static void make(struct made *made, const char *pragmas, int reserved)
{
    (void)snprintf(made->path, sizeof(made->path), "/tmp/lacuna-pages-XXXXXX");
    const int fd = mkstemp(made->path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(sqlite3_open(made->path, &made->db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_file_control(made->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved),
                     SQLITE_OK);
    run(made, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
    run(made, pragmas);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

/* Values of every kind and width. Some rows go on on other pages, one for two hundred of them. */
static void fill(struct made *made, int row_count)
{
    static char text[200000];
    sqlite3_stmt *insert = NULL;
    uint64_t state = 7;
    memset(text, 'x', sizeof(text));
    ck_assert_int_eq(
        sqlite3_prepare_v2(made->db, "INSERT INTO thing VALUES(?,?,?,?)", -1, &insert, NULL),
        SQLITE_OK);
    run(made, "BEGIN");
    for (int i = 0; i < row_count; i++) {
        const int64_t wide = (int64_t)(next(&state) << 33 ^ next(&state)) >> next(&state) % 64;
        const int size =
            i == 17 ? (int)sizeof(text) : (int)(next(&state) % (i % 40 == 0 ? 9000 : 30));
        (void)sqlite3_bind_int(insert, 1, i);
        switch (next(&state) % 8) {
        case 0:
            (void)sqlite3_bind_null(insert, 2);
            break;
        case 1:
            (void)sqlite3_bind_double(insert, 2, (double)wide / 3);
            break;
        case 2:
            (void)sqlite3_bind_int(insert, 2, (int)(next(&state) % 3));
            break;
        case 3:
            (void)sqlite3_bind_text(insert, 2, "a number?", -1, SQLITE_STATIC);
            break;
        default:
            (void)sqlite3_bind_int64(insert, 2, next(&state) % 2 == 0 ? wide : -wide);
        }
        text[0] = (char)(i % 3 == 0 ? '\0' : 'a' + i % 26);
        (void)sqlite3_bind_text(insert, 3, text, size, SQLITE_STATIC);
        (void)sqlite3_bind_blob(insert, 4, text, i % 5 == 0 ? 0 : size / 2, SQLITE_STATIC);
        ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
        (void)sqlite3_reset(insert);
    }
    run(made, "COMMIT");
    (void)sqlite3_finalize(insert);
}

static void same_row(const struct lac_nsys_rows *rows, sqlite3_stmt *theirs)
{
    for (int c = 0; c < COLUMN_COUNT; c++) {
        const int type = sqlite3_column_type(theirs, c);
        const void *const bytes = type == SQLITE_TEXT ? (const void *)sqlite3_column_text(theirs, c)
                                  : type == SQLITE_BLOB ? sqlite3_column_blob(theirs, c)
                                                        : NULL;
        const size_t their_size = bytes != NULL ? (size_t)sqlite3_column_bytes(theirs, c) : 0;
        int64_t integer = 0;
        double real = 0;
        size_t size = 0;
        ck_assert_int_eq(lac_nsys_rows_integer(rows, c, &integer), type == SQLITE_INTEGER);
        ck_assert(type != SQLITE_INTEGER || integer == sqlite3_column_int64(theirs, c));
        ck_assert_int_eq(lac_nsys_rows_real(rows, c, &real),
                         type == SQLITE_INTEGER || type == SQLITE_FLOAT);
        ck_assert(
            (type != SQLITE_INTEGER && type != SQLITE_FLOAT) ||
            !(real < sqlite3_column_double(theirs, c) || real > sqlite3_column_double(theirs, c)));
        const char *const text = lac_nsys_rows_text(rows, c, &size);
        ck_assert_int_eq(text != NULL, type == SQLITE_TEXT);
        ck_assert(text == NULL || (size == their_size && memcmp(text, bytes, size) == 0));
        const unsigned char *const blob = lac_nsys_rows_blob(rows, c, &size);
        ck_assert_int_eq(blob != NULL, type == SQLITE_BLOB && their_size > 0);
        ck_assert(blob == NULL || (size == their_size && memcmp(blob, bytes, size) == 0));
    }
}

/* All rows, against SQLite. @return whether they were read from the pages */
static bool same(struct made *made, const char *table, const char *query)
{
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    struct lac_nsys_db db;
    struct lac_nsys_rows rows;
    sqlite3_stmt *theirs = NULL;
    bool found = true;
    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(lac_nsys_db_open(&db, made->path, &options, &error), LAC_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(made->db, query, -1, &theirs, NULL), SQLITE_OK);
    ck_assert_int_eq(lac_nsys_rows_open(&rows, &db, table, COLUMNS, NULL, true), LAC_OK);
    const bool is_of_pages = rows.pages != NULL;
    while (found) {
        ck_assert_msg(lac_nsys_rows_next(&rows, &found) == LAC_OK, "%s", error.message);
        ck_assert_int_eq(found, sqlite3_step(theirs) == SQLITE_ROW);
        if (found) {
            same_row(&rows, theirs);
        }
    }
    lac_nsys_rows_close(&rows);
    lac_nsys_db_close(&db);
    (void)sqlite3_finalize(theirs);
    return is_of_pages;
}

static void done(struct made *made)
{
    ck_assert_int_eq(sqlite3_close(made->db), SQLITE_OK);
    ck_assert_int_eq(unlink(made->path), 0);
}

#define QUERY "SELECT number, text, later, bytes, NULL FROM thing ORDER BY rowid"

START_TEST(values_are_those_of_sqlite)
{
    static const struct {
        const char *pragmas;
        int reserved;
    } FILES[] = {{"PRAGMA page_size=512", 0},    {"PRAGMA page_size=1024", 32},
                 {"PRAGMA page_size=4096", 0},   {"PRAGMA page_size=65536", 0},
                 {"PRAGMA auto_vacuum=FULL", 0}, {"PRAGMA legacy_file_format=1", 0},
                 {"PRAGMA page_size=512", 32}};
    struct made made;
    make(&made, FILES[_i].pragmas, FILES[_i].reserved);
    run(&made, "CREATE TABLE thing(unread INTEGER, number INTEGER, text TEXT, bytes BLOB)");
    fill(&made, ROWS);
    run(&made, "ALTER TABLE thing ADD COLUMN later INTEGER");
    run(&made, "UPDATE thing SET later = unread * 100000 WHERE unread % 7 = 3");
    run(&made, "DELETE FROM thing WHERE unread % 11 = 5 OR unread BETWEEN 300 AND 900");
    ck_assert(same(&made, "thing", QUERY));
    run(&made, "DELETE FROM thing");
    ck_assert(same(&made, "thing", QUERY));
    done(&made);
}
END_TEST

/* Tables whose values SQLite computes, or that are no such tree, or whose text is in another form. */
START_TEST(what_sqlite_computes_is_left_to_it)
{
    static const struct {
        const char *pragmas;
        const char *sql;
    } FILES[] = {
        {"", "CREATE TABLE thing(unread INTEGER, number INTEGER PRIMARY KEY, text, bytes)"},
        {"", "CREATE TABLE thing(unread INTEGER PRIMARY KEY, number, text, bytes) WITHOUT ROWID"},
        {"", "CREATE TABLE thing(unread, number DOUBLE, text, bytes)"},
        {"", "CREATE TABLE thing(unread, number, text, bytes, twice AS (number * 2))"},
        {"PRAGMA encoding='UTF-16le'", "CREATE TABLE thing(unread, number, text, bytes)"},
    };
    struct made made;
    make(&made, FILES[_i].pragmas, 0);
    run(&made, FILES[_i].sql);
    run(&made, "INSERT INTO thing(unread, number, text, bytes) VALUES"
               "(1, 11, 'a', NULL), (2, 12, 'b', x'00'), (3, 13, NULL, 1.5)");
    run(&made, "ALTER TABLE thing ADD COLUMN later INTEGER");
    ck_assert(!same(&made, "thing", "SELECT number, text, later, bytes, NULL FROM thing"));
    done(&made);
}
END_TEST

START_TEST(a_default_is_left_to_sqlite)
{
    struct made made;
    make(&made, "", 0);
    run(&made, "CREATE TABLE thing(unread INTEGER, number INTEGER, text TEXT, bytes BLOB)");
    fill(&made, 50);
    run(&made, "ALTER TABLE thing ADD COLUMN later INTEGER DEFAULT 42");
    ck_assert(!same(&made, "thing", QUERY));
    done(&made);
}
END_TEST

static bool is_only(struct made *made, const char *column, bool *ret_has_rows, int64_t *ret_value)
{
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    struct lac_nsys_db db;
    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(lac_nsys_db_open(&db, made->path, &options, &error), LAC_OK);
    const bool is = lac_nsys_db_is_only(&db, "thing", column, ret_has_rows, ret_value);
    lac_nsys_db_close(&db);
    return is;
}

START_TEST(one_number_in_all_rows_is_known)
{
    struct made made;
    bool has_rows = true;
    int64_t value = 0;
    make(&made, "", 0);
    run(&made, "CREATE TABLE thing(a INTEGER, b INTEGER)");
    ck_assert(is_only(&made, "a", &has_rows, &value));
    ck_assert(!has_rows);
    run(&made, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
               "INSERT INTO thing SELECT -4711, i < 5000 FROM n");
    ck_assert(is_only(&made, "a", &has_rows, &value));
    ck_assert(has_rows);
    ck_assert_int_eq(value, -4711);
    ck_assert(!is_only(&made, "b", &has_rows, &value));
    run(&made, "UPDATE thing SET a = NULL WHERE rowid = 5000");
    ck_assert(!is_only(&made, "a", &has_rows, &value));
    done(&made);
}
END_TEST

/* Any byte of any page may lie: rows, or an error, and an end. */
START_TEST(no_byte_can_do_harm)
{
    struct lac_import_options options = {0};
    struct made made;
    uint64_t state = 99;
    lac_import_limits_default(&options.limits);
    make(&made, "PRAGMA page_size=512", 0);
    run(&made, "CREATE TABLE thing(unread INTEGER, number INTEGER, text TEXT, bytes BLOB)");
    fill(&made, 60);
    ck_assert_int_eq(sqlite3_close(made.db), SQLITE_OK);
    FILE *const file = fopen(made.path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    ck_assert_int_gt(size, 20000);
    int errors = 0;
    const int rounds = rounds_of(4000);
    for (int round = 0; round < rounds; round++) {
        struct lac_error error = {0};
        struct lac_nsys_db db;
        struct lac_nsys_rows rows = {0};
        /* mostly the heads of pages */
        const long page = 512 * (long)(1 + next(&state) % (uint64_t)(size / 512 - 1));
        const long at = page + (long)(next(&state) % (round % 2 == 0 ? 24 : 512));
        unsigned char before = 0;
        bool found = true;
        ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
        ck_assert_uint_eq(fread(&before, 1, 1, file), 1);
        ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
        ck_assert_int_ne(fputc((int)(next(&state) & 0xff), file), EOF);
        ck_assert_int_eq(fflush(file), 0);
        ck_assert_int_eq(lac_nsys_db_open(&db, made.path, &options, &error), LAC_OK);
        enum lac_status status = lac_nsys_rows_open(&rows, &db, "thing", COLUMNS, NULL, true);
        while (status == LAC_OK && found) {
            status = lac_nsys_rows_next(&rows, &found);
            for (int c = 0; status == LAC_OK && found && c < COLUMN_COUNT; c++) {
                size_t length = 0;
                const char *const text = lac_nsys_rows_text(&rows, c, &length);
                ck_assert(text == NULL || length == 0 || text[length - 1] + text[0] < 1000);
            }
        }
        ck_assert(status == LAC_OK || status == LAC_ERR_CORRUPT || status == LAC_ERR_LIMIT);
        errors += status != LAC_OK;
        ck_assert(status == LAC_OK || strlen(error.message) > 10);
        lac_nsys_rows_close(&rows);
        lac_nsys_db_close(&db);
        ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
        ck_assert_int_ne(fputc(before, file), EOF);
    }
    ck_assert_int_gt(errors, rounds / 40);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(unlink(made.path), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nsys_pages");
    TCase *tests = tcase_create("pages");
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, values_are_those_of_sqlite, 0, 7);
    tcase_add_loop_test(tests, what_sqlite_computes_is_left_to_it, 0, 5);
    tcase_add_test(tests, a_default_is_left_to_sqlite);
    tcase_add_test(tests, one_number_in_all_rows_is_known);
    tcase_add_test(tests, no_byte_can_do_harm);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
