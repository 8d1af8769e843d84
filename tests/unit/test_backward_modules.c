/* The modules whose backward pass a thread runs: laid by the arrows of PyTorch's profiler. */

#include "analysis/diagnose/facts/recorded/backward_modules.h"
#include "analysis/diagnose/facts/recorded/projected_ranges.h"
#include "analysis/flame/flame.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char text[1 << 16];
static size_t length;
static unsigned arrows, launches;
static struct imported imported;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    length += (size_t)vsnprintf(text + length, sizeof(text) - length, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(length, sizeof(text));
}

static void slice(const char *category, const char *name, int tid, int ts, int dur)
{
    put("{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d},",
        category, name, tid, ts, dur);
}

/** A call and the kernel that it launches. */
static void launch(int tid, int ts, int begins, int dur, const char *kernel)
{
    launches++;
    put("{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":%d,"
        "\"ts\":%d,\"dur\":1,\"args\":{\"correlation\":%u}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":%d,"
        "\"args\":{\"device\":0,\"stream\":7,\"correlation\":%u}},",
        tid, ts, launches, kernel, begins, dur, launches);
}

static void arrow(int from_tid, int from_ts, int to_tid, int to_ts)
{
    arrows++;
    put("{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":%u,\"pid\":1,\"tid\":%d,"
        "\"ts\":%d},{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":%u,"
        "\"pid\":1,\"tid\":%d,\"ts\":%d},",
        arrows, from_tid, from_ts, arrows, to_tid, to_ts);
}

