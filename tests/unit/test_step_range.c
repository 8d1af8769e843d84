/*
 * LACUNA_STEP: ranges of a name are counted as steps by the recorder, from whichever function of NVTX
 * they come, also while recording pauses, and nothing else is.
 */
#include "collector/inject/nvtx_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/injected.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int is_true, int number)
{
    if (!is_true) {
        _exit(number);
    }
}

static uint64_t steps(void)
{
    return lac_cupti_own_header()->step_count;
}

static void begin(void)
{
    (void)setenv("LACUNA_STEP", "one turn", 1);
    check(inject(), 10);
    (void)push("something else");
    (void)pop();
    check(steps() == 0, 11);
}

static uint64_t start(const char *name)
{
    return ((uint64_t(*)(const char *))core[NVTX_CORE_START_A])(name);
}

static void end(uint64_t id)
{
    ((void (*)(uint64_t))core[NVTX_CORE_END])(id);
}

static void job_pushes(void)
{
    begin();
    for (int i = 0; i < 5; i++) {
        (void)push("around it");
        (void)push("one turn");
        check(steps() == (uint64_t)i, 20); /* it counts when it ends */
        (void)push("one turn");            /* the same step */
        (void)push("inside");
        (void)pop();
        (void)pop();
        check(steps() == (uint64_t)i, 21);
        (void)pop();
        check(steps() == (uint64_t)i + 1, 22);
        (void)pop();
    }
    lac_cupti_api()->step(); /* of an optimizer, say */
    check(steps() == 5, 23);
    check(lac_cupti_own_header()->training_tid == (int32_t)getpid(), 24);
}

START_TEST(a_pushed_range_is_a_step_once_it_ends)
{
    ck_assert_int_eq(lac_job_run(job_pushes), 0);
    import_ok();
    ck_assert_uint_eq(count_named("one turn"), 10);
    ck_assert_uint_eq(report_count("not_recorded"), 0);
}
END_TEST

static void *end_it(void *id)
{
    end((uint64_t)(uintptr_t)id);
    return NULL;
}

static void job_starts(void)
{
    pthread_t thread;

    begin();
    for (int i = 0; i < 40; i++) { /* more than are remembered, were they not forgotten */
        const uint64_t id = start("one turn");

        end(start("something else"));
        check(steps() == (uint64_t)i, 30);
        check(pthread_create(&thread, NULL, end_it, (void *)(uintptr_t)id) == 0, 31);
        (void)pthread_join(thread, NULL);
        check(steps() == (uint64_t)i + 1, 32);
    }
}

START_TEST(a_range_that_ends_on_another_thread_is_a_step)
{
    ck_assert_int_eq(lac_job_run(job_starts), 0);
}
END_TEST

static void job_pauses(void)
{
    begin();
    for (uint32_t wish = LAC_SPOOL_PAUSE; wish <= LAC_SPOOL_OFF; wish++) {
        lac_cupti_own_header()->stop = wish;
        (void)push("one turn");
        (void)pop();
        end(start("one turn"));
        lac_cupti_own_header()->stop = LAC_SPOOL_RECORD;
    }
    check(steps() == 4, 40);
}

START_TEST(steps_count_while_recording_pauses)
{
    ck_assert_int_eq(lac_job_run(job_pauses), 0);
    import_ok();
    ck_assert_uint_eq(count_named("one turn"), 0);
}
END_TEST

static void job_forks(void)
{
    int status = -1;
    pid_t child;

    begin();
    (void)push("one turn");
    child = fork();
    if (child == 0) {
        (void)pop(); /* its parent's */
        (void)push("one turn");
        (void)pop();
        check(steps() == 1, 50);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    check(status == 0, 51);
    (void)pop();
    check(steps() == 1, 52);
}

START_TEST(a_forked_child_counts_its_own)
{
    ck_assert_int_eq(lac_job_run(job_forks), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("step_range");
    TCase *const tcase = tcase_create("step_range");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, a_pushed_range_is_a_step_once_it_ends);
    tcase_add_test(tcase, a_range_that_ends_on_another_thread_is_a_step);
    tcase_add_test(tcase, steps_count_while_recording_pauses);
    tcase_add_test(tcase, a_forked_child_counts_its_own);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
