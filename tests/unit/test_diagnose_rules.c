/* What must never be said: traces in which the naive text would appear, for the rules that other
 * tests of the diagnosis do not cover; and words that no finding may use. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <string.h>

/** Words that are never used, whatever was found. */
static void check_manners(void)
{
    static const char *const words[] = {
        "!",    "optimal",  "critical issue", "empty_cache", "increase num_workers",
        "DALI", "up to 8x", "half the memory"};
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        const char *const parts[] = {finding->title, finding->why,      finding->expect,
                                     finding->costs, finding->wrong_if, finding->brief};
        for (size_t p = 0; p < LAC_COUNT_OF(parts); p++) {
            for (size_t w = 0; w < LAC_COUNT_OF(words); w++) {
                ck_assert_msg(strcasestr(parts[p], words[w]) == NULL, "%s: %s", finding->id,
                              parts[p]);
            }
            for (const char *c = parts[p]; *c != '\0'; c++) {
                ck_assert_msg((unsigned char)*c < 0x80, "%s: %s", finding->id, parts[p]);
            }
        }
        bool is_band =
            isnan(finding->gain_mid_pct) ||
            (finding->gain_low_pct <= finding->gain_mid_pct &&
             finding->gain_mid_pct <= finding->gain_high_pct && finding->gain_high_pct <= 100.0);
        ck_assert_msg(is_band, "%s", finding->id);
        bool is_text = finding->change_kind == LAC_CHANGE_TEXT;
        ck_assert_msg(!is_text || strchr(finding->change, '\n') == NULL, "%s: no text: %s",
                      finding->id, finding->change);
    }
}

/* -- 5: launches ------------------------------------------------------------------------------- */

enum obstacle { NOTHING, WAITS, VARIES };

/** 50 kernels a step, each launched when the one before it is done. */
static void draw_launches(enum obstacle obstacle)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 10000;
        int count = obstacle == VARIES && i % 2 == 1 ? 44 : 50;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        for (int k = 0; k < count; k++) {
            int at = begin + k * 199;
            sheet_add("main op %d 190 aten::add\n", at);
            sheet_add("main call %d 3 #%u cudaLaunchKernel\n", at + 1, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 150 #%u dgrad_s16816cudnn_kernel\n", at + 10, sheet_corr);
            if (obstacle == WAITS && k % 10 == 5) {
                sheet_add("main call %d 154 cudaStreamSynchronize\n", at + 8);
            }
        }
        sheet_add("main op %d 30 Optimizer.step#SGD.step\n", begin + 9955);
        sheet_add("main call %d 3 #%u cudaLaunchKernel\n", begin + 9958, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 15 #%u multi_tensor_apply_kernel<SgdFunctor>\n", begin + 9970,
                  sheet_corr);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(graphs_are_proposed_only_where_nothing_stands_in_their_way)
{
    draw_launches(NOTHING);
    const struct lac_finding *finding = sheet_finding("launch-bound");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "reduce-overhead"));
    ck_assert_ptr_nonnull(strstr(finding->expect, "at most"));
    ck_assert_ptr_nonnull(strstr(finding->costs, "pay off after about"));
    ck_assert_ptr_null(strstr(finding->change, "foreach")); /* it is grouped already */
    check_manners();
    draw_launches(WAITS);
    finding = sheet_finding("launch-bound");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->change, "reduce-overhead"));
    ck_assert_ptr_nonnull(strstr(finding->expect, "synchronizations per step first"));
    check_manners();
    draw_launches(VARIES);
    finding = sheet_finding("launch-bound");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->change, "reduce-overhead"));
    ck_assert_ptr_nonnull(strstr(finding->expect, "launches differ from step to step"));
    check_manners();
}
END_TEST

/** Ten steps of one graph each, whose kernels stand apart from each other. */
START_TEST(a_job_that_replays_graphs_is_not_told_to_launch_less)
{
    sheet_blank();
    for (int i = 0; i < 40; i++) {
        int begin = i * 280;
        sheet_add("main range %d 280 ProfilerStep#%d\n", begin, i);
        sheet_add("main call %d 20 #%u cudaGraphLaunch\n", begin, ++sheet_corr);
        for (int k = 0; k < 20; k++) {
            sheet_add("gpu0.7 kernel %d 10 #%u dgrad_kernel\n", begin + 30 + k * 12, sheet_corr);
        }
    }
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("launch-bound"));
}
END_TEST

