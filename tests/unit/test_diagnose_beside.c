/* What holds beside a step's own limits: memory, clocks and energy, the host's one thread,
 * debugging switches, other phases of a job. Each with a trace in which the naive text would be
 * wrong, and silent where the signal was not recorded. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool waits; /* the host waits for each step's kernel */

static void blank(void)
{
    sheet_blank();
    waits = false;
}

/** Steps of `step_us`, each one kernel of `busy_us` from its start on. */
static void draw_steps(int steps, double step_us, double busy_us)
{
    for (int i = 0; i < steps; i++) {
        double begin = i * step_us;
        sheet_add("main range %.1f %.1f ProfilerStep#%d\n", begin, step_us, i);
        sheet_add("main call %.1f 5 #%u cudaLaunchKernel\n", begin + 5, ++sheet_corr);
        sheet_add("gpu0.7 kernel %.1f %.1f #%u dgrad_s16816cudnn_kernel\n", begin + 12, busy_us,
                  sheet_corr);
        if (waits) {
            sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", begin + 15, busy_us);
        }
        sheet_add("main op %.1f 10 Optimizer.step#SGD.step\n", begin + step_us - 20);
    }
}

static void diagnose(const char *metadata)
{
    sheet_diagnose(metadata, 8);
}

/** No finding has this text in any part. */
static void never_says(const char *text)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        const char *const parts[] = {finding->title,  finding->why,   finding->change,
                                     finding->expect, finding->costs, finding->brief};
        for (size_t k = 0; k < LAC_COUNT_OF(parts); k++) {
            ck_assert_msg(strcasestr(parts[k], text) == NULL, "%s: %s", finding->id, parts[k]);
        }
    }
    ck_assert_msg(strcasestr(analysis->verdict.text, text) == NULL, "%s", analysis->verdict.text);
}

#define GB 1000000000LL

/* -- memory ------------------------------------------------------------------------------------ */

/** Each step allocates up to `peak` and goes back to `floor`. */
static void draw_memory(long long floor_bytes, long long peak_bytes)
{
    blank();
    draw_steps(8, 10000, 9500);
    for (int i = 0; i < 8; i++) {
        sheet_add("main alloc %d 0 %lld %lld\n", i * 10000 + 100, peak_bytes - floor_bytes,
                  peak_bytes);
        sheet_add("main alloc %d 0 %lld %lld\n", i * 10000 + 9000, floor_bytes - peak_bytes,
                  floor_bytes);
    }
}

START_TEST(what_tensors_need_is_told_from_what_is_free)
{
    draw_memory(4 * GB, 12 * GB);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("memory-headroom");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert_ptr_nonnull(strstr(finding->title, "12 GB"));
    ck_assert_ptr_nonnull(strstr(finding->why, "4 GB persist across steps"));
    ck_assert_ptr_nonnull(strstr(finding->why, "adds 8 GB"));
    never_says("increase the batch"); /* which changes the training */
    never_says("empty_cache");
}
END_TEST

START_TEST(inference_keeps_no_optimizer_state)
{
    sheet_blank();
    for (int i = 0; i < 8; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        sheet_add("main op %d 100 aten::linear\n", i * 1000 + 10);
        sheet_add("main call %d 1 #%d cudaLaunchKernel\n", i * 1000 + 20, i + 1);
        sheet_add("main call %d 890 cudaStreamSynchronize\n", i * 1000 + 30);
        sheet_add("gpu0.7 kernel %d 900 #%d volta_sgemm_64x64_nn\n", i * 1000 + 25, i + 1);
        sheet_add("main alloc %d 0 %lld %lld\n", i * 1000 + 100, 2 * GB, 3 * GB);
        sheet_add("main alloc %d 0 %lld %lld\n", i * 1000 + 900, -2 * GB, GB);
    }
    diagnose(NULL);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    const struct lac_finding *finding = sheet_finding("memory-headroom");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(
        strstr(finding->why, "1 GB persist across batches (weights, kept results)"));
    never_says("gradients");
}
END_TEST

