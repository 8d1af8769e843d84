/* Whose steps they are: the host's marks or the device's distances; what each then counts. */

#include "analysis/diagnose/diagnose.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { KERNELS = 20 };

/** A training step as the host issues it at `host_us`: its kernels take the device from `device_us` on,
 *  evenly over `length_us`. */
static void issue(double host_us, double device_us, double length_us)
{
    sheet_add("main op %.3f 3 Optimizer.step#SGD.step\n", host_us + 2.2 * KERNELS);
    for (int k = 0; k < KERNELS; k++) {
        sheet_corr++;
        sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", host_us + 2.0 * k, sheet_corr);
        sheet_add("gpu0.7 kernel %.3f %.3f #%u dgrad_kernel\n", device_us + k * length_us / KERNELS,
                  length_us / KERNELS - 1.0, sheet_corr);
    }
}

static void mark(double from_us, double to_us, int number)
{
    sheet_add("main range %.3f %.3f ProfilerStep#%d\n", from_us, to_us - from_us, number);
}

static uint32_t count_left_out(enum lac_step_left_out why)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        count += analysis->steps[s].left_out == why;
    }
    return count;
}

/** Ten steps of 400 kernels. A launch takes the host `launch_us`, and 5 us pass between two; where 512 are
 *  ahead of the device, it waits until that has taken one. */
static void draw_queue(double launch_us, double kernel_us)
{
    enum { LAUNCHES = 400, STEPS = 10, ROOM = 512 };
    static double begun_us[LAUNCHES * STEPS];
    double host_us = 0.0;
    double free_us = 0.0;
    double mark_us = 0.0;
    sheet_blank();
    for (uint32_t i = 0; i < LAUNCHES * STEPS; i++) {
        double end_us = host_us + launch_us;
        if (i >= ROOM) {
            end_us = fmax(end_us, begun_us[i - ROOM]);
        }
        begun_us[i] = fmax(end_us, free_us);
        free_us = begun_us[i] + kernel_us;
        sheet_corr++;
        sheet_add("main call %.3f %.3f #%u cudaLaunchKernel\n", host_us, end_us - host_us,
                  sheet_corr);
        sheet_add("gpu0.7 kernel %.3f %.3f #%u dgrad_kernel\n", begun_us[i], kernel_us, sheet_corr);
        host_us = end_us + 5.0;
        if ((i + 1) % LAUNCHES == 0) {
            mark(mark_us, host_us, (int)(i / LAUNCHES));
            mark_us = host_us;
        }
    }
}

START_TEST(a_launch_that_a_full_queue_holds_up_is_no_work_of_the_host)
{
    draw_queue(5.0, 50.0); /* each for less than 100 us: 10 us a kernel are the host's, not 50 */
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->step_mean_ns, 20000000);
    ck_assert(analysis->needs.host_ns > 3800000 && analysis->needs.host_ns < 4200000);
    draw_queue(45.0, 30.0); /* launches that are as slow themselves */
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->step_mean_ns, 20000000);
    ck_assert(analysis->needs.host_ns > 19000000);
}
END_TEST

/** Ten steps of 1 ms on the device, two of them before a validation; the first mark waits for work from
 *  before the recording. */
static void draw_with_validation(void)
{
    double host_us = 0.0;
    double device_us = 1500.0;
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        double next_us = device_us + 300.0;
        bool validates = i == 4 || i == 9;
        issue(host_us + 5.0, device_us, 1000.0);
        mark(host_us, next_us, i);
        host_us = next_us;
        device_us += 1000.0;
        if (validates) {
            sheet_add("main range %.3f 3000 validation\n", host_us);
            host_us += 3000.0;
            device_us = host_us + 5.0;
        }
    }
    sheet_diagnose(NULL, 0);
}

START_TEST(a_step_before_a_validation_is_a_training_step_without_a_length)
{
    draw_with_validation();
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_uint_eq(count_left_out(LAC_STEP_TRUNCATED), 0);
    ck_assert_int_eq(analysis->steps[4].left_out, LAC_STEP_UNTIMED);
    ck_assert_int_eq(analysis->steps[9].left_out, LAC_STEP_UNTIMED);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        ck_assert_int_eq(analysis->steps[s].kind, LAC_KIND_TRAIN);
        ck_assert_int_gt(analysis->steps[s].dur_ns, 0);
    }
}
END_TEST

