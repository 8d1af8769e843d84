/* Gaps of a trace file: how their time divides, what opened them, and every way to read them. */
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "collector/base/count_of.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/check_main.h"
#include "tests/support/rich_model.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static struct lac_model *rich(uint32_t launches)
{
    struct lac_model *model = NULL;

    ck_assert_int_eq(rich_model_create(1, launches, &model), LAC_OK);
    return model;
}

static struct lac_trace_file *write_and_open(const struct lac_model *model,
                                             const struct lac_analysis *analysis)
{
    const struct lac_trace_write_options options = {
        .path = path, .generation = 1, .analysis = analysis};
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    ck_assert_msg(lac_trace_write(model, &options, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    return file;
}

START_TEST(gaps_say_how_their_time_divides)
{
    struct lac_model *model = rich(3000);
    struct lac_analysis *analysis = NULL;
    struct lac_trace_file *file;
    struct lac_gap_query query = {.device = -1, .min_ns = 0, .limit = 10000};
    struct lac_gap_page page = {0};
    struct lac_error error = {0};
    int64_t longest_ns = INT64_MAX;

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    file = write_and_open(model, analysis);
    ck_assert_msg(lac_trace_file_gaps(file, &query, &page, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_gt(page.total, 100);
    for (uint32_t i = 0; i < page.count; i++) {
        int64_t sum_ns = 0;

        for (unsigned c = 0; c < LAC_GAP_CAUSES; c++) {
            sum_ns += page.rows[i].cause_ns[c];
        }
        ck_assert_int_eq(sum_ns, page.rows[i].dur_ns);
        ck_assert(page.rows[i].dur_ns <= longest_ns);
        longest_ns = page.rows[i].dur_ns;
    }
    lac_gap_page_done(&page);
    query.min_ns = INT64_MAX;
    ck_assert_int_eq(lac_trace_file_gaps(file, &query, &page, &error), LAC_OK);
    ck_assert_uint_eq(page.total, 0);
    lac_gap_page_done(&page);
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

static void check_gap(const struct lac_gap_row *row, const struct lac_gap_row *expected)
{
    ck_assert_int_eq(row->start_ns, expected->start_ns);
    ck_assert_int_eq(row->dur_ns, expected->dur_ns);
    ck_assert_int_eq(row->device, expected->device);
    ck_assert_uint_eq(row->cause, expected->cause);
    ck_assert_mem_eq(row->cause_ns, expected->cause_ns, sizeof(row->cause_ns));
    ck_assert_str_eq(row->root_cause, expected->root_cause);
    ck_assert_uint_eq(row->root_slice, expected->root_slice);
    ck_assert_uint_eq(row->ended_by, expected->ended_by);
    ck_assert(row->per_step == expected->per_step ||
              (isnan(row->per_step) && isnan(expected->per_step)));
}

struct walk {
    const struct lac_gap_page *page;
    uint32_t count, stop_at;
};

static bool walk_gap(void *context, const struct lac_gap_row *row)
{
    struct walk *walk = context;

    ck_assert_uint_lt(walk->count, walk->page->count);
    check_gap(row, &walk->page->rows[walk->count++]);
    return walk->count != walk->stop_at;
}

/** A page of all, a walk over all, and a reader that holds a block. */
START_TEST(gaps_are_the_same_whichever_way_they_are_read)
{
    static const int64_t floors_ns[] = {0, 1, 10000, 50000, INT64_MAX};
    struct lac_model *model = rich(3000);
    struct lac_analysis *analysis = NULL;
    struct lac_trace_file *file;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    file = write_and_open(model, analysis);
    for (size_t f = 0; f < LAC_COUNT_OF(floors_ns); f++) {
        for (int64_t device = -1; device < 3; device++) {
            struct lac_gap_query query = {.device = device,
                                          .min_ns = floors_ns[f],
                                          .sort = LAC_GAP_SORT_START,
                                          .limit = 10000};
            struct lac_gap_page page = {0};
            struct walk walk = {.page = &page};
            struct lac_gap_reader *reader = NULL;
            struct lac_gap_row row;
            uint32_t count = 0;

            ck_assert_int_eq(lac_trace_file_gaps(file, &query, &page, &error), LAC_OK);
            ck_assert(!page.has_more);
            ck_assert_int_eq(lac_trace_file_each_gap(file, &query, walk_gap, &walk, &error),
                             LAC_OK);
            ck_assert_uint_eq(walk.count, page.count);
            ck_assert_int_eq(lac_gap_reader_open(file, device, floors_ns[f], &reader, &error),
                             LAC_OK);
            while (lac_gap_reader_next(reader, &row, &error) == LAC_OK) {
                ck_assert_uint_lt(count, page.count);
                check_gap(&row, &page.rows[count++]);
            }
            ck_assert_uint_eq(count, page.count);
            ck_assert_int_eq(lac_gap_reader_next(reader, &row, &error), LAC_ERR_NOT_FOUND);
            lac_gap_reader_close(reader);
            lac_gap_page_done(&page);
            query.sort = LAC_GAP_SORT_DUR;
            ck_assert_int_eq(lac_trace_file_gaps(file, &query, &page, &error), LAC_OK);
            walk = (struct walk){.page = &page, .stop_at = 2};
            ck_assert_int_eq(lac_trace_file_each_gap(file, &query, walk_gap, &walk, &error),
                             LAC_OK);
            ck_assert_uint_eq(walk.count, page.count < 2 ? page.count : 2);
            lac_gap_page_done(&page);
        }
    }
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

START_TEST(gaps_name_the_slices_of_their_root_causes)
{
    struct lac_model *model = rich(3000);
    struct lac_analysis *analysis = NULL;
    struct lac_trace_file *file;
    const struct lac_gap_query query = {
        .device = -1, .min_ns = 0, .sort = LAC_GAP_SORT_START, .limit = 10000};
    struct lac_gap_page page = {0};
    struct lac_error error = {0};
    uint32_t rooted = 0;

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    ck_assert_uint_gt(analysis->gap_count, 2);
    /* the last slice is one that there is */
    analysis->gaps[0].dur_ns += 10000;
    analysis->gaps[0].root_kind = LAC_ROOT_LATE_BATCH;
    analysis->gaps[0].root = (uint32_t)model->slices.count - 1;
    analysis->gaps[0].wait = 0;
    analysis->gaps[0].batch = 1;
    file = write_and_open(model, analysis);
    ck_assert_msg(lac_trace_file_gaps(file, &query, &page, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(page.count, analysis->gap_count);
    for (uint32_t i = 0; i < page.count; i++) {
        const struct lac_gap *gap = &analysis->gaps[i];
        const struct lac_gap_row *row = &page.rows[i];
        const bool is_long = gap->dur_ns >= 10000;

        ck_assert_int_eq(row->start_ns, gap->start_ns);
        ck_assert_int_eq(row->root_kind, is_long ? gap->root_kind : -1);
        ck_assert_uint_eq(row->root_slice, is_long ? gap->root : LAC_NONE);
        ck_assert_uint_eq(row->wait_slice, is_long ? gap->wait : LAC_NONE);
        ck_assert_uint_eq(row->batch_slice, is_long ? gap->batch : LAC_NONE);
        rooted += row->root_slice != LAC_NONE;
    }
    ck_assert_uint_gt(rooted, 1);
    lac_gap_page_done(&page);
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_gaps");
    TCase *tcase = tcase_create("gaps");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, gaps_say_how_their_time_divides);
    tcase_add_test(tcase, gaps_are_the_same_whichever_way_they_are_read);
    tcase_add_test(tcase, gaps_name_the_slices_of_their_root_causes);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
