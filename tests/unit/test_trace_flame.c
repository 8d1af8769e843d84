/* Flame graphs of an area of a stored trace, made of the part that it takes and window by window,
 * against those made of the whole model. */
#include "analysis/crew/crew.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/import/import.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "server/store/trace/flame/flame_kept.h"
#include "server/store/trace/flame/flame_windows.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_writer.h"
#include "tests/simulator/random_loop.h"
#include "tests/support/check_main.h"
#include "tests/support/rich_model.h"
#include "tests/support/rounds.h"
#include "tests/support/training_model.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char path[128];
static struct lac_model *model;
static struct lac_trace_file *file;
static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 8) % limit;
}

/* ---- a model in which anything may happen ---- */

enum { NAMES = 24, WILD_NS = 200000000, STEP_NS = 10000000 };

struct wild {
    struct lac_builder *builder;
    uint32_t names[NAMES];
    uint32_t corr;
};

static uint32_t named(const struct wild *wild, const char *name)
{
    uint32_t id = 0;

    ck_assert_int_eq(
        lac_strings_intern(&lac_builder_model(wild->builder)->strings, name, strlen(name), &id),
        LAC_OK);
    return id;
}

static uint32_t row(const struct wild *wild, enum lac_track_kind kind, uint32_t process, int tid)
{
    char text[16];
    uint32_t track = 0;

    (void)snprintf(text, sizeof(text), "%d", tid);
    ck_assert_int_eq(
        lac_builder_track(wild->builder, kind, process, named(wild, text), tid, &track), LAC_OK);
    if (kind == LAC_TRACK_STREAM) {
        lac_builder_track_at(wild->builder, track)->device = process;
    }
    return track;
}

static void put(const struct wild *wild, uint32_t track, enum lac_slice_kind kind, uint32_t name,
                int64_t start_ns, int64_t dur_ns, uint32_t corr)
{
    const struct lac_slice_in in = {.start_ns = start_ns,
                                    .dur_ns = dur_ns,
                                    .track = track,
                                    .name = name,
                                    .corr = corr,
                                    .detail = LAC_NONE,
                                    .kind = kind};

    ck_assert_int_eq(lac_builder_slice(wild->builder, &in), LAC_OK);
}

/** Mostly short, some long, a few of no length. */
static int64_t some_length(void)
{
    const uint64_t choice = below(400);

    return (int64_t)(choice == 0   ? below(WILD_NS / 4)
                     : choice < 8  ? below(3000000)
                     : choice < 30 ? 0
                                   : below(4000));
}

/** Slices of every kind anywhere, so that many cross. */
static void put_anywhere(const struct wild *wild, uint32_t track, uint32_t count)
{
    static const enum lac_slice_kind kinds[] = {LAC_SLICE_OP,  LAC_SLICE_RANGE,    LAC_SLICE_PYTHON,
                                                LAC_SLICE_API, LAC_SLICE_OVERHEAD, LAC_SLICE_OTHER};

    for (uint32_t i = 0; i < count; i++) {
        put(wild, track, kinds[below(6)], wild->names[below(NAMES)], (int64_t)below(WILD_NS),
            some_length(), 0);
    }
}

/** Calls on the thread and what they launch on the stream, mostly soon and sometimes much later. */
static void put_launches(struct wild *wild, uint32_t thread, uint32_t stream, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int64_t at_ns = (int64_t)below(WILD_NS);
        const int64_t later_ns = (int64_t)(below(50) == 0 ? below(WILD_NS) : below(200000));
        const enum lac_slice_kind kinds[] = {LAC_SLICE_KERNEL, LAC_SLICE_COPY, LAC_SLICE_MEMSET,
                                             LAC_SLICE_OTHER};

        wild->corr++;
        put(wild, thread, LAC_SLICE_API, wild->names[below(NAMES)], at_ns, (int64_t)below(3000),
            below(20) == 0 ? 0 : wild->corr);
        put(wild, stream, kinds[below(4)], wild->names[below(NAMES)], at_ns + later_ns,
            (int64_t)below(20000), wild->corr);
    }
}

