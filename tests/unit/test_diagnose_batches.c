/* Which batches feed the training where a validation takes some as well, and steps that take several. */
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define IN_PROCESS   "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define WITH_WORKERS "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

/** Forward, and for a step of training backward and the update; 4 ms of the device. */
static void compute(double at, bool trains)
{
    sheet_add("main op %.0f 200 aten::conv2d\n", at);
    sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 20, ++sheet_corr);
    sheet_add("gpu0.7 kernel %.0f %d #%u sgemm\n", at + 40, trains ? 2000 : 4000, sheet_corr);
    if (trains) {
        sheet_add("main op %.0f 200 ConvolutionBackward0\n", at + 300);
        sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 320, ++sheet_corr);
        sheet_add("gpu0.7 kernel %.0f 2000 #%u dgrad\n", at + 2040, sheet_corr);
        sheet_add("main range %.0f 100 Optimizer.step#SGD.step\n", at + 600);
    }
    sheet_add("main call %.0f %.0f cudaDeviceSynchronize\n", at + 800, 3300.0);
}

/** 24 marked steps that wait `train` us for a batch and compute 5 ms; after each 12 of them a validation
 *  of 30 batches, outside of marks. */
static void draw(const char *train_name, int train, const char *val_name, int val)
{
    double at = 0.0;
    sheet_blank();
    for (int step = 0; step < 24; step++) {
        sheet_add("main range %.0f %d ProfilerStep#%d\n", at, train + 5000, step);
        sheet_add("main range %.0f %d %s\n", at, train, train_name);
        compute(at + train, true);
        at += train + 5000;
        for (int batch = 0; step % 12 == 11 && batch < 30; batch++) {
            sheet_add("main range %.0f %d %s\n", at, val, val_name);
            compute(at + val, false);
            at += val + 5000;
        }
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_wait_inside_the_iterators_own_range_leaves_it_its_name)
{
    double at = 0.0;
    sheet_blank();
    for (int step = 0; step < 12; step++) {
        sheet_add("main range %.0f 15000 ProfilerStep#%d\n", at, step);
        sheet_add("main range %.0f 10000 " IN_PROCESS "\n", at);
        sheet_add("main wait %.0f 9990 batch=%d\n", at + 5, step);
        compute(at + 10000, true);
        at += 15000;
    }
    sheet_diagnose(NULL, 8);
    ck_assert_int_eq(analysis->loader.num_workers, 0);
}
END_TEST

START_TEST(a_batch_takes_what_the_trainings_take)
{
    draw(IN_PROCESS, 10000, IN_PROCESS, 500);
    ck_assert_int_eq(analysis->loader.num_workers, 0);
    ck_assert_uint_eq(analysis->loader.batch_count, 24 + 60);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 10000000);
    ck_assert_int_eq(analysis->needs.data_ns, 10000000);
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 3); /* 1.15 x 10 ms / 5 ms */
    /* 15 -> 5 ms; what the validation gains by workers is no part of it */
    ck_assert_double_eq_tol(analysis->findings[0].gain_mid_pct, 100.0 * 10 / 15, 2.0);
    ck_assert_uint_eq(analysis->phase_count, 4);
    ck_assert_uint_eq(analysis->phases[1].kind, LAC_PHASE_VALIDATION);
    ck_assert_int_eq(analysis->phases[1].dur_ns, 30 * 5500000);
}
END_TEST

START_TEST(the_loader_of_the_training_has_the_workers)
{
    draw(WITH_WORKERS, 10000, IN_PROCESS, 500);
    ck_assert_int_eq(analysis->loader.num_workers, -1);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, LAC_UNKNOWN_NS);
    ck_assert_ptr_null(strstr(analysis->findings[0].change, "now 0"));
    draw(IN_PROCESS, 10000, WITH_WORKERS, 500);
    ck_assert_int_eq(analysis->loader.num_workers, 0);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 10000000);
}
END_TEST

