/* Ranks of one run: the one with the longest collectives waits, the one with the
 * shortest is late. */

#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/ranks/ranks_align.h"
#include "analysis/diagnose/result/texts.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, STEPS = 10 };

static struct lac_model *models[RANKS];
static struct lac_analysis *analyses[RANKS];
static uint32_t drawn;
static struct lac_run *run;

/** How a rank's steps go; times in us. */
struct habits {
    int wait;        /**< for data */
    int compute;     /**< one kernel */
    int collectives; /**< a step */
    int late_by;     /**< of its clock */
    int from_step;   /**< where its recording begins */
    int uneven;      /**< what steps differ by, so that they can be told apart */
    int end;         /**< of a step's collectives; 0: 9900 */
    const char *kernel;
    const char *collective; /**< NULL: an all-reduce */
};

static void keep_rank(int32_t number)
{
    ck_assert_uint_lt(drawn, RANKS);
    models[drawn] = trace_draw_with(sheet_text(), NULL, 7);
    models[drawn]->info.rank = number;
    analyses[drawn] = trace_diagnose(models[drawn]);
    drawn++;
}

/** Steps of about 10 ms: a wait for data, computing, collectives that end together on all ranks. */
static void draw_rank(int32_t number, const struct habits *habits)
{
    const char *kernel = habits->kernel != NULL ? habits->kernel : "dgrad_s884cudnn";
    unsigned corr = 0;
    sheet_blank();
    for (int i = habits->from_step; i < STEPS; i++) {
        int uneven = habits->uneven * ((i * i * 7 + i * 3) % 11) / 10;
        int begin = habits->late_by + i * 12000;
        int end = begin + (habits->end ? habits->end : 9900) + uneven;
        int at = begin + 10 + habits->wait;
        sheet_add("main range %d %d ProfilerStep#%d\n", begin, end + 100 - begin, i);
        sheet_add("main wait %d %d batch=%d\n", begin, habits->wait, i);
        sheet_add("main call %d 1 #%u cudaLaunchKernel\n", at - 5, ++corr);
        sheet_add("gpu0.7 kernel %d %d #%u %s\n", at, habits->compute, corr, kernel);
        at += habits->compute;
        for (int c = 0; c < habits->collectives; c++) {
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", at - habits->compute + 2 + c,
                      ++corr);
            int length = end - (habits->collectives - 1 - c) * 400 - at;
            sheet_add("gpu0.7 kernel %d %d #%u %s\n", at, length, corr,
                      habits->collective != NULL ? habits->collective
                                                 : "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
            at += length;
        }
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", end + 50);
    }
    keep_rank(number);
}

/** Two kernels a step: a collective of 1 ms beside the second, one of 0.5 ms behind it. */
static void draw_hiding_rank(int32_t number, int compute)
{
    unsigned corr = 0;
    sheet_blank();
    for (int i = 0; i < STEPS; i++) {
        const int begin = i * 8700;
        const struct {
            const char *stream, *name;
            int from, to;
        } work[] = {
            {"7", "dgrad_s884cudnn", 100, 100 + compute},
            {"20", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 100 + compute, 5100},
            {"7", "dgrad_s884cudnn", 100 + compute, 100 + 2 * compute},
            {"20", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 100 + 2 * compute, 8600}};
        sheet_add("main range %d 8700 ProfilerStep#%d\n", begin, i);
        for (size_t k = 0; k < LAC_COUNT_OF(work); k++) {
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", begin + 10 + 2 * (int)k, ++corr);
            sheet_add("gpu0.%s kernel %d %d #%u %s\n", work[k].stream, begin + work[k].from,
                      work[k].to - work[k].from, corr, work[k].name);
        }
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", begin + 8650);
    }
    keep_rank(number);
}

static void wipe(void)
{
    lac_run_destroy(run);
    run = NULL;
    while (drawn > 0) {
        drawn--;
        lac_analysis_destroy(analyses[drawn]);
        lac_model_destroy(models[drawn]);
    }
}

static void pack(uint32_t rank, uint8_t **ret_bytes, size_t *ret_size_bytes)
{
    struct lac_rank_table *table = NULL;
    ck_assert_int_eq(lac_rank_table_create(models[rank], analyses[rank], &table), LAC_OK);
    ck_assert_int_eq(lac_rank_table_pack(table, ret_bytes, ret_size_bytes), LAC_OK);
    lac_rank_table_destroy(table);
}

static void same_number(double a, double b)
{
    ck_assert(isnan(a) ? isnan(b) : fabs(a - b) <= 0.0);
}