/** A loader: waits on the main thread, fetches on workers, and a thread that does both. */
static void put_loader(const struct wild *wild, uint32_t main, const uint32_t *workers)
{
    const uint32_t wait = named(wild, "loader.wait");
    const uint32_t fetch = named(wild, "loader.fetch");

    for (int i = 0; i < WILD_NS / STEP_NS; i++) {
        const int64_t at_ns = (int64_t)i * STEP_NS + (int64_t)below(STEP_NS);
        const int64_t dur_ns = (int64_t)below(STEP_NS);

        put(wild, main, LAC_SLICE_RANGE, wait, at_ns, dur_ns, 0);
        put(wild, workers[below(2)], below(2) == 0 ? LAC_SLICE_RANGE : LAC_SLICE_OP, fetch,
            at_ns - (int64_t)below(STEP_NS) + STEP_NS, dur_ns + (int64_t)below(STEP_NS), 0);
        put(wild, workers[2], LAC_SLICE_RANGE, fetch, at_ns, dur_ns, 0);
    }
    put(wild, workers[2], LAC_SLICE_RANGE, wait, WILD_NS - 10, 5, 0);
}

/** Threads that are left out, and some that nearly are. */
static void put_sleepers(const struct wild *wild, uint32_t process)
{
    static const char sleep[] = "<built-in function sleep>";
    static const char join[] = "/lib/python3/threading.py(10): wait";
    const uint32_t only = row(wild, LAC_TRACK_THREAD, process, 91);
    const uint32_t nearly = row(wild, LAC_TRACK_THREAD, process, 92);
    const uint32_t recorder = row(wild, LAC_TRACK_THREAD, process, 93);
    const uint32_t mixed = row(wild, LAC_TRACK_THREAD, process, 94);

    for (int64_t at_ns = 0; at_ns < WILD_NS; at_ns += STEP_NS) {
        put(wild, only, LAC_SLICE_PYTHON, named(wild, sleep), at_ns, STEP_NS - 1000, 0);
        put(wild, nearly, LAC_SLICE_PYTHON, named(wild, join), at_ns, STEP_NS / 2, 0);
        put(wild, nearly, LAC_SLICE_OP, wild->names[1], at_ns + STEP_NS / 2, STEP_NS / 2, 0);
        put(wild, recorder, LAC_SLICE_OTHER, named(wild, "PyTorch Profiler (0)"), at_ns, STEP_NS,
            0);
        put(wild, mixed, LAC_SLICE_OTHER,
            at_ns == 0 ? named(wild, "PyTorch Profiler (0)") : wild->names[2], at_ns, STEP_NS, 0);
    }
}

/** Idle time with any cause, ended by any operation or none. */
static void add_gaps(int64_t device)
{
    static const char *const causes[] = {"data_wait", "launch", "sync"};
    const struct lac_track track = {.kind = LAC_TRACK_GAPS, .process = LAC_NONE, .device = device};
    struct lac_derived_slice *gaps = calloc(3000, sizeof(*gaps));
    uint32_t names[3];
    uint64_t count = 0;
    uint64_t at = 0;
    int64_t now_ns = 0;

    ck_assert_ptr_nonnull(gaps);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            lac_strings_intern(&model->strings, causes[i], strlen(causes[i]), &names[i]), LAC_OK);
    }
    while (count < 3000 && now_ns < WILD_NS) {
        const uint64_t jump = below(400);

        at = (at + jump) % model->slices.count;
        while (at + 1 < model->slices.count && model->slices.link[at] == LAC_NONE) {
            at++;
        }
        gaps[count] = (struct lac_derived_slice){
            .start_ns = now_ns,
            .dur_ns = (int64_t)(below(30) == 0 ? below(3000000) : below(100000)),
            .name = names[below(3)],
            .link = below(10) == 0 ? LAC_NONE : (uint32_t)at,
            .kind = LAC_SLICE_GAP};
        now_ns += gaps[count].dur_ns + (int64_t)below(50000);
        count++;
    }
    ck_assert_int_eq(lac_model_add_track(model, &track, gaps, count), LAC_OK);
    free(gaps);
}

static void add_steps(void)
{
    const struct lac_track track = {.kind = LAC_TRACK_STEPS, .process = LAC_NONE, .device = -1};
    struct lac_derived_slice steps[WILD_NS / STEP_NS];

    for (int i = 0; i < WILD_NS / STEP_NS; i++) {
        steps[i] = (struct lac_derived_slice){.start_ns = (int64_t)i * STEP_NS,
                                              .dur_ns = STEP_NS,
                                              .link = LAC_NONE,
                                              .kind = LAC_SLICE_RANGE};
        ck_assert_int_eq(
            lac_strings_intern(&model->strings, i < 10 ? "name 3" : "name 4", 6, &steps[i].name),
            LAC_OK);
    }
    ck_assert_int_eq(lac_model_add_track(model, &track, steps, WILD_NS / STEP_NS), LAC_OK);
}

