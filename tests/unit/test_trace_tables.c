/* Tables of a trace, against a plain computation over its slices. */
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "server/tables/launched.h"
#include "server/tables/trace_tables.h"
#include "tests/support/check_main.h"
#include "tests/support/rich_model.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char path[128];
static struct lac_model *model;
static struct lac_analysis *analysis;
static struct lac_trace_file *file;

static void store(void)
{
    struct lac_trace_write_options options = {.path = path, .generation = 1};
    struct lac_error error = {0};

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    options.analysis = analysis;
    ck_assert_msg(lac_trace_write(model, &options, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
}

static void setup_rich(void)
{
    ck_assert_int_eq(rich_model_create(5, 20000, &model), LAC_OK);
    store();
}

/** Two steps: operators that launch, on two streams; a loader; a pageable copy. */
static void setup_drawn(void)
{
    model = trace_draw("main    range   0    100      ProfilerStep#1\n"
                       "main    op      5     20      aten::linear\n"
                       "main    op      8     10      aten::addmm\n"
                       "main    call   10      2  #1  cudaLaunchKernel\n"
                       "main    op      30    10      aten::relu\n"
                       "main    call   31      2  #2  cudaLaunchKernel\n"
                       "main    call   50      2  #3  cudaLaunchKernel\n"
                       "main    call   60      2  #4  cudaMemcpyAsync\n"
                       "gpu0.7  kernel 20     10  #1  sgemm\n"
                       "gpu0.7  kernel 40     30  #2  relu\n"
                       "gpu0.9  kernel 60     20  #3  relu\n"
                       "gpu0.7  copy   80     10  #4  HtoD pageable 1000000\n"
                       "w3      fetch   0     35      batch=2 worker=3 cpu=25\n"
                       "main    wait    1      3      batch=2\n"
                       "main    range 100    100      ProfilerStep#2\n");
    store();
}

static void teardown(void)
{
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void make(const struct lac_table_query *query, struct lac_table *table)
{
    struct lac_error error = {0};

    ck_assert_msg(lac_table_make(file, query, table, &error) == LAC_OK, "%s", error.message);
}

static int64_t number(const struct lac_table_row *row, enum lac_table_column column)
{
    ck_assert_int_eq(row->cells[column].type, LAC_CELL_INT);
    return row->cells[column].integer;
}

static const char *text(const struct lac_table_row *row, enum lac_table_column column)
{
    return row->cells[column].type == LAC_CELL_TEXT ? row->cells[column].text : "";
}

/* -- against a plain count ------------------------------------------------------------------- */

static bool is_of(enum lac_table_name table, uint8_t kind)
{
    return (table == LAC_TABLE_KERNELS && kind == LAC_SLICE_KERNEL) ||
           (table == LAC_TABLE_OPERATORS && kind == LAC_SLICE_OP) ||
           (table == LAC_TABLE_CALLS && kind == LAC_SLICE_API);
}

static int64_t inside_ns(const struct lac_table_query *query, uint64_t slice)
{
    const int64_t start = model->slices.start_ns[slice];
    const int64_t end = start + model->slices.dur_ns[slice];

    if (start == end) {
        return start >= query->t0_ns && start < query->t1_ns ? 0 : -1;
    }
    if (start >= query->t1_ns || end <= query->t0_ns) {
        return -1;
    }
    return (end < query->t1_ns ? end : query->t1_ns) -
           (start > query->t0_ns ? start : query->t0_ns);
}

static int ascending(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

/** Nearest rank: the smallest value that at least that part of all reach. */
static int64_t rank_of(const int64_t *values, size_t count, unsigned pct)
{
    size_t rank = 1;

    while (rank * 100 < count * pct) {
        rank++;
    }
    return values[rank - 1];
}

/** One row of the table, from all slices of its name. @return how many */
static size_t check_row(const struct lac_table_query *query, const struct lac_table_row *row,
                        int64_t *values)
{
    int64_t total = 0;
    size_t count = 0;
    uint64_t in_bins = 0;

    for (uint64_t i = 0; i < model->slices.count; i++) {
        const int64_t ns = inside_ns(query, i);

        if (is_of(query->table, model->slices.kind[i]) && ns >= 0 &&
            strcmp(lac_model_str(model, model->slices.name[i]), text(row, LAC_TABLE_NAME_COLUMN)) ==
                0) {
            values[count++] = ns;
            total += ns;
        }
    }
    ck_assert_uint_gt(count, 0);
    qsort(values, count, sizeof(*values), ascending);
    ck_assert_int_eq(number(row, LAC_TABLE_COUNT_COLUMN), (int64_t)count);
    ck_assert_int_eq(number(row, LAC_TABLE_TOTAL_COLUMN), total);
    ck_assert_int_eq(number(row, LAC_TABLE_MEAN_COLUMN), total / (int64_t)count);
    ck_assert_int_eq(number(row, LAC_TABLE_MIN_COLUMN), values[0]);
    ck_assert_int_eq(number(row, LAC_TABLE_MAX_COLUMN), values[count - 1]);
    ck_assert_int_eq(number(row, LAC_TABLE_P50_COLUMN), rank_of(values, count, 50));
    ck_assert_int_eq(number(row, LAC_TABLE_P95_COLUMN), rank_of(values, count, 95));
    ck_assert_int_eq(inside_ns(query, row->slice), values[count - 1]);
    for (unsigned b = 0; b < LAC_TABLE_BINS; b++) {
        in_bins += row->bins[b];
    }
    ck_assert(!row->has_bins || in_bins == count);
    ck_assert(!row->has_bins || row->bins[LAC_TABLE_BINS - 1] > 0);
    return count;
}

static void compare_with_plain(const struct lac_table_query *query)
{
    int64_t *values = malloc((model->slices.count + 1) * sizeof(*values));
    struct lac_table table = {0};
    size_t expected = 0;
    size_t counted = 0;

    ck_assert_ptr_nonnull(values);
    make(query, &table);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        expected += is_of(query->table, model->slices.kind[i]) && inside_ns(query, i) >= 0;
    }
    for (uint32_t r = 0; r < table.count; r++) {
        counted += check_row(query, &table.rows[r], values);
        ck_assert(r == 0 || number(&table.rows[r - 1], LAC_TABLE_TOTAL_COLUMN) >=
                                number(&table.rows[r], LAC_TABLE_TOTAL_COLUMN));
    }
    ck_assert_uint_eq(counted, expected);
    ck_assert(table.has_all == (expected > 0));
    if (expected > 0) {
        size_t count = 0;

        for (uint64_t i = 0; i < model->slices.count; i++) {
            if (is_of(query->table, model->slices.kind[i]) && inside_ns(query, i) >= 0) {
                values[count++] = inside_ns(query, i);
            }
        }
        qsort(values, count, sizeof(*values), ascending);
        ck_assert_int_eq(number(&table.all, LAC_TABLE_COUNT_COLUMN), (int64_t)count);
        ck_assert_int_eq(number(&table.all, LAC_TABLE_P95_COLUMN), rank_of(values, count, 95));
    }
    lac_table_done(&table);
    free(values);
}

START_TEST(test_a_table_is_what_a_plain_count_says)
{
    static const enum lac_table_name all[] = {LAC_TABLE_KERNELS, LAC_TABLE_OPERATORS,
                                              LAC_TABLE_CALLS};
    const int64_t end_ns = model->info.duration_ns;
    const int64_t edges[][2] = {{0, LAC_TIME_MAX_NS},
                                {end_ns / 3, end_ns / 2},
                                {end_ns * 7 / 10, end_ns * 7 / 10 + 500},
                                {model->slices.start_ns[model->slices.count / 2], end_ns}};

    for (unsigned t = 0; t < LAC_COUNT_OF(all); t++) {
        for (unsigned e = 0; e < LAC_COUNT_OF(edges); e++) {
            compare_with_plain(&(struct lac_table_query){.table = all[t],
                                                         .t0_ns = edges[e][0],
                                                         .t1_ns = edges[e][1],
                                                         .sort = LAC_TABLE_TOTAL_COLUMN,
                                                         .is_descending = true});
        }
    }
}
END_TEST

/** What an area says of the same time. */
START_TEST(test_self_times_are_those_of_an_area)
{
    const int64_t end_ns = model->info.duration_ns;
    const struct lac_table_query query = {.table = LAC_TABLE_OPERATORS,
                                          .t0_ns = end_ns / 3,
                                          .t1_ns = end_ns * 2 / 3,
                                          .sort = LAC_TABLE_SELF_COLUMN};
    const struct lac_area_query area_query = {.t0_ns = query.t0_ns, .t1_ns = query.t1_ns};
    struct lac_table table = {0};
    struct lac_area area = {0};
    uint32_t found = 0;

    make(&query, &table);
    ck_assert_int_eq(lac_trace_file_area(file, &area_query, &area, NULL), LAC_OK);
    for (uint32_t i = 0; i < area.name_count; i++) {
        for (uint32_t r = 0; area.names[i].kind == LAC_SLICE_OP && r < table.count; r++) {
            if (strcmp(lac_model_str(model, area.names[i].name),
                       text(&table.rows[r], LAC_TABLE_NAME_COLUMN)) == 0) {
                ck_assert_int_eq(number(&table.rows[r], LAC_TABLE_SELF_COLUMN),
                                 area.names[i].self_ns > 0 ? area.names[i].self_ns : 0);
                found++;
            }
        }
    }
    ck_assert_uint_gt(found, 0);
    ck_assert_uint_eq(found, table.count);
    lac_area_done(&area);
    lac_table_done(&table);
}
END_TEST

/* -- what a drawing says --------------------------------------------------------------------- */

START_TEST(test_kernels_know_who_launched_them)
{
    struct lac_table_query query = {.table = LAC_TABLE_KERNELS,
                                    .t1_ns = LAC_TIME_MAX_NS,
                                    .sort = LAC_TABLE_TOTAL_COLUMN,
                                    .is_descending = true};
    struct lac_table table = {0};

    make(&query, &table);
    ck_assert_uint_eq(table.count, 2);
    ck_assert_str_eq(text(&table.rows[0], LAC_TABLE_NAME_COLUMN), "relu");
    ck_assert_str_eq(text(&table.rows[0], LAC_TABLE_OPERATOR_COLUMN), "(several)");
    ck_assert_str_eq(text(&table.rows[0], LAC_TABLE_TRACK_COLUMN), "(several)");
    ck_assert_str_eq(text(&table.rows[1], LAC_TABLE_OPERATOR_COLUMN), "aten::addmm");
    ck_assert_str_eq(text(&table.rows[1], LAC_TABLE_TRACK_COLUMN), "GPU 0 stream 7");
    lac_table_done(&table);

    query.by = LAC_TABLE_BY_OPERATOR;
    make(&query, &table);
    ck_assert_uint_eq(table.count, 3); /* addmm, relu, and none around the third call */
    ck_assert_str_eq(text(&table.rows[0], LAC_TABLE_OPERATOR_COLUMN), "aten::relu");
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_TOTAL_COLUMN), 30000);
    ck_assert_str_eq(text(&table.rows[1], LAC_TABLE_OPERATOR_COLUMN), "");
    lac_table_done(&table);

    query.by = LAC_TABLE_BY_NAME | LAC_TABLE_BY_TRACK;
    query.text = "STREAM 9";
    make(&query, &table);
    ck_assert_uint_eq(table.count, 1);
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_TOTAL_COLUMN), 20000);
    ck_assert_int_eq(number(&table.all, LAC_TABLE_COUNT_COLUMN), 1);
    lac_table_done(&table);
}
END_TEST

