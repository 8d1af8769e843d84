/* What is said of traces that are no steady training, and which of several findings
 * is put first. */

#include "analysis/diagnose/diagnose.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

static void diagnose(void)
{
    sheet_diagnose("", 8);
}

/** An operator that launches a kernel; the device is done with it 1 us after `busy_us`. */
static void operator(double at_us, double busy_us, const char *op, const char *kernel)
{
    sheet_corr++;
    sheet_add("main op %.3f 6 %s\n", at_us, op);
    sheet_add("main call %.3f 3 #%u cudaLaunchKernel\n", at_us + 2.0, sheet_corr);
    sheet_add("gpu0.7 kernel %.3f %.3f #%u %s\n", at_us + 6.0, busy_us, sheet_corr, kernel);
}

/** A training step of 1 ms from `at_us` on; `pause_us` of it in the middle the
 *  host is elsewhere. */
static void step(double at_us, double pause_us)
{
    double part_us = (960.0 - pause_us) / 10.0;
    for (int i = 0; i < 10; i++) {
        double t = at_us + 10.0 + i * part_us + (i >= 5 ? pause_us : 0.0);
        operator(t, part_us - 4.0, i < 5 ? "aten::addmm" : "AddmmBackward0",
                 i < 5 ? "volta_sgemm_128x64_tn" : "volta_sgemm_128x64_nn_dgrad");
    }
}

static void named_step(int number, double pause_us)
{
    sheet_add("main range %d 1000 ProfilerStep#%d\n", number * 1000, number);
    step(number * 1000.0, pause_us);
}

/** Nothing that tells anybody to change a training. */
static void check_no_advice(void)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        ck_assert_int_eq((int)analysis->findings[i].severity, (int)LAC_SEVERITY_INFO);
        ck_assert_str_eq(analysis->findings[i].change, "");
        ck_assert_str_eq(analysis->findings[i].brief, "");
    }
    ck_assert_uint_eq(analysis->plan_count, 0);
}

/** What is said of a loop without gradients is not about gradients. */
static void check_no_training_words(void)
{
    static const char *const words[] = {"optimizer", "GradScaler", "bucket", "loss.backward"};
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        for (size_t w = 0; w < LAC_COUNT_OF(words); w++) {
            ck_assert_msg(strstr(finding->change, words[w]) == NULL, "%s: %s", finding->id,
                          finding->change);
            ck_assert_ptr_null(strstr(finding->costs, words[w]));
            ck_assert_ptr_null(strstr(finding->wrong_if, words[w]));
        }
    }
}

static void check_says(const char *part)
{
    ck_assert_msg(strstr(analysis->verdict.text, part) != NULL ||
                      strstr(analysis->verdict.detail, part) != NULL,
                  "\"%s\" is not in: %s. %s", part, analysis->verdict.text,
                  analysis->verdict.detail);
}

START_TEST(inference_is_called_inference)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) { /* idle for two thirds: a loop that trains would be told so */
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        for (int k = 0; k < 8; k++) {
            operator(i * 1000.0 + k * 40.0, 30.0, "aten::addmm", "volta_sgemm_128x64_tn");
        }
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    ck_assert_int_eq(analysis->verdict.letter, 'i');
    check_says("inference (no backward pass, no optimizer)");
    check_no_training_words();
    ck_assert(analysis->throughput_per_s > 0.0); /* its steps have names */
}
END_TEST

START_TEST(layers_of_one_forward_pass_that_builds_a_graph_are_no_inference_and_no_steps)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 8; k++) {
            double t = i * 1000.0 + k * 40.0;
            sheet_corr++;
            sheet_add("main op %.3f 6 aten::addmm seq=%d\n", t, 100 + i * 8 + k);
            sheet_add("main call %.3f 3 #%u cudaLaunchKernel\n", t + 2.0, sheet_corr);
            sheet_add("gpu0.7 kernel %.3f 30 #%u volta_sgemm_%dx64_tn\n", t + 6.0, sheet_corr,
                      k * 8);
        }
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_STEPS);
    ck_assert(analysis->is_part_of_step);
    check_says("a part of a training step that repeats every 1 ms (a layer?)");
    ck_assert(isnan(analysis->throughput_per_s));
    check_no_training_words();
    for (uint32_t i = 0; i < analysis->finding_count; i++) { /* what repeats is no step */
        ck_assert_ptr_null(strstr(analysis->findings[i].title, " step"));
        ck_assert_ptr_null(strstr(analysis->findings[i].expect, " step"));
    }
    ck_assert_uint_eq(analysis->plan_count, 0);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_STEPS) {
            ck_assert_str_eq(lac_model_str(model, model->tracks[t].name), "repeats");
            ck_assert_str_eq(lac_model_str(model, model->slices.name[model->tracks[t].first]),
                             "repeat 0");
        }
    }
}
END_TEST