/** Modules anywhere in a thread's time whose backward pass it runs, so that many cross what it does. */
static void add_backward(void)
{
    enum { MODULES = 2000 };
    struct lac_derived_slice *modules = calloc(MODULES, sizeof(*modules));

    ck_assert_ptr_nonnull(modules);
    for (uint32_t t = 0; t < model->recorded_track_count; t += 2) {
        struct lac_track track = model->tracks[t];
        int64_t last_ns = 0;

        if (track.kind != LAC_TRACK_THREAD || track.count == 0) {
            continue;
        }
        const int64_t first_ns = model->slices.start_ns[track.first];
        for (uint64_t s = track.first; s < track.first + track.count; s++) {
            const int64_t end_ns = model->slices.start_ns[s] + model->slices.dur_ns[s];

            last_ns = end_ns > last_ns ? end_ns : last_ns;
        }
        track.kind = LAC_TRACK_BACKWARD;
        for (int i = 0; i < MODULES; i++) {
            const char *const name = below(3) == 0 ? "backward" : "nn.Module: Net_0";

            const int64_t start_ns = first_ns + (int64_t)below((uint64_t)(last_ns - first_ns) + 1);
            const int64_t dur_ns = some_length();

            modules[i] = (struct lac_derived_slice){
                .start_ns = start_ns,
                .dur_ns = start_ns + dur_ns <= last_ns ? dur_ns : last_ns - start_ns,
                .link = LAC_NONE,
                .kind = LAC_SLICE_GPU_RANGE};
            ck_assert_int_eq(
                lac_strings_intern(&model->strings, name, strlen(name), &modules[i].name), LAC_OK);
        }
        qsort(modules, MODULES, sizeof(*modules), lac_derived_slice_order);
        ck_assert_int_eq(lac_model_add_track(model, &track, modules, MODULES), LAC_OK);
    }
    free(modules);
}

static void make_wild(uint64_t seed, uint32_t slices, bool with_samples)
{
    struct wild wild = {0};
    uint32_t process = 0;

    state = seed * 0x9E3779B97F4A7C15U + 1;
    ck_assert_int_eq(lac_builder_create(&wild.builder), LAC_OK);
    for (int i = 0; i < NAMES; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), i == 5 ? "ProfilerStep#%d" : "name %d", i);
        wild.names[i] = named(&wild, name);
    }
    for (int p = 0; p < 2; p++) {
        uint32_t threads[5];
        uint32_t streams[2];

        ck_assert_int_eq(lac_builder_process(wild.builder, named(&wild, p == 0 ? "10" : "20"),
                                             10 * p + 10, &process),
                         LAC_OK);
        for (int t = 0; t < 5; t++) {
            threads[t] = row(&wild, LAC_TRACK_THREAD, process, 10 * p + t);
            put_anywhere(&wild, threads[t], slices / (t == 0 ? 2 : 20));
        }
        for (int s = 0; s < 2; s++) {
            streams[s] = row(&wild, LAC_TRACK_STREAM, process, 1000 + 10 * p + s);
            put_launches(&wild, threads[s], streams[s], slices / (s == 0 ? 2 : 20));
        }
        if (with_samples) {
            put_anywhere(&wild, row(&wild, LAC_TRACK_STACKS, process, 10 * p), slices / 10);
            put_anywhere(&wild, row(&wild, LAC_TRACK_STACKS, process, 10 * p + 1), slices / 50);
        }
        put_loader(&wild, threads[0], &threads[2]);
        put_sleepers(&wild, process);
    }
    ck_assert_int_eq(lac_builder_finish(wild.builder, 0, &model), LAC_OK);
    add_steps();
    add_gaps(0);
    add_gaps(1);
    add_backward();
    ck_assert(lac_model_is_valid(model));
}

/* ---- the comparison ---- */

