/* What is said, and above all what is not: each test draws a trace in which a naive text would
 * appear. */

#include "collector/base/count_of.h"
#include "server/cli/report_text.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** One training step of a drawn loop, times in us. */
struct loop {
    int steps;
    double wait; /* before anything else, device idle */
    double copy; /* length of the batch's copy, 0 none */
    const char *copy_text;
    double kernel; /* computing, in four kernels */
    const char *kernel_name;
    double layout; /* conversions after them */
    double comm;   /* a collective after them */
    double host;   /* host work after the last launch, device idle */
    int workers;   /* fetches are drawn when positive */
    double fetch;
    const char *wait_name;
};

/** When the host is free for its next call, and the device for its next operation. */
static double host_us, device_us;

/** A call and its operation. Only a copy from pageable memory keeps the host until it is done. */
static void launch(double length, const char *kind, const char *name)
{
    sheet_corr++;
    bool is_copy = strcmp(kind, "copy") == 0;
    bool is_pageable = is_copy && strstr(name, "pageable") != NULL;
    double start = device_us > host_us + 1.5 ? device_us : host_us + 1.5;
    device_us = start + length;
    double returns = is_pageable ? device_us + 1.0 : host_us + 1.0;
    sheet_add("main call %.3f %.3f #%u %s\n", host_us, returns - host_us, sheet_corr,
              is_copy ? "cudaMemcpyAsync" : "cudaLaunchKernel");
    sheet_add("gpu0.7 %s %.3f %.3f #%u %s\n", kind, start, length, sheet_corr, name);
    host_us = returns + 1.0;
}

static void draw_loop(const struct loop *loop, const char *metadata, int cc_major)
{
    sheet_blank();
    host_us = 0.0;
    device_us = 0.0;
    const char *kernel = loop->kernel_name != NULL ? loop->kernel_name : "dgrad_s16816cudnn_kernel";
    for (int i = 0; i < loop->steps; i++) {
        double begin = host_us;
        if (loop->wait > 0.0 && loop->wait_name != NULL) {
            sheet_add("main op %.3f %.3f %s\n", begin, loop->wait, loop->wait_name);
        } else if (loop->wait > 0.0) {
            sheet_add("main wait %.3f %.3f batch=%d\n", begin, loop->wait, i);
        }
        if (loop->workers > 0) {
            sheet_add("w%d fetch %.3f %.3f batch=%d worker=%d\n", i % loop->workers, begin,
                      loop->fetch, i, i % loop->workers);
        }
        host_us += loop->wait + 1.0;
        if (loop->copy > 0.0) {
            launch(loop->copy, "copy", loop->copy_text);
        }
        for (int k = 0; k < 4; k++) {
            launch(loop->kernel / 4.0, "kernel", kernel);
        }
        if (loop->layout > 0.0) {
            launch(loop->layout, "kernel", "void cudnn::ops::nchwToNhwcKernel<float>(int)");
        }
        if (loop->comm > 0.0) {
            launch(loop->comm, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
        }
        sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", host_us,
                  device_us + 1.0 - host_us);
        host_us = device_us + 2.0;
        sheet_add("main op %.3f %.3f Optimizer.step#SGD.step\n", host_us, 1.0 + loop->host);
        host_us += loop->host + 2.0;
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", begin, host_us - begin, i);
    }
    sheet_diagnose(metadata, cc_major);
}

START_TEST(starvation_says_how_many_workers)
{
    draw_loop(
        &(struct loop){.steps = 12, .wait = 5000, .kernel = 9960, .workers = 2, .fetch = 29900},
        "{\"lacuna\":{\"settings\":{\"batch_size\":64,\"loader_at\":\"/home/kim/train.py:83\"}}}",
        7);
    const struct lac_finding *first = &analysis->findings[0];
    ck_assert_str_eq(first->id, "input-starvation");
    ck_assert_int_eq((int)first->severity, (int)LAC_SEVERITY_CRITICAL);
    ck_assert_int_eq(analysis->loader.recommended_num_workers, 4); /* ceil(1.15 * 29.9 / 10) */
    ck_assert_str_eq(first->brief, "num_workers=4");
    ck_assert_str_eq(first->where, "train.py:83");
    /* the first step's wait lies before the device's first operation: that step is not whole on it, and
     * left out with its wait */
    ck_assert_int_le(first->step_mid_ns, analysis->step_without_starvation_ns * 102 / 100);
    ck_assert_int_lt(llabs(first->step_mid_ns - 10000000), 150000);
    ck_assert_str_eq(analysis->verdict.cause, "data_wait");
    ck_assert_str_eq(analysis->throughput_unit, "samples");
    ck_assert_int_gt((int)first->evidence_count, 0);
}
END_TEST

