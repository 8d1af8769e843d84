/* Steps played again with a change of chosen slices: calls that do not wait, host work that is
 * gone, operations that are shorter, not there or launched earlier. */

#include "analysis/diagnose/diagnose_private.h"
#include "analysis/diagnose/replay/edits.h"
#include "analysis/diagnose/replay/what_if_replay.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20 };
static const enum lac_finding_kind KIND = LAC_FINDING_SYNC_STALL; /* whose edits they are */

static struct lac_model *model;
static struct lac_facts facts;
static struct lac_edits *edits;
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

/** An operation on a stream and the call that launched it, in us. */
static void launch(double at, const char *stream, double start, double dur, const char *name)
{
    corr++;
    add("main call %.3f 4 #%u cudaLaunchKernel\n", at, corr);
    add("%s kernel %.3f %.3f #%u %s\n", stream, start, dur, corr, name);
}

static void open_step(int i, double t, double step)
{
    add("main range %.3f %.3f ProfilerStep#%d\n", t, step, i);
    add("main op %.3f 10 Optimizer.step#SGD.step\n", t + 1.0);
}

static void draw(void)
{
    model = trace_draw_with(sheet, NULL, 8);
    facts = (struct lac_facts){.model = model, .analysis = calloc(1, sizeof(*facts.analysis))};
    ck_assert_int_eq(lac_facts_find(&facts), LAC_OK);
    ck_assert_ptr_nonnull(facts.time);
    edits = lac_edits_begin(&facts, KIND);
}

static void wipe(void)
{
    lac_facts_done(&facts);
    lac_analysis_destroy(facts.analysis);
    lac_model_destroy(model);
    length = 0;
    corr = 0;
    sheet[0] = '\0';
}

/** Do `what` to all slices with that name. */
static void each(const char *name, void (*what)(uint64_t slice))
{
    int found = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
            what(i);
            found++;
        }
    }
    ck_assert_int_gt(found, 0);
}

/** Mean step with the edits, in us, when `share` of them comes true. */
static double step_us(double share)
{
    struct lac_change change;
    lac_change_clear(&change);
    lac_change_edit(&change, edits, share);
    return lac_what_if_replay(&facts, &change) / 1000.0;
}

static void expect(double share, double wanted_us)
{
    double have_us = step_us(share);
    ck_assert_msg(fabs(have_us - wanted_us) <= 0.02 * wanted_us, "%.1f us, wanted %.1f", have_us,
                  wanted_us);
}

static void no_wait(uint64_t slice)
{
    lac_edits_no_wait(edits, slice);
}

static void not_made(uint64_t slice)
{
    lac_edits_host(edits, slice, 0.0);
}

static void half_made(uint64_t slice)
{
    lac_edits_host(edits, slice, 0.5);
}

static void not_there(uint64_t slice)
{
    lac_edits_operation(edits, slice, 0.0);
}

static void twice_as_long(uint64_t slice)
{
    lac_edits_operation(edits, slice, 2.0);
}

static void drop(uint64_t slice)
{
    lac_edits_drop(edits, slice, model->slices.link[slice]);
}

/** Ten kernels of 100 us; the host launches each in 20 us and waits for it. */
static void draw_a_wait_after_each(void)
{
    enum { KERNELS = 10 };
    double step = KERNELS * 130.0;
    for (int i = 0; i < STEPS; i++) {
        double t = i * step;
        open_step(i, t, step);
        for (int k = 0; k < KERNELS; k++) {
            double at = t + 130.0 * k;
            launch(at + 12.0, "gpu0.7", at + 22.0, 99.0, "dgrad");
            add("main call %.3f 104 cudaStreamSynchronize\n", at + 20.0);
        }
    }
    draw();
}

START_TEST(without_edits_nothing_changes)
{
    draw_a_wait_after_each();
    expect(1.0, 1300.0);
    edits = NULL;
    expect(1.0, 1300.0);
    wipe();
}
END_TEST

