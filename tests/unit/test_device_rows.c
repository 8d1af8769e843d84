/* GPU work in files of converters: known by the names of its rows, and not guessed. */

#include "analysis/diagnose/diagnose.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/expect_copy.h"
#include "tests/support/import_text.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct lac_model *model_of(const char *text)
{
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.count, 1);
    ck_assert(lac_model_is_valid(imported.models[0]));
    return imported.models[0];
}

static enum lac_slice_kind kind_of(const struct lac_model *model, const char *name)
{
    uint64_t slice = find_slice(model, name);
    ck_assert_msg(slice != UINT64_MAX, "no slice %s", name);
    return (enum lac_slice_kind)model->slices.kind[slice];
}

static const struct lac_track *row_of(const struct lac_model *model, const char *name)
{
    return &model->tracks[lac_model_track_of(model, find_slice(model, name))];
}

/** What is said of a trace without a GPU operation. */
static void says(const char *text, const char *words)
{
    struct lac_model *model = model_of(text);
    struct lac_analysis *analysis = trace_diagnose(model);
    ck_assert_uint_eq(analysis->device_count, 0);
    ck_assert_msg(strstr(analysis->verdict.text, words) != NULL, "%s", analysis->verdict.text);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}

START_TEST(rows_named_device_and_stream_are_gpu_work)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"X\",\"cat\":\"cuda\",\"name\":\"gemm\",\"pid\":\"Device 1\",\"tid\":\"Stream "
        "7\",\"ts\":10,\"dur\":5,\"args\":{\"correlationId\":3}},"
        "{\"ph\":\"X\",\"cat\":\"cuda_api\",\"name\":\"cudaLaunchKernel\",\"pid\":\"Device "
        "1\",\"tid\":\"CUDA API 41\",\"ts\":1,\"dur\":2,\"args\":{\"correlationId\":3}},"
        "{\"ph\":\"X\",\"cat\":\"nvtx\",\"name\":\"forward\",\"pid\":\"Device 1\",\"tid\":\"NVTX "
        "41\",\"ts\":0,\"dur\":9},"
        "{\"ph\":\"X\",\"name\":\"Memcpy HtoD (Pageable -> Device)\",\"pid\":4,\"tid\":\"GPU 0 / "
        "Stream 9\",\"ts\":20,\"dur\":5}]");
    ck_assert_int_eq(kind_of(model, "gemm"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "gemm")->kind, LAC_TRACK_STREAM);
    ck_assert_int_eq(row_of(model, "gemm")->device, 1);
    ck_assert_int_eq(row_of(model, "gemm")->tid, 7);
    ck_assert_int_eq(kind_of(model, "cudaLaunchKernel"), LAC_SLICE_API);
    ck_assert_uint_eq(model->slices.link[find_slice(model, "gemm")],
                      find_slice(model, "cudaLaunchKernel"));
    ck_assert_int_eq(kind_of(model, "forward"), LAC_SLICE_RANGE);
    const char copy[] = "Memcpy HtoD (Pageable -> Device)";
    ck_assert_int_eq(kind_of(model, copy), LAC_SLICE_COPY);
    ck_assert_int_eq(row_of(model, copy)->device, 0);
    ck_assert_int_eq(row_of(model, copy)->tid, 9);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_CHROME);
    lac_model_destroy(model);
}
END_TEST

