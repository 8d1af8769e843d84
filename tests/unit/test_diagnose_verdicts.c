/* Verdicts on drawn traces: training without a GPU, loaders of every kind, and what a step loses to
 * synchronizations, launches, communication, allocation and code that loads. */

#include "analysis/diagnose/result/texts.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

static void diagnose(const char *metadata)
{
    sheet_diagnose(metadata, 7);
}

/** Every part of the grammar that a finding with a change has, and no clumsy number in it. */
static void check_grammar(const struct lac_finding *finding)
{
    const char *const parts[] = {finding->title, finding->why,     finding->change,
                                 finding->brief, finding->costs,   finding->expect,
                                 finding->check, finding->wrong_if};
    sheet_check_grammar(finding);
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        ck_assert_msg(strstr(parts[i], " 1 workers") == NULL && strstr(parts[i], "0-0 %") == NULL,
                      "%s", parts[i]);
    }
}

/* -- training without a GPU in the trace ---------------------------------------------------- */

/** Steps on the host alone: `wait`, then `work` us; `workers` fetch in turn. */
static void draw_host(int steps, int wait, int work, int workers, int fetch, int cpu, bool trains)
{
    sheet_blank();
    for (int i = 0; i < steps; i++) {
        int begin = i * (wait + work);
        sheet_add("main wait %d %d batch=%d\n", begin, wait, i);
        sheet_add("w%d fetch %d %d batch=%d worker=%d cpu=%d\n", i % workers, begin + 1, fetch, i,
                  i % workers, cpu);
        if (trains) {
            sheet_add("main op %d 100 Optimizer.step#SGD.step\n", begin + wait + work - 200);
        }
    }
}

START_TEST(who_waits_for_copies_does_not_copy)
{
    sheet_draw("main call 0 5 #1 cudaLaunchKernel\n"
               "gpu0.7 kernel 10 1000 #1 sgemm\n"
               "main call 1005 60 #2 cudaMemcpy\n"
               "gpu0.7 copy 1050 10 #2 HtoD pageable 100000\n"
               "main call 1070 5 #3 cudaLaunchKernel\n"
               "gpu0.7 kernel 1080 1000 #3 sgemm\n");
    ck_assert_ptr_null(strstr(analysis->verdict.text, "copies not overlapped"));
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "was idle for 60 us of 2.1 ms (3 %)"));
    ck_assert_uint_eq(analysis->verdict.parts, 1U << (LAC_PART_IDLE + LAC_CAUSE_COPY_WAIT));
}
END_TEST

START_TEST(without_a_gpu_the_training_process_is_judged)
{
    draw_host(20, 20000, 10000, 1, 29900, 1000, true);
    diagnose(
        "{\"lacuna\":{\"settings\":{\"num_workers\":1},\"host\":{\"cores_allowed\":\"0-1\"}}}");
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_HOST_TRAINING);
    ck_assert_ptr_nonnull(
        strstr(analysis->verdict.text, "the training process waits 20 ms of every 30 ms step"));
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_str_eq(finding->brief, "num_workers=4"); /* ceil(1.15 * 29.9 / 10) */
    ck_assert_int_eq(finding->step_mid_ns, 10000000);
    ck_assert_ptr_null(strstr(finding->title, "GPU"));
}
END_TEST

START_TEST(a_batch_that_waits_for_storage_is_told_from_one_that_computes)
{
    draw_host(20, 20000, 10000, 1, 29900, 1000, true);
    for (int i = 0; i < 20; i++) {
        sheet_add("w0 range %d 24000 loader.read\n", i * 30000 + 100);
        sheet_add("w0 range %d 3000 loader.decode\n", i * 30000 + 25000);
    }
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "computes for 3 % of its time"));
    ck_assert_ptr_nonnull(strstr(finding->why, "loader.read 80 %, loader.decode 10 %."));
    draw_host(20, 20000, 10000, 1, 29900, 29000, true);
    diagnose(NULL);
    ck_assert_ptr_null(strstr(sheet_finding("input-starvation")->why, "storage"));
}
END_TEST

START_TEST(without_training_there_is_no_advice_for_it)
{
    draw_host(20, 20000, 10000, 1, 29900, 1000, false);
    diagnose(NULL);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_GPU);
    ck_assert_uint_eq(analysis->finding_count, 0);
}
END_TEST

START_TEST(data_in_time_is_said_to_be)
{
    draw_host(20, 100, 10000, 1, 8000, 1000, true);
    diagnose(NULL);
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "data loading keeps up"));
}
END_TEST