START_TEST(phases_are_what_the_host_was_at)
{
    draw_with_validation();
    ck_assert(analysis->is_paced_by_device);
    const struct lac_step *last = &analysis->steps[analysis->step_count - 1];
    const struct lac_phase *end = &analysis->phases[analysis->phase_count - 1];
    uint32_t validations = 0;
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        validations += analysis->phases[p].kind == LAC_PHASE_VALIDATION;
    }
    ck_assert_uint_eq(validations, 2);
    ck_assert_int_eq(end->kind, LAC_PHASE_END);
    ck_assert_int_eq(end->start_ns, last->host_start_ns + last->host_dur_ns);
    ck_assert_uint_eq(end->step_count, 0);
}
END_TEST

START_TEST(what_the_host_does_is_counted_between_its_marks)
{
    static const double marks_us[] = {0.0, 1800.0, 2800.0, 3800.0, 4800.0, 5800.0, 7700.0};
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        sheet_add("main wait %.3f 2\n", marks_us[i] + 1.0);
        issue(marks_us[i] + 5.0, 1000.0 + i * 1000.0, 1000.0);
        mark(marks_us[i], marks_us[i + 1], i);
    }
    for (int i = 0; i < 12; i++) {
        sheet_add("w0 part %d 20 loader.tokens batch=%d worker=0 bytes=1000\n", i * 100, i);
        sheet_add("w0 part %d 20 loader.padding batch=%d worker=0 bytes=400\n", i * 100, i);
    }
    /* in the last step, which is left out, while the device is in the last kept one */
    sheet_add("main wait 5900 2\n");
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    ck_assert_str_eq(analysis->throughput_unit, "tokens");
    ck_assert_double_eq_tol(analysis->throughput_per_s, 600.0 * 1e3, 1.0);
}
END_TEST

START_TEST(a_step_without_kernels_in_the_middle_does_not_end_the_pace)
{
    static const double marks_us[] = {0.0,    850.0,  1900.0, 3300.0, 4000.0,
                                      4900.0, 6300.0, 7000.0, 8100.0};
    sheet_blank();
    for (int i = 0; i < 8; i++) {
        mark(marks_us[i], marks_us[i + 1], i);
        if (i != 4) {
            issue(marks_us[i] + 5.0, 500.0 + i * 1000.0, 1000.0);
        }
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    ck_assert_int_eq(analysis->steps[3].left_out, LAC_STEP_UNTIMED);
}
END_TEST

START_TEST(marks_of_a_host_that_is_through_before_the_device_begins_are_no_pace)
{
    sheet_blank();
    for (int i = 0; i < 4; i++) {
        sheet_add("main wait %.3f 8\n", i * 100.0 + 1.0);
        issue(i * 100.0 + 10.0, 500.0 + i * 9000.0, 9000.0);
        mark(i * 100.0, i * 100.0 + 100.0, i);
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 9000000);
    ck_assert_uint_eq(analysis->step_kept_count, 3);
}
END_TEST

START_TEST(one_step_takes_as_long_as_what_it_launched)
{
    sheet_blank();
    issue(5.0, 50.0, 9000.0);
    mark(0.0, 100.0, 0);
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 1);
    ck_assert_int_ge(analysis->step_mean_ns, 8990000);
    ck_assert(isnan(analysis->step_uncertain_pct));
    sheet_blank(); /* two updates of a host that is far ahead, and no mark of a step */
    issue(5.0, 60.0, 9000.0);
    issue(105.0, 9060.0, 9000.0);
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer");
    ck_assert_uint_eq(analysis->step_count, 1);
    ck_assert_int_ge(analysis->step_mean_ns, 8990000);
    sheet_blank(); /* a step that waits for its work is its mark */
    issue(5.0, 50.0, 9000.0);
    mark(0.0, 9500.0, 0);
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->step_mean_ns, 9500000);
    sheet_blank(); /* a mark that ends a little before its work does not cut that off */
    issue(5.0, 50.0, 9000.0);
    mark(0.0, 8900.0, 0);
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->step_mean_ns, 9049000);
}
END_TEST

