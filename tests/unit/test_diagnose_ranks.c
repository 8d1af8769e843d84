/* Ranks of one run: the one with the longest collectives waits, the one with the shortest is late.
 */

#include "analysis/diagnose/rank_keep.h"
#include "analysis/diagnose/ranks.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, STEPS = 10 };

static char sheet[65536];
static size_t used;
static struct lac_model *models[RANKS];
static struct lac_analysis *analyses[RANKS];
static struct lac_run *run;

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

/** Steps of 10 ms: a wait for data, computing, and a collective that ends at 9.9 ms on all ranks.
 */
static void draw_rank(int rank, int wait, int compute, int collectives)
{
    used = 0;
    unsigned corr = 0;
    for (int i = 0; i < STEPS; i++) {
        int begin = i * 10000;
        int at = begin + 10 + wait;
        add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        add("main wait %d %d batch=%d\n", begin, wait, i);
        add("main call %d 1 #%u cudaLaunchKernel\n", at - 5, ++corr);
        add("gpu0.7 kernel %d %d #%u dgrad_s884cudnn\n", at, compute, corr);
        at += compute;
        for (int c = 0; c < collectives; c++) {
            add("main call %d 1 #%u cudaLaunchKernel\n", at - compute + 2 + c, ++corr);
            int length = (begin + 9900 - at) / (collectives - c);
            add("gpu0.7 kernel %d %d #%u ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n", at,
                length, corr);
            at += length;
        }
        add("main op %d 20 Optimizer.step#SGD.step\n", begin + 9950);
    }
    models[rank] = trace_draw_with(sheet, NULL, 7);
    models[rank]->info.rank = rank;
    analyses[rank] = trace_diagnose(models[rank]);
}

static void compare(void)
{
    struct lac_rank_trace traces[RANKS];
    for (int r = 0; r < RANKS; r++) {
        traces[r] = (struct lac_rank_trace){models[r], analyses[r]};
    }
    ck_assert_int_eq(lac_ranks_compare(traces, RANKS, &run), LAC_OK);
}

static void wipe(void)
{
    lac_run_destroy(run);
    for (int r = 0; r < RANKS; r++) {
        lac_analysis_destroy(analyses[r]);
        lac_model_destroy(models[r]);
    }
}

START_TEST(the_rank_with_the_shortest_collectives_is_late)
{
    draw_rank(0, 100, 5000, 1);
    draw_rank(1, 3100, 5000, 1); /* its batches come 3 ms later */
    draw_rank(2, 100, 5000, 1);
    compare();
    ck_assert_uint_eq(run->collective_count, STEPS);
    ck_assert_uint_eq(run->late, 1);
    ck_assert(run->has_finding);
    ck_assert_str_eq(run->finding.id, "straggler-rank");
    ck_assert_ptr_nonnull(strstr(run->finding.title, "wait for rank 1: 3 ms of every step"));
    ck_assert_ptr_nonnull(strstr(run->finding.why, "waits longer for data"));
    ck_assert_int_eq(run->ranks[1].wait_ns, 0);
    ck_assert_int_eq(run->ranks[0].wait_ns, STEPS * (int64_t)3000000);
    ck_assert_int_eq(run->ranks[0].transfer_ns, run->ranks[1].transfer_ns);
    wipe();
}
END_TEST

START_TEST(slower_kernels_are_told_from_more_kernels)
{
    draw_rank(0, 100, 5000, 1);
    draw_rank(1, 100, 5000, 1);
    draw_rank(2, 100, 8000, 1);
    compare();
    ck_assert_uint_eq(run->late, 2);
    ck_assert_ptr_nonnull(strstr(run->finding.why, "its kernels take longer"));
    ck_assert_ptr_nonnull(strstr(run->finding.why, "as many as on the other ranks"));
    wipe();
}
END_TEST

START_TEST(ranks_that_are_alike_are_not_blamed)
{
    draw_rank(0, 100, 5000, 1);
    draw_rank(1, 110, 5000, 1);
    draw_rank(2, 100, 5010, 1);
    compare();
    ck_assert(!run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->note, "No rank stands out"));
    wipe();
}
END_TEST

START_TEST(collectives_that_do_not_match_tell_nothing)
{
    draw_rank(0, 100, 5000, 1);
    draw_rank(1, 3100, 5000, 2);
    draw_rank(2, 100, 5000, 1);
    compare();
    ck_assert_uint_eq(run->collective_count, 0);
    ck_assert(!run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->note, "cannot be told"));
    wipe();
}
END_TEST

START_TEST(what_is_kept_of_a_rank_compares_as_the_whole)
{
    struct lac_rank_kept *kept[RANKS];
    struct lac_rank_trace traces[RANKS];
    struct lac_run *again = NULL;
    draw_rank(0, 100, 5000, 2);
    draw_rank(1, 3100, 5000, 2);
    draw_rank(2, 100, 5000, 2);
    compare();
    for (int r = 0; r < RANKS; r++) {
        ck_assert_int_eq(lac_rank_keep(models[r], analyses[r], &kept[r]), LAC_OK);
        analyses[r] = NULL; /* taken over */
        traces[r] =
            (struct lac_rank_trace){lac_rank_kept_model(kept[r]), lac_rank_kept_analysis(kept[r])};
        ck_assert_uint_eq(traces[r].model->slices.count, 2 * STEPS);
        ck_assert_uint_gt(lac_rank_kept_bytes(kept[r]), 0);
    }
    ck_assert_int_eq(lac_ranks_compare(traces, RANKS, &again), LAC_OK);
    ck_assert_uint_eq(again->late, run->late);
    ck_assert_uint_eq(again->collective_count, run->collective_count);
    ck_assert_str_eq(again->finding.why, run->finding.why);
    for (int r = 0; r < RANKS; r++) {
        ck_assert_int_eq(again->ranks[r].wait_ns, run->ranks[r].wait_ns);
    }
    lac_run_destroy(again);
    for (int r = 0; r < RANKS; r++) {
        lac_rank_kept_destroy(kept[r]);
    }
    wipe();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_ranks");
    TCase *tcase = tcase_create("ranks");
    tcase_add_test(tcase, the_rank_with_the_shortest_collectives_is_late);
    tcase_add_test(tcase, slower_kernels_are_told_from_more_kernels);
    tcase_add_test(tcase, ranks_that_are_alike_are_not_blamed);
    tcase_add_test(tcase, collectives_that_do_not_match_tell_nothing);
    tcase_add_test(tcase, what_is_kept_of_a_rank_compares_as_the_whole);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
