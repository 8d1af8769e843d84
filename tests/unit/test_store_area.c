/* What an area of the timeline holds, against a plain computation over its slices. */
#include "analysis/crew/crew.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/import/import.h"
#include "analysis/model/chunk.h"
#include "collector/base/count_of.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/check_main.h"
#include "tests/support/rich_model.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INNER = 80000, IN_MIDDLE = 1000 };

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

static void setup(void)
{
    ck_assert_int_eq(rich_model_create(3, 50000, &model), LAC_OK);
    store();
}

static enum lac_status keep(void *context, struct lac_model *imported, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    model = imported;
    return LAC_OK;
}

/** Three levels on one thread: what is open where a chunk begins started chunks before. */
static void setup_nested(void)
{
    const size_t capacity = (size_t)INNER * 120;
    char *text = malloc(capacity);
    struct lac_import_options options = {0};
    size_t length;

    ck_assert_ptr_nonnull(text);
    length = (size_t)snprintf(text, capacity,
                              "[{\"ph\":\"X\",\"name\":\"outer\",\"pid\":1,\"tid\":1,"
                              "\"ts\":1,\"dur\":%d}",
                              INNER * 10);
    for (int i = 0; i < INNER; i++) {
        if (i % IN_MIDDLE == 0) {
            length += (size_t)snprintf(text + length, capacity - length,
                                       ",{\"ph\":\"X\",\"name\":\"middle %d\",\"pid\":1,"
                                       "\"tid\":1,\"ts\":%d,\"dur\":%d}",
                                       i / IN_MIDDLE % 7, 2 + i * 10, IN_MIDDLE * 10 - 3);
        }
        length += (size_t)snprintf(text + length, capacity - length,
                                   ",{\"ph\":\"X\",\"name\":\"i%d\",\"pid\":1,\"tid\":1,"
                                   "\"ts\":%d,\"dur\":%d}",
                                   i % 13, 3 + i * 10, 1 + i % 6);
    }
    length += (size_t)snprintf(text + length, capacity - length, "]");
    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(lac_import_bytes((const uint8_t *)text, length, &options, keep, NULL, NULL),
                     LAC_OK);
    free(text);
    store();
}

/** A thread's work, and beside it the profiler's own mark over the recording. */
static void setup_recorder(void)
{
    static const char text[] = "[{\"ph\":\"X\",\"name\":\"work\",\"pid\":1,\"tid\":1,"
                               "\"ts\":1,\"dur\":10},"
                               "{\"ph\":\"X\",\"name\":\"PyTorch Profiler (0)\",\"pid\":2,"
                               "\"tid\":2,\"ts\":0,\"dur\":100}]";
    struct lac_import_options options = {0};

    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(
        lac_import_bytes((const uint8_t *)text, sizeof(text) - 1, &options, keep, NULL, NULL),
        LAC_OK);
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

/** Plainly, by (name, kind): index name * kinds + kind. */
struct plain {
    uint64_t count;
    int64_t total_ns, self_ns, max_ns;
};

static bool is_asked(const struct lac_area_query *query, uint32_t track)
{
    const enum lac_track_kind kind = model->tracks[track].kind;

    if (query->tracks == NULL) {
        return kind != LAC_TRACK_COUNTER && kind != LAC_TRACK_STEPS && kind != LAC_TRACK_GAPS;
    }
    for (uint32_t i = 0; i < query->track_count; i++) {
        if (query->tracks[i] == track) {
            return kind != LAC_TRACK_COUNTER;
        }
    }
    return false;
}

static int64_t inside_ns(const struct lac_area_query *query, uint64_t slice)
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

/** The innermost slice around one on a lower lane of the same thread, looked for from the back. */
static uint64_t parent_of(const struct lac_track *track, uint64_t slice)
{
    const struct lac_slices *at = &model->slices;
    const int64_t end = at->start_ns[slice] + at->dur_ns[slice];
    const uint64_t near = at->lane[slice] > 1 ? 2 * IN_MIDDLE : UINT64_MAX;
    const uint64_t stop = slice - track->first > near ? slice - near : track->first;

    for (uint64_t i = slice; at->lane[slice] > 0 && i > stop; i--) {
        if (at->lane[i - 1] < at->lane[slice] && at->start_ns[i - 1] + at->dur_ns[i - 1] >= end) {
            return i - 1;
        }
    }
    return UINT64_MAX;
}

static uint64_t count_plainly(const struct lac_area_query *query, struct plain *plain)
{
    const struct lac_slices *at = &model->slices;
    uint64_t total = 0;

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        for (uint64_t i = track->first; is_asked(query, t) && i < track->first + track->count;
             i++) {
            const int64_t ns = inside_ns(query, i);
            struct plain *row = &plain[(size_t)at->name[i] * LAC_SLICE_KIND_COUNT_ + at->kind[i]];
            const uint64_t parent =
                track->kind == LAC_TRACK_THREAD ? parent_of(track, i) : UINT64_MAX;

            if (ns < 0) {
                continue;
            }
            total++;
            row->count++;
            row->total_ns += ns;
            row->self_ns += ns;
            row->max_ns = ns > row->max_ns ? ns : row->max_ns;
            if (parent != UINT64_MAX) {
                plain[(size_t)at->name[parent] * LAC_SLICE_KIND_COUNT_ + at->kind[parent]]
                    .self_ns -= ns;
            }
        }
    }
    return total;
}