START_TEST(a_loop_over_batches_in_one_marked_step_is_timed_by_the_batch)
{
    sheet_blank();
    sheet_add("main range 0 10010 ProfilerStep#6\n");
    for (int i = 0; i <= 5; i++) { /* the last time no batch comes */
        sheet_add("main range %d %d enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n",
                  i * 2000, i < 5 ? 1000 : 8);
        for (int k = 0; k < 8 && i < 5; k++) {
            operator(i * 2000.0 + 1010.0 + k * 40.0, 30.0, "aten::addmm", "volta_sgemm_128x64_tn");
        }
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_uint_eq(analysis->step_count, 5);
    ck_assert_int_eq(analysis->step_mean_ns, 2000000);
    ck_assert_uint_eq(analysis->loader.batch_count, 5);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 1000000);
}
END_TEST

START_TEST(an_iteration_of_an_engine_is_a_step)
{
    sheet_blank();
    sheet_add("main range 0 10000 execute_context_1(888_788544)_generation_0(0)\n");
    for (int i = 0; i < 10; i++) { /* layers */
        for (int k = 0; k < 8; k++) {
            operator(i * 1000.0 + 10.0 + k * 40.0, 30.0, "aten::addmm", "volta_sgemm_128x64_tn");
        }
    }
    diagnose();
    ck_assert_str_eq(analysis->step_method, "nvtx");
    ck_assert_uint_eq(analysis->step_count, 1);
    ck_assert_int_eq(analysis->step_mean_ns, 10000000);
}
END_TEST

START_TEST(an_evaluation_that_waits_for_data_gets_no_training_advice)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        sheet_add("main range %d 1000 evaluation step %d\n", i * 1000, i);
        sheet_add("main wait %d 500\n", i * 1000);
        for (int k = 0; k < 8; k++) {
            operator(i * 1000.0 + 510.0 + k * 40.0, 30.0, "aten::addmm", "volta_sgemm_128x64_tn");
        }
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    check_says("for data");
    ck_assert_str_eq(analysis->findings[0].id, "input-starvation");
    check_no_training_words();
}
END_TEST

START_TEST(a_cold_start_says_nothing_of_a_step)
{
    sheet_blank();
    sheet_add("main range 0 90000 ProfilerStep#0\n");
    for (int i = 0; i < 20; i++) {
        sheet_corr++;
        sheet_add("main call %d 3500 cuModuleLoadData\n", i * 4000);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", i * 4000 + 3600, sheet_corr);
        sheet_add("gpu0.7 kernel %d 50 #%u dgrad_kernel\n", i * 4000 + 3610, sheet_corr);
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_COLD_START);
    ck_assert_int_eq(analysis->verdict.letter, '~');
    check_says("first use of the GPU");
    check_no_advice();
    ck_assert(isnan(analysis->throughput_per_s));
}
END_TEST

START_TEST(one_step_is_said_to_be_one)
{
    sheet_blank();
    named_step(0, 600.0);
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_FEW_STEPS);
    ck_assert_int_eq(analysis->verdict.letter, '~');
    check_says("only 1 step after warm-up, too few");
    ck_assert_uint_eq(analysis->plan_count, 0);
    ck_assert(isnan(analysis->throughput_per_s));
}
END_TEST