static void store(const struct lac_analysis *analysis)
{
    const struct lac_trace_write_options options = {
        .path = path, .generation = 1, .analysis = analysis};
    struct lac_error error = {0};

    ck_assert_msg(lac_trace_write(model, &options, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
}

static void store_diagnosed(void)
{
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    store(analysis);
    lac_analysis_destroy(analysis);
}

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
}

static void close_all(void)
{
    lac_trace_file_close(file);
    lac_model_destroy(model);
    file = NULL;
    model = NULL;
    (void)unlink(path);
}

static void teardown(void)
{
    close_all();
    (void)rmdir(folder);
}

static void are_equal(const struct lac_flame *a, const struct lac_flame *b)
{
    ck_assert_uint_eq(a->node_count, b->node_count);
    ck_assert_uint_eq(a->step_count, b->step_count);
    for (uint32_t i = 0; i < a->node_count; i++) {
        const struct lac_flame_node *left = &a->nodes[i];
        const struct lac_flame_node *right = &b->nodes[i];

        ck_assert_uint_eq(left->name, right->name);
        ck_assert_uint_eq(left->parent, right->parent);
        ck_assert_uint_eq(left->first_child, right->first_child);
        ck_assert_uint_eq(left->child_count, right->child_count);
        ck_assert_uint_eq(left->count, right->count);
        ck_assert_int_eq(left->value_ns, right->value_ns);
        ck_assert_int_eq(left->self_ns, right->self_ns);
        ck_assert_uint_eq(left->kind, right->kind);
    }
}

/** Window by window, of any size, alone or with a helper. */
static void compare_windows(const struct lac_flame_options *options,
                            const struct lac_flame *expected)
{
    static const uint64_t sizes[] = {1, 700, 20000, 1000000};
    const uint64_t least = file->head.slices.count / 200;
    const uint64_t size = sizes[below(4)];
    struct lac_flame *got = NULL;
    struct lac_error error = {0};

    if (below(2) == 0) {
        ck_assert(lac_crew_create(1, NULL, NULL, &file->crew));
    }
    ck_assert_msg(lac_flame_in_windows(file, options, size < least ? least : size, &got, &error) ==
                      LAC_OK,
                  "%s", error.message);
    lac_crew_destroy(file->crew);
    file->crew = NULL;
    are_equal(expected, got);
    lac_flame_destroy(got);
}

/** @return time in the graph */
static int64_t compare(const struct lac_model *whole, const struct lac_flame_options *options)
{
    struct lac_flame_options of_part = *options;
    struct lac_flame_part part;
    struct lac_flame *expected = NULL;
    struct lac_flame *got = NULL;
    struct lac_error error = {0};
    int64_t total_ns;

    ck_assert_int_eq(lac_flame_create(whole, options, &expected), LAC_OK);
    ck_assert_msg(lac_trace_flame_part(file, options, &part, &error) == LAC_OK, "%s",
                  error.message);
    ck_assert_uint_le(part.model->slices.count, whole->slices.count);
    of_part.whole = &part.whole;
    ck_assert_int_eq(lac_flame_create(part.model, &of_part, &got), LAC_OK);
    are_equal(expected, got);
    total_ns = got->nodes[0].value_ns;
    lac_trace_flame_part_done(&part);
    if (options->order == LAC_FLAME_ORDER_VALUE) {
        compare_windows(options, expected);
    }
    lac_flame_destroy(expected);
    lac_flame_destroy(got);
    return total_ns;
}

/** Areas of any width, at any place or at the ends of slices. */
static void draw_area(int round, struct lac_flame_options *options)
{
    const int64_t end_ns = model->info.duration_ns;
    int64_t at_ns = (int64_t)below((uint64_t)end_ns + 1);
    int64_t width_ns = 1 + (int64_t)below((uint64_t)end_ns >> below(20));

    if (round % 3 == 0) {
        const uint64_t slice = below(model->slices.count);

        at_ns = model->slices.start_ns[slice] + (round % 2 == 0 ? model->slices.dur_ns[slice] : 0);
        width_ns = round % 4 == 0 ? 1 : width_ns;
    }
    options->t0_ns = round == 0 ? 0 : at_ns;
    options->t1_ns = round < 2 ? LAC_TIME_MAX_NS : at_ns + width_ns;
}

/** Some rows. */
static const uint8_t *choose_rows(void)
{
    static uint8_t is_chosen[1024];

    ck_assert_uint_lt(model->track_count, sizeof(is_chosen));
    for (uint32_t t = 0; t < model->track_count; t++) {
        is_chosen[t] = (uint8_t)below(2);
    }
    return is_chosen;
}

/** Pieces of the area. @return how many, 0: it is too short */
static uint32_t draw_spans(const struct lac_flame_options *options, struct lac_flame_span *spans)
{
    const int64_t last_ns =
        options->t1_ns < model->info.duration_ns ? options->t1_ns : model->info.duration_ns;
    const int64_t piece_ns = (last_ns - options->t0_ns) / 8;

    for (uint32_t i = 0; i < 8 && piece_ns > 1; i++) {
        const int64_t at_ns = options->t0_ns + (int64_t)i * piece_ns;

        spans[i].start_ns = at_ns + (int64_t)below((uint64_t)piece_ns / 2);
        spans[i].end_ns = at_ns + piece_ns / 2 + 1 + (int64_t)below((uint64_t)piece_ns / 2);
    }
    return piece_ns > 1 ? 8 : 0;
}

static void compare_in_areas(int rounds)
{
    const struct lac_model *whole = NULL;
    struct lac_error error = {0};
    int64_t total_ns[3] = {0};

    ck_assert_msg(lac_trace_file_model(file, &whole, &error) == LAC_OK, "%s", error.message);
    for (int round = 0; round < rounds_of(rounds); round++) {
        struct lac_flame_options options = {0};
        struct lac_flame_span spans[8];

        draw_area(round, &options);
        for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU; metric++) {
            for (int by = LAC_FLAME_BY_OP; by <= LAC_FLAME_BY_MODULE; by++) {
                options.metric = (enum lac_flame_metric)metric;
                options.by = (enum lac_flame_by)by;
                /* which of equal frames are cut off is told by their order, too */
                options.node_count_max = round % 2 == 0 ? 0 : (uint32_t)(2 + below(60));
                options.prune_fraction = round % 3 == 0 ? 0 : 0.0005;
                options.order = below(3) == 0 ? LAC_FLAME_ORDER_TIME : LAC_FLAME_ORDER_VALUE;
                options.is_chosen = below(3) == 0 ? choose_rows() : NULL;
                options.span_count = below(3) == 0 ? draw_spans(&options, spans) : 0;
                options.spans = spans;
                total_ns[metric] += compare(whole, &options);
            }
        }
    }
    for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU; metric++) {
        ck_assert_int_gt(total_ns[metric], 0);
    }
    lac_trace_file_release_model(file, whole);
}