static void compare_with_plain(const struct lac_area_query *query)
{
    const size_t rows = (size_t)model->strings.count * LAC_SLICE_KIND_COUNT_;
    struct plain *plain = calloc(rows, sizeof(*plain));
    struct lac_area area = {0};
    struct lac_error error = {0};
    uint64_t names = 0;
    uint64_t total;

    ck_assert_ptr_nonnull(plain);
    total = count_plainly(query, plain);
    ck_assert_msg(lac_trace_file_area(file, query, &area, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(area.slice_count, total);
    for (size_t r = 0; r < rows; r++) {
        names += plain[r].count > 0;
    }
    ck_assert_uint_eq(area.name_count, names);
    for (uint32_t i = 0; i < area.name_count; i++) {
        const struct lac_area_name *row = &area.names[i];
        const struct plain *is = &plain[(size_t)row->name * LAC_SLICE_KIND_COUNT_ + row->kind];

        ck_assert_uint_eq(row->count, is->count);
        ck_assert_int_eq(row->total_ns, is->total_ns);
        ck_assert_int_eq(row->self_ns, is->self_ns);
        ck_assert_int_eq(row->max_ns, is->max_ns);
        ck_assert_int_eq(inside_ns(query, row->longest), is->max_ns);
        ck_assert(i == 0 || area.names[i - 1].total_ns >= row->total_ns);
    }
    lac_area_done(&area);
    free(plain);
}

START_TEST(test_an_area_is_what_a_plain_count_says)
{
    const int64_t end_ns = model->info.duration_ns;
    uint64_t seed = 7;

    compare_with_plain(&(struct lac_area_query){.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS});
    compare_with_plain(
        &(struct lac_area_query){.t0_ns = end_ns * 7 / 10, .t1_ns = end_ns * 7 / 10 + 500});
    for (int round = 0; round < rounds_of(12); round++) {
        int64_t edge[2];

        for (int e = 0; e < 2; e++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            edge[e] = (int64_t)((seed >> 20) % (uint64_t)(end_ns + 1));
            if (round % 3 == 0) { /* exactly at a slice's start */
                edge[e] = model->slices.start_ns[(seed >> 20) % model->slices.count];
            }
        }
        compare_with_plain(
            &(struct lac_area_query){.t0_ns = edge[0] < edge[1] ? edge[0] : edge[1],
                                     .t1_ns = edge[0] < edge[1] ? edge[1] : edge[0]});
    }
}
END_TEST

/** It leads no list; asked for by number it is there. */
START_TEST(test_the_profilers_own_mark_is_left_out)
{
    struct lac_area area = {0};
    struct lac_error error = {0};

    ck_assert_int_eq(lac_trace_file_area(file, &(struct lac_area_query){.t1_ns = LAC_TIME_MAX_NS},
                                         &area, &error),
                     LAC_OK);
    ck_assert_uint_eq(area.slice_count, 1);
    ck_assert_uint_eq(area.name_count, 1);
    ck_assert_str_eq(lac_model_str(model, area.names[0].name), "work");
    ck_assert_uint_eq(area.track_count, 1);
    lac_area_done(&area);
    for (uint32_t t = 0; t < model->track_count; t++) {
        compare_with_plain(&(struct lac_area_query){
            .t1_ns = LAC_TIME_MAX_NS, .tracks = &(const uint32_t){t}, .track_count = 1});
    }
}
END_TEST

START_TEST(test_rows_can_be_chosen)
{
    for (uint32_t t = 0; t < model->track_count; t++) {
        const uint32_t tracks[1] = {t};

        compare_with_plain(&(struct lac_area_query){.t0_ns = model->info.duration_ns / 3,
                                                    .t1_ns = model->info.duration_ns / 2,
                                                    .tracks = tracks,
                                                    .track_count = 1});
    }
}
END_TEST

START_TEST(test_idle_time_of_a_device)
{
    const struct lac_device_facts *device = &analysis->devices[0];
    struct lac_area area = {0};
    struct lac_area parts[2] = {{0}, {0}};
    struct lac_error error = {0};
    const int64_t middle = model->info.duration_ns * 2 / 5;

    ck_assert_int_eq(
        lac_trace_file_area(file, &(struct lac_area_query){.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS},
                            &area, &error),
        LAC_OK);
    ck_assert_uint_ge(area.device_count, 1);
    ck_assert_int_eq(area.devices[0].id, device->id);
    ck_assert_int_eq(area.devices[0].span_ns, device->span_ns);
    ck_assert_int_eq(area.devices[0].idle_ns, device->idle_ns);
    ck_assert_int_gt(device->idle_ns, 0);
    for (unsigned cause = 0; cause < LAC_GAP_CAUSES; cause++) {
        ck_assert_int_eq(area.devices[0].cause_ns[cause], device->idle_by_cause_ns[cause]);
    }
    ck_assert_uint_gt(area.devices[0].kind_count[LAC_SLICE_KERNEL], 0);
    /* two halves add up */
    ck_assert_int_eq(
        lac_trace_file_area(file, &(struct lac_area_query){.t1_ns = middle}, &parts[0], &error),
        LAC_OK);
    ck_assert_int_eq(lac_trace_file_area(
                         file, &(struct lac_area_query){.t0_ns = middle, .t1_ns = LAC_TIME_MAX_NS},
                         &parts[1], &error),
                     LAC_OK);
    ck_assert_int_eq(parts[0].devices[0].idle_ns + parts[1].devices[0].idle_ns, device->idle_ns);
    ck_assert_int_eq(parts[0].devices[0].span_ns + parts[1].devices[0].span_ns, device->span_ns);
    ck_assert_int_eq(parts[0].devices[0].kind_ns[LAC_SLICE_KERNEL] +
                         parts[1].devices[0].kind_ns[LAC_SLICE_KERNEL],
                     area.devices[0].kind_ns[LAC_SLICE_KERNEL]);
    lac_area_done(&area);
    lac_area_done(&parts[0]);
    lac_area_done(&parts[1]);
}
END_TEST

/** More gaps than one block of them. */
static void setup_gaps(void)
{
    ck_assert_int_eq(rich_model_create(5, 200000, &model), LAC_OK);
    store();
    ck_assert_uint_gt(analysis->gap_count, 40000);
}

static int by_start(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;

    return (a[0] > b[0]) - (a[0] < b[0]);
}

/** Length inside [t0_ns, t1_ns) of the union of what a device runs: computing kernels, or all. */
static int64_t run_plainly(int64_t device, bool only_computing, int64_t t0_ns, int64_t t1_ns)
{
    int64_t(*runs)[2] = malloc(((size_t)model->slices.count + 1) * sizeof(*runs));
    size_t count = 0;
    int64_t end_ns = t0_ns;
    int64_t sum_ns = 0;

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            const uint8_t kind = model->slices.kind[i];
            const bool is_kernel = kind == LAC_SLICE_KERNEL;
            const bool is_computing =
                is_kernel && strstr(lac_model_str(model, model->slices.name[i]), "nccl") == NULL;
            const bool is_work = is_kernel || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;

            if (track->kind == LAC_TRACK_STREAM && track->device == device &&
                (only_computing ? is_computing : is_work)) {
                runs[count][0] = model->slices.start_ns[i];
                runs[count++][1] = model->slices.start_ns[i] + model->slices.dur_ns[i];
            }
        }
    }
    qsort(runs, count, sizeof(*runs), by_start);
    for (size_t i = 0; i < count; i++) {
        const int64_t from_ns = runs[i][0] > end_ns ? runs[i][0] : end_ns;
        const int64_t to_ns = runs[i][1] < t1_ns ? runs[i][1] : t1_ns;

        if (to_ns > from_ns) {
            sum_ns += to_ns - from_ns;
            end_ns = to_ns;
        }
    }
    free(runs);
    return sum_ns;
}

