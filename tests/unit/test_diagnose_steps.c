/* Steps: where they are found, which are kept, and what loading takes of them. */

#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** Launch and kernel of `busy_us`, `count` times, from `at_us` on. */
static void work(double at_us, double busy_us, int count)
{
    for (int i = 0; i < count; i++) {
        double t_us = at_us + i * busy_us / count;
        sheet_corr++;
        sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", t_us, sheet_corr);
        sheet_add("gpu0.7 kernel %.3f %.3f #%u dgrad_kernel\n", t_us + 1.5, busy_us / count - 0.5,
                  sheet_corr);
    }
}

/** Each step is marked twice: one range around the other, then on another thread of the process. */
START_TEST(a_step_that_is_marked_twice_is_one)
{
    for (int beside = 0; beside < 2; beside++) {
        sheet_blank();
        for (int step = 0; step < 16; step++) {
            const int at = step * 10000;
            sheet_add("main range %d 9990 step\n", at);
            sheet_add("%s range %d 9900 step\n", beside ? "other" : "main", at + 20);
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 100, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 9000 #%u dgrad_kernel\n", at + 200, sheet_corr);
        }
        sheet_diagnose(NULL, 8);
        ck_assert_uint_eq(analysis->step_count, 16);
        ck_assert(llabs(analysis->step_mean_ns - 10000000) < 1000);
    }
}
END_TEST

/** PyTorch's marks as an annotation and as an operator, which begin and end together or nearly so. */
START_TEST(marks_of_the_profiler_that_are_written_twice_count_once)
{
    for (int apart_us = 0; apart_us <= 20; apart_us += 20) {
        int64_t mean_ns[2];

        for (int twice = 0; twice < 2; twice++) {
            sheet_blank();
            for (int i = 0; i < 8; i++) {
                sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
                if (twice) {
                    sheet_add("main op %d %d ProfilerStep#%d\n", i * 1000 + apart_us,
                              1000 - 2 * apart_us, i);
                }
                work(i * 1000 + 30.0, 900.0, 4);
            }
            sheet_diagnose(NULL, 0);
            ck_assert_str_eq(analysis->step_method, "profiler_step");
            ck_assert_uint_eq(analysis->step_count, 8);
            mean_ns[twice] = analysis->step_mean_ns;
        }
        ck_assert_int_eq(mean_ns[0], mean_ns[1]);
    }
}
END_TEST

START_TEST(named_steps_are_all_counted_and_warm_up_is_not_kept)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 8; i++) {
        double length = i == 0 ? 4000.0 : i == 1 ? 1500.0 : 1000.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, length, i);
        work(t + 5.0, length - 20.0, 4);
        t += length;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "profiler_step");
    ck_assert_uint_eq(analysis->step_count, 8);
    ck_assert_uint_eq(analysis->step_kept_count, 6);
    ck_assert_int_eq(analysis->steps[0].left_out, LAC_STEP_WARM_UP);
    ck_assert_int_eq(analysis->steps[1].left_out, LAC_STEP_WARM_UP);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_int_eq(analysis->step_median_ns, 1000000);
}
END_TEST

START_TEST(a_step_that_waited_for_data_is_kept)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 8; i++) {
        double wait = i % 4 == 0 ? 3000.0 : 10.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, wait + 1000.0, i);
        sheet_add("main wait %.3f %.3f\n", t + 1.0, wait);
        work(t + wait + 5.0, 980.0, 4);
        t += wait + 1000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_kept_count, 8);
    ck_assert_int_eq(analysis->step_mean_ns, (2 * 4000000 + 6 * 1010000) / 8);
    ck_assert_int_eq(analysis->step_median_ns, 1010000);
    ck_assert(!analysis->steps[0].is_outlier);
    ck_assert(!analysis->steps[4].is_outlier);
}
END_TEST

START_TEST(a_long_step_that_returns_is_no_warm_up)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 8; i++) {
        double length = i % 4 == 0 ? 2000.0 : 1000.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, length, i);
        work(t + 5.0, 980.0, 4);
        t += length;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_kept_count, 8);
    ck_assert_int_eq(analysis->step_mean_ns, 1250000);
}
END_TEST

START_TEST(a_truncated_last_step_is_left_out)
{
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        work(i * 1000 + 5.0, 980.0, i == 5 ? 2 : 10);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 6);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    ck_assert_int_eq(analysis->steps[5].left_out, LAC_STEP_TRUNCATED);
}
END_TEST