START_TEST(fetches_of_a_validation_are_not_averaged_in)
{
    double at = 0.0;
    sheet_blank();
    for (int step = 0; step < 24;
         step++) { /* two workers of 20 ms, a step of 5 ms: 10 ms a batch */
        sheet_add("main range %.0f 10000 ProfilerStep#%d\n", at, step);
        sheet_add("main wait %.0f 5000 batch=%d\n", at, step);
        sheet_add("w%d fetch %.0f 20000 batch=%d worker=%d\n", step % 2, at, step + 2, step % 2);
        compute(at + 5000, true);
        at += 10000;
        for (int batch = 0; step == 11 && batch < 30; batch++) {
            sheet_add("main wait %.0f 500 batch=%d\n", at, batch);
            sheet_add("w%d fetch %.0f 1000 batch=%d worker=%d\n", 4 + batch % 4, at, batch,
                      batch % 4);
            compute(at + 500, false);
            at += 5500;
        }
        at += step == 11 ? 20000 : 0; /* the workers have made two batches meanwhile */
    }
    sheet_diagnose(NULL, 8);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 20000000);
    ck_assert_uint_eq(analysis->loader.fetch_count, 23); /* one is half in the validation */
    ck_assert_int_eq(analysis->loader.num_workers, 2);
    ck_assert_int_eq(analysis->needs.data_ns, 10000000);
}
END_TEST

/** Four batches a step, in the training process: 8 ms each, of 13 ms. */
START_TEST(a_step_needs_all_its_batches)
{
    double at = 0.0;
    sheet_blank();
    for (int step = 0; step < 12; step++) {
        sheet_add("main range %.0f %d ProfilerStep#%d\n", at, 4 * 13000, step);
        for (int batch = 0; batch < 4; batch++) {
            sheet_add("main range %.0f 8000 %s\n", at, IN_PROCESS);
            compute(at + 8000, batch == 3);
            at += 13000;
        }
    }
    sheet_diagnose("{\"lacuna\":{\"settings\":{\"batch_size\":32}}}", 8);
    ck_assert_int_eq(analysis->loader.fetch_mean_ns, 8000000);
    ck_assert_int_eq(analysis->loader.batches_per_step, 4);
    ck_assert_int_eq(analysis->needs.data_ns, 32000000);
    ck_assert_double_eq_tol(analysis->throughput_per_s, 4 * 32 / 0.052, 50.0);
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 2); /* 1.15 x 32 ms / 20 ms */
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].change, "num_workers=2"));
    ck_assert_str_eq(analysis->findings[0].wrong_if,
                     "a batch takes more than 10 ms with 2 workers.");
}
END_TEST

/** An update takes four batches; each mark begins with the second batch of one and ends with the first
 *  of the next, so only three lie between a mark and the optimizer. */
START_TEST(a_mark_may_begin_inside_of_an_update)
{
    static const char *const kernels[] = {"ampere_sgemm_qkv", "flash_fwd_kernel", "ln_fwd", "gelu"};
    sheet_blank();
    for (int batch = 0; batch < 48; batch++) {
        const double at = batch * 10000.0;
        if (batch % 4 == 1 && batch < 45) {
            sheet_add("main range %.0f 39900 ProfilerStep#%d\n", at, batch / 4);
        }
        sheet_add("main range %.0f 4000 %s\n", at + 10, IN_PROCESS);
        for (int k = 0; k < 12; k++) {
            sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 4100 + k * 400, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.0f 380 #%u %s_%d\n", at + 4110 + k * 400, sheet_corr,
                      kernels[k % 4], k / 4);
        }
        if (batch % 4 == 3) {
            sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 9000, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.0f 300 #%u multi_tensor_apply_kernel<AdamFunctor>\n",
                      at + 9010, sheet_corr);
        }
    }
    sheet_diagnose("{\"lacuna\":{\"settings\":{\"batch_size\":32}}}", 8);
    ck_assert_uint_eq(analysis->micro_step_count, 4);
    ck_assert(!analysis->is_step_micro);
    ck_assert_double_eq_tol(analysis->throughput_per_s, 4 * 32 / 0.040, 50.0);
}
END_TEST

