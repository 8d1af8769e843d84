/* What the text of a Python frame says, and where in the code stacks place a finding. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/python_frame.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parses(const char *text, struct lac_frame *frame)
{
    return lac_frame_parse(text, strlen(text), frame);
}

START_TEST(a_frame_is_a_file_a_line_and_a_function)
{
    struct lac_frame frame;
    ck_assert(
        parses("/home/u/env/lib/python3.7/site-packages/torch/optim/sgd.py(117): step", &frame));
    ck_assert_int_eq(frame.line, 117);
    ck_assert_uint_eq(frame.path_length, strlen("torch/optim/sgd.py"));
    ck_assert(memcmp(frame.path, "torch/optim/sgd.py", frame.path_length) == 0);
    ck_assert_uint_eq(frame.function_length, 4);
    ck_assert(parses("/usr/lib/python3.11/threading.py(1032): _bootstrap", &frame));
    ck_assert_uint_eq(frame.path_length, strlen("threading.py"));
    ck_assert(parses("train.py(8): <module>", &frame));
    static const char *const others[] = {"",
                                         "<built-in function zoom_shift>",
                                         "nn.Module: Linear_0",
                                         "<string>(2): __init__",
                                         "a.py",
                                         "a.py(",
                                         "a.py(12",
                                         "a.py(12):",
                                         "a.py(): f",
                                         "a.py(99999999999999999999): f"};
    for (size_t i = 0; i < LAC_COUNT_OF(others); i++) {
        ck_assert_msg(!parses(others[i], &frame), "%s", others[i]);
    }
}
END_TEST

START_TEST(frames_have_owners)
{
    static const struct {
        const char *text;
        enum lac_frame_owner owner;
    } frames[] = {
        {"torch/nn/modules/module.py(1743): _call_impl", LAC_FRAME_RUNTIME},
        {"contextlib.py(78): inner", LAC_FRAME_RUNTIME},
        {"multiprocessing/queues.py(100): get", LAC_FRAME_RUNTIME},
        {"accelerate/data_loader.py(554): __iter__", LAC_FRAME_FRAMEWORK},
        {"/x/dist-packages/transformers/trainer.py(2100): train", LAC_FRAME_FRAMEWORK},
        {"transformers/models/owlv2/image_processing_owlv2.py(301): resize", LAC_FRAME_USER},
        {"scipy/ndimage/_interpolation.py(730): zoom", LAC_FRAME_USER},
        {"train.py(12): main", LAC_FRAME_USER},
        {"project/contextlib.py(12): main", LAC_FRAME_USER},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(frames); i++) {
        struct lac_frame frame;
        ck_assert(parses(frames[i].text, &frame));
        ck_assert_msg(lac_frame_owner_of(&frame) == frames[i].owner, "%s", frames[i].text);
    }
}
END_TEST

START_TEST(some_functions_only_wait)
{
    static const struct {
        const char *text;
        bool waits;
    } functions[] = {
        {"<built-in method acquire of _thread.lock object at 0x7f>", true},
        {"<built-in method poll of select.poll object at 0x7f>", true},
        {"<built-in function sleep>", true},
        {"<built-in method run_backward of torch._C._EngineBase object at 0x7f>", true},
        {"threading.py(589): wait", true},
        {"<built-in function zoom_shift>", false},
        {"<built-in method polling of a object>", false},
        {"shop.py(3): wait", false}, /* a function of the job of that name works */
    };
    for (size_t i = 0; i < LAC_COUNT_OF(functions); i++) {
        ck_assert_msg(lac_frame_is_waiting(functions[i].text, strlen(functions[i].text)) ==
                          functions[i].waits,
                      "%s", functions[i].text);
    }
}
END_TEST

/** Six steps that load in the training process; `stack` is what the loader's range carries. */
static struct lac_model *loading_job(const char *stack)
{
    static char text[16000];
    size_t used = (size_t)snprintf(text, sizeof(text),
                                   "{\"traceEvents\":[{\"ph\":\"M\",\"name\":"
                                   "\"x\",\"pid\":1,\"tid\":1}");
    for (int step = 0; step < 8; step++) {
        int at = step * 100000;
        used += (size_t)snprintf(
            text + used, sizeof(text) - used,
            ",{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,"
            "\"tid\":1,\"ts\":%d,\"dur\":100000}"
            ",{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"enumerate(DataLoader)#_"
            "SingleProcessDataLoaderIter.__next__\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":50000%s}"
            ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"autograd::engine::evaluate_function\","
            "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":900}"
            ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,"
            "\"tid\":1,\"ts\":%d,\"dur\":10,\"args\":{\"correlation\":%d}}"
            ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"volta_sgemm_128x64_nn\",\"pid\":0,"
            "\"tid\":"
            "7,\"ts\":%d,\"dur\":40000,\"args\":{\"stream\":7,\"device\":0,\"correlation\":%d}}"
            ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":1,"
            "\"tid\":1,\"ts\":%d,\"dur\":46000,\"args\":{}}",
            step, at, at + 100, stack, at + 52000, at + 52100, step + 1, at + 52200, step + 1,
            at + 53000);
        ck_assert_uint_lt(used, sizeof(text));
    }
    (void)snprintf(text + used, sizeof(text) - used, "]}");
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    return imported.models[0];
}

static void check_where(const char *stack, const char *where, bool has_stacks)
{
    struct lac_model *model = loading_job(stack);
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_finding *finding = trace_finding(analysis, "input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->where, where);
    ck_assert_int_eq(model->info.has_python_stacks, has_stacks);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}

START_TEST(a_recorded_stack_places_the_loader)
{
    check_where(",\"args\":{\"Call stack\":\"/e/lib/python3.7/site-packages/torch/utils/data/"
                "dataloader.py(518): __next__;/home/u/jobs/resnet/train.py(42): <module>\"}",
                "resnet/train.py:42", true);
    /* what runs the loop for the job is named where nothing else is known */
    check_where(",\"args\":{\"Call stack\":\"torch/utils/data/dataloader.py(518): __next__;"
                "accelerate/data_loader.py(554): __iter__\"}",
                "accelerate/data_loader.py:554", true);
    check_where(",\"args\":{\"Call stack\":\"torch/utils/data/dataloader.py(518): __next__\"}", "",
                true);
    check_where(",\"args\":{\"Call stack\":\"\"}", "", false);
    check_where("", "", false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("python_frame");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, a_frame_is_a_file_a_line_and_a_function);
    tcase_add_test(tcase, frames_have_owners);
    tcase_add_test(tcase, some_functions_only_wait);
    tcase_add_test(tcase, a_recorded_stack_places_the_loader);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