START_TEST(a_full_cache_is_no_finding)
{
    /* the driver counts 97 % as used: the allocator keeps what it got */
    blank();
    draw_steps(8, 1000000, 950000);
    for (int i = 0; i < 80; i++) {
        sheet_add("host count %d %d GPU 0: memory used (MB)\n", i * 100000, 33000 + i % 2);
    }
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("memory-headroom"));
    never_says("memory is");
    never_says("batch");
}
END_TEST

START_TEST(what_the_driver_counts_as_free_is_free_at_least)
{
    blank();
    draw_steps(8, 1000000, 950000);
    for (int i = 0; i < 80; i++) {
        sheet_add("host count %d %d GPU 0: memory used (MB)\n", i * 100000, 8000 + i % 2);
    }
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("memory-headroom");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "At least 26 GB"));
}
END_TEST

START_TEST(little_headroom_is_said_with_a_way_out)
{
    draw_memory(20 * GB, 33 * GB);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("memory-headroom");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "little is left"));
    ck_assert_ptr_nonnull(strstr(finding->change, "expandable_segments"));
}
END_TEST

START_TEST(running_out_of_memory_is_the_first_thing_said)
{
    blank();
    draw_steps(8, 10000, 9500);
    sheet_add("main call 80100 50 cudaMalloc ret=2\n");
    sheet_add("main call 80200 50 cudaFree ret=0\n");
    sheet_add("main call 80300 50 cudaMalloc ret=2\n");
    diagnose(NULL);
    ck_assert_str_eq(analysis->findings[0].id, "out-of-memory");
    ck_assert_int_eq((int)analysis->findings[0].severity, (int)LAC_SEVERITY_CRITICAL);
}
END_TEST

START_TEST(a_try_that_succeeds_is_not_running_out)
{
    blank();
    draw_steps(8, 10000, 9500);
    sheet_add("main call 30100 50 cudaMalloc ret=2\n");
    sheet_add("main call 30200 50 cudaFree ret=0\n");
    sheet_add("main call 30300 50 cudaMalloc ret=0\n");
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("out-of-memory"));
    blank(); /* return values were not recorded */
    draw_steps(8, 10000, 9500);
    sheet_add("main call 80100 50 cudaMalloc\n");
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("out-of-memory"));
}
END_TEST

/* -- computed twice, evaluated with a graph ---------------------------------------------------- */

/** `again` forward operators inside the backward pass of each step. */
static void draw_recompute(int again, const char *op, double kernel_us)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = i * 20000.0;
        double at = begin + 20;
        double gpu = at;
        sheet_add("main range %.1f 20000 ProfilerStep#%d\n", begin, i);
        for (int k = 0; k < 12; k++) {
            bool is_again = k >= 12 - again;
            if (k == 12 - again) {
                sheet_add("pt_autograd_0 op %.1f %.1f autograd::engine::evaluate_function: "
                          "ReluBackward0\n",
                          at - 1, again * 10.0 + 2);
            }
            const char *thread = is_again ? "pt_autograd_0" : "main";
            sheet_add("%s op %.1f 8 %s\n", thread, at, is_again ? op : "aten::conv2d");
            sheet_add("%s call %.1f 4 #%u cudaLaunchKernel\n", thread, at + 1, ++sheet_corr);
            gpu = gpu > at + 8 ? gpu : at + 8;
            sheet_add("gpu0.7 kernel %.1f %.1f #%u dgrad_s16816cudnn_kernel\n", gpu, kernel_us,
                      sheet_corr);
            gpu += kernel_us;
            at += 10;
        }
        sheet_add("main op %.1f 10 Optimizer.step#SGD.step\n", at + 10);
        sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", at + 30, begin + 19900 - at - 30);
    }
}

