/* Communication: what a trace shows of it, and what looks alike and is not. */

#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/** When the host is free for its next call, and each stream for its next operation. */
static double host_us, compute_us, comm_us;

static const char gemm[] = "ampere_sgemm_128x64_nn";
static const char all_reduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)";
static const char send_receive[] = "ncclDevKernel_SendRecv(args)";

static void begin(void)
{
    sheet_blank();
    host_us = compute_us = comm_us = 0.0;
}

static void compute(double length, const char *name)
{
    sheet_corr++;
    double start = compute_us > host_us + 6.0 ? compute_us : host_us + 6.0;
    compute_us = start + length;
    sheet_add("main call %.3f 4 #%u cudaLaunchKernel\n", host_us, sheet_corr);
    sheet_add("gpu0.7 kernel %.3f %.3f #%u %s\n", start, length, sheet_corr, name);
    host_us += 5.0;
}

/** A collective after what was computed; computing goes on when it has ended. */
static void communicate(double length, const char *name, const char *operator_name,
                        const char *args)
{
    sheet_corr++;
    sheet_add("main op %.3f 60 c10d::%s\n", host_us, operator_name);
    double start = compute_us > host_us + 50.0 ? compute_us : host_us + 50.0;
    start = start > comm_us ? start : comm_us;
    comm_us = compute_us = start + length;
    sheet_add("main call %.3f 5 #%u cudaLaunchKernelExC\n", host_us + 40.0, sheet_corr);
    sheet_add("gpu0.20 kernel %.3f %.3f #%u %s%s%s\n", start, length, sheet_corr, name,
              args[0] != '\0' ? " args=" : "", args);
    host_us += 62.0;
}

/** An operator of the backward pass around what follows, until lowered again. */
static void step_end(int step, double begin_us)
{
    double end = (compute_us > host_us ? compute_us : host_us) + 5.0;
    sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", host_us, end - host_us);
    host_us = end + 2.0;
    sheet_add("main op %.3f 20 Optimizer.step#SGD.step\n", host_us);
    host_us += 22.0;
    sheet_add("main range %.3f %.3f ProfilerStep#%d\n", begin_us, host_us - begin_us, step);
}

static void draw_small(bool has_products_between, bool has_sizes)
{
    char args[128];
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int k = 0; k < 20; k++) {
            compute(200, gemm);
        }
        for (int c = 0; c < 80; c++) {
            (void)snprintf(args, sizeof(args),
                           "{\"In msg nelems\":%d,\"Group size\":4,\"dtype\":\"Float\"}",
                           has_products_between ? 40000 : 1000 * (1 + c % 12));
            communicate(20, all_reduce, "allreduce_", has_sizes ? args : "");
            if (has_products_between) {
                compute(10, gemm);
            }
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(one_collective_a_tensor_wants_buckets)
{
    draw_small(false, true);
    const struct lac_finding *finding = sheet_finding("collective-efficiency");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "80 collectives per step"));
    ck_assert_ptr_nonnull(strstr(finding->change, "bucket_cap_mb"));
    ck_assert(finding->gain_mid_pct > 20.0 && finding->gain_mid_pct < 75.0);
    ck_assert(finding->gain_low_pct < finding->gain_mid_pct);
    sheet_check_grammar(finding);
    /* the same time is said once */
    ck_assert_ptr_null(sheet_finding("exposed-communication"));
}
END_TEST

START_TEST(sizes_that_were_not_recorded_are_told_by_their_order)
{
    draw_small(false, false);
    ck_assert_ptr_nonnull(sheet_finding("collective-efficiency"));
}
END_TEST

START_TEST(sums_of_layers_are_no_gradients)
{
    /* tensor parallel: as many, as small, all alike, each with a matrix product behind it */
    draw_small(true, true);
    ck_assert_ptr_null(sheet_finding("collective-efficiency"));
    draw_small(true, false);
    ck_assert_ptr_null(sheet_finding("collective-efficiency"));
    ck_assert_ptr_nonnull(sheet_finding("exposed-communication"));
}
END_TEST

/** Two large collectives a step, of 4 MiB; the first takes `first_us`. */
static void draw_large(double first_us, double second_us, const char *name, const char *called)
{
    char args[160];
    begin();
    (void)snprintf(
        args, sizeof(args),
        "{\"Collective name\":\"%s\",\"In msg nelems\":1048576,\"Out msg nelems\":1048576,"
        "\"Group size\":8,\"dtype\":\"Float\"}",
        called);
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int k = 0; k < 20; k++) {
            compute(500, gemm);
        }
        communicate(first_us, name, called, args);
        compute(500, gemm);
        communicate(second_us, name, called, args);
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_link_that_does_a_fraction_is_told_by_the_bytes)
{
    /* 7.3 MB cross the link in 9 ms: 0.8 GB/s, where PCIe alone does ten times as much */
    draw_large(9000, 8000, all_reduce, "allreduce");
    const struct lac_finding *finding = sheet_finding("collective-efficiency");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "GB/s"));
    ck_assert_ptr_nonnull(strstr(finding->change, "NCCL_DEBUG=INFO"));
    ck_assert_ptr_null(strstr(finding->change, "bucket"));
    ck_assert(finding->gain_low_pct < 0.1); /* a late rank looks the same */
    ck_assert(finding->gain_mid_pct > 40.0);
    ck_assert(finding->gain_mid_pct <= finding->gain_high_pct);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("exposed-communication"));
}
END_TEST