START_TEST(no_more_workers_than_the_job_may_have_cores)
{
    /* a batch computes all of its 29.9 ms, and a quota leaves the job one core and a half */
    draw_host(20, 20000, 10000, 1, 29900, 29900, true);
    diagnose("{\"lacuna\":{\"host\":{\"cores_allowed\":\"0-3,8\",\"cpu_quota_cores\":1.5}}}");
    const struct lac_finding *finding = sheet_finding("cpu-oversubscription");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->brief, "or less CPU per batch"));
    ck_assert_int_eq(analysis->loader.recommended_num_workers, -1);
    ck_assert_ptr_null(sheet_finding("input-starvation"));
}
END_TEST

/* -- what a step loses ------------------------------------------------------------------------ */

enum loss { LOSS_NONE, LOSS_SYNC, LOSS_LAUNCH, LOSS_ALLOC, LOSS_MODULE, LOSS_COMM };

/**
 * Steps of 10 ms with four kernels of 2 ms, launched ahead; or 50, each launched 40 us late; or a
 * read that drains the queue, and 2 ms of host work behind it; or a call of 2 ms with the queue
 * empty.
 */
static void draw_steps(int steps, enum loss loss, bool has_python)
{
    sheet_blank();
    for (int i = 0; i < steps; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", begin + 9900);
        if (has_python) {
            sheet_add("main python %d 10 train.py(83): step\n", begin + 9950);
        }
        bool is_stalled =
            loss == LOSS_SYNC || loss == LOSS_ALLOC || loss == LOSS_MODULE || loss == LOSS_COMM;
        int at = begin + (is_stalled ? 2000 : 0);
        int count = loss == LOSS_LAUNCH ? 50 : 4;
        int length = loss == LOSS_LAUNCH ? 160 : 2000;
        int pitch = loss == LOSS_LAUNCH ? 199 : 2000;
        for (int k = 0; k < count; k++) {
            int start = at + k * pitch + 10;
            int launch = loss == LOSS_LAUNCH ? start - 5 : at + k;
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", launch, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d %d #%u dgrad_s884cudnn\n", start,
                      loss == LOSS_NONE && k == 3 ? 3995 : length, sheet_corr);
            if (loss == LOSS_LAUNCH) {
                sheet_add("main op %d %d aten::add\n", start - 4, pitch - 3);
            }
        }
        if (loss == LOSS_SYNC) {
            sheet_add("main op %d 6020 aten::item\n", begin + 4000);
            sheet_add("main call %d 6010 cudaStreamSynchronize\n", begin + 4005);
            sheet_add("main op %d 1900 my_metrics\n", begin + 50);
        } else if (loss == LOSS_ALLOC) {
            sheet_add("main call %d 900 cudaFree\n", begin + 50);
            sheet_add("main call %d 900 cudaMalloc\n", begin + 1000);
        } else if (loss == LOSS_MODULE) {
            sheet_add("main call %d 1900 cuModuleLoadData\n", begin + 50);
        } else if (loss == LOSS_COMM) {
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", begin + 2, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 1900 #%u ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n",
                      begin + 60, sheet_corr);
        }
    }
    diagnose(NULL);
}

START_TEST(a_read_that_drains_the_queue_costs_what_follows_it)
{
    draw_steps(12, LOSS_SYNC, false);
    const struct lac_finding *finding = sheet_finding("sync-stall");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::item"));
    ck_assert_ptr_nonnull(strstr(finding->costs, "early stopping")); /* what it may guard */
    /* the call lasts 6 ms a step: that is not what it costs */
    ck_assert_int_lt(finding->cost_ns_per_step, 2200000);
    ck_assert_ptr_nonnull(strstr(finding->change, "total.item() / 50"));
    sheet_diagnose("{\"lacuna\":{\"settings\":{\"framework\":\"HF Trainer\"}}}", 8);
    finding = sheet_finding("sync-stall");
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "logging_nan_inf_filter=False"));
}
END_TEST