START_TEST(activations_that_are_computed_twice_cost_what_they_take)
{
    draw_recompute(6, "aten::conv2d", 1600);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("recompute");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->cost_ns_per_step / 100000, 96);
    /* memory was not recorded: no gain is promised */
    ck_assert(isnan(finding->gain_mid_pct));
    ck_assert_ptr_nonnull(strstr(finding->why, "was not recorded"));
    draw_recompute(6, "aten::conv2d", 1600);
    for (int i = 0; i < 8; i++) { /* a step adds 4 GB at its peak, 28 GB are free */
        sheet_add("main alloc %d 0 %lld %lld\n", i * 20000 + 100, 4 * GB, 6 * GB);
        sheet_add("main alloc %d 0 %lld %lld\n", i * 20000 + 9000, -4 * GB, 2 * GB);
    }
    diagnose(NULL);
    finding = sheet_finding("recompute");
    ck_assert_ptr_nonnull(finding);
    ck_assert(finding->gain_mid_pct > 20.0);
    ck_assert_ptr_nonnull(strstr(finding->why, "free at the peak"));
}
END_TEST

START_TEST(a_backward_pass_of_its_own_operators_is_not_computed_twice)
{
    draw_recompute(6, "aten::convolution_backward", 1600);
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("recompute"));
}
END_TEST

/** An evaluation of 20 operators behind the steps. */
static void draw_evaluation(bool has_numbers, bool has_backward)
{
    blank();
    draw_steps(8, 10000, 9500);
    sheet_add("main range 80000 5000 validation\n");
    for (int k = 0; k < 20; k++) {
        if (has_numbers) {
            sheet_add("main op %d 100 aten::conv2d seq=%d\n", 80100 + k * 200, 500 + k);
        } else {
            sheet_add("main op %d 100 aten::conv2d\n", 80100 + k * 200);
        }
    }
    if (has_backward) {
        sheet_add("pt_autograd_0 op 84500 100 autograd::engine::evaluate_function: "
                  "ConvolutionBackward0\n");
    }
    diagnose(NULL);
}

START_TEST(an_evaluation_that_builds_a_graph_for_nothing)
{
    draw_evaluation(true, false);
    const struct lac_finding *finding = sheet_finding("missing-no-grad");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "torch.no_grad()"));
    ck_assert_ptr_nonnull(strstr(finding->why, "19 graph nodes"));
    draw_evaluation(false, false); /* inside no_grad(), or not recorded */
    ck_assert_ptr_null(sheet_finding("missing-no-grad"));
    draw_evaluation(true, true); /* gradients are taken in it */
    ck_assert_ptr_null(sheet_finding("missing-no-grad"));
}
END_TEST

/* -- other phases ------------------------------------------------------------------------------ */

START_TEST(checkpoints_are_a_share_of_what_was_recorded)
{
    blank();
    draw_steps(10, 10000, 9500);
    sheet_add("main range 100000 30000 save_checkpoint\n");
    sheet_add(
        "main range 105000 10000 save_checkpoint.optimizer\n"); /* inside: not counted twice */
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("phase-overhead");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "23 % of the recording"));
    ck_assert_ptr_nonnull(strstr(finding->title, "30 ms in total, once"));
    ck_assert_ptr_nonnull(strstr(finding->change, "async_save"));
    ck_assert(isnan(finding->gain_mid_pct));
}
END_TEST

START_TEST(a_short_checkpoint_is_not_worth_a_word)
{
    blank();
    draw_steps(10, 10000, 9500);
    sheet_add("main range 100000 3000 save_checkpoint\n");
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("phase-overhead"));
}
END_TEST

/* -- clocks and energy ------------------------------------------------------------------------- */

