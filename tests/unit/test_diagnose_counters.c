/* What the GPU's own counters add to findings, and when they must not: samples that are old,
 * outside of kept steps, of too little of them, or of a GPU that nobody can tell. */

#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 8, STEP_US = 1000000, SAMPLE_US = 100000 };

#define HALF_GEMM "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn"
#define SIMT_GEMM "ampere_sgemm_128x64_nn"

/** Steps of a second; the host waits for each one's kernels, which compute for 960 ms. */
static void draw_steps(const char *kernel, int count)
{
    sheet_blank();
    for (int i = 0; i < STEPS; i++) {
        double begin = (double)i * STEP_US;
        double length = 960000.0 / count;
        sheet_add("main range %.1f %d ProfilerStep#%d\n", begin, STEP_US, i);
        for (int k = 0; k < count; k++) {
            sheet_add("main call %.1f 5 #%u cudaLaunchKernel\n", begin + 5 + 10 * k, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.1f %.1f #%u %s\n", begin + 500 + length * k, length,
                      sheet_corr, kernel);
        }
        sheet_add("main call %.1f 960400 cudaStreamSynchronize\n", begin + 400);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", (i + 1) * STEP_US - 20);
    }
}

/** Samples of one counter from sample `first` on, `count` of them, `apart` samples apart. */
static void draw_counter(int gpu, const char *what, double value, int first, int count, int apart)
{
    for (int i = 0; i < count; i++) {
        sheet_add("host count %d %.2f GPU %d: %s (%%)\n", (first + i * apart) * SAMPLE_US, value,
                  gpu, what);
    }
}

static void draw_all(double sms, double tensor, double memory)
{
    draw_counter(0, "SMs active", sms, 0, 81, 1);
    draw_counter(0, "tensor cores active", tensor, 0, 81, 1);
    draw_counter(0, "memory bandwidth", memory, 0, 81, 1);
}

static const char *why_of(const char *id)
{
    const struct lac_finding *finding;

    sheet_diagnose(NULL, 8);
    finding = sheet_finding(id);
    ck_assert_msg(finding != NULL, "no %s", id);
    return finding->why;
}

static void check_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

static void check_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "'%s' is in: %s", part, text);
}

/* -- the GPU is the limit -----------------------------------------------------------------------*/

START_TEST(a_gpu_that_always_computes_may_be_half_empty)
{
    draw_steps(HALF_GEMM, 4);
    draw_all(38.5, 7.8, 22.5);
    const char *why = why_of("gpu-bound");
    check_has(why, "GPU counters, averaged over these steps: 38 % of the SMs have work, tensor "
                   "cores are active 8 % of the time, memory is at 22 % of its bandwidth.");
    check_has(why, "It is always busy, but its kernels do not fill it.");
}
END_TEST

START_TEST(a_full_gpu_is_not_called_empty)
{
    draw_steps(HALF_GEMM, 4);
    draw_all(91, 70, 60);
    const char *why = why_of("gpu-bound");
    check_has(why, "91 % of the SMs have work");
    check_lacks(why, "do not fill");
}
END_TEST

START_TEST(without_samples_nothing_is_said)
{
    draw_steps(HALF_GEMM, 4);
    check_lacks(why_of("gpu-bound"), "counters");
}
END_TEST

START_TEST(a_counter_that_the_gpu_refused_is_left_out)
{
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 80, 0, 81, 1);
    const char *why = why_of("gpu-bound");
    check_has(why, "steps: 80 % of the SMs have work.");
    check_lacks(why, "tensor cores work");
    check_lacks(why, "bandwidth");
}
END_TEST

START_TEST(samples_of_the_first_second_do_not_tell_of_all)
{
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 38.5, 0, 15, 1); /* then they were turned off */
    check_lacks(why_of("gpu-bound"), "counters");
    /* nor does the last of them hold for the rest */
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 38.5, 0, 15, 1);
    draw_counter(0, "SMs active", 38.5, 79, 2, 1);
    check_lacks(why_of("gpu-bound"), "counters");
}
END_TEST

START_TEST(samples_outside_of_kept_steps_are_not_counted)
{
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 90, 0, 80, 1);
    draw_counter(0, "SMs active", 0, 80, 60, 1); /* the job goes on without steps */
    check_has(why_of("gpu-bound"), "90 % of the SMs have work");
}
END_TEST

START_TEST(one_mean_a_second_is_enough)
{
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 64, 0, 9, 10);
    check_has(why_of("gpu-bound"), "64 % of the SMs have work");
}
END_TEST

START_TEST(samples_of_gpus_that_nobody_can_tell_apart_are_not_used)
{
    draw_steps(HALF_GEMM, 4);
    draw_counter(0, "SMs active", 5, 0, 81, 1);
    draw_counter(1, "SMs active", 95, 0, 81, 1); /* the job uses one of the two */
    check_lacks(why_of("gpu-bound"), "counters");
}
END_TEST

/* -- small grids --------------------------------------------------------------------------------*/

START_TEST(small_grids_are_confirmed_by_the_counters)
{
    draw_steps(HALF_GEMM " grid=16", 4); /* of 80 multiprocessors */
    draw_all(19, 10, 10);
    check_has(why_of("small-grid"), "19 % of the SMs have work");
}
END_TEST

START_TEST(small_grids_beside_others_leave_nothing_unused)
{
    draw_steps(HALF_GEMM " grid=16", 4);
    draw_all(88, 10, 10); /* other work on the same GPU fills it */
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("small-grid"));
}
END_TEST

/* -- tensor cores -------------------------------------------------------------------------------*/

