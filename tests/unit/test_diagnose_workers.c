/* Workers that nobody recorded, told by the rhythm of the waits for their batches, and waits that have
 * a rhythm for other reasons. */

#include "analysis/diagnose/diagnose.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { BATCHES_MAX = 200, WORKERS_MAX = 16 };

/** A loop, in us; the trace shows only its waits. */
struct job {
    int batches, workers;
    double fetch, step;
    double cold;   /**< the first step takes that much longer */
    double jitter; /**< of a fetch, as a part of it */
    double ready[BATCHES_MAX], taken[BATCHES_MAX];
    bool is_apart;  /**< workers began one after the other, evenly */
    int long_every; /**< every so manieth step of the training takes twice as long */
};

/** When batch `b` is there: asked for two ahead of each worker, made after the worker's one before. */
static double ready_at(struct job *job, int b)
{
    int ahead = 2 * job->workers;
    double asked = b >= ahead      ? job->taken[b - ahead]
                   : job->is_apart ? job->fetch * (b % job->workers) / job->workers
                                   : 0.0;
    double free = b >= job->workers ? job->ready[b - job->workers] : 0.0;
    double wobble = job->jitter * (double)((b * 7919) % 13 - 6) / 6.0;
    return (asked > free ? asked : free) + job->fetch * (1.0 + wobble);
}

static void draw(struct job *job)
{
    sheet_blank();
    double now = 0.0;
    for (int b = 0; b < job->batches; b++) {
        double from = now;
        job->ready[b] = ready_at(job, b);
        now = (job->ready[b] > now ? job->ready[b] : now) + 30.0;
        job->taken[b] = now;
        sheet_add(
            "main op %.1f %.1f enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__\n",
            from, now - from);
        bool is_long = job->long_every > 0 && b % job->long_every == 0;
        double step = job->step * (is_long ? 2.0 : 1.0) + (b == 0 ? job->cold : 0.0);
        sheet_add("main call %.1f 5 #%u cudaLaunchKernel\n", now + 20, ++sheet_corr);
        sheet_add("gpu0.7 kernel %.1f %.1f #%u dgrad_s16816cudnn_kernel\n", now + 40, step - 120,
                  sheet_corr);
        sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", now + 50, step - 100);
        sheet_add("main op %.1f 20 Optimizer.step#SGD.step\n", now + step - 40);
        now += step;
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(workers_and_their_fetches_show_in_the_rhythm_of_the_waits)
{
    struct job job = {.batches = 40, .workers = 4, .fetch = 100e3, .step = 10e3, .jitter = 0.03};
    draw(&job);
    ck_assert(analysis->loader.are_workers_inferred);
    ck_assert_int_eq(analysis->loader.num_workers, 4);
    ck_assert(fabs((double)analysis->loader.fetch_mean_ns / 100e6 - 1.0) < 0.03);
    ck_assert(fabs((double)analysis->step_mean_ns / 25e6 - 1.0) < 0.03);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_int_eq(finding->workers, 12); /* 1.15 * 100 / 10 */
    ck_assert_ptr_nonnull(strstr(finding->change, "now 4, by the waits"));
    ck_assert(fabs((double)finding->step_mid_ns / 10e6 - 1.0) < 0.1);
}
END_TEST

START_TEST(without_workers_a_batch_takes_what_it_takes_one_of_them)
{
    struct job job = {.batches = 40, .workers = 4, .fetch = 100e3, .step = 10e3, .jitter = 0.03};
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *changed = NULL;
    draw(&job);
    ck_assert_int_eq(lac_what_if_parse("workers=0", &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &changed, NULL), LAC_OK);
    ck_assert_double_eq_tol((double)changed->what_if_step.mean_ns, 110e6, 3e6);
    lac_analysis_destroy(changed);
}
END_TEST

START_TEST(batches_that_lay_ready_are_not_the_pace)
{
    struct job job = {
        .batches = 24, .workers = 3, .fetch = 90e3, .step = 10e3, .cold = 400e3, .jitter = 0.01};
    draw(&job);
    ck_assert(analysis->loader.are_workers_inferred);
    ck_assert_int_eq(analysis->loader.num_workers, 3);
    ck_assert(fabs((double)analysis->step_mean_ns / 30e6 - 1.0) < 0.03);
}
END_TEST

START_TEST(one_turn_of_workers_has_a_mean)
{
    struct job job = {
        .batches = 10, .workers = 2, .fetch = 90e3, .step = 10e3, .cold = 400e3, .jitter = 0.001};
    draw(&job);
    ck_assert_int_eq(analysis->loader.num_workers, 2);
    ck_assert_uint_eq(analysis->step_kept_count, 2); /* 10 and 80 ms */
    ck_assert_int_eq(analysis->workload, LAC_WORKLOAD_TRAINING);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "num_workers=11"));
}
END_TEST