/** A recording whose kernels are missing: nobody can say what the launches cost. */
START_TEST(launches_without_kernels_are_no_finding)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        for (int k = 0; k < 50; k++) {
            int at = begin + k * 199;
            sheet_add("main op %d 190 aten::copy_\n", at);
            for (int call = 0; call < 10; call++) {
                sheet_add("main call %d 3 cudaLaunchKernel\n", at + 2 + call * 18);
            }
            sheet_add("main call %d 3 #%u cudaMemcpyAsync\n", at + 183, ++sheet_corr);
            sheet_add("gpu0.7 copy %d 5 #%u DtoD device 1000\n", at + 187, sheet_corr);
        }
        sheet_add("main op %d 30 Optimizer.step#SGD.step\n", begin + 9955);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("launch-bound"));
    check_manners();
}
END_TEST

/* -- 6: copies --------------------------------------------------------------------------------- */

START_TEST(a_call_that_waits_for_the_gpu_is_no_slow_copy)
{
    /* 40 ms of API time for a copy of 1.6 ms: it waits for the batch before */
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 42000;
        sheet_add("main range %d 42000 ProfilerStep#%d\n", begin, i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 100, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 40000 #%u dgrad_s16816cudnn_kernel\n", begin + 110, sheet_corr);
        sheet_add("main call %d 41650 #%u cudaMemcpyAsync\n", begin + 200, ++sheet_corr);
        sheet_add("gpu0.7 copy %d 1600 #%u HtoD pageable 19000000\n", begin + 40120, sheet_corr);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 41900);
    }
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("pageable-copy");
    if (finding != NULL) { /* the copy itself is in line: 1.6 ms of 42 ms and no more */
        ck_assert(finding->cost_pct < 5.0);
        ck_assert_ptr_null(strstr(finding->change, "x.pin_memory().to"));
    }
    ck_assert_str_eq(analysis->verdict.cause, "gpu");
    check_manners();
}
END_TEST

/* -- 7: tensor cores --------------------------------------------------------------------------- */

START_TEST(a_kernel_of_unknown_name_is_unknown)
{
    sheet_blank();
    for (int i = 0; i < 8; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 10, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 9900 #%u my_secret_gemm_kernel\n", begin + 20, sheet_corr);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9960);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("tensor-cores-unused"));
    ck_assert_ptr_null(sheet_finding("tensor-cores-misaligned"));
    ck_assert_ptr_null(sheet_finding("tensor-cores-older-kernels"));
    ck_assert_int_eq(analysis->tensor_used_pct > 0.0, 0);
    check_manners();
}
END_TEST

/* -- 11: sums of gains ------------------------------------------------------------------------- */

/** A row of the plan has a finding that says where and what to change; of workers the number may grow. */
static void check_has_finding(const char *brief)
{
    static const char workers[] = "num_workers=";
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        bool is_of_it = strcmp(finding->brief, brief) == 0 ||
                        (finding->workers > 0 && strncmp(brief, workers, strlen(workers)) == 0);
        if (is_of_it && finding->change[0] != '\0') {
            return;
        }
    }
    ck_abort_msg("no finding says how: %s", brief);
}

START_TEST(gains_of_findings_that_overlap_are_not_added)
{
    /* the device waits 6 of 10 ms, for data and then for a value that is read: both claim it */
    sheet_blank();
    for (int i = 0; i < 20; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        sheet_add("main wait %d 3000 batch=%d\n", begin, i);
        sheet_add("w%d fetch %d 19000 batch=%d worker=%d\n", i % 2, begin, i, i % 2);
        sheet_add("main call %d 5 #%u cudaMemcpyAsync\n", begin + 3100, ++sheet_corr);
        sheet_add("gpu0.7 copy %d 900 #%u HtoD pageable 9000000\n", begin + 3110, sheet_corr);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 4100, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 3000 #%u volta_sgemm_128x64_nn\n", begin + 4110, sheet_corr);
        sheet_add("main op %d 3100 aten::item\n", begin + 4120);
        sheet_add("main call %d 3090 cudaStreamSynchronize\n", begin + 4125);
        sheet_add("main op %d 2000 my_metrics\n", begin + 7300);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9900);
    }
    sheet_diagnose(NULL, 7);
    ck_assert_uint_gt(analysis->finding_count, 1);
    double left = 1.0;
    for (uint32_t i = 0; i < analysis->plan_count; i++) {
        check_has_finding(analysis->plan[i].brief);
        ck_assert(analysis->plan[i].gain_pct >= 0.0 && analysis->plan[i].gain_pct < 100.0);
        left *= 1.0 - analysis->plan[i].gain_pct / 100.0;
    }
    if (analysis->plan_count > 0) {
        double last = (double)analysis->plan[analysis->plan_count - 1].step_ns;
        double first = (double)analysis->step_mean_ns;
        /* each gain is of the step before it: together they are what the last step says */
        ck_assert(fabs(left - last / first) < 0.02);
        ck_assert(last >= 3900000.0); /* copy and kernel are still to be done */
    }
    check_manners();
}
END_TEST