START_TEST(more_workers_than_cores_is_not_proposed)
{
    draw_loop(
        &(struct loop){.steps = 12, .wait = 5000, .kernel = 9960, .workers = 2, .fetch = 29900},
        "{\"lacuna\":{\"settings\":{\"allowed_cores\":2}}}", 7);
    /* no CPU time of a fetch is known: the number stands */
    ck_assert_str_eq(sheet_finding("input-starvation")->brief, "num_workers=4");
}
END_TEST

START_TEST(a_wait_that_the_gpu_does_not_notice_is_free)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        /* the step's kernel is launched ahead and runs through the next wait */
        sheet_add("main range %d 10000 ProfilerStep#%d\n", i * 10000, i);
        sheet_add("main call %d 1 #%d cudaLaunchKernel\n", i * 10000 + 10, i + 1);
        sheet_add("gpu0.7 kernel %d 9990 #%d dgrad\n", i * 10000 + 12, i + 1);
        sheet_add("main wait %d 9000 batch=%d\n", i * 10000 + 500, i);
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->loader.wait_pct_of_steps > 85.0);
    ck_assert_ptr_null(sheet_finding("input-starvation"));
    ck_assert_str_eq(analysis->verdict.cause, "gpu");
}
END_TEST

START_TEST(loading_in_the_training_process_is_named)
{
    draw_loop(
        &(struct loop){.steps = 10,
                       .wait = 5000,
                       .kernel = 4960,
                       .wait_name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
        NULL, 7);
    const struct lac_finding *finding = sheet_finding("input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(analysis->loader.num_workers, 0);
    ck_assert_ptr_nonnull(strstr(finding->why, "training process"));
    ck_assert(finding->confidence <= 0.7); /* what workers take was not seen */
}
END_TEST

START_TEST(conversions_are_not_worth_it_while_the_gpu_idles)
{
    /* the host needs a millisecond for each launch: the device waits for it */
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        sheet_add("main range %d 10000 ProfilerStep#%d\n", i * 10000, i);
        sheet_add("main op %d 20 Optimizer.step#SGD.step\n", i * 10000 + 9900);
        for (int k = 0; k < 10; k++) {
            bool is_layout = k % 5 == 0;
            sheet_corr++;
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", i * 10000 + k * 1000, sheet_corr);
            sheet_add("gpu0.7 kernel %d %d #%u %s\n", i * 10000 + k * 1000 + 7,
                      is_layout ? 100 : 200, sheet_corr,
                      is_layout ? "nchwToNhwcKernel" : "dgrad_kernel");
        }
    }
    sheet_diagnose(NULL, 7);
    const struct lac_finding *finding = sheet_finding("layout-conversion");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert(isnan(finding->gain_high_pct)); /* nothing is proposed */
    ck_assert_ptr_nonnull(strstr(finding->title, "gains nothing now"));
}
END_TEST

/** A device that is never idle: the host launches far ahead. */
static void draw_busy(int steps, double compute, double layout, double comm, const char *kernel,
                      int cc_major)
{
    sheet_blank();
    double step = compute + layout + comm;
    for (int i = 0; i < steps; i++) {
        double t = i * step + 100.0;
        const double lengths[] = {compute / 2, compute / 2, layout, comm};
        const char *const names[] = {kernel, kernel, "nchwToNhwcKernel",
                                     "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"};
        sheet_add("main range %.3f %.3f ProfilerStep#%d\n", i * step, step, i);
        for (int k = 0; k < 4; k++) {
            if (lengths[k] <= 0.0) {
                continue;
            }
            sheet_corr++;
            sheet_add("main call %.3f 1 #%u cudaLaunchKernel\n", i * step + 2.0 * k, sheet_corr);
            sheet_add("gpu0.7 kernel %.3f %.3f #%u %s\n", t, lengths[k], sheet_corr, names[k]);
            t += lengths[k];
        }
        sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", i * step + 20.0, step - 25.0);
    }
    sheet_diagnose(NULL, cc_major);
}

START_TEST(conversions_that_the_step_waits_for_are_priced_by_the_step)
{
    draw_busy(10, 7000.0, 3000.0, 0.0, "dgrad_s884cudnn", 7);
    const struct lac_finding *finding = sheet_finding("layout-conversion");
    ck_assert_ptr_nonnull(finding);
    ck_assert(fabs(finding->cost_pct - 30.0) < 1.0);
    ck_assert(finding->gain_low_pct > 10.0 && finding->gain_high_pct < 31.0);
    ck_assert_ptr_nonnull(strstr(finding->change, "channels_last"));
    ck_assert_ptr_null(sheet_finding("gpu-bound")); /* converting is no computing */
}
END_TEST

START_TEST(busy_with_communication_is_not_gpu_bound)
{
    draw_busy(10, 4000.0, 0.0, 6000.0, "dgrad_s884cudnn", 7);
    ck_assert(analysis->devices[0].busy_pct > 95.0);
    ck_assert_ptr_null(sheet_finding("gpu-bound"));
    ck_assert_str_eq(analysis->verdict.cause, "comm");
    draw_busy(10, 9500.0, 0.0, 500.0, "dgrad_s884cudnn", 7);
    ck_assert_ptr_nonnull(sheet_finding("gpu-bound"));
    ck_assert_str_eq(analysis->verdict.cause, "gpu");
}
END_TEST

static const char *framework_is(const char *name)
{
    static char metadata[128];
    (void)snprintf(metadata, sizeof(metadata), "{\"lacuna\":{\"settings\":{\"framework\":\"%s\"}}}",
                   name);
    return metadata;
}

START_TEST(tensor_cores_are_proposed_by_generation)
{
    draw_busy(10, 10000.0, 0.0, 0.0, "volta_sgemm_128x64_nn_dgrad", 7);
    const struct lac_finding *finding = sheet_finding("tensor-cores-unused");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "float16"));
    ck_assert_ptr_null(strstr(finding->change, "bfloat16"));
    ck_assert(finding->gain_high_pct <
              100.0 * 5.0 / 6.0 + 1.0); /* only the eligible kernels' part */
    sheet_diagnose(framework_is("Lightning"), 7);
    ck_assert_ptr_nonnull(
        strstr(sheet_finding("tensor-cores-unused")->change, "precision='16-mixed'"));
    draw_busy(10, 10000.0, 0.0, 0.0, "ampere_sgemm_128x64_nn_backward", 8);
    ck_assert_ptr_nonnull(strstr(sheet_finding("tensor-cores-unused")->change, "tf32"));
    sheet_diagnose(framework_is("HF Trainer"), 8);
    ck_assert_ptr_nonnull(
        strstr(sheet_finding("tensor-cores-unused")->change, "TrainingArguments(..., tf32=True)"));
    draw_busy(10, 10000.0, 0.0, 0.0, "sgemm_128x64_nn_backward", 6); /* has no tensor cores */
    ck_assert_ptr_null(sheet_finding("tensor-cores-unused"));
    draw_busy(10, 10000.0, 0.0, 0.0, "somebodys_gemm_backward", 8); /* unknown is not "no" */
    ck_assert_ptr_null(sheet_finding("tensor-cores-unused"));
}
END_TEST