static int64_t exposed_plainly(int64_t device, int64_t t0_ns, int64_t t1_ns)
{
    return run_plainly(device, false, t0_ns, t1_ns) - run_plainly(device, true, t0_ns, t1_ns);
}

/** What a device idles in parts of the trace, against its gaps one by one; what it does without
 *  computing, against all it runs. */
START_TEST(test_idle_time_is_that_of_the_gaps)
{
    const int64_t end_ns = model->info.duration_ns;
    uint64_t seed = 11;

    for (int round = 0; round < 40; round++) {
        struct lac_area area = {0};
        struct lac_error error = {0};
        int64_t edge[2];

        for (int e = 0; e < 2; e++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            edge[e] = round == 0 ? e * end_ns : (int64_t)((seed >> 20) % (uint64_t)(end_ns + 1));
        }
        const int64_t t0_ns = edge[0] < edge[1] ? edge[0] : edge[1];
        const int64_t t1_ns = edge[0] < edge[1] ? edge[1] : edge[0];

        ck_assert_int_eq(
            lac_trace_file_area(file, &(struct lac_area_query){.t0_ns = t0_ns, .t1_ns = t1_ns},
                                &area, &error),
            LAC_OK);
        for (uint32_t d = 0; d < area.device_count; d++) {
            int64_t idle_ns = 0;
            int64_t by_cause_ns = 0;

            for (uint64_t g = 0; g < analysis->gap_count; g++) {
                const struct lac_gap *gap = &analysis->gaps[g];
                const int64_t to_ns = gap->start_ns + gap->dur_ns;
                const int64_t part_ns = (to_ns < t1_ns ? to_ns : t1_ns) -
                                        (gap->start_ns > t0_ns ? gap->start_ns : t0_ns);

                idle_ns += analysis->devices[gap->device].id == area.devices[d].id && part_ns > 0
                               ? part_ns
                               : 0;
            }
            for (unsigned cause = 0; cause < LAC_GAP_CAUSES; cause++) {
                by_cause_ns += area.devices[d].cause_ns[cause];
            }
            ck_assert_int_eq(area.devices[d].idle_ns, idle_ns);
            ck_assert_int_eq(by_cause_ns, idle_ns);
            ck_assert_int_eq(area.devices[d].exposed_ns,
                             exposed_plainly(area.devices[d].id, t0_ns, t1_ns));
        }
        lac_area_done(&area);
    }
}
END_TEST