START_TEST(a_message_that_went_through_acquits_the_link)
{
    /* the same message at 24 GB/s: the other one waited for a rank */
    draw_large(9000, 300, all_reduce, "allreduce");
    ck_assert_ptr_null(sheet_finding("collective-efficiency"));
    const struct lac_finding *finding = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "waits for other ranks"));
}
END_TEST

START_TEST(advice_goes_by_the_kind_of_collective)
{
    /* an exchange that waits for the computing of others accuses no link and wants no buckets */
    draw_large(9000, 8000, send_receive, "all_to_allv");
    ck_assert_ptr_null(sheet_finding("collective-efficiency"));
    const struct lac_finding *finding = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->change, "bucket"));
    ck_assert_ptr_nonnull(strstr(finding->why, "all-to-all"));
    draw_large(9000, 8000, "ncclDevKernel_AllGather_RING_LL(args)", "_allgather_base");
    finding = sheet_finding("exposed-communication");
    if (finding != NULL) {
        ck_assert_ptr_null(strstr(finding->change, "bucket"));
    }
}
END_TEST

START_TEST(without_a_size_no_link_is_accused)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int k = 0; k < 20; k++) {
            compute(500, gemm);
        }
        communicate(9000, all_reduce, "allreduce_", "");
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("collective-efficiency"));
    ck_assert_ptr_nonnull(sheet_finding("exposed-communication"));
}
END_TEST

/* -- waits in layers --------------------------------------------------------------------------- */

/** The host waits for all that was launched, inside that operator, and then works by itself. */
static void wait_in(const char *operator_name, double works_us)
{
    double end = (compute_us > host_us ? compute_us : host_us) + 5.0;
    sheet_add("main op %.3f %.3f %s\n", host_us, end + 2.0 - host_us, operator_name);
    sheet_add("main op %.3f %.3f aten::_local_scalar_dense\n", host_us + 1.0, end - host_us);
    sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", host_us + 2.0, end - host_us - 2.0);
    host_us = end + 4.0 + works_us;
}

static void draw_layers(int layers, int waits, int at_end)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int layer = 0; layer < layers; layer++) {
            compute(400, gemm);
            compute(400, gemm);
            if (layer < waits) {
                wait_in("aten::item", 150.0);
            }
        }
        for (int output = 0; output < at_end; output++) {
            wait_in("aten::to", 40.0);
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_wait_in_each_layer_names_its_operator)
{
    draw_layers(8, 8, 0);
    const struct lac_finding *finding = sheet_finding("sync-per-layer");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "aten::item stops the host 8 times per step"));
    /* 8 x 160 us of 7.8 ms, and no more than all of it */
    ck_assert(finding->gain_mid_pct > 8.0 && finding->gain_high_pct < 20.0);
    ck_assert(finding->gain_low_pct < finding->gain_mid_pct);
    ck_assert(finding->gain_mid_pct < finding->gain_high_pct);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("sync-stall"));
}
END_TEST

START_TEST(a_wait_at_the_end_of_a_step_is_of_no_layer)
{
    draw_layers(8, 1, 0);
    ck_assert_ptr_null(sheet_finding("sync-per-layer"));
}
END_TEST

START_TEST(results_that_are_copied_in_a_row_wait_once)
{
    draw_layers(8, 0, 6);
    ck_assert_ptr_null(sheet_finding("sync-per-layer"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_communication");
    TCase *tests = tcase_create("collectives");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, one_collective_a_tensor_wants_buckets);
    tcase_add_test(tests, sizes_that_were_not_recorded_are_told_by_their_order);
    tcase_add_test(tests, sums_of_layers_are_no_gradients);
    tcase_add_test(tests, a_link_that_does_a_fraction_is_told_by_the_bytes);
    tcase_add_test(tests, a_message_that_went_through_acquits_the_link);
    tcase_add_test(tests, advice_goes_by_the_kind_of_collective);
    tcase_add_test(tests, without_a_size_no_link_is_accused);
    tcase_add_test(tests, a_wait_in_each_layer_names_its_operator);
    tcase_add_test(tests, a_wait_at_the_end_of_a_step_is_of_no_layer);
    tcase_add_test(tests, results_that_are_copied_in_a_row_wait_once);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