/** The same run as `run`, from tables that were bytes in between. */
static void compare_from_bytes(void)
{
    struct lac_rank_table *tables[RANKS];
    struct lac_run *again = NULL;
    for (uint32_t r = 0; r < drawn; r++) {
        uint8_t *bytes = NULL;
        size_t size_bytes = 0;
        pack(r, &bytes, &size_bytes);
        ck_assert_int_eq(lac_rank_table_unpack(bytes, size_bytes, &tables[r]), LAC_OK);
        free(bytes);
    }
    ck_assert_int_eq(lac_ranks_join((const struct lac_rank_table *const *)tables, drawn, &again),
                     LAC_OK);
    ck_assert_uint_eq(again->collective_count, run->collective_count);
    ck_assert_uint_eq(again->late, run->late);
    ck_assert_str_eq(again->note, run->note);
    ck_assert(again->has_finding == run->has_finding);
    if (run->has_finding) {
        ck_assert_str_eq(again->finding.title, run->finding.title);
        ck_assert_str_eq(again->finding.why, run->finding.why);
        same_number(again->finding.gain_low_pct, run->finding.gain_low_pct);
        same_number(again->finding.gain_mid_pct, run->finding.gain_mid_pct);
        same_number(again->finding.gain_high_pct, run->finding.gain_high_pct);
    }
    for (uint32_t r = 0; r < drawn; r++) {
        const struct lac_rank_facts *a = &again->ranks[r];
        const struct lac_rank_facts *b = &run->ranks[r];
        ck_assert_int_eq(a->rank, b->rank);
        ck_assert(a->is_matched == b->is_matched);
        ck_assert_int_eq(a->wait_ns, b->wait_ns);
        ck_assert_int_eq(a->transfer_ns, b->transfer_ns);
        ck_assert_uint_eq(a->last_count, b->last_count);
        ck_assert_int_eq(a->compute_ns, b->compute_ns);
        ck_assert_int_eq(a->idle_ns, b->idle_ns);
        ck_assert_str_eq(a->name, b->name);
        ck_assert_str_eq(a->host, b->host);
        ck_assert_str_eq(a->device, b->device);
        ck_assert_str_eq(a->cause, b->cause);
        ck_assert_int_eq(a->letter, b->letter);
        ck_assert_uint_eq(a->step_count, b->step_count);
        ck_assert_uint_eq(a->step_kept_count, b->step_kept_count);
        ck_assert_int_eq(a->step_mean_ns, b->step_mean_ns);
        same_number(a->idle_pct, b->idle_pct);
        same_number(a->exposed_comm_pct, b->exposed_comm_pct);
        lac_rank_table_destroy(tables[r]);
    }
    lac_run_destroy(again);
}

static void compare(void)
{
    struct lac_rank_trace traces[RANKS];
    for (uint32_t r = 0; r < drawn; r++) {
        traces[r] = (struct lac_rank_trace){models[r], analyses[r]};
    }
    ck_assert_int_eq(lac_ranks_compare(traces, drawn, &run), LAC_OK);
    compare_from_bytes();
}

static const struct habits usual = {.wait = 100, .compute = 5000, .collectives = 1};

START_TEST(the_rank_with_the_shortest_collectives_is_late)
{
    draw_rank(0, &usual);
    draw_rank(1, &(struct habits){3100, 5000, 1, 0, 0, 0, 0, NULL, NULL}); /* 3 ms later: data */
    draw_rank(2, &usual);
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
    /* re-timed: each collective comes 3 ms earlier, of steps of 10 ms */
    ck_assert_double_lt(fabs(run->finding.gain_high_pct - 30.0), 0.1);
    ck_assert_double_lt(run->finding.gain_mid_pct, run->finding.gain_high_pct);
    ck_assert_double_le(run->finding.gain_high_pct, 31.0);
    /* what is shown of it is the lateness, not some gap: it begins when the others arrive */
    const struct lac_evidence *shown = &run->finding.evidence[0];
    ck_assert_str_eq(shown->text, "its latest arrival: the others wait 3 ms");
    ck_assert_int_ge(shown->t1_ns - shown->t0_ns, 3000000);
    wipe();
}
END_TEST

/** A table of anybody's bytes is refused, or is one that can be joined. */
START_TEST(made_up_tables_are_refused_or_harmless)
{
    enum { ROUNDS = 4000 };
    struct lac_rank_table *table = NULL;
    struct lac_rank_table *other = NULL;
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    uint32_t random = 12345;
    int taken = 0;
    draw_rank(0, &usual);
    draw_rank(1, &(struct habits){3100, 5000, 2, 0, 0, 0, 0, NULL, NULL});
    ck_assert_int_eq(lac_rank_table_create(models[0], analyses[0], &other), LAC_OK);
    pack(1, &bytes, &size_bytes);
    for (size_t cut = 0; cut < size_bytes; cut++) {
        ck_assert_int_eq(lac_rank_table_unpack(bytes, cut, &table), LAC_ERR_CORRUPT);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *copy = malloc(size_bytes);
        memcpy(copy, bytes, size_bytes);
        for (int flips = round % 3; flips >= 0; flips--) {
            random = random * 1664525 + 1013904223;
            copy[(random >> 8) % size_bytes] = (uint8_t)(random >> 3);
        }
        if (lac_rank_table_unpack(copy, size_bytes, &table) == LAC_OK) {
            const struct lac_rank_table *tables[] = {other, table};
            ck_assert_int_eq(lac_ranks_join(tables, 2, &run), LAC_OK);
            lac_run_destroy(run);
            run = NULL;
            lac_rank_table_destroy(table);
            taken++;
        }
        free(copy);
    }
    ck_assert_int_gt(taken, ROUNDS / 20); /* else only the door is tested */
    ck_assert_int_lt(taken, ROUNDS);
    lac_rank_table_destroy(other);
    free(bytes);
    wipe();
}
END_TEST

