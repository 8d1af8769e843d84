/* Trace files that are cut, flipped, or lie: an error or a right answer, never a crash. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis_pack.h"
#include "collector/base/count_of.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/column.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/ask_trace.h"
#include "tests/support/check_main.h"
#include "tests/support/pick.h"
#include "tests/support/rich_model.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char path[128];
static char damaged[128];
/** A whole trace file, which no test changes: of so many slices that a track has totals of its own. */
static void setup(void)
{
    struct lac_model *model = NULL;
    struct lac_analysis *analysis = NULL;
    uint8_t *facts = NULL;
    size_t facts_bytes = 0;
    struct lac_trace_write_options options = {
        .path = path,
        .generation = 1,
        .documents = {[LAC_DOCUMENT_ANALYSIS] = {"{\"schema\":\"lacuna.analysis/1\"}", 30}}};
    struct lac_error error = {0};

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/whole.db", folder);
    (void)snprintf(damaged, sizeof(damaged), "%s/damaged.db", folder);
    ck_assert_int_eq(rich_model_create(7, 40000, &model), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    options.analysis = analysis;
    ck_assert_int_eq(lac_analysis_pack(analysis, model, &facts, &facts_bytes), LAC_OK);
    options.documents[LAC_DOCUMENT_FACTS] =
        (struct lac_trace_text){(const char *)facts, facts_bytes};
    ck_assert_int_eq(lac_trace_write(model, &options, &error), LAC_OK);
    free(facts);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)unlink(damaged);
    (void)rmdir(folder);
}

static uint8_t *read_file(size_t *ret_size)
{
    FILE *stream = fopen(path, "rb");
    uint8_t *bytes;

    (void)fseek(stream, 0, SEEK_END);
    *ret_size = (size_t)ftell(stream);
    (void)fseek(stream, 0, SEEK_SET);
    bytes = malloc(*ret_size);
    ck_assert_uint_eq(fread(bytes, 1, *ret_size, stream), *ret_size);
    (void)fclose(stream);
    return bytes;
}

static void write_damaged(const uint8_t *bytes, size_t size)
{
    FILE *stream = fopen(damaged, "wb");

    ck_assert_uint_eq(fwrite(bytes, 1, size, stream), size);
    (void)fclose(stream);
}

/** @return whether it opened */
static bool try_damaged(void)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_trace_file_open(damaged, 8 << 20, &file, &error);

    if (status != LAC_OK) {
        ck_assert(error.message[0] != '\0');
        return false;
    }
    ask_everything(file, pick);
    lac_trace_file_close(file);
    return true;
}

/** Bytes that are wrong under checksums that are right: what a hostile writer leaves. */
START_TEST(made_up_bytes_are_errors_or_harmless)
{
    int rounds = rounds_are_all() ? 3000 : rounds_of(60);
    size_t size = 0;
    uint8_t *bytes = read_file(&size);
    int opened = 0;

    for (int i = 0; i < rounds; i++) {
        uint8_t *copy = malloc(size);
        uint32_t flips = 1 + pick(i % 3 == 0 ? 40 : 3);
        struct lac_error error = {0};

        memcpy(copy, bytes, size);
        for (uint32_t f = 0; f < flips; f++) {
            copy[pick((uint32_t)size)] = (uint8_t)pick(256);
        }
        write_damaged(copy, size);
        (void)!lac_checked_stamp(damaged, &error);
        opened += try_damaged();
        free(copy);
    }
    ck_assert_int_gt(opened, rounds / 10); /* else the test tests only the door */
    free(bytes);
}
END_TEST

