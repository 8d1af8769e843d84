/* When a recording is made, by time and steps that the test makes up; and what it costs. */

#include "collector/base/count_of.h"
#include "collector/launch/cost.h"
#include "collector/launch/plan.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <string.h>

enum { MS = 1000000 };

/* A job that is asked every millisecond; steps take what `step_ms` says while recorded or not. */
struct job {
    struct lac_plan plan;
    uint64_t now_ms;
    uint64_t steps;
    double progress;
    uint64_t recorded_steps;
    uint64_t windows_seen;
};

static void run_ms(struct job *job, uint64_t ms, double step_ms, double cost_share)
{
    for (uint64_t i = 0; i < ms; i++) {
        const enum lac_spool_stop before = job->plan.wish;
        const bool is_on = before == LAC_SPOOL_RECORD;

        job->now_ms++;
        job->progress += step_ms > 0 ? 1 / (step_ms * (is_on ? 1 + cost_share : 1)) : 0;
        if (job->progress >= 1) {
            job->progress -= 1;
            job->steps++;
            job->recorded_steps += is_on;
        }
        lac_plan_next(&job->plan, job->now_ms * MS, job->steps);
        job->windows_seen += !is_on && job->plan.wish == LAC_SPOOL_RECORD;
        /* a pause leaves CUPTI's kinds on: against it the cost of recording would look like none */
        ck_assert(!job->plan.is_measuring || job->plan.wish == LAC_SPOOL_RECORD ||
                  job->plan.wish == LAC_SPOOL_OFF);
    }
}

START_TEST(without_wishes_there_are_windows_and_the_cost_is_measured)
{
    const struct lac_run_options options = {0};
    struct job job = {0};
    char text[200];

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 59000, 50, 0.02);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD); /* 60 steps have passed, a minute has not */
    lac_plan_cost(&job.plan, text, sizeof(text));
    ck_assert_str_eq(text, "not measured");
    run_ms(&job, 2000, 50, 0.02);
    ck_assert(job.plan.is_measuring);
    lac_plan_cost(&job.plan, text, sizeof(text));
    ck_assert_str_eq(text, "being measured");
    run_ms(&job, 30000, 50, 0.02);
    ck_assert(job.plan.was_measured);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
    lac_plan_cost(&job.plan, text, sizeof(text));
    ck_assert_msg(strncmp(text, "2.", 2) == 0 || strncmp(text, "1.9", 3) == 0, "%s", text);
    job.recorded_steps = 0;
    run_ms(&job, 600000, 50, 0.02); /* one window of 20 steps in ten minutes */
    ck_assert_uint_ge(job.recorded_steps, 20);
    ck_assert_uint_le(job.recorded_steps, 21);
}
END_TEST

START_TEST(a_window_on_demand_comes_on_top_of_any_plan)
{
    const struct lac_run_options options = {0};
    struct job job = {0};
    char words[200];

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 62000, 50, 0.02); /* the cost is being measured */
    ck_assert(job.plan.is_measuring);
    lac_plan_open_window(&job.plan, job.now_ms * MS, job.steps, 0, 30, words, sizeof(words));
    ck_assert_str_eq(words, "records 30 steps now");
    job.recorded_steps = 0;
    run_ms(&job, 1500, 50, 0.02);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    ck_assert_uint_ge(job.recorded_steps, 28);
    run_ms(&job, 40000, 50, 0.02); /* from the beginning, and not with steps of the window */
    ck_assert(job.plan.was_measured);
    lac_plan_cost(&job.plan, words, sizeof(words));
    ck_assert_msg(strncmp(words, "2.", 2) == 0 || strncmp(words, "1.9", 3) == 0, "%s", words);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
    lac_plan_open_window(&job.plan, job.now_ms * MS, job.steps, 3000, 0, words, sizeof(words));
    ck_assert_str_eq(words, "records 3.0 s now");
    run_ms(&job, 2900, 50, 0.02);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    run_ms(&job, 200, 50, 0.02);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
}
END_TEST

START_TEST(a_plan_that_is_over_stays_over)
{
    const struct lac_run_options options = {.duration_ms = 1000};
    struct job job = {0};

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 2000, 50, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_STOP);
    run_ms(&job, 700000, 50, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_STOP);
}
END_TEST

START_TEST(on_demand_alone_records_nothing_unasked)
{
    const struct lac_run_options options = {.on_demand = true};
    struct job job = {0};
    char words[200];

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 700000, 50, 0);
    ck_assert_uint_eq(job.recorded_steps, 0);
    lac_plan_open_window(&job.plan, job.now_ms * MS, 0, 0, 0, words, sizeof(words));
    ck_assert_str_eq(words, "records 10.0 s now"); /* no steps are seen */
    run_ms(&job, 9900, 0, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    run_ms(&job, 200, 0, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
}
END_TEST

START_TEST(a_job_without_steps_is_recorded_in_full)
{
    const struct lac_run_options options = {0};
    struct job job = {0};
    char text[200];

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 200000, 0, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    lac_plan_cost(&job.plan, text, sizeof(text));
    ck_assert_str_eq(text, "not measured");
}
END_TEST

START_TEST(steps_that_are_too_long_are_not_compared_for_ever)
{
    const struct lac_run_options options = {0};
    struct job job = {0};
    char text[200];

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 61 * 20000, 20000, 0);
    ck_assert(job.plan.is_measuring);
    run_ms(&job, 301000, 20000, 0);
    ck_assert(job.plan.was_measured);
    lac_plan_cost(&job.plan, text, sizeof(text));
    ck_assert_str_eq(text, "not measured: the steps are too long");
}
END_TEST