START_TEST(the_device_shows_more_steps_than_a_host_that_first_runs_ahead)
{
    static const double marks_us[] = {0.0, 200.0, 600.0, 2000.0, 3000.0, 4000.0};
    sheet_blank();
    for (int i = 0; i < 5; i++) {
        issue(marks_us[i] + 5.0, 50.0 + i * 1000.0, 1000.0);
        mark(marks_us[i], marks_us[i + 1], i);
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_uint_eq(analysis->step_kept_count, 4);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
}
END_TEST

START_TEST(a_first_step_that_the_recording_cut_short_is_not_in_the_mean)
{
    /* the recording began in the middle of the first wait */
    double t = 0.0;
    sheet_blank();
    for (int i = 0; i < 9; i++) {
        double wait_us = i == 0 ? 700.0 : 2000.0 + (i % 3) * 30.0;
        sheet_add("main wait %.3f %.3f\n", t, wait_us);
        issue(t + wait_us + 5.0, t + wait_us + 10.0, 900.0);
        mark(t, t + wait_us + 920.0, i);
        t += wait_us + 920.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_ge(analysis->step_mean_ns, 2920000);
    ck_assert_double_lt(analysis->step_uncertain_pct, 2.0);
}
END_TEST

START_TEST(a_head_before_the_first_operation_is_in_no_step_or_in_none)
{
    /* each step prepares its batch by itself, the first one before the device has begun */
    double t = 0.0;
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        sheet_add("main wait %.3f 400\n", t);
        issue(t + 405.0, t + 410.0, 550.0 + (i % 2) * 20.0);
        mark(t, t + 1000.0 + (i % 2) * 20.0, i);
        t += 1000.0 + (i % 2) * 20.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    double waiting_ns = 0.0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        waiting_ns += analysis->steps[s].left_out == LAC_STEP_KEPT
                          ? (double)analysis->steps[s].starved_ns
                          : 0.0;
    }
    ck_assert_double_ge(waiting_ns / 5.0, 395000.0);
}
END_TEST

START_TEST(the_update_of_a_step_is_the_one_that_it_launched)
{
    /* the device is a step behind the host: what runs during a step is another's */
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        double host_us = i * 1000.0;
        mark(host_us, host_us + 1000.0, i);
        for (int k = 0; k < 20; k++) {
            sheet_corr++;
            sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", host_us + 10.0 + 2.0 * k,
                      sheet_corr);
            sheet_add("gpu0.7 kernel %.3f 49 #%u %s\n", host_us + 1055.0 + k * 50.0, sheet_corr,
                      k < 19 ? "dgrad_kernel" : "multi_tensor_apply_kernel<AdamFunctor>");
        }
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->micro_step_count, 1);
    ck_assert(!analysis->is_step_micro);
}
END_TEST

/** A step that begins with a copy; after the fifth kernel the device waits `hole_us` for the host. */
static void issue_with_copy(double host_us, double device_us, double hole_us)
{
    sheet_corr++;
    sheet_add("main call %.3f 1 #%u cudaMemcpyAsync\n", host_us, sheet_corr);
    sheet_add("gpu0.7 copy %.3f 1000 #%u HtoD pageable 4000000\n", device_us, sheet_corr);
    for (int k = 0; k < KERNELS; k++) {
        sheet_corr++;
        sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", host_us + 2.0 + 2.0 * k, sheet_corr);
        sheet_add("gpu0.7 kernel %.3f 439 #%u dgrad_kernel\n",
                  device_us + 1000.0 + k * 440.0 + (k >= 5 ? hole_us : 0.0), sheet_corr);
    }
}

START_TEST(what_a_step_launched_is_counted_once_wherever_the_device_waited)
{
    /* the first step and the last kept one wait inside: by their beginnings five steps are 57 ms,
     * by any other kernel 55 */
    static const double marks_us[] = {0.0, 14900.0, 24900.0, 34900.0, 44900.0, 59900.0, 69900.0};
    static const double holes_us[] = {2000.0, 0.0, 0.0, 0.0, 5000.0, 0.0};
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        double device_us = i == 0 ? 3000.0 : marks_us[i] + 100.0;
        issue_with_copy(device_us - 95.0, device_us, holes_us[i]);
        mark(marks_us[i], marks_us[i + 1], i);
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    ck_assert_int_eq(analysis->step_mean_ns, 11000000);
    ck_assert_int_eq(analysis->partition.part_ns[LAC_PART_EXPOSED_COPY], 1000000);
    ck_assert_int_eq(analysis->partition.part_ns[LAC_PART_COMPUTE], 439000LL * KERNELS);
}
END_TEST