/* Of a program without a framework, ten kernels a step: one wait, and one behind each kernel. */
START_TEST(one_wait_of_a_step_is_not_one_after_each_kernel)
{
    for (int is_each = 0; is_each < 2; is_each++) {
        sheet_blank();
        for (int i = 0; i < 12; i++) {
            const int begin = i * 10000;
            sheet_add("main range %d 10000 step %d\n", begin, i);
            for (int k = 0; k < 10; k++) {
                const int at = begin + 10 + k * (is_each ? 900 : 600);
                const int launched = is_each ? at : begin + 10 + k;
                sheet_add("main call %d 1 #%u cudaLaunchKernel\n", launched, ++sheet_corr);
                sheet_add("gpu0.7 kernel %d 600 #%u solve\n", at + 5, sheet_corr);
                if (is_each) {
                    sheet_add("main call %d 603 cudaStreamSynchronize_v3020\n", at + 3);
                }
            }
            if (!is_each) {
                sheet_add("main call %d 5990 cudaStreamSynchronize_v3020\n", begin + 30);
            }
        }
        diagnose(NULL);
        lac_analysis_destroy(analysis);
        model->info.format = LAC_FORMAT_NSYS;
        analysis = trace_diagnose(model);
        const struct lac_finding *finding = sheet_finding("sync-stall");
        if (is_each) { /* what stops the host at each layer has a finding of its own */
            ck_assert(finding != NULL || sheet_finding("sync-per-layer") != NULL);
            ck_assert(finding == NULL ||
                      strstr(finding->change, "() after each kernel can go") != NULL);
            continue;
        }
        ck_assert_ptr_nonnull(finding);
        check_grammar(finding);
        ck_assert_ptr_nonnull(strstr(finding->change, "move cudaStreamSynchronize() out of"));
        ck_assert_ptr_null(strstr(finding->change, "after each kernel"));
        ck_assert_ptr_null(strstr(finding->why, " in step"));
    }
}
END_TEST

START_TEST(a_read_before_a_full_queue_costs_nothing)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) { /* waits 9 ms for the step before; this one is queued already */
        sheet_add("main range %d 10000 ProfilerStep#%d\n", i * 10000, i);
        sheet_add("main call %d 1 #%u cudaLaunchKernel\n", i * 10000 + 5, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 10000 #%u dgrad_s884cudnn\n", i * 10000 + 9000, sheet_corr);
        sheet_add("main call %d 8990 cudaEventSynchronize\n", i * 10000 + 20);
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", i * 10000 + 9900);
    }
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("sync-stall"));
}
END_TEST

START_TEST(launches_are_blamed_only_when_the_host_can_be_trusted)
{
    draw_steps(12, LOSS_LAUNCH, false);
    const struct lac_finding *finding = sheet_finding("launch-bound");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_null(
        strstr(finding->change, "foreach=True")); /* no optimizer was seen to be slow */
    ck_assert_int_eq((int)finding->effort, (int)LAC_EFFORT_REWRITE);
    ck_assert_double_lt(finding->gain_mid_pct, 0.7 * finding->gain_high_pct);
    ck_assert_ptr_nonnull(strstr(finding->expect, "at best"));
    draw_steps(12, LOSS_LAUNCH, true);
    finding = sheet_finding("launch-bound");
    ck_assert_ptr_nonnull(finding);
    ck_assert(finding->gain_mid_pct != finding->gain_mid_pct); /* refused */
    ck_assert_ptr_null(strstr(finding->change, "compile"));
    ck_assert_ptr_nonnull(strstr(finding->why, "Python stacks"));
}
END_TEST

START_TEST(a_full_queue_is_no_launch_problem)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) { /* each launch takes 2 ms, because the queue is full */
        sheet_add("main range %d 10000 ProfilerStep#%d\n", i * 10000, i);
        for (int k = 0; k < 5; k++) {
            sheet_add("main call %d 1995 #%u cudaLaunchKernel\n", i * 10000 + k * 2000,
                      ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 2000 #%u dgrad_s884cudnn\n", i * 10000 + k * 2000 + 20000,
                      sheet_corr);
        }
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", i * 10000 + 9900);
    }
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("launch-bound"));
}
END_TEST

START_TEST(allocation_in_every_step_is_named)
{
    draw_steps(12, LOSS_ALLOC, false);
    const struct lac_finding *finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_null(strstr(finding->change, "loss"));
    ck_assert_int_gt(finding->cost_ns_per_step, 1600000);
}
END_TEST

START_TEST(code_that_loads_in_every_step_is_named)
{
    draw_steps(12, LOSS_MODULE, false);
    const struct lac_finding *finding = sheet_finding("module-load");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
}
END_TEST

START_TEST(one_rank_cannot_blame_the_network)
{
    draw_steps(12, LOSS_COMM, false);
    const struct lac_finding *finding = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO); /* hiding it gains nothing */
    ck_assert_str_eq(finding->change, "");
    ck_assert_ptr_nonnull(
        strstr(finding->why, "From one rank, a straggler and a slow network look the same"));
    ck_assert(isnan(finding->gain_mid_pct));
}
END_TEST

