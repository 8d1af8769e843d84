/* Communication: what a trace shows of it, and what looks alike and is not. */

#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
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

START_TEST(a_pipeline_that_is_in_use_is_not_proposed)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        sheet_add("main range %.3f 60 ## wait_sparse_data_dist ##\n", host_us);
        host_us += 62.0;
        for (int k = 0; k < 8; k++) {
            compute(500, gemm);
        }
        double exchange_us = host_us;
        communicate(3000, send_receive, "all_to_allv", "{\"Collective name\":\"all_to_allv\"}");
        sheet_add("main range %.3f %.3f ## alltoall_fwd_single ##\n", exchange_us - 1.0,
                  host_us - exchange_us + 1.0);
        compute(500, gemm);
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_null(strstr(finding->change, "TrainPipelineSparseDist"));
    ck_assert_ptr_nonnull(strstr(finding->change, "QCommsConfig"));
    ck_assert_ptr_nonnull(strstr(finding->why, "alltoall_fwd_single 3 ms"));
    ck_assert(isnan(finding->gain_mid_pct)); /* the link and the other ranks decide */
}
END_TEST

START_TEST(exchanges_of_experts_have_nothing_to_overlap_with)
{
    for (int layers = 1; layers <= 4; layers += 3) {
        begin();
        for (int step = 0; step < 8; step++) {
            double begin_us = host_us;
            for (int k = 0; k < 4 * layers; k++) {
                compute(500, gemm);
                compute(500, gemm);
                communicate(300, send_receive, "all_to_allv",
                            "{\"Collective name\":\"all_to_allv\"}");
            }
            step_end(step, begin_us);
        }
        sheet_diagnose(NULL, 8);
        const struct lac_finding *finding = sheet_finding("exposed-communication");
        ck_assert_ptr_nonnull(finding);
        if (layers == 1) { /* four a step: tables of embeddings exchange as many */
            ck_assert(finding->gain_mid_pct > 1.0);
            continue;
        }
        ck_assert(isnan(finding->gain_mid_pct));
        ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
        ck_assert_ptr_nonnull(strstr(finding->why, "the rank with the most tokens"));
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

/** A mask from pageable memory: its copy begins behind all that was launched, and the call lasts until
 *  it is done; then the host makes the next one. */
static void copy_mask(double works_us)
{
    sheet_corr++;
    double start = compute_us > host_us + 10.0 ? compute_us : host_us + 10.0;
    compute_us = start + 30.0;
    double end = compute_us + 2.0;
    sheet_add("main op %.3f %.3f aten::to\n", host_us, end + 3.0 - host_us);
    sheet_add("main call %.3f %.3f #%u cudaMemcpyAsync\n", host_us + 1.0, end - host_us - 1.0,
              sheet_corr);
    sheet_add("gpu0.7 copy %.3f 30 #%u HtoD pageable 200000\n", start, sheet_corr);
    sheet_add("main call %.3f 2 cudaStreamSynchronize\n", end);
    host_us = end + 4.0 + works_us;
}

/** Blocks of one pass, or of steps of training, that make a mask each. */
static void draw_masks(int steps, int blocks)
{
    begin();
    for (int step = 0; step < steps; step++) {
        double begin_us = host_us;
        for (int block = 0; block < blocks; block++) {
            sheet_add("main op %.3f 10 aten::addmm\n", host_us);
            compute(400, gemm);
            compute(300, "softmax_warp_forward");
            copy_mask(150.0);
        }
        if (steps > 1) {
            step_end(step, begin_us);
        }
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(copies_that_wait_in_each_layer_are_waits)
{
    draw_masks(8, 8);
    const struct lac_finding *finding = sheet_finding("sync-per-layer");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "aten::to stops the host 8 times per step"));
    ck_assert_ptr_nonnull(strstr(finding->change, "pin_memory()"));
    ck_assert(finding->gain_high_pct > 10.0 && finding->gain_high_pct < 25.0);
    sheet_check_grammar(finding);
}
END_TEST

/** A value that is read in each block: the copy to pageable memory begins behind all that was launched. */
static void read_value(const char *range)
{
    sheet_corr++;
    double start = compute_us > host_us + 10.0 ? compute_us : host_us + 10.0;
    compute_us = start + 3.0;
    double end = compute_us + 2.0;
    sheet_add("main range %.3f %.3f %s\n", host_us, end + 3.0 - host_us, range);
    sheet_add("main op %.3f %.3f aten::to\n", host_us + 0.5, end + 2.0 - host_us);
    sheet_add("main call %.3f %.3f #%u cudaMemcpyAsync\n", host_us + 1.0, end - host_us - 1.0,
              sheet_corr);
    sheet_add("gpu0.7 copy %.3f 3 #%u DtoH pageable 4096\n", start, sheet_corr);
    sheet_add("main call %.3f 1 cudaStreamSynchronize\n", end);
    host_us = end + 154.0;
}

static void draw_reads(const char *range)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int block = 0; block < 8; block++) {
            compute(400, gemm);
            compute(300, "softmax_warp_forward");
            read_value(range);
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(values_that_are_read_are_not_made_on_the_gpu)
{
    draw_reads("block");
    const struct lac_finding *finding = sheet_finding("sync-per-layer");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->brief, "read values one batch later");
    ck_assert_ptr_nonnull(strstr(finding->why, "cudaMemcpyAsync (a copy to the host, in block)"));
    ck_assert_ptr_nonnull(strstr(finding->change, "host.copy_(value, non_blocking=True)"));
    ck_assert_ptr_null(strstr(finding->change, "register_buffer"));
    ck_assert_ptr_null(strstr(finding->change, "TorchRec"));
    ck_assert_ptr_null(strstr(finding->costs, "padding"));
    sheet_check_grammar(finding);
    /* whose code reads them is said */
    draw_reads("## wait_sparse_data_dist ##");
    finding = sheet_finding("sync-per-layer");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "in TorchRec's wait_sparse_data_dist)"));
    ck_assert_ptr_nonnull(strstr(finding->change, "# TorchRec reads these"));
}
END_TEST

