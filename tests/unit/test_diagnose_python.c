/* The Python function that fills a wait: named, priced, and not made up. */

#include "analysis/diagnose/diagnose.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, STEP_US = 100000, DRAWING_BYTES = 32768 };

struct drawing {
    char text[DRAWING_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void draw(struct drawing *drawing, const char *fmt,
                                                       ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(drawing->text + drawing->used, DRAWING_BYTES - drawing->used, fmt, args);
    va_end(args);
    ck_assert_int_ge(length, 0);
    drawing->used += (size_t)length;
    ck_assert_uint_lt(drawing->used, (size_t)DRAWING_BYTES);
}

/** A step: 50 ms in which a batch is made, then 40 ms of the GPU for which the host waits. */
static void draw_step(struct drawing *drawing, int step)
{
    int at = step * STEP_US;
    draw(drawing, "main range %d %d ProfilerStep#%d\n", at, STEP_US, step);
    draw(drawing, "main op %d 900 autograd::engine::evaluate_function: MulBackward0\n", at + 51000);
    draw(drawing, "main call %d 10 #%d cudaLaunchKernel\n", at + 52000, step + 1);
    draw(drawing, "gpu0.7 kernel %d 40000 #%d volta_sgemm_128x64_nn\n", at + 52020, step + 1);
    draw(drawing, "main call %d 40000 cudaDeviceSynchronize\n", at + 53000);
}

/** What stands in the 50 ms. */
typedef void fill(struct drawing *drawing, int at);

static struct lac_analysis *diagnose(fill *fill_wait, bool has_loader)
{
    struct drawing drawing = {.used = 0};
    draw(&drawing, "main python 0 %d train.py(12): main\n", STEPS * STEP_US + 1000);
    for (int step = 0; step < STEPS; step++) {
        draw_step(&drawing, step);
        if (has_loader) {
            draw(&drawing,
                 "main range %d 49000 enumerate(DataLoader)#_SingleProcessDataLoaderIter."
                 "__next__\n",
                 step * STEP_US + 500);
        }
        fill_wait(&drawing, step * STEP_US + 1000);
    }
    struct lac_model *model = trace_draw(drawing.text);
    struct lac_analysis *analysis = trace_diagnose(model);
    lac_model_destroy(model);
    return analysis;
}

/** zoom() of SciPy for 40 ms, called by a resize of the job's own, and a built-in inside it. */
static void zoom(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 44000 data/photos.py(301): resize\n", at);
    draw(drawing, "main python %d 40000 scipy/ndimage/_interpolation.py(739): zoom\n", at + 100);
    draw(drawing, "main python %d 39000 <built-in function zoom_shift>\n", at + 200);
}

static void check_zoom(bool has_loader)
{
    struct lac_analysis *analysis = diagnose(zoom, has_loader);
    const struct lac_finding *finding = trace_finding(analysis, "python-frame");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "while zoom (scipy) runs on the host"));
    ck_assert_ptr_nonnull(strstr(finding->why, "zoom (ndimage/_interpolation.py:739)"));
    ck_assert_str_eq(finding->where, "data/photos.py:301 (resize)");
    ck_assert_int_ge(finding->cost_ns_per_step, 39000000);
    ck_assert_int_le(finding->cost_ns_per_step, 40100000);
    /* 40 of 100 ms; a twentieth of it stays, in the worst case three tenths */
    ck_assert(fabs(finding->gain_mid_pct - 38.0) < 1.5);
    ck_assert(fabs(finding->gain_low_pct - 28.0) < 1.5);
    ck_assert(finding->gain_high_pct <= 40.2);
    lac_analysis_destroy(analysis);
}

START_TEST(the_function_that_fills_the_wait_is_named_with_its_line)
{
    check_zoom(true);
    check_zoom(false); /* the head of a step, without a loader */
}
END_TEST

/** Transformers' pipeline of one kind: its only iterator, and the wait. */
static void pipeline(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 45000 transformers/pipelines/pt_utils.py(117): __next__\n", at);
    zoom(drawing, at + 100);
}

/** The same over chunks of its inputs: an iterator of chunks, inside. */
static void pipeline_of_chunks(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 46000 transformers/pipelines/pt_utils.py(249): __next__\n", at);
    draw(drawing, "main python %d 45500 transformers/pipelines/pt_utils.py(180): __next__\n",
         at + 50);
    zoom(drawing, at + 100);
}