/* -- rounds of workers -------------------------------------------------------------------------- */

/** A loop by the loader alone: the device is `ahead_us` behind at most. @return the end */
static double draw_waits(const double *waits_us, int count)
{
    double t = 0.0;
    sheet_blank();
    for (int i = 0; i < count; i++) {
        sheet_add("main wait %.3f %.3f\n", t, waits_us[i]);
        issue(t + waits_us[i] + 1.0, t + waits_us[i] + 2.0, 950.0);
        t += waits_us[i] + 960.0;
    }
    sheet_diagnose(NULL, 0);
    return t;
}

START_TEST(rounds_of_the_workers_are_no_noise)
{
    double waits_us[24];
    for (int i = 0; i < 24; i++) {
        waits_us[i] = i % 4 == 0 ? 8000.0 + (i % 3) * 20.0 : 10.0;
    }
    (void)draw_waits(waits_us, 24);
    ck_assert_uint_eq(analysis->step_kept_count % 4, 0);
    ck_assert_double_lt(analysis->step_uncertain_pct, 2.0);
    ck_assert_double_lt(analysis->step_spread_pct, 1.0);
}
END_TEST

START_TEST(rounds_begin_where_they_come_back)
{
    /* how the four batches of a round lie differs, the round does not; the recording ends in one */
    static const double shapes_us[][4] = {
        {6990.0, 3970.0, 2020.0, 1.0}, {6970.0, 2910.0, 2810.0, 1.0},
        {6720.0, 3250.0, 2890.0, 1.0}, {7670.0, 5000.0, 50.0, 2.0},
        {5770.0, 4800.0, 2300.0, 2.0}, {7600.0, 3400.0, 2000.0, 2.0}};
    double waits_us[6 * 4 + 3];
    for (int i = 0; i < 6 * 4 + 3; i++) {
        waits_us[i] = i < 24 ? shapes_us[i / 4][i % 4] : shapes_us[0][i % 4];
    }
    (void)draw_waits(waits_us, 6 * 4 + 2);
    ck_assert_uint_eq(analysis->step_kept_count % 4, 0);
    ck_assert_uint_ge(analysis->step_kept_count, 16);
    ck_assert_double_lt(analysis->step_uncertain_pct, 6.0);
}
END_TEST

START_TEST(three_long_waits_show_a_round_behind_free_batches)
{
    double waits_us[22];
    for (int i = 0; i < 22; i++) { /* 11 free batches, then one long wait in five */
        waits_us[i] = i >= 11 && i % 5 == 1 ? 9500.0 : 2.0;
    }
    waits_us[0] = 9700.0;
    (void)draw_waits(waits_us, 22);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_uint_gt(analysis->step_kept_count, 0);
    ck_assert_uint_eq(analysis->step_kept_count % 5, 0);
    ck_assert_int_eq(analysis->steps[5].left_out, LAC_STEP_WARM_UP);
    double round_us = 9500.0 + 4 * 2.0 + 5 * 960.0;
    ck_assert_double_eq_tol((double)analysis->step_mean_ns, 1000.0 * round_us / 5.0, 30000.0);
    ck_assert_double_lt(analysis->step_uncertain_pct, 3.0);
}
END_TEST

/** One long wait in n, of which the first is before the GPU begins: three stretches of n - 1 steps hold one
 *  just as well. */
START_TEST(a_few_rounds_show_how_many_workers_there_are)
{
    static const int workers[] = {5, 6, 8, 10};
    for (size_t w = 0; w < LAC_COUNT_OF(workers); w++) {
        const int n = workers[w];
        double waits_us[40];
        for (int i = 0; i < 4 * n; i++) {
            waits_us[i] = i % n == 0 ? 9000.0 : 10.0;
        }
        (void)draw_waits(waits_us, 4 * n);
        const double round_us = 9000.0 + (n - 1) * 10.0 + n * 960.0;
        ck_assert_uint_ge(analysis->step_kept_count, (unsigned)n);
        ck_assert_uint_eq(analysis->step_kept_count % (unsigned)n, 0);
        ck_assert_double_eq_tol((double)analysis->step_mean_ns, 1000.0 * round_us / n, 30000.0);
    }
}
END_TEST