START_TEST(one_step_of_another_kind_is_left_out)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        work(i * 1000 + 5.0, 980.0, i == 4 ? 40 : 10);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->steps[4].left_out, LAC_STEP_OTHER_KIND);
    ck_assert_uint_eq(analysis->step_kept_count, 9);
}
END_TEST

START_TEST(workers_in_phase_are_averaged_over_whole_cycles)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 11; i++) {
        double wait = i % 4 == 3 ? 4000.0 : 0.5;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, wait + 1000.0, i);
        sheet_add("main wait %.3f %.3f batch=%d\n", t, wait, i);
        sheet_add("w%d fetch %.3f 7000 batch=%d worker=%d\n", i % 4, t + (i % 4) * 10.0, i + 4,
                  i % 4);
        work(t + wait + 1.0, 980.0, 4);
        t += wait + 1000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->loader.num_workers, 4);
    ck_assert_uint_eq(analysis->step_kept_count, 8);
    ck_assert_int_eq(analysis->steps[0].left_out, LAC_STEP_PARTIAL_CYCLE);
    ck_assert_int_eq(analysis->step_mean_ns, (8 * 1000000 + 2 * 4000000 + 6 * 500) / 8);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 7000000);
    /* s = 1000.5 us or so: ceil(1.15 * 7000 / 1000) */
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 9);
}
END_TEST

START_TEST(workers_without_numbers_are_counted_by_their_threads)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 12; i++) {
        sheet_add("main range %.3f 2000 ProfilerStep#%d\n", t, i);
        sheet_add("main wait %.3f 1000\n", t);
        sheet_add("w%d fetch %.3f 5900\n", i % 3, t + 10.0);
        work(t + 1001.0, 980.0, 4);
        t += 2000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->loader.num_workers, 3);
    ck_assert_int_ge(analysis->loader.recommended_num_workers, 6);
}
END_TEST

START_TEST(who_fetches_inside_its_own_wait_has_no_workers)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        double t = i * 2000.0;
        sheet_add("main range %.3f 2000 ProfilerStep#%d\n", t, i);
        sheet_add("main wait %.3f 1000\n", t);
        sheet_add("main fetch %.3f 990\n", t + 5.0);
        work(t + 1001.0, 980.0, 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->loader.num_workers, 0);
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].why, "num_workers 0"));
}
END_TEST

/** Steps of 1 ms each, and one that waited `wait_us` for its batch. */
static void steps_with_one_wait(int count, int waiting, double wait_us)
{
    double t = 0.0;
    for (int i = 0; i < count; i++) {
        double wait = i == waiting ? wait_us : 10.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, wait + 990.0, i);
        sheet_add("main wait %.3f %.3f batch=%d\n", t + 1.0, wait, i);
        sheet_add("w%d fetch %.3f 500 batch=%d worker=%d\n", i % 4, t, i, i % 4);
        work(t + wait + 5.0, 970.0, 4);
        t += wait + 990.0;
    }
}

START_TEST(a_partial_cycle_is_cut_where_it_changes_the_mean_least)
{
    sheet_blank();
    steps_with_one_wait(15, 1, 9000.0);
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->loader.num_workers, 4);
    ck_assert_uint_eq(analysis->step_kept_count, 12);
    ck_assert_int_eq(analysis->steps[1].left_out, LAC_STEP_KEPT);
}
END_TEST

START_TEST(a_first_step_that_waited_for_data_is_no_warm_up)
{
    sheet_blank();
    double t = 100.0;
    work(0.0, 900.0, 4); /* of the step before: the device works on meanwhile */
    for (int i = 0; i < 9; i++) {
        double wait = i == 0 ? 5000.0 : 10.0;
        double own = i == 0 ? 400.0 : 990.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, wait + own, i);
        sheet_add("main wait %.3f %.3f\n", t + 1.0, wait);
        work(t + wait + 5.0, own - 20.0, 4);
        t += wait + own;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->steps[0].left_out, LAC_STEP_KEPT);
}
END_TEST

START_TEST(a_step_that_takes_the_device_ten_times_as_long_is_an_outlier)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 20; i++) { /* more than the other 19 leave idle: it must not hide itself */
        double length = i == 12 ? 10000.0 : 1000.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, length, i);
        work(t + 10.0, 0.95 * length, 4);
        t += length;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 20);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_int_eq(analysis->steps[i].is_outlier, i == 12);
    }
}
END_TEST

