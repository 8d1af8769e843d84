/* Helpers take parts of a work: each part once, all of them before the end, with any number of helpers. */

#include "analysis/crew/crew.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { PARTS = 1000 };

struct work {
    struct lac_crew *crew;
    atomic_uint done[PARTS];
    atomic_uint inner;
};

static void count_part(void *context, uint32_t part)
{
    struct work *work = context;

    atomic_fetch_add(&work->done[part], 1);
}

static void count_inner(void *context, uint32_t part)
{
    struct work *work = context;

    (void)part;
    atomic_fetch_add(&work->inner, 1);
}

static void run_inner(void *context, uint32_t part)
{
    struct work *work = context;

    (void)part;
    lac_crew_run(work->crew, 7, count_inner, work);
}

static bool stay_out(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
    return false;
}

static void check_each_once(const struct work *work)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        ck_assert_uint_eq(work->done[i], 1);
    }
}

static const unsigned sizes[] = {0, 1, 2, LAC_CREW_HELPERS_MAX};

START_TEST(each_part_is_done_once)
{
    struct work *work = calloc(1, sizeof(*work));
    ck_assert(lac_crew_create(sizes[_i], NULL, NULL, &work->crew));
    ck_assert_uint_eq(lac_crew_size(work->crew), sizes[_i]);
    lac_crew_run(work->crew, PARTS, count_part, work);
    check_each_once(work);
    lac_crew_run(work->crew, 0, count_part, work);
    check_each_once(work);
    lac_crew_destroy(work->crew);
    free(work);
}
END_TEST

START_TEST(without_a_crew_the_caller_does_it)
{
    struct work *work = calloc(1, sizeof(*work));
    struct lac_crew_job job;
    ck_assert_uint_eq(lac_crew_size(NULL), 0);
    lac_crew_begin(NULL, &job, PARTS, count_part, work);
    lac_crew_end(NULL, &job);
    check_each_once(work);
    lac_crew_destroy(NULL);
    free(work);
}
END_TEST

START_TEST(jobs_lie_beside_each_other)
{
    struct work *work = calloc(2, sizeof(*work));
    struct lac_crew *crew = NULL;
    struct lac_crew_job first;
    struct lac_crew_job second;
    ck_assert(lac_crew_create(sizes[_i], NULL, NULL, &crew));
    for (int round = 0; round < 50; round++) {
        lac_crew_begin(crew, &first, PARTS, count_part, &work[0]);
        lac_crew_begin(crew, &second, PARTS, count_part, &work[1]);
        lac_crew_end(crew, round % 2 == 0 ? &first : &second);
        lac_crew_end(crew, round % 2 == 0 ? &second : &first);
        check_each_once(&work[0]);
        check_each_once(&work[1]);
        for (uint32_t i = 0; i < PARTS; i++) {
            work[0].done[i] = work[1].done[i] = 0;
        }
    }
    lac_crew_destroy(crew);
    free(work);
}
END_TEST

START_TEST(a_part_may_run_a_job_of_its_own)
{
    struct work *work = calloc(1, sizeof(*work));
    ck_assert(lac_crew_create(sizes[_i], NULL, NULL, &work->crew));
    lac_crew_run(work->crew, 100, run_inner, work);
    ck_assert_uint_eq(work->inner, 700);
    lac_crew_destroy(work->crew);
    free(work);
}
END_TEST

START_TEST(a_helper_that_must_not_enter_takes_nothing)
{
    atomic_uint asked = 0;
    struct work *work = calloc(1, sizeof(*work));
    ck_assert(lac_crew_create(3, stay_out, &asked, &work->crew));
    lac_crew_run(work->crew, PARTS, count_part, work);
    check_each_once(work);
    lac_crew_destroy(work->crew);
    ck_assert_uint_eq(asked, 3);
    free(work);
}
END_TEST

START_TEST(helpers_are_bounded_by_the_cores)
{
    ck_assert_uint_eq(lac_crew_helpers(0), 0);
    ck_assert_uint_le(lac_crew_helpers(2), 2);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (unsigned core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++) {
        cpu_set_t all;
        ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
        if (CPU_ISSET(core, &all)) {
            CPU_SET(core, &one);
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_uint_eq(lac_crew_helpers(3), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crew");
    TCase *all = tcase_create("all");
    const int count = (int)(LAC_COUNT_OF(sizes));
    tcase_add_loop_test(all, each_part_is_done_once, 0, count);
    tcase_add_test(all, without_a_crew_the_caller_does_it);
    tcase_add_loop_test(all, jobs_lie_beside_each_other, 0, count);
    tcase_add_loop_test(all, a_part_may_run_a_job_of_its_own, 0, count);
    tcase_add_test(all, a_helper_that_must_not_enter_takes_nothing);
    tcase_add_test(all, helpers_are_bounded_by_the_cores);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