START_TEST(three_steps_give_advice_as_far_as_they_are_alike)
{
    sheet_blank();
    for (int i = 0; i < 3; i++) {
        named_step(i, 500.0);
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert_uint_gt(analysis->finding_count, 0);
    ck_assert_str_ne(analysis->findings[0].change, "");
    ck_assert_str_eq(analysis->caveats[analysis->caveat_count - 1],
                     "3 steps: a change of less than 1 % cannot be told from noise");
    sheet_blank();
    for (int i = 0, at = 0; i < 3; i++) { /* the mean is known to 60 % of it: it may be chance */
        int length = i == 1 ? 1600 : 1000;
        sheet_add("main range %d %d ProfilerStep#%d\n", at, length, i);
        step(at, 500.0);
        at += length;
    }
    diagnose();
    ck_assert_double_gt(analysis->step_uncertain_pct, 50.0);
    check_no_advice();
}
END_TEST

START_TEST(a_trace_of_the_processor_alone_says_so)
{
    sheet_blank();
    for (int i = 0; i < 8; i++) {
        sheet_add("main op %d 90 aten::conv2d\n", i * 100);
    }
    diagnose();
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_NO_GPU);
    ck_assert_int_eq(analysis->verdict.letter, '?');
    check_says("no GPU operation and no CUDA call");
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert(isnan(analysis->throughput_per_s));
}
END_TEST

START_TEST(the_cause_of_a_short_trace_is_the_one_its_sentence_names)
{
    sheet_blank();
    sheet_add("main range 0 1000 ProfilerStep#0\n");
    sheet_add("main op 5 5 AddmmBackward0\n");
    sheet_add("gpu0.7 kernel 10 200 volta_fp16_s884gemm_fp16_dgrad\n");
    sheet_add("gpu0.13 kernel 220 600 ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n");
    sheet_add("gpu0.7 kernel 900 90 volta_fp16_s884gemm_fp16_dgrad\n");
    diagnose();
    ck_assert_str_eq(analysis->verdict.cause, "comm");
    check_says("exposed (non-overlapped) communication takes 0.6 ms of the 1 ms step (60 %)");
}
END_TEST

/* -- which is put first -------------------------------------------------------------------------*/

START_TEST(what_is_paid_once_is_not_put_first)
{
    for (int every = 2; every <= 20; every += 18) {
        sheet_blank();
        for (int i = 0; i < 40; i++) {
            bool loads = every == 2 ? i % 2 == 0 : i == 5 || i == 7;
            double at = i * 2000.0;
            sheet_add("main range %.0f 2000 ProfilerStep#%d\n", at, i);
            for (int k = 0; k < 6;
                 k++) { /* a read that waits until the queue is empty, then Python */
                sheet_add("main op %.0f 6 AddmmBackward0\n", at + 10.0 + k * 8.0);
                sheet_add("main call %.0f 3 #%u cudaLaunchKernel\n", at + 12.0 + k * 8.0,
                          ++sheet_corr);
                sheet_add("gpu0.7 kernel %.0f 96 #%u sgemm_dgrad\n", at + 16.0 + k * 97.0,
                          sheet_corr);
            }
            sheet_add("main call %.0f 600 cudaStreamSynchronize\n", at + 60.0);
            if (loads) {
                sheet_add("main call %.0f 800 cuModuleLoadData\n", at + 1000.0);
            }
            operator(at + 1850.0, 90.0, "AddmmBackward0", "sgemm_dgrad");
        }
        diagnose();
        const struct lac_finding *module = sheet_finding("module-load");
        if (every == 2) {
            ck_assert_ptr_nonnull(module);
            ck_assert(!module->is_one_time_cost);
            ck_assert_int_ge((int)module->severity, (int)LAC_SEVERITY_WARNING);
        } else if (module != NULL) {
            ck_assert(module->is_one_time_cost);
            ck_assert_int_eq((int)module->severity, (int)LAC_SEVERITY_INFO);
            ck_assert_ptr_ne(module, &analysis->findings[0]);
        }
        ck_assert_ptr_nonnull(sheet_finding("sync-stall"));
    }
}
END_TEST