START_TEST(waits_without_a_rhythm_keep_their_noise)
{
    static const double waits_us[] = {2.0,    5000.0, 2.0, 9000.0, 2.0,    2.0,    2.0,
                                      7000.0, 8000.0, 2.0, 2.0,    9500.0, 2.0,    6000.0,
                                      2.0,    2.0,    2.0, 2.0,    7500.0, 3000.0, 2.0};
    (void)draw_waits(waits_us, 21);
    ck_assert_uint_eq(count_left_out(LAC_STEP_WARM_UP), 0);
    ck_assert_double_gt(analysis->step_uncertain_pct, 20.0);
}
END_TEST

/* -- what repeats inside a pass ----------------------------------------------------------------- */

static double put_kernels(double at_us, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        sheet_corr++;
        sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", at_us, sheet_corr);
        sheet_add("gpu0.7 kernel %.3f 9 #%u %s\n", at_us + 1.5, sheet_corr, names[i]);
        at_us += 10.0;
    }
    return at_us;
}

/** Passes through ten blocks forward and ten backward, none of which is named. */
static void draw_passes(int passes, bool has_update)
{
    static const char *const forward[] = {"gemm_a", "softmax", "gemm_b", "gelu"};
    static const char *const backward[] = {"gemm_c", "softmax_backward", "gemm_d", "gelu_backward"};
    static const char *const update[] = {"multi_tensor_apply_kernel"};
    sheet_blank();
    for (int pass = 0; pass < passes; pass++) {
        double t = pass * 2000.0 + 10.0;
        for (int block = 0; block < 20; block++) {
            t = put_kernels(t, block < 10 ? forward : backward, 4);
        }
        if (has_update) {
            (void)put_kernels(t, update, 1);
        }
    }
    sheet_diagnose(NULL, 0);
}

START_TEST(blocks_of_one_pass_are_no_steps)
{
    draw_passes(1, true);
    ck_assert_uint_eq(analysis->step_count, 1); /* one update: one step */
    ck_assert_double_lt(analysis->step_confidence, 0.8);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_FEW_STEPS);
    ck_assert_int_ge(analysis->step_mean_ns, 800000);
    draw_passes(1, false);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_STEPS);
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert_ptr_null(strstr(analysis->verdict.text, " step for"));
}
END_TEST

START_TEST(passes_that_repeat_with_both_halves_are_steps)
{
    draw_passes(6, true);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert_int_eq(analysis->step_mean_ns, 2000000);
    draw_passes(6, false);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert_int_eq(analysis->step_median_ns, 2000000);
}
END_TEST

START_TEST(repetitions_with_long_pauses_now_and_then_are_no_steps)
{
    static const char *const block[] = {"gemm_a", "softmax", "gemm_b", "gelu"};
    double t = 10.0;
    sheet_blank();
    for (int i = 0; i < 40; i++) {
        t = put_kernels(t, block, 4);
        t += i % 13 == 12 ? 700.0 : 0.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 0);
}
END_TEST

START_TEST(two_steps_that_are_alike_are_training)
{
    static const double second_us[] = {1040.0, 1600.0};
    static const enum lac_workload_kind kinds[] = {LAC_WORKLOAD_TRAINING, LAC_WORKLOAD_FEW_STEPS};
    for (int i = 0; i < 2; i++) {
        sheet_blank();
        issue(5.0, 10.0, 980.0);
        mark(0.0, 1000.0, 0);
        issue(1005.0, 1010.0, second_us[i] - 20.0);
        mark(1000.0, 1000.0 + second_us[i], 1);
        sheet_diagnose(NULL, 0);
        ck_assert_uint_eq(analysis->step_count, 2);
        ck_assert_int_eq((int)analysis->workload, (int)kinds[i]);
    }
}
END_TEST

/** A step of a program whose calls are not recorded; its first product takes `first_us`. */
static void draw_first_product(double first_us, double later_us)
{
    double t = 10.0;
    sheet_blank();
    sheet_add("gpu0.7 kernel 0 5 add\n");
    for (int i = 0; i < 5; i++) {
        double length_us = i == 0 ? first_us : later_us;
        sheet_add("main op %.3f %.3f MatMul\n", t, length_us);
        sheet_add("gpu0.7 kernel %.3f 20 product_%d\n", t + length_us - 25.0, i);
        t += length_us + 5.0;
    }
    sheet_diagnose(NULL, 0);
}