START_TEST(test_search_finds_all_slices_of_a_row)
{
    struct lac_search_hits hits = {0};
    struct lac_error error;
    char text[32];

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const uint64_t count = track->kind == LAC_TRACK_COUNTER ? 0 : track->count;
        struct lac_search_query query = {.text = text, .kind = -1, .limit = 700};
        char cursor[64] = "";
        uint64_t seen = 0;

        (void)snprintf(text, sizeof(text), "track:%u", t);
        do {
            query.after = cursor;
            ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
            ck_assert_uint_eq(hits.total, count);
            for (uint32_t i = 0; i < hits.count; i++) { /* they are in order of time */
                ck_assert_uint_eq(hits.rows[i].slice, track->first + seen++);
            }
            memcpy(cursor, hits.has_more ? hits.next : "", hits.has_more ? sizeof(cursor) : 1);
            lac_search_hits_done(&hits);
        } while (cursor[0] != '\0');
        ck_assert_uint_eq(seen, count);
        query.after = NULL;
        query.kind = LAC_SLICE_API; /* one kind alone */
        ck_assert_int_eq(lac_trace_file_search(file, &query, &hits, &error), LAC_OK);
        for (uint64_t i = 0; i < count; i++) {
            hits.total -= model->slices.kind[track->first + i] == LAC_SLICE_API;
        }
        ck_assert_uint_eq(hits.total, 0);
        lac_search_hits_done(&hits);
    }
    ck_assert_int_eq(lac_trace_file_search(
                         file,
                         &(struct lac_search_query){.text = "track:999", .kind = -1, .limit = 1},
                         &hits, &error),
                     LAC_OK);
    ck_assert_uint_eq(hits.total, 0);
    lac_search_hits_done(&hits);
}
END_TEST

