/* The graph behind every gain: played without a change it gives the recorded step, and each change
 * takes away what waits for it, no more. */

#include "analysis/diagnose/result/analysis.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct lac_model *model;
static char sheet[400000];
static size_t length;
static unsigned corr;

__attribute__((format(printf, 1, 2))) static void add(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int written = vsnprintf(sheet + length, sizeof(sheet) - length, fmt, args);
    va_end(args);
    ck_assert(written > 0 && (size_t)written < sizeof(sheet) - length);
    length += (size_t)written;
}

static void clear(void)
{
    length = 0;
    corr = 0;
    sheet[0] = '\0';
}

/** An operation on a stream and the call that launched it, in us. */
static void launch(const char *thread, double at, const char *stream, double start, double dur,
                   const char *name)
{
    corr++;
    add("%s call %.3f 4 #%u cudaLaunchKernel\n", thread, at, corr);
    add("%s kernel %.3f %.3f #%u %s\n", stream, start, dur, corr, name);
}

/** Mean step with a change, in us; 0 when it is not known. */
static double mean_if(const char *text)
{
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *analysis = NULL;
    ck_assert_int_eq(lac_what_if_parse(text, &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &analysis, NULL), LAC_OK);
    ck_assert_int_le(analysis->what_if_step.low_ns, analysis->what_if_step.mean_ns);
    ck_assert_int_ge(analysis->what_if_step.high_ns, analysis->what_if_step.mean_ns);
    double mean_us = (double)analysis->what_if_step.mean_ns / 1000.0;
    bool is_replayed = strstr(analysis->what_if_assumption, "From replaying") != NULL;
    bool is_exact = strstr(analysis->what_if_assumption, "Exact: ") != NULL;
    ck_assert(is_replayed || (is_exact && analysis->replay.error_pct > -2.0));
    ck_assert_str_eq(analysis->replay.method, "graph");
    lac_analysis_destroy(analysis);
    return mean_us;
}

static void expect(const char *change, double wanted_us)
{
    double have_us = mean_if(change);
    ck_assert_msg(fabs(have_us - wanted_us) <= 0.02 * wanted_us, "%s: %.1f us, wanted %.1f", change,
                  have_us, wanted_us);
}

static void draw(void)
{
    model = trace_draw_with(sheet, NULL, 8);
    ck_assert_ptr_nonnull(model);
}

static void wipe(void)
{
    lac_model_destroy(model);
    model = NULL;
    clear();
}

enum { STEPS = 20 };

/** Steps of `kernels` of 100 us on one stream; the host takes 20 us for each, then waits. */
static void draw_synchronised(int kernels)
{
    double step = 20.0 + 100.0 * kernels + 200.0;
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * step;
        add("main range %.3f %.3f ProfilerStep#%d\n", t, step, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        for (int k = 0; k < kernels; k++) {
            launch("main", t + 20.0 * k + 12.0, "gpu0.7", t + 20.0 + 100.0 * k, 99.0, "dgrad");
        }
        add("main call %.3f %.3f cudaStreamSynchronize\n", t + 20.0 * kernels,
            100.0 * kernels + 20.0 - 20.0 * kernels + 5.0);
    }
    draw();
}

START_TEST(without_a_change_the_step_is_the_recorded_one)
{
    draw_synchronised(10);
    expect("", 1220.0);
    expect("comm=0", 1220.0);
    wipe();
}
END_TEST

START_TEST(without_waiting_the_device_is_never_idle)
{
    draw_synchronised(10); /* the host is done in 215 us of a step, the device needs 1000 */
    expect("sync=0", 1000.0);
    wipe();
}
END_TEST

START_TEST(faster_kernels_do_not_shorten_what_the_host_does_behind_a_wait)
{
    draw_synchronised(10); /* 500 us of kernels, and 220 in which the host has the result first */
    expect("kernels=0.5", 720.0);
    expect("sync=0,kernels=0.1", 400.0); /* the host is the next limit */
    wipe();
}
END_TEST

/** A host that launches a kernel each 100 us, which takes 30. */
static void draw_launch_bound(int kernels)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 40.0 * kernels;
        add("main range %.3f %.3f ProfilerStep#%d\n", t, 40.0 * kernels, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        for (int k = 0; k < kernels; k++) {
            launch("main", t + 40.0 * k + 30.0, "gpu0.7", t + 40.0 * k + 36.0, 15.0, "dgrad");
        }
    }
    draw();
}