START_TEST(no_finding_gains_more_than_the_idle_time)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 40; i++) { /* a value read at the end of a step, and steps that save */
        bool saves = i % 8 == 7;
        double length = saves ? 4000.0 : 1000.0;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, length, i);
        for (int k = 0; k < 10; k++) {
            sheet_corr++;
            sheet_add("main op %.1f 6 AddmmBackward0\n", t + 3.0 + k * 8.0);
            sheet_add("main call %.1f 3 #%u cudaLaunchKernel\n", t + 5.0 + k * 8.0, sheet_corr);
            sheet_add("gpu0.7 kernel %.1f 97 #%u layer_norm_backward\n", t + 12.0 + k * 97.5,
                      sheet_corr);
        }
        sheet_corr++;
        sheet_add("main op %.1f 905 aten::_local_scalar_dense\n", t + 88.0);
        sheet_add("main call %.1f 900 #%u cudaMemcpyAsync\n", t + 90.0, sheet_corr);
        sheet_add("gpu0.7 copy %.1f 1 #%u DtoH pageable 4\n", t + 988.0, sheet_corr);
        if (saves) {
            sheet_add("main call %.1f 2 cudaDeviceSynchronize\n", t + 995.0);
            sheet_add("main range %.1f 2990 checkpoint\n", t + 998.0);
        }
        t += length;
    }
    diagnose();
    double idle_pct =
        100.0 - 100.0 * (double)analysis->needs.gpu_ns / (double)analysis->step_mean_ns;
    ck_assert(idle_pct < 5.0);
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        ck_assert_msg(isnan(finding->gain_high_pct) || finding->gain_high_pct <= idle_pct + 0.1,
                      "%s gains %.1f of %.1f %%", finding->id, finding->gain_high_pct, idle_pct);
    }
}
END_TEST

/* -- steps longer than their like ---------------------------------------------------------------*/

/** Forty steps; those of `is_long` are three times as long, with the host elsewhere. */
static void forty_steps(bool (*is_long)(int))
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 40; i++) {
        double length = is_long(i) ? 3000.0 : 1000.0;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, length, i);
        step(t, 20.0);
        t += length;
    }
    diagnose();
}

static bool long_by_accident(int i)
{
    return i == 12 || i == 29;
}

static bool long_every_eleventh(int i)
{
    return i % 11 == 10;
}

START_TEST(steps_longer_than_their_like_are_named)
{
    forty_steps(long_by_accident);
    const struct lac_finding *outliers = sheet_finding("step-outliers");
    ck_assert_ptr_nonnull(outliers);
    ck_assert_ptr_nonnull(strstr(outliers->title, "2 of 40 steps"));
    ck_assert_int_eq((int)outliers->severity, (int)LAC_SEVERITY_INFO);
    ck_assert(analysis->steps[12].is_outlier);
}
END_TEST

START_TEST(a_cycle_of_the_loop_is_no_accident)
{
    forty_steps(long_every_eleventh);
    ck_assert_ptr_null(sheet_finding("step-outliers"));
}
END_TEST

START_TEST(long_waits_of_workers_in_phase_are_no_outliers)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 48; i++) {
        double wait = i % 12 == 0 ? 6000.0 : 5.0;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, wait + 1000.0, i);
        sheet_add("main wait %.0f %.0f batch=%d\n", t, wait, i);
        step(t + wait, 10.0);
        t += wait + 1000.0;
    }
    diagnose();
    ck_assert_ptr_null(sheet_finding("step-outliers"));
}
END_TEST

START_TEST(steps_that_did_other_work_are_no_outliers)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 40; i++) {
        bool is_other = i == 12 || i == 29; /* half as many operations again */
        double length = is_other ? 1500.0 : 1000.0;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, length, i);
        step(t, 20.0);
        for (int k = 0; k < 5 && is_other; k++) {
            operator(t + 1000.0 + k * 90.0, 80.0, "aten::addmm", "volta_sgemm_128x64_tn");
        }
        t += length;
    }
    diagnose();
    ck_assert_ptr_null(sheet_finding("step-outliers"));
}
END_TEST

/* -- the run as a whole -------------------------------------------------------------------------*/

START_TEST(steps_that_grow_all_the_time_drift)
{
    sheet_blank();
    double t = 0.0;
    for (int i = 0; i < 60; i++) {
        double wait = 5.0 + i * 8.0 + (i * 37) % 11;
        sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, wait + 1000.0, i);
        sheet_add("main wait %.0f %.0f\n", t, wait);
        step(t + wait, 10.0);
        t += wait + 1000.0;
    }
    diagnose();
    const struct lac_finding *drift = sheet_finding("drift");
    ck_assert_ptr_nonnull(drift);
    ck_assert_ptr_nonnull(strstr(drift->title, "longer"));
    ck_assert_ptr_nonnull(strstr(drift->why, "waiting for data"));
    ck_assert_int_eq((int)drift->severity, (int)LAC_SEVERITY_INFO);
}
END_TEST

