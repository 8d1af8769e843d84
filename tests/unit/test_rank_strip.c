/* The row of a device, made of coarse tiles and stored gaps, is what its slices add up to. */

#include "analysis/diagnose/diagnose.h"
#include "server/api/rank_strip.h"
#include "server/base/buffer.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/pick.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICES = 2000, WINDOWS = 30, LONG_GAP_NS = 10000, WORKS = 3 };

static char folder[64];
static char path[128];

/** What a window's part is made of, one slice after another. */
struct plain {
    int64_t work_ns[WORKS]; /**< computing, communication, copies */
    int64_t long_gaps_ns;
    int64_t long_gaps;
};

struct trace {
    struct imported imported;
    struct lac_model *model; /**< of imported */
    struct lac_analysis *analysis;
    struct lac_trace_file *file;
    uint64_t first, count; /**< slices of the stream */
};

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

/** A stream of slices one after another: products, reductions over ranks and copies.
 *  @param shortest_ns and three times that at most */
static char *stream_of(uint32_t shortest_ns)
{
    static const char *const events[WORKS] = {
        "\"name\":\"volta_sgemm_128x64_nn\",\"cat\":\"kernel\"",
        "\"name\":\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\",\"cat\":\"kernel\"",
        "\"name\":\"Memcpy HtoD (Pinned -> Device)\",\"cat\":\"gpu_memcpy\""};
    struct lac_buffer text = {0};
    uint64_t at_ns = 1000;

    lac_buffer_puts(&text, "{\"traceEvents\":[");
    for (unsigned i = 0; i < SLICES; i++) {
        const uint32_t dur_ns = shortest_ns + pick(2 * shortest_ns);
        const uint32_t between = pick(8);

        lac_buffer_printf(&text,
                          "%s{\"ph\":\"X\",%s,\"pid\":0,\"tid\":7,\"ts\":%u.%03u,\"dur\":%u.%03u,"
                          "\"args\":{\"device\":0,\"stream\":7}}",
                          i > 0 ? "," : "", events[pick(WORKS)], (unsigned)(at_ns / 1000),
                          (unsigned)(at_ns % 1000), dur_ns / 1000, dur_ns % 1000);
        at_ns += dur_ns + (between == 0 ? pick(90000) : between < 4 ? pick(3000) : 0);
    }
    lac_buffer_puts(&text, "]}");
    ck_assert_int_eq(text.status, LAC_OK);
    return text.bytes;
}

static struct trace make(uint32_t shortest_ns)
{
    struct trace trace = {0};
    struct lac_error error = {0};
    char *text = stream_of(shortest_ns);

    trace.imported = import_text(text);
    free(text);
    ck_assert_uint_eq(trace.imported.count, 1);
    trace.model = trace.imported.models[0];
    ck_assert_int_eq(lac_diagnose(trace.model, NULL, &trace.analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(trace.analysis, trace.model), LAC_OK);
    for (uint32_t t = 0; t < trace.model->track_count; t++) {
        if (trace.model->tracks[t].kind == LAC_TRACK_STREAM) {
            trace.first = trace.model->tracks[t].first;
            trace.count = trace.model->tracks[t].count;
        }
    }
    ck_assert_uint_eq(trace.count, SLICES);

    const struct lac_trace_write_options options = {
        .path = path,
        .generation = 1,
        .analysis = trace.analysis,
        .documents = {[LAC_DOCUMENT_ANALYSIS] = {"{}", 2}}};
    ck_assert_msg(lac_trace_write(trace.model, &options, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &trace.file, &error) == LAC_OK, "%s", error.message);
    return trace;
}

static void destroy(struct trace *trace)
{
    lac_trace_file_close(trace->file);
    lac_analysis_destroy(trace->analysis);
    imported_done(&trace->imported);
}

/** Of [start, end) what is in [from, to). */
static int64_t shared_ns(int64_t start_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns)
{
    const int64_t left_ns = start_ns > from_ns ? start_ns : from_ns;
    const int64_t right_ns = end_ns < to_ns ? end_ns : to_ns;

    return right_ns > left_ns ? right_ns - left_ns : 0;
}

static struct plain plain_of(const struct trace *trace, int64_t from_ns, int64_t to_ns)
{
    const struct lac_model *model = trace->model;
    struct plain plain = {0};

    for (uint64_t i = trace->first; i < trace->first + trace->count; i++) {
        const int64_t start_ns = model->slices.start_ns[i];
        const int64_t end_ns = start_ns + model->slices.dur_ns[i];
        const bool is_copy = model->slices.kind[i] == LAC_SLICE_COPY;
        const char *name = lac_model_str(model, model->slices.name[i]);
        const unsigned work = is_copy ? 2 : strncmp(name, "nccl", 4) == 0 ? 1 : 0;

        plain.work_ns[work] += shared_ns(start_ns, end_ns, from_ns, to_ns);
        if (i + 1 < trace->first + trace->count) {
            const int64_t next_ns = model->slices.start_ns[i + 1];
            const int64_t idle_ns = shared_ns(end_ns, next_ns, from_ns, to_ns);

            if (next_ns - end_ns >= LONG_GAP_NS && idle_ns > 0) {
                plain.long_gaps_ns += idle_ns;
                plain.long_gaps++;
            }
        }
    }
    return plain;
}

/** A window of the trace, sometimes all of it, in parts of less than `part_ns`. */
static struct lac_strip_query window_of(const struct trace *trace, unsigned turn, int64_t part_ns)
{
    const struct lac_device_facts *device = &trace->analysis->devices[0];
    const int64_t duration_ns = trace->model->info.duration_ns;
    struct lac_strip_query query = {.device = device->id,
                                    .first_ns = device->first_ns,
                                    .end_ns = device->first_ns + device->span_ns,
                                    .t1_ns = duration_ns};