START_TEST(pageable_copies_in_line_are_priced_by_bandwidth)
{
    draw_loop(
        &(struct loop){
            .steps = 10, .copy = 4000, .copy_text = "HtoD pageable 12000000", .kernel = 8000},
        NULL, 7);
    const struct lac_finding *finding = sheet_finding("pageable-copy");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "pin_memory=True"));
    ck_assert_ptr_null(strstr(finding->change, ".pin_memory()"));
    ck_assert(fabs(finding->cost_pct - 33.0) < 1.0);
    /* 12 MB at 12 GB/s: 1 ms instead of 4 */
    ck_assert(fabs((double)finding->step_mid_ns - 9.03e6) < 0.2e6);
    ck_assert_ptr_null(sheet_finding("blocking-copy"));
    sheet_diagnose(framework_is("HF Trainer"), 7);
    ck_assert_ptr_nonnull(
        strstr(sheet_finding("pageable-copy")->change, "dataloader_pin_memory=True"));
}
END_TEST

START_TEST(small_copies_are_no_finding)
{
    draw_loop(
        &(struct loop){
            .steps = 10, .copy = 4000, .copy_text = "HtoD pageable 65536", .kernel = 8000},
        NULL, 7);
    ck_assert_ptr_null(sheet_finding("pageable-copy"));
}
END_TEST