START_TEST(free_launches_leave_what_the_device_needs)
{
    draw_launch_bound(50);
    expect("launch=0", 50 * 16.0);
    expect("kernels=0.5", 2000.0); /* nobody waits for the kernels */
    expect("kernels=4", 50 * 61.0);
    wipe();
}
END_TEST

/** A step of two kernels and a collective behind the first, for which the second waits. */
static void draw_communicating(double comm)
{
    double step = 1000.0 + comm;
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * step;
        add("main range %.3f %.3f ProfilerStep#%d\n", t, step, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        launch("main", t + 10.0, "gpu0.7", t + 50.0, 600.0, "dgrad");
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 16.0);
        launch("main", t + 20.0, "gpu0.9", t + 652.0, comm, "ncclDevKernel_AllReduce");
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 26.0);
        launch("main", t + 30.0, "gpu0.7", t + 654.0 + comm, 394.0, "wgrad");
        add("main call %.3f %.3f cudaDeviceSynchronize\n", t + 40.0, step + 10.0 - 40.0 - 12.0);
    }
    draw();
}

START_TEST(communication_in_the_way_goes_with_its_time)
{
    draw_communicating(500.0);
    expect("", 1500.0);
    expect("comm=0.5", 1250.0);
    expect("comm=0", 1000.0);
    wipe();
}
END_TEST

/** Two workers that take 1000 us a batch, a device that takes 300: a batch each 500 us. */
static void draw_loading(void)
{
    clear();
    for (int i = 0; i < STEPS + 4; i++) {
        add("w%d fetch %.3f 998 batch=%d worker=%d cpu=900\n", i % 2, i * 500.0 - 0.0, i, i % 2);
    }
    for (int i = 0; i < STEPS; i++) {
        double t = 1000.0 + i * 500.0;
        add("main range %.3f 500 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        add("main wait %.3f 490 batch=%d\n", t + 2.0, i + 1);
        launch("main", t + 493.0, "gpu0.7", t + 500.0, 300.0, "dgrad");
    }
    draw();
}

START_TEST(more_workers_help_until_the_device_is_the_limit)
{
    draw_loading();
    expect("workers=2", 500.0);
    expect("workers=3", 333.0);
    expect("workers=8", 301.0);
    expect("kernels=0.5", 500.0); /* it waits for batches as before */
    wipe();
}
END_TEST

/** Every other step allocates, which waits for all work; a synchronization behind it hides it. */
START_TEST(of_two_waits_for_the_same_the_second_is_free)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 1500.0;
        add("main range %.3f 1500 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        launch("main", t + 20.0, "gpu0.7", t + 30.0, 1000.0, "dgrad");
        add("main call %.3f 1005 cudaFree\n", t + 30.0);
        add("main call %.3f 5 cudaStreamSynchronize\n", t + 1036.0);
    }
    draw();
    expect("", 1500.0);
    expect("sync=0", 1500.0);             /* cudaFree waits all the same */
    expect("sync=0,allocator=0", 1001.0); /* then the host is a step ahead */
    wipe();
}
END_TEST