START_TEST(slower_kernels_are_told_from_more_kernels)
{
    draw_rank(0, &usual);
    draw_rank(1, &usual);
    draw_rank(2, &(struct habits){100, 8000, 1, 0, 0, 0, 0, NULL, NULL});
    compare();
    ck_assert_uint_eq(run->late, 2);
    ck_assert_ptr_nonnull(strstr(run->finding.why, "its GPU works longer"));
    ck_assert_ptr_nonnull(strstr(run->finding.why, "1.60 times as long"));
    wipe();
}
END_TEST

START_TEST(a_transfer_that_stays_exposed_is_no_gain)
{
    draw_hiding_rank(0, 3000);
    draw_hiding_rank(1, 3000);
    draw_hiding_rank(2, 4000);
    compare();
    ck_assert(run->has_finding);
    ck_assert_uint_eq(run->late, 2);
    /* the others stand still for 2.5 ms of 8.7; without the lateness for the last 0.5 ms still */
    ck_assert_double_le(run->finding.gain_high_pct, 100.0 * 2.0 / 8.7 + 0.1);
    ck_assert_double_ge(run->finding.gain_high_pct, 100.0 * 2.0 / 8.7 - 1.0);
    ck_assert_double_ge(run->finding.gain_low_pct, 100.0 * 1.5 / 8.7);
    /* they wait for 3 ms, of which they compute for one */
    ck_assert_int_eq(run->finding.cost_ns_per_step, 2000000);
    ck_assert_ptr_nonnull(strstr(run->finding.title, "wait for rank 2: 2 ms of every step"));
    ck_assert_ptr_nonnull(
        strstr(run->finding.why, "waits 3 ms per step for it, with nothing else to run for 2 ms."));
    wipe();
}
END_TEST

/** Stages of a pipeline wait for each other by design. */
START_TEST(a_stage_of_a_pipeline_is_no_straggler)
{
    static const char between[] = "ncclDevKernel_SendRecv args={\"Collective name\":\"recv\"}";
    draw_rank(
        0, &(struct habits){.wait = 100, .compute = 5000, .collectives = 1, .collective = between});
    draw_rank(1, &(struct habits){
                     .wait = 3100, .compute = 5000, .collectives = 1, .collective = between});
    draw_rank(
        2, &(struct habits){.wait = 100, .compute = 5000, .collectives = 1, .collective = between});
    compare();
    ck_assert_msg(!run->has_finding, "%s", run->finding.title);
    ck_assert_ptr_nonnull(strstr(run->note, "only sends and receives match"));
    wipe();
}
END_TEST

START_TEST(a_rank_recorded_for_less_makes_the_late_one_no_cheaper)
{
    for (int from_step = 0; from_step < 8; from_step += 6) {
        draw_rank(0, &usual);
        draw_rank(1, &(struct habits){3100, 5000, 1, 0, 0, 0, 0, NULL, NULL});
        draw_rank(2, &(struct habits){100, 5000, 1, 0, from_step, 0, 0, NULL, NULL});
        compare();
        ck_assert_uint_eq(run->late, 1);
        ck_assert_uint_eq(run->ranks[1].matched_step_count, (uint32_t)(STEPS - from_step));
        ck_assert_int_eq(run->finding.cost_ns_per_step, 3000000);
        ck_assert_double_lt(fabs(run->finding.gain_high_pct - 30.0), 1.0);
        wipe();
    }
}
END_TEST

START_TEST(ranks_that_are_alike_are_not_blamed)
{
    draw_rank(0, &usual);
    draw_rank(1, &(struct habits){110, 5000, 1, 0, 0, 0, 0, NULL, NULL});
    draw_rank(2, &(struct habits){100, 5010, 1, 0, 0, 0, 0, NULL, NULL});
    compare();
    ck_assert(!run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->note, "No straggler"));
    wipe();
}
END_TEST

START_TEST(a_rank_that_does_not_match_is_said)
{
    draw_rank(0, &usual);
    draw_rank(1, &(struct habits){3100, 5000, 2, 0, 0, 0, 0, NULL, NULL});
    draw_rank(2, &usual);
    compare();
    ck_assert(!run->has_finding);
    ck_assert(!run->ranks[1].is_matched);
    ck_assert_int_eq(run->ranks[1].wait_ns, LAC_UNKNOWN_NS);
    ck_assert_ptr_nonnull(strstr(run->note, "Rank 1 is not judged"));
    wipe();
}
END_TEST

START_TEST(ranks_without_collectives_tell_nothing)
{
    draw_rank(0, &(struct habits){100, 5000, 0, 0, 0, 0, 0, NULL, NULL});
    draw_rank(1, &(struct habits){3100, 5000, 0, 0, 0, 0, 0, NULL, NULL});
    compare();
    ck_assert_uint_eq(run->collective_count, 0);
    ck_assert(!run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->note, "cannot be identified"));
    wipe();
}
END_TEST