START_TEST(pinned_copies_in_line_want_a_stream_of_their_own)
{
    draw_loop(
        &(struct loop){
            .steps = 10, .copy = 1500, .copy_text = "HtoD pinned 15000000", .kernel = 8000},
        NULL, 7);
    const struct lac_finding *finding = sheet_finding("blocking-copy");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "torch.cuda.Stream()"));
    ck_assert_ptr_nonnull(strstr(finding->change, "non_blocking=True"));
    ck_assert_ptr_null(sheet_finding("pageable-copy"));
}
END_TEST

START_TEST(inference_gets_no_advice_for_training)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        sheet_add("main op %d 100 aten::linear\n", i * 1000 + 10);
        sheet_add("main call %d 1 #%d cudaLaunchKernel\n", i * 1000 + 20, i + 1);
        sheet_add("main call %d 890 cudaStreamSynchronize\n", i * 1000 + 30);
        sheet_add("gpu0.7 kernel %d 900 #%d volta_sgemm_64x64_nn\n", i * 1000 + 25, i + 1);
    }
    sheet_diagnose(NULL, 7);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    const struct lac_finding *finding = sheet_finding("tensor-cores-unused");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "inference_mode"));
    ck_assert_ptr_null(strstr(finding->change, "GradScaler"));
    ck_assert_ptr_nonnull(strstr(finding->title, "of every 1 ms batch"));
    ck_assert_str_eq(lac_rate_unit(analysis), "batches");
    ck_assert_ptr_null(strstr(finding->title, "step"));
    ck_assert_ptr_null(strstr(finding->expect, "step"));
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "inference"));
    ck_assert_int_eq(analysis->verdict.letter, 'i');
}
END_TEST

START_TEST(one_step_is_too_few)
{
    draw_loop(&(struct loop){.steps = 1, .wait = 5000, .kernel = 5000}, NULL, 7);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_FEW_STEPS);
    ck_assert_uint_eq(analysis->finding_count, 1); /* what is seen, and nothing to do about it */
    ck_assert_str_eq(analysis->findings[0].change, "");
    ck_assert(isnan(analysis->findings[0].gain_mid_pct));
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "too few for a verdict"));
}
END_TEST

START_TEST(two_steps_that_are_alike_have_a_mean)
{
    draw_loop(&(struct loop){.steps = 2, .wait = 5000, .kernel = 5000}, NULL, 7);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_TRAINING);
    ck_assert(analysis->throughput_per_s > 0.0);
    ck_assert_double_lt(analysis->step_uncertain_pct, 1.0);
    /* waits for data come in bursts: two steps do not tell what they are in the mean */
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        ck_assert_str_eq(analysis->findings[i].change, "");
    }
}
END_TEST

START_TEST(first_use_of_the_gpu_is_no_step)
{
    sheet_draw("main range     0 900000    ProfilerStep#0\n"
               "main call      0 5     #1 cudaLaunchKernel\n"
               "gpu0.7 kernel 10 10    #1 a_backward\n"
               "main call     30 680000 #2 cudaLaunchKernel\n"
               "gpu0.7 kernel 680040 10 #2 b\n");
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_COLD_START);
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.text, "first use"));
}
END_TEST