START_TEST(a_host_that_runs_ahead_makes_no_outliers)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 24; i++) { /* twice the queue was full for a while */
        double own = i == 7 || i == 18 ? 500.0 : 100.0;
        sheet_add("main range %.3f 1000 ProfilerStep#%d\n", t, i);
        sheet_add("main wait %.3f %.3f\n", t, 1000.0 - own);
        work(t + 1000.0 - own, 90.0, 4);
        sheet_add("gpu0.7 kernel %.3f 850 dgrad_kernel\n", t + 995.0);
        t += 1000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 24);
    for (uint32_t i = 0; i < 24; i++) {
        ck_assert(!analysis->steps[i].is_outlier);
    }
}
END_TEST

/* -- whose steps they are ----------------------------------------------------------------------- */

/** Steps of 1 ms on the device, of 20 kernels; the host's marks are where `marks_us` says. */
static void draw_paced(const double *marks_us, int steps, double device_from_us)
{
    sheet_blank();
    for (int i = 0; i < steps; i++) {
        double from_us = marks_us[i];
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", from_us, marks_us[i + 1] - from_us, i);
        sheet_add("main op %.3f 10 Optimizer.step#SGD.step\n", from_us + 40.0);
        for (int k = 0; k < 20; k++) {
            sheet_corr++;
            sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", from_us + 2.0 * k, sheet_corr);
            sheet_add("gpu0.7 kernel %.3f 49 #%u dgrad_kernel\n",
                      device_from_us + i * 1000.0 + k * 50.0, sheet_corr);
        }
    }
    sheet_diagnose(NULL, 0);
}

START_TEST(work_from_before_the_recording_and_a_late_last_mark_set_no_pace)
{
    /* the first mark waits for what the device still had, after the last one workers are joined */
    static const double marks_us[] = {0.0, 1800.0, 2800.0, 3800.0, 4800.0, 5800.0, 7700.0};
    draw_paced(marks_us, 6, 1000.0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_uint_eq(analysis->step_kept_count, 5);
    ck_assert_double_lt(analysis->step_spread_pct, 0.1);
    ck_assert_int_eq(analysis->step_host_ns, 1160000);
    ck_assert_int_eq(analysis->steps[0].host_start_ns, 0);
    ck_assert_int_eq(analysis->steps[0].start_ns, 1000000);
    ck_assert_int_eq(analysis->steps[5].left_out, LAC_STEP_UNTIMED);
    ck_assert_int_eq(analysis->steps[5].kind, LAC_KIND_TRAIN);
}
END_TEST

START_TEST(marks_that_jitter_with_the_queue_do_not_spread_the_mean)
{
    static const double marks_us[] = {0.0, 850.0, 1900.0, 3300.0, 4000.0, 4900.0, 6300.0, 7000.0};
    draw_paced(marks_us, 7, 500.0);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_double_lt(analysis->step_uncertain_pct, 0.1);
}
END_TEST

START_TEST(a_last_mark_that_comes_late_is_left_out)
{
    static const double marks_us[] = {0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6900.0};
    draw_paced(marks_us, 6, 5.0);
    ck_assert(!analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->steps[5].left_out, LAC_STEP_UNTIMED);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_int_eq(analysis->step_host_ns, 1000000);
}
END_TEST

START_TEST(free_batches_before_the_periods_of_unnamed_workers_set_no_pace)
{
    /* eight batches lay ready (four workers, two each), then one in four waits long */
    static const double waits_us[] = {9000.0, 2000.0, 1000.0, 10.0};
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 28; i++) {
        double wait_us = i < 8 ? 10.0 : waits_us[i % 4];
        sheet_add("main wait %.3f %.3f\n", t, wait_us);
        work(t + wait_us + 5.0, 980.0, 4);
        t += wait_us + 1000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_uint_eq(analysis->step_kept_count % 4, 0);
    ck_assert_int_eq(analysis->steps[5].left_out, LAC_STEP_WARM_UP);
    ck_assert_int_eq(analysis->step_mean_ns, 4002500);
}
END_TEST

START_TEST(ranges_that_are_pushed_and_never_popped_begin_steps)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        sheet_add("main range %d %d ProfilerStep#%d\n", i * 1000, 10500 - i * 1000, i);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", i * 1000 + 900);
        work(i * 1000.0 + 5.0, 980.0, 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 10);
    ck_assert_uint_eq(analysis->step_kept_count, 9);
    ck_assert_int_eq(analysis->steps[9].left_out,
                     LAC_STEP_UNTIMED); /* nothing says when it ended */
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
}
END_TEST