START_TEST(noise_and_a_jump_are_no_drift)
{
    for (int jumps = 0; jumps < 2; jumps++) {
        sheet_blank();
        double t = 0.0;
        for (int i = 0; i < 60; i++) {
            double wait = jumps ? (i < 15 ? 5.0 : 300.0) : (double)((i * 7919) % 97) * 5.0;
            sheet_add("main range %.0f %.0f ProfilerStep#%d\n", t, wait + 1000.0, i);
            sheet_add("main wait %.0f %.0f\n", t, wait);
            step(t + wait, 10.0);
            t += wait + 1000.0;
        }
        diagnose();
        ck_assert_ptr_null(sheet_finding("drift"));
    }
}
END_TEST

/* -- a wait that nobody named -------------------------------------------------------------------*/

/** Steps of the optimizer's kernels; before each the device is idle until something comes. */
static void steps_without_names(bool has_copy, bool is_host_busy)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        double t = i * 3000.0;
        if (is_host_busy) {
            sheet_add("main op %.0f 1850 aten::augment\n", t + 10.0);
        }
        sheet_corr++;
        sheet_add("main call %.0f 5 #%u cudaMemcpyAsync\n", t + 1900.0, sheet_corr);
        sheet_add("gpu0.7 copy %.0f 50 #%u %s\n", t + 1910.0, sheet_corr,
                  has_copy ? "HtoD pinned 9000000" : "HtoD pinned 400");
        for (int k = 0; k < 8; k++) {
            operator(t + 1950.0 + k * 110.0, 100.0, "AddmmBackward0", "sgemm_dgrad");
        }
        operator(t + 2830.0, 100.0, "aten::_fused_adamw_", "multi_tensor_apply_kernel<Adam>");
    }
    diagnose();
    ck_assert_str_eq(analysis->step_method, "optimizer_kernels");
}

START_TEST(a_wait_that_looks_like_data_is_said_with_doubt)
{
    steps_without_names(true, false);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert(finding->confidence < 0.5);
    ck_assert(isnan(finding->gain_mid_pct)); /* nothing is promised */
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert_ptr_nonnull(strstr(finding->title, "seems to wait"));
    steps_without_names(false, false); /* no batch comes */
    ck_assert_ptr_null(sheet_finding("input-starvation"));
    steps_without_names(true, true); /* the host was seen to work */
    ck_assert_ptr_null(sheet_finding("input-starvation"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_honest");
    TCase *tcase = tcase_create("honest");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, inference_is_called_inference);
    tcase_add_test(tcase,
                   layers_of_one_forward_pass_that_builds_a_graph_are_no_inference_and_no_steps);
    tcase_add_test(tcase, a_loop_over_batches_in_one_marked_step_is_timed_by_the_batch);
    tcase_add_test(tcase, an_iteration_of_an_engine_is_a_step);
    tcase_add_test(tcase, an_evaluation_that_waits_for_data_gets_no_training_advice);
    tcase_add_test(tcase, a_cold_start_says_nothing_of_a_step);
    tcase_add_test(tcase, one_step_is_said_to_be_one);
    tcase_add_test(tcase, three_steps_give_advice_as_far_as_they_are_alike);
    tcase_add_test(tcase, a_trace_of_the_processor_alone_says_so);
    tcase_add_test(tcase, the_cause_of_a_short_trace_is_the_one_its_sentence_names);
    tcase_add_test(tcase, what_is_paid_once_is_not_put_first);
    tcase_add_test(tcase, no_finding_gains_more_than_the_idle_time);
    tcase_add_test(tcase, steps_longer_than_their_like_are_named);
    tcase_add_test(tcase, a_cycle_of_the_loop_is_no_accident);
    tcase_add_test(tcase, long_waits_of_workers_in_phase_are_no_outliers);
    tcase_add_test(tcase, steps_that_did_other_work_are_no_outliers);
    tcase_add_test(tcase, steps_that_grow_all_the_time_drift);
    tcase_add_test(tcase, noise_and_a_jump_are_no_drift);
    tcase_add_test(tcase, a_wait_that_looks_like_data_is_said_with_doubt);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
