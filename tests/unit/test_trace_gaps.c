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
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
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

/** Whether a row is one of those that are wished for, decided without the reader. */
static bool fits(const struct lac_gap_row *row, const struct lac_gap_wish *wish)
{
    const int64_t end_ns = row->start_ns + row->dur_ns;

    return (wish->device < 0 || row->device == wish->device) &&
           (wish->cause < 0 || row->cause == wish->cause) && row->dur_ns >= wish->min_ns &&
           row->start_ns >= wish->start_min_ns && row->start_ns <= wish->start_max_ns &&
           end_ns >= wish->end_min_ns && end_ns <= wish->end_max_ns;
}

/** The wished parts of a row. */
static void check_parts(const struct lac_gap_row *row, const struct lac_gap_row *expected,
                        unsigned parts)
{
    if ((parts & LAC_GAP_PART_START) != 0) {
        ck_assert_int_eq(row->start_ns, expected->start_ns);
    }
    if ((parts & LAC_GAP_PART_DUR) != 0) {
        ck_assert_int_eq(row->dur_ns, expected->dur_ns);
    }
    if ((parts & LAC_GAP_PART_DEVICE) != 0) {
        ck_assert_int_eq(row->device, expected->device);
    }
    if ((parts & LAC_GAP_PART_CAUSE) != 0) {
        ck_assert_uint_eq(row->cause, expected->cause);
    }
    if ((parts & LAC_GAP_PART_SHARES) != 0) {
        ck_assert_mem_eq(row->cause_ns, expected->cause_ns, sizeof(row->cause_ns));
    }
    if ((parts & LAC_GAP_PART_ENDED_BY) != 0) {
        ck_assert_uint_eq(row->ended_by, expected->ended_by);
    }
    if ((parts & LAC_GAP_PART_ROOT) != 0) {
        ck_assert_uint_eq(row->root_slice, expected->root_slice);
        ck_assert_int_eq(row->root_kind, expected->root_kind);
    }
    if ((parts & LAC_GAP_PART_SIGNATURE) != 0) {
        ck_assert_uint_eq(row->signature, expected->signature);
    }
    if ((parts & LAC_GAP_PART_PER_STEP) != 0) {
        ck_assert(row->per_step == expected->per_step ||
                  (isnan(row->per_step) && isnan(expected->per_step)));
    }
    if ((parts & LAC_GAP_PART_TEXT) != 0) {
        ck_assert_str_eq(row->root_cause, expected->root_cause);
    }
}

/** All rows of the file, kept. */
struct kept_rows {
    struct lac_gap_row *rows;
    char **texts; /**< owner of their sentences */
    uint64_t count, capacity;
};

static bool keep_row(void *context, const struct lac_gap_row *row)
{
    struct kept_rows *kept = context;

    ck_assert_uint_lt(kept->count, kept->capacity);
    kept->texts[kept->count] = strdup(row->root_cause);
    ck_assert_ptr_nonnull(kept->texts[kept->count]);
    kept->rows[kept->count] = *row;
    kept->rows[kept->count].root_cause = kept->texts[kept->count];
    kept->count++;
    return true;
}

/** Reads on from the present place of the reader. @return how many rows came */
static uint64_t read_wish(struct lac_gap_reader *reader, const struct lac_gap_wish *wish,
                          const struct kept_rows *all)
{
    struct lac_error error = {0};
    struct lac_gap_row row;
    uint64_t at = 0;
    uint64_t index = 0;
    uint64_t count = 0;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        while (lac_gap_reader_row(reader, &row, &index)) {
            while (at < all->count && !fits(&all->rows[at], wish)) {
                at++;
            }
            ck_assert_uint_lt(at, all->count);
            ck_assert_uint_eq(index, at);
            check_parts(&row, &all->rows[at++], wish->parts);
            count++;
        }
        status = lac_gap_reader_block(reader, &error);
    }
    ck_assert_int_eq(status, LAC_ERR_NOT_FOUND);
    while (at < all->count && !fits(&all->rows[at], wish)) {
        at++;
    }
    ck_assert_uint_eq(at, all->count);
    return count;
}

