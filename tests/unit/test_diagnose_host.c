/* The host's own work: gradients that are filled, a slow host, compiled models; each beside a trace that
 * looks like it and is not. */

#include "analysis/diagnose/diagnose.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 10 };

static double now; /* us, on the host */

/** An operator of that many us that launches something, which is drawn by its words. */
static void launch(const char *op, double us, const char *call, const char *what)
{
    sheet_add("main op %.2f %.2f %s\n", now, us, op);
    sheet_add("main call %.2f %.2f #%u %s\n", now + 0.3 * us, 0.4 * us, ++sheet_corr, call);
    sheet_add("gpu0.7 %s\n", what);
    now += us;
}

static void kernel(const char *op, double us, double gpu, const char *name)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "kernel %.2f %.2f #%u %s", now + us, gpu, sheet_corr + 1,
                   name);
    launch(op, us, "cudaLaunchKernel", text);
}

static void set_memory(const char *op, double us)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "memset %.2f 1 #%u memset", now + us, sheet_corr + 1);
    launch(op, us, "cudaMemsetAsync", text);
}

#define EAGER                                                                                      \
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"

/* -- gradients ---------------------------------------------------------------------------------- */

struct training {
    int parameters;
    int micro;        /**< batches to an update */
    bool fills, adds; /**< gradients */
    bool is_named;    /**< Optimizer.zero_grad has a range */
};

static void accumulate(bool adds)
{
    double begin = now;
    sheet_add("main op %.2f %d torch::autograd::AccumulateGrad\n", begin, adds ? 44 : 4);
    now += 2.0;
    if (adds) {
        kernel("aten::add_", 40.0, 3.0, EAGER);
    }
    now = begin + (adds ? 44.0 : 4.0);
}

static void train(const struct training *job)
{
    sheet_blank();
    now = 0.0;
    for (int step = 0; step < STEPS; step++) {
        double begin = now;
        if (job->fills) {
            if (job->is_named) {
                sheet_add("main range %.2f %.2f Optimizer.zero_grad#SGD.zero_grad\n", now,
                          30.0 * job->parameters + 5.0);
            }
            for (int p = 0; p < job->parameters; p++) {
                set_memory("aten::zero_", 30.0);
            }
            now += 10.0;
        }
        for (int batch = 0; batch < job->micro; batch++) {
            for (int p = 0; p < job->parameters; p++) {
                kernel("aten::mm", 60.0, 20.0, "volta_sgemm_128x64_nn");
            }
            for (int p = 0; p < job->parameters; p++) {
                kernel("MmBackward0", 60.0, 20.0, "volta_sgemm_128x64_nn");
                accumulate(job->adds && (batch > 0 || job->fills));
            }
        }
        kernel("Optimizer.step#SGD.step", 40.0, 5.0, "multi_tensor_apply_kernel");
        sheet_add("main range %.2f %.2f ProfilerStep#%d\n", begin, now - begin, step);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(gradients_that_are_filled_and_added_to_are_set_to_none)
{
    struct training job = {40, 1, true, true, true};
    train(&job);
    const struct lac_finding *finding = sheet_finding("zero-grad-fills");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "set_to_none=True"));
    /* of 40 x (30 + 60 + 60 + 44) us, the fills and 42 of the 44 go */
    double gain = 100.0 * (30.0 + 40.0) / (30.0 + 60.0 + 60.0 + 44.0);
    ck_assert_msg(fabs(finding->gain_mid_pct - gain) < 4.0, "%.1f", finding->gain_mid_pct);
    job.is_named = false; /* model.zero_grad() has no range */
    train(&job);
    ck_assert_ptr_nonnull(sheet_finding("zero-grad-fills"));
}
END_TEST

START_TEST(accumulation_over_micro_batches_is_wanted)
{
    struct training job = {40, 4, false, true, true};
    train(&job); /* None at first, then added to */
    ck_assert_ptr_null(sheet_finding("zero-grad-fills"));
    job.fills = true; /* of four additions a gradient, one is spared */
    train(&job);
    const struct lac_finding *finding = sheet_finding("zero-grad-fills");
    ck_assert_ptr_nonnull(finding);
    double step = 30.0 + 4.0 * (60.0 + 60.0 + 44.0);
    ck_assert_msg(fabs(finding->gain_mid_pct - 100.0 * 70.0 / step) < 2.0, "%.1f",
                  finding->gain_mid_pct);
}
END_TEST