/** The answers of eleven kinds of questions, as one hash; false when one of them was an error. */
static bool answers(uint64_t *ret_hash, struct lac_error *error)
{
    struct lac_trace_file *file = NULL;
    const struct lac_model *whole = NULL;
    const uint32_t tracks[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct lac_search_query search = {.text = "kernel", .kind = -1, .limit = 50};
    const struct lac_kernel_query kernel_query = {.limit = 50};
    const struct lac_gap_query gap_query = {.device = -1, .limit = 50};
    struct lac_search_hits hits = {0};
    struct lac_kernel_page kernels = {0};
    const struct lac_area_query area_query = {.t0_ns = 1000, .t1_ns = LAC_TIME_MAX_NS};
    struct lac_gap_page gaps = {0};
    struct lac_area area = {0};
    uint8_t *tiles = NULL;
    char *text = NULL;
    size_t size = 0;
    uint64_t hash = 7;
    enum lac_status status = lac_trace_file_open(damaged, 8 << 20, &file, error);

    if (status == LAC_OK) {
        status = lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &size, error);
        hash = status == LAC_OK ? lac_hash64(text, size, hash) : hash;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_tiles(file, 4, 0, 3, tracks, 8, &tiles, &size, error);
        hash = status == LAC_OK ? lac_hash64(tiles, size, hash) : hash;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_search(file, &search, &hits, error);
        hash = hash * 31 + hits.count;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_kernels(file, &kernel_query, &kernels, error);
        hash = hash * 31 + (uint64_t)kernels.count;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_gaps(file, &gap_query, &gaps, error);
        hash = hash * 31 + (uint64_t)gaps.count;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_area(file, &area_query, &area, error);
        hash = hash * 31 + area.slice_count + area.name_count;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_whole_model(file, &whole, error);
    }
    if (status == LAC_OK) {
        hash = lac_hash64(whole->slices.start_ns, whole->slices.count * sizeof(int64_t), hash);
        hash = lac_hash64(whole->slices.name, whole->slices.count * sizeof(uint32_t), hash);
        hash = lac_hash64(whole->slices.dur_ns, whole->slices.count * sizeof(int64_t), hash);
    }
    lac_trace_file_release_model(file, whole);
    lac_search_hits_done(&hits);
    lac_kernel_page_done(&kernels);
    lac_gap_page_done(&gaps);
    lac_area_done(&area);
    free(tiles);
    free(text);
    lac_trace_file_close(file);
    *ret_hash = hash;
    return status == LAC_OK;
}

/** A bit, a page of zeros, two pages in each other's place: an error that says where, or the
 * answers of the whole file; never others. */
START_TEST(damage_is_an_error_and_never_another_answer)
{
    int rounds = rounds_are_all() ? 2000 : rounds_of(60);
    struct lac_error error = {0};
    size_t size = 0;
    uint8_t *bytes = read_file(&size);
    size_t page = (size_t)bytes[16] << 8 | bytes[17];
    uint32_t pages = (uint32_t)(size / page);
    uint64_t whole = 0;
    uint64_t hash = 0;
    int found = 0;

    write_damaged(bytes, size);
    ck_assert_msg(answers(&whole, &error), "%s", error.message);
    for (int i = 0; i < rounds; i++) {
        uint8_t *copy = malloc(size);
        size_t at = page * pick(pages);

        memcpy(copy, bytes, size);
        if (i % 4 < 2) {
            copy[pick((uint32_t)size)] ^= (uint8_t)(1U << pick(8));
        } else if (i % 4 == 2) {
            memset(copy + at, 0, page);
        } else {
            size_t other = page * pick(pages);

            memcpy(copy + at, bytes + other, page);
            memcpy(copy + other, bytes + at, page);
        }
        write_damaged(copy, size);
        free(copy);
        error = (struct lac_error){0};
        if (answers(&hash, &error)) {
            ck_assert_msg(hash == whole, "round %d: another answer", i);
        } else {
            ck_assert_msg(error.status == LAC_ERR_CORRUPT &&
                              strstr(error.message, "damaged.db") != NULL,
                          "round %d: %s", i, error.message);
            ck_assert_ptr_null(strstr(error.message, folder));
            found++;
        }
    }
    ck_assert_int_gt(found, rounds / 2);
    free(bytes);
}
END_TEST

START_TEST(cut_files_are_errors)
{
    size_t size = 0;
    uint8_t *bytes = read_file(&size);

    for (int i = 0; i < 40; i++) {
        write_damaged(bytes, i == 0 ? 0 : pick((uint32_t)size));
        (void)try_damaged();
    }
    free(bytes);
}
END_TEST