START_TEST(test_of_a_trace_with_everything)
{
    for (uint32_t seed = 1; seed <= (uint32_t)rounds_of(2); seed++) {
        ck_assert_int_eq(rich_model_create(seed, 40000, &model), LAC_OK);
        state = seed;
        store_diagnosed();
        compare_in_areas(12);
        close_all();
    }
}
END_TEST

START_TEST(test_of_training_with_a_loader)
{
    ck_assert_int_eq(training_model_create(300000, &model), LAC_OK);
    state = 5;
    store_diagnosed();
    compare_in_areas(8);
}
END_TEST

static enum lac_status keep(void *context, struct lac_model *imported, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    model = imported;
    return LAC_OK;
}

START_TEST(test_of_simulated_jobs)
{
    const struct lac_random_loops loops = {
        .dir = folder, .seed = 31, .count = (uint64_t)rounds_of(3)};
    struct lac_error error = {0};

    ck_assert_msg(lac_random_loops_write(&loops, &error) == LAC_OK, "%s", error.message);
    for (int seed = 31; seed < 31 + rounds_of(3); seed++) {
        char name[160];
        struct lac_import_options options = {0};

        lac_import_limits_default(&options.limits);
        (void)snprintf(name, sizeof(name), "%s/random-%06d.truth.json", folder, seed);
        (void)unlink(name);
        (void)snprintf(name, sizeof(name), "%s/random-%06d.json", folder, seed);
        ck_assert_msg(lac_import_file(name, &options, keep, NULL, &error) == LAC_OK, "%s",
                      error.message);
        (void)unlink(name);
        state = (uint64_t)seed;
        store_diagnosed();
        compare_in_areas(12);
        close_all();
    }
}
END_TEST

/** Small ones, where all is in one chunk, and some in which a thread has several. */
START_TEST(test_of_a_trace_in_which_anything_happens)
{
    for (uint64_t seed = 1; seed <= 9; seed += rounds_step() == 1 ? 1 : 2) {
        make_wild(seed, seed < 8 ? 400 : 80000, seed % 3 == 0);
        store(NULL);
        compare_in_areas(seed < 8 ? 30 : 6);
        close_all();
    }
}
END_TEST