START_TEST(a_first_use_that_fills_the_recording_is_a_cold_start)
{
    draw_first_product(100000.0, 40.0);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_COLD_START);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "the first MatMul took 100 ms"));
    draw_first_product(100000.0, 20000.0); /* later ones take long as well */
    ck_assert_int_ne((int)analysis->workload, (int)LAC_WORKLOAD_COLD_START);
}
END_TEST

START_TEST(a_loop_over_batches_without_training_has_no_epochs)
{
    for (int trains = 0; trains < 2; trains++) {
        double t = 0.0;
        sheet_blank();
        for (int i = 0; i < 8; i++) { /* the loader is looked at by name in each batch */
            sheet_add("main wait %.3f 400\n", t);
            sheet_add("main python %.3f 390 torch/utils/data/dataloader.py(701): __iter__\n",
                      t + 5.0);
            if (trains) {
                issue(t + 405.0, t + 410.0, 500.0);
                sheet_add("main op %.3f 5 autograd::engine::evaluate_function: MmBackward\n",
                          t + 405.0);
            } else {
                static const char *const forward[] = {"gemm_a", "softmax", "gemm_b", "gelu"};
                sheet_add("main op %.3f 100 aten::linear\n", t + 402.0);
                (void)put_kernels(t + 405.0, forward, 4);
            }
            t += 1000.0;
        }
        sheet_diagnose(NULL, 0);
        uint32_t epochs = 0;
        for (uint32_t p = 0; p < analysis->phase_count; p++) {
            epochs += analysis->phases[p].kind == LAC_PHASE_EPOCH_END;
        }
        ck_assert_int_eq((int)analysis->workload,
                         (int)(trains ? LAC_WORKLOAD_TRAINING : LAC_WORKLOAD_INFERENCE));
        ck_assert(trains ? epochs > 0 : epochs == 0);
    }
}
END_TEST

/* -- how the work grows ------------------------------------------------------------------------- */

/** Steps of which the first half takes three times as long as the second: each could be warm-up. */
static void draw_long_half(int count)
{
    double t = 0.0;
    for (int i = 0; i < count; i++) {
        double length_us = i < count / 2 ? 300.0 + (i % 7) : 100.0;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\ngpu0.7 kernel %.0f %.0f dgrad\n", t,
                  length_us, i, t + 8.0, length_us - 20.0);
        t += length_us;
    }
}

/** Steps that all wait, marked before the device has begun with the first of them. */
static void draw_before_device(int count)
{
    for (int i = 0; i < count; i++) {
        sheet_corr++;
        sheet_add("main range %d 40 ProfilerStep#%d\nmain wait %d 20\n"
                  "main call %d 1 #%u cudaLaunchKernel\ngpu0.7 kernel %d 90 #%u dgrad\n",
                  i * 40, i, i * 40, i * 40 + 22, sheet_corr, count * 40 + i * 100, sheet_corr);
    }
}