START_TEST(clocks_and_longer_recordings_change_nothing)
{
    draw_rank(0, &(struct habits){100, 5000, 1, 0, 0, 2000, 0, NULL, NULL});
    /* from step 3 on */
    draw_rank(1, &(struct habits){3100, 5000, 1, 77777, 3, 2000, 0, NULL, NULL});
    draw_rank(2, &(struct habits){100, 5000, 1, 123456, 1, 2000, 0, NULL, NULL});
    compare();
    ck_assert_uint_eq(run->collective_count, STEPS - 3);
    ck_assert_uint_eq(run->late, 1);
    ck_assert_int_eq(run->ranks[0].wait_ns, (STEPS - 3) * (int64_t)3000000);
    ck_assert_int_eq(run->ranks[2].wait_ns, (STEPS - 3) * (int64_t)3000000);
    wipe();
}
END_TEST

static void align(struct lac_rank_table **tables, struct lac_ranks_alignment *alignment)
{
    for (uint32_t r = 0; r < drawn; r++) {
        ck_assert_int_eq(lac_rank_table_create(models[r], analyses[r], &tables[r]), LAC_OK);
    }
    ck_assert_int_eq(
        lac_ranks_align((const struct lac_rank_table *const *)tables, drawn, alignment), LAC_OK);
}

static void align_done(struct lac_rank_table **tables, struct lac_ranks_alignment *alignment)
{
    for (uint32_t r = 0; r < drawn; r++) {
        lac_rank_table_destroy(tables[r]);
    }
    lac_ranks_alignment_done(alignment);
}

/* Times of a model are from its first event on: a recording that begins two steps later has its
 * time 0 there, whatever its clock says. */
START_TEST(ranks_come_to_one_clock_by_the_ends_of_collectives)
{
    struct lac_rank_table *tables[RANKS];
    struct lac_ranks_alignment alignment = {0};
    draw_rank(0, &(struct habits){.wait = 10, .compute = 3000, .collectives = 2, .uneven = 2000});
    draw_rank(1, &(struct habits){.wait = 10,
                                  .compute = 5000,
                                  .collectives = 2,
                                  .uneven = 2000,
                                  .late_by = 777,
                                  .from_step = 2});
    draw_rank(2, &(struct habits){.wait = 10, .compute = 3500, .collectives = 2, .uneven = 2000});
    align(tables, &alignment);
    ck_assert_uint_eq(alignment.count, (uint64_t)(STEPS - 2) * 2);
    ck_assert(alignment.is_aligned[0] && alignment.is_aligned[1] && alignment.is_aligned[2]);
    ck_assert_int_eq(alignment.offset_ns[1] - alignment.offset_ns[0], INT64_C(24000) * 1000);
    ck_assert_int_eq(alignment.offset_ns[2], alignment.offset_ns[0]);
    for (uint64_t i = 0; i < alignment.count; i++) {
        const struct lac_aligned_collective *it = &alignment.collectives[i];
        ck_assert_uint_eq(it->count, 3);
        ck_assert(i == 0 || it->end_ns > it[-1].end_ns);
        for (uint32_t e = 0; e < 3; e++) {
            const struct lac_aligned_entry *entry = &alignment.entries[it->first + e];
            ck_assert_uint_eq(entry->rank, e);
            ck_assert_int_eq(entry->end_ns + alignment.offset_ns[e], it->end_ns);
        }
        if (i % 2 == 0) { /* the first of a step: rank 1 computes 1.5 ms longer than rank 2 */
            struct lac_collective_arrival arrival = lac_collective_arrival_of(&alignment, it);
            ck_assert_uint_eq(arrival.last, 1);
            ck_assert_int_eq(arrival.late_ns, INT64_C(1500) * 1000);
        }
    }
    align_done(tables, &alignment);
    wipe();
}
END_TEST

START_TEST(a_rank_that_meets_nobody_has_no_place_on_the_common_clock)
{
    struct lac_rank_table *tables[RANKS];
    struct lac_ranks_alignment alignment = {0};
    draw_rank(0, &(struct habits){.wait = 10, .compute = 3000});
    draw_rank(1, &(struct habits){.wait = 10, .compute = 3000, .collectives = 1});
    draw_rank(2, &(struct habits){.wait = 10, .compute = 3000, .collectives = 1});
    draw_rank(2, &(struct habits){.wait = 10, .compute = 3000, .collectives = 1});
    align(tables, &alignment);
    ck_assert(!alignment.is_aligned[0] && alignment.is_aligned[1] && alignment.is_aligned[2]);
    ck_assert_msg(!alignment.is_aligned[3], "rank 2 appears twice: its first trace counts");
    ck_assert_uint_eq(alignment.count, STEPS);
    ck_assert_uint_eq(alignment.entries[alignment.collectives[0].first].rank, 1);
    align_done(tables, &alignment);
    wipe();
}
END_TEST