/** Whether by a part or by the whole model: the first areas are small, then all is read. */
START_TEST(test_either_way_gives_the_same)
{
    enum { ROUNDS = 12 };
    struct lac_flame *got[ROUNDS][4] = {{NULL}};
    struct lac_flame_options asked[ROUNDS];
    const struct lac_model *whole = NULL;
    struct lac_error error = {0};

    ck_assert_int_eq(training_model_create(300000, &model), LAC_OK);
    state = 9;
    store_diagnosed();
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t part_ns = model->info.duration_ns / (round < 4 ? 200 : 12);

        asked[round] = (struct lac_flame_options){.t0_ns = (round + 1) * part_ns,
                                                  .t1_ns = (round + 2) * part_ns};
        if (round == ROUNDS - 1) {
            asked[round] = (struct lac_flame_options){0}; /* all of it */
        }
        for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_PROFILE; metric++) {
            asked[round].metric = (enum lac_flame_metric)metric;
            ck_assert_msg(lac_trace_flame(file, &asked[round], &got[round][metric], &error) ==
                              LAC_OK,
                          "%s", error.message);
        }
    }
    ck_assert_msg(lac_trace_file_model(file, &whole, &error) == LAC_OK, "%s", error.message);
    for (int round = 0; round < ROUNDS; round++) {
        for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_PROFILE; metric++) {
            struct lac_flame *expected = NULL;

            asked[round].metric = (enum lac_flame_metric)metric;
            ck_assert_int_eq(lac_flame_create(whole, &asked[round], &expected), LAC_OK);
            are_equal(expected, got[round][metric]);
            lac_flame_destroy(expected);
            lac_flame_destroy(got[round][metric]);
        }
    }
    lac_trace_file_release_model(file, whole);
}
END_TEST

/** More slices than one part should hold: made in windows, and kept for whoever asks again. */
START_TEST(test_of_a_large_trace)
{
    struct lac_error error = {0};

    if (rounds_are_sanitized() && !rounds_are_all()) {
        return; /* half a minute, for windows that the tests above go through as well */
    }
    ck_assert_int_eq(training_model_create(2400000, &model), LAC_OK);
    store_diagnosed();
    for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU; metric++) {
        for (int by = LAC_FLAME_BY_OP; by <= LAC_FLAME_BY_MODULE; by++) {
            const struct lac_flame_options options = {.metric = (enum lac_flame_metric)metric,
                                                      .by = (enum lac_flame_by)by,
                                                      .prune_fraction = 0.0005};
            struct lac_flame *expected = NULL;
            struct lac_flame *kept;

            ck_assert_int_eq(lac_flame_create(model, &options, &expected), LAC_OK);
            ck_assert_ptr_null(lac_flame_kept_get(file, &options));
            for (int again = 0; again < 2; again++) {
                struct lac_flame *got = NULL;

                ck_assert_msg(lac_trace_flame(file, &options, &got, &error) == LAC_OK, "%s",
                              error.message);
                are_equal(expected, got);
                lac_flame_destroy(got);
            }
            kept = lac_flame_kept_get(file, &options);
            ck_assert_ptr_nonnull(kept);
            are_equal(expected, kept);
            lac_flame_destroy(kept);
            lac_flame_destroy(expected);
        }
    }
    ck_assert_msg(!lac_trace_model_is_loaded(file), "the whole model was read");
}
END_TEST

/** What is asked for decides what is read: of a narrow area little. */
START_TEST(test_a_part_is_small)
{
    struct lac_flame_options options = {.metric = LAC_FLAME_GPU};
    struct lac_error error = {0};

    ck_assert_int_eq(training_model_create(300000, &model), LAC_OK);
    store_diagnosed();
    options.t0_ns = model->info.duration_ns / 2;
    options.t1_ns = options.t0_ns + model->info.duration_ns / 200;
    for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU; metric++) {
        struct lac_flame_part part;

        options.metric = (enum lac_flame_metric)metric;
        ck_assert_msg(lac_trace_flame_part(file, &options, &part, &error) == LAC_OK, "%s",
                      error.message);
        ck_assert_uint_gt(part.model->slices.count, 0);
        ck_assert_uint_lt(part.model->slices.count, model->slices.count / 20);
        lac_trace_flame_part_done(&part);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_flame");
    TCase *tests = tcase_create("areas");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, test_of_a_trace_with_everything);
    tcase_add_test(tests, test_of_training_with_a_loader);
    tcase_add_test(tests, test_of_simulated_jobs);
    tcase_add_test(tests, test_of_a_trace_in_which_anything_happens);
    tcase_add_test(tests, test_either_way_gives_the_same);
    tcase_add_test(tests, test_of_a_large_trace);
    tcase_add_test(tests, test_a_part_is_small);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
