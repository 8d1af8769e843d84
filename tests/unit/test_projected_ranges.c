/* Ranges and modules of the host on streams, against each pair of range and operation. */

#include "analysis/diagnose/facts/recorded/projected_ranges.h"
#include "analysis/diagnose/facts/recorded/stream_rows.h"
#include "analysis/flame/flame.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 600, TEXT_BYTES = LINES * 96 };

static int64_t end_of(const struct lac_model *model, uint64_t slice)
{
    return model->slices.start_ns[slice] + model->slices.dur_ns[slice];
}

/** The projection of `range` on `stream`, or LAC_NONE. */
static uint32_t found(const struct lac_model *model, const struct lac_track *stream, uint32_t range)
{
    uint32_t slice = LAC_NONE;
    for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            if (track->device == stream->device && track->tid == stream->tid &&
                model->slices.link[s] == range) {
                ck_assert_uint_eq(slice, LAC_NONE);
                ck_assert_int_eq(track->kind, LAC_TRACK_GPU_RANGE);
                ck_assert_int_eq(model->slices.kind[s], LAC_SLICE_GPU_RANGE);
                ck_assert_uint_eq(model->slices.name[s], model->slices.name[range]);
                slice = (uint32_t)s;
            }
        }
    }
    return slice;
}

/** From the first start to the last end of what was launched in `range` on `stream`.
 *  @return operations */
static unsigned plainly(const struct lac_model *model, const struct lac_track *stream,
                        uint32_t range, int64_t *ret_start, int64_t *ret_end)
{
    unsigned count = 0;
    *ret_start = INT64_MAX;
    *ret_end = 0;
    for (uint64_t s = stream->first; s < stream->first + stream->count; s++) {
        const uint32_t call = model->slices.link[s];
        if (call != LAC_NONE && model->slices.start_ns[call] <= model->slices.start_ns[s] &&
            lac_model_track_of(model, call) == lac_model_track_of(model, range) &&
            model->slices.start_ns[call] >= model->slices.start_ns[range] &&
            end_of(model, call) <= end_of(model, range)) {
            *ret_start =
                model->slices.start_ns[s] < *ret_start ? model->slices.start_ns[s] : *ret_start;
            *ret_end = end_of(model, s) > *ret_end ? end_of(model, s) : *ret_end;
            count++;
        }
    }
    return count;
}

/** Nested ranges and calls between `from` and `to`. @return the number of the next operation */
static unsigned draw(char *text, size_t *at, unsigned thread, unsigned from, unsigned to,
                     unsigned depth, unsigned next)
{
    unsigned t = from;
    while (t + 4 <= to && *at + 512 < TEXT_BYTES) {
        const unsigned length = 4 + (unsigned)rand() % (to - t);
        const unsigned end = t + length < to ? t + length : to;
        if (depth < 6 && end - t >= 12 && rand() % 4 != 0) {
            const char *const kind = rand() % 3 == 0 ? "python" : "range";
            *at += (size_t)snprintf(text + *at, TEXT_BYTES - *at, "t%u %s %u %u %s\n", thread, kind,
                                    t, end - t,
                                    kind[0] == 'r'    ? "forward"
                                    : rand() % 3 == 0 ? "train.py(7): step"
                                                      : "nn.Module: Net_0");
            next = draw(text, at, thread, t + 1, end - 1, depth + 1, next);
        } else {
            *at += (size_t)snprintf(text + *at, TEXT_BYTES - *at,
                                    "t%u call %u 1 #%u cudaLaunchKernel\n"
                                    "gpu%u.%u kernel %u %u #%u k\n",
                                    thread, t, next, (unsigned)rand() % 2, 7 + (unsigned)rand() % 2,
                                    t + (unsigned)rand() % 200, (unsigned)rand() % 30, next);
            next++;
        }
        t = end + (unsigned)rand() % 4;
    }
    return next;
}

