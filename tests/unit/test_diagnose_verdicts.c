/* Verdicts on drawn traces: training without a GPU, loaders of every kind, and what a step loses to
 * synchronisations, launches, communication, allocation and code that loads. */

#include "analysis/diagnose/texts.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char sheet[262144];
static size_t used;
static unsigned corr;
static struct lac_model *model;
static struct lac_analysis *analysis;

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    int length = vsnprintf(sheet + used, sizeof sheet - used, fmt, list);
    va_end(list);
    ck_assert_int_gt(length, 0);
    used += (size_t)length;
    ck_assert_uint_lt(used, sizeof sheet);
}

static void blank(void)
{
    used = 0;
    corr = 0;
    sheet[0] = '\0';
}

static void diagnose(const char *metadata)
{
    model = trace_draw_with(sheet, metadata, 7);
    analysis = trace_diagnose(model);
}

static void wipe(void)
{
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}

static const struct lac_finding *found(const char *id)
{
    return trace_finding(analysis, id);
}

/** Every part of the grammar that a finding with a change has. */
static void check_grammar(const struct lac_finding *finding)
{
    const char *const parts[] = {finding->title, finding->why,     finding->change,
                                 finding->brief, finding->costs,   finding->expect,
                                 finding->check, finding->wrong_if};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(parts[i][0] != '\0', "%s: part %zu is empty", finding->id, i);
        ck_assert_msg(!strstr(parts[i], " 1 workers") && !strstr(parts[i], "0-0 %"), "%s",
                      parts[i]);
    }
    ck_assert_uint_gt(finding->evidence_count, 0);
    ck_assert(finding->gain_low_pct <= finding->gain_mid_pct);
    ck_assert(finding->gain_mid_pct <= finding->gain_high_pct);
}

/* -- training without a GPU in the trace ---------------------------------------------------- */

/** Steps on the host alone: `wait`, then `work` us; `workers` fetch in turn. */
static void draw_host(int steps, int wait, int work, int workers, int fetch, int cpu, bool trains)
{
    blank();
    for (int i = 0; i < steps; i++) {
        int begin = i * (wait + work);
        add("main wait %d %d batch=%d\n", begin, wait, i);
        add("w%d fetch %d %d batch=%d worker=%d cpu=%d\n", i % workers, begin + 1, fetch, i,
            i % workers, cpu);
        if (trains) {
            add("main op %d 100 Optimizer.step#SGD.step\n", begin + wait + work - 200);
        }
    }
}

START_TEST(without_a_gpu_the_training_process_is_judged)
{
    draw_host(20, 20000, 10000, 1, 29900, 1000, true);
    diagnose(
        "{\"lacuna\":{\"settings\":{\"num_workers\":1},\"host\":{\"cores_allowed\":\"0-1\"}}}");
    ck_assert_int_eq((int)analysis->subject, (int)LAC_SUBJECT_HOST_TRAINING);
    ck_assert_ptr_nonnull(
        strstr(analysis->verdict.text, "the training process waits 20 ms of every 30 ms step"));
    const struct lac_finding *finding = found("input-starvation");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_str_eq(finding->brief, "num_workers=4"); /* ceil(1.15 * 29.9 / 10) */
    ck_assert_int_eq(finding->step_mid_ns, 10000000);
    ck_assert_ptr_null(strstr(finding->title, "GPU"));
    wipe();
}
END_TEST

START_TEST(without_training_there_is_no_advice_for_it)
{
    draw_host(20, 20000, 10000, 1, 29900, 1000, false);
    diagnose(NULL);
    ck_assert_int_eq((int)analysis->subject, (int)LAC_SUBJECT_NO_GPU);
    ck_assert_uint_eq(analysis->finding_count, 0);
    wipe();
}
END_TEST

START_TEST(data_in_time_is_said_to_be)
{
    draw_host(20, 100, 10000, 1, 8000, 1000, true);
    diagnose(NULL);
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "data is ready in time"));
    wipe();
}
END_TEST

START_TEST(no_more_workers_than_the_job_may_have_cores)
{
    /* a batch computes all of its 29.9 ms, and a quota leaves the job one core and a half */
    draw_host(20, 20000, 10000, 1, 29900, 29900, true);
    diagnose("{\"lacuna\":{\"host\":{\"cores_allowed\":\"0-3,8\",\"cpu_quota_cores\":1.5}}}");
    const struct lac_finding *finding = found("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->brief, "a cheaper batch");
    wipe();
}
END_TEST

/* -- words ------------------------------------------------------------------------------------ */

START_TEST(numbers_are_said_as_people_do)
{
    ck_assert_str_eq(lac_say_band(9.6, 13.2).text, "10-13 %");
    ck_assert_str_eq(lac_say_band(0.2, 0.4).text, "0 %");
    ck_assert_str_eq(lac_say_band(-0.4, 1.2).text, "0-1 %");
    ck_assert_str_eq(lac_say_band(62.8, 63.4).text, "63 %");
    ck_assert_str_eq(lac_say_count(1, "worker").text, "1 worker");
    ck_assert_str_eq(lac_say_count(2, "batch").text, "2 batches");
    ck_assert_str_eq(lac_say_count(3, "process").text, "3 processes");
    ck_assert_str_eq(lac_say_count(1200, "step").text, "1 200 steps");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, without_a_gpu_the_training_process_is_judged);
    tcase_add_test(tcase, without_training_there_is_no_advice_for_it);
    tcase_add_test(tcase, data_in_time_is_said_to_be);
    tcase_add_test(tcase, no_more_workers_than_the_job_may_have_cores);
    tcase_add_test(tcase, numbers_are_said_as_people_do);
}

int main(void)
{
    Suite *suite = suite_create("diagnose_verdicts");
    TCase *tcase = tcase_create("verdicts");
    tcase_set_timeout(tcase, 60);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