static uint32_t slice_named(const char *name, uint8_t kind)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == kind &&
            strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
            return (uint32_t)i;
        }
    }
    ck_abort();
}

static void launched_by(const char *name, uint8_t kind, struct lac_launched *launched)
{
    struct lac_error error = {0};

    ck_assert_msg(lac_launched_by(file, slice_named(name, kind), launched, &error) == LAC_OK, "%s",
                  error.message);
}

START_TEST(test_what_a_slice_launched_and_what_is_around_it)
{
    struct lac_launched launched = {0};

    launched_by("aten::linear", LAC_SLICE_OP, &launched);
    ck_assert_uint_eq(launched.count, 1);
    ck_assert_int_eq(launched.total_ns, 10000);
    ck_assert_int_eq(launched.first_ns, 20000);
    ck_assert_int_eq(launched.end_ns, 30000);
    ck_assert_uint_eq(launched.chain_count, 1);
    ck_assert_str_eq(lac_model_str(model, launched.chain[0].name), "ProfilerStep#1");
    lac_launched_done(&launched);

    launched_by("ProfilerStep#1", LAC_SLICE_RANGE, &launched);
    ck_assert_uint_eq(launched.count, 4); /* three kernels and a copy */
    ck_assert_int_eq(launched.total_ns, 70000);
    ck_assert_uint_eq(launched.told_count, 4);
    ck_assert(launched.told[0].start_ns < launched.told[3].start_ns);
    lac_launched_done(&launched);

    launched_by("sgemm", LAC_SLICE_KERNEL, &launched);
    ck_assert_uint_eq(launched.count, 0);
    ck_assert_uint_eq(launched.chain_count, 4);
    ck_assert_str_eq(lac_model_str(model, launched.chain[0].name), "cudaLaunchKernel");
    ck_assert_str_eq(lac_model_str(model, launched.chain[1].name), "aten::addmm");
    ck_assert_str_eq(lac_model_str(model, launched.chain[2].name), "aten::linear");
    lac_launched_done(&launched);

    ck_assert_int_eq(lac_launched_by(file, LAC_NONE - 1, &launched, NULL), LAC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(test_copies_and_batches)
{
    struct lac_table_query query = {
        .table = LAC_TABLE_COPIES, .t1_ns = LAC_TIME_MAX_NS, .sort = LAC_TABLE_TOTAL_COLUMN};
    struct lac_table table = {0};

    make(&query, &table);
    ck_assert_uint_eq(table.count, 1);
    ck_assert_ptr_nonnull(strstr(text(&table.rows[0], LAC_TABLE_DIRECTION_COLUMN), "pageable"));
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_BYTES_COLUMN), 1000000);
    ck_assert_double_eq_tol(table.rows[0].cells[LAC_TABLE_RATE_COLUMN].real, 1e11, 1);
    lac_table_done(&table);

    query.table = LAC_TABLE_BATCHES;
    query.sort = LAC_TABLE_START_COLUMN;
    make(&query, &table);
    ck_assert_uint_eq(table.count, 1);
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_BATCH_COLUMN), 2);
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_WORKER_COLUMN), 3);
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_DUR_COLUMN), 35000);
    ck_assert_int_eq(number(&table.rows[0], LAC_TABLE_WAIT_COLUMN), 3000);
    lac_table_done(&table);
}
END_TEST