START_TEST(calls_that_do_not_wait_let_the_host_run_ahead)
{
    draw_a_wait_after_each();
    each("cudaStreamSynchronize", no_wait);
    expect(1.0, 1000.0);
    expect(0.5, 1150.0);
    expect(0.0, 1300.0);
    wipe();
}
END_TEST

START_TEST(what_waits_for_an_operation_that_is_gone_waits_for_what_it_waited_for)
{
    draw_a_wait_after_each();
    each("dgrad", not_there); /* launching and synchronizing remain */
    double step = step_us(1.0);
    ck_assert_msg(step > 200.0 && step < 400.0, "%.1f us", step);
    wipe();
    draw_a_wait_after_each();
    each("dgrad", twice_as_long);
    expect(1.0, 2300.0);
    wipe();
}
END_TEST

/** Two kernels a step, and between their launches a Python row of 500 us; the device needs 200. */
static void draw_a_slow_row(void)
{
    for (int i = 0; i < STEPS; i++) {
        double t = i * 800.0;
        open_step(i, t, 800.0);
        launch(t + 12.0, "gpu0.7", t + 22.0, 100.0, "dgrad");
        add("main python %.3f 500 resize.py(12): zoom\n", t + 120.0);
        launch(t + 640.0, "gpu0.7", t + 650.0, 100.0, "wgrad");
    }
    draw();
}

START_TEST(work_of_the_host_goes_with_its_row)
{
    draw_a_slow_row();
    each("resize.py(12): zoom", half_made);
    expect(1.0, 550.0);
    each("resize.py(12): zoom", not_made); /* of two marks the smaller factor */
    expect(1.0, 300.0);
    expect(0.5, 550.0);
    wipe();
}
END_TEST

START_TEST(a_row_in_a_row_goes_once)
{
    draw_a_slow_row();
    each("resize.py(12): zoom", not_made);
    for (int i = 0; i < STEPS; i++) {
        int64_t t_ns = (int64_t)i * 800000;
        uint32_t main_track = 0;
        while (model->tracks[main_track].kind != LAC_TRACK_THREAD) {
            main_track++;
        }
        lac_edits_host_time(edits, main_track, t_ns + 200000, t_ns + 300000, 0.5);
        lac_edits_host_time(edits, main_track, t_ns + 625000, t_ns + 635000, 0.0);
    }
    expect(1.0, 290.0);
    wipe();
}
END_TEST

/** A kernel of 600 us, then a gather of 300 that is launched when it is done, then one of 400 that
 *  needs it. */
static void draw_a_late_gather(void)
{
    for (int i = 0; i < STEPS; i++) {
        double t = i * 1400.0;
        open_step(i, t, 1400.0);
        launch(t + 12.0, "gpu0.7", t + 22.0, 600.0, "dgrad");
        add("main call %.3f 605 cudaStreamSynchronize\n", t + 20.0);
        launch(t + 640.0, "gpu0.9", t + 650.0, 300.0, "ncclDevKernel_AllGather");
        add("main call %.3f 2 cudaStreamWaitEvent\n", t + 646.0);
        launch(t + 650.0, "gpu0.7", t + 952.0, 400.0, "wgrad");
        add("main call %.3f 690 cudaDeviceSynchronize\n", t + 660.0);
    }
    draw();
}

static uint64_t slice_before(uint64_t slice, const char *name)
{
    uint64_t best = LAC_NONE;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        bool is_it = strcmp(lac_model_str(model, model->slices.name[i]), name) == 0;
        bool is_before = model->slices.start_ns[i] < model->slices.start_ns[slice];
        best =
            is_it && is_before &&
                    (best == LAC_NONE || model->slices.start_ns[i] > model->slices.start_ns[best])
                ? i
                : best;
    }
    return best;
}