START_TEST(utilisation_is_no_verdict)
{
    /* busy all the time with one long copy: not computing */
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
        sheet_add("main op %d 5 Optimizer.step#SGD.step\n", i * 1000 + 900);
        sheet_add("main call %d 1 #%d cudaMemcpyAsync\n", i * 1000, 2 * i + 1);
        sheet_add("gpu0.7 copy %d 990 #%d HtoD pinned 10000000\n", i * 1000 + 2, 2 * i + 1);
        sheet_add("main call %d 1 #%d cudaLaunchKernel\n", i * 1000 + 2, 2 * i + 2);
        sheet_add("gpu0.8 kernel %d 100 #%d dgrad\n", i * 1000 + 100, 2 * i + 2);
    }
    sheet_diagnose(NULL, 0);
    ck_assert(analysis->devices[0].busy_pct > 95.0);
    ck_assert(analysis->devices[0].not_computing_pct > 85.0);
    ck_assert_str_eq(analysis->verdict.cause, "copy_wait");
    ck_assert_ptr_null(sheet_finding("gpu-bound"));
}
END_TEST

/* -- what-if ----------------------------------------------------------------------------------- */

START_TEST(what_if_keys_are_parsed_or_named)
{
    struct lac_what_if_changes changes;
    struct lac_error error = {0};
    ck_assert_int_eq(lac_what_if_parse("workers=4,layout=nhwc,pinned=1,async=1,sync=0,allocator=0,"
                                       "module_load=0,launch=0,comm=0.5,kernels=2",
                                       &changes, &error),
                     LAC_OK);
    ck_assert_int_eq(changes.workers, 4);
    ck_assert_int_eq(changes.layout_nhwc, 1);
    ck_assert_int_eq(changes.no_launch, 1);
    ck_assert(fabs(changes.comm - 0.5) < 1e-12);
    static const char *const wrong[] = {
        "workers=", "workers=-1", "workers=x",          "layout=nchw",
        "comm=-1",  "comm=1e9",   "kernels=nan",        "speed=2",
        "workers",  "pinned=2",   "workers=99999999999"};
    for (size_t i = 0; i < LAC_COUNT_OF(wrong); i++) {
        error.message[0] = '\0';
        ck_assert_msg(lac_what_if_parse(wrong[i], &changes, &error) == LAC_ERR_MISUSE, "%s",
                      wrong[i]);
        ck_assert_str_ne(error.message, "");
    }
    ck_assert_int_eq(lac_what_if_parse("", &changes, &error), LAC_OK);
    ck_assert_int_eq(changes.workers, LAC_WHAT_IF_UNSET);
}
END_TEST

static int64_t mean_if(const char *text)
{
    struct lac_diagnose_options options = {.has_what_if = true};
    struct lac_analysis *changed = NULL;
    ck_assert_int_eq(lac_what_if_parse(text, &options.what_if, NULL), LAC_OK);
    ck_assert_int_eq(lac_diagnose(model, &options, &changed, NULL), LAC_OK);
    int64_t mean_ns = changed->what_if_step.mean_ns;
    ck_assert_int_le(changed->what_if_step.low_ns, mean_ns);
    ck_assert_int_ge(changed->what_if_step.high_ns, mean_ns);
    lac_analysis_destroy(changed);
    return mean_ns;
}

START_TEST(what_if_nothing_changes_is_what_was_measured)
{
    draw_loop(
        &(struct loop){.steps = 12, .wait = 5000, .kernel = 9960, .workers = 2, .fetch = 29900},
        NULL, 7);
    ck_assert_int_eq(mean_if(""), analysis->step_mean_ns);
    ck_assert_int_lt(mean_if("workers=3"), analysis->step_mean_ns);
    ck_assert_int_le(mean_if("workers=8"), mean_if("workers=3"));
    draw_busy(10, 4000.0, 0.0, 6000.0, "dgrad_s884cudnn", 7);
    ck_assert(llabs(mean_if("comm=0.5") - 7000000) < 200000);
    ck_assert(llabs(mean_if("kernels=0.5") - 8000000) < 200000);
    ck_assert_int_eq(mean_if("comm=1"), analysis->step_mean_ns);
}
END_TEST