    if (turn > 0) {
        query.t0_ns = pick((uint32_t)duration_ns) - (int64_t)(turn % 3) * 40000;
        query.t1_ns = query.t0_ns + 1 + pick((uint32_t)duration_ns);
    }
    const int64_t length_ns = query.t1_ns - query.t0_ns;
    const int64_t fewest = length_ns / part_ns + 1;
    const int64_t most = length_ns < LAC_STRIP_POINTS_MAX ? length_ns : LAC_STRIP_POINTS_MAX;

    ck_assert_int_le(fewest, most);
    query.points = (uint32_t)(fewest + pick((uint32_t)(most - fewest + 1)));
    return query;
}

static int64_t edge_of(const struct lac_strip_query *query, uint32_t i)
{
    return query->t0_ns + (query->t1_ns - query->t0_ns) * i / query->points;
}

/** Causes sum to the long gaps; each is rounded down in each gap. */
static void require_gaps(const struct lac_strip *strip, uint32_t part, const struct plain *plain)
{
    int64_t sum_ns = 0;

    for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
        sum_ns += strip->cause_ns[part][c];
    }
    ck_assert_int_le(sum_ns, plain->long_gaps_ns);
    ck_assert_int_ge(sum_ns, plain->long_gaps_ns - LAC_CAUSE_COUNT_ * plain->long_gaps);
}

static void require_kinds(const struct lac_strip *strip, uint32_t part)
{
    int64_t sum_ns = 0;

    for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
        sum_ns += strip->kind_ns[k][part];
    }
    ck_assert_int_eq(sum_ns, strip->compute_ns[part]);
}

START_TEST(slices_longer_than_a_cell_are_told_to_the_nanosecond)
{
    struct trace trace = make(20000);

    for (unsigned turn = 0; turn < WINDOWS; turn++) {
        /* a quarter of it is less than 32,768 ns: cells are of 4,096 ns at most */
        const struct lac_strip_query query = window_of(&trace, turn, 131000);
        struct lac_strip strip = {0};
        struct lac_error error = {0};

        ck_assert_int_eq(lac_strip_make(trace.file, &query, &strip, &error), LAC_OK);
        for (uint32_t i = 0; i < query.points; i++) {
            const struct plain plain = plain_of(&trace, edge_of(&query, i), edge_of(&query, i + 1));

            ck_assert_int_eq(strip.compute_ns[i], plain.work_ns[0]);
            ck_assert_int_eq(strip.kind_ns[LAC_STRIP_MATRIX][i], plain.work_ns[0]);
            ck_assert_int_eq(strip.comm_ns[i], plain.work_ns[1]);
            ck_assert_int_eq(strip.copy_ns[i], plain.work_ns[2]);
            require_gaps(&strip, i, &plain);
            require_kinds(&strip, i);
        }
        lac_strip_done(&strip);
    }
    destroy(&trace);
}
END_TEST

START_TEST(slices_shorter_than_a_cell_are_told_but_for_the_cells_at_the_edges)
{
    struct trace trace = make(200);

    for (unsigned turn = 0; turn < WINDOWS; turn++) {
        const struct lac_strip_query query = window_of(&trace, turn, INT64_MAX);
        /* what a cell did is spread over it: at each edge a part may be wrong by one cell, which
         * is a quarter of a part at most, and each cell is rounded down */
        const int64_t part_ns = (query.t1_ns - query.t0_ns) / query.points + 1;
        const int64_t allowed_ns = part_ns / 2 + 64;
        struct lac_strip strip = {0};
        struct lac_error error = {0};

        ck_assert_int_eq(lac_strip_make(trace.file, &query, &strip, &error), LAC_OK);
        for (uint32_t i = 0; i < query.points; i++) {
            const struct plain plain = plain_of(&trace, edge_of(&query, i), edge_of(&query, i + 1));
            const int64_t ran_ns = plain.work_ns[0] + plain.work_ns[1] + plain.work_ns[2];
            const int64_t told_ns = strip.compute_ns[i] + strip.comm_ns[i] + strip.copy_ns[i];

            ck_assert_int_le(llabs(told_ns - ran_ns), allowed_ns);
            require_gaps(&strip, i, &plain);
            require_kinds(&strip, i);
        }
        lac_strip_done(&strip);
    }
    destroy(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_strip");
    TCase *tcase = tcase_create("rank_strip");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, slices_longer_than_a_cell_are_told_to_the_nanosecond);
    tcase_add_test(tcase, slices_shorter_than_a_cell_are_told_but_for_the_cells_at_the_edges);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