START_TEST(checkpoints_are_a_kind_of_step)
{
    sheet_blank();
    int at = 0;
    for (int i = 0; i < 30; i++) {
        bool is_rare = i % 10 == 9;
        int length = is_rare ? 40000 : 10000;
        sheet_add("main range %d %d ProfilerStep#%d\n", at, length, i);
        sheet_add("main call %d 1 #%u cudaLaunchKernel\n", at + 5, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 9900 #%u dgrad_s884cudnn\n", at + 10, sheet_corr);
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", at + 9900);
        if (is_rare) {
            sheet_add("main range %d 29900 write checkpoint\n", at + 10000);
        }
        at += length;
    }
    diagnose(NULL);
    ck_assert_uint_eq(analysis->step_kept_count, 27);
    ck_assert_int_eq(analysis->step_mean_ns, 10000000);
    ck_assert_int_eq((int)analysis->steps[9].left_out, (int)LAC_STEP_OTHER_KIND);
    ck_assert_ptr_null(sheet_finding("step-outliers"));
}
END_TEST

START_TEST(a_wait_inside_a_wait_is_one_batch)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        sheet_add("main op %d 3000 enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__\n",
                  i * 10000);
        sheet_add("main wait %d 2900 batch=%d\n", i * 10000 + 20, i);
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", i * 10000 + 9900);
    }
    diagnose(NULL);
    ck_assert_uint_eq(analysis->loader.batch_count, 12);
    ck_assert_int_eq(analysis->step_mean_ns, 10000000);
}
END_TEST

START_TEST(one_slow_batch_in_order_needs_more_than_the_mean_says)
{
    sheet_blank();
    for (int i = 0; i < 64; i++) { /* every eighth batch takes eight times as long */
        int fetch = i % 8 == 7 ? 64000 : 8000;
        sheet_add("main wait %d 8000 batch=%d\n", i * 18000, i);
        sheet_add("w%d fetch %d %d batch=%d worker=%d cpu=500\n", i % 2, i * 18000, fetch, i,
                  i % 2);
        sheet_add("main op %d 100 Optimizer.step#SGD.step\n", i * 18000 + 17800);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2}}}");
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    /* the mean says ceil(1.15 * 15 / 10) = 2: as many as there are */
    ck_assert_int_gt(analysis->loader.recommended_num_workers, 2);
    check_grammar(finding);
}
END_TEST

/* -- words ------------------------------------------------------------------------------------ */

START_TEST(numbers_are_said_as_people_do)
{
    ck_assert_str_eq(lac_format_band(9.6, 13.2).text, "10-13 %");
    ck_assert_str_eq(lac_format_band(0.2, 0.4).text, "0 %");
    ck_assert_str_eq(lac_format_band(-0.4, 1.2).text, "0-1 %");
    ck_assert_str_eq(lac_format_band(62.8, 63.4).text, "63 %");
    ck_assert_str_eq(lac_format_ns(9637000000000).text, "9 640 s"); /* three digits in any unit */
    ck_assert_str_eq(lac_format_ns(1049600000).text, "1.05 s");
    ck_assert_str_eq(lac_format_ns(999400000).text, "999 ms");
    ck_assert_str_eq(lac_format_count(1, "worker").text, "1 worker");
    ck_assert_str_eq(lac_format_count(2, "batch").text, "2 batches");
    ck_assert_str_eq(lac_format_count(3, "process").text, "3 processes");
    ck_assert_str_eq(lac_format_count(2, "copy").text, "2 copies");
    ck_assert_str_eq(lac_format_count(1200, "step").text, "1 200 steps");
}
END_TEST

static void draw_far_ahead(int steps)
{
    enum { MARKS_US = 1000, DEVICE_US = 5000 };
    sheet_blank();
    for (int i = 0; i < steps; i++) {
        sheet_add("main range %d %d ProfilerStep#%d\n", i * MARKS_US, MARKS_US, i);
        sheet_add("main op %d 200 Optimizer.step#SGD.step\n", i * MARKS_US + 700);
        unsigned corr = ++sheet_corr;
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", i * MARKS_US + 100, corr);
        sheet_add("gpu0.7 kernel %d %d #%u volta_sgemm_128x64_nn\n", 110 + i * DEVICE_US, DEVICE_US,
                  corr);
    }
    diagnose(NULL);
}

START_TEST(a_host_that_runs_ahead_through_all_steps_does_not_set_the_pace)
{
    draw_far_ahead(40);
    ck_assert(analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_host_ns, 1000000);
    ck_assert_int_eq(analysis->step_mean_ns, 5000000);
    ck_assert_uint_eq(analysis->step_kept_count, 39); /* nothing comes after the last */
    ck_assert_double_eq_tol(analysis->throughput_per_s, 200.0, 0.01);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "of every 5 ms step"));
    ck_assert_str_eq(
        analysis->verdict.detail,
        "The host runs ahead: it marks a step every 1 ms, but the GPU takes 5 ms per step.");
    ck_assert_ptr_null(sheet_finding("step-outliers"));
}
END_TEST