START_TEST(each_range_has_its_work_on_each_stream)
{
    char *text = malloc(TEXT_BYTES);
    size_t at = 0;
    ck_assert_ptr_nonnull(text);
    srand(11);
    const unsigned next = draw(text, &at, 0, 0, 1500, 0, 1);
    (void)draw(text, &at, 1, 0, 1500, 0, next);
    struct lac_model *model = trace_draw(text);
    free(text);
    const uint64_t recorded = model->slices.count;
    ck_assert_int_eq(lac_projected_ranges_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));

    uint64_t projected = 0;
    unsigned deepest = 0;
    for (uint32_t r = 0; r < recorded; r++) {
        const bool is_range = model->slices.kind[r] == LAC_SLICE_RANGE;
        const bool is_module =
            strncmp(lac_model_str(model, model->slices.name[r]), "nn.Module: ", 11) == 0;
        for (uint32_t t = 0; t < model->recorded_track_count; t++) {
            const struct lac_track *stream = &model->tracks[t];
            int64_t start = 0;
            int64_t end = 0;
            if (stream->kind != LAC_TRACK_STREAM) {
                continue;
            }
            const bool is_there =
                (is_range || is_module) && plainly(model, stream, r, &start, &end) > 0;
            const uint32_t slice = found(model, stream, r);
            ck_assert_int_eq(is_there, slice != LAC_NONE);
            if (is_there) {
                const char *track =
                    lac_model_str(model, model->tracks[lac_model_track_of(model, slice)].name);
                ck_assert_int_eq(model->slices.start_ns[slice], start);
                ck_assert_int_eq(end_of(model, slice), end);
                ck_assert_int_eq(strncmp(track, is_module ? "modules " : "ranges ", 7), 0);
                deepest = model->slices.lane[slice] > deepest ? model->slices.lane[slice] : deepest;
                projected++;
            }
        }
    }
    ck_assert_uint_gt(projected, 100);
    ck_assert_uint_ge(deepest, 3);
    ck_assert_uint_eq(model->slices.count, recorded + projected);
    lac_model_destroy(model);
}
END_TEST

START_TEST(calls_after_their_work_and_work_without_calls_are_left_out)
{
    struct lac_model *model = trace_draw("main range 0 100 forward\n"
                                         "main call 50 1 #1 cudaLaunchKernel\n"
                                         "gpu0.7 kernel 40 9 #1 early\n"
                                         "gpu0.7 kernel 60 9 alone\n");
    const uint32_t tracks = model->track_count;
    ck_assert_int_eq(lac_projected_ranges_add(model), LAC_OK);
    ck_assert_uint_eq(model->track_count, tracks);
    lac_model_destroy(model);
}
END_TEST

#define HOST(cat, name, ts, dur)                                                                   \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts       \
    ",\"dur\":" dur ",\"args\":{\"correlation\":5}},"
#define GPU(cat, name, ts, dur)                                                                    \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts       \
    ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":5}}"

/** PyTorch's profiler has the innermost range of each launch on a row of its own. */
START_TEST(what_the_recorder_projected_is_not_repeated)
{
    struct imported imported =
        import_text("{\"traceEvents\":[" HOST("user_annotation", "outer", "0", "100")
                        HOST("user_annotation", "inner", "10", "50")
                            HOST("python_function", "nn.Module: Net_0", "20", "30")
                                HOST("cuda_runtime", "cudaLaunchKernel", "25", "2")
                                    GPU("kernel", "k", "40", "7") "," GPU("gpu_user_annotation",
                                                                          "inner", "40", "7") "]}");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    struct lac_model *model = imported.models[0];
    ck_assert_int_eq(lac_projected_ranges_add(model), LAC_OK);
    ck_assert_uint_eq(model->track_count, model->recorded_track_count + 2);
    static const char *const expected[][2] = {{"outer ranges stream 7", "outer"},
                                              {"modules stream 7", "nn.Module: Net_0"}};
    for (uint32_t i = 0; i < 2; i++) {
        const struct lac_track *track = &model->tracks[model->recorded_track_count + i];
        ck_assert_str_eq(lac_model_str(model, track->name), expected[i][0]);
        ck_assert_uint_eq(track->count, 1);
        ck_assert_str_eq(lac_model_str(model, model->slices.name[track->first]), expected[i][1]);
        ck_assert_int_eq(model->slices.dur_ns[track->first], 7000);
    }
    lac_model_destroy(model);
}
END_TEST