/** Eight steps of a second with samples ten times a second. */
static void draw_samples(int reasons, double clock_mhz, bool has_energy)
{
    blank();
    waits = true;
    draw_steps(8, 1000000, 960000);
    for (int i = 0; i <= 81; i++) {
        int at = i * 100000;
        sheet_add("host count %d %d GPU 0: clocks held down (reasons)\n", at, i > 5 ? reasons : 0);
        sheet_add("host count %d %.0f GPU 0: SM clock (MHz)\n", at, i > 5 ? clock_mhz : 1980.0);
        sheet_add("host count %d 300 GPU 0: power (W)\n", at);
        if (has_energy) {
            sheet_add("host count %d %d GPU 0: energy (J)\n", at, 5000 + i * 30);
        }
    }
}

START_TEST(a_hot_gpu_is_named_with_what_its_clock_costs)
{
    draw_samples(0x20, 1200.0, false);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("clocks-held-down");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_WARNING);
    ck_assert_ptr_nonnull(strstr(finding->title, "temperature"));
    ck_assert(finding->gain_mid_pct > 10.0 && finding->gain_high_pct < 45.0);
    ck_assert(finding->gain_low_pct < 1.0); /* kernels may wait for memory */
}
END_TEST

START_TEST(the_power_limit_is_no_fault)
{
    draw_samples(0x4, 1950.0, false);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("clocks-held-down");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert_ptr_nonnull(strstr(finding->title, "power limit"));
    draw_samples(0x1, 1950.0,
                 false); /* clocks down because nothing runs: no reason to say a word */
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("clocks-held-down"));
}
END_TEST

START_TEST(energy_comes_from_the_counter_over_seconds)
{
    draw_samples(0, 1980.0, true);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("energy");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "300 J")); /* 30 J a tenth of a second */
    ck_assert_ptr_nonnull(strstr(finding->why, "was not measured"));
}
END_TEST

START_TEST(energy_is_not_told_from_readings_of_power_or_a_short_window)
{
    draw_samples(0, 1980.0, false); /* power, but no counter */
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("energy"));
    never_says(" J ");
    blank(); /* a counter, but 80 ms */
    draw_steps(8, 10000, 9500);
    for (int i = 0; i < 9; i++) {
        sheet_add("host count %d %d GPU 0: energy (J)\n", i * 10000, 100 + 3 * i);
    }
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("energy"));
}
END_TEST

START_TEST(samples_of_several_gpus_are_not_guessed_to_be_this_one)
{
    draw_samples(0x20, 1200.0, true);
    sheet_add("host count 100 0 GPU 3: clocks held down (reasons)\n");
    sheet_add("host count 100 10 GPU 3: energy (J)\n");
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("clocks-held-down"));
    ck_assert_ptr_null(sheet_finding("energy"));
}
END_TEST

/* -- the host ---------------------------------------------------------------------------------- */

START_TEST(garbage_that_is_collected_while_the_gpu_waits)
{
    blank();
    draw_steps(8, 10000, 5000);
    for (int i = 0; i < 8; i++) {
        sheet_add("main range %d 3000 gc\n", i * 10000 + 6000);
    }
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("gc-pauses");
    ck_assert_ptr_nonnull(finding);
    /* also the last one, behind the device's last operation; and no more goes than what they take */
    ck_assert_int_eq(finding->cost_ns_per_step / 1000, 3000);
    ck_assert(finding->gain_high_pct > 29.9 && finding->gain_high_pct < 30.1);
    ck_assert_ptr_nonnull(strstr(finding->change, "gc.freeze()"));
    blank(); /* beside a kernel it costs nothing */
    draw_steps(8, 10000, 9900);
    for (int i = 0; i < 8; i++) {
        sheet_add("main range %d 3000 gc\n", i * 10000 + 6000);
    }
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("gc-pauses"));
}
END_TEST

/** The training thread is on a core for `busy` percent while the device waits for it. */
static void draw_thread(double busy)
{
    blank();
    draw_steps(8, 1000000, 500000);
    for (int i = 0; i < 8; i++) {
        sheet_add("main op %d 400000 my_metrics\n", i * 1000000 + 550000);
    }
    for (int i = 0; i <= 80; i++) {
        sheet_add("main count %d %.1f thread: on a core (%%)\n", i * 100000, busy + i % 2);
    }
}