/** Nothing names a step: what repeats is a block of one pass, and one wait in each is enough. */
START_TEST(one_pass_through_blocks_is_spoken_of_by_the_block)
{
    draw_masks(1, 24);
    ck_assert_str_eq(analysis->step_method, "period");
    const struct lac_finding *finding = sheet_finding("sync-per-layer");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "aten::to stops the host once per repetition"));
    ck_assert(finding->gain_high_pct > 10.0 && finding->gain_high_pct < 25.0);
}
END_TEST

/* -- gathers of weights ----------------------------------------------------------------------- */

static const char all_gather[] = "ncclDevKernel_AllGather_RING_LL(args)";

/** Six layers; each one's weights are gathered behind the layer before, or beside it. */
static void draw_sharded(bool is_ahead)
{
    static const char args[] =
        "{\"Collective name\":\"_allgather_base\",\"Out msg nelems\":20000000,"
        "\"Group size\":4,\"dtype\":\"BFloat16\"}";
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int layer = 0; layer < 6; layer++) {
            if (is_ahead) {
                double now_us = compute_us;
                comm_us = 0.0;
                compute(1000, gemm);
                sheet_corr++;
                sheet_add("main op %.3f 60 c10d::_allgather_base_\n", host_us);
                sheet_add("main call %.3f 5 #%u cudaLaunchKernelExC\n", host_us + 40.0, sheet_corr);
                sheet_add("gpu0.20 kernel %.3f 400 #%u %s args=%s\n",
                          (now_us > host_us ? now_us : host_us) + 60.0, sheet_corr, all_gather,
                          args);
                host_us += 62.0;
            } else {
                communicate(400, all_gather, "_allgather_base_", args);
                compute(1000, gemm);
            }
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(gathers_that_layers_wait_for_come_one_layer_earlier)
{
    draw_sharded(false);
    const struct lac_finding *finding = sheet_finding("gather-exposed");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "prefetch"));
    ck_assert_ptr_nonnull(strstr(finding->costs, "40 MB")); /* of one layer */
    /* 400 of every 1400 us are gathered; all but the first can be hidden */
    ck_assert(finding->gain_mid_pct > 12.0 && finding->gain_high_pct < 30.0);
    ck_assert(finding->gain_low_pct < finding->gain_mid_pct);
    sheet_check_grammar(finding);
    /* the first of a step comes behind the host's work, and is said as the rest */
    const struct lac_finding *rest = sheet_finding("exposed-communication");
    ck_assert_ptr_nonnull(rest);
    ck_assert_int_le(finding->cost_ns_per_step + rest->cost_ns_per_step, 6 * 400000);
}
END_TEST

START_TEST(gathers_beside_computing_are_fine)
{
    draw_sharded(true);
    ck_assert_ptr_null(sheet_finding("gather-exposed"));
}
END_TEST

/* -- stages of a pipeline ---------------------------------------------------------------------- */