/** Every condition and part by itself and with others, over several blocks, equals a plain walk. */
START_TEST(wished_gaps_are_those_that_a_walk_finds)
{
    static const unsigned parts[] = {0,
                                     LAC_GAP_PART_DUR,
                                     LAC_GAP_PART_SHARES,
                                     LAC_GAP_PART_TEXT,
                                     LAC_GAP_PART_PER_STEP,
                                     LAC_GAP_PART_START | LAC_GAP_PART_ENDED_BY | LAC_GAP_PART_ROOT,
                                     (LAC_GAP_PART_TEXT << 1) - 1};
    struct lac_model *model = rich(40000);
    struct lac_analysis *analysis = NULL;
    struct lac_trace_file *file;
    struct lac_error error = {0};
    struct kept_rows all = {0};
    const struct lac_gap_query query = {.device = -1, .sort = LAC_GAP_SORT_START};

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    file = write_and_open(model, analysis);
    all.capacity = analysis->gap_count;
    all.rows = malloc(all.capacity * sizeof(*all.rows));
    all.texts = malloc(all.capacity * sizeof(*all.texts));
    ck_assert(all.rows != NULL && all.texts != NULL);
    ck_assert_int_eq(lac_trace_file_each_gap(file, &query, keep_row, &all, &error), LAC_OK);
    ck_assert_uint_gt(all.count, 32768); /* several blocks */
    const int64_t middle_ns = all.rows[all.count / 2].start_ns;
    const int64_t later_ns = middle_ns + 100 * all.rows[all.count / 2].dur_ns;
    const struct lac_gap_wish wishes[] = {
        {.device = -1, .start_max_ns = INT64_MAX, .end_max_ns = INT64_MAX, .cause = -1},
        {.device = all.rows[all.count - 1].device,
         .start_max_ns = INT64_MAX,
         .end_max_ns = INT64_MAX,
         .cause = -1},
        {.device = 12345, .start_max_ns = INT64_MAX, .end_max_ns = INT64_MAX, .cause = -1},
        {.device = -1,
         .min_ns = 10000,
         .start_max_ns = INT64_MAX,
         .end_max_ns = INT64_MAX,
         .cause = all.rows[0].cause},
        {.device = -1,
         .start_min_ns = middle_ns,
         .start_max_ns = later_ns,
         .end_max_ns = INT64_MAX,
         .cause = -1},
        {.device = -1,
         .start_max_ns = INT64_MAX,
         .end_min_ns = middle_ns,
         .end_max_ns = later_ns,
         .cause = -1},
    };
    for (size_t w = 0; w < LAC_COUNT_OF(wishes); w++) {
        for (size_t p = 0; p < LAC_COUNT_OF(parts); p++) {
            struct lac_gap_reader *reader = NULL;
            struct lac_gap_wish wish = wishes[w];
            uint64_t sum = 0;

            wish.parts = parts[p];
            ck_assert_int_eq(lac_gap_reader_open_for(file, &wish, &reader, &error), LAC_OK);
            const uint64_t count = read_wish(reader, &wish, &all);

            ck_assert(w == 2 ? count == 0 : count > 0);
            for (wish.cause = 0; w == 0 && wish.cause < LAC_GAP_CAUSES; wish.cause++) {
                lac_gap_reader_rewind(reader, wish.cause);
                sum += read_wish(reader, &wish, &all);
            }
            ck_assert_uint_eq(sum, w == 0 ? all.count : 0);
            lac_gap_reader_close(reader);
        }
    }
    for (uint64_t i = 0; i < all.count; i++) {
        free(all.texts[i]);
    }
    free((void *)all.texts);
    free(all.rows);
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

/** Rows of table long_gap; -1 when the file has none. */
static int64_t count_stored_apart(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *get = NULL;
    int64_t count = -1;

    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, "SELECT sum(count) FROM long_gap", -1, &get, NULL) == SQLITE_OK) {
        ck_assert_int_eq(sqlite3_step(get), SQLITE_ROW);
        count = sqlite3_column_int64(get, 0);
    }
    (void)sqlite3_finalize(get);
    (void)sqlite3_close(db);
    return count;
}

/** One gap of `every` is long. The long ones are those that a walk over all meets. */
static void check_long_gaps(struct lac_analysis *analysis, const struct lac_model *model,
                            uint64_t every, bool are_apart)
{
    const struct lac_gap_query query = {.device = -1, .min_ns = 10000, .sort = LAC_GAP_SORT_START};
    struct kept_rows kept = {.capacity = analysis->gap_count};
    struct lac_gap_reader *reader = NULL;
    struct lac_gap_row row;
    struct lac_error error = {0};
    uint64_t count = 0;

    for (uint64_t i = 0; i < analysis->gap_count; i++) {
        analysis->gaps[i].dur_ns = i % every == 0 ? 10000 + (int64_t)(i % 7) : 9999;
    }
    struct lac_trace_file *file = write_and_open(model, analysis);

    ck_assert_int_eq(count_stored_apart(),
                     are_apart ? (int64_t)((analysis->gap_count + every - 1) / every) : -1);
    kept.rows = malloc(kept.capacity * sizeof(*kept.rows));
    kept.texts = malloc(kept.capacity * sizeof(*kept.texts));
    ck_assert(kept.rows != NULL && kept.texts != NULL);
    ck_assert_int_eq(lac_trace_file_each_gap(file, &query, keep_row, &kept, &error), LAC_OK);
    ck_assert_uint_eq(kept.count, (analysis->gap_count + every - 1) / every);
    ck_assert_int_eq(lac_gap_reader_open(file, -1, query.min_ns, &reader, &error), LAC_OK);
    while (lac_gap_reader_next(reader, &row, &error) == LAC_OK) {
        ck_assert_uint_lt(count, kept.count);
        check_gap(&row, &kept.rows[count++]);
    }
    ck_assert_uint_eq(count, kept.count);
    lac_gap_reader_close(reader);
    for (uint64_t i = 0; i < kept.count; i++) {
        free(kept.texts[i]);
    }
    free((void *)kept.texts);
    free(kept.rows);
    lac_trace_file_close(file);
    ck_assert_int_eq(unlink(path), 0);
}

/** Long gaps are stored apart where they are few, and read the same either way. */
START_TEST(long_gaps_are_the_same_stored_apart)
{
    struct lac_model *model = rich(40000);
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    ck_assert_uint_gt(analysis->gap_count, 32768); /* several blocks */
    check_long_gaps(analysis, model, 20, true);
    check_long_gaps(analysis, model, 4, false);
    analysis->gap_count = 1000; /* one block */
    check_long_gaps(analysis, model, 20, false);
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
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, gaps_say_how_their_time_divides);
    tcase_add_test(tcase, gaps_are_the_same_whichever_way_they_are_read);
    tcase_add_test(tcase, wished_gaps_are_those_that_a_walk_finds);
    tcase_add_test(tcase, long_gaps_are_the_same_stored_apart);
    tcase_add_test(tcase, gaps_name_the_slices_of_their_root_causes);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