/** Loading 400 us in the training process, after reading the result of a step of 1000 us. */
START_TEST(a_wait_that_hides_behind_loading_is_found)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 1450.0;
        add("main range %.3f 1450 ProfilerStep#%d\n", t, i);
        add("main op %.3f 400 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n",
            t + 1.0);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 402.0);
        launch("main", t + 420.0, "gpu0.7", t + 430.0, 1000.0, "dgrad");
        add("main call %.3f 1000 cudaStreamSynchronize\n", t + 435.0);
    }
    draw();
    expect("sync=0", 1001.0);    /* loads while the device computes */
    expect("workers=2", 1150.0); /* and takes batches over */
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_finding *first = &analysis->findings[0];
    ck_assert_ptr_nonnull(trace_finding(analysis, "input-starvation"));
    ck_assert_ptr_nonnull(first->title);
    /* the plan begins with the first finding; the wait that it leaves comes next */
    ck_assert_uint_ge(analysis->plan_count, 2);
    ck_assert_str_eq(analysis->plan[0].brief, first->brief);
    ck_assert(fabs((double)analysis->plan[1].step_ns - 1001000.0) < 20000.0);
    ck_assert_str_eq(analysis->plan[1].brief, "synchronize less often");
    /* which a finding tells, less sure than the loader's: what is loaded may need the result */
    const struct lac_finding *hidden = trace_finding(analysis, "sync-stall");
    ck_assert_ptr_nonnull(hidden);
    ck_assert_ptr_ne(hidden, first);
    ck_assert_ptr_nonnull(strstr(hidden->title, "The host and the GPU wait for each other"));
    ck_assert_double_eq_tol(hidden->gain_mid_pct, 100.0 * 449.0 / 1450.0, 3.0);
    ck_assert_double_lt(hidden->gain_low_pct, 0.1);
    ck_assert_ptr_nonnull(strstr(hidden->change, "synchronize()"));
    ck_assert_uint_ge(hidden->evidence_count, 1);
    lac_analysis_destroy(analysis);
    wipe();
}
END_TEST

/** The host waits for each of four products and takes 150 us until the next, while the gradients of
 *  the one before are on their way: the device is never idle inside the step. */
START_TEST(a_wait_that_communication_covers_is_found)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        const double t = i * 1900.0;
        add("main range %.3f 1900 ProfilerStep#%d\n", t, i);
        for (int k = 0; k < 4; k++) {
            const double at = t + 20.0 + 450.0 * k;
            launch("main", at - 10.0, "gpu0.7", at, 300.0, "dgrad");
            add("main call %.3f 2 cudaStreamWaitEvent\n", at - 5.0);
            launch("main", at - 3.0, "gpu0.20", at + 302.0, 147.0,
                   "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
            launch("main", at + 2.0, "gpu0.7", at + 300.0, 1.0, "add");
            add("main call %.3f %.3f cudaStreamSynchronize\n", at + 8.0, 296.0);
            add("main op %.3f 120 aten::relu\n", at + 310.0);
        }
        add("main op %.3f 20 Optimizer.step#SGD.step\n", t + 1800.0);
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 1801.0);
        launch("main", t + 1804.0, "gpu0.7", t + 1822.0, 60.0, "multi_tensor");
        add("main call %.3f 76 cudaStreamSynchronize\n", t + 1810.0);
    }
    draw();
    const double without = mean_if("sync=0");
    ck_assert_double_lt(without, 1500.0);
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_finding *hidden = trace_finding(analysis, "sync-stall");
    ck_assert_ptr_nonnull(hidden);
    ck_assert_double_eq_tol(hidden->gain_high_pct, 100.0 * (1900.0 - without) / 1900.0, 1.0);
    ck_assert_double_le(hidden->gain_high_pct, hidden->cost_pct + 0.01);
    ck_assert_ptr_nonnull(strstr(hidden->title, "communication"));
    lac_analysis_destroy(analysis);
    wipe();
}
END_TEST

/** A launch that waits for room: the host is 64 kernels ahead, never more. */
START_TEST(a_full_queue_lets_the_host_no_further_ahead)
{
    enum { KERNELS = 100, ROOM = 64 };
    clear();
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < KERNELS; k++) {
            int n = i * KERNELS + k;
            double start = 20.0 + n * 200.0;
            /* the launch that follows returns when this many before it have started */
            double room = n < ROOM ? 0.0 : 20.0 + (n - ROOM) * 200.0;
            double at = n < ROOM ? n * 0.25 : room - 195.0;
            if (k == 0) {
                double next =
                    n + KERNELS < ROOM ? 0.0 : 20.0 + (n + KERNELS - ROOM) * 200.0 - 195.0;
                add("main range %.3f %.3f ProfilerStep#%d\n", at, next - at - 1.0, i);
                add("main op %.3f 0.1 Optimizer.step#SGD.step\n", at);
            }
            corr++;
            add("main call %.3f %.3f #%u cudaLaunchKernel\n", at, n < ROOM ? 0.2 : 196.0, corr);
            add("gpu0.7 kernel %.3f 199 #%u dgrad\n", start, corr);
        }
    }
    draw();
    expect("launch=0", KERNELS * 200.0); /* the device is the limit */
    expect("kernels=0.5", KERNELS * 100.5);
    wipe();
}
END_TEST