/** Thread 1 runs Net > (Conv, Linear) forward, 100 operators each; thread 2 the backward pass. */
static void draw_net(bool with_collective)
{
    slice("python_function", "nn.Module: Net_0", 1, 0, 100);
    slice("python_function", "nn.Module: Conv2d_0", 1, 10, 20);
    slice("cpu_op", "aten::conv2d", 1, 12, 10);
    launch(1, 14, 30, 5, "forward_conv");
    slice("python_function", "nn.Module: Linear_0", 1, 40, 30);
    slice("user_annotation", "projection", 1, 42, 20);
    slice("cpu_op", "aten::linear", 1, 44, 10);
    launch(1, 46, 60, 5, "forward_linear");
    /* the loss lies in no module */
    slice("cpu_op", "aten::mse_loss", 1, 110, 5);
    slice("cpu_op", "MseLossBackward0", 2, 190, 5);
    arrow(1, 110, 2, 190);

    slice("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 200, 30);
    slice("cpu_op", "AddmmBackward0", 2, 202, 20);
    launch(2, 205, 210, 10, "backward_linear_1");
    launch(2, 208, 220, 10, "backward_linear_2");
    arrow(1, 44, 2, 200);
    arrow(1, 44, 2, 202);
    slice("cpu_op", "autograd::engine::evaluate_function: AccumulateGrad", 2, 235, 10);
    launch(2, 236, 240, 4, "accumulate");
    if (with_collective) {
        slice("user_annotation", "nccl:all_reduce", 2, 240, 4);
        launch(2, 241, 300, 50, "all_reduce");
    }
    slice("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", 2, 250, 30);
    launch(2, 255, 260, 20, "backward_conv");
    arrow(1, 12, 2, 250);
}

static struct lac_model *made(void)
{
    ck_assert_uint_gt(length, 0);
    length--; /* the last comma */
    put("]}");
    imported = import_text(text);
    ck_assert_int_eq(imported.status, LAC_OK);
    struct lac_model *model = imported.models[0];
    ck_assert_int_eq(lac_backward_modules_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    return model;
}

static void setup(void)
{
    length = 0;
    arrows = launches = 0;
    put("{\"traceEvents\":[");
}

static void teardown(void)
{
    imported_done(&imported);
}

/** "name from-to>" of each slice, in order of start; the times in us. */
static const char *row_of(const struct lac_model *model, const char *id)
{
    static char said[4096];
    size_t at = 0;
    const uint32_t thread = find_track(model, LAC_TRACK_THREAD, id);
    const uint32_t row = lac_model_backward_of(model, thread);

    said[0] = '\0';
    if (row == LAC_NONE) {
        return "none";
    }
    ck_assert_uint_eq(model->tracks[row].process, model->tracks[thread].process);
    for (uint64_t s = model->tracks[row].first;
         s < model->tracks[row].first + model->tracks[row].count; s++) {
        const char *name = lac_model_str(model, model->slices.name[s]);

        ck_assert_int_eq(model->slices.kind[s], LAC_SLICE_GPU_RANGE);
        name = strncmp(name, "nn.Module: ", 11) == 0 ? name + 11 : name;
        at += (size_t)snprintf(
            said + at, sizeof(said) - at, "%*s%s %lld-%lld\n", model->slices.lane[s], "", name,
            (long long)(model->slices.start_ns[s] / 1000),
            (long long)((model->slices.start_ns[s] + model->slices.dur_ns[s]) / 1000));
    }
    return said;
}

/** Time of the frame at that path of names, or -1. */
static int64_t frame_ns(const struct lac_model *model, const struct lac_flame *flame,
                        const char *const *path)
{
    uint32_t at = 0;

    for (; *path != NULL; path++) {
        const struct lac_flame_node *node = &flame->nodes[at];
        uint32_t child = node->first_child;

        while (child < node->first_child + node->child_count &&
               strcmp(lac_model_str(model, flame->nodes[child].name), *path) != 0) {
            child++;
        }
        if (child == node->first_child + node->child_count) {
            return -1;
        }
        at = child;
    }
    return flame->nodes[at].value_ns / 1000;
}

START_TEST(functions_lie_in_the_modules_of_their_operators)
{
    draw_net(false);
    const struct lac_model *model = made();

    ck_assert_str_eq(row_of(model, "2"), "Net_0 200-280\n"
                                         " Linear_0 200-230\n"
                                         "  projection 200-230\n"
                                         "   backward 200-230\n"
                                         " Conv2d_0 250-280\n"
                                         "  backward 250-280\n");
    ck_assert_str_eq(row_of(model, "1"), "none");
    /* a module leads to its forward pass, "backward" to the operator */
    const uint64_t first =
        model->tracks[lac_model_backward_of(model, find_track(model, LAC_TRACK_THREAD, "2"))].first;
    ck_assert_uint_eq(model->slices.link[first], find_slice(model, "nn.Module: Net_0"));
    ck_assert_uint_eq(model->slices.link[first + 3], find_slice(model, "aten::linear"));
}
END_TEST

START_TEST(a_collective_is_of_no_module)
{
    draw_net(true);
    ck_assert_str_eq(row_of(made(), "2"), "Net_0 200-230\n"
                                          " Linear_0 200-230\n"
                                          "  projection 200-230\n"
                                          "   backward 200-230\n"
                                          "Net_0 250-280\n"
                                          " Conv2d_0 250-280\n"
                                          "  backward 250-280\n");
}
END_TEST

/** What is recomputed has modules of its own: those of the function are around them. */
START_TEST(recomputed_modules_lie_in_the_function)
{
    slice("python_function", "nn.Module: Net_0", 1, 0, 100);
    slice("python_function", "nn.Module: Block_0", 1, 10, 50);
    slice("cpu_op", "CheckpointFunction", 1, 12, 40);
    slice("python_function", "nn.Module: Linear_0", 1, 20, 20);
    slice("cpu_op", "aten::linear", 1, 22, 10);
    slice("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 2, 200, 90);
    slice("python_function", "nn.Module: Linear_0", 2, 210, 20);
    slice("cpu_op", "aten::linear", 2, 212, 10);
    slice("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 240, 20);
    arrow(1, 22, 2, 200); /* as the profiler draws it: from the last operator of that number */
    arrow(2, 212, 2, 240);
    ck_assert_str_eq(row_of(made(), "2"), "Net_0 200-290\n"
                                          " Block_0 200-290\n"
                                          "  backward 200-290\n"
                                          "   Linear_0 240-260\n"
                                          "    backward 240-260\n");
}
END_TEST

/** Without a function of its own: the last layer's runs the block again. */
START_TEST(a_recomputed_block_is_not_of_the_layer_that_needs_it)
{
    slice("python_function", "nn.Module: Net_0", 1, 0, 100);
    slice("python_function", "nn.Module: Block_0", 1, 10, 50);
    slice("python_function", "nn.Module: Linear_0", 1, 20, 10);
    slice("cpu_op", "aten::linear", 1, 22, 4);
    slice("python_function", "nn.Module: ReLU_0", 1, 40, 10);
    slice("cpu_op", "aten::relu", 1, 42, 4);
    slice("cpu_op", "autograd::engine::evaluate_function: ReluBackward0", 2, 200, 100);
    slice("python_function", "nn.Module: Block_0", 2, 210, 60);
    slice("python_function", "nn.Module: Linear_0", 2, 215, 20);
    slice("python_function", "nn.Module: ReLU_0", 2, 240, 20);
    launch(2, 220, 221, 5, "again");
    launch(2, 280, 281, 7, "relu_backward");
    slice("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 310, 20);
    arrow(1, 42, 2, 200);
    arrow(1, 22, 2, 310);
    const struct lac_model *model = made();
    ck_assert_str_eq(row_of(model, "2"), "Net_0 200-330\n"
                                         " Block_0 200-210\n"
                                         "  ReLU_0 200-210\n"
                                         "   backward 200-210\n"
                                         " recomputed 210-270\n"
                                         " Block_0 270-330\n"
                                         "  ReLU_0 270-300\n"
                                         "   backward 270-300\n"
                                         "  Linear_0 310-330\n"
                                         "   backward 310-330\n");
    static const char NET[] = "nn.Module: Net_0";
    static const char BLOCK[] = "nn.Module: Block_0";
    static const char LINEAR[] = "nn.Module: Linear_0";
    const struct lac_flame_options options = {.metric = LAC_FLAME_GPU, .by = LAC_FLAME_BY_MODULE};
    struct lac_flame *flame = NULL;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(
        frame_ns(model, flame, (const char *[]){NET, "recomputed", BLOCK, LINEAR, "again", NULL}),
        5);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){NET, BLOCK, NULL}), 7);
    lac_flame_destroy(flame);
}
END_TEST

/** A gradient taken inside forward(): its module is open already. */
START_TEST(modules_that_are_open_are_not_repeated)
{
    slice("python_function", "nn.Module: Net_0", 1, 0, 100);
    slice("python_function", "nn.Module: Linear_0", 1, 10, 20);
    slice("cpu_op", "aten::linear", 1, 12, 10);
    slice("cpu_op", "AddmmBackward0", 1, 50, 20);
    arrow(1, 12, 1, 50);
    ck_assert_str_eq(row_of(made(), "1"), "Linear_0 50-70\n"
                                          " backward 50-70\n");
}
END_TEST

/** Steps of one module are passes of their own. */
START_TEST(each_pass_is_a_slice)
{
    for (int step = 0; step < 2; step++) {
        const int t = step * 1000;
        slice("python_function", "nn.Module: Net_0", 1, t, 100);
        slice("cpu_op", "aten::linear", 1, t + 12, 10);
        slice("cpu_op", "AddmmBackward0", 2, t + 200, 20);
        arrow(1, t + 12, 2, t + 200);
    }
    ck_assert_str_eq(row_of(made(), "2"), "Net_0 200-220\n"
                                          " backward 200-220\n"
                                          "Net_0 1200-1220\n"
                                          " backward 1200-1220\n");
}
END_TEST

START_TEST(without_arrows_or_modules_there_is_no_row)
{
    slice("python_function", "nn.Module: Net_0", 1, 0, 100);
    slice("cpu_op", "aten::linear", 1, 12, 10);
    slice("cpu_op", "AddmmBackward0", 2, 200, 20);
    struct lac_model *model = made();
    ck_assert_uint_eq(model->track_count, model->recorded_track_count);
    imported_done(&imported);
    setup();
    slice("cpu_op", "aten::linear", 1, 12, 10);
    slice("cpu_op", "AddmmBackward0", 2, 200, 20);
    arrow(1, 12, 2, 200);
    model = made();
    ck_assert_uint_eq(model->track_count, model->recorded_track_count);
}
END_TEST

START_TEST(a_flame_graph_has_both_passes_under_the_module)
{
    static const char NET[] = "nn.Module: Net_0";
    static const char CONV[] = "nn.Module: Conv2d_0";
    static const char LINEAR[] = "nn.Module: Linear_0";
    struct lac_flame *flame = NULL;
    draw_net(true);
    const struct lac_model *model = made();
    struct lac_flame_options options = {.metric = LAC_FLAME_GPU, .by = LAC_FLAME_BY_MODULE};

    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){NET, NULL}), 50);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){NET, CONV, NULL}), 25);
    ck_assert_int_eq(
        frame_ns(model, flame, (const char *[]){NET, CONV, "backward", "backward_conv", NULL}), 20);
    ck_assert_int_eq(
        frame_ns(model, flame, (const char *[]){NET, LINEAR, "projection", "backward", NULL}), 20);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){"nccl:all_reduce", NULL}), 50);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){"accumulate", NULL}), 4);
    lac_flame_destroy(flame);

    options.by = LAC_FLAME_BY_OP; /* where they are no frames */
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){"backward", NULL}), -1);
    ck_assert_int_eq(frame_ns(model, flame, (const char *[]){NET, NULL}), -1);
    lac_flame_destroy(flame);
}
END_TEST