START_TEST(one_thread_at_all_of_a_core_is_the_limit)
{
    draw_thread(97.0);
    diagnose(NULL);
    const struct lac_finding *finding = sheet_finding("host-single-thread");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "98 % of the time"));
    draw_thread(40.0); /* it waits for something */
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("host-single-thread"));
}
END_TEST

/* -- debugging switches ------------------------------------------------------------------------ */

START_TEST(a_switch_that_distorts_is_the_only_thing_said)
{
    /* every launch waits for its kernel: without the switch's name this reads as launch-bound */
    blank();
    for (int i = 0; i < 8; i++) {
        int begin = i * 10000;
        sheet_add("main range %d 10000 ProfilerStep#%d\n", begin, i);
        for (int k = 0; k < 50; k++) {
            sheet_add("main call %d 150 #%u cudaLaunchKernel\n", begin + k * 199, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d 120 #%u dgrad_kernel\n", begin + k * 199 + 10, sheet_corr);
        }
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", begin + 9980);
    }
    diagnose("{\"lacuna\":{\"settings\":{\"CUDA_LAUNCH_BLOCKING\":1}}}");
    ck_assert_uint_eq(analysis->finding_count, 1);
    ck_assert_str_eq(analysis->findings[0].id, "debug-switches");
    ck_assert_int_eq((int)analysis->findings[0].severity, (int)LAC_SEVERITY_CRITICAL);
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].change, "unset CUDA_LAUNCH_BLOCKING"));
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "CUDA_LAUNCH_BLOCKING=1"));
    never_says("CUDA graphs");
    diagnose("{\"lacuna\":{\"settings\":{\"CUDA_LAUNCH_BLOCKING\":0}}}");
    ck_assert_ptr_nonnull(sheet_finding("launch-bound"));
    ck_assert_ptr_null(sheet_finding("debug-switches"));
}
END_TEST

START_TEST(each_switch_is_named_with_what_it_does)
{
    static const struct {
        const char *settings, *text;
        bool distorts;
    } cases[] = {
        {"\"detect_anomaly\":true", "set_detect_anomaly(False)", true},
        {"\"NCCL_DEBUG\":\"TRACE\"", "NCCL_DEBUG=WARN", true},
        {"\"NCCL_DEBUG\":\"INFO\"", "NCCL_DEBUG=WARN", false},
        {"\"TORCH_DISTRIBUTED_DEBUG\":\"DETAIL\"", "unset TORCH_DISTRIBUTED_DEBUG", true},
        {"\"deterministic_algorithms\":true", "use_deterministic_algorithms(False)", false},
        {"\"cudnn_deterministic\":true,\"detect_anomaly\":false", "cudnn.deterministic = False",
         false},
        {"\"TORCHDYNAMO_DISABLE\":1", "unset TORCHDYNAMO_DISABLE", false},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        char metadata[256];
        (void)snprintf(metadata, sizeof(metadata), "{\"lacuna\":{\"settings\":{%s}}}",
                       cases[i].settings);
        blank();
        draw_steps(8, 10000, 9500);
        diagnose(metadata);
        const struct lac_finding *finding = sheet_finding("debug-switches");
        ck_assert_msg(finding != NULL, "%s", metadata);
        ck_assert_msg(strstr(finding->change, cases[i].text) != NULL, "%s", finding->change);
        ck_assert_int_eq(finding->severity == LAC_SEVERITY_CRITICAL, cases[i].distorts);
        ck_assert_int_eq(sheet_finding("gpu-bound") == NULL, cases[i].distorts);
    }
    blank();
    draw_steps(8, 10000, 9500);
    diagnose("{\"lacuna\":{\"settings\":{\"detect_anomaly\":false,\"NCCL_DEBUG\":\"WARN\"}}}");
    ck_assert_ptr_null(sheet_finding("debug-switches"));
}
END_TEST