START_TEST(test_order_of_names)
{
    struct lac_area area = {0};
    struct lac_error error = {0};

    ck_assert_int_eq(
        lac_trace_file_area(file, &(struct lac_area_query){.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS},
                            &area, &error),
        LAC_OK);
    ck_assert_uint_gt(area.name_count, 3);
    lac_area_sort(&area, model, LAC_AREA_SORT_COUNT, false);
    for (uint32_t i = 1; i < area.name_count; i++) {
        ck_assert_uint_le(area.names[i - 1].count, area.names[i].count);
    }
    lac_area_sort(&area, model, LAC_AREA_SORT_NAME, false);
    for (uint32_t i = 1; i < area.name_count; i++) {
        ck_assert_int_le(strcmp(lac_model_str(model, area.names[i - 1].name),
                                lac_model_str(model, area.names[i].name)),
                         0);
    }
    lac_area_sort(&area, model, LAC_AREA_SORT_MEAN, true);
    for (uint32_t i = 1; i < area.name_count; i++) {
        ck_assert_double_ge((double)area.names[i - 1].total_ns / (double)area.names[i - 1].count,
                            (double)area.names[i].total_ns / (double)area.names[i].count);
    }
    lac_area_done(&area);
}
END_TEST

/** As a program before totals were stored wrote it. */
static void setup_before_totals(void)
{
    struct lac_error error = {0};
    sqlite3 *db = NULL;

    setup_nested();
    lac_trace_file_close(file);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE meta SET value = 3 WHERE key = 'format_version';"
                                  "DROP TABLE total; DROP TABLE IF EXISTS gap_total;"
                                  "DROP TABLE open_before",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(lac_checked_stamp(path, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
}

/** What is open where a chunk begins is in a row: the one before it is not read for that. */
START_TEST(test_open_slices_are_not_looked_for)
{
    struct lac_area_query late = {.t1_ns = LAC_TIME_MAX_NS};
    struct lac_error error = {0};
    sqlite3 *db = NULL;

    lac_trace_file_close(file);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE chunk SET data = 0 WHERE first = "
                                  "(SELECT min(first) FROM open_before)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_changes(db), 1);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(lac_checked_stamp(path, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(file->track_chunk[1], 3);
    ck_assert_int_gt(file->chunks[1].end_last, file->chunks[2].start_first);
    late.t0_ns = file->chunks[2].start_last; /* the slice around all is in the first chunk */
    late.tracks = (const uint32_t[]){0};
    late.track_count = 1;
    ck_assert_int_eq(file->head.tracks[0].kind, LAC_TRACK_THREAD);
    compare_with_plain(&late);
}
END_TEST

/** A chunk says what it holds, and that is used: what it says is told. */
START_TEST(test_totals_are_not_counted_again)
{
    const struct lac_area_query all = {.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS};
    struct lac_area area = {0};
    struct lac_error error = {0};
    sqlite3 *db = NULL;

    lac_trace_file_close(file);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE chunk SET data = 0", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_gt(sqlite3_total_changes(db), 1);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(lac_checked_stamp(path, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_area(file, &all, &area, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(area.slice_count, INNER + INNER / IN_MIDDLE + 1);
    lac_area_done(&area);
    ck_assert_int_eq(
        lac_trace_file_area(file, &(struct lac_area_query){.t0_ns = 5, .t1_ns = 99}, &area, &error),
        LAC_ERR_CORRUPT);
}
END_TEST

START_TEST(test_what_cannot_be_asked)
{
    const uint32_t beyond[1] = {UINT32_MAX - 1};
    const uint32_t twice[2] = {0, 0};
    struct lac_area area = {0};
    struct lac_error error = {0};

    ck_assert_int_eq(
        lac_trace_file_area(file, &(struct lac_area_query){.t0_ns = 5, .t1_ns = 4}, &area, &error),
        LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_trace_file_area(
                         file,
                         &(struct lac_area_query){.t1_ns = 9, .tracks = beyond, .track_count = 1},
                         &area, &error),
                     LAC_ERR_MISUSE);
    ck_assert_int_eq(
        lac_trace_file_area(file,
                            &(struct lac_area_query){.t1_ns = 9, .tracks = twice, .track_count = 2},
                            &area, &error),
        LAC_ERR_MISUSE);
    ck_assert_ptr_null(area.names);
}
END_TEST

/** Rows counted side by side give what they give one after another, rows in the same order. */
START_TEST(helpers_change_nothing)
{
    struct lac_crew *crew = NULL;
    ck_assert(lac_crew_create(2, NULL, NULL, &crew));
    for (int i = 0; i < rounds_of(40); i++) {
        const int64_t duration_ns = model->info.duration_ns;
        const struct lac_area_query query = {.t0_ns = duration_ns / 50 * i,
                                             .t1_ns =
                                                 duration_ns / 50 * i + duration_ns / (1 + i % 7)};
        struct lac_area alone;
        struct lac_area helped;
        struct lac_error error = {0};
        file->crew = NULL;
        ck_assert_int_eq(lac_trace_file_area(file, &query, &alone, &error), LAC_OK);
        file->crew = crew;
        ck_assert_int_eq(lac_trace_file_area(file, &query, &helped, &error), LAC_OK);
        ck_assert_uint_eq(helped.slice_count, alone.slice_count);
        ck_assert_uint_eq(helped.name_count, alone.name_count);
        ck_assert_uint_eq(helped.track_count, alone.track_count);
        ck_assert_uint_eq(helped.device_count, alone.device_count);
        for (uint32_t n = 0; n < alone.name_count; n++) {
            const struct lac_area_name *a = &alone.names[n];
            const struct lac_area_name *b = &helped.names[n];
            ck_assert_uint_eq(a->name, b->name);
            ck_assert_uint_eq(a->kind, b->kind);
            ck_assert_uint_eq(a->count, b->count);
            ck_assert_int_eq(a->total_ns, b->total_ns);
            ck_assert_int_eq(a->self_ns, b->self_ns);
            ck_assert_int_eq(a->max_ns, b->max_ns);
            ck_assert_uint_eq(a->longest, b->longest);
        }
        for (uint32_t t = 0; t < alone.track_count; t++) {
            ck_assert_uint_eq(helped.tracks[t].track, alone.tracks[t].track);
            ck_assert_uint_eq(helped.tracks[t].count, alone.tracks[t].count);
            ck_assert_int_eq(helped.tracks[t].total_ns, alone.tracks[t].total_ns);
        }
        for (uint32_t d = 0; d < alone.device_count; d++) {
            const struct lac_area_device *a = &alone.devices[d];
            const struct lac_area_device *b = &helped.devices[d];
            ck_assert_int_eq(a->id, b->id);
            ck_assert_int_eq(a->span_ns, b->span_ns);
            ck_assert_int_eq(a->idle_ns, b->idle_ns);
            ck_assert_mem_eq(a->kind_count, b->kind_count, sizeof(a->kind_count));
            ck_assert_mem_eq(a->kind_ns, b->kind_ns, sizeof(a->kind_ns));
            ck_assert_mem_eq(a->cause_ns, b->cause_ns, sizeof(a->cause_ns));
        }
        lac_area_done(&alone);
        lac_area_done(&helped);
    }
    file->crew = NULL;
    lac_crew_destroy(crew);
}
END_TEST

/** The mean over time from the first sample in [t0, t1) on, summed plainly. */
static void expect_mean(uint32_t track, int64_t t0_ns, int64_t t1_ns,
                        const struct lac_counter_points *points)
{
    const uint64_t end = model->tracks[track].first + model->tracks[track].count;
    int64_t held_ns = 0;
    double sum = 0;
    double size = 0;

    for (uint64_t i = model->tracks[track].first; i < end; i++) {
        const int64_t from_ns = model->sample_ts_ns[i];
        const int64_t next_ns = i + 1 < end ? model->sample_ts_ns[i + 1] : t1_ns;

        if (from_ns >= t0_ns && from_ns < t1_ns) {
            const int64_t ns = (next_ns < t1_ns ? next_ns : t1_ns) - from_ns;

            held_ns += ns;
            sum += model->sample_value[i] * (double)ns;
            size += fabs(model->sample_value[i]) * (double)ns;
        }
    }
    if (points->count > 0) {
        ck_assert_double_le(fabs(points->mean * (double)held_ns - sum), 1e-9 * size + 1e-9);
    }
}

/** Bins of [t0, t1) as they follow from the samples, each put where its time says. */
static void expect_bins(uint32_t track, int64_t t0_ns, int64_t t1_ns, uint32_t bins,
                        const struct lac_counter_points *points)
{
    const uint64_t end = model->tracks[track].first + model->tracks[track].count;
    uint32_t at = 0;
    uint64_t i = model->tracks[track].first;

    while (i < end && model->sample_ts_ns[i] < t0_ns) {
        i++;
    }
    while (i < end && model->sample_ts_ns[i] < t1_ns) {
        const uint32_t bin = (uint32_t)((double)(model->sample_ts_ns[i] - t0_ns) * (double)bins /
                                        (double)(t1_ns - t0_ns));
        double min = INFINITY;
        double max = -INFINITY;

        for (; i < end && model->sample_ts_ns[i] < t1_ns &&
               (uint32_t)((double)(model->sample_ts_ns[i] - t0_ns) * (double)bins /
                          (double)(t1_ns - t0_ns)) == bin;
             i++) {
            min = fmin(min, model->sample_value[i]);
            max = fmax(max, model->sample_value[i]);
        }
        ck_assert_uint_lt(at, points->count);
        ck_assert_int_eq(points->ts_ns[at], model->sample_ts_ns[i - 1]);
        ck_assert(points->last[at] == model->sample_value[i - 1]);
        ck_assert(points->min[at] == min && points->max[at] == max);
        at++;
    }
    ck_assert_uint_eq(at, points->count);
    expect_mean(track, t0_ns, t1_ns, points);
}

START_TEST(test_counters_are_what_their_samples_say)
{
    static const uint32_t choices[] = {1, 2, 37, 1500, 8192};
    const int64_t duration_ns = model->info.duration_ns;
    uint32_t random = 7;
    uint32_t asked = 0;
    struct lac_error error;

    for (uint32_t round = 0; round < 300; round++) {
        const uint32_t track = round % model->track_count;
        struct lac_counter_points points = {0};
        int64_t t0_ns;
        int64_t t1_ns;
        uint32_t bins;

        if (model->tracks[track].kind != LAC_TRACK_COUNTER) {
            continue;
        }
        random = random * 1664525 + 1013904223;
        t0_ns =
            random % 4 == 0 ? 0 : (int64_t)((double)random / 4294967296.0 * (double)duration_ns);
        random = random * 1664525 + 1013904223;
        t1_ns = t0_ns + 1 + ((duration_ns - t0_ns) >> (random >> 4) % 24);
        bins = choices[(random >> 10) % LAC_COUNT_OF(choices)];
        ck_assert_int_eq(lac_trace_file_counter(file, track, t0_ns, t1_ns, bins, &points, &error),
                         LAC_OK);
        expect_bins(track, t0_ns, t1_ns, bins, &points);
        lac_counter_points_done(&points);
        asked++;
    }
    ck_assert_uint_gt(asked, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_area");
    TCase *area = tcase_create("area");
    TCase *nested = tcase_create("nested");
    TCase *gaps = tcase_create("gaps");
    TCase *recorder = tcase_create("recorder");
    TCase *older = tcase_create("before totals");
    TCase *stored = tcase_create("totals");

    tcase_add_unchecked_fixture(area, setup, teardown);
    tcase_set_timeout(area, 300);
    tcase_add_test(area, test_an_area_is_what_a_plain_count_says);
    tcase_add_test(area, helpers_change_nothing);
    tcase_add_test(area, test_rows_can_be_chosen);
    tcase_add_test(area, test_idle_time_of_a_device);
    tcase_add_test(area, test_order_of_names);
    tcase_add_test(area, test_search_finds_all_slices_of_a_row);
    tcase_add_test(area, test_counters_are_what_their_samples_say);
    tcase_add_test(area, test_what_cannot_be_asked);
    suite_add_tcase(suite, area);
    tcase_add_unchecked_fixture(nested, setup_nested, teardown);
    tcase_set_timeout(nested, 300);
    tcase_add_test(nested, test_an_area_is_what_a_plain_count_says);
    tcase_add_test(nested, helpers_change_nothing);
    suite_add_tcase(suite, nested);
    tcase_add_unchecked_fixture(recorder, setup_recorder, teardown);
    tcase_add_test(recorder, test_the_profilers_own_mark_is_left_out);
    suite_add_tcase(suite, recorder);
    tcase_add_unchecked_fixture(gaps, setup_gaps, teardown);
    tcase_set_timeout(gaps, 300);
    tcase_add_test(gaps, test_idle_time_of_a_device);
    tcase_add_test(gaps, helpers_change_nothing);
    tcase_add_test(gaps, test_idle_time_is_that_of_the_gaps);
    suite_add_tcase(suite, gaps);
    tcase_add_unchecked_fixture(older, setup_before_totals, teardown);
    tcase_set_timeout(older, 300);
    tcase_add_test(older, test_an_area_is_what_a_plain_count_says);
    tcase_add_test(older, helpers_change_nothing);
    suite_add_tcase(suite, older);
    tcase_add_checked_fixture(stored, setup_nested, teardown);
    tcase_set_timeout(stored, 300);
    tcase_add_test(stored, test_totals_are_not_counted_again);
    tcase_add_test(stored, test_open_slices_are_not_looked_for);
    suite_add_tcase(suite, stored);
    return check_main(suite);
}