/* -- 12: what is no training step ---------------------------------------------------------------*/

START_TEST(layers_of_a_forward_pass_with_hooks_for_a_backward_pass_are_no_steps)
{
    sheet_blank();
    for (int i = 0; i < 24; i++) {
        int begin = i * 1000;
        sheet_add("main range %d 5 RegisterPostBackwardFunction, seq = %d\n", begin, 100 + i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 10, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 500 #%u flash_fwd_kernel\n", begin + 20, sheet_corr);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 550, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 250 #%u nvjet_tst_192x192_64x4\n", begin + 560, sheet_corr);
    }
    sheet_diagnose(NULL, 9);
    ck_assert_int_ne((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert_uint_eq(analysis->finding_count, 0);
}
END_TEST

/* -- waits that are not the user's ------------------------------------------------------------- */

/** Two streams; the second waits for the first `wait_us` before each of its kernels. */
static void draw_streams(int wait_us, bool has_event)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 10, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 4000 #%u dgrad_s16816cudnn_kernel\n", begin + 20, sheet_corr);
        if (has_event) {
            sheet_add("main call %d 2 cudaStreamWaitEvent\n", begin + 30);
        }
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 40, ++sheet_corr);
        sheet_add("gpu0.9 kernel %d %d #%u wgrad_s16816cudnn_kernel\n", begin + 4020 + wait_us,
                  5900 - wait_us, sheet_corr);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9960);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(streams_that_wait_for_each_other_are_told_from_one_that_is_late)
{
    draw_streams(1500, true);
    const struct lac_finding *finding = sheet_finding("dependency-stall");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->cost_ns_per_step / 100000, 15);
    ck_assert_ptr_nonnull(strstr(finding->change, "wait_stream"));
    ck_assert(finding->gain_low_pct < 0.1); /* it may be that nothing can be moved */
    check_manners();
    draw_streams(100, true); /* too little for a word */
    ck_assert_ptr_null(sheet_finding("dependency-stall"));
    draw_streams(1500, false); /* no event was recorded: nothing is invented */
    ck_assert_ptr_null(sheet_finding("dependency-stall"));
}
END_TEST

/** The recorder writes its buffers for `flush_us` of each step, while the device is idle or not. */
static void draw_flush(int flush_us, bool is_beside)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", begin + 10, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d %d #%u dgrad_s16816cudnn_kernel\n", begin + 20,
                  is_beside ? 9900 : 9900 - flush_us, sheet_corr);
        sheet_add("main overhead %d %d Buffer Flush\n", begin + 9920 - flush_us, flush_us);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9960);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(what_the_recorder_costs_is_said_and_not_sold_as_a_gain)
{
    draw_flush(2000, false);
    const struct lac_finding *finding = sheet_finding("profiler-overhead");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert(isnan(finding->gain_mid_pct));
    ck_assert(finding->cost_pct > 15.0 && finding->cost_pct < 21.0);
    check_manners();
    draw_flush(2000, true); /* beside a kernel: nobody waits for it */
    ck_assert_ptr_null(sheet_finding("profiler-overhead"));
}
END_TEST

/** `calls` allocations and releases in each step; `first` steps only. */
static void draw_allocations(int calls, int first, int failed)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int begin = i * 10000;
        int each = i < first ? calls : 0;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        for (int k = 0; k < each; k++) {
            sheet_add("main call %d 400 cudaFree ret=0\n", begin + 10 + k * 900);
            sheet_add("main call %d 400 cudaMalloc ret=%d\n", begin + 450 + k * 900,
                      k == 0 && failed ? 2 : 0);
        }
        int at = begin + 20 + each * 900;
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d %d #%u dgrad_s16816cudnn_kernel\n", at + 10,
                  begin + 9900 - at - 10, sheet_corr);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9960);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(memory_that_is_allocated_in_every_step_is_told_from_the_first_ones)
{
    draw_allocations(2, 10, 0);
    const struct lac_finding *finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->why, "with out-of-memory"));
    check_manners();
    draw_allocations(2, 10, 1); /* the cache is emptied for want of memory, then it succeeds */
    finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "with out-of-memory"));
    ck_assert_ptr_nonnull(strstr(finding->change, "expandable_segments"));
    ck_assert_ptr_null(sheet_finding("out-of-memory"));
    check_manners();
    draw_allocations(2, 2, 0); /* the first steps fill the cache */
    ck_assert_ptr_null(sheet_finding("allocator-thrash"));
}
END_TEST

