/* What limits the step after a change, and what little waits are worth: small ones that return and
 * that a change takes away are said, others are not; nothing changes where nothing was changed. */

#include "analysis/diagnose/diagnose.h"
#include "tests/support/check_main.h"
#include "tests/support/loader_sheet.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CORES_8 "{\"lacuna\":{\"host\":{\"cores_online\":64,\"cores_allowed\":\"0-7\"}}}"

static int64_t mean_if(const char *text)
{
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *changed = NULL;
    ck_assert_int_eq(lac_what_if_parse(text, &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &changed, NULL), LAC_OK);
    int64_t mean_ns = changed->what_if_step.mean_ns;
    lac_analysis_destroy(changed);
    return mean_ns;
}

static bool is_fine(const char *what)
{
    for (uint32_t i = 0; i < analysis->checked_fine_count; i++) {
        if (strstr(analysis->checked_fine[i], what) != NULL) {
            return true;
        }
    }
    return false;
}

START_TEST(a_small_wait_that_returns_is_worth_what_it_gains)
{
    struct loop loop = {
        .steps = 120, .workers = 2, .step = 10e3, .fetch = 20.8e3, .fetch_cpu = 20e3};
    loop_draw(&loop);
    sheet_diagnose(CORES_8, 8);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_double_lt(finding->cost_pct, 5.0);
    ck_assert_double_ge(finding->gain_mid_pct, 1.0);
    ck_assert_int_eq(finding->severity,
                     finding->gain_mid_pct >= 3.0 ? LAC_SEVERITY_WARNING : LAC_SEVERITY_INFO);
    ck_assert(!is_fine("data loading"));
}
END_TEST

START_TEST(a_wait_that_came_twice_is_no_rule)
{
    struct loop loop = {.steps = 160,
                        .workers = 2,
                        .step = 10e3,
                        .fetch = 10e3,
                        .fetch_cpu = 9e3,
                        .slow = 60e3,
                        .slow_every = 70};
    loop_draw(&loop);
    sheet_diagnose(CORES_8, 8);
    ck_assert_uint_gt(analysis->step_kept_count, 0);
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        ck_assert_ptr_null(strstr(analysis->findings[i].title, "for data"));
    }
    ck_assert(is_fine("data loading"));
}
END_TEST

START_TEST(workers_that_take_turns_stay_so_with_more_of_them)
{
    struct loop loop = {.steps = 80,
                        .workers = 4,
                        .step = 5e3,
                        .fetch = 20e3,
                        .fetch_cpu = 19.5e3,
                        .is_locked = true};
    loop_draw(&loop);
    sheet_diagnose(CORES_8, 8);
    ck_assert_ptr_nonnull(sheet_finding("workers-serialized"));
    int64_t now_ns = analysis->step_mean_ns;
    ck_assert_int_gt(mean_if("workers=8"), now_ns - now_ns / 10);
    loop.is_locked = false; /* without the lock more of them deliver faster */
    loop.fetch = 40e3;
    loop_draw(&loop);
    sheet_diagnose(CORES_8, 8);
    now_ns = analysis->step_mean_ns;
    ck_assert_int_lt(mean_if("workers=8"), now_ns - now_ns / 4);
}
END_TEST

START_TEST(as_many_workers_as_now_change_nothing)
{
    struct loop loop = {.steps = 90,
                        .workers = 3,
                        .step = 10e3,
                        .fetch = 20e3,
                        .fetch_cpu = 19e3,
                        .slow = 300e3,
                        .slow_every = 31};
    loop_draw(&loop);
    sheet_diagnose(CORES_8, 8);
    int64_t now_ns = analysis->step_mean_ns;
    ck_assert_int_eq(mean_if("workers=3"), mean_if(""));
    ck_assert_int_le(llabs(mean_if("workers=3") - now_ns), now_ns / 100);
}
END_TEST

/** Steps of 10 ms: computing, then a collective for which the optimizer's kernel waits. */
static void draw_reducing(int comm)
{
    sheet_blank();
    for (int i = 0; i < 30; i++) {
        int at = i * 10000;
        int compute = 9800 - comm;
        sheet_add("main range %d 9990 ProfilerStep#%d\n", at, i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 10, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d %d #%u dgrad_s884cudnn\n", at + 20, compute, sheet_corr);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 20, ++sheet_corr);
        sheet_add("gpu0.9 kernel %d %d #%u ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n",
                  at + 25 + compute, comm, sheet_corr);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 30, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 100 #%u dgrad_s884cudnn\n", at + 30 + compute + comm,
                  sheet_corr);
        sheet_add("main call %d %d cudaStreamSynchronize\n", at + 40, 9935 - 40);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_little_communication_is_worth_what_it_gains)
{
    draw_reducing(400);
    const struct lac_finding *finding = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_lt(finding->cost_pct, 5.0);
    ck_assert_double_ge(finding->gain_high_pct, 3.0);
    ck_assert_double_lt(finding->gain_mid_pct,
                        0.6 * finding->gain_high_pct); /* not all of it can be moved */
    ck_assert_double_ge(finding->gain_mid_pct, 1.0);
    ck_assert(!is_fine("communication"));
    draw_reducing(60);
    ck_assert_ptr_null(sheet_finding("exposed-communication"));
    ck_assert(is_fine("communication"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_limits");
    TCase *tests = tcase_create("what is the next limit");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, a_small_wait_that_returns_is_worth_what_it_gains);
    tcase_add_test(tests, a_wait_that_came_twice_is_no_rule);
    tcase_add_test(tests, workers_that_take_turns_stay_so_with_more_of_them);
    tcase_add_test(tests, as_many_workers_as_now_change_nothing);
    tcase_add_test(tests, a_little_communication_is_worth_what_it_gains);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
