/* Runs over time in the catalog: what a page of ten thousand runs reads, and what is forgotten. */

#include "server/store/catalog.h"
#include "server/store/database/sqlite_database.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "tests/support/catalog_place.h"
#include "tests/support/check_main.h"
#include "tests/support/many_runs.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 10000, OPERATIONS_PER_TICK = 1000 };

static struct lac_store *store;
static char folder[] = "/tmp/lacuna-journal-XXXXXX";
static struct lac_error error;

/** Project "many" with three settings; each tenth run is of another project by its label. No trace
 *  file exists: what opened one would fail. */
static void fill(void)
{
    ck_assert_int_eq(lac_many_runs_write(store->catalog, RUNS, &error), LAC_OK);
    ck_assert_int_eq(
        lac_db_run(store->catalog,
                   "INSERT INTO labels(trace, project) SELECT id, 'other' FROM traces"
                   " WHERE created_ms % 10 = 0 ON CONFLICT(trace) DO UPDATE SET project ="
                   " 'other'",
                   &error),
        LAC_OK);
}

static void setup(void)
{
    const struct lac_store_options options = {.data_dir = folder};

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-journal-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    place_catalog(folder);
    ck_assert_int_eq(lac_store_open(&options, &store, &error), LAC_OK);
    fill();
}