/** A recording that begins with a wait: ten marked steps of 10 ms, half of them waiting. */
START_TEST(a_wait_before_the_first_operation_is_no_part_of_the_step_without)
{
    sheet_blank();
    for (int step = 0; step < 10; step++) {
        const double at = step * 10000.0 + (step % 3) * 400.0; /* no pace of the device */
        sheet_add("main range %.0f 9000 ProfilerStep#%d\n", at, step);
        sheet_add("main range %.0f 4000 %s\n", at, WITH_WORKERS);
        compute(at + 4000, true);
    }
    sheet_diagnose(NULL, 8);
    const int64_t waits_ns = analysis->step_mean_ns - analysis->step_without_starvation_ns;
    ck_assert_int_eq(waits_ns, analysis->partition.part_ns[lac_time_part_of(LAC_CAUSE_DATA_WAIT)]);
}
END_TEST

/** Steps without marks ask two loaders, one after the other. */
START_TEST(a_step_may_ask_two_loaders)
{
    sheet_blank();
    for (int step = 0; step < 24; step++) {
        const double at = step * 20000.0;
        sheet_add("main range %.0f 10000 %s\n", at, IN_PROCESS);
        sheet_add("main range %.0f 4000 %s\n", at + 10100, IN_PROCESS);
        compute(at + 14200, true);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_int_eq(analysis->step_mean_ns, 20000000);
    ck_assert(!analysis->is_step_micro);
    ck_assert_int_eq(analysis->needs.data_ns, 14000000);
}
END_TEST

/** Without marks: 12 steps of 15 ms train, then 30 batches of 7 ms validate, three times. */
/** 20 steps that wait `own` us (0: not at all) and compute 5 ms, beside a thread of the same process that
 *  waits 4 ms for each batch and copies it to the device. */
static void draw_with_a_prefetcher(int own)
{
    sheet_blank();
    for (int step = 0; step < 20; step++) {
        const double at = step * (own + 5000.0);
        sheet_add("main range %.0f %d ProfilerStep#%d\n", at, own + 5000, step);
        if (own > 0) {
            sheet_add("main range %.0f %d %s\n", at, own, WITH_WORKERS);
        }
        compute(at + own, true);
        sheet_add("ahead range %.0f 4000 %s\n", at, WITH_WORKERS);
        sheet_add("ahead call %.0f 20 #%u cudaMemcpyAsync\n", at + 4000, ++sheet_corr);
        sheet_add("gpu0.9 copy %.0f 500 #%u HtoD pinned 1000000\n", at + 4010, sheet_corr);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(waits_of_a_thread_that_fetches_ahead_are_no_waits_of_the_training)
{
    draw_with_a_prefetcher(500);
    ck_assert_int_eq(analysis->loader.wait_ns, 20 * 500000);
    ck_assert_uint_eq(analysis->loader.batch_count, 20);
    draw_with_a_prefetcher(0); /* they are all that tells of the loader */
    ck_assert_int_eq(analysis->loader.wait_ns, 20 * 4000000);
}
END_TEST

START_TEST(a_validation_may_take_more_batches_than_the_training)
{
    double at = 0.0;
    sheet_blank();
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int batch = 0; batch < 42; batch++) {
            const int wait = batch < 12 ? 10000 : 2000;
            sheet_add("main range %.0f %d %s\n", at, wait, WITH_WORKERS);
            compute(at + wait, batch < 12);
            at += wait + 5000;
        }
    }
    sheet_diagnose(NULL, 8);
    ck_assert_str_eq(analysis->step_method, "dataloader");
    ck_assert_int_eq(analysis->steps[20].kind, LAC_KIND_VALIDATION);
    ck_assert_int_eq(analysis->step_mean_ns, 15000000);
}
END_TEST

/** Three epochs of ten steps of 15 ms; each ends in a request in vain, and begins with a wait of `first`
 *  us. */
static void draw_epochs(const char *name, int first)
{
    double at = 0.0;
    sheet_blank();
    for (int step = 0; step < 30; step++) {
        const int wait = step % 10 == 0 ? first : 100;
        sheet_add("main range %.0f %d ProfilerStep#%d\n", at, wait + 15000, step);
        sheet_add("main range %.0f %d %s\n", at, wait, name);
        compute(at + wait, true);
        compute(at + wait + 5000, true);
        compute(at + wait + 10000, true);
        at += wait + 15000;
        if (step % 10 == 9) {
            sheet_add("main range %.0f 3000 %s\n", at, name);
            at += 3100;
        }
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(workers_that_start_for_every_epoch_show_without_batch_numbers)
{
    draw_epochs(WITH_WORKERS, 400000);
    const struct lac_finding *finding = sheet_finding("worker-respawn");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("input-starvation"));
    /* two starts in 30 steps of 55 ms; eight steps of 15 are left of each */
    ck_assert_double_eq_tol(finding->gain_mid_pct, 100.0 * 2 * (400 - 120) / 1650, 3.0);
    draw_epochs(WITH_WORKERS, 150000); /* may be what a batch takes */
    ck_assert_ptr_null(sheet_finding("worker-respawn"));
    draw_epochs(IN_PROCESS, 400000);
    ck_assert_ptr_null(sheet_finding("worker-respawn"));
}
END_TEST

/** Eight workers of 40 ms keep up with a step of 5 ms; the thread that pins takes 9 ms a batch. A value
 *  is read in each step. */
START_TEST(one_thread_that_pins_is_the_pace)
{
    sheet_blank();
    for (int step = 0; step < 40; step++) {
        const double at = step * 9000.0;
        sheet_add("w%d fetch %.0f 40000 batch=%d worker=%d cpu=30000\n", step % 8, at + 1000, step,
                  step % 8);
        sheet_add("pin part %.0f 9000 loader.pin batch=%d\n", at + 100000, step);
        sheet_add("main range %.0f 9000 ProfilerStep#%d\n", at + 105000, step);
        sheet_add("main wait %.0f 4010 batch=%d\n", at + 105000, step);
        compute(at + 109020, true);
    }
    sheet_diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":8}}}", 8);
    ck_assert_int_eq(analysis->step_mean_ns, 9000000);
    ck_assert_int_eq(analysis->loader.pin_mean_ns, 9000000);
    ck_assert_int_eq(analysis->loader.batches_per_step, 1);
    ck_assert_int_eq(analysis->needs.data_ns, 9000000);
    ck_assert_str_eq(analysis->findings[0].id, "worker-hand-over");
    ck_assert_double_gt(analysis->findings[0].gain_mid_pct, 35.0); /* of 4 / 9 */
    const struct lac_finding *sync = sheet_finding("sync-stall");
    ck_assert(sync == NULL || isnan(sync->gain_mid_pct) || sync->gain_mid_pct < 3.0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("diagnose_batches");
    TCase *const tests = tcase_create("batches");

    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, a_mark_may_begin_inside_of_an_update);
    tcase_add_test(tests, a_wait_inside_the_iterators_own_range_leaves_it_its_name);
    tcase_add_test(tests, a_batch_takes_what_the_trainings_take);
    tcase_add_test(tests, the_loader_of_the_training_has_the_workers);
    tcase_add_test(tests, fetches_of_a_validation_are_not_averaged_in);
    tcase_add_test(tests, a_step_needs_all_its_batches);
    tcase_add_test(tests, a_wait_before_the_first_operation_is_no_part_of_the_step_without);
    tcase_add_test(tests, a_step_may_ask_two_loaders);
    tcase_add_test(tests, waits_of_a_thread_that_fetches_ahead_are_no_waits_of_the_training);
    tcase_add_test(tests, a_validation_may_take_more_batches_than_the_training);
    tcase_add_test(tests, workers_that_start_for_every_epoch_show_without_batch_numbers);
    tcase_add_test(tests, one_thread_that_pins_is_the_pace);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