/* -- what is printed --------------------------------------------------------------------------- */

static char *report(bool is_ascii, bool has_color)
{
    char *text = NULL;
    struct lac_report_options options = {.is_ascii = is_ascii, .has_color = has_color};
    ck_assert_int_eq(
        lac_report_text(&(struct lac_analyzed_trace){model, analysis}, &options, &text), LAC_OK);
    return text;
}

static void check_fits(const char *text)
{
    int lines = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        int columns = 0;
        for (size_t i = 0; i < length; i++) {
            columns += ((unsigned char)text[i] & 0xC0U) != 0x80U;
        }
        ck_assert_int_le(columns, 80);
        lines++;
        text += length + 1;
    }
    ck_assert_int_le(lines, 32);
    ck_assert_int_ge(lines, 3);
}

START_TEST(the_report_fits_a_terminal)
{
    draw_loop(&(struct loop){.steps = 12,
                             .wait = 5000,
                             .copy = 2000,
                             .copy_text = "HtoD pageable 8000000",
                             .kernel = 9960,
                             .layout = 900,
                             .workers = 2,
                             .fetch = 29900},
              NULL, 7);
    char *text = report(false, false);
    check_fits(text);
    ck_assert_ptr_nonnull(strstr(text, "num_workers="));
    ck_assert_ptr_null(strchr(text, '\033'));
    free(text);
    text = report(true, false);
    for (const char *at = text; *at != '\0'; at++) {
        ck_assert_int_ge(*at, 0);
    }
    check_fits(text);
    free(text);
    text = report(true, true);
    ck_assert_ptr_nonnull(strchr(text, '\033'));
    free(text);
}
END_TEST

START_TEST(names_of_a_trace_cannot_steer_the_terminal)
{
    draw_loop(&(struct loop){.steps = 5, .wait = 5000, .kernel = 900}, NULL, 7);
    const char evil[] = "\033]0;owned\007\xC2\x9B"
                        "31m\xE2\x80\xAE"
                        "name";
    ck_assert_int_eq(lac_strings_intern(&model->strings, evil, sizeof(evil) - 1, &model->info.name),
                     LAC_OK);
    char *text = report(false, false);
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_null(strchr(text, '\007'));
    ck_assert_ptr_null(strstr(text, "\xC2\x9B"));
    ck_assert_ptr_null(strstr(text, "\xE2\x80\xAE"));
    free(text);
}
END_TEST

START_TEST(json_has_null_for_what_is_not_known)
{
    sheet_draw("main op 0 10 aten::add\n");
    char *text = NULL;
    ck_assert_int_eq(
        lac_analysis_json(&(struct lac_analyzed_trace){model, analysis}, false, &text, NULL),
        LAC_OK);
    static const char *const parts[] = {
        "\"schema\":\"lacuna.analysis/1\"",
        "\"needs_ns\":{\"data\":null,\"host\":null,\"copies\":null,\"gpu\":null,\"comm\":null}",
        "\"devices\":[]",
        "\"kernels\":{\"count\":0,\"total_ns\":null,\"top\":[],\"unknown_pct\":null}",
        "\"layout\":{\"kernel_count\":0,\"total_ns\":null,\"pct_of_kernel_time\":null,\"exposed_"
        "ns\":null",
        "\"eligible_ns\":null",
        "\"copies\":[]",
        "\"wait_ns\":null",
        "\"num_workers\":null",
        "\"mean_ns\":null",
        "\"findings\":[]",
        "\"t0_ns\":\"0\"",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        ck_assert_msg(strstr(text, parts[i]) != NULL, "%s not in %s", parts[i], text);
    }
    ck_assert_ptr_null(strstr(text, "what_if"));
    free(text);
}
END_TEST

