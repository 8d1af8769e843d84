#include "analysis/diagnose/diagnose.h"
#include "analysis/model/args.h"
#include "analysis/model/tile.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/column.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_write_private.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"
#include "tests/support/rich_model.h"
#include "tests/support/rounds.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
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
    (void)snprintf(path, sizeof(path), "%s/trace ?#%%.db", folder); /* hard to put into a URI */
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
    ck_assert(lac_model_is_valid(model));
    return model;
}

static struct lac_trace_file *write_and_open(const struct lac_model *model,
                                             const struct lac_analysis *analysis)
{
    const struct lac_trace_write_options options = {
        .path = path,
        .generation = 1,
        .analysis = analysis,
        .documents = {[LAC_DOCUMENT_ANALYSIS] = {"{\"a\":1}", 7}}};
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    ck_assert_msg(lac_trace_write(model, &options, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    return file;
}

static void require_same_model(struct lac_trace_file *file, const struct lac_model *model)
{
    const struct lac_model *again = NULL;
    struct lac_error error = {0};
    const char *difference;

    ck_assert_msg(lac_trace_file_whole_model(file, &again, &error) == LAC_OK, "%s", error.message);
    difference = models_differ(model, again);
    ck_assert_msg(difference == NULL, "differs: %s", difference);
    lac_trace_file_release_model(file, again);
    ck_assert_msg(lac_trace_file_model(file, &again, &error) == LAC_OK, "%s", error.message);
    ck_assert_ptr_null(again->slices.args);
    ck_assert_uint_eq(again->slices.count, model->slices.count);
    if (model->slices.count > 0) {
        size_t n = (size_t)model->slices.count;

        ck_assert_mem_eq(again->slices.start_ns, model->slices.start_ns, n * sizeof(int64_t));
        ck_assert_mem_eq(again->slices.dur_ns, model->slices.dur_ns, n * sizeof(int64_t));
        ck_assert_mem_eq(again->slices.name, model->slices.name, n * sizeof(uint32_t));
        ck_assert_mem_eq(again->slices.link, model->slices.link, n * sizeof(uint32_t));
        ck_assert_mem_eq(again->slices.lane, model->slices.lane, n * sizeof(uint16_t));
        ck_assert_mem_eq(again->slices.kind, model->slices.kind, n);
    }
    lac_trace_file_release_model(file, again);
}

START_TEST(a_model_comes_back_as_it_went)
{
    const uint32_t launches[] = {0, 1, 10, 3000, 40000};
    struct lac_model *model = rich(launches[_i]);

    model->info.has_no_time = _i % 2 == 1;
    struct lac_trace_file *file = write_and_open(model, NULL);
    require_same_model(file, model);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_model_with_derived_tracks_and_analysis_comes_back)
{
    struct lac_model *model = rich(3000);
    struct lac_analysis *analysis = NULL;
    struct lac_trace_file *file;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    file = write_and_open(model, analysis);
    require_same_model(file, model);
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

/** Sections that lac_tile_build() gives, put together as the wire wants them. */
static uint8_t *expected_batch(const struct lac_model *model, uint8_t level, uint32_t first,
                               uint32_t last, size_t *ret_size)
{
    size_t size = 16;
    size_t capacity = 1024;
    uint8_t *bytes = calloc(1, capacity);
    uint32_t count = 0;

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const struct lac_tile_source source = {.first_slice = track->first,
                                               .count = track->count,
                                               .start_ns = model->slices.start_ns + track->first,
                                               .dur_ns = model->slices.dur_ns + track->first,
                                               .name = model->slices.name + track->first,
                                               .lane = model->slices.lane + track->first,
                                               .kind = model->slices.kind + track->first};

        for (uint32_t i = first; i <= last && track->kind != LAC_TRACK_COUNTER; i++) {
            struct lac_tile tile = {0};

            ck_assert_int_eq(lac_tile_build(&source, t, level, i, &tile), LAC_OK);
            if (tile.native_count + tile.cell_count > 0) {
                ck_assert_int_eq(lac_tile_encode(&tile, &bytes, &size, &capacity), LAC_OK);
                count++;
            }
            lac_tile_done(&tile);
        }
    }
    memcpy(bytes, "LTB1\1\0", 6);
    bytes[6] = level;
    memcpy(bytes + 8, &count, 4);
    *ret_size = size;
    return bytes;
}

/* 100,000 launches: 200,000 slices on one track, so that tiles are stored at several levels and
 * others are built from one, two and three chunks */
START_TEST(tiles_are_those_of_the_model)
{
    struct lac_model *model = rich(100000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    uint32_t tracks[64];
    uint32_t compared = 0;

    ck_assert_uint_le(model->track_count, 64);
    for (uint32_t t = 0; t < model->track_count; t++) {
        tracks[t] = t;
    }
    for (uint8_t level = 0; level <= lac_trace_file_level_max(file); level++) {
        int64_t tile_ns = lac_tile_cell_ns(level) * LAC_TILE_CELLS;
        uint32_t tiles = (uint32_t)(model->info.duration_ns / tile_ns) + 2;

        for (uint32_t i = 0; i < tiles; i += 1 + tiles / 23) {
            uint32_t last = i + 1 < tiles ? i + 1 : i;
            uint8_t *got = NULL;
            uint8_t *expected;
            size_t got_size = 0;
            size_t expected_size = 0;
            struct lac_error error = {0};

            ck_assert_msg(lac_trace_file_tiles(file, level, i, last, tracks, model->track_count,
                                               &got, &got_size, &error) == LAC_OK,
                          "%s", error.message);
            expected = expected_batch(model, level, i, last, &expected_size);
            ck_assert_msg(got_size == expected_size && memcmp(got, expected, got_size) == 0,
                          "level %u tile %u", level, i);
            compared += got_size > 16;
            free(got);
            free(expected);
        }
    }
    ck_assert_uint_ge(compared, 50);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(tile_requests_have_bounds)
{
    struct lac_model *model = rich(100);
    struct lac_trace_file *file = write_and_open(model, NULL);
    const uint32_t tracks[] = {0, 4000000000U};
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_trace_file_tiles(file, 1, 5, 4, tracks, 2, &bytes, &size, &error),
                     LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_trace_file_tiles(file, 17, 0, 0, tracks, 2, &bytes, &size, &error),
                     LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_trace_file_tiles(file, 1, 0, 64, tracks, 2, &bytes, &size, &error),
                     LAC_ERR_LIMIT);
    ck_assert_int_eq(lac_trace_file_tiles(file, 0, 0, 0, tracks, 5000, &bytes, &size, &error),
                     LAC_ERR_LIMIT);
    ck_assert_int_eq(
        lac_trace_file_tiles(file, 0, UINT32_MAX, UINT32_MAX, tracks, 2, &bytes, &size, &error),
        LAC_OK);
    ck_assert_uint_eq(size, 16);
    free(bytes);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

/** The slowest way to the parent: the last earlier slice of a smaller lane that contains it. */
static uint32_t plain_parent(const struct lac_model *model, uint64_t slice)
{
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, slice)];
    const struct lac_slices *s = &model->slices;

    if (track->kind != LAC_TRACK_THREAD) {
        return LAC_NONE;
    }
    for (uint64_t i = slice; i > track->first; i--) {
        if (s->lane[i - 1] < s->lane[slice] &&
            s->start_ns[i - 1] + s->dur_ns[i - 1] >= s->start_ns[slice] + s->dur_ns[slice]) {
            return (uint32_t)(i - 1);
        }
    }
    return LAC_NONE;
}

static void require_slice(struct lac_trace_file *file, const struct lac_model *model,
                          uint64_t slice)
{
    struct lac_slice_full full = {0};
    struct lac_error error = {0};
    char args[1024];
    uint32_t detail = model->slices.detail[slice];
    size_t length = lac_args_format(model, slice, args, sizeof(args));

    ck_assert_int_eq(lac_trace_file_slice(file, slice, &full, &error), LAC_OK);
    ck_assert_int_eq(full.row.start_ns, model->slices.start_ns[slice]);
    ck_assert_int_eq(full.row.dur_ns, model->slices.dur_ns[slice]);
    ck_assert_uint_eq(full.row.name, model->slices.name[slice]);
    ck_assert_uint_eq(full.row.link, model->slices.link[slice]);
    ck_assert_uint_eq(full.row.corr, model->slices.corr[slice]);
    ck_assert_uint_eq(full.row.track, lac_model_track_of(model, slice));
    ck_assert_uint_eq(full.parent, plain_parent(model, slice));
    if (length > 0) {
        ck_assert_str_eq(full.args_json, args);
    } else {
        ck_assert_ptr_null(full.args_json);
    }
    if (full.row.kind == LAC_SLICE_KERNEL) {
        ck_assert(full.has_kernel);
        ck_assert_mem_eq(&full.kernel, &model->kernel_configs[detail], sizeof(full.kernel));
    }
    if (full.row.kind == LAC_SLICE_COPY) {
        ck_assert(full.has_copy);
        ck_assert_int_eq(full.copy.bytes, model->copies[detail].bytes);
        ck_assert_uint_eq(full.copy.graph_node, model->copies[detail].graph_node);
        ck_assert_uint_eq(full.copy.module, model->copies[detail].module);
    }
    if (full.row.kind == LAC_SLICE_RANGE) {
        ck_assert(full.has_loader);
        ck_assert_int_eq(full.loader.batch, model->loader_infos[detail].batch);
    }
    if (full.row.kind == LAC_SLICE_API && detail != LAC_NONE) {
        ck_assert(full.has_return_value);
    }
    lac_slice_full_done(&full);
}

START_TEST(a_slice_has_everything)
{
    struct lac_model *model = rich(20000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    struct lac_slice_full full;
    struct lac_error error;

    for (uint64_t slice = 0; slice < model->slices.count; slice += 97) {
        require_slice(file, model, slice);
    }
    require_slice(file, model, model->slices.count - 1);
    ck_assert_int_eq(lac_trace_file_slice(file, model->slices.count, &full, &error),
                     LAC_ERR_NOT_FOUND);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

/** Write the first block of a detail table with fewer columns; all rows are in it. */
static void drop_columns(sqlite3 *db, int table, int from, int to, int narrowed)
{
    enum { COLUMNS = 16 };
    static int64_t rows[COLUMNS][LAC_COLUMN_BLOCK_ROWS];
    int64_t *columns[COLUMNS];
    const int64_t *read_only[COLUMNS];
    struct lac_bytes block = {0};
    sqlite3_stmt *get = NULL;
    sqlite3_stmt *set = NULL;

    for (int c = 0; c < COLUMNS; c++) {
        columns[c] = rows[c];
        read_only[c] = rows[c];
    }
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT id, count, data FROM detail WHERE id >> 48 = ?",
                                        -1, &get, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_bind_int(get, 1, table), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(get), SQLITE_ROW);
    const sqlite3_int64 id = sqlite3_column_int64(get, 0);
    const uint32_t count = (uint32_t)sqlite3_column_int64(get, 1);
    ck_assert_int_eq(lac_columns_decode(sqlite3_column_blob(get, 2),
                                        (size_t)sqlite3_column_bytes(get, 2), (uint32_t)from, count,
                                        columns),
                     LAC_OK);
    for (uint32_t i = 0; i < count && narrowed >= 0; i++) {
        rows[narrowed][i] &= UINT32_MAX;
    }
    ck_assert_int_eq(lac_columns_encode(read_only, (uint32_t)to, count, &block), LAC_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "UPDATE detail SET data = ? WHERE id = ?", -1, &set, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_bind_blob(set, 1, block.data, (int)block.size_bytes, SQLITE_TRANSIENT),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_bind_int64(set, 2, id), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(get), SQLITE_DONE); /* one block */
    ck_assert_int_eq(sqlite3_finalize(get), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(set), SQLITE_DONE);
    ck_assert_int_eq(sqlite3_finalize(set), SQLITE_OK);
    lac_bytes_done(&block);
}

/** Make a file one of format 5, whose copies name no node and no module; or of format 4, without
 *  modules, and with the lower half of the graph's node. */
static void make_older(const char *name, int format)
{
    struct lac_error error = {0};
    sqlite3 *db = NULL;
    char sql[80];

    ck_assert_int_eq(sqlite3_open(name, &db), SQLITE_OK);
    drop_columns(db, LAC_DETAIL_COPY, 7, 5, -1);
    if (format < 5) {
        drop_columns(db, LAC_DETAIL_KERNEL_CONFIG, 12, 11, 10);
    }
    (void)snprintf(sql, sizeof(sql), "UPDATE meta SET value = %d WHERE key = 'format_version'",
                   format);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(lac_checked_stamp(name, &error) == LAC_OK, "%s", error.message);
}

START_TEST(a_file_from_before_modules_opens)
{
    struct lac_model *model = rich(3000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    struct lac_error error = {0};
    uint32_t graph_nodes = 0;
    uint32_t copied = 0;

    lac_trace_file_close(file);
    make_older(path, _i);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        graph_nodes += model->kernel_configs[i].graph_node != 0;
        model->kernel_configs[i].graph_node &= _i < 5 ? UINT32_MAX : UINT64_MAX;
        model->kernel_configs[i].module = _i < 5 ? 0 : model->kernel_configs[i].module;
    }
    for (uint32_t i = 0; i < model->copy_count; i++) {
        copied += model->copies[i].graph_node != 0 && model->copies[i].module != 0;
        model->copies[i].graph_node = 0;
        model->copies[i].module = 0;
    }
    ck_assert_uint_gt(copied, 5);
    ck_assert_uint_gt(graph_nodes, 5);
    require_same_model(file, model);
    for (uint64_t slice = 0; slice < model->slices.count; slice += 97) {
        require_slice(file, model, slice);
    }
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(neighbours_of_the_same_name_are_found_across_chunks)
{
    struct lac_model *model = rich(40000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    const struct lac_track *track = &model->tracks[0];
    uint32_t last_of[4096];

    ck_assert_uint_gt(track->count, 70000); /* three chunks */
    memset(last_of, 0xFF, sizeof(last_of));
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        uint32_t name = model->slices.name[i];

        if (i % 1009 == 0 || (i - track->first) % 32768 < 3) {
            struct lac_slice_full full;
            struct lac_error error;

            ck_assert_int_eq(lac_trace_file_slice(file, i, &full, &error), LAC_OK);
            ck_assert_uint_eq(full.prev_same_name, last_of[name]);
            if (last_of[name] != LAC_NONE) {
                struct lac_slice_full before;

                ck_assert_int_eq(lac_trace_file_slice(file, last_of[name], &before, &error),
                                 LAC_OK);
                ck_assert_uint_eq(before.next_same_name, i);
                lac_slice_full_done(&before);
            }
            lac_slice_full_done(&full);
        }
        last_of[name] = (uint32_t)i;
    }
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_window_gives_what_overlaps_it_page_by_page)
{
    struct lac_model *model = rich(40000);
    struct lac_trace_file *file = write_and_open(model, NULL);

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        int64_t t0_ns = model->info.duration_ns / 3;
        int64_t t1_ns = t0_ns + model->info.duration_ns / 50;
        struct lac_slice_row rows[1000];
        uint32_t count = 0;
        uint32_t next = 0;
        uint32_t after = LAC_NONE;
        bool more = true;
        struct lac_error error;

        if (track->kind == LAC_TRACK_COUNTER) {
            ck_assert_int_eq(
                lac_trace_file_window(file, t, 0, 1, LAC_NONE, 10, rows, &count, &more, &error),
                LAC_ERR_NOT_FOUND);
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            int64_t start_ns = model->slices.start_ns[i];
            int64_t end_ns = start_ns + model->slices.dur_ns[i];

            if (start_ns >= t1_ns || (end_ns <= t0_ns && start_ns < t0_ns)) {
                continue;
            }
            if (next == count) {
                ck_assert(more);
                ck_assert_int_eq(lac_trace_file_window(file, t, t0_ns, t1_ns, after, 1000, rows,
                                                       &count, &more, &error),
                                 LAC_OK);
                next = 0;
            }
            ck_assert_uint_lt(next, count);
            ck_assert_uint_eq(rows[next].slice, i);
            after = rows[next].slice;
            next++;
        }
        ck_assert(next == count && (count == 0 || !more));
    }
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

/** All hits of a search, in pages; checked against a walk over the whole model. */
static void require_search(struct lac_trace_file *file, const struct lac_model *model,
                           const char *text, int kind, bool longest_first)
{
    struct lac_search_query query = {
        .text = text, .kind = kind, .limit = 700, .longest_first = longest_first};
    struct lac_search_hits hits = {0};
    char cursor[64] = "";
    uint64_t expected = 0;
    uint64_t seen = 0;
    struct lac_slice_row before = {.start_ns = -1, .dur_ns = INT64_MAX};
    struct lac_error error;

    for (uint64_t i = 0; i < model->slices.count; i++) {
        expected += (kind < 0 || model->slices.kind[i] == kind) &&
                    strcasestr(lac_model_str(model, model->slices.name[i]), text) != NULL;
    }
    do {
        query.after = cursor[0] != '\0' ? cursor : NULL;
        ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
        ck_assert_uint_eq(hits.total, expected);
        for (uint32_t i = 0; i < hits.count; i++) {
            const struct lac_slice_row *row = &hits.rows[i];

            ck_assert(longest_first && row->dur_ns != before.dur_ns
                          ? row->dur_ns < before.dur_ns
                          : row->start_ns > before.start_ns ||
                                (row->start_ns == before.start_ns && row->slice > before.slice));
            before = *row;
            ck_assert_ptr_nonnull(strcasestr(lac_model_str(model, row->name), text));
        }
        seen += hits.count;
        memcpy(cursor, hits.next, sizeof(cursor));
        if (!hits.has_more) {
            cursor[0] = '\0';
        }
        lac_search_hits_done(&hits);
    } while (cursor[0] != '\0');
    ck_assert_uint_eq(seen, expected);
}

START_TEST(search_finds_every_slice_of_matching_names_by_time_or_length)
{
    struct lac_model *model = rich(12000);
    struct lac_trace_file *file = write_and_open(model, NULL);

    for (int longest_first = 0; longest_first < 2; longest_first++) {
        require_search(file, model, "aten::op_1", -1, longest_first);
        require_search(file, model, "KERNEL_27", -1, longest_first);
        require_search(file, model, "launch", LAC_SLICE_API, longest_first);
        require_search(file, model, "launch", LAC_SLICE_KERNEL, longest_first);
        require_search(file, model, "nothing of the kind", -1, longest_first);
        require_search(file, model, "", LAC_SLICE_RANGE, longest_first);
    }
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(search_finds_ids_and_correlations)
{
    struct lac_model *model = rich(12000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    struct lac_search_query query = {.text = "corr:7000", .kind = -1, .limit = 10};
    struct lac_search_hits hits = {0};
    struct lac_error error;

    ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
    ck_assert_uint_eq(hits.total, 2); /* the call and its kernel */
    ck_assert_uint_eq(hits.count, 2);
    ck_assert_uint_eq(model->slices.link[hits.rows[0].slice], hits.rows[1].slice);
    lac_search_hits_done(&hits);
    query.text = "id:31";
    ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
    ck_assert_uint_eq(hits.count, 1);
    ck_assert_uint_eq(hits.rows[0].slice, 31);
    lac_search_hits_done(&hits);
    query.text = "id:99999999999";
    ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
    ck_assert_uint_eq(hits.count, 0);
    lac_search_hits_done(&hits);
    query.after = "1.x";
    ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_ERR_MISUSE);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(the_kernel_table_adds_up_and_sorts)
{
    struct lac_model *model = rich(5000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    struct lac_kernel_query query = {.sort = LAC_KERNEL_SORT_TOTAL, .descending = true, .limit = 4};
    struct lac_kernel_page page = {0};
    uint64_t count = 0;
    uint64_t expected_count = 0;
    int64_t total_ns = 0;
    int64_t expected_ns = 0;
    int64_t before_ns = INT64_MAX;
    char cursor[48];
    struct lac_error error;

    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
            expected_count++;
            expected_ns += model->slices.dur_ns[i];
        }
    }
    do {
        ck_assert_int_eq(lac_trace_file_kernels(file, &query, &page, &error), LAC_OK);
        ck_assert_uint_eq(page.total, 10);
        for (uint32_t i = 0; i < page.count; i++) {
            const struct lac_kernel_row *row = &page.rows[i];

            ck_assert(row->total_ns <= before_ns);
            ck_assert_int_eq(model->slices.dur_ns[row->longest_slice], row->max_ns);
            before_ns = row->total_ns;
            count += row->count;
            total_ns += row->total_ns;
        }
        memcpy(cursor, page.next, sizeof(cursor));
        query.after = page.has_more ? cursor : NULL;
        lac_kernel_page_done(&page);
    } while (query.after != NULL);
    ck_assert_uint_eq(count, expected_count);
    ck_assert_int_eq(total_ns, expected_ns);
    query.text = "KERNEL_23";
    ck_assert_int_eq(lac_trace_file_kernels(file, &query, &page, &error), LAC_OK);
    ck_assert_uint_eq(page.total, 1);
    lac_kernel_page_done(&page);
    query.after = "o99999";
    ck_assert_int_eq(lac_trace_file_kernels(file, &query, &page, &error), LAC_OK);
    ck_assert_uint_eq(page.count, 0);
    lac_kernel_page_done(&page);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(counters_keep_their_extremes)
{
    struct lac_model *model = rich(9000);
    struct lac_trace_file *file = write_and_open(model, NULL);
    uint32_t track = find_track(model, LAC_TRACK_COUNTER, "memory");
    struct lac_counter_points points = {0};
    struct lac_error error;
    double min = INFINITY;
    double max = -INFINITY;

    ck_assert_uint_ne(track, LAC_NONE);
    ck_assert_int_eq(
        lac_trace_file_counter(file, track, 0, model->info.duration_ns + 1, 37, &points, &error),
        LAC_OK);
    ck_assert_uint_eq(points.count, 37);
    for (uint32_t i = 0; i < points.count; i++) {
        ck_assert(points.min[i] <= points.last[i] && points.last[i] <= points.max[i]);
        ck_assert(i == 0 || points.ts_ns[i] > points.ts_ns[i - 1]);
        min = points.min[i] < min ? points.min[i] : min;
        max = points.max[i] > max ? points.max[i] : max;
    }
    ck_assert(min == 0.0 && max == 96 * 1.5);
    lac_counter_points_done(&points);
    ck_assert_int_eq(lac_trace_file_counter(file, 0, 0, 1, 37, &points, &error), LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_trace_file_counter(file, track, 5, 5, 37, &points, &error),
                     LAC_ERR_MISUSE);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

/** What one thread asks, again and again, and expects. */
struct asker {
    struct lac_trace_file *file;
    const struct lac_model *model;
    uint32_t seed;
    bool good;
};

static void *ask(void *context)
{
    struct asker *asker = context;
    uint32_t random = asker->seed;
    uint32_t tracks[16];

    for (uint32_t t = 0; t < 16; t++) {
        tracks[t] = t;
    }
    asker->good = true;
    for (int i = 0; i < rounds_of(60); i++) {
        const struct lac_model *again = NULL;
        struct lac_slice_full full;
        struct lac_kernel_query query = {.limit = 5};
        struct lac_kernel_page page;
        uint8_t *bytes = NULL;
        size_t size = 0;
        uint64_t slice;
        struct lac_error error;

        random = random * 1664525U + 1013904223U;
        slice = (random >> 3) % asker->model->slices.count;
        asker->good = asker->good &&
                      lac_trace_file_slice(asker->file, slice, &full, &error) == LAC_OK &&
                      full.row.start_ns == asker->model->slices.start_ns[slice];
        lac_slice_full_done(&full);
        asker->good =
            asker->good && lac_trace_file_tiles(asker->file, (uint8_t)(random % 6), 0, 7, tracks,
                                                16, &bytes, &size, &error) == LAC_OK;
        free(bytes);
        asker->good =
            asker->good && lac_trace_file_kernels(asker->file, &query, &page, &error) == LAC_OK;
        lac_kernel_page_done(&page);
        if (i % 20 == 0) {
            asker->good =
                asker->good && lac_trace_file_model(asker->file, &again, &error) == LAC_OK;
            lac_trace_file_release_model(asker->file, again);
        }
    }
    return NULL;
}

START_TEST(threads_share_a_file_with_a_cache_too_small_for_it)
{
    struct lac_model *model = rich(40000);
    const struct lac_trace_write_options options = {.path = path, .generation = 1};
    struct lac_trace_file *file = NULL;
    struct asker askers[4];
    pthread_t threads[4];
    struct lac_error error = {0};

    ck_assert_int_eq(lac_trace_write(model, &options, &error), LAC_OK);
    ck_assert_int_eq(lac_trace_file_open(path, 1000000, &file, &error), LAC_OK);
    for (uint32_t i = 0; i < 4; i++) {
        askers[i] = (struct asker){.file = file, .model = model, .seed = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert(askers[i].good);
    }
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(documents_come_back)
{
    struct lac_model *model = rich(10);
    struct lac_trace_file *file = write_and_open(model, NULL);
    char *text = NULL;
    size_t length = 0;
    struct lac_error error;

    ck_assert_int_eq(lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &length, &error),
                     LAC_OK);
    ck_assert_str_eq(text, "{\"a\":1}");
    ck_assert_uint_eq(length, 7);
    free(text);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

START_TEST(an_existing_file_is_not_overwritten)
{
    struct lac_model *model = rich(10);
    struct lac_trace_file *file = write_and_open(model, NULL);
    const struct lac_trace_write_options options = {.path = path, .generation = 1};
    struct lac_error error = {0};

    ck_assert_int_eq(lac_trace_write(model, &options, &error), LAC_ERR_IO);
    ck_assert_int_eq(access(path, F_OK), 0);
    require_same_model(file, model);
    lac_trace_file_close(file);
    lac_model_destroy(model);
}
END_TEST

/** Whole real traces, and the size that they take: a page more for each track of projected
 * ranges, which are no events. */
START_TEST(real_traces_come_back_and_are_small)
{
    glob_t found = {0};
    struct lac_error error = {0};

    (void)glob(real_trace("kineto/*"), 0, NULL, &found);
    (void)glob(real_trace("hta/*"), GLOB_APPEND, NULL, &found);
    (void)glob(real_trace("tracelens/*"), GLOB_APPEND, NULL, &found);
    if (found.gl_pathc == 0) {
        printf("skip: real traces through the store: no %s (make traces)\n", real_traces());
    }
    for (size_t i = 0; i < found.gl_pathc; i += rounds_step()) {
        struct imported imported = import_path(found.gl_pathv[i]);
        struct lac_analysis *analysis = NULL;
        struct lac_trace_file *file;
        FILE *stream;
        long size;

        ck_assert_msg(imported.count == 1, "%s", found.gl_pathv[i]);
        ck_assert_int_eq(lac_diagnose(imported.models[0], NULL, &analysis, &error), LAC_OK);
        ck_assert_int_eq(lac_diagnose_add_tracks(analysis, imported.models[0]), LAC_OK);
        file = write_and_open(imported.models[0], analysis);
        require_same_model(file, imported.models[0]);
        stream = fopen(path, "rb");
        (void)fseek(stream, 0, SEEK_END);
        size = ftell(stream);
        (void)fclose(stream);
        if (imported.models[0]->info.event_count > 20000) {
            const struct lac_model *model = imported.models[0];
            uint32_t projected = 0;

            for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
                projected += model->tracks[t].kind == LAC_TRACK_GPU_RANGE;
            }
            /* and two small pages for when a device works without computing */
            ck_assert_msg((double)size <=
                              7.0 * (double)model->info.event_count + 4096.0 * projected + 2048.0,
                          "%s: %ld bytes", found.gl_pathv[i], size);
        }
        lac_trace_file_close(file);
        lac_analysis_destroy(analysis);
        imported_done(&imported);
        (void)unlink(path);
    }
    globfree(&found);
}
END_TEST

/** Steps of 1 ms on the device from 1 ms on; the first mark waits for work from before the recording. */
static struct lac_model *draw_paced(struct lac_analysis **ret_analysis)
{
    static const int marks_us[] = {0, 1800, 2800, 3800, 4800, 5800, 7700};
    static char text[32 * 1024];
    size_t used = 0;

    for (int i = 0; i < 6; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "main range %d %d ProfilerStep#%d\n"
                                 "main op %d 10 Optimizer.step#SGD.step\n",
                                 marks_us[i], marks_us[i + 1] - marks_us[i], i, marks_us[i] + 60);
        for (int k = 0; k < 20; k++) {
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "main call %d 1 #%d cudaLaunchKernel\n"
                                     "gpu0.7 kernel %d 49 #%d dgrad_kernel\n",
                                     marks_us[i] + 2 * k + 2, 20 * i + k + 1,
                                     1000 + 1000 * i + 50 * k, 20 * i + k + 1);
        }
    }
    struct lac_model *model = trace_draw_with(text, NULL, 7);
    *ret_analysis = trace_diagnose(model);
    ck_assert((*ret_analysis)->is_paced_by_device);
    ck_assert_int_eq(lac_diagnose_add_tracks(*ret_analysis, model), LAC_OK);
    return model;
}

START_TEST(a_slice_belongs_to_the_step_of_its_clock)
{
    struct lac_analysis *analysis = NULL;
    struct lac_model *model = draw_paced(&analysis);
    struct lac_trace_file *file = write_and_open(model, analysis);
    struct lac_trace_steps steps;
    struct lac_error error = {0};
    uint32_t launches = 0;
    uint32_t kernels = 0;

    lac_trace_file_steps(file, &steps);
    ck_assert_uint_eq(steps.count, 6);
    ck_assert_int_eq(steps.start_ns[1], 2000000);
    ck_assert_int_eq(steps.host_start_ns[1], 1800000);
    ck_assert_int_eq(steps.host_dur_ns[1], 1000000);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        struct lac_slice_full full;
        ck_assert_int_eq(lac_trace_file_slice(file, i, &full, &error), LAC_OK);
        if (full.row.kind == LAC_SLICE_API) {
            ck_assert_uint_eq(full.step, launches++ / 20);
        } else if (full.row.kind == LAC_SLICE_KERNEL) {
            ck_assert_uint_eq(full.step, kernels++ / 20);
        }
        lac_slice_full_done(&full);
    }
    ck_assert_uint_eq(launches, 120);
    ck_assert_uint_eq(kernels, 120);
    lac_trace_file_close(file);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_trace");
    TCase *tcase = tcase_create("trace files");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_model_comes_back_as_it_went, 0, 5);
    tcase_add_test(tcase, a_model_with_derived_tracks_and_analysis_comes_back);
    tcase_add_test(tcase, tiles_are_those_of_the_model);
    tcase_add_test(tcase, tile_requests_have_bounds);
    tcase_add_test(tcase, a_slice_has_everything);
    tcase_add_loop_test(tcase, a_file_from_before_modules_opens, 4, 6);
    tcase_add_test(tcase, neighbours_of_the_same_name_are_found_across_chunks);
    tcase_add_test(tcase, a_window_gives_what_overlaps_it_page_by_page);
    tcase_add_test(tcase, search_finds_every_slice_of_matching_names_by_time_or_length);
    tcase_add_test(tcase, search_finds_ids_and_correlations);
    tcase_add_test(tcase, the_kernel_table_adds_up_and_sorts);
    tcase_add_test(tcase, counters_keep_their_extremes);
    tcase_add_test(tcase, threads_share_a_file_with_a_cache_too_small_for_it);
    tcase_add_test(tcase, documents_come_back);
    tcase_add_test(tcase, an_existing_file_is_not_overwritten);
    tcase_add_test(tcase, real_traces_come_back_and_are_small);
    tcase_add_test(tcase, a_slice_belongs_to_the_step_of_its_clock);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