START_TEST(cost_first_measures_first_and_then_goes_on_as_asked)
{
    const struct lac_run_options all = {.cost = true, .all = true};
    const struct lac_run_options windows = {.cost = true};
    const struct lac_run_options *const both[] = {&all, &windows};

    for (int i = 0; i < 2; i++) {
        struct job job = {0};
        double percent, spread;

        lac_plan_begin(&job.plan, both[i]);
        run_ms(&job, 150, 10, 0.1);
        ck_assert(!job.plan.is_measuring);
        run_ms(&job, 20000, 10, 0.1);
        ck_assert(job.plan.was_measured);
        ck_assert(lac_cost_result(&job.plan.cost, &percent, &spread));
        ck_assert_msg(percent > 9.5 && percent < 10.5 && spread < 1, "%f %f", percent, spread);
        ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD); /* the first minute is not over */
    }
}
END_TEST

/* CUPTI takes time to enable all: a window would begin without its first steps. */
START_TEST(long_pauses_switch_off_and_end_with_a_short_pause)
{
    const struct lac_run_options delayed = {.delay_ms = 60000, .duration_ms = 1000};
    const struct lac_run_options steps = {.step_first = 1001, .step_last = 1010};
    struct job job = {0};

    lac_plan_begin(&job.plan, &delayed);
    run_ms(&job, 57900, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
    run_ms(&job, 200, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_PAUSE);
    run_ms(&job, 2000, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    job = (struct job){0};
    lac_plan_begin(&job.plan, &steps);
    run_ms(&job, 5000, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_OFF);
    run_ms(&job, 4000, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_PAUSE);
    run_ms(&job, 1005, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
}
END_TEST

START_TEST(duration_and_delay_are_kept)
{
    const struct lac_run_options options = {.delay_ms = 500, .duration_ms = 1000};
    struct job job = {0};

    lac_plan_begin(&job.plan, &options);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_PAUSE);
    run_ms(&job, 499, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_PAUSE);
    run_ms(&job, 2, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_RECORD);
    run_ms(&job, 1000, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_STOP);
    run_ms(&job, 1000, 10, 0);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_STOP);
}
END_TEST

START_TEST(steps_asked_for_are_those_recorded)
{
    const struct lac_run_options options = {.step_first = 4, .step_last = 8};
    struct job job = {0};

    lac_plan_begin(&job.plan, &options);
    run_ms(&job, 1000, 10, 0);
    ck_assert_uint_eq(job.recorded_steps, 5);
    ck_assert_int_eq(job.plan.wish, LAC_SPOOL_STOP);
}
END_TEST

START_TEST(what_will_be_recorded_is_said)
{
    const struct {
        struct lac_run_options options;
        const char *text;
    } cases[] = {
        {{.all = true}, "everything"},
        {{.step_first = 2, .step_last = 9}, "steps 2 to 9"},
        {{.duration_ms = 1500, .delay_ms = 300}, "after 0.3 s, 1.5 s in full"},
        {{0},
         "60 steps and at least a minute in full, every other ten of 160 more to measure what that "
         "costs, then 20 steps every 10 min"},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        struct lac_plan plan;
        char text[200];

        lac_plan_begin(&plan, &cases[i].options);
        lac_plan_describe(&plan, text, sizeof(text));
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

/* Blocks with noise that a fixed rule makes: the spread must cover the truth. */
START_TEST(noise_is_told_as_spread)
{
    struct lac_cost cost = {0};
    double percent, spread;

    ck_assert(!lac_cost_result(&cost, &percent, &spread));
    for (uint32_t i = 0; i < 2 * LAC_COST_PAIRS; i++) {
        const double noise = (double)((i * 7919) % 13) - 6;

        cost.step_ns[i] =
            100 + noise + (i % 4 == 1 || i % 4 == 2 ? 3 : 0) + i; /* a drift beside it */
        cost.block_count++;
        ck_assert_int_eq(lac_cost_result(&cost, &percent, &spread), i >= 7 /* four pairs */);
    }
    ck_assert(percent - spread < 3 && percent + spread > 3);
    ck_assert(spread > 1 && spread < 15);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("plan");
    TCase *const tests = tcase_create("plan");

    tcase_add_test(tests, without_wishes_there_are_windows_and_the_cost_is_measured);
    tcase_add_test(tests, a_window_on_demand_comes_on_top_of_any_plan);
    tcase_add_test(tests, a_plan_that_is_over_stays_over);
    tcase_add_test(tests, on_demand_alone_records_nothing_unasked);
    tcase_add_test(tests, a_job_without_steps_is_recorded_in_full);
    tcase_add_test(tests, steps_that_are_too_long_are_not_compared_for_ever);
    tcase_add_test(tests, cost_first_measures_first_and_then_goes_on_as_asked);
    tcase_add_test(tests, long_pauses_switch_off_and_end_with_a_short_pause);
    tcase_add_test(tests, duration_and_delay_are_kept);
    tcase_add_test(tests, steps_asked_for_are_those_recorded);
    tcase_add_test(tests, what_will_be_recorded_is_said);
    tcase_add_test(tests, noise_is_told_as_spread);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