/** Run SQL on a copy of the file, and set its checksums: a lie, not damage. */
static void change(const char *sql)
{
    sqlite3 *db = NULL;
    struct lac_error error = {0};
    size_t size = 0;
    uint8_t *bytes = read_file(&size);

    write_damaged(bytes, size);
    free(bytes);
    ck_assert_int_eq(sqlite3_open(damaged, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    ck_assert_msg(lac_checked_stamp(damaged, &error) == LAC_OK, "%s", error.message);
}

START_TEST(a_newer_format_is_refused_with_a_sentence)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    change("UPDATE meta SET value = value + 1 WHERE key = 'format_version'");
    ck_assert_int_eq(lac_trace_file_open(damaged, 0, &file, &error), LAC_ERR_LIMIT);
    char said[32];
    (void)snprintf(said, sizeof(said), "format %d", LAC_TRACE_FORMAT_VERSION + 1);
    ck_assert_ptr_nonnull(strstr(error.message, said));
    ck_assert_ptr_nonnull(strstr(error.message, "newer"));
}
END_TEST

static const char *const lies_opening[] = {
    "UPDATE meta SET value = 0 WHERE key = 'format_version'",
    "UPDATE meta SET value = 'x' WHERE key = 'generation'",
    "UPDATE meta SET value = 99 WHERE key = 'level_max'",
    "UPDATE meta SET value = value + 1 WHERE key = 'slice_total'",
    "UPDATE meta SET value = 4294967294 WHERE key = 'track_count'",
    "UPDATE meta SET value = value + 1 WHERE key = 'string_count'",
    "UPDATE meta SET value = -5 WHERE key = 'duration_ns'",
    "UPDATE meta SET value = 100000000 WHERE key = 'name'",
    "DELETE FROM meta WHERE key = 'rank'",
    "DELETE FROM string",
    "UPDATE string SET raw_bytes = 4000000000",
    "UPDATE string SET count = count + 1",
    "UPDATE string SET data = x'00'",
    "UPDATE process SET name = 1000000000 WHERE idx = 0",
    "DELETE FROM track WHERE idx = 1",
    "UPDATE track SET kind = 99 WHERE idx = 0",
    "UPDATE track SET first = first + 1 WHERE idx = 1",
    "UPDATE track SET process = 77 WHERE idx = 0",
    "UPDATE track SET count = -1 WHERE idx = 0",
    "INSERT INTO setting VALUES(0, 3, 5, 'a', 'b')",
    "INSERT INTO setting VALUES(0, null, 7, 'settings', ''), (1, 0, 3, 'a', '1}')",
    "DROP TABLE setting",
    "UPDATE chunk SET count = 0 WHERE first = 0",
    "UPDATE chunk SET count = 100000 WHERE first = 0",
    "UPDATE chunk SET track = 4000000000",
    "UPDATE chunk SET start_first = start_last + 1 WHERE first = 0",
    "UPDATE chunk SET end_last = 9223372036854775807 WHERE first = 0",
    "DELETE FROM chunk WHERE first = 0",
    "UPDATE device SET name = 'x'",
    "DROP TABLE chunk",
    "DROP TABLE meta",
    "DROP TABLE blob",
};

/** Each of these is a lie that must be found out when it is opened. */
START_TEST(lies_are_found_when_opening)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    change(lies_opening[_i]);
    ck_assert_msg(lac_trace_file_open(damaged, 0, &file, &error) == LAC_ERR_CORRUPT, "%s: %s",
                  lies_opening[_i], error.message);
    ck_assert(error.message[0] != '\0');
}
END_TEST