static void transfer(double length, bool is_send)
{
    communicate(length, send_receive, is_send ? "send" : "recv_",
                is_send
                    ? "{\"Collective name\":\"send\",\"In msg nelems\":4000000,\"Group size\":2,"
                      "\"dtype\":\"BFloat16\"}"
                    : "{\"Collective name\":\"recv\",\"In msg nelems\":4000000,\"Group size\":2,"
                      "\"dtype\":\"BFloat16\"}");
}

/** The first of two stages with three micro-batches, which waits `wait_us` for each gradient. */
static void draw_stage(double wait_us)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int batch = 0; batch < 3; batch++) {
            compute(1500, gemm);
            transfer(40, true);
        }
        for (int batch = 0; batch < 3; batch++) {
            transfer(wait_us, false);
            double from_us = host_us;
            compute(3000, gemm);
            sheet_add("main op %.3f %.3f autograd::engine::evaluate_function: MmBackward0\n",
                      from_us - 0.5, host_us - from_us + 0.5);
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(the_bubble_follows_from_stages_and_micro_batches)
{
    draw_stage(1600);
    const struct lac_finding *finding = sheet_finding("imbalance-and-bubble");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "2 stages and 3 micro-batches"));
    ck_assert_str_eq(finding->brief, "6 micro-batches per step");
    /* (1 + 1/6) for (1 + 1/3): an eighth less */
    ck_assert(finding->gain_high_pct > 12.0 && finding->gain_high_pct < 13.0);
    ck_assert(finding->gain_mid_pct < finding->gain_high_pct);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("exposed-communication"));
}
END_TEST

START_TEST(stages_that_hardly_wait_have_no_bubble)
{
    draw_stage(150);
    ck_assert_ptr_null(sheet_finding("imbalance-and-bubble"));
}
END_TEST

/* -- weights on the host ----------------------------------------------------------------------- */

/** Copies of one size, `per_pass` before each of the passes that a step has. */
static void draw_copies(int passes, int layers, bool mixes_passes)
{
    begin();
    for (int step = 0; step < 8; step++) {
        double begin_us = host_us;
        for (int pass = 0; pass < passes; pass++) {
            for (int layer = 0; layer < layers; layer++) {
                sheet_corr++;
                double start = (compute_us > host_us ? compute_us : host_us) + 6.0;
                compute_us = start + 600.0;
                sheet_add("main call %.3f 4 #%u cudaMemcpyAsync\n", host_us, sheet_corr);
                sheet_add("gpu0.7 copy %.3f 600 #%u HtoD pinned 15000000\n", start, sheet_corr);
                host_us += 5.0;
                for (int half = 0; half < 2; half++) {
                    double from_us = host_us;
                    compute(500, gemm);
                    bool is_backward = mixes_passes ? half == 1 : pass % 2 == 1;
                    if (is_backward) {
                        sheet_add("main op %.3f %.3f autograd::engine::evaluate_function: "
                                  "MmBackward0\n",
                                  from_us - 0.5, host_us - from_us + 0.5);
                    }
                }
            }
        }
        step_end(step, begin_us);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(weights_that_come_layer_by_layer_are_copied_ahead)
{
    draw_copies(2, 5, false);
    const struct lac_finding *finding = sheet_finding("weights-over-pcie");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "150 MB per step"));
    /* 6 ms of copies beside 10 ms of computing: no step below 10 of 16 ms */
    ck_assert(finding->gain_mid_pct > 20.0 && finding->gain_high_pct < 39.0);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("blocking-copy"));
}
END_TEST

START_TEST(batches_of_accumulated_gradients_are_no_weights)
{
    draw_copies(2, 5, true); /* as large and as many, but each is used forward and backward */
    ck_assert_ptr_null(sheet_finding("weights-over-pcie"));
}
END_TEST

/* -- iterations of a server -------------------------------------------------------------------- */

/** Iterations of `kernels` launches and `length` us each, then the host works by itself. */
static void draw_server(const char *name, int kernels, double length, double works_us)
{
    begin();
    for (int i = 0; i < 12; i++) {
        double begin_us = host_us;
        for (int k = 0; k < kernels; k++) {
            compute(length, gemm);
        }
        sheet_corr++;
        double start = (compute_us > host_us ? compute_us : host_us) + 6.0;
        compute_us = start + 2.0;
        sheet_add("main call %.3f 4 #%u cudaMemcpyAsync\n", host_us, sheet_corr);
        sheet_add("gpu0.7 copy %.3f 2 #%u DtoH pageable 256\n", start, sheet_corr);
        sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", host_us + 5.0,
                  compute_us + 3.0 - host_us);
        host_us = compute_us + 10.0;
        sheet_add("main range %.3f %.3f %s\n", begin_us, host_us - begin_us, name);
        sheet_add("main op %.3f %.3f schedule\n", host_us + 1.0, works_us - 2.0);
        host_us += works_us;
    }
    sheet_diagnose(NULL, 9);
}