/** Streams and nested ranges without end: what is appended is never more than what was there. */
START_TEST(what_is_appended_is_bounded)
{
    enum { DEPTH = 60, STREAMS = 60 };
    char *text = malloc(TEXT_BYTES);
    size_t at = 0;
    ck_assert_ptr_nonnull(text);
    for (unsigned d = 0; d < DEPTH; d++) {
        at += (size_t)snprintf(text + at, TEXT_BYTES - at, "main range %u %u r\n", d, 1000 - 2 * d);
    }
    for (unsigned s = 0; s < STREAMS; s++) {
        at += (size_t)snprintf(text + at, TEXT_BYTES - at,
                               "main call %u 1 #%u cudaLaunchKernel\ngpu0.%u kernel 2000 5 #%u k\n",
                               200 + 2 * s, s + 1, s + 1, s + 1);
    }
    struct lac_model *model = trace_draw(text);
    free(text);
    const uint64_t recorded = model->slices.count;
    ck_assert_int_eq(lac_projected_ranges_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(recorded, DEPTH + 2 * STREAMS);
    ck_assert_uint_eq(model->slices.count, recorded + recorded / DEPTH * DEPTH);
    lac_model_destroy(model);
}
END_TEST

/** Kernels of one module that follow each other in one launch are one slice of it. */
START_TEST(modules_of_graphs_are_rows)
{
    struct lac_model *model = trace_draw("main call 10 2 #1 cudaGraphLaunch\n"
                                         "main call 20 2 #2 cudaGraphLaunch\n"
                                         "gpu0.7 kernel 30 10 #1 a grid=1\n"
                                         "gpu0.7 copy 41 2 #1 DtoD device 1000\n"
                                         "gpu0.7 kernel 45 10 #1 b grid=1\n"
                                         "gpu0.7 kernel 60 10 #1 c grid=2\n"
                                         "gpu0.7 kernel 80 10 #1 d grid=3\n"
                                         "gpu0.7 kernel 95 10 #1 e grid=1\n"
                                         "gpu0.7 kernel 110 10 #2 f grid=1\n"
                                         "gpu0.9 kernel 30 10 #2 g grid=3\n");
    static const int64_t expected[][2] = {{20, 25}, {50, 10}, {85, 10}, {100, 10}};
    ck_assert_int_eq(lac_graph_modules_add(model), LAC_OK);
    ck_assert_uint_eq(model->track_count, model->recorded_track_count); /* none names a module */
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        struct lac_kernel_config *config = &model->kernel_configs[i];
        config->module =
            config->grid[0] == 3
                ? 0
                : model->slices.name[find_slice(model, config->grid[0] == 1 ? "a" : "c")];
    }
    ck_assert_int_eq(lac_graph_modules_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(model->track_count, model->recorded_track_count + 1);
    const struct lac_track *track = &model->tracks[model->recorded_track_count];
    ck_assert_str_eq(lac_model_str(model, track->name), "graph modules gpu0.7");
    ck_assert_int_eq(track->kind, LAC_TRACK_GPU_RANGE);
    ck_assert_uint_eq(track->count, LAC_COUNT_OF(expected));
    for (uint64_t i = 0; i < track->count; i++) {
        const uint64_t slice = track->first + i;
        ck_assert_int_eq(model->slices.start_ns[slice], expected[i][0] * 1000);
        ck_assert_int_eq(model->slices.dur_ns[slice], expected[i][1] * 1000);
        ck_assert_str_eq(lac_model_str(model, model->slices.name[slice]), i == 1 ? "c" : "a");
    }
    lac_model_destroy(model);
}
END_TEST

/** A copy that names a module is work of it as a kernel is. */
START_TEST(copies_have_modules)
{
    struct lac_model *model = trace_draw("main call 10 2 #1 cudaGraphLaunch\n"
                                         "gpu0.7 copy 30 5 #1 DtoD device 1000\n"
                                         "gpu0.7 kernel 40 10 #1 a grid=1\n"
                                         "gpu0.7 copy 51 5 #1 DtoD device 2000\n");
    uint32_t names[2];
    ck_assert_int_eq(lac_strings_intern(&model->strings, "cache", 5, &names[0]), LAC_OK);
    ck_assert_int_eq(lac_strings_intern(&model->strings, "mlp", 3, &names[1]), LAC_OK);
    for (uint32_t i = 0; i < model->copy_count; i++) {
        model->copies[i].module = names[model->copies[i].bytes == 1000 ? 0 : 1];
    }
    ck_assert_int_eq(lac_graph_modules_add(model), LAC_OK); /* the kernel ends the first */
    const struct lac_track *track = &model->tracks[model->recorded_track_count];
    ck_assert_uint_eq(track->count, 2);
    for (uint64_t i = 0; i < 2; i++) {
        ck_assert_int_eq(model->slices.dur_ns[track->first + i], 5000);
        ck_assert_uint_eq(model->slices.name[track->first + i], names[i]);
    }
    lac_model_destroy(model);
}
END_TEST

/* Lines "a;b;c self count" of frames that have time of their own. */
static const char *folded(const struct lac_model *model, const struct lac_flame *flame)
{
    static char text[4096];
    size_t used = 0;
    for (uint32_t i = 1; i < flame->node_count; i++) {
        char path[512] = "";
        for (uint32_t n = i; n != 0; n = flame->nodes[n].parent) {
            char below[512];
            (void)snprintf(below, sizeof(below), "%s%.200s", n == i ? "" : ";", path);
            (void)snprintf(path, sizeof(path), "%.200s%.250s",
                           lac_model_str(model, flame->nodes[n].name), below);
        }
        if (flame->nodes[i].self_ns > 0) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %lld %llu\n", path,
                                     (long long)flame->nodes[i].self_ns,
                                     (unsigned long long)flame->nodes[i].count);
        }
    }
    return text;
}