/** On the stream, too: a row of modules shows both passes. */
START_TEST(a_stream_shows_the_modules_of_both_passes)
{
    draw_net(false);
    struct lac_model *model = made();
    unsigned count = 0;

    ck_assert_int_eq(lac_projected_ranges_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    for (uint32_t t = model->recorded_track_count; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const bool is_modules =
            strncmp(lac_model_str(model, track->name), "modules ", strlen("modules ")) == 0;

        for (uint64_t s = track->first; is_modules && s < track->first + track->count; s++) {
            if (strcmp(lac_model_str(model, model->slices.name[s]), "nn.Module: Conv2d_0") == 0) {
                const int64_t start_us = model->slices.start_ns[s] / 1000;

                ck_assert_int_eq(start_us, count == 0 ? 30 : 260);
                ck_assert_int_eq(model->slices.dur_ns[s] / 1000, count == 0 ? 5 : 20);
                count++;
            }
        }
    }
    ck_assert_uint_eq(count, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backward modules");
    TCase *tests = tcase_create("rows");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, functions_lie_in_the_modules_of_their_operators);
    tcase_add_test(tests, a_collective_is_of_no_module);
    tcase_add_test(tests, recomputed_modules_lie_in_the_function);
    tcase_add_test(tests, a_recomputed_block_is_not_of_the_layer_that_needs_it);
    tcase_add_test(tests, modules_that_are_open_are_not_repeated);
    tcase_add_test(tests, each_pass_is_a_slice);
    tcase_add_test(tests, without_arrows_or_modules_there_is_no_row);
    tcase_add_test(tests, a_flame_graph_has_both_passes_under_the_module);
    tcase_add_test(tests, a_stream_shows_the_modules_of_both_passes);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