START_TEST(test_what_cannot_be_asked)
{
    const struct lac_table_query queries[] = {
        {.table = LAC_TABLE_KERNELS, .t0_ns = 5, .t1_ns = 5},
        {.table = LAC_TABLE_KERNELS, .t1_ns = 5, .by = LAC_TABLE_BY_SIZE},
        {.table = LAC_TABLE_STEPS, .t1_ns = 5, .by = LAC_TABLE_BY_NAME},
        {.table = LAC_TABLE_COUNT_, .t1_ns = 5},
        {.table = LAC_TABLE_KERNELS,
         .t1_ns = 5,
         .tracks = (uint32_t[]){UINT32_MAX},
         .track_count = 1},
    };

    for (unsigned q = 0; q < LAC_COUNT_OF(queries); q++) {
        struct lac_table table = {0};

        ck_assert_int_eq(lac_table_make(file, &queries[q], &table, NULL), LAC_ERR_MISUSE);
        ck_assert_ptr_null(table.rows);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_tables");
    TCase *rich = tcase_create("rich");
    TCase *drawn = tcase_create("drawn");

    tcase_set_timeout(rich, 300);
    tcase_add_unchecked_fixture(rich, setup_rich, teardown);
    tcase_add_test(rich, test_a_table_is_what_a_plain_count_says);
    tcase_add_test(rich, test_self_times_are_those_of_an_area);
    suite_add_tcase(suite, rich);
    tcase_add_checked_fixture(drawn, setup_drawn, teardown);
    tcase_add_test(drawn, test_kernels_know_who_launched_them);
    tcase_add_test(drawn, test_what_a_slice_launched_and_what_is_around_it);
    tcase_add_test(drawn, test_copies_and_batches);
    tcase_add_test(drawn, test_what_cannot_be_asked);
    suite_add_tcase(suite, drawn);
    return check_main(suite);
}