/** The host is through with all steps before the device has begun the first kernel, of which the
 *  launch was not recorded. */
START_TEST(work_from_before_the_recording_hides_no_launch)
{
    enum { STEPS_AHEAD = 6, KERNELS = 10 };
    clear();
    add("gpu0.7 kernel 8000 1990 dgrad\n");
    for (int i = 0; i < STEPS_AHEAD; i++) {
        double t = i * 1000.0;
        add("main range %.3f 1000 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        for (int k = 0; k < KERNELS; k++) {
            launch("main", t + 20.0 + 20.0 * k, "gpu0.7", 10000.0 + (i * KERNELS + k) * 2000.0,
                   1990.0, "dgrad");
        }
    }
    draw();
    expect("", KERNELS * 2000.0);
    expect("kernels=0.5", KERNELS * 1005.0);
    wipe();
}
END_TEST

/** A kernel of 1000 us that fills the device; one of another stream is launched at its beginning and
 *  finds room when nine tenths of it are done. The host waits for a value that is copied behind it, and
 *  only then goes on. */
START_TEST(a_kernel_that_finds_no_room_waits_for_the_one_that_fills_the_device)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 1200.0;
        add("main range %.3f 1200 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        launch("main", t + 20.0, "gpu0.7", t + 30.0, 1000.0, "dgrad");
        launch("main", t + 30.0, "gpu0.9", t + 930.0, 20.0, "reduce_kernel");
        corr++;
        add("main call %.3f 920 #%u cudaMemcpyAsync\n", t + 40.0, corr);
        add("gpu0.9 copy %.3f 2 #%u DtoH pageable 8\n", t + 953.0, corr);
    }
    draw();
    expect("", 1200.0);
    expect("kernels=0.1", 372.0); /* 30, 90 and 2 of kernels, a copy, and what the host does then */
    wipe();
}
END_TEST

/** Each step waits for a product with the buckets of its gradients still on their way, adds something
 *  small, which is done soon after the wait, and then waits for the buckets on the device. */
START_TEST(a_wait_is_for_what_was_launched_before_its_return)
{
    enum { BUCKETS = 5 };
    const double step = 2000.0 + 300.0 * BUCKETS + 100.0;
    clear();
    for (int i = 0; i < STEPS; i++) {
        const double t = i * step;
        add("main range %.3f %.3f ProfilerStep#%d\n", t, step, i);
        launch("main", t + 10.0, "gpu0.7", t + 16.0, 1984.0, "dgrad");
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 16.0);
        for (int k = 0; k < BUCKETS; k++) {
            launch("main", t + 20.0 + 5.0 * k, "gpu0.20", t + 2002.0 + 300.0 * k, 300.0,
                   "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
        }
        add("main call %.3f %.3f cudaStreamSynchronize\n", t + 50.0, 2004.0 - 50.0);
        launch("main", t + 2006.0, "gpu0.7", t + 2012.0, 5.0, "vectorized_elementwise_kernel");
        add("main op %.3f 20 Optimizer.step#SGD.step\n", t + 2012.0);
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 2013.0);
        launch("main", t + 2016.0, "gpu0.7", t + 2004.0 + 300.0 * BUCKETS, 90.0, "multi_tensor");
        add("main call %.3f %.3f cudaStreamSynchronize\n", t + 2040.0, step - 2040.0 - 4.0);
    }
    draw();
    expect("", step);
    expect("comm=0", 2110.0);
    expect("comm=0,kernels=0.5", 1095.0);
    wipe();
}
END_TEST

/** A stream is told to wait for what has long ended, and goes on behind what ended last. */
START_TEST(an_event_that_is_long_past_explains_no_wait)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 1500.0;
        add("main range %.3f 1500 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        launch("main", t + 20.0, "gpu0.7", t + 30.0, 100.0, "dgrad");
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 26.0);
        launch("other", t + 30.0, "gpu0.7", t + 132.0, 800.0, "wgrad");
        launch("main", t + 36.0, "gpu0.9", t + 934.0, 500.0, "ncclDevKernel_SendRecv");
        add("main call %.3f 1390 cudaDeviceSynchronize\n", t + 50.0);
    }
    draw();
    expect("", 1500.0);
    expect("kernels=0.5", 1050.0);
    wipe();
}
END_TEST