/* -- hangs: what the launcher saw ---------------------------------------------------------------- */

START_TEST(a_hang_is_the_verdict_with_rank_and_place)
{
    blank();
    draw_steps(8, 10000, 9500);
    diagnose("{\"lacuna\":{\"settings\":{\"hang.after_s\":\"9.2\",\"hang.steps\":80,"
             "\"hang.doing\":\"rank 1 waits in barrier at train.py:31 (main)\","
             "\"hang.where\":\"/home/a/train.py:31\",\"hang.source\":\"dist.barrier()\","
             "\"hang.others\":\"rank 0 waits in all_reduce at train.py:40 (main)\"}}}");
    ck_assert_str_eq(analysis->findings[0].id, "hang");
    ck_assert_int_eq((int)analysis->findings[0].severity, (int)LAC_SEVERITY_CRITICAL);
    ck_assert_str_eq(analysis->findings[0].where, "train.py:31");
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "rank 1 waits in barrier"));
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].why, "9 s after 80 steps; rank 0 waits in"));
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].why, "dist.barrier()"));
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].change, "Join"));
    /* nothing else of the trace becomes less true */
    ck_assert_ptr_nonnull(sheet_finding("gpu-bound"));
}
END_TEST

START_TEST(a_hang_says_what_to_do_by_what_the_rank_does)
{
    static const struct {
        const char *doing, *more, *change;
    } cases[] = {
        {"rank 0 waits for a batch of its workers, of which process 7 waits in read", "",
         "timeout=60"},
        {"rank 1 is stopped (by SIGSTOP or a debugger)", "", "kill -CONT"},
        {"rank 1 has ended", "", "last output"},
        {"rank 0 waits for a lock or another thread", "", "same order"},
        {"rank 0 waits in read of /data/pipe", "", "timeout"},
        {"rank 0 computes", "", "look at the line"},
        {"rank 0 waits for a lock or another thread", ",\"hang.shm\":\"full\"", "--shm-size"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        char metadata[512];
        (void)snprintf(metadata, sizeof(metadata),
                       "{\"lacuna\":{\"settings\":{\"hang.after_s\":10,\"hang.doing\":\"%s\"%s}}}",
                       cases[i].doing, cases[i].more);
        blank();
        draw_steps(8, 10000, 9500);
        diagnose(metadata);
        const struct lac_finding *finding = sheet_finding("hang");
        ck_assert_msg(finding != NULL, "%s", metadata);
        ck_assert_msg(strstr(finding->change, cases[i].change) != NULL ||
                          strstr(finding->brief, cases[i].change) != NULL,
                      "%s", finding->change);
    }
}
END_TEST

START_TEST(a_hang_that_ended_is_a_warning_and_a_text_with_control_codes_none)
{
    blank();
    draw_steps(8, 10000, 9500);
    diagnose("{\"lacuna\":{\"settings\":{\"hang.after_s\":9,\"hang.resumed\":true,"
             "\"hang.doing\":\"rank 1 computes\"}}}");
    ck_assert_int_eq((int)sheet_finding("hang")->severity, (int)LAC_SEVERITY_WARNING);
    ck_assert_ptr_null(strstr(analysis->verdict.text, "rank 1 computes"));
    diagnose("{\"lacuna\":{\"settings\":{\"hang.after_s\":9,\"hang.doing\":\"rank\\u001b[31m\"}}}");
    ck_assert_ptr_null(sheet_finding("hang"));
    diagnose("{\"lacuna\":{\"settings\":{\"hang.doing\":\"rank 1 computes\"}}}");
    ck_assert_ptr_null(sheet_finding("hang"));
}
END_TEST

START_TEST(how_to_record_the_gpu_goes_by_what_recorded)
{
    static const struct {
        enum lac_trace_format format;
        const char *how; /* NULL: of such a file it is not to be expected */
    } rows[] = {{LAC_FORMAT_KINETO, "CUDA activities"},
                {LAC_FORMAT_NSYS, "nsys profile --trace=cuda"},
                {LAC_FORMAT_GPU_LOG, NULL},
                {LAC_FORMAT_PERF, NULL}};
    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        sheet_wipe();
        model = trace_draw("main op 0 1000 work\n");
        model->info.format = rows[i].format;
        analysis = trace_diagnose(model);
        ck_assert_uint_eq(analysis->not_recorded_count, rows[i].how != NULL ? 1 : 0);
        if (rows[i].how != NULL) {
            ck_assert_ptr_nonnull(strstr(analysis->not_recorded[0], rows[i].how));
            ck_assert_ptr_nonnull(strstr(analysis->verdict.detail, rows[i].how));
        }
    }
}
END_TEST