START_TEST(threads_may_be_named_so_by_metadata)
{
    struct lac_model *model =
        model_of("[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":3,\"args\":{\"name\":"
                 "\"Device 0 / "
                 "Stream 7\"}},"
                 "{\"ph\":\"X\",\"name\":\"relu\",\"pid\":5,\"tid\":3,\"ts\":1,\"dur\":1}]");
    ck_assert_int_eq(kind_of(model, "relu"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "relu")->tid, 7);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_process_of_rocprof_named_gpu2_is_device_2)
{
    struct lac_model *model = model_of(
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"Cijk_A\",\"pid\":8,\"tid\":1,\"ts\":\"10.5\","
        "\"dur\":\"2.25\"},"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":8,\"args\":{\"name\":\"3 GPU2\"}},"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":\"0 CPU HIP API\"}},"
        "{\"ph\":\"X\",\"name\":\"CopyHostToDevice\",\"pid\":8,\"tid\":2,\"ts\":\"1\",\"dur\":"
        "\"2\"},"
        "{\"ph\":\"X\",\"name\":\"hipLaunchKernel\",\"pid\":2,\"tid\":1,\"ts\":\"3\",\"dur\":\"1\"}"
        "]}");
    uint64_t slice = find_slice(model, "Cijk_A");
    ck_assert_int_eq(kind_of(model, "Cijk_A"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "Cijk_A")->device, 2);
    ck_assert_int_eq(model->slices.start_ns[slice] -
                         model->slices.start_ns[find_slice(model, "CopyHostToDevice")],
                     9500);
    ck_assert_int_eq(model->slices.dur_ns[slice], 2250);
    ck_assert_int_eq(kind_of(model, "CopyHostToDevice"), LAC_SLICE_COPY);
    ck_assert_int_eq(row_of(model, "hipLaunchKernel")->kind, LAC_TRACK_THREAD);
    lac_model_destroy(model);
}
END_TEST

#define ROW(PID, TID, NAME)                                                                        \
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" #PID ",\"tid\":" #TID                        \
    ",\"args\":{\"name\":\"" NAME "\"}},"
#define PLANE(PID, NAME)                                                                           \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" #PID ",\"args\":{\"name\":\"" NAME "\"}},"
#define WORK(PID, TID, NAME)                                                                       \
    "{\"ph\":\"X\",\"name\":\"" NAME "\",\"pid\":" #PID ",\"tid\":" #TID ",\"ts\":1,\"dur\":2},"

#define PLANES PLANE(1, "/device:GPU:1") PLANE(2, "/device:TPU:3") PLANE(701, "/host:CPU")
#define ROWS                                                                                       \
    ROW(1, 13, "Stream #13(Compute,MemcpyD2D)")                                                    \
    ROW(1, 14, "Stream #14(MemcpyH2D)")                                                            \
    ROW(1, 20, "XLA Ops")                                                                          \
    ROW(1, 21, "Steps")                                                                            \
    ROW(2, 1, "XLA Ops")                                                                           \
    ROW(2, 2, "XLA Modules")                                                                       \
    ROW(701, 9, "python")
#define ALL_WORK                                                                                   \
    WORK(1, 13, "loop_fusion")                                                                     \
    WORK(1, 14, "MemcpyH2D")                                                                       \
    WORK(1, 20, "fusion.1")                                                                        \
    WORK(1, 21, "7")                                                                               \
    WORK(2, 1, "convolution")                                                                      \
    WORK(2, 2, "jit_step(5)")                                                                      \
    WORK(701, 9, "PjitFunction")
#define DOCUMENT(EVENTS) "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" EVENTS "{}]}"

/* As JAX writes them, and as they are once another tool has sorted the events: what XProf derives
 * stands beside the streams, and is no work of its own. */
static const char *const ORDERS[] = {
    DOCUMENT(PLANES ROWS ALL_WORK), DOCUMENT(ALL_WORK PLANES ROWS), DOCUMENT(ALL_WORK ROWS PLANES),
    DOCUMENT(PLANES ALL_WORK ROWS), DOCUMENT(ROWS ALL_WORK PLANES),
};