START_TEST(a_pipeline_of_chunks_takes_one_worker)
{
    struct lac_analysis *analysis = diagnose(pipeline, true);
    const struct lac_finding *finding = trace_finding(analysis, "input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->brief, "num_workers=2");
    lac_analysis_destroy(analysis);
    analysis = diagnose(pipeline_of_chunks, true);
    finding = trace_finding(analysis, "input-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->brief, "num_workers=1");
    ck_assert(finding->gain_mid_pct > 10.0);
    for (uint32_t i = 0; i < analysis->plan_count; i++) {
        ck_assert_ptr_null(strstr(analysis->plan[i].brief, "num_workers=2"));
    }
    lac_analysis_destroy(analysis);
}
END_TEST

/** Twenty functions share the wait: none fills a third of it. */
static void many(struct drawing *drawing, int at)
{
    for (int i = 0; i < 20; i++) {
        draw(drawing, "main python %d 2000 data/photos.py(%d): part_%d\n", at + i * 2300, 10 + i,
             i);
    }
}

/** A function that is called so often that a call takes 10 us. */
static void often(struct drawing *drawing, int at)
{
    for (int i = 0; i < 25; i++) {
        draw(drawing, "main python %d 10 data/photos.py(7): peek\n", at + i * 20);
    }
}

/** The thread waits for another one, below PyTorch's own frames. */
static void waiting(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 45000 torch/utils/data/dataloader.py(1240): _try_get_data\n", at);
    draw(drawing, "main python %d 44000 threading.py(589): wait\n", at + 100);
    draw(drawing, "main python %d 43000 <built-in method acquire of _thread.lock object at 0x7f>\n",
         at + 200);
}

/** Work of the GPU covers what the host does. */
static void hidden(struct drawing *drawing, int at)
{
    zoom(drawing, at);
    draw(drawing, "main call %d 5 #%d cudaLaunchKernel\n", at - 900, 100 + at / STEP_US);
    draw(drawing, "gpu0.7 kernel %d 49500 #%d volta_sgemm_64x64_nn\n", at - 880,
         100 + at / STEP_US);
}

START_TEST(what_fills_no_wait_is_not_named)
{
    static fill *const others[] = {many, often, waiting, hidden};
    for (size_t i = 0; i < LAC_COUNT_OF(others); i++) {
        struct lac_analysis *analysis = diagnose(others[i], i != 3);
        const struct lac_finding *finding = trace_finding(analysis, "python-frame");
        ck_assert_msg(finding == NULL, "%d: %s", (int)i, finding != NULL ? finding->title : "");
        lac_analysis_destroy(analysis);
    }
}
END_TEST

/** The job's own function, and an operator on the host inside it. */
static void own(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 46000 tools/augment.py(8): augment\n", at);
    draw(drawing, "main op %d 30000 aten::grid_sampler_2d\n", at + 2000);
}

START_TEST(operators_on_the_host_are_part_of_their_function)
{
    struct lac_analysis *analysis = diagnose(own, false);
    const struct lac_finding *finding = trace_finding(analysis, "python-frame");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "augment (tools/augment.py:8)"));
    ck_assert_int_ge(finding->cost_ns_per_step, 45000000);
    lac_analysis_destroy(analysis);
}
END_TEST

/** A model in a wrapper, its first layer, and the loss after it. */
static void modules(struct drawing *drawing, int at)
{
    draw(drawing, "main python %d 30000 nn.Module: DistributedDataParallel_0\n", at);
    draw(drawing, "main python %d 29000 nn.Module: ResNet_0\n", at + 100);
    draw(drawing, "main python %d 9000 nn.Module: Conv2d_0\n", at + 200);
    draw(drawing, "main python %d 2000 nn.Module: CrossEntropyLoss_0\n", at + 30500);
}

START_TEST(the_model_is_the_outermost_module_that_only_wraps_none)
{
    struct lac_analysis *analysis = diagnose(modules, false);
    ck_assert_str_eq(analysis->trained_model, "ResNet");
    lac_analysis_destroy(analysis);
    analysis = diagnose(own, false);
    ck_assert_str_eq(analysis->trained_model, "");
    lac_analysis_destroy(analysis);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_python");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, the_function_that_fills_the_wait_is_named_with_its_line);
    tcase_add_test(tcase, a_pipeline_of_chunks_takes_one_worker);
    tcase_add_test(tcase, what_fills_no_wait_is_not_named);
    tcase_add_test(tcase, operators_on_the_host_are_part_of_their_function);
    tcase_add_test(tcase, the_model_is_the_outermost_module_that_only_wraps_none);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