START_TEST(gradients_that_are_none_already_have_nothing_to_be_said)
{
    struct training job = {40, 1, false, false, true};
    train(&job);
    ck_assert_ptr_null(sheet_finding("zero-grad-fills"));
    job.fills = true; /* buffers of the program: nothing is added to them */
    job.is_named = false;
    train(&job);
    ck_assert_ptr_null(sheet_finding("zero-grad-fills"));
}
END_TEST

/* -- a slow host -------------------------------------------------------------------------------- */

struct host {
    double slow;    /**< all operators take that much longer */
    double view;    /**< of a view, us */
    bool is_loader; /**< the slow views are the loader's */
    bool has_stacks;
};

static void run_host(const struct host *host)
{
    sheet_blank();
    now = 0.0;
    for (int step = 0; step < STEPS; step++) {
        double begin = now;
        if (host->is_loader) {
            sheet_add(
                "main op %.2f 2000 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n",
                now);
            for (int i = 0; i < 40; i++) {
                sheet_add("main op %.2f 30 aten::as_strided\n", now + 5.0 + 40.0 * i);
            }
            now += 2010.0;
        }
        for (int i = 0; i < 40; i++) {
            sheet_add("main op %.2f %.2f aten::as_strided\n", now, host->view);
            now += host->view + 0.5 * host->slow;
            sheet_add("main op %.2f %.2f aten::mm\n", now, 8.0 * host->slow);
            now += 6.0 * host->slow;
            sheet_add("main call %.2f 5 #%u cudaLaunchKernel\n", now, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.2f 20 #%u volta_sgemm_128x64_nn\n", now + 8.0, sheet_corr);
            now += 2.0 * host->slow + 5.0;
        }
        if (host->has_stacks) {
            sheet_add("main python %.2f %.2f train.py(3): step\n", begin, now - begin);
        }
        sheet_add("main op %.2f 10 Optimizer.step#SGD.step\n", now);
        now += 20.0;
        sheet_add("main range %.2f %.2f ProfilerStep#%d\n", begin, now - begin, step);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(a_host_that_is_slow_for_what_computes_nothing_is_slow_for_all)
{
    struct host host = {.slow = 20.0, .view = 22.0};
    run_host(&host);
    const struct lac_finding *finding = sheet_finding("host-slow");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_eq(finding, &analysis->findings[0]);
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::as_strided takes 22"));
    /* 22 times as fast it is bound by kernels of 20 us and their launches: 40 x ~20 of 40 x 197 us */
    ck_assert_msg(finding->gain_mid_pct > 80.0 && finding->gain_mid_pct < 95.0, "%.1f",
                  finding->gain_mid_pct);
}
END_TEST

START_TEST(a_host_that_launches_many_kernels_is_not_slow)
{
    struct host host = {.slow = 4.0, .view = 1.0};
    run_host(&host);
    ck_assert_ptr_null(sheet_finding("host-slow"));
    host.view = 4.0; /* an old recording, in whole microseconds */
    run_host(&host);
    ck_assert_ptr_null(sheet_finding("host-slow"));
}
END_TEST

START_TEST(a_loader_that_is_slow_is_no_slow_host)
{
    struct host host = {.slow = 2.0, .view = 1.0, .is_loader = true};
    run_host(&host);
    ck_assert_ptr_null(sheet_finding("host-slow"));
}
END_TEST

START_TEST(what_recording_stacks_costs_is_no_slow_host)
{
    struct host host = {.slow = 20.0, .view = 22.0, .has_stacks = true};
    run_host(&host);
    ck_assert_ptr_null(sheet_finding("host-slow"));
}
END_TEST

/* -- where the host is ------------------------------------------------------------------------------ */

/** Steps that launch `count` kernels in operators of `us` each, and an optimizer that takes `own` us by
 *  itself. */
static void run_optimizer(int count, double us, double own)
{
    sheet_blank();
    now = 0.0;
    for (int step = 0; step < STEPS; step++) {
        double begin = now;
        for (int i = 0; i < count; i++) {
            kernel("aten::mm", us, 10.0, "volta_sgemm_128x64_nn");
        }
        sheet_add("main op %.2f %.2f Optimizer.step#Shampoo.step\n", now, own + 3005.0);
        now += own;
        kernel("aten::_foreach_mul_", 3000.0, 5.0, "multi_tensor_apply_kernel");
        now += 10.0;
        sheet_add("main range %.2f %.2f ProfilerStep#%d\n", begin, now - begin, step);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(what_the_host_does_while_the_device_waits_is_named)
{
    run_optimizer(20, 100.0, 5000.0);
    const struct lac_finding *finding = sheet_finding("host-work");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, LAC_SEVERITY_INFO);
    ck_assert_ptr_nonnull(strstr(finding->title, "Optimizer.step#Shampoo.step: 5 ms"));
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::_foreach_mul_ 1.8 ms")); /* 1.2 in a call */
    ck_assert_str_eq(finding->change, "");
    ck_assert_ptr_null(strstr(finding->why, "aten::mm")); /* many short ones are launches */
}
END_TEST

/** Samples of the optimizer's own time: four in five of them in one line. */
static void add_stacks(void)
{
    const double step_us = now / STEPS;
    for (int step = 0; step < STEPS; step++) {
        const double begin = step * step_us + step_us - 50000.0 - 3015.0;
        sheet_add("main stack %.2f 50000 train.py(30): main\n", begin);
        sheet_add("main stack %.2f 40000 optim/shampoo.py(71): root\n", begin);
        sheet_add("main stack %.2f 30000 torch/linalg/inner.py(7): svd\n", begin + 1000.0);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(the_line_of_python_that_keeps_the_host_busy_is_named)
{
    run_optimizer(20, 100.0, 50000.0);
    ck_assert_uint_eq(analysis->python_samples.sample_count, 0);
    ck_assert_str_eq(analysis->python_samples.text, "");
    ck_assert_ptr_null(strstr(sheet_finding("host-work")->why, "samples"));
    add_stacks();
    const struct lac_finding *finding = sheet_finding("host-work");
    ck_assert_ptr_nonnull(finding);
    ck_assert_msg(strstr(finding->why,
                         "root (optim/shampoo.py:71) 80 %, main (train.py:30) 20 % of ") != NULL,
                  "%s", finding->why);
    const struct lac_evidence *last = &finding->evidence[finding->evidence_count - 1];
    ck_assert_ptr_nonnull(strstr(last->text, "root (optim/shampoo.py:71) 80 %"));
    ck_assert_int_eq(model->tracks[last->track].kind, LAC_TRACK_STACKS);
    const struct lac_python_samples *samples = &analysis->python_samples;
    ck_assert_uint_eq(samples->sample_count, STEPS * 50 / 20);
    ck_assert_uint_ge(samples->sample_count, samples->idle_sample_count);
    ck_assert_str_eq(samples->lines[0].function, "root");
    ck_assert_str_eq(samples->lines[0].place, "optim/shampoo.py:71");
    ck_assert_ptr_nonnull(strstr(samples->text, "while the GPU was idle"));
}
END_TEST

START_TEST(many_short_operators_are_no_long_work)
{
    struct training job = {40, 1, false, false, true};
    train(&job);
    ck_assert_ptr_null(sheet_finding("host-work"));
}
END_TEST

/* -- compiled models ------------------------------------------------------------------------------ */

struct compiled {
    int copies;
    const char *kernel;
    bool has_graph;
    const char *region; /**< with a number of the piece, or NULL: one function */
    int pieces;
    bool is_compiled;
};

static void run_compiled(const struct compiled *model_of)
{
    sheet_blank();
    now = 0.0;
    for (int step = 0; step < STEPS; step++) {
        double begin = now;
        int pieces = model_of->pieces > 0 ? model_of->pieces : 1;
        for (int piece = 0; piece < pieces; piece++) {
            double from = now;
            now += 2.0;
            double device = now + 20.0;
            for (int c = 0; c < model_of->copies; c++) {
                char text[128];
                (void)snprintf(text, sizeof(text), "copy %.2f 100 #%u DtoD device 4000000",
                               device + 101.0 * c, sheet_corr + 1);
                launch("aten::copy_", 10.0, "cudaMemcpyAsync", text);
            }
            device += 101.0 * model_of->copies;
            if (model_of->has_graph) {
                sheet_add("main call %.2f 8 #%u cudaGraphLaunch\n", now, ++sheet_corr);
                sheet_add("gpu0.7 kernel %.2f 1500 #%u %s\n", device + 10.0, sheet_corr,
                          model_of->kernel);
                sheet_add("main call %.2f %.2f cudaStreamSynchronize\n", now + 10.0,
                          device + 1520.0 - now - 10.0);
                now = device + 1525.0;
            } else {
                for (int i = 0; i < 40; i++) {
                    kernel("aten::add", 40.0, 15.0, model_of->kernel);
                }
            }
            if (model_of->is_compiled && model_of->region != NULL) {
                sheet_add("main range %.2f %.2f %s %d/0\n", from, now + 1.0 - from,
                          model_of->region, piece);
            } else if (model_of->is_compiled) {
                sheet_add("main op %.2f %.2f CompiledFunction\n", from, now + 1.0 - from);
            }
            now += 5.0;
        }
        kernel("Optimizer.step#SGD.step", 30.0, 5.0, "multi_tensor_apply_kernel");
        sheet_add("main range %.2f %.2f ProfilerStep#%d\n", begin, now - begin, step);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(inputs_of_a_graph_that_are_copied_are_to_stay)
{
    struct compiled job = {
        .copies = 12, .kernel = "triton_poi_fused_add_0", .has_graph = true, .is_compiled = true};
    run_compiled(&job);
    const struct lac_finding *finding = sheet_finding("compile-health");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "mark_static_address"));
    ck_assert(finding->gain_mid_pct > 20.0);
    job.copies = 2; /* the batch */
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
    job.copies = 12;
    job.is_compiled = false; /* copies of the program's own */
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
}
END_TEST

START_TEST(a_backend_that_fuses_nothing_is_named)
{
    struct compiled job = {.kernel = EAGER, .is_compiled = true};
    run_compiled(&job);
    const struct lac_finding *finding = sheet_finding("compile-health");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "inductor"));
    job.kernel = "triton_poi_fused_add_0"; /* made by one that does */
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
    job.kernel = "volta_sgemm_128x64_nn"; /* nothing to fuse */
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
    job.kernel = EAGER; /* what the graph holds is not known */
    job.has_graph = true;
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
    job.has_graph = false;
    job.is_compiled = false;
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
}
END_TEST

START_TEST(pieces_of_a_model_are_a_remark)
{
    struct compiled job = {.kernel = "triton_poi_fused_add_0",
                           .region = "Torch-Compiled Region:",
                           .pieces = 4,
                           .is_compiled = true};
    run_compiled(&job);
    const struct lac_finding *finding = sheet_finding("compile-health");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->title, "The compiled model is in 4 pieces");
    ck_assert_int_eq(finding->severity, LAC_SEVERITY_INFO);
    ck_assert_str_eq(finding->change, "");
    job.pieces = 2;
    run_compiled(&job);
    ck_assert_ptr_null(sheet_finding("compile-health"));
}
END_TEST

/** Each step waits for the GPU, then works for 3 ms on the host: what idles has the host's name, and
 *  without the wait that work would run beside the GPU's. Its steps are marked with numbers. */
START_TEST(a_wait_before_long_host_work_is_what_costs)
{
    sheet_blank();
    for (int step = 0; step < 12; step++) {
        const double at = step * 11040.0;
        sheet_add("main range %.0f 11030 train#%d\n", at, step);
        for (int i = 0; i < 20; i++) {
            sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + i * 10, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.0f 400 #%u ampere_sgemm_128x64_tn\n", at + 20 + i * 400,
                      sheet_corr);
        }
        sheet_add("main op %.0f 20 Optimizer.step#SGD.step\n", at + 205);
        sheet_add("main call %.0f %.0f cudaDeviceSynchronize\n", at + 230, 8025.0 - 230.0);
        sheet_add("main op %.0f 3000 python_logging\n", at + 8030);
    }
    sheet_diagnose(NULL, 8);
    const struct lac_finding *stall = sheet_finding("sync-stall");
    ck_assert_ptr_nonnull(stall);
    ck_assert_double_gt(stall->gain_mid_pct, 20.0);
    sheet_check_grammar(stall);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_host");
    TCase *tests = tcase_create("the host's own work");
    tcase_add_checked_fixture(tests, NULL, sheet_wipe);
    tcase_add_test(tests, the_line_of_python_that_keeps_the_host_busy_is_named);
    tcase_add_test(tests, gradients_that_are_filled_and_added_to_are_set_to_none);
    tcase_add_test(tests, accumulation_over_micro_batches_is_wanted);
    tcase_add_test(tests, gradients_that_are_none_already_have_nothing_to_be_said);
    tcase_add_test(tests, a_host_that_is_slow_for_what_computes_nothing_is_slow_for_all);
    tcase_add_test(tests, a_host_that_launches_many_kernels_is_not_slow);
    tcase_add_test(tests, a_loader_that_is_slow_is_no_slow_host);
    tcase_add_test(tests, what_recording_stacks_costs_is_no_slow_host);
    tcase_add_test(tests, what_the_host_does_while_the_device_waits_is_named);
    tcase_add_test(tests, many_short_operators_are_no_long_work);
    tcase_add_test(tests, inputs_of_a_graph_that_are_copied_are_to_stay);
    tcase_add_test(tests, a_backend_that_fuses_nothing_is_named);
    tcase_add_test(tests, pieces_of_a_model_are_a_remark);
    tcase_add_test(tests, a_wait_before_long_host_work_is_what_costs);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