START_TEST(a_server_prepares_the_next_iteration_meanwhile)
{
    draw_server("execute_context_0(0)_generation_32(32)", 20, 300.0, 3000.0);
    const struct lac_finding *finding = sheet_finding("iteration-gap");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "async-scheduling"));
    ck_assert_ptr_nonnull(strstr(finding->expect, "tokens/s"));
    /* 3 of 9 ms */
    ck_assert(finding->gain_mid_pct > 28.0 && finding->gain_high_pct < 35.0);
    sheet_check_grammar(finding);
    ck_assert_ptr_null(sheet_finding("sync-stall"));
}
END_TEST

START_TEST(kernels_that_are_launched_one_by_one_want_a_graph)
{
    draw_server("execute_context_0(0)_generation_8(8)", 400, 2.0, 200.0);
    const struct lac_finding *finding = sheet_finding("iteration-gap");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "enforce-eager"));
    ck_assert(finding->gain_mid_pct > 40.0);
    ck_assert(finding->step_low_ns >= 800000); /* what the GPU needs */
    ck_assert_ptr_null(sheet_finding("launch-bound"));
}
END_TEST

START_TEST(a_prefill_is_promised_no_graph_of_decoding)
{
    draw_server("execute_context_1(888_788544)_generation_0(0)", 400, 2.0, 200.0);
    const struct lac_finding *finding = sheet_finding("iteration-gap");
    ck_assert_ptr_nonnull(finding);
    ck_assert_msg(strstr(finding->title, "A prefill of 888 tokens takes") != NULL, "%s",
                  finding->title);
    /* 400 calls of 4 us, one every 5 */
    ck_assert_msg(strstr(finding->why, "takes 2 ms for 400 launches: 1.6 ms in the calls") != NULL,
                  "%s", finding->why);
    ck_assert(isnan(finding->gain_mid_pct));
    ck_assert_ptr_null(strstr(finding->change, "cuda_graph"));
    /* prompts beside tokens that are generated are decoding, too */
    draw_server("execute_context_1(64_4096)_generation_8(8)", 400, 2.0, 200.0);
    finding = sheet_finding("iteration-gap");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "enforce-eager"));
    ck_assert(finding->gain_mid_pct > 40.0);
}
END_TEST

START_TEST(what_only_repeats_is_no_server)
{
    draw_server("sweep", 20, 300.0, 3000.0);
    ck_assert_ptr_null(sheet_finding("iteration-gap"));
    /* nor is a server that never waits slow */
    draw_server("execute_context_0(0)_generation_32(32)", 20, 300.0, 5.0);
    ck_assert_ptr_null(sheet_finding("iteration-gap"));
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
    tcase_add_test(tests, a_pipeline_that_is_in_use_is_not_proposed);
    tcase_add_test(tests, exchanges_of_experts_have_nothing_to_overlap_with);
    tcase_add_test(tests, without_a_size_no_link_is_accused);
    tcase_add_test(tests, a_wait_in_each_layer_names_its_operator);
    tcase_add_test(tests, a_wait_at_the_end_of_a_step_is_of_no_layer);
    tcase_add_test(tests, results_that_are_copied_in_a_row_wait_once);
    tcase_add_test(tests, copies_that_wait_in_each_layer_are_waits);
    tcase_add_test(tests, values_that_are_read_are_not_made_on_the_gpu);
    tcase_add_test(tests, one_pass_through_blocks_is_spoken_of_by_the_block);
    tcase_add_test(tests, gathers_that_layers_wait_for_come_one_layer_earlier);
    tcase_add_test(tests, gathers_beside_computing_are_fine);
    tcase_add_test(tests, the_bubble_follows_from_stages_and_micro_batches);
    tcase_add_test(tests, stages_that_hardly_wait_have_no_bubble);
    tcase_add_test(tests, weights_that_come_layer_by_layer_are_copied_ahead);
    tcase_add_test(tests, batches_of_accumulated_gradients_are_no_weights);
    tcase_add_test(tests, a_server_prepares_the_next_iteration_meanwhile);
    tcase_add_test(tests, kernels_that_are_launched_one_by_one_want_a_graph);
    tcase_add_test(tests, a_prefill_is_promised_no_graph_of_decoding);
    tcase_add_test(tests, what_only_repeats_is_no_server);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