/** A batch of 4 ms is copied from pageable memory as fast as the link goes, then computed in 10 ms. */
START_TEST(a_pageable_copy_at_the_rate_of_the_link_is_copied_ahead)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        const double t = i * 14100.0;
        add("main range %.3f 14100 ProfilerStep#%d\n", t, i);
        add("main op %.3f 4020 aten::copy_\n", t + 10.0);
        add("main call %.3f 4005 #%u cudaMemcpyAsync\n", t + 20.0, ++corr);
        add("gpu0.7 copy %.3f 4000 #%u HtoD pageable 110000000\n", t + 24.0, corr);
        launch("main", t + 4040.0, "gpu0.7", t + 4050.0, 10000.0, "dgrad");
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 4050.0);
        add("main call %.3f 9990 cudaStreamSynchronize\n", t + 4064.0);
    }
    draw();
    const double ahead = mean_if("pinned=1,async=1");
    ck_assert_double_lt(ahead, 10300.0);
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_finding *finding = trace_finding(analysis, "blocking-copy");
    ck_assert_ptr_null(trace_finding(analysis, "pageable-copy"));
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_gt(finding->gain_mid_pct, 24.0);
    ck_assert_ptr_nonnull(strstr(finding->why, "from pageable memory"));
    ck_assert_ptr_eq(strstr(finding->change, "DataLoader(..., pin_memory=True)"), finding->change);
    lac_analysis_destroy(analysis);
    wipe();
}
END_TEST

/** A batch is copied from pinned memory in 500 us, then computed in 300; with the launches linked or
 *  not. */