START_TEST(groups_of_ranks_are_told_apart)
{
    draw_rank(0, &(struct habits){100, 5000, 1, 0, 0, 0, 0, NULL, NULL});
    draw_rank(1, &(struct habits){2100, 5000, 1, 0, 0, 0, 0, NULL, NULL});
    draw_rank(2, &(struct habits){100, 5000, 1, 0, 0, 3000, 9000, NULL, NULL});
    draw_rank(3, &(struct habits){110, 5000, 1, 0, 0, 3000, 9000, NULL, NULL});
    compare();
    ck_assert_uint_eq(run->collective_count, 2 * STEPS);
    ck_assert_uint_eq(run->late, 1);
    ck_assert_int_eq(run->ranks[0].wait_ns, STEPS * (int64_t)2000000);
    ck_assert_int_eq(run->ranks[2].wait_ns, STEPS * (int64_t)10000);
    wipe();
}
END_TEST

START_TEST(missing_and_doubled_ranks_are_said)
{
    draw_rank(0, &usual);
    draw_rank(2, &(struct habits){3100, 5000, 1, 0, 0, 0, 0, NULL, NULL});
    draw_rank(2, &usual);
    draw_rank(3, &usual);
    for (uint32_t r = 0; r < drawn; r++) {
        models[r]->info.world_size = 8;
    }
    compare();
    ck_assert_uint_eq(run->late, 1);
    ck_assert_ptr_nonnull(strstr(run->note, "3 of 8 ranks are present"));
    ck_assert_ptr_nonnull(strstr(run->note, "Rank 2 appears twice"));
    ck_assert(!run->ranks[2].is_matched);
    wipe();
}
END_TEST

/** How ranks are late in turns; times in us. */
struct turns {
    int wait;     /**< for data, beyond 100, of the rank whose turn it is */
    int compute;  /**< beyond 4000, of it */
    int only_in;  /**< nobody is late but in that step; -1: in each */
    bool is_host; /**< data that wait for nobody is late because the host works */
    const char *collective;
};

/** Three ranks, of which another one comes last in each step of 12 ms. */
static void draw_turns(const struct turns *turns)
{
    enum { TURNS = 24 };
    for (int rank = 0; rank < 3; rank++) {
        unsigned corr = 0;
        sheet_blank();
        for (int i = 0; i < TURNS; i++) {
            int begin = 10000 + i * 12000;
            bool is_late = i % 3 == rank && (turns->only_in < 0 || turns->only_in == i);
            int wait = 100 + (is_late ? turns->wait : 0);
            int compute = 4000 + (is_late ? turns->compute : 0);
            int at = begin + wait + compute;
            sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
            sheet_add("main wait %d %d batch=%d\n", begin, turns->is_host ? 50 : wait, i);
            sheet_add("w%d fetch %d 8000 batch=%d worker=%d\n", i % 2, begin + wait - 8000, i,
                      i % 2);
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", begin + wait - 5, ++corr);
            sheet_add("gpu0.7 kernel %d %d #%u dgrad_s884cudnn\n", begin + wait, compute, corr);
            sheet_add("main call %d 1 #%u cudaLaunchKernel\n", begin + wait - 2, ++corr);
            sheet_add("gpu0.7 kernel %d %d #%u %s\n", at, begin + 9900 - at, corr,
                      turns->collective);
            sheet_add("main op %d 20 Optimizer.step#SGD.step\n", begin + 9950);
        }
        models[drawn] = trace_draw_with(sheet_text(), NULL, 7);
        models[drawn]->info.rank = rank;
        analyses[drawn] = trace_diagnose(models[drawn]);
        drawn++;
    }
    compare();
    ck_assert_uint_eq(run->late, LAC_NONE);
    ck_assert(strstr(run->note, "take turns being late") != NULL ||
              strstr(run->note, "only sends and receives match") != NULL);
}

static const char all_reduce[] = "ncclDevKernel_AllReduce";

/** All arrive when their mean does now: two thirds of 3 ms earlier, in steps of 10 ms. */
START_TEST(ranks_that_compute_longer_in_turns_are_evened_out)
{
    draw_turns(&(struct turns){0, 3000, -1, false, all_reduce});
    ck_assert(run->has_finding);
    const struct lac_finding *finding = &run->finding;
    ck_assert_str_eq(finding->id, "imbalance-and-bubble");
    ck_assert_int_eq(finding->cost_ns_per_step, 2000000);
    ck_assert_double_le(fabs(finding->gain_high_pct - 20.0), 1.0);
    ck_assert_double_lt(finding->gain_mid_pct, finding->gain_high_pct);
    ck_assert_ptr_nonnull(strstr(finding->title, "wait for each other in turns: 2 ms"));
    ck_assert_ptr_nonnull(strstr(finding->why, "rank 0 8 times, rank 1 8 times, rank 2 8 times"));
    ck_assert_ptr_nonnull(strstr(finding->why, "Its GPU computed longer before it arrived"));
    ck_assert_ptr_nonnull(strstr(finding->change, "group_by_length=True"));
    ck_assert_uint_eq(finding->evidence_count, 1);
    wipe();
}
END_TEST