static const char *const lies_asked[] = {
    "UPDATE blob SET bytes = x'0102'",
    "UPDATE blob SET bytes = NULL",
    "DELETE FROM blob",
    "UPDATE name_stat SET postings = x'FF'",
    "UPDATE name_stat SET count = 3",
    "UPDATE detail SET data = x''",
    "UPDATE detail SET count = 100000000",
    "UPDATE gap SET share_count = 1000000000",
    "UPDATE gap SET text_bytes = 7",
    "UPDATE total SET count = 100000000",
    "UPDATE total SET count = count - 1",
    "UPDATE total SET data = x'01'",
    "UPDATE total SET data = NULL",
    "UPDATE open_before SET count = 100000000",
    "UPDATE open_before SET count = count + 1",
    "UPDATE open_before SET data = NULL",
    "UPDATE open_before SET first = first + 1",
    "DROP TABLE open_before; CREATE TABLE open_before(first)",
    "UPDATE gap_total SET start_ns = 5000, end_ns = 6000, count = 1025",
    "UPDATE gap_total SET first = first + 7, start_ns = 0, count = 0",
    "DROP TABLE gap_total; CREATE TABLE gap_total(first)",
    "UPDATE exposed SET start_ns = 5000, end_ns = 6000, count = 100000000",
    "UPDATE exposed SET total_ns = 9223372036854775807; INSERT INTO exposed SELECT first + 1, "
    "device,"
    " start_ns, end_ns, total_ns, count, data FROM exposed",
    "UPDATE exposed SET total_ns = -1, data = NULL",
    "DROP TABLE exposed; CREATE TABLE exposed(first)",
    "UPDATE sample SET count = 4000000000",
    "UPDATE flow SET data = x'01'",
    "UPDATE document SET raw_bytes = 1000000000000",
    "UPDATE tile SET data = 1",
    "UPDATE tile SET id = -1 WHERE id = (SELECT min(id) FROM tile)",
    "UPDATE gap_signature SET count = 4",
    "CREATE VIEW v AS SELECT 1; DROP TABLE gap; CREATE VIEW gap AS SELECT 1",
};

/** And these when the part of the file is read that they are about. */
START_TEST(lies_are_found_when_asked)
{
    change(lies_asked[_i]);
    (void)try_damaged();
}
END_TEST