START_TEST(what_repeats_at_very_different_times_is_no_step)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 12; i++) { /* blocks of one pass: some wait for something */
        for (int k = 0; k < 10; k++) {
            sheet_corr++;
            sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", t + k * 10.0, sheet_corr);
            sheet_add("gpu0.7 kernel %.3f 8 #%u dgrad_kernel_%d\n", t + k * 10.0 + 1.5, sheet_corr,
                      k);
        }
        t += i % 4 == 3 ? 2000.0 : 105.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 0);
    ck_assert_str_eq(analysis->step_method, "none");
}
END_TEST

START_TEST(a_first_step_in_which_workers_start_is_warm_up)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 12; i++) {
        double wait = i == 0 ? 8000.0 : 500.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", t, wait + 1000.0, i);
        sheet_add("main wait %.3f %.3f\n", t, wait);
        work(t + wait + 1.0, 990.0, 4);
        t += wait + 1000.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_int_eq(analysis->steps[0].left_out, LAC_STEP_WARM_UP);
    ck_assert_int_eq(analysis->step_mean_ns, 1500000);
    ck_assert_int_le(analysis->step_without_starvation_ns, 1020000);
}
END_TEST

START_TEST(ranges_named_step_count_until_the_next_one)
{
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        sheet_add("main wait %d 300\n", i * 1000);
        sheet_add("main range %d 600 train_step_%d\n", i * 1000 + 350, i);
        work(i * 1000 + 360.0, 500.0, 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "nvtx");
    ck_assert_uint_eq(analysis->step_count, 6);
    ck_assert_int_eq(analysis->steps[0].dur_ns, 1000000);
    ck_assert_int_eq(analysis->loader.wait_ns, 5 * 300000); /* the first one is before any step */
}
END_TEST