/** Two exchanges a layer in each pass are those of experts. */
START_TEST(tokens_of_experts_are_told_from_batches)
{
    static const char exchange[] =
        "ncclDevKernel_SendRecv args={\"Collective name\":\"all_to_allv\"}";
    draw_turns(&(struct turns){0, 3000, -1, false, exchange});
    ck_assert(run->has_finding); /* one a step: tables of embeddings */
    ck_assert_ptr_null(strstr(run->finding.why, "experts"));
    ck_assert_ptr_nonnull(strstr(run->finding.change, "group_by_length=True"));
    wipe();
}
END_TEST

START_TEST(ranks_whose_batches_come_late_in_turns_are_told_so)
{
    draw_turns(&(struct turns){3000, 0, -1, false, all_reduce});
    ck_assert(run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->finding.why, "It waited longer for data"));
    ck_assert_ptr_nonnull(strstr(run->finding.change, "prefetch_factor"));
    wipe();
}
END_TEST

START_TEST(ranks_whose_hosts_are_slow_in_turns_are_told_so)
{
    draw_turns(&(struct turns){3000, 0, -1, true, all_reduce});
    ck_assert(run->has_finding);
    ck_assert_ptr_nonnull(strstr(run->finding.why, "Its host worked longer"));
    ck_assert_ptr_nonnull(strstr(run->finding.change, "gc.disable()"));
    wipe();
}
END_TEST