/** Set a value of the first block of gaps, in the copy that is damaged. */
static void change_gap(uint32_t column, int64_t value)
{
    enum { COLUMNS = 12 };
    int64_t *columns[COLUMNS];
    struct lac_bytes bytes = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    struct lac_error error = {0};
    uint32_t count;

    change("SELECT 1");
    ck_assert_int_eq(sqlite3_open(damaged, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT count, data FROM gap WHERE first = 0", -1, &statement, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    count = (uint32_t)sqlite3_column_int64(statement, 0);
    for (size_t c = 0; c < COLUMNS; c++) {
        columns[c] = malloc(count * sizeof(*columns[c]));
    }
    ck_assert_int_eq(lac_columns_decode(sqlite3_column_blob(statement, 1),
                                        (size_t)sqlite3_column_bytes(statement, 1), COLUMNS, count,
                                        columns),
                     LAC_OK);
    (void)sqlite3_finalize(statement);
    columns[column][count / 2] = value;
    ck_assert_int_eq(lac_columns_encode((const int64_t *const *)columns, COLUMNS, count, &bytes),
                     LAC_OK);
    (void)sqlite3_prepare_v2(db, "UPDATE gap SET data = ? WHERE first = 0", -1, &statement, NULL);
    (void)sqlite3_bind_blob(statement, 1, bytes.data, (int)bytes.size_bytes, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_DONE);
    (void)sqlite3_finalize(statement);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(lac_checked_stamp(damaged, &error) == LAC_OK, "%s", error.message);
    for (size_t c = 0; c < COLUMNS; c++) {
        free(columns[c]);
    }
    lac_bytes_done(&bytes);
}

static enum lac_status ask_gaps(const char *of, struct lac_gap_page *ret_page)
{
    const struct lac_gap_query query = {.device = -1, .limit = 10000};
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    enum lac_status status;

    struct lac_gap_reader *reader = NULL;
    struct lac_gap_row row;
    enum lac_status read;

    ck_assert_int_eq(lac_trace_file_open(of, 0, &file, &error), LAC_OK);
    status = lac_trace_file_gaps(file, &query, ret_page, &error);
    read = lac_gap_reader_open(file, -1, 0, &reader, &error);
    while (read == LAC_OK) {
        read = lac_gap_reader_next(reader, &row, &error);
    }
    ck_assert_int_eq(read, status == LAC_OK ? LAC_ERR_NOT_FOUND : status);
    lac_gap_reader_close(reader);
    lac_trace_file_close(file);
    return status;
}

/** A slice that does not exist, or a kind that nobody knows, is damage and not an answer. */
START_TEST(a_gap_names_only_slices_that_there_are)
{
    enum { CAUSE = 3, ENDED_BY = 5, ROOT_KIND = 8, ROOT, WAIT, BATCH };
    static const struct {
        uint32_t column;
        int64_t value;
        enum lac_status expected;
    } cases[] = {
        {ROOT_KIND, 3, LAC_OK},
        {ROOT_KIND, 4, LAC_ERR_CORRUPT},
        {ROOT_KIND, -2, LAC_ERR_CORRUPT},
        {ROOT, 0, LAC_OK},
        {ROOT, -2, LAC_ERR_CORRUPT},
        {ROOT, 1000000000, LAC_ERR_CORRUPT},
        {ROOT, INT64_MAX, LAC_ERR_CORRUPT},
        {WAIT, 0, LAC_OK},
        {WAIT, INT64_MIN, LAC_ERR_CORRUPT},
        {WAIT, 1000000000, LAC_ERR_CORRUPT},
        {BATCH, -2, LAC_ERR_CORRUPT},
        {BATCH, 1000000000, LAC_ERR_CORRUPT},
        {ENDED_BY, 1000000000, LAC_ERR_CORRUPT},
        {CAUSE, -1, LAC_ERR_CORRUPT},
    };
    struct lac_gap_page page = {0};

    change_gap(cases[_i].column, cases[_i].value);
    ck_assert_int_eq(ask_gaps(damaged, &page), cases[_i].expected);
    lac_gap_page_done(&page);
}
END_TEST

START_TEST(gaps_of_version_1_have_no_root_stored)
{
    struct lac_gap_page page = {0};

    ck_assert_int_eq(ask_gaps("tests/unit/data/trace_v1.db", &page), LAC_OK);
    ck_assert_uint_gt(page.count, 10);
    for (uint32_t i = 0; i < page.count; i++) {
        ck_assert_int_eq(page.rows[i].root_kind, -1);
        ck_assert_uint_eq(page.rows[i].root_slice, LAC_NONE);
        ck_assert_uint_eq(page.rows[i].wait_slice, LAC_NONE);
        ck_assert_uint_eq(page.rows[i].batch_slice, LAC_NONE);
    }
    ck_assert_str_ne(page.rows[0].root_cause, "");
    lac_gap_page_done(&page);
}
END_TEST

/** A file that version 0.1.0 wrote before there were checksums: 40 steps with a kernel each. */
START_TEST(a_file_of_version_1_answers_as_before)
{
    struct lac_trace_file *file = NULL;
    const struct lac_model *whole = NULL;
    const struct lac_kernel_query query = {.limit = 10};
    struct lac_kernel_page kernels = {0};
    char *text = NULL;
    size_t length = 0;
    struct lac_error error = {0};

    ck_assert_msg(lac_trace_file_open("tests/unit/data/trace_v1.db", 0, &file, &error) == LAC_OK,
                  "%s", error.message);
    ck_assert_uint_eq(lac_trace_file_head(file)->info.event_count, 161);
    ck_assert_int_eq(lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &length, &error),
                     LAC_OK);
    ck_assert_ptr_nonnull(strstr(text, "the GPU was idle for 23 ms of 39 ms (59 %)"));
    free(text);
    ck_assert_int_eq(lac_trace_file_kernels(file, &query, &kernels, &error), LAC_OK);
    ck_assert_uint_eq(kernels.count, 3);
    lac_kernel_page_done(&kernels);
    ck_assert_int_eq(lac_trace_file_whole_model(file, &whole, &error), LAC_OK);
    for (uint64_t i = 0, k = 0; i < whole->slices.count; i++) {
        if (strncmp(lac_model_str(whole, whole->slices.name[i]), "gemm_", 5) == 0) {
            ck_assert_int_eq(whole->slices.start_ns[i], (int64_t)k * 1000000 + 50000);
            ck_assert_int_eq(whole->slices.dur_ns[i], 400000);
            k++;
        }
    }
    lac_trace_file_release_model(file, whole);
    lac_trace_file_close(file);
}
END_TEST

/** A file of version 2, before settings were rows: 12 steps of a training loop. */
START_TEST(a_file_of_version_2_has_its_settings)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    ck_assert_msg(lac_trace_file_open("tests/unit/data/trace_v2.db", 0, &file, &error) == LAC_OK,
                  "%s", error.message);
    const struct lac_setting_rows *rows = &lac_trace_file_head(file)->settings;
    uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");
    ck_assert_uint_ne(root, UINT32_MAX);
    ck_assert_str_eq(lac_settings_value(rows, lac_settings_find(rows, root, "num_workers")), "2");
    ck_assert_uint_ne(lac_settings_find(rows, UINT32_MAX, "host"), UINT32_MAX);
    lac_trace_file_close(file);
}
END_TEST