/** Without a rhythm it is known how many times as many workers it takes, and no more. */
static void check_times_as_many(const char *times)
{
    ck_assert(!analysis->loader.are_workers_inferred);
    ck_assert_int_eq(analysis->loader.num_workers, -1);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_msg(strstr(finding->change, times) != NULL, "%s", finding->change);
    ck_assert(finding->gain_low_pct < finding->gain_mid_pct);
}

START_TEST(workers_that_deliver_evenly_have_no_number)
{
    struct job job = {.batches = 60,
                      .workers = 4,
                      .fetch = 100e3,
                      .step = 10e3,
                      .jitter = 0.01,
                      .is_apart = true};
    draw(&job);
    check_times_as_many("num_workers=N)  # N: 2.9 times as many as now"); /* 1.15 * 25 / 10 */
}
END_TEST

START_TEST(what_the_training_does_every_fourth_step_is_no_workers)
{
    struct job job = {.batches = 60,
                      .workers = 6,
                      .fetch = 72e3,
                      .step = 9e3,
                      .jitter = 0.01,
                      .is_apart = true,
                      .long_every = 4};
    draw(&job);
    ck_assert(!analysis->loader.are_workers_inferred);
}
END_TEST

START_TEST(a_loader_that_keeps_up_tells_nothing)
{
    struct job job = {.batches = 40, .workers = 4, .fetch = 30e3, .step = 10e3, .jitter = 0.03};
    draw(&job);
    ck_assert(!analysis->loader.are_workers_inferred);
    ck_assert_ptr_null(sheet_finding("input-starvation"));
}
END_TEST

START_TEST(slow_batches_by_chance_have_no_rhythm)
{
    struct job job = {.batches = 60, .workers = 4, .fetch = 100e3, .step = 10e3, .jitter = 0.6};
    draw(&job);
    if (analysis->loader.are_workers_inferred) { /* if at all, the right number */
        ck_assert_int_eq(analysis->loader.num_workers, 4);
    }
    ck_assert_ptr_nonnull(sheet_finding("input-starvation"));
}
END_TEST

/** Fetches of `shown` batches from number `first` on, where batch b is worker b mod `workers`'s. */
static void draw_window(int first, int shown, int workers)
{
    sheet_blank();
    for (int b = first; b < first + shown; b++) {
        double at = 1000.0 * (b - first);
        sheet_add("w%d fetch %.1f 900 batch=%d worker=%d\n", b % workers, at, b, b % workers);
        sheet_add("main wait %.1f 900 batch=%d\n", at + 20.0, b);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(less_than_a_round_of_batches_tells_the_workers_that_it_lacks)
{
    draw_window(8, 6, 8); /* batch 8 is worker 0's: neither six nor seven fit */
    ck_assert_int_eq(analysis->loader.num_workers, 8);
    draw_window(16, 6, 8); /* or 16 of them */
    ck_assert_int_eq(analysis->loader.num_workers, -1);
    draw_window(16, 20, 8);
    ck_assert_int_eq(analysis->loader.num_workers, 8);
    draw_window(0, 6, 8); /* the first round: nothing speaks against six */
    ck_assert_int_eq(analysis->loader.num_workers, 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_workers");
    TCase *tests = tcase_create("workers by their waits");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, workers_and_their_fetches_show_in_the_rhythm_of_the_waits);
    tcase_add_test(tests, without_workers_a_batch_takes_what_it_takes_one_of_them);
    tcase_add_test(tests, batches_that_lay_ready_are_not_the_pace);
    tcase_add_test(tests, one_turn_of_workers_has_a_mean);
    tcase_add_test(tests, workers_that_deliver_evenly_have_no_number);
    tcase_add_test(tests, what_the_training_does_every_fourth_step_is_no_workers);
    tcase_add_test(tests, a_loader_that_keeps_up_tells_nothing);
    tcase_add_test(tests, slow_batches_by_chance_have_no_rhythm);
    tcase_add_test(tests, less_than_a_round_of_batches_tells_the_workers_that_it_lacks);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