static void teardown(void)
{
    char command[64];

    lac_store_close(store);
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static int count_tick(void *ticks)
{
    *(uint64_t *)ticks += 1;
    return 0;
}

START_TEST(ten_thousand_runs_are_read_in_one_pass)
{
    struct lac_point_list list;
    struct lac_neighbor_list neighbors;
    struct lac_setting_values values;
    struct lac_varied varied[LAC_VARIED_MAX];
    uint32_t count = 0;
    uint64_t ticks = 0;

    sqlite3_progress_handler(lac_db_sqlite(store->catalog), OPERATIONS_PER_TICK, count_tick,
                             &ticks);
    ck_assert_int_eq(lac_store_points(store, "many", &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, RUNS * 9 / 10);
    ck_assert_uint_eq(list.missing, 0);
    for (uint32_t i = 1; i < list.count; i++) { /* by time of recording, not of arrival */
        ck_assert_int_lt(list.points[i - 1].figures.recorded_unix_ms,
                         list.points[i].figures.recorded_unix_ms);
    }
    ck_assert_int_eq(list.points[0].figures.part_ns[LAC_PART_IDLE + LAC_CAUSE_DATA_WAIT],
                     1080 * INT64_C(1000000000));
    ck_assert_str_eq(list.points[0].figures.job, "train.py");
    ck_assert_double_eq(list.points[0].figures.energy_j, 1.0);
    ck_assert_double_eq(list.points[0].figures.mfu_pct, 40.0);
    ck_assert_int_eq(lac_store_neighbors(store, "many", &neighbors, &error), LAC_OK);
    ck_assert_int_eq(lac_store_setting_values(store, "many", "num_workers", &values, &error),
                     LAC_OK);
    ck_assert_uint_eq(values.count, RUNS * 9 / 10);
    ck_assert_int_eq(lac_store_varied(store, "many", varied, &count, &error), LAC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(varied[0].key, "num_workers");
    ck_assert_uint_eq(varied[0].value_count, 3);
    sqlite3_progress_handler(lac_db_sqlite(store->catalog), 0, NULL, NULL);
    /* a pass over the rows each: what looked at pairs of them would take a hundred million */
    ck_assert_uint_lt(ticks * OPERATIONS_PER_TICK, UINT64_C(400) * RUNS);
    lac_point_list_done(&list);
    lac_neighbor_list_done(&neighbors);
    lac_setting_values_done(&values);
    ck_assert_int_eq(lac_store_points(store, "other", &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, RUNS / 10);
    lac_point_list_done(&list);
    ck_assert_int_eq(lac_store_points(store, LAC_NO_PROJECT, &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, 0);
    lac_point_list_done(&list);
}
END_TEST

static void check_compared(const char *trace, const char *expected)
{
    struct lac_run_details *details = NULL;

    ck_assert_int_eq(lac_store_run_details(store, &trace, 1, &details, &error), LAC_OK);
    ck_assert(details[0].is_there);
    ck_assert_pstr_eq(details[0].neighbors, expected);
    lac_run_details_done(details, 1);
}

static int count_statement(unsigned kind, void *context, void *statement, void *text)
{
    (void)kind;
    (void)statement;
    (void)text;
    *(unsigned *)context += 1;
    return 0;
}

START_TEST(a_page_is_one_statement)
{
    static const char gone[] = "aaaaaaaaaaaaaaaaaaaaaaaaaa";
    static char ids[200][LAC_ID_SIZE];
    const char *traces[201];
    struct lac_run_details *details = NULL;
    unsigned statements = 0;
    uint64_t ticks = 0;

    for (unsigned i = 0; i < 200; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%026u", 9999 - 7 * i);
        traces[i] = ids[i];
    }
    traces[200] = gone;
    (void)sqlite3_trace_v2(lac_db_sqlite(store->catalog), SQLITE_TRACE_STMT, count_statement,
                           &statements);
    sqlite3_progress_handler(lac_db_sqlite(store->catalog), OPERATIONS_PER_TICK, count_tick,
                             &ticks);
    ck_assert_int_eq(lac_store_run_details(store, traces, 201, &details, &error), LAC_OK);
    (void)sqlite3_trace_v2(lac_db_sqlite(store->catalog), 0, NULL, NULL);
    sqlite3_progress_handler(lac_db_sqlite(store->catalog), 0, NULL, NULL);
    ck_assert_uint_eq(statements, 1);
    ck_assert_uint_lt(ticks, 20); /* rows of the page alone, not of the project */
    for (unsigned i = 0; i < 200; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "run %u", 9999 - 7 * i);
        ck_assert(details[i].is_there);
        ck_assert_str_eq(details[i].name, name);
        ck_assert(details[i].is_baseline == (i == 0));
        ck_assert_ptr_nonnull(strstr(details[i].figures, "command_line"));
        ck_assert((details[i].neighbors == NULL) == (i == 0)); /* the first has none before it */
    }
    ck_assert(!details[200].is_there && details[200].name == NULL);
    lac_run_details_done(details, 201);
    ck_assert_int_eq(lac_store_run_details(store, NULL, 0, &details, &error), LAC_OK);
    lac_run_details_done(details, 0);
}
END_TEST

START_TEST(figures_of_another_import_are_not_there)
{
    static const char id[] = "00000000000000000000000042";
    struct lac_figures figures = {.generation = 2, .energy_j = (double)NAN};
    const struct lac_setting_text settings[] = {{"a", "1"}, {"a", "2"}, {"b", "x"}};
    struct lac_neighbors pair = {.predicted_pct = 5, .achieved_pct = 4};
    char ids[4][LAC_ID_SIZE];
    uint32_t count = 0;

    ck_assert_int_eq(lac_store_unfigured(store, NULL, 4, ids, &count, &error), LAC_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(lac_db_run(store->catalog,
                                "UPDATE traces SET generation = 2 WHERE created_ms = 42", &error),
                     LAC_OK);
    ck_assert_int_eq(lac_store_unfigured(store, "many", 4, ids, &count, &error), LAC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(ids[0], id);
    (void)snprintf(figures.trace, sizeof(figures.trace), "%s", id);
    (void)snprintf(pair.b, sizeof(pair.b), "%s", id);
    (void)snprintf(pair.a, sizeof(pair.a), "00000000000000000000000041");
    ck_assert_int_eq(lac_store_put_neighbors(store, &pair, "{\"x\":1}", &error), LAC_OK);
    check_compared(id, "{\"x\":1}");
    ck_assert_int_eq(lac_store_put_figures(store, &figures, "{}", settings, 3, &error), LAC_OK);
    /* what was compared was the import before */
    check_compared(id, NULL);
    ck_assert_int_eq(lac_store_unfigured(store, NULL, 4, ids, &count, &error), LAC_OK);
    ck_assert_uint_eq(count, 0);
    (void)snprintf(figures.trace, sizeof(figures.trace), "aaaaaaaaaaaaaaaaaaaaaaaaaa");
    ck_assert_int_eq(lac_store_put_figures(store, &figures, "{}", NULL, 0, &error),
                     LAC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_baseline_is_the_one_of_its_project)
{
    static const char a[] = "00000000000000000000000001";
    static const char b[] = "00000000000000000000000002";
    char baseline[LAC_ID_SIZE];
    const char *const traces[] = {a};
    struct lac_run_details *details = NULL;

    ck_assert_int_eq(lac_store_set_marks(store, a, 1, 1, &error), LAC_OK);
    ck_assert_int_eq(lac_store_set_marks(store, b, 1, -1, &error), LAC_OK);
    ck_assert_int_eq(lac_store_baseline(store, "many", baseline, &error), LAC_OK);
    ck_assert_str_eq(baseline, b);
    ck_assert_int_eq(lac_store_run_details(store, traces, 1, &details, &error), LAC_OK);
    ck_assert(!details[0].is_baseline && details[0].is_pinned);
    lac_run_details_done(details, 1);
    ck_assert_int_eq(lac_store_set_marks(store, b, 0, -1, &error), LAC_OK);
    ck_assert_int_eq(lac_store_baseline(store, "many", baseline, &error), LAC_OK);
    ck_assert_str_eq(baseline, "");
    ck_assert_int_eq(lac_store_set_marks(store, "aaaaaaaaaaaaaaaaaaaaaaaaaa", 1, 1, &error),
                     LAC_ERR_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("journal_rows");
    TCase *cases = tcase_create("journal_rows");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 60);
    if (catalog_is_file()) { /* they count what SQLite does */
        tcase_add_test(cases, ten_thousand_runs_are_read_in_one_pass);
        tcase_add_test(cases, a_page_is_one_statement);
    }
    tcase_add_test(cases, figures_of_another_import_are_not_there);
    tcase_add_test(cases, a_baseline_is_the_one_of_its_project);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