/** Steps of `kernels` kernels; each allocates once for every `per_alloc` of them, and releases all at
 *  the end (or one after the other). */
static void draw_uncached(int kernels, int per_alloc, const char *vendor)
{
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        int at = i * 40000;
        sheet_add("main range %d 40000 ProfilerStep#%d\n", at, i);
        for (int k = 0; k < kernels; k++) {
            bool allocates = k % per_alloc == 0;
            if (allocates) {
                sheet_add("main call %d 200 %sMalloc\n", at + 10, vendor);
                sheet_add("main call %d 200 %sFree\n", at + 220, vendor);
            }
            sheet_add("main op %d 30 aten::mm\n", at + 430);
            sheet_add("main call %d 5 #%u %sLaunchKernel\n", at + 440, ++sheet_corr, vendor);
            sheet_add("gpu0.7 kernel %d 100 #%u dgrad_s16816cudnn_kernel\n", at + 450, sheet_corr);
            at += 600;
        }
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", i * 40000 + 39960);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_cache_that_is_off_is_turned_on)
{
    draw_uncached(60, 1, "cuda");
    const struct lac_finding *finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "unset PYTORCH_NO_CUDA_MEMORY_CACHING\n"));
    ck_assert_ptr_null(strstr(finding->change, "expandable_segments"));
    check_manners();
    draw_uncached(60, 1, "hip");
    finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "PYTORCH_NO_HIP_MEMORY_CACHING"));
    draw_uncached(60, 10, "cuda"); /* one for ten kernels: segments, not tensors */
    finding = sheet_finding("allocator-thrash");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->change, "NO_CUDA_MEMORY_CACHING"));
}
END_TEST

/* -- what a finding is -------------------------------------------------------------------------- */

START_TEST(every_kind_of_finding_has_an_id_of_its_own_and_somebody_who_looks_for_it)
{
    int finders[LAC_FINDING_COUNT_] = {0};
#define LAC_FINDER(kind, phase, subjects, finder) finders[LAC_FINDING_##kind]++;
#include "analysis/diagnose/result/finding_registry.def"
    int all = 0;
    for (int k = 0; k < LAC_FINDING_COUNT_; k++) {
        const struct lac_finding_type *type = lac_finding_type((enum lac_finding_kind)k);
        ck_assert_uint_eq(strspn(type->id, "abcdefghijklmnopqrstuvwxyz-"), strlen(type->id));
        for (int other = 0; other < k; other++) {
            ck_assert_str_ne(type->id, lac_finding_type((enum lac_finding_kind)other)->id);
        }
        bool is_of_ranks = k == LAC_FINDING_STRAGGLER_RANK; /* made from several traces */
        ck_assert_msg((finders[k] > 0) != is_of_ranks, "%s", type->id);
        all += finders[k];
        struct lac_finding finding;
        lac_finding_init(&finding, (enum lac_finding_kind)k);
        ck_assert_str_eq(finding.id, type->id);
        ck_assert_ptr_nonnull(lac_effort_name(finding.effort));
        ck_assert_ptr_nonnull(lac_change_kind_name(finding.change_kind));
    }
    ck_assert_int_eq(all, LAC_FINDINGS_MAX); /* each may say one: none is dropped */
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("rules");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, graphs_are_proposed_only_where_nothing_stands_in_their_way);
    tcase_add_test(tcase, a_job_that_replays_graphs_is_not_told_to_launch_less);
    tcase_add_test(tcase, launches_without_kernels_are_no_finding);
    tcase_add_test(tcase, a_call_that_waits_for_the_gpu_is_no_slow_copy);
    tcase_add_test(tcase, a_kernel_of_unknown_name_is_unknown);
    tcase_add_test(tcase, gains_of_findings_that_overlap_are_not_added);
    tcase_add_test(tcase, layers_of_a_forward_pass_with_hooks_for_a_backward_pass_are_no_steps);
    tcase_add_test(tcase, streams_that_wait_for_each_other_are_told_from_one_that_is_late);
    tcase_add_test(tcase, what_the_recorder_costs_is_said_and_not_sold_as_a_gain);
    tcase_add_test(tcase, every_kind_of_finding_has_an_id_of_its_own_and_somebody_who_looks_for_it);
    tcase_add_test(tcase, memory_that_is_allocated_in_every_step_is_told_from_the_first_ones);
    tcase_add_test(tcase, a_cache_that_is_off_is_turned_on);
    Suite *suite = suite_create("diagnose_rules");
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