START_TEST(marks_in_less_time_than_two_steps_take_are_of_the_device_all_the_same)
{
    draw_far_ahead(8);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert_int_eq(analysis->step_mean_ns, 5000000);
    ck_assert_uint_eq(analysis->step_kept_count, 7);
    ck_assert_str_eq(
        analysis->verdict.text,
        "GPU-bound: compute kernels run for 5 ms of every 5 ms step (100 %), all of it "
        "matrix work off the tensor cores");
}
END_TEST

START_TEST(a_queue_that_is_always_full_sets_the_pace)
{
    sheet_blank();
    for (int i = 0; i < 8; i++) { /* launched two steps ahead, all the time */
        sheet_add("main range %d 5000 ProfilerStep#%d\n", i * 5000, i);
        sheet_add("main op %d 200 Optimizer.step#SGD.step\n", i * 5000 + 700);
        unsigned corr = ++sheet_corr;
        sheet_add("main call %d 4900 #%u cudaLaunchKernel\n", i * 5000 + 100, corr);
        sheet_add("gpu0.7 kernel %d 5000 #%u volta_sgemm_128x64_nn\n", 10000 + i * 5000, corr);
    }
    diagnose(NULL);
    ck_assert(!analysis->is_paced_by_device);
    ck_assert_int_eq(analysis->step_mean_ns, 5000000);
}
END_TEST

START_TEST(without_knowing_who_launched_what_the_device_is_replayed)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) { /* 60 ms of loading, then 100 ms of kernels; no ids */
        int begin = i * 160000;
        sheet_add("main range %d 160000 ProfilerStep#%d\n", begin, i);
        sheet_add("main wait %d 60000 batch=%d\n", begin, i);
        sheet_add("main op %d 200 Optimizer.step#SGD.step\n", begin + 61000);
        for (int k = 0; k < 10; k++) {
            sheet_add("main call %d 5 cudaLaunchKernel\n", begin + 60000 + k * 20);
            sheet_add("gpu0.7 kernel %d 9980 volta_sgemm_128x64_nn\n", begin + 60100 + k * 9980);
        }
        sheet_add("main call %d 98000 cudaStreamSynchronize\n", begin + 61900);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":0}}}");
    ck_assert_str_eq(analysis->replay.method, "device");
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_gt(finding->gain_mid_pct, 25.0); /* 37.5 when loading costs the host nothing */
    ck_assert_double_lt(finding->gain_mid_pct, 38.0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, who_waits_for_copies_does_not_copy);
    tcase_add_test(tcase, without_knowing_who_launched_what_the_device_is_replayed);
    tcase_add_test(tcase, a_host_that_runs_ahead_through_all_steps_does_not_set_the_pace);
    tcase_add_test(tcase, marks_in_less_time_than_two_steps_take_are_of_the_device_all_the_same);
    tcase_add_test(tcase, a_queue_that_is_always_full_sets_the_pace);
    tcase_add_test(tcase, without_a_gpu_the_training_process_is_judged);
    tcase_add_test(tcase, a_batch_that_waits_for_storage_is_told_from_one_that_computes);
    tcase_add_test(tcase, without_training_there_is_no_advice_for_it);
    tcase_add_test(tcase, data_in_time_is_said_to_be);
    tcase_add_test(tcase, no_more_workers_than_the_job_may_have_cores);
    tcase_add_test(tcase, a_read_that_drains_the_queue_costs_what_follows_it);
    tcase_add_test(tcase, one_wait_of_a_step_is_not_one_after_each_kernel);
    tcase_add_test(tcase, a_read_before_a_full_queue_costs_nothing);
    tcase_add_test(tcase, launches_are_blamed_only_when_the_host_can_be_trusted);
    tcase_add_test(tcase, a_full_queue_is_no_launch_problem);
    tcase_add_test(tcase, allocation_in_every_step_is_named);
    tcase_add_test(tcase, code_that_loads_in_every_step_is_named);
    tcase_add_test(tcase, one_rank_cannot_blame_the_network);
    tcase_add_test(tcase, checkpoints_are_a_kind_of_step);
    tcase_add_test(tcase, a_wait_inside_a_wait_is_one_batch);
    tcase_add_test(tcase, one_slow_batch_in_order_needs_more_than_the_mean_says);
    tcase_add_test(tcase, numbers_are_said_as_people_do);
}

int main(void)
{
    Suite *suite = suite_create("diagnose_verdicts");
    TCase *tcase = tcase_create("verdicts");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
