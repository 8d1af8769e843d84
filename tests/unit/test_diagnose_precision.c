/* The type that kernels compute in: wider ones amid half precision, tensor cores by their names, and
 * which type is proposed for which chip. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <string.h>

#define BF16_GEMM "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn"
#define FP32_GEMM "ampere_sgemm_128x64_nn"
#define FP64_GEMM "ampere_d884gemm_64x64_nn"
#define FP64_MUL                                                                                   \
    "void at::native::vectorized_elementwise_kernel<4, "                                           \
    "at::native::BinaryFunctor<double, double, double, at::native::MulFunctor<double> > >(int)"
#define FP32_ADAM                                                                                  \
    "void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>, "                           \
    "FusedAdamMathFunctor<float, 4>, float const*, double, double, double>(int)"

struct work {
    const char *op, *kernel;
    int us;
};

/** Steps of 1 ms that the device fills: a bf16 GEMM, or what stands in its place, and other work. */
static void draw(const char *gemm, const struct work *work, size_t count, int cc_major)
{
    sheet_blank();
    for (int i = 0; i < 12; i++) {
        int at = i * 1000;
        int begin = at + 10;
        sheet_add("main range %d 1000 ProfilerStep#%d\n", at, i);
        sheet_add("main op %d 20 aten::mm\n", at + 1);
        sheet_add("main call %d 2 #%u cudaLaunchKernel\n", at + 5, ++sheet_corr);
        sheet_add("gpu0.7 kernel %d 600 #%u %s\n", begin, sheet_corr, gemm);
        begin += 600;
        for (size_t w = 0; w < count; w++) {
            int host = at + 30 + (int)w * 30;
            sheet_add("main op %d 20 %s\n", host, work[w].op);
            sheet_add("main call %d 2 #%u cudaLaunchKernel\n", host + 5, ++sheet_corr);
            sheet_add("gpu0.7 kernel %d %d #%u %s\n", begin, work[w].us, sheet_corr,
                      work[w].kernel);
            begin += work[w].us;
        }
        sheet_add("main op %d 5 Optimizer.step#SGD.step\n", at + 500);
        sheet_add("main call %d %d cudaStreamSynchronize\n", at + 510, begin - at - 510);
    }
    sheet_diagnose(NULL, cc_major);
}

START_TEST(float64_amid_bfloat16_is_named_with_its_operator)
{
    static const struct work work[] = {{"aten::mul", FP64_MUL, 250}};
    draw(BF16_GEMM, work, 1, 8);
    const struct lac_finding *finding = sheet_finding("wide-precision");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "Work in float64 in a bf16 loop"));
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::mul"));
    ck_assert_double_lt(finding->gain_mid_pct, finding->gain_high_pct);
    ck_assert_double_gt(finding->gain_mid_pct, 10.0);
}
END_TEST

START_TEST(float32_products_amid_bfloat16_are_named)
{
    static const struct work work[] = {{"aten::linear", FP32_GEMM, 300}};
    draw(BF16_GEMM, work, 1, 8);
    const struct lac_finding *finding = sheet_finding("wide-precision");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "Matrix work in float32 in a bf16 loop"));
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::linear"));
    ck_assert_ptr_nonnull(strstr(finding->change, "dtype=torch.bfloat16"));
    ck_assert_ptr_null(sheet_finding("tensor-cores-unused")); /* the same kernels */
}
END_TEST

START_TEST(a_type_that_the_loop_is_in_is_not_wide)
{
    static const struct work doubles[] = {{"aten::mul", FP64_MUL, 250}};
    static const struct work scalars[] = {{"Optimizer.step#Adam.step", FP32_ADAM, 250}};
    static const struct work singles[] = {{"aten::linear", FP32_GEMM, 250}};
    static const struct work little[] = {{"aten::mul", FP64_MUL, 12}};
    draw(FP64_GEMM, doubles, 1, 8); /* computed in double precision, as it is meant */
    ck_assert_ptr_null(sheet_finding("wide-precision"));
    draw(BF16_GEMM, scalars, 1, 8); /* double is the type of its scalars */
    ck_assert_ptr_null(sheet_finding("wide-precision"));
    draw(FP32_GEMM, singles, 1, 8); /* all of it in float32 */
    ck_assert_ptr_null(sheet_finding("wide-precision"));
    ck_assert_ptr_nonnull(sheet_finding("tensor-cores-unused"));
    draw(BF16_GEMM, little, 1, 8);
    ck_assert_ptr_null(sheet_finding("wide-precision"));
    draw("mystery_kernel_4", doubles, 1, 8); /* the type of the loop is not known */
    ck_assert_ptr_null(sheet_finding("wide-precision"));
}
END_TEST