/** What is no imbalance: nobody late, one slow batch, too little to matter, stages of a pipeline. */
START_TEST(ranks_that_are_late_in_turns_are_not_blamed)
{
    static const struct turns quiet[] = {
        {0, 0, -1, false, all_reduce},
        {0, 3000, 12, false, all_reduce},
        {0, 300, -1, false, all_reduce},
        {0, 3000, -1, false, "ncclDevKernel_SendRecv args={\"Collective name\":\"recv\"}"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(quiet); i++) {
        draw_turns(&quiet[i]);
        ck_assert_msg(!run->has_finding, "%zu", i);
        wipe();
    }
}
END_TEST

START_TEST(a_recording_that_began_late_is_no_straggler_of_every_step)
{
    /* one step; what rank 1 is late by was there before anything of it was recorded */
    for (int rank = 0; rank < 3; rank++) {
        sheet_blank();
        int at = 100 + (rank == 1 ? 4000 : 0);
        sheet_add("main range %d 20000 ProfilerStep#1\n", at - 90);
        sheet_add("gpu0.7 kernel %d 1000 dgrad_s884cudnn\n", at);
        sheet_add("gpu0.7 kernel %d %d ncclDevKernel_AllReduce\n", at + 1000, 6000 - at);
        sheet_add("gpu0.7 kernel 7000 3000 dgrad_s884cudnn\ngpu0.7 kernel 10000 500 "
                  "ncclDevKernel_AllReduce\n");
        models[drawn] = trace_draw_with(sheet_text(), NULL, 7);
        models[drawn]->info.rank = rank;
        analyses[drawn] = trace_diagnose(models[drawn]);
        drawn++;
    }
    compare();
    ck_assert_uint_eq(run->late, 1);
    ck_assert_ptr_nonnull(strstr(run->finding.why, "started later"));
    ck_assert_ptr_nonnull(strstr(run->finding.why, "lies before the recording"));
    ck_assert_double_lt(run->finding.gain_low_pct, 1.0);
    wipe();
}
END_TEST

START_TEST(tables_outlive_models)
{
    struct lac_rank_table *tables[3] = {NULL};
    struct lac_run *again = NULL;
    draw_rank(0, &(struct habits){100, 5000, 2, 0, 0, 0, 0, NULL, NULL});
    draw_rank(1, &(struct habits){3100, 5000, 2, 0, 0, 0, 0, NULL, NULL});
    draw_rank(2, &(struct habits){100, 5000, 2, 0, 0, 0, 0, NULL, NULL});
    compare();
    ck_assert(run->has_finding);
    for (uint32_t r = 0; r < 3; r++) {
        ck_assert_int_eq(lac_rank_table_create(models[r], analyses[r], &tables[r]), LAC_OK);
        ck_assert_int_eq(lac_rank_table_rank(tables[r]), (int32_t)r);
        ck_assert_uint_gt(lac_rank_table_bytes(tables[r]), STEPS * 40);
        lac_analysis_destroy(analyses[r]);
        lac_model_destroy(models[r]);
    }
    drawn = 0;
    ck_assert_int_eq(lac_ranks_join((const struct lac_rank_table *const *)tables, 3, &again),
                     LAC_OK);
    ck_assert_uint_eq(again->late, run->late);
    ck_assert_uint_eq(again->collective_count, run->collective_count);
    ck_assert_str_eq(again->finding.why, run->finding.why);
    lac_run_destroy(again);
    for (uint32_t r = 0; r < 3; r++) {
        lac_rank_table_destroy(tables[r]);
    }
    wipe();
}
END_TEST

/* -- random ranks ----------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t below(uint32_t bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % bound);
}

static void draw_random_rank(void)
{
    static const char *const names[] = {"ncclDevKernel_AllReduce", "ncclDevKernel_AllGather",
                                        "ncclKernel_SendRecv", "dgrad_s884cudnn", "MEMSET"};
    static const int scales[] = {1, 1000, 1000000000};
    int scale = scales[below(3)];
    uint32_t count = below(60);
    sheet_blank();
    sheet_add("main range 0 1 x\n");
    for (uint32_t i = 0; i < count; i++) {
        sheet_add("gpu%u.%u kernel %lld %lld %s\n", below(8) == 0, below(3),
                  (long long)below(2000) * scale, (long long)below(300) * scale, names[below(5)]);
    }
    models[drawn] = trace_draw_with(sheet_text(), NULL, 7);
    models[drawn]->info.rank = (int32_t)below(6) - 1;
    models[drawn]->info.world_size = (int32_t)below(9) - 1;
    analyses[drawn] = trace_diagnose(models[drawn]);
    drawn++;
}

/** Whatever the ranks are: the sums hold, nobody waits for less than nothing, twice is the same. */
static void check_random(void)
{
    compare();
    struct lac_run *first = run;
    uint64_t last = 0;
    compare();
    ck_assert_uint_eq(first->late, run->late);
    ck_assert_str_eq(first->note, run->note);
    for (uint32_t r = 0; r < drawn; r++) {
        const struct lac_rank_facts *facts = &run->ranks[r];
        ck_assert(facts->is_matched || facts->wait_ns == LAC_UNKNOWN_NS);
        ck_assert(!facts->is_matched || (facts->wait_ns >= 0 && facts->transfer_ns >= 0));
        ck_assert_int_eq(facts->wait_ns, first->ranks[r].wait_ns);
        last += facts->last_count;
    }
    ck_assert_uint_eq(last, run->collective_count);
    ck_assert(run->has_finding || run->late == LAC_NONE);
    if (run->has_finding) {
        const struct lac_finding *finding = &run->finding;
        ck_assert(finding->gain_low_pct >= 0.0 && finding->gain_low_pct <= finding->gain_mid_pct);
        ck_assert(finding->gain_mid_pct <= finding->gain_high_pct);
        ck_assert(finding->gain_high_pct <= 100.0 && finding->cost_pct <= 100.0);
        ck_assert_str_eq(finding->why, first->finding.why);
    }
    lac_run_destroy(first);
}

START_TEST(random_ranks_keep_their_sums)
{
    state = (uint64_t)_i * 77 + 5;
    uint32_t count = below(RANKS) + 1;
    for (uint32_t r = 0; r < count; r++) {
        draw_random_rank();
    }
    check_random();
    wipe();
}
END_TEST

/** Steps of 100 ms of two ranks; in collectives one waits 40 ms for the other, and 10 are transfer. */
static struct lac_run *uneven_run(struct lac_rank_facts facts[2])
{
    static struct lac_run whole;
    for (int r = 0; r < 2; r++) {
        facts[r] = (struct lac_rank_facts){.rank = r,
                                           .is_matched = true,
                                           .wait_ns = r == 0 ? 0 : 400000000,
                                           .transfer_ns = 100000000,
                                           .step_mean_ns = 100000000};
    }
    whole = (struct lac_run){.ranks = facts, .rank_count = 2, .collective_count = 10};
    return &whole;
}

/** A rank whose step is `step_ns` with its collectives and `alone_ns` without, of 100 ms and `now_ns`
 *  without the change; those hide from `hidden` of their time on, or not at all: 0. */
static struct lac_rank_what_if answer(int64_t step_ns, int64_t alone_ns, int64_t now_ns,
                                      double hidden)
{
    struct lac_rank_what_if it = {.step = {step_ns - 1000000, step_ns, step_ns + 1000000},
                                  .why_not = ""};
    for (int i = 0; i < LAC_COMM_PARTS; i++) {
        const double part = fmax(0.0, (double)i / LAC_COMM_PARTS - hidden) / (1.0 - hidden);
        const int64_t ns = alone_ns + (int64_t)(part * (double)(step_ns - alone_ns));
        it.by_comm[i] = (struct lac_what_if_step){ns - 1000000, ns, ns + 1000000};
        it.now_by_comm_ns[i] = now_ns + (int64_t)(part * (100e6 - (double)now_ns));
    }
    return it;
}

START_TEST(the_rank_that_needs_longest_sets_the_pace_after_a_change)
{
    struct lac_rank_facts facts[2];
    struct lac_run *whole = uneven_run(facts);
    struct lac_run_what_if what_if;
    /* kernels=0.5: the first computes 45 instead of 90 ms, the second 25 of 50, and waits as before */
    const struct lac_rank_what_if halved[2] = {answer(55000000, 45000000, 90000000, 0.0),
                                               answer(75000000, 25000000, 50000000, 0.0)};
    lac_run_what_if(whole, halved, &what_if);
    ck_assert_str_eq(what_if.why_not, "");
    ck_assert_int_eq(what_if.now_ns, 100000000);
    ck_assert_int_eq(what_if.step.mean_ns, 55000000);
    ck_assert_int_eq(what_if.step.low_ns, 54000000);
    ck_assert_int_eq(what_if.step.high_ns, 56000000);
    /* the first computes 45 ms beside its transfer, of which 5 ms remain; a fifth of the second's time
     * in collectives is transfer, and hides */
    const struct lac_rank_what_if beside[2] = {answer(50000000, 45000000, 90000000, 0.5),
                                               answer(75000000, 25000000, 50000000, 0.5)};
    lac_run_what_if(whole, beside, &what_if);
    ck_assert_int_eq(what_if.step.mean_ns, 50000000);
    const struct lac_rank_what_if late[2] = {answer(30000000, 25000000, 90000000, 0.5),
                                             answer(75000000, 45000000, 50000000, 0.5)};
    lac_run_what_if(whole, late, &what_if);
    ck_assert_int_eq(what_if.step.mean_ns, 45000000);
    /* comm=0: what the first needs is left */
    const struct lac_rank_what_if free[2] = {answer(90000000, 90000000, 90000000, 0.0),
                                             answer(50000000, 50000000, 50000000, 0.0)};
    lac_run_what_if(whole, free, &what_if);
    ck_assert_int_eq(what_if.step.mean_ns, 90000000);
    lac_texts_destroy(whole->texts);
}
END_TEST

START_TEST(of_a_run_without_matches_nothing_is_known)
{
    struct lac_rank_facts facts[2];
    struct lac_run *whole = uneven_run(facts);
    struct lac_run_what_if what_if;
    struct lac_rank_what_if ranks[2] = {answer(55000000, 45000000, 90000000, 0.0),
                                        answer(75000000, 25000000, 50000000, 0.0)};
    whole->collective_count = 0;
    lac_run_what_if(whole, ranks, &what_if);
    ck_assert_ptr_nonnull(strstr(what_if.why_not, "no collective was found on two ranks"));
    ck_assert_int_eq(what_if.step.mean_ns, LAC_UNKNOWN_NS);
    ck_assert_str_eq(what_if.assumption, "");
    ranks[1] = (struct lac_rank_what_if){.step = {LAC_UNKNOWN_NS, LAC_UNKNOWN_NS, LAC_UNKNOWN_NS},
                                         .why_not = "no GPU work"};
    lac_run_what_if(whole, ranks, &what_if);
    ck_assert_str_eq(what_if.why_not, "rank 1: no GPU work");
    facts[0].step_mean_ns = LAC_UNKNOWN_NS;
    lac_run_what_if(whole, ranks, &what_if);
    ck_assert_ptr_nonnull(strstr(what_if.why_not, "rank 0: no steps were found"));
    lac_texts_destroy(whole->texts);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_ranks");
    TCase *tcase = tcase_create("ranks");
    tcase_add_test(tcase, the_rank_with_the_shortest_collectives_is_late);
    tcase_add_test(tcase, made_up_tables_are_refused_or_harmless);
    tcase_add_test(tcase, slower_kernels_are_told_from_more_kernels);
    tcase_add_test(tcase, a_transfer_that_stays_exposed_is_no_gain);
    tcase_add_test(tcase, a_stage_of_a_pipeline_is_no_straggler);
    tcase_add_test(tcase, a_rank_recorded_for_less_makes_the_late_one_no_cheaper);
    tcase_add_test(tcase, ranks_that_are_alike_are_not_blamed);
    tcase_add_test(tcase, a_rank_that_does_not_match_is_said);
    tcase_add_test(tcase, ranks_without_collectives_tell_nothing);
    tcase_add_test(tcase, clocks_and_longer_recordings_change_nothing);
    tcase_add_test(tcase, ranks_come_to_one_clock_by_the_ends_of_collectives);
    tcase_add_test(tcase, a_rank_that_meets_nobody_has_no_place_on_the_common_clock);
    tcase_add_test(tcase, groups_of_ranks_are_told_apart);
    tcase_add_test(tcase, missing_and_doubled_ranks_are_said);
    tcase_add_test(tcase, ranks_that_compute_longer_in_turns_are_evened_out);
    tcase_add_test(tcase, tokens_of_experts_are_told_from_batches);
    tcase_add_test(tcase, ranks_whose_batches_come_late_in_turns_are_told_so);
    tcase_add_test(tcase, ranks_whose_hosts_are_slow_in_turns_are_told_so);
    tcase_add_test(tcase, ranks_that_are_late_in_turns_are_not_blamed);
    tcase_add_test(tcase, a_recording_that_began_late_is_no_straggler_of_every_step);
    tcase_add_test(tcase, tables_outlive_models);
    tcase_add_loop_test(tcase, random_ranks_keep_their_sums, 0, 200);
    tcase_add_test(tcase, the_rank_that_needs_longest_sets_the_pace_after_a_change);
    tcase_add_test(tcase, of_a_run_without_matches_nothing_is_known);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