START_TEST(planes_of_xprof_are_devices)
{
    struct lac_model *model = model_of(ORDERS[_i]);
    ck_assert_int_eq(kind_of(model, "loop_fusion"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "loop_fusion")->device, 1);
    ck_assert_int_eq(row_of(model, "loop_fusion")->tid, 13);
    ck_assert_int_eq(kind_of(model, "MemcpyH2D"), LAC_SLICE_COPY);
    ck_assert_int_eq(kind_of(model, "fusion.1"), LAC_SLICE_GPU_RANGE);
    ck_assert_int_eq(row_of(model, "fusion.1")->device, 1);
    ck_assert_int_eq(kind_of(model, "7"), LAC_SLICE_GPU_RANGE);
    ck_assert_int_eq(kind_of(model, "convolution"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "convolution")->device, 3);
    ck_assert_int_eq(kind_of(model, "jit_step(5)"), LAC_SLICE_GPU_RANGE);
    ck_assert_int_eq(row_of(model, "jit_step(5)")->device, 3);
    ck_assert_int_eq(row_of(model, "PjitFunction")->kind, LAC_TRACK_THREAD);
    struct lac_analysis *analysis = trace_diagnose(model);
    ck_assert_uint_eq(analysis->device_count, 2);
    ck_assert_int_eq(analysis->devices[0].busy_ns, 2000);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

/* StepTraceAnnotation of JAX and TensorFlow names its range as it likes and numbers it; what XProf
 * derives of that for a device stands beside. */
START_TEST(steps_of_xprof_are_the_ranges_that_are_numbered)
{
    static const char *const before[] = {"\"group_id\":\"", "\"step_num\":\"",
                                         "\"group_id\":1,\"step_num\":"};
    static const char *const after[] = {"\"", "\"", ""};
    for (size_t n = 0; n < LAC_COUNT_OF(before); n++) {
        char text[16384];
        size_t used = (size_t)snprintf(text, sizeof(text),
                                       "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" PLANES ROWS);
        for (int step = 0; step < 12; step++) {
            used += (size_t)snprintf(
                text + used, sizeof(text) - used,
                "{\"ph\":\"X\",\"name\":\"train\",\"pid\":701,\"tid\":9,\"ts\":%d,\"dur\":9900,"
                "\"args\":{%s%d%s}},"
                "{\"ph\":\"X\",\"name\":\"gemm\",\"pid\":1,\"tid\":13,\"ts\":%d,\"dur\":6000},",
                step * 10000, before[n], step, after[n], step * 10000 + 3000);
        }
        (void)snprintf(text + used, sizeof(text) - used, "{}]}");
        struct lac_model *model = model_of(text);
        struct lac_analysis *analysis = trace_diagnose(model);
        ck_assert((strcmp(analysis->step_method, "nvtx") == 0) == (n > 0));
        if (n > 0) {
            ck_assert_uint_eq(analysis->step_count, 12);
            ck_assert_int_eq(analysis->step_median_ns, 10000000);
        }
        lac_analysis_destroy(analysis);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(copies_of_xprof_know_direction_memory_and_bytes)
{
    static const char TEXT[] = "{\"traceEvents\":[" PLANE(1, "/device:GPU:0") ROW(
        1, 14, "Stream #14(MemcpyH2D)") "{},{\"ph\":\"X\",\"name\":\"MemcpyH2D\",\"pid\":1,\"tid\":"
                                        "14,\"ts\":1,\"dur\":2,\"args\":{"
                                        "\"memcpy_details\":\"kind_src:pageable kind_dst:device "
                                        "size:9437184 dest:0 async:1\"}},"
                                        "{\"ph\":\"X\",\"name\":\"MemcpyP2P\",\"pid\":1,\"tid\":14,"
                                        "\"ts\":4,\"dur\":2,\"args\":{"
                                        "\"memcpy_details\":\"kind_src:device kind_dst:device "
                                        "size:8 dest:1 async:1\"}},"
                                        "{\"ph\":\"X\",\"name\":\"Memset\",\"pid\":1,\"tid\":14,"
                                        "\"ts\":8,\"dur\":2,\"args\":{"
                                        "\"memset_details\":\"kind:device size:512 async:1\"}}]}";
    static const struct lac_copy expected[] = {
        {9437184, LAC_COPY_HTOD, LAC_MEMORY_PAGEABLE, LAC_MEMORY_DEVICE, 0, 0, 0},
        {8, LAC_COPY_PTOP, LAC_MEMORY_DEVICE, LAC_MEMORY_DEVICE, 0, 0, 0},
        {512, LAC_COPY_UNKNOWN, LAC_MEMORY_UNKNOWN, LAC_MEMORY_DEVICE, 0, 0, 0}};
    struct lac_model *model = model_of(TEXT);
    ck_assert_uint_eq(model->slices.count, 3);
    for (size_t i = 0; i < 3; i++) {
        expect_copy(&model->copies[model->slices.detail[i]], &expected[i]);
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(names_that_only_look_like_it_are_host_rows)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":3,\"args\":{\"name\":\"GPU Process\"}},"
        "{\"ph\":\"X\",\"name\":\"a\",\"pid\":3,\"tid\":1,\"ts\":1,\"dur\":1},"
        "{\"ph\":\"X\",\"name\":\"b\",\"pid\":\"Device 0\",\"tid\":\"worker\",\"ts\":1,\"dur\":1},"
        "{\"ph\":\"X\",\"name\":\"c\",\"pid\":\"video\",\"tid\":\"Stream 3\",\"ts\":1,\"dur\":1},"
        "{\"ph\":\"X\",\"name\":\"d\",\"pid\":1,\"tid\":\"Device 0\",\"ts\":1,\"dur\":1}]");
    for (const char *name = "abcd"; *name != '\0'; name++) {
        char text[2] = {*name, '\0'};
        ck_assert_int_eq(kind_of(model, text), LAC_SLICE_OTHER);
        ck_assert_int_eq(row_of(model, text)->kind, LAC_TRACK_THREAD);
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(what_may_be_gpu_work_is_said_to_be_not_known)
{
    says("[{\"ph\":\"X\",\"cat\":\"cuda\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
         "{\"ph\":\"X\",\"cat\":\"cuda\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1}]",
         "no category that is known as GPU work: cuda (2 events)");
    says("[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":1,"
         "\"dur\":1}]",
         "no GPU operation and no CUDA call in this trace");
    says(
        "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"
        "\"ts\":1,\"dur\":1}]",
        "1 launch, but no GPU operation: what the GPU did was not recorded");
    says("[{\"ph\":\"X\",\"cat\":\"cuda_profiler_range\",\"name\":\"k\",\"pid\":0,\"tid\":0,\"ts\":"
         "1,"
         "\"dur\":1}]",
         "counters of 1 kernel, no times");
}
END_TEST

START_TEST(a_category_named_cuda_with_a_stream_is_a_kernel)
{
    struct lac_model *model = model_of(
        "[{\"ph\":\"X\",\"cat\":\"cuda\",\"name\":\"k\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":"
        "1,\"args\":{\"stream\":7,\"device\":1}}]");
    ck_assert_int_eq(kind_of(model, "k"), LAC_SLICE_KERNEL);
    ck_assert_int_eq(row_of(model, "k")->device, 1);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_rows");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, rows_named_device_and_stream_are_gpu_work);
    tcase_add_test(tcase, threads_may_be_named_so_by_metadata);
    tcase_add_test(tcase, a_process_of_rocprof_named_gpu2_is_device_2);
    tcase_add_loop_test(tcase, planes_of_xprof_are_devices, 0, LAC_COUNT_OF(ORDERS));
    tcase_add_test(tcase, steps_of_xprof_are_the_ranges_that_are_numbered);
    tcase_add_test(tcase, copies_of_xprof_know_direction_memory_and_bytes);
    tcase_add_test(tcase, names_that_only_look_like_it_are_host_rows);
    tcase_add_test(tcase, what_may_be_gpu_work_is_said_to_be_not_known);
    tcase_add_test(tcase, a_category_named_cuda_with_a_stream_is_a_kernel);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