START_TEST(unused_tensor_cores_are_confirmed_by_the_counters)
{
    draw_steps(SIMT_GEMM, 4);
    draw_all(90, 0, 30);
    const char *why = why_of("tensor-cores-unused");
    check_has(why, "tensor cores are active 0 % of the time");
    check_lacks(why, "although no kernel name");
    ck_assert_double_eq_tol(sheet_finding("tensor-cores-unused")->confidence, 0.6, 1e-9);
}
END_TEST

START_TEST(tensor_cores_that_work_without_a_name_make_it_less_sure)
{
    draw_steps(SIMT_GEMM, 4);
    draw_all(90, 35, 30);
    check_has(why_of("tensor-cores-unused"), "The counters show tensor-core activity");
    ck_assert_double_eq_tol(sheet_finding("tensor-cores-unused")->confidence, 0.3, 1e-9);
}
END_TEST

/* A job that may use one of the node's three GPUs; "own" is what CUDA called that one. */
static const char *why_of_device(const char *own)
{
    static char metadata[256];

    (void)snprintf(metadata, sizeof(metadata),
                   "{\"lacuna\":{\"settings\":{\"gpu_uuid.0\":\"%s\"},\"host\":{\"gpu_uuid.0\":"
                   "\"GPU-a\",\"gpu_uuid.1\":\"GPU-b\",\"gpu_uuid.2\":\"GPU-c\"}}}",
                   own);
    draw_steps(HALF_GEMM, 4);
    draw_counter(2, "SMs active", 11, 0, 81, 1);
    draw_counter(1, "SMs active", 33, 0, 81, 1);
    draw_counter(0, "SMs active", 77, 0, 81, 1);
    sheet_diagnose(metadata, 8);
    ck_assert_ptr_nonnull(sheet_finding("gpu-bound"));
    return sheet_finding("gpu-bound")->why;
}

START_TEST(counters_of_the_same_uuid_are_the_device_s_among_any_number)
{
    check_has(why_of_device("GPU-a"), "77 % of the SMs have work");
    check_lacks(why_of_device("MIG-a1"), "counters"); /* a part of it */
    check_lacks(why_of_device("GPU-d"), "counters");  /* of another container */
}
END_TEST

/** A log alone says how the counters stood, each sample until the next, and gives no verdict. */
START_TEST(logs_say_what_their_counters_show)
{
    static const struct {
        const char *text, *verdict, *detail;
    } logs[] = {
        {"timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], "
         "temperature.gpu, clocks_event_reasons.active\n"
         "2025/09/08 17:26:50.000, 0, 90 %, 1000 MiB, 300.0 W, 60, 0x0000000000000001\n"
         "2025/09/08 17:26:50.000, 1, 0 %, 2 MiB, 50.0 W, 40, 0x0000000000000001\n"
         "2025/09/08 17:26:53.000, 0, 50 %, 2000 MiB, 200.0 W, 71, 0x0000000000000004\n"
         "2025/09/08 17:26:54.000, 0, 50 %, 2000 MiB, 200.0 W, 71, 0x0000000000000000\n"
         "2025/09/08 17:26:54.000, 1, 0 %, 2 MiB, 50.0 W, 40, 0x0000000000000001\n",
         "a log of the counters of 2 GPUs over 4 s, not of what they ran",
         "GPU utilization 40 % on average (0 % to 90 %); power 162 W on average (50 W to 300 W); "
         "temperature at most 71 C; memory at most 2.1 GB; power or heat held the clocks down for "
         "12 % of the time. Utilization says that some kernel ran, not how much of a GPU it "
         "used. --join shows it with the trace of the same job."},
        {"2026/04/25 16:06:06.780, 0 %, 11.64 W\n2026/04/25 16:06:11.788, 0 %, 11.36 W\n",
         "a log of the counters of 1 GPU over 5.01 s, not of what it ran",
         "Columns without a heading have no names: let nvidia-smi write it (--format=csv). "
         "--join shows it with the trace of the same job."},
    };
    struct imported imported = import_text(logs[_i].text);

    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    struct lac_analysis *const found = trace_diagnose(imported.models[0]);
    ck_assert_str_eq(found->verdict.text, logs[_i].verdict);
    ck_assert_str_eq(found->verdict.detail, logs[_i].detail);
    ck_assert_str_eq(found->verdict.cause, "unknown");
    lac_analysis_destroy(found);
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("diagnose: counters of the GPU");
    TCase *const tests = tcase_create("counters");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, a_gpu_that_always_computes_may_be_half_empty);
    tcase_add_test(tests, a_full_gpu_is_not_called_empty);
    tcase_add_test(tests, without_samples_nothing_is_said);
    tcase_add_test(tests, a_counter_that_the_gpu_refused_is_left_out);
    tcase_add_test(tests, samples_of_the_first_second_do_not_tell_of_all);
    tcase_add_test(tests, samples_outside_of_kept_steps_are_not_counted);
    tcase_add_test(tests, one_mean_a_second_is_enough);
    tcase_add_test(tests, samples_of_gpus_that_nobody_can_tell_apart_are_not_used);
    tcase_add_test(tests, counters_of_the_same_uuid_are_the_device_s_among_any_number);
    tcase_add_test(tests, small_grids_are_confirmed_by_the_counters);
    tcase_add_test(tests, small_grids_beside_others_leave_nothing_unused);
    tcase_add_test(tests, unused_tensor_cores_are_confirmed_by_the_counters);
    tcase_add_test(tests, tensor_cores_that_work_without_a_name_make_it_less_sure);
    tcase_add_loop_test(tests, logs_say_what_their_counters_show, 0, 2);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
