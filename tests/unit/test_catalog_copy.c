/* A catalog's rows from one database into another: here both are files, in test_catalog.py one is PostgreSQL. */

#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/copy.h"
#include "server/store/database/database.h"
#include "server/store/trace/sql.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 16 };

static char folder[64];
static struct lac_db *from, *to;

static struct lac_db *open_catalog(const char *name)
{
    struct lac_error error = {0};
    struct lac_db *db = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_msg(lac_catalog_open(path, &db, &error) == LAC_OK, "%s", error.message);
    return db;
}

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(lac_sql_init(NULL), LAC_OK);
    from = open_catalog("from.db");
    to = open_catalog("to.db");
}

static void teardown(void)
{
    char command[128];

    lac_db_close(from);
    lac_db_close(to);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void run(struct lac_db *db, const char *sql)
{
    struct lac_error error = {0};

    ck_assert_msg(lac_db_run(db, sql, &error) == LAC_OK, "%s: %s", sql, error.message);
}

/** The first column of all rows, a line each. */
static void answer(struct lac_db *db, const char *sql, char *ret_text)
{
    struct lac_statement *get = NULL;
    struct lac_error error = {0};
    size_t used = 0;

    *ret_text = '\0';
    ck_assert_msg(lac_db_prepare(db, sql, &get, &error) == LAC_OK, "%s: %s", sql, error.message);
    while (lac_db_step_row(get, "test", &error) == LAC_OK) {
        const char *const text = lac_db_text(get, 0);

        used += (size_t)snprintf(ret_text + used, TEXT_BYTES - used, "%s\n",
                                 text != NULL ? text : "(null)");
        ck_assert_uint_lt(used, TEXT_BYTES);
    }
    lac_db_finalize(get);
}

static void expect(const char *sql, const char *expected)
{
    static char text[TEXT_BYTES];

    answer(to, sql, text);
    ck_assert_str_eq(text, expected);
}

/** All rows of a table of both, every value with its type. */
static void expect_equal(const char *table)
{
    static char sql[TEXT_BYTES];
    static char columns[TEXT_BYTES];
    static char ours[TEXT_BYTES];
    static char theirs[TEXT_BYTES];

    (void)snprintf(sql, sizeof(sql),
                   "SELECT group_concat('typeof(' || name || ') || quote(' || name || ')', ' || ')"
                   " FROM pragma_table_info('%s')",
                   table);
    answer(from, sql, columns);
    columns[strcspn(columns, "\n")] = '\0';
    (void)snprintf(sql, sizeof(sql), "SELECT %.60000s AS row FROM %s ORDER BY row", columns, table);
    answer(from, sql, theirs);
    answer(to, sql, ours);
    ck_assert_str_eq(ours, theirs);
}

START_TEST(all_rows_come_with_their_types)
{
    static const char *const tables[] = {"projects", "runs",   "traces",   "figures",
                                         "users",    "tokens", "sessions", "audit"};
    struct lac_db_copied copied;
    struct lac_error error = {0};

    run(from, "INSERT INTO projects VALUES(3, 'vision', 5), (9, 'it''s \xC3\xA9', -1)");
    run(from, "INSERT INTO runs VALUES('r', 9, NULL, 7)");
    run(from, "INSERT INTO traces(id, project, run, name, state, created_ms, sha256, t0_ns,"
              " throughput_per_s) VALUES('a', 3, NULL, '', 2, 9223372036854775807, x'00ff27', "
              "-9223372036854775807, 0.1), ('b', NULL, 'r', 'n', 2, 0, x'', NULL, 1e300)");
    run(from,
        "INSERT INTO figures(trace, log_step, fingerprint, document) VALUES('a', 17.25, -1, '{}')");
    run(from, "INSERT INTO users(name, is_admin) VALUES('ann', 1), ('gone', 0)");
    run(from, "DELETE FROM users WHERE name = 'gone'");
    run(from, "INSERT INTO tokens(hash, id, user) VALUES(x'0102', 't', 1)");
    run(from, "INSERT INTO sessions VALUES(x'aa', 1, 5)");
    run(from, "INSERT INTO audit(at_ms, actor) VALUES(1, 'ann'), (2, NULL)");
    run(to, "INSERT INTO projects VALUES(1, 'what was there', 0)");
    run(to, "INSERT INTO runs VALUES('old', 1, '', 0)");

    ck_assert_msg(lac_db_copy(from, to, &copied, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(copied.row_count, 2 + 1 + 2 + 1 + 1 + 1 + 1 + 2);
    ck_assert_uint_gt(copied.table_count, 20);
    for (size_t i = 0; i < LAC_COUNT_OF(tables); i++) {
        expect_equal(tables[i]);
    }
    /* nobody gets the number of one who is no more, and a token of his */
    run(to, "INSERT INTO users(name) VALUES('next')");
    expect("SELECT id FROM users ORDER BY id", "1\n3\n");
    ck_assert_int_eq(lac_db_begin(from, false, &error), LAC_OK); /* it is in no transaction */
    ck_assert_int_eq(lac_db_end(from, LAC_OK, &error), LAC_OK);
}
END_TEST

START_TEST(a_copy_that_fails_leaves_what_was_there)
{
    struct lac_db_copied copied;
    struct lac_error error = {0};

    run(from, "INSERT INTO projects VALUES(3, 'vision', 5)");
    run(to, "INSERT INTO projects VALUES(1, 'kept', 0)");
    run(to,
        "CREATE TRIGGER no BEFORE INSERT ON projects BEGIN SELECT RAISE(ABORT, 'no room'); END");
    ck_assert_int_ne(lac_db_copy(from, to, &copied, &error), LAC_OK);
    ck_assert_msg(strstr(error.message, "projects") != NULL, "%s", error.message);
    expect("SELECT name FROM projects", "kept\n");
    run(from, "CREATE TABLE \"not of ours; --\"(a TEXT)");
    ck_assert_int_eq(lac_db_copy(from, to, &copied, &error), LAC_ERR_CORRUPT);
    expect("SELECT name FROM projects", "kept\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog_copy");
    TCase *cases = tcase_create("copy");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, all_rows_come_with_their_types);
    tcase_add_test(cases, a_copy_that_fails_leaves_what_was_there);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