START_TEST(a_text_file_is_no_trace_file)
{
    write_damaged((const uint8_t *)"{\"traceEvents\":[]}", 18);
    ck_assert(!try_damaged());
    (void)unlink(damaged);
    ck_assert(!try_damaged());
}
END_TEST

START_TEST(columns_of_any_values_come_back)
{
    int64_t values[3][500];
    int64_t again[3][500];
    const int64_t *in[3] = {values[0], values[1], values[2]};
    int64_t *out[3] = {again[0], again[1], again[2]};

    for (int round = 0; round < 200; round++) {
        struct lac_bytes bytes = {0};
        uint32_t rows = pick(500);

        for (uint32_t i = 0; i < rows; i++) {
            values[0][i] = pick(2) == 0 ? INT64_MIN : INT64_MAX;
            values[1][i] = (int64_t)i * 1000 + pick(10);
            values[2][i] = (int64_t)pick(UINT32_MAX) << pick(32);
        }
        ck_assert_int_eq(lac_columns_encode(in, 3, rows, &bytes), LAC_OK);
        ck_assert_int_eq(lac_columns_decode(bytes.data, bytes.size_bytes, 3, rows, out), LAC_OK);
        for (int c = 0; c < 3; c++) {
            ck_assert_mem_eq(values[c], again[c], rows * sizeof(int64_t));
        }
        for (int f = 0; f < 50; f++) { /* damaged blocks: any status, no crash */
            uint32_t at = pick((uint32_t)bytes.size_bytes);
            uint8_t was = bytes.data[at];

            bytes.data[at] = (uint8_t)pick(256);
            (void)!lac_columns_decode(bytes.data, bytes.size_bytes, 3, rows, out);
            (void)!lac_columns_decode(bytes.data, pick((uint32_t)bytes.size_bytes), 3, rows, out);
            bytes.data[at] = was;
        }
        lac_bytes_done(&bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_damage");
    TCase *tcase = tcase_create("damaged trace files");

    tcase_set_timeout(tcase, 1200);
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, made_up_bytes_are_errors_or_harmless);
    tcase_add_test(tcase, damage_is_an_error_and_never_another_answer);
    tcase_add_test(tcase, cut_files_are_errors);
    tcase_add_test(tcase, a_newer_format_is_refused_with_a_sentence);
    tcase_add_loop_test(tcase, lies_are_found_when_opening, 0, (int)LAC_COUNT_OF(lies_opening));
    tcase_add_loop_test(tcase, lies_are_found_when_asked, 0, (int)LAC_COUNT_OF(lies_asked));
    tcase_add_loop_test(tcase, a_gap_names_only_slices_that_there_are, 0, 14);
    tcase_add_test(tcase, a_file_of_version_1_answers_as_before);
    tcase_add_test(tcase, a_file_of_version_2_has_its_settings);
    tcase_add_test(tcase, gaps_of_version_1_have_no_root_stored);
    tcase_add_test(tcase, a_text_file_is_no_trace_file);
    tcase_add_test(tcase, columns_of_any_values_come_back);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
