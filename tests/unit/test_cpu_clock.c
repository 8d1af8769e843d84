/* The CPU time of a thread from few readings of its clock: when none is made, and when one must be. */
#include <stdint.h>
#include <time.h>

static int read_count;

static int counted(clockid_t clock, struct timespec *ret_time)
{
    read_count += clock == CLOCK_THREAD_CPUTIME_ID;
    return clock_gettime(clock, ret_time);
}

#define clock_gettime counted
#include "collector/python/cpu_clock.c"
#undef clock_gettime
#include "collector/python/run_mark.c"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 2000, US = 1000, MS = 1000000 };

static void spin(int64_t ns)
{
    const int64_t end_ns = now_ns(CLOCK_MONOTONIC) + ns;

    while (now_ns(CLOCK_MONOTONIC) < end_ns) {
    }
}

static void pause_us(long us)
{
    const struct timespec time = {.tv_nsec = us * US};

    (void)nanosleep(&time, NULL);
}

/* Readings from one call to the next, `between` them. */
static int readings(void (*wait)(void))
{
    int before;

    (void)lac_cpu_clock_now();
    before = read_count;
    wait();
    (void)lac_cpu_clock_now();
    return read_count - before;
}

static void computes(void)
{
    spin(100 * US);
}

static void computes_long(void)
{
    spin(LAC_CPU_CLOCK_TRUST_NS);
}

static void sleeps(void)
{
    pause_us(100);
}

START_TEST(a_thread_that_keeps_its_core_is_not_read_again)
{
    int tries = 0;

    lac_cpu_clock_begin();
    lac_run_mark_set();
    pause_us(100);
    ck_assert(!lac_run_mark_holds());
    if (!is_there) {
        printf("skip: no restartable sequences for this thread\n");
        return;
    }
    while (readings(computes) > 0) { /* others may want the core */
        ck_assert_int_lt(++tries, TRIES);
    }
}
END_TEST

START_TEST(a_thread_that_slept_or_computed_for_long_is_read_anew)
{
    lac_cpu_clock_begin();
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(readings(sleeps), 1);
        ck_assert_int_eq(readings(computes_long), 1);
    }
}
END_TEST

START_TEST(where_nothing_is_registered_each_moment_is_read)
{
    lac_cpu_clock_begin();
    is_there = false;
    ck_assert_int_eq(readings(computes), 1);
    ck_assert(!lac_run_mark_holds());
}
END_TEST

START_TEST(sleeping_is_no_cpu_time)
{
    int64_t used_ns = 0;

    lac_cpu_clock_begin();
    for (int i = 0; i < 100; i++) {
        const int64_t began_ns = lac_cpu_clock_now();

        spin(20 * US);
        pause_us(1000);
        used_ns += lac_cpu_clock_now() - began_ns;
    }
    ck_assert_int_lt(used_ns, 60 * MS);
}
END_TEST

START_TEST(the_clock_of_a_forked_child_begins_anew)
{
    lac_cpu_clock_begin();
    spin(100 * MS);
    while (lac_cpu_clock_now() < 50 * MS) {
        spin(MS);
    }
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child;

        (void)lac_cpu_clock_now();
        child = fork();
        if (child == 0) {
            _exit(lac_cpu_clock_now() < 40 * MS ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cpu_clock");
    TCase *const tests = tcase_create("readings");

    tcase_add_test(tests, a_thread_that_keeps_its_core_is_not_read_again);
    tcase_add_test(tests, a_thread_that_slept_or_computed_for_long_is_read_anew);
    tcase_add_test(tests, where_nothing_is_registered_each_moment_is_read);
    tcase_add_test(tests, sleeping_is_no_cpu_time);
    tcase_add_test(tests, the_clock_of_a_forked_child_begins_anew);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