static void prefetched(uint64_t slice)
{
    lac_edits_launched_with(edits, slice, slice_before(slice, "dgrad"));
}

START_TEST(a_gather_one_layer_earlier_runs_beside_the_layer)
{
    draw_a_late_gather();
    expect(1.0, 1400.0);
    each("ncclDevKernel_AllGather", prefetched);
    expect(1.0, 1100.0);
    wipe();
}
END_TEST

/** A host that launches a kernel of 15 us each 40 us. */
static void draw_launch_bound(void)
{
    for (int i = 0; i < STEPS; i++) {
        double t = i * 2000.0;
        open_step(i, t, 2000.0);
        for (int k = 0; k < 50; k++) {
            launch(t + 40.0 * k + 30.0, "gpu0.7", t + 40.0 * k + 36.0, 15.0,
                   k % 2 ? "dgrad" : "fill");
        }
    }
    draw();
}

START_TEST(calls_that_are_not_made_take_their_operations_with_them)
{
    draw_launch_bound();
    double calls_us = 0.0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        bool is_call = model->slices.kind[i] == LAC_SLICE_API;
        if (is_call &&
            strcmp(lac_model_str(model, model->slices.name[model->slices.link[i]]), "fill") == 0) {
            drop(i);
            calls_us += (double)model->slices.dur_ns[i] / 1000.0;
        }
    }
    expect(1.0, 2000.0 - calls_us / STEPS);
    wipe();
}
END_TEST

START_TEST(the_plan_finds_the_edits_of_a_finding)
{
    draw_a_wait_after_each();
    ck_assert_ptr_eq(lac_edits_of(&facts, KIND), edits);
    ck_assert_ptr_null(lac_edits_of(&facts, LAC_FINDING_LAUNCH_BOUND));
    each("cudaStreamSynchronize", no_wait);
    struct lac_change change;
    lac_change_clear(&change);
    lac_change_edit(&change, lac_edits_of(&facts, KIND), 1.0);
    change.factor[LAC_OP_COMPUTE] = 0.5;
    double step = lac_what_if_replay(&facts, &change) / 1000.0;
    ck_assert_msg(fabs(step - 505.0) < 15.0, "%.1f us", step); /* both at once */
    wipe();
}
END_TEST

/** Without a link between calls and kernels there is no graph: what the device waited for is. */
START_TEST(without_a_graph_the_idle_time_of_the_edit_goes)
{
    for (int i = 0; i < STEPS; i++) {
        double t = i * 800.0;
        open_step(i, t, 800.0);
        add("gpu0.7 kernel %.3f 100 dgrad\n", t + 22.0);
        add("main python %.3f 500 resize.py(12): zoom\n", t + 120.0);
        add("gpu0.7 kernel %.3f 100 wgrad\n", t + 650.0);
    }
    draw();
    each("resize.py(12): zoom", not_made);
    ck_assert_int_eq(lac_graph_trust(facts.time), LAC_TRUST_NONE);
    expect(1.0, 302.0);
    each("dgrad", not_there);
    expect(1.0, 202.0);
    wipe();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("edits");
    TCase *tests = tcase_create("edits");
    tcase_add_test(tests, without_edits_nothing_changes);
    tcase_add_test(tests, calls_that_do_not_wait_let_the_host_run_ahead);
    tcase_add_test(tests, what_waits_for_an_operation_that_is_gone_waits_for_what_it_waited_for);
    tcase_add_test(tests, work_of_the_host_goes_with_its_row);
    tcase_add_test(tests, a_row_in_a_row_goes_once);
    tcase_add_test(tests, a_gather_one_layer_earlier_runs_beside_the_layer);
    tcase_add_test(tests, calls_that_are_not_made_take_their_operations_with_them);
    tcase_add_test(tests, the_plan_finds_the_edits_of_a_finding);
    tcase_add_test(tests, without_a_graph_the_idle_time_of_the_edit_goes);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