START_TEST(without_names_the_loader_or_the_optimizer_marks_steps)
{
    sheet_blank();
    for (int i = 0; i < 7; i++) {
        sheet_add("main wait %d 100\n", i * 1000);
        work(i * 1000 + 150.0, 800.0, 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_uint_eq(analysis->step_count, 6);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    sheet_blank();
    for (int i = 0; i < 7; i++) {
        work(i * 1000 + 10.0, 800.0, 4);
        sheet_add("main range %d 50 Optimizer.step#SGD.step\n", i * 1000 + 900);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer");
    ck_assert_uint_eq(analysis->step_count, 6);
}
END_TEST

START_TEST(the_period_of_a_kernel_is_the_last_resort)
{
    sheet_blank();
    for (int step = 0; step < 8; step++) {
        for (int layer = 0; layer < 5; layer++) {
            sheet_add("gpu0.7 kernel %d 50 gemm_layer\n", step * 1000 + layer * 100);
        }
        sheet_add("gpu0.7 kernel %d 50 loss\n", step * 1000 + 600);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_uint_eq(analysis->step_count, 7);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
}
END_TEST

/** Kernels of one stream from *at_us on, 10 us each with 2 us between. */
static void kernels(double *at_us, const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        sheet_add("gpu0.7 kernel %.1f 10 %s\n", *at_us, name);
        *at_us += 12.0;
    }
}

/** Layers forward and backward, all of the same kernels. */
static void layers(double *at_us, int count)
{
    for (int i = 0; i < count; i++) {
        kernels(at_us, "gemm", 2);
        kernels(at_us, "norm", 1);
    }
    for (int i = 0; i < count; i++) {
        kernels(at_us, "norm_backward", 1);
        kernels(at_us, "gemm", 2);
        kernels(at_us, "reduce", 1);
    }
}

START_TEST(bursts_of_the_optimizers_kernels_end_steps)
{
    sheet_blank();
    double t = 0.0;
    for (int step = 0; step < 7; step++) {
        t = step * 1000.0 + (step % 3) * 20.0; /* waits differ */
        layers(&t, 5);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 2);
        kernels(&t, "elementwise", 1);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer_kernels");
    ck_assert_uint_eq(analysis->step_count, 6);
    ck_assert_int_eq(analysis->step_mean_ns, 1000000);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
}
END_TEST

START_TEST(a_single_fused_kernel_ends_a_step)
{
    sheet_blank();
    for (int step = 0; step < 6; step++) {
        double t = step * 1000.0;
        layers(&t, 4);
        kernels(&t, "FusedAdamKernel<float>", 1);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer_kernels");
    ck_assert_uint_eq(analysis->step_count, 5);
}
END_TEST

START_TEST(optimizers_that_take_turns_are_one_step)
{
    sheet_blank();
    for (int step = 0; step < 10; step++) {
        double t = step * 1000.0;
        layers(&t, 3);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 2);
        layers(&t, 5);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 2);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer_kernels");
    ck_assert_uint_eq(analysis->step_count, 9);
    ck_assert_int_eq(analysis->step_median_ns, 1000000);
}
END_TEST

/** One batch: forward and backward. */
static void micro_step(double *at_us)
{
    kernels(at_us, "embedding", 1);
    layers(at_us, 3);
    kernels(at_us, "embedding_backward", 1);
}

START_TEST(micro_steps_are_counted_beside_the_update)
{
    sheet_blank();
    for (int step = 0; step < 6; step++) {
        double t = step * 2000.0;
        for (int micro = 0; micro < 4; micro++) {
            micro_step(&t);
        }
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 3);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "optimizer_kernels");
    ck_assert_int_eq(analysis->step_median_ns, 2000000);
    ck_assert_uint_eq(analysis->micro_step_count, 4);
    ck_assert(!analysis->is_step_micro);
}
END_TEST

START_TEST(what_repeats_in_a_step_of_one_batch_are_layers)
{
    for (unsigned batches = 1; batches <= 4; batches += 3) {
        sheet_blank();
        for (unsigned step = 0; step < 6; step++) {
            double t = step * 2000.0 + 5.0;
            sheet_add("main range %u 2000 ProfilerStep#%u\n", step * 2000, step);
            for (unsigned micro = 0; micro < 4; micro++) {
                if (micro < batches) {
                    sheet_add("main wait %.0f 2 batch=%u\n", t, step * batches + micro);
                }
                micro_step(&t);
            }
            kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 3);
        }
        sheet_diagnose(NULL, 0);
        ck_assert_uint_eq(analysis->step_count, 6);
        ck_assert_uint_eq(analysis->micro_step_count, batches);
    }
}
END_TEST

START_TEST(named_steps_may_be_the_micro_steps)
{
    sheet_blank();
    for (int step = 0; step < 18; step++) {
        double t = step * 1000.0 + 5.0;
        bool is_update = step % 4 == 3;
        sheet_add("main range %d 1000 ProfilerStep#%d\n", step * 1000, step);
        micro_step(&t);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", is_update ? 30 : 0);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->micro_step_count, 4);
    ck_assert(analysis->is_step_micro);
    ck_assert_uint_eq(analysis->step_kept_count, 16);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        ck_assert(!analysis->steps[s].is_outlier);
    }
}
END_TEST

START_TEST(a_step_of_layers_has_no_micro_steps)
{
    sheet_blank();
    for (int step = 0; step < 6; step++) {
        double t = step * 4000.0;
        layers(&t, 24);
        kernels(&t, "multi_tensor_apply_kernel<AdamFunctor>", 3);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->step_count, 5);
    ck_assert_uint_eq(analysis->micro_step_count, 1);
}
END_TEST

START_TEST(layers_are_no_steps)
{
    sheet_blank();
    for (int step = 0; step < 8; step++) { /* forward only: layers come at even distances */
        double t = step * 1500.0;
        kernels(&t, "embedding", 1);
        for (int layer = 0; layer < 20; layer++) {
            kernels(&t, "gemm", 2);
            kernels(&t, "norm", 1);
            kernels(&t, "softmax", 1);
        }
        kernels(&t, "gemm", 1);
        kernels(&t, "argmax", 1);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_uint_eq(analysis->step_count, 7);
    ck_assert_int_eq(analysis->step_median_ns, 1500000);
}
END_TEST

START_TEST(a_unit_that_the_step_cuts_short_is_no_step)
{
    sheet_blank();
    for (int step = 0; step < 8; step++) { /* two units and a half */
        double t = step * 1000.0;
        for (int i = 0; i < 50; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "kernel_%c", 'a' + i % 20);
            kernels(&t, name, 1);
        }
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_int_eq(analysis->step_median_ns, 1000000);
}
END_TEST

START_TEST(a_few_other_kernels_do_not_hide_the_period)
{
    sheet_blank();
    double t = 0.0;
    for (int step = 0; step < 16; step++) {
        t = step * 2000.0;
        layers(&t, 6);
        kernels(&t, step % 5 == 1 ? "other" : "update", 3);
        kernels(&t, "extra", step % 4 == 2);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_uint_ge(analysis->step_count, 14);
    ck_assert_int_eq(analysis->step_median_ns, 2000000);
}
END_TEST

START_TEST(a_pass_of_validation_does_not_hide_the_period)
{
    sheet_blank();
    double t = 0.0;
    for (int step = 0; step < 14; step++) {
        double begin = t;
        layers(&t, 6);
        kernels(&t, "update", 3);
        t = begin + 1000.0;
        for (int batch = 0; step == 8 && batch < 6; batch++) {
            for (int layer = 0; layer < 6; layer++) {
                kernels(&t, "gemm", 2);
                kernels(&t, "norm", 1);
            }
            t += 50.0;
        }
        t += step == 8 ? 400.0 : 0.0;
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_uint_ge(analysis->step_count, 12);
    ck_assert_int_eq(analysis->step_median_ns, 1000000);
    uint32_t others = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        others += analysis->steps[s].left_out == LAC_STEP_OTHER_KIND;
    }
    ck_assert_uint_eq(others, 1);
    ck_assert_int_ge(analysis->step_mean_ns, 990000); /* the pause before the first is not known */
    ck_assert_int_le(analysis->step_mean_ns, 1000000);
}
END_TEST

START_TEST(kernels_that_overlap_make_no_step_of_negative_length)
{
    sheet_blank();
    double t = 0.0;
    for (int step = 0; step < 12; step++) {
        t = step * 500.0;
        sheet_add("gpu0.7 kernel %.1f %d dgrad\n", t, step == 4 ? 4000 : 10);
        t += 12.0;
        kernels(&t, "gemm", 5);
        kernels(&t, "norm", 4);
        kernels(&t, step % 2 ? "FusedAdamKernel" : "gemm", 1);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_uint_gt(analysis->step_count, 0);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        ck_assert_int_ge(analysis->steps[s].dur_ns, 0);
    }
}
END_TEST

START_TEST(what_repeats_is_no_training_unless_something_says_so)
{
    sheet_blank();
    for (int unit = 0; unit < 9; unit++) {
        double t = unit * 200.0;
        kernels(&t, "gemm", 4);
        kernels(&t, "norm", 2);
        kernels(&t, "softmax", 2);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "period");
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_STEPS);
    ck_assert_int_eq(analysis->verdict.letter, '~');
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "an iteration, or a part of one"));
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert(isnan(analysis->throughput_per_s));
    ck_assert_int_eq(analysis->needs.gpu_ns, LAC_UNKNOWN_NS);
}
END_TEST