/* One launch runs all of a graph: what it ran stands under its module, as rows of modules have it.
 * Kernels without one are directly under the launch, and so are all of them by kernel. */
START_TEST(kernels_of_a_graph_stand_under_their_module)
{
    static const char ALL[] =
        "train;c 8000 2\ntrain;attention;a 20000 1\ntrain;attention;b 10000 1\n"
        "train;attention;Memcpy 2000 1\ntrain;mlp;a 7000 1\n";
    static const struct {
        enum lac_flame_by by;
        int64_t t0_ns, t1_ns;
        const char *folded;
    } CASES[] = {
        {LAC_FLAME_BY_OP, 0, 0, ALL},
        {LAC_FLAME_BY_RANGE, 0, 0, ALL},
        {LAC_FLAME_BY_MODULE, 0, 0, ALL},
        {LAC_FLAME_BY_PYTHON, 0, 0, ALL},
        {LAC_FLAME_BY_KERNEL, 0, 0, "a 27000 2\nb 10000 1\nc 8000 2\nMemcpy 2000 1\n"},
        {LAC_FLAME_BY_OP, 54000, 62000,
         "train;c 1000 1\ntrain;attention;b 5000 1\ntrain;mlp;a 3000 1\n"},
    };
    struct lac_model *model = trace_draw("main range 5 20 train\n"
                                         "main call 10 2 #1 cudaGraphLaunch\n"
                                         "gpu0.7 kernel 30 20 #1 a grid=1\n"
                                         "gpu0.7 copy 51 2 #1 DtoD device 1000\n"
                                         "gpu0.7 kernel 54 10 #1 b grid=1\n"
                                         "gpu0.7 kernel 64 7 #1 a grid=2\n"
                                         "gpu0.7 kernel 80 4 #1 c grid=3\n"
                                         "gpu0.9 kernel 56 4 #1 c grid=3\n");
    uint32_t attention = 0;
    uint32_t mlp = 0;
    ck_assert_int_eq(lac_strings_intern(&model->strings, "attention", 9, &attention), LAC_OK);
    ck_assert_int_eq(lac_strings_intern(&model->strings, "mlp", 3, &mlp), LAC_OK);
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        struct lac_kernel_config *const config = &model->kernel_configs[i];
        config->module = config->grid[0] == 1 ? attention : config->grid[0] == 2 ? mlp : 0;
    }
    ck_assert_int_eq(lac_graph_modules_add(model), LAC_OK);
    for (size_t i = 0; i < LAC_COUNT_OF(CASES); i++) {
        const struct lac_flame_options options = {.metric = LAC_FLAME_GPU,
                                                  .by = CASES[i].by,
                                                  .t0_ns = CASES[i].t0_ns,
                                                  .t1_ns = CASES[i].t1_ns};
        struct lac_flame *flame = NULL;
        ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
        ck_assert_str_eq(folded(model, flame), CASES[i].folded);
        lac_flame_destroy(flame);
    }
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("projected_ranges");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, each_range_has_its_work_on_each_stream);
    tcase_add_test(tcase, calls_after_their_work_and_work_without_calls_are_left_out);
    tcase_add_test(tcase, what_the_recorder_projected_is_not_repeated);
    tcase_add_test(tcase, what_is_appended_is_bounded);
    tcase_add_test(tcase, modules_of_graphs_are_rows);
    tcase_add_test(tcase, copies_have_modules);
    tcase_add_test(tcase, kernels_of_a_graph_stand_under_their_module);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