START_TEST(same_model_same_bytes)
{
    draw_loop(
        &(struct loop){.steps = 12, .wait = 5000, .kernel = 9960, .workers = 2, .fetch = 29900},
        NULL, 7);
    char *once = NULL;
    char *twice = NULL;
    ck_assert_int_eq(
        lac_analysis_json(&(struct lac_analyzed_trace){model, analysis}, true, &once, NULL),
        LAC_OK);
    struct lac_analysis *again = trace_diagnose(model);
    ck_assert_int_eq(
        lac_analysis_json(&(struct lac_analyzed_trace){model, again}, true, &twice, NULL), LAC_OK);
    ck_assert_str_eq(once, twice);
    free(once);
    free(twice);
    lac_analysis_destroy(again);
}
END_TEST

START_TEST(several_ranks_make_a_run)
{
    draw_busy(5, 4000.0, 0.0, 6000.0, "dgrad_s884cudnn", 7);
    const struct lac_rank_trace ranks[2] = {{model, analysis}, {model, analysis}};
    const struct lac_run_member members[2] = {{"first", "{}"}, {NULL, "{\n\"a\":1\n}"}};
    const struct lac_run_json_options json = {.is_pretty = false};
    const struct lac_run_json_options brief = {.is_brief = true};
    struct lac_run *run = NULL;
    char *text = NULL;
    ck_assert_int_eq(lac_ranks_compare(ranks, 2, &run), LAC_OK);
    ck_assert_int_eq(lac_run_json(run, members, &json, &text, NULL), LAC_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"schema\":\"lacuna.run/1\""));
    ck_assert_ptr_nonnull(strstr(text, "\"rank\":1"));
    ck_assert_ptr_nonnull(strstr(text, "\"trace\":\"first\""));
    ck_assert_ptr_nonnull(strstr(text, "\"analysis\":{\n\"a\":1\n}"));
    free(text);
    ck_assert_int_eq(lac_run_json(run, members, &brief, &text, NULL), LAC_OK);
    ck_assert_ptr_null(strstr(text, "\"analysis\""));
    free(text);
    struct lac_report_options options = {.is_ascii = true};
    ck_assert_int_eq(lac_report_run_text(run, &options, &text), LAC_OK);
    check_fits(text);
    free(text);
    lac_run_destroy(run);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, starvation_says_how_many_workers);
    tcase_add_test(tcase, more_workers_than_cores_is_not_proposed);
    tcase_add_test(tcase, a_wait_that_the_gpu_does_not_notice_is_free);
    tcase_add_test(tcase, loading_in_the_training_process_is_named);
    tcase_add_test(tcase, conversions_are_not_worth_it_while_the_gpu_idles);
    tcase_add_test(tcase, conversions_that_the_step_waits_for_are_priced_by_the_step);
    tcase_add_test(tcase, busy_with_communication_is_not_gpu_bound);
    tcase_add_test(tcase, tensor_cores_are_proposed_by_generation);
    tcase_add_test(tcase, pageable_copies_in_line_are_priced_by_bandwidth);
    tcase_add_test(tcase, small_copies_are_no_finding);
    tcase_add_test(tcase, pinned_copies_in_line_want_a_stream_of_their_own);
    tcase_add_test(tcase, inference_gets_no_advice_for_training);
    tcase_add_test(tcase, one_step_is_too_few);
    tcase_add_test(tcase, two_steps_that_are_alike_have_a_mean);
    tcase_add_test(tcase, first_use_of_the_gpu_is_no_step);
    tcase_add_test(tcase, utilisation_is_no_verdict);
    tcase_add_test(tcase, what_if_keys_are_parsed_or_named);
    tcase_add_test(tcase, what_if_nothing_changes_is_what_was_measured);
    tcase_add_test(tcase, the_report_fits_a_terminal);
    tcase_add_test(tcase, names_of_a_trace_cannot_steer_the_terminal);
    tcase_add_test(tcase, json_has_null_for_what_is_not_known);
    tcase_add_test(tcase, same_model_same_bytes);
    tcase_add_test(tcase, several_ranks_make_a_run);
}

int main(void)
{
    Suite *suite = suite_create("diagnose_findings");
    TCase *tcase = tcase_create("findings");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