/** Seconds of CPU time that the diagnosis alone takes, the least of three. */
static double seconds_for(void (*draw)(int count), int count)
{
    double least = HUGE_VAL;
    sheet_blank();
    draw(count);
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, (uint32_t)count);
    for (int i = 0; i < 3; i++) {
        clock_t begin = clock();
        lac_analysis_destroy(trace_diagnose(model));
        least = fmin(least, (double)(clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
}

START_TEST(work_grows_with_the_steps_and_not_with_their_square)
{
    enum { TIMES = 10 };
    static void (*const draws[])(int) = {draw_long_half, draw_before_device};
    static const int most[] = {36000, 24000};
    for (int i = 0; i < 2; i++) {
        double few = fmax(0.004, seconds_for(draws[i], most[i] / TIMES));
        double many = seconds_for(draws[i], most[i]);
        ck_assert_msg(many <= 2.5 * TIMES * few, "%g s, and %g s for %d times as many steps", few,
                      many, TIMES);
    }
}
END_TEST

/** A host that runs ahead of the device by a little more in each step: its marks are 2 ms apart, the
 *  k-th kernel of a step and of the next `apart` us. */
static void draw_running_ahead(int apart)
{
    sheet_blank();
    for (int step = 0; step < 20; step++) {
        sheet_add("main range %d 1990 ProfilerStep#%d\n", step * 2000, step);
        for (int k = 0; k < 4; k++) {
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", step * 2000 + 10 + 20 * k,
                      ++sheet_corr);
            sheet_add("gpu0.7 kernel %d %d #%u dgrad\n", 30 + step * apart + k * (apart / 4),
                      apart / 4, sheet_corr);
        }
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", step * 2000 + 100);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_host_that_runs_ahead_is_no_pace)
{
    static const int apart[] = {2030, 2040, 2060, 2400};
    for (size_t i = 0; i < LAC_COUNT_OF(apart); i++) {
        draw_running_ahead(apart[i]);
        ck_assert_int_eq(analysis->step_mean_ns, apart[i] * (int64_t)1000);
    }
}
END_TEST

/** Marks of the loop's body alone: how long the last step is, rest of the loop included, nothing tells. */
START_TEST(the_last_mark_of_a_body_alone_is_no_step)
{
    sheet_blank();
    for (int step = 0; step < 4; step++) {
        sheet_add("main range %d 19100 train_step\n", step * 20000);
        for (int k = 0; k < 10; k++) {
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", step * 20000 + 100 + 20 * k,
                      ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 1800 #%u dgrad\n", step * 20000 + 400 + 1850 * k,
                      sheet_corr);
        }
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", step * 20000 + 400);
        sheet_add("main call %d 18400 cudaDeviceSynchronize\n", step * 20000 + 500);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_int_eq(analysis->step_mean_ns, 20000000);
    ck_assert_uint_eq(analysis->step_kept_count, 3);
    ck_assert_int_eq(analysis->partition.part_ns[LAC_PART_COMPUTE], 18000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_pace");
    TCase *tcase = tcase_create("pace");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, a_launch_that_a_full_queue_holds_up_is_no_work_of_the_host);
    tcase_add_test(tcase, a_step_before_a_validation_is_a_training_step_without_a_length);
    tcase_add_test(tcase, phases_are_what_the_host_was_at);
    tcase_add_test(tcase, what_the_host_does_is_counted_between_its_marks);
    tcase_add_test(tcase, a_step_without_kernels_in_the_middle_does_not_end_the_pace);
    tcase_add_test(tcase, marks_of_a_host_that_is_through_before_the_device_begins_are_no_pace);
    tcase_add_test(tcase, one_step_takes_as_long_as_what_it_launched);
    tcase_add_test(tcase, the_device_shows_more_steps_than_a_host_that_first_runs_ahead);
    tcase_add_test(tcase, a_first_step_that_the_recording_cut_short_is_not_in_the_mean);
    tcase_add_test(tcase, a_head_before_the_first_operation_is_in_no_step_or_in_none);
    tcase_add_test(tcase, the_update_of_a_step_is_the_one_that_it_launched);
    tcase_add_test(tcase, what_a_step_launched_is_counted_once_wherever_the_device_waited);
    tcase_add_test(tcase, rounds_of_the_workers_are_no_noise);
    tcase_add_test(tcase, rounds_begin_where_they_come_back);
    tcase_add_test(tcase, three_long_waits_show_a_round_behind_free_batches);
    tcase_add_test(tcase, a_few_rounds_show_how_many_workers_there_are);
    tcase_add_test(tcase, waits_without_a_rhythm_keep_their_noise);
    tcase_add_test(tcase, blocks_of_one_pass_are_no_steps);
    tcase_add_test(tcase, passes_that_repeat_with_both_halves_are_steps);
    tcase_add_test(tcase, repetitions_with_long_pauses_now_and_then_are_no_steps);
    tcase_add_test(tcase, two_steps_that_are_alike_are_training);
    tcase_add_test(tcase, a_first_use_that_fills_the_recording_is_a_cold_start);
    tcase_add_test(tcase, a_loop_over_batches_without_training_has_no_epochs);
    tcase_add_test(tcase, work_grows_with_the_steps_and_not_with_their_square);
    tcase_add_test(tcase, a_host_that_runs_ahead_is_no_pace);
    tcase_add_test(tcase, the_last_mark_of_a_body_alone_is_no_step);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