START_TEST(no_rhythm_no_steps)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 30; i++) {
        t += 50.0 + (i * i * 37) % 900;
        sheet_add("gpu0.7 kernel %.1f 20 k%d\n", t, (i * 7) % 4);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "none");
    ck_assert_uint_eq(analysis->step_count, 0);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_STEPS);
}
END_TEST

START_TEST(waits_count_inside_named_steps_only_and_starve_while_idle)
{
    sheet_blank();
    for (int i = 0; i < 4; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000 + 1000, i);
        sheet_add("main wait %d 400\n", i * 1000 + 1000);
        work(i * 1000 + 1450.0, 500.0, 1);
    }
    sheet_add("main wait 0 900\n");
    sheet_diagnose(NULL, 0);
    ck_assert_uint_eq(analysis->loader.batch_count, 5);
    ck_assert_int_eq(analysis->loader.wait_ns, 4 * 400000);
    ck_assert(fabs(analysis->loader.wait_pct_of_steps - 40.0) < 1e-9);
    ck_assert_int_eq(analysis->loader.starved_ns, 3 * 400000); /* not before the first operation */
}
END_TEST

/** Marks around the loop's body alone, numbered as PyTorch's are, which never leave a hole. */
START_TEST(profiler_steps_that_leave_out_the_wait_last_until_the_next)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        const int t = i * 3000;
        sheet_add("main wait %d 1900 batch=%d\n", t, i);
        sheet_add("main range %d 1000 ProfilerStep#%d\n", t + 2000, i + 7);
        sheet_corr++;
        sheet_add("main call %d 2 #%u cudaLaunchKernel\n", t + 2010, sheet_corr);
        sheet_add("gpu0.7 kernel %d 900 #%u gemm\n", t + 2020, sheet_corr);
    }
    sheet_diagnose(NULL, 0);
    ck_assert_str_eq(analysis->step_method, "profiler_step");
    ck_assert_uint_eq(analysis->step_count, 12);
    ck_assert_uint_eq(analysis->step_kept_count, 11);
    ck_assert_int_eq(analysis->steps[11].left_out, LAC_STEP_UNTIMED);
    ck_assert_int_eq(analysis->step_mean_ns, 3000000);
    ck_assert_ptr_nonnull(sheet_finding("input-starvation"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_steps");
    TCase *tcase = tcase_create("steps");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, a_step_that_is_marked_twice_is_one);
    tcase_add_test(tcase, profiler_steps_that_leave_out_the_wait_last_until_the_next);
    tcase_add_test(tcase, marks_of_the_profiler_that_are_written_twice_count_once);
    tcase_add_test(tcase, named_steps_are_all_counted_and_warm_up_is_not_kept);
    tcase_add_test(tcase, a_step_that_waited_for_data_is_kept);
    tcase_add_test(tcase, a_long_step_that_returns_is_no_warm_up);
    tcase_add_test(tcase, a_truncated_last_step_is_left_out);
    tcase_add_test(tcase, one_step_of_another_kind_is_left_out);
    tcase_add_test(tcase, workers_in_phase_are_averaged_over_whole_cycles);
    tcase_add_test(tcase, workers_without_numbers_are_counted_by_their_threads);
    tcase_add_test(tcase, who_fetches_inside_its_own_wait_has_no_workers);
    tcase_add_test(tcase, a_partial_cycle_is_cut_where_it_changes_the_mean_least);
    tcase_add_test(tcase, a_first_step_that_waited_for_data_is_no_warm_up);
    tcase_add_test(tcase, work_from_before_the_recording_and_a_late_last_mark_set_no_pace);
    tcase_add_test(tcase, marks_that_jitter_with_the_queue_do_not_spread_the_mean);
    tcase_add_test(tcase, a_last_mark_that_comes_late_is_left_out);
    tcase_add_test(tcase, free_batches_before_the_periods_of_unnamed_workers_set_no_pace);
    tcase_add_test(tcase, ranges_that_are_pushed_and_never_popped_begin_steps);
    tcase_add_test(tcase, what_repeats_at_very_different_times_is_no_step);
    tcase_add_test(tcase, a_first_step_in_which_workers_start_is_warm_up);
    tcase_add_test(tcase, a_step_that_takes_the_device_ten_times_as_long_is_an_outlier);
    tcase_add_test(tcase, a_host_that_runs_ahead_makes_no_outliers);
    tcase_add_test(tcase, ranges_named_step_count_until_the_next_one);
    tcase_add_test(tcase, without_names_the_loader_or_the_optimizer_marks_steps);
    tcase_add_test(tcase, the_period_of_a_kernel_is_the_last_resort);
    tcase_add_test(tcase, bursts_of_the_optimizers_kernels_end_steps);
    tcase_add_test(tcase, a_single_fused_kernel_ends_a_step);
    tcase_add_test(tcase, optimizers_that_take_turns_are_one_step);
    tcase_add_test(tcase, micro_steps_are_counted_beside_the_update);
    tcase_add_test(tcase, what_repeats_in_a_step_of_one_batch_are_layers);
    tcase_add_test(tcase, named_steps_may_be_the_micro_steps);
    tcase_add_test(tcase, a_step_of_layers_has_no_micro_steps);
    tcase_add_test(tcase, layers_are_no_steps);
    tcase_add_test(tcase, a_unit_that_the_step_cuts_short_is_no_step);
    tcase_add_test(tcase, a_few_other_kernels_do_not_hide_the_period);
    tcase_add_test(tcase, a_pass_of_validation_does_not_hide_the_period);
    tcase_add_test(tcase, kernels_that_overlap_make_no_step_of_negative_length);
    tcase_add_test(tcase, what_repeats_is_no_training_unless_something_says_so);
    tcase_add_test(tcase, no_rhythm_no_steps);
    tcase_add_test(tcase, waits_count_inside_named_steps_only_and_starve_while_idle);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