static void draw_copying(bool is_linked)
{
    clear();
    for (int i = 0; i < STEPS; i++) {
        double t = i * 840.0;
        char link[16] = "";
        add("main range %.3f 840 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        (void)snprintf(link, sizeof(link), is_linked ? "#%u" : "", ++corr);
        add("main call %.3f 4 %s cudaMemcpyAsync\n", t + 20.0, link);
        add("gpu0.7 copy %.3f 500 %s HtoD pinned 6000000\n", t + 30.0, link);
        (void)snprintf(link, sizeof(link), is_linked ? "#%u" : "", ++corr);
        add("main call %.3f 4 %s cudaLaunchKernel\n", t + 30.0, link);
        add("gpu0.7 kernel %.3f 300 %s dgrad\n", t + 532.0, link);
        add("main call %.3f 795 cudaStreamSynchronize\n", t + 40.0);
    }
    draw();
}

START_TEST(copies_ahead_take_their_time_on_the_link)
{
    draw_copying(true);
    expect("async=1", 500.0); /* beside the kernels, not in no time */
    wipe();
    draw_copying(false);
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *analysis = NULL;
    ck_assert_int_eq(lac_what_if_parse("async=1,kernels=0", &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &analysis, NULL), LAC_OK);
    ck_assert_str_eq(analysis->replay.method, "device");
    ck_assert_int_ge(analysis->what_if_step.mean_ns, 500000);
    lac_analysis_destroy(analysis);
    wipe();
}
END_TEST

/* -- what is not known ------------------------------------------------------------------------- */

/** Why the change is not answered, "" when it is; and its band. */
static const char *why_not(const char *text, struct lac_what_if_step *ret_step)
{
    static char reason[256];
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *analysis = NULL;
    ck_assert_int_eq(lac_what_if_parse(text, &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &analysis, NULL), LAC_OK);
    (void)snprintf(reason, sizeof(reason), "%s", analysis->what_if_why_not);
    *ret_step = analysis->what_if_step;
    bool is_known = analysis->what_if_step.mean_ns != LAC_UNKNOWN_NS;
    ck_assert(is_known == (reason[0] == '\0'));
    ck_assert(is_known == (analysis->what_if_assumption[0] != '\0'));
    ck_assert(is_known == (analysis->what_if_median_ns != LAC_UNKNOWN_NS));
    lac_analysis_destroy(analysis);
    return reason;
}

static void expect_unknown(const char *change, const char *reason)
{
    struct lac_what_if_step step;
    const char *have = why_not(change, &step);
    ck_assert_msg(strstr(have, reason) != NULL, "%s: \"%s\"", change, have);
    ck_assert_int_eq(step.low_ns, LAC_UNKNOWN_NS);
    ck_assert_int_eq(step.high_ns, LAC_UNKNOWN_NS);
}

START_TEST(what_was_not_recorded_is_not_known)
{
    draw_launch_bound(50);
    expect_unknown("workers=4", "loading batches was not recorded");
    expect_unknown("async=1", "no copy of a batch");
    expect_unknown("pinned=1", "no copy of a batch");
    expect_unknown("workers=4,kernels=0.5", "loading batches was not recorded");
    wipe();
    clear();
    for (int i = 0; i < STEPS; i++) { /* a wait that takes the batch over; who loads is not known */
        double t = i * 1000.0;
        add("main range %.3f 1000 ProfilerStep#%d\n", t, i);
        add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
        add("main wait %.3f 10 batch=%d\n", t + 2.0, i);
        launch("main", t + 60.0, "gpu0.7", t + 70.0, 930.0, "dgrad");
        add("main call %.3f 900 cudaStreamSynchronize\n", t + 80.0);
    }
    draw();
    expect_unknown("workers=1", "neither the number of workers");
    lac_model_destroy(model);
    model = trace_draw_with(sheet, "{\"lacuna\":{\"settings\":{\"num_workers\":4}}}", 8);
    expect_unknown("workers=1", "fewer may keep up");
    struct lac_what_if_step step;
    ck_assert_str_eq(why_not("workers=4", &step), "");
    ck_assert_str_eq(why_not("workers=8", &step), ""); /* none is waited for now */
    ck_assert_int_eq(step.mean_ns / 10000, 100);
    lac_model_destroy(model);
    model = trace_draw_with("main range 0 100 job\ngpu0.7 kernel 10 50 dgrad\n", NULL, 8);
    expect_unknown("kernels=0.5", "no steps were found");
    wipe();
}
END_TEST

START_TEST(a_band_without_width_is_exact_and_says_so)
{
    struct lac_what_if_step step;
    draw_launch_bound(50);
    ck_assert_str_eq(why_not("layout=nhwc", &step), "");
    ck_assert_int_eq(step.low_ns, step.high_ns);
    ck_assert_str_eq(why_not("kernels=4", &step), "");
    double width = (double)(step.high_ns - step.low_ns) / (double)step.mean_ns;
    ck_assert_msg(width > 0.03 && width < 0.05, "%.3f", width);
    wipe();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tests = tcase_create("graph");
    tcase_add_test(tests, without_a_change_the_step_is_the_recorded_one);
    tcase_add_test(tests, without_waiting_the_device_is_never_idle);
    tcase_add_test(tests, faster_kernels_do_not_shorten_what_the_host_does_behind_a_wait);
    tcase_add_test(tests, free_launches_leave_what_the_device_needs);
    tcase_add_test(tests, communication_in_the_way_goes_with_its_time);
    tcase_add_test(tests, more_workers_help_until_the_device_is_the_limit);
    tcase_add_test(tests, of_two_waits_for_the_same_the_second_is_free);
    tcase_add_test(tests, a_wait_that_hides_behind_loading_is_found);
    tcase_add_test(tests, a_full_queue_lets_the_host_no_further_ahead);
    tcase_add_test(tests, work_from_before_the_recording_hides_no_launch);
    tcase_add_test(tests, a_kernel_that_finds_no_room_waits_for_the_one_that_fills_the_device);
    tcase_add_test(tests, an_event_that_is_long_past_explains_no_wait);
    tcase_add_test(tests, a_wait_that_communication_covers_is_found);
    tcase_add_test(tests, a_wait_is_for_what_was_launched_before_its_return);
    tcase_add_test(tests, a_pageable_copy_at_the_rate_of_the_link_is_copied_ahead);
    tcase_add_test(tests, copies_ahead_take_their_time_on_the_link);
    tcase_add_test(tests, what_was_not_recorded_is_not_known);
    tcase_add_test(tests, a_band_without_width_is_exact_and_says_so);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