/* -- padding ----------------------------------------------------------------------------------- */

START_TEST(padding_is_said_where_the_job_counted_it)
{
    blank();
    draw_steps(8, 10000, 9500);
    diagnose("{\"lacuna\":{\"settings\":{\"padding_pct\":\"41.5\"}}}");
    ck_assert_ptr_nonnull(sheet_finding("padding-waste"));
    ck_assert(fabs(analysis->padding_pct - 41.5) < 0.01);
    diagnose("{\"lacuna\":{\"settings\":{\"padding_pct\":3}}}");
    ck_assert_ptr_null(sheet_finding("padding-waste"));
    diagnose(NULL);
    ck_assert_ptr_null(sheet_finding("padding-waste"));
    ck_assert(isnan(analysis->padding_pct));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("beside");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_tensors_need_is_told_from_what_is_free);
    tcase_add_test(tcase, how_to_record_the_gpu_goes_by_what_recorded);
    tcase_add_test(tcase, inference_keeps_no_optimizer_state);
    tcase_add_test(tcase, a_full_cache_is_no_finding);
    tcase_add_test(tcase, what_the_driver_counts_as_free_is_free_at_least);
    tcase_add_test(tcase, little_headroom_is_said_with_a_way_out);
    tcase_add_test(tcase, running_out_of_memory_is_the_first_thing_said);
    tcase_add_test(tcase, a_try_that_succeeds_is_not_running_out);
    tcase_add_test(tcase, activations_that_are_computed_twice_cost_what_they_take);
    tcase_add_test(tcase, a_backward_pass_of_its_own_operators_is_not_computed_twice);
    tcase_add_test(tcase, an_evaluation_that_builds_a_graph_for_nothing);
    tcase_add_test(tcase, checkpoints_are_a_share_of_what_was_recorded);
    tcase_add_test(tcase, a_short_checkpoint_is_not_worth_a_word);
    tcase_add_test(tcase, a_hot_gpu_is_named_with_what_its_clock_costs);
    tcase_add_test(tcase, the_power_limit_is_no_fault);
    tcase_add_test(tcase, energy_comes_from_the_counter_over_seconds);
    tcase_add_test(tcase, energy_is_not_told_from_readings_of_power_or_a_short_window);
    tcase_add_test(tcase, samples_of_several_gpus_are_not_guessed_to_be_this_one);
    tcase_add_test(tcase, garbage_that_is_collected_while_the_gpu_waits);
    tcase_add_test(tcase, one_thread_at_all_of_a_core_is_the_limit);
    tcase_add_test(tcase, a_switch_that_distorts_is_the_only_thing_said);
    tcase_add_test(tcase, each_switch_is_named_with_what_it_does);
    tcase_add_test(tcase, a_hang_is_the_verdict_with_rank_and_place);
    tcase_add_test(tcase, a_hang_says_what_to_do_by_what_the_rank_does);
    tcase_add_test(tcase, a_hang_that_ended_is_a_warning_and_a_text_with_control_codes_none);
    tcase_add_test(tcase, padding_is_said_where_the_job_counted_it);
    Suite *suite = suite_create("diagnose_beside");
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