START_TEST(tf32_is_proposed_where_it_is_fast)
{
    draw(FP32_GEMM, NULL, 0, 8);
    struct lac_model *drawn = trace_draw_with(sheet_text(), NULL, 8);
    static const struct {
        int major, minor;
        const char *brief;
    } chips[] = {{8, 0, "TF32 GEMMs"},         /* A100 */
                 {8, 6, "autocast bfloat16"},  /* RTX 3090, A10: TF32 is about float32's rate */
                 {8, 9, "autocast bfloat16"},  /* RTX 4090 */
                 {9, 0, "TF32 GEMMs"},         /* H100 */
                 {10, 0, "TF32 GEMMs"},        /* B200 */
                 {12, 0, "autocast bfloat16"}, /* RTX 5090 */
                 {7, 5, "autocast float16"},   /* T4: neither */
                 {7, 0, "autocast float16"}};
    for (size_t i = 0; i < LAC_COUNT_OF(chips); i++) {
        drawn->devices[0].cc_major = chips[i].major;
        drawn->devices[0].cc_minor = chips[i].minor;
        struct lac_analysis *found = trace_diagnose(drawn);
        const struct lac_finding *finding = trace_finding(found, "tensor-cores-unused");
        ck_assert_ptr_nonnull(finding);
        ck_assert_str_eq(finding->brief, chips[i].brief);
        lac_analysis_destroy(found);
    }
    drawn->devices[0].cc_major = 6; /* no tensor cores */
    struct lac_analysis *found = trace_diagnose(drawn);
    ck_assert_ptr_null(trace_finding(found, "tensor-cores-unused"));
    lac_analysis_destroy(found);
    lac_model_destroy(drawn);
}
END_TEST

START_TEST(kernels_of_the_first_tensor_cores_use_them)
{
    static const char *const kernels[] = {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
                                          "volta_h884gemm_64x128_ldg8_nn",
                                          "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_nhwc_v1",
                                          "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn"};
    for (size_t i = 0; i < LAC_COUNT_OF(kernels); i++) {
        draw(kernels[i], NULL, 0, 7);
        ck_assert_double_eq(analysis->tensor_used_pct, 100.0);
        ck_assert_ptr_null(sheet_finding("tensor-cores-unused"));
    }
    draw("volta_sgemm_128x64_nn", NULL, 0, 7);
    ck_assert_double_eq(analysis->tensor_used_pct, 0.0);
    ck_assert_ptr_nonnull(sheet_finding("tensor-cores-unused"));
}
END_TEST

/** 12 steps of 8 products in single precision and 8 conversions of layout, 1 ms each, beside which
 *  another stream works for `beside_us` from 100 us after their start on. */
static void draw_beside(const char *beside, int beside_us)
{
    sheet_blank();
    for (int step = 0; step < 12; step++) {
        const double at = step * 16500.0;
        sheet_add("main range %.0f 16500 ProfilerStep#%d\n", at, step);
        for (int i = 0; i < 16; i++) {
            sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 10 + i * 20, ++sheet_corr);
            sheet_add("gpu0.7 kernel %.0f 1000 #%u %s\n", at + 400 + i * 1000, sheet_corr,
                      i % 2 == 0 ? "ampere_sgemm_128x64_tn" : "nchwToNhwcKernel");
            if (beside_us > 0) {
                sheet_add("main call %.0f 5 #%u cudaLaunchKernel\n", at + 16 + i * 20,
                          ++sheet_corr);
                sheet_add("gpu0.20 kernel %.0f %d #%u %s\n", at + 500 + i * 1000, beside_us,
                          sheet_corr, beside);
            }
        }
        sheet_add("main call %.0f 16000 cudaDeviceSynchronize\n", at + 410);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(what_runs_beside_a_kernel_does_not_make_it_free)
{
    static const struct {
        const char *beside;
        int us;
        double of; /**< the part of a kernel that stays its own */
    } cases[] = {
        {"", 0, 1.0},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 1.0},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 400, 1.0},           /* computing goes first */
        {"void at::native::vectorized_elementwise_kernel<4>", 20, 0.99}, /* shared while both run */
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        draw_beside(cases[i].beside, cases[i].us);
        const struct lac_finding *layout = sheet_finding("layout-conversion");
        const struct lac_finding *unused = sheet_finding("tensor-cores-unused");
        ck_assert_ptr_nonnull(layout);
        ck_assert_ptr_nonnull(unused);
        ck_assert_int_eq(layout->cost_ns_per_step, (int64_t)(cases[i].of * 8000000));
        ck_assert_int_eq(unused->cost_ns_per_step, (int64_t)(cases[i].of * 8000000));
        ck_assert_double_gt(layout->gain_mid_pct, 30.0);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("precision");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, float64_amid_bfloat16_is_named_with_its_operator);
    tcase_add_test(tcase, float32_products_amid_bfloat16_are_named);
    tcase_add_test(tcase, a_type_that_the_loop_is_in_is_not_wide);
    tcase_add_test(tcase, tf32_is_proposed_where_it_is_fast);
    tcase_add_test(tcase, kernels_of_the_first_tensor_cores_use_them);
    tcase_add_test(tcase, what_runs_beside_a_kernel_does_not_make_it_free);
    Suite *suite = suite_create("diagnose_precision");
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
