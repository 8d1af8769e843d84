/* Operations of operators from their shapes, peaks of GPUs by name, and what both make of a trace. */

#include "analysis/diagnose/names/op_flops.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** The call of `name` with these arguments; `numbers` are the event's own. */
static struct lac_flop_call call_with(const char *name, const char *args, int64_t *numbers,
                                      uint64_t number_count, int64_t output)
{
    uint32_t arg_num = 0;
    struct lac_model head = {.slices = {.count = 1, .arg_num = &arg_num},
                             .arg_numbers = numbers,
                             .arg_number_count = number_count};
    struct lac_flop_recipe recipe;
    struct lac_flop_call call = {0};
    int op = lac_flop_op_of(name, strlen(name));
    ck_assert_int_ge(op, 0);
    if (lac_flop_recipe_read(op, args, strlen(args), &recipe)) {
        lac_flop_call_of(&recipe, &head, 0, output, &call);
    }
    return call;
}

static int64_t flops(const char *name, const char *args)
{
    return call_with(name, args, NULL, 0, 0).flops;
}

START_TEST(products_are_two_a_term)
{
    ck_assert_int_eq(flops("aten::mm", "{\"Input Dims\":[[8,16],[16,32]]}"), 2 * 8 * 16 * 32);
    ck_assert_int_eq(flops("aten::addmm", "{\"External id\":7,\"Input Dims\":[[32],[8,16],[16,32],"
                                          "[],[]],\"Input type\":[\"float\",\"float\"]}"),
                     2 * 8 * 16 * 32);
    ck_assert_int_eq(flops("aten::bmm", "{\"Input Dims\":[[4,8,16],[4,16,32]]}"),
                     4 * 2 * 8 * 16 * 32);
    ck_assert_int_eq(flops("aten::baddbmm", "{\"Input Dims\":[[4,8,32],[4,8,16],[4,16,32]]}"),
                     4 * 2 * 8 * 16 * 32);
    ck_assert_int_eq(flops("aten::matmul", "{\"Input Dims\":[[2,3,8,16],[16,32]]}"),
                     6 * 2 * 8 * 16 * 32);
    ck_assert_int_eq(flops("aten::linear", "{\"Input Dims\":[[2,3,16],[32,16],[32]]}"),
                     6 * 2 * 16 * 32);
    ck_assert_int_eq(flops("aten::mv", "{\"Input Dims\":[[8,16],[16]]}"), 2 * 8 * 16);
    ck_assert_int_eq(flops("aten::_grouped_mm", "{\"Input Dims\":[[100,16],[4,16,32],[4]]}"),
                     2 * 100 * 16 * 32);
    /* inner lengths that do not meet are no product */
    ck_assert_int_eq(flops("aten::mm", "{\"Input Dims\":[[8,16],[17,32]]}"), 0);
}
END_TEST

START_TEST(convolutions_by_their_window)
{
    static const char first[] = "{\"Input Dims\":[[32,3,224,224],[64,3,7,7],[],[],[]],"
                                "\"Concrete Inputs\":[\"\",\"\",\"\",\"[2, 2]\",\"[3, 3]\","
                                "\"[1, 1]\",\"False\",\"[0, 0]\",\"1\"]}";
    ck_assert_int_eq(flops("aten::convolution", first), 2LL * 32 * 64 * 112 * 112 * 3 * 7 * 7);
    /* groups stand in the weight's second length, a dilated filter reaches further */
    static const char depthwise[] = "{\"Input Dims\":[[1,32,20,20],[32,1,3,3]],"
                                    "\"Concrete Inputs\":[\"\",\"\",\"\",\"[1]\",\"[0]\",\"[2]\","
                                    "\"False\",\"[0]\",\"32\"]}";
    ck_assert_int_eq(flops("aten::_convolution", depthwise), 2 * 32 * 16 * 16 * 9);
    /* transposed: each element of the input meets a filter */
    static const char transposed[] = "{\"Input Dims\":[[1,8,10,10],[8,4,2,2]],"
                                     "\"Concrete Inputs\":[\"\",\"\",\"\",\"[2, 2]\",\"[0, 0]\","
                                     "\"[1, 1]\",\"True\",\"[0, 0]\",\"1\"]}";
    ck_assert_int_eq(flops("aten::convolution", transposed), 2 * 8 * 10 * 10 * 4 * 2 * 2);
    /* without a window: as many as the output has elsewhere, or none */
    static const char bare[] = "{\"Input Dims\":[[1,8,10,10],[16,8,3,3],[]]}";
    ck_assert_int_eq(flops("aten::_convolution", bare), 0);
    ck_assert_int_eq(call_with("aten::_convolution", bare, NULL, 0, 16 * 8 * 8).flops,
                     2 * 16 * 8 * 8 * 8 * 9);
    /* a filter larger than what it goes over has no output */
    static const char none[] = "{\"Input Dims\":[[1,8,2,2],[16,8,3,3]],"
                               "\"Concrete Inputs\":[\"\",\"\",\"\",\"[1]\",\"[0]\",\"[1]\","
                               "\"False\"]}";
    ck_assert_int_eq(flops("aten::convolution", none), 0);
}
END_TEST

START_TEST(a_backward_pass_says_its_directions)
{
    static const char args[] = "{\"Input Dims\":[[10,512,7,7],[10,256,14,14],[512,256,3,3]],"
                               "\"Concrete Inputs\":[\"\",\"\",\"\",\"[0]\",\"[2, 2]\",\"[1, 1]\","
                               "\"[1, 1]\",\"False\",\"[0, 0]\",\"1\",\"[%s, True, True]\"]}";
    int op = lac_flop_op_of("aten::convolution_backward", 26);
    const char *const masks[] = {"False", "True"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        struct lac_flop_recipe recipe;
        (void)snprintf(text, sizeof(text), args, masks[i]);
        ck_assert(lac_flop_recipe_read(op, text, strlen(text), &recipe));
        ck_assert_int_eq(recipe.directions, 1 + i);
        ck_assert_int_eq(flops("aten::convolution_backward", text),
                         2LL * 10 * 512 * 7 * 7 * 256 * 9);
    }
    /* the order of the first two is another one in 2021 */
    ck_assert_int_eq(flops("aten::cudnn_convolution_backward",
                           "{\"Input Dims\":[[32,512,7,7],[32,2048,7,7],[2048,512,1,1],[]]}"),
                     2LL * 32 * 2048 * 7 * 7 * 512);
}
END_TEST

START_TEST(attention_counts_what_a_mask_leaves)
{
    static const char args[] = "{\"Input Dims\":[[16,8,512,64],[16,2,512,64],[16,2,512,64],[],[]],"
                               "\"Concrete Inputs\":[\"\",\"\",\"\",\"0.\",\"%s\",\"False\"]}";
    static const char op[] = "aten::_scaled_dot_product_flash_attention";
    char text[300];
    (void)snprintf(text, sizeof(text), args, "False");
    ck_assert_int_eq(flops(op, text), 4LL * 16 * 8 * 512 * 512 * 64);
    (void)snprintf(text, sizeof(text), args, "True");
    ck_assert_int_eq(flops(op, text), 4LL * 16 * 8 * (512 * 513 / 2) * 64);
    (void)snprintf(text, sizeof(text), args, "");
    struct lac_flop_call call = call_with(op, text, NULL, 0, 0);
    ck_assert(call.is_causal_unknown);
    ck_assert_int_eq(call.flops, 4LL * 16 * 8 * 512 * 512 * 64);
    /* backward: twice forward, and the scores once more that are of no model */
    call = call_with("flash_attn::_flash_attn_backward",
                     "{\"Input Dims\":[[2,128,4,64],[2,128,4,64],[2,128,4,64],[2,128,4,64]]}", NULL,
                     0, 0);
    ck_assert_int_eq(call.model_flops, 8LL * 2 * 4 * 128 * 128 * 64);
    ck_assert_int_eq(call.flops, 10LL * 2 * 4 * 128 * 128 * 64);
}
END_TEST

START_TEST(hostile_shapes_count_nothing_or_saturate)
{
    static const char *const broken[] = {
        "",
        "{",
        "[]",
        "{\"Input Dims\"",
        "{\"Input Dims\":",
        "{\"Input Dims\":[",
        "{\"Input Dims\":[[",
        "{\"Input Dims\":[[8,16],[16",
        "{\"Input Dims\":[[8,-16],[16,32]]}",
        "{\"Input Dims\":[[8,16.5],[16,32]]}",
        "{\"Input Dims\":[[[8],16],[16,32]]}",
        "{\"Input Dims\":\"[[8,16],[16,32]]\"}",
        "{\"Input Dims\":[[8,16,8,16,8,16,8,16],[16,32]]}",
        "{\"x\":\"\\\"Input Dims\\\":[[8,16],[16,32]]\"}",
        "{\"x\":{\"Input Dims\":[[8,16],[16,32]]}}",
        "{\"Input Dims\":[]}",
        "{\"Input Dims\":[[],[]]}",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(broken); i++) {
        ck_assert_msg(flops("aten::mm", broken[i]) == 0, "%s", broken[i]);
    }
    ck_assert_int_eq(flops("aten::mm", "{\"Input Dims\":[[99999999999999999999999,4294967296],"
                                       "[4294967296,4294967296]]}"),
                     LAC_FLOPS_MAX);
    ck_assert_int_eq(flops("aten::convolution",
                           "{\"Input Dims\":[[9223372036854775807,3,9223372036854775807,7],"
                           "[9223372036854775807,3,7,7]],\"Concrete Inputs\":[\"\",\"\",\"\","
                           "\"[0]\",\"[1048576]\",\"[1048576]\",\"False\"]}"),
                     0); /* the filter reaches further than there is */
}
END_TEST

START_TEST(lengths_may_be_numbers_of_the_event)
{
    int64_t numbers[] = {41, 98304, 50, -7};
    /* number 0 is the external id; the third length comes again as number 2 */
    static const char args[] = "{\"External id\":\x01,\"Input Dims\":[[\x01,\x01],[50,15]]}";
    ck_assert_int_eq(call_with("aten::mm", args, numbers, 4, 0).flops, 2LL * 98304 * 50 * 15);
    /* numbers that are not there, or no lengths */
    ck_assert_int_eq(call_with("aten::mm", args, numbers, 2, 0).flops, 0);
    static const char negative[] = "{\"a\":\x01,\"b\":\x01,\"c\":\x01,\"Input Dims\":[[\x01,50],"
                                   "[50,15]]}";
    ck_assert_int_eq(call_with("aten::mm", negative, numbers, 4, 0).flops, 0);
}
END_TEST

START_TEST(gpus_by_their_whole_name)
{
    static const struct {
        const char *name;
        int32_t multiprocessors;
        double fp32; /* 0: no row */
    } cases[] = {
        {"Tesla V100-SXM2-16GB", 80, 15.7},
        {"NVIDIA A100-SXM4-80GB", 108, 19.5},
        {"NVIDIA A100-SXM4-80GB", 0, 19.5},
        {"NVIDIA A100-SXM4-80GB MIG 1g.10gb", 14, 0}, /* a slice of one */
        {"NVIDIA A100-SXM4-80GB", 14, 0},
        {"NVIDIA A10", 72, 31.2},
        {"NVIDIA A10G", 80, 35.0},
        {"NVIDIA A1000", 0, 0},
        {"NVIDIA GeForce RTX 3080 Laptop GPU", 48, 0}, /* shares a name, not the board */
        {"NVIDIA GeForce RTX 3080", 68, 29.8},
        {"NVIDIA H100 80GB HBM3", 132, 67},
        {"NVIDIA H100 PCIe", 114, 51},
        {"AMD Instinct MI300X", 304, 163.4},
        {"AMD Radeon Graphics", 104, 0},
        {"NVIDIA ", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const struct lac_device_peak *peak =
            lac_device_peak_of(cases[i].name, strlen(cases[i].name), cases[i].multiprocessors);
        double fp32 = peak != NULL ? peak->tflops[LAC_PRECISION_FP32] : 0.0;
        ck_assert_msg(fabs(fp32 - cases[i].fp32) < 1e-9, "%s: %g", cases[i].name, fp32);
    }
}
END_TEST

START_TEST(rows_of_gpus_are_possible)
{
    uint32_t count = 0;
    const struct lac_device_peak *peaks = lac_device_peaks(&count);
    ck_assert_uint_gt(count, 30);
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_device_peak *peak = &peaks[i];
        ck_assert_msg(peak->multiprocessors > 0 && strlen(peak->source) > 10, "%s", peak->name);
        ck_assert_msg(peak->tflops[LAC_PRECISION_FP32] > 0.0, "%s", peak->name);
        /* a shorter type is no slower where both are known */
        static const enum lac_precision order[] = {LAC_PRECISION_FP32, LAC_PRECISION_TF32,
                                                   LAC_PRECISION_FP16, LAC_PRECISION_FP8};
        double before = 0.0;
        for (size_t o = 0; o < 4; o++) {
            double tflops = peak->tflops[order[o]];
            ck_assert_msg(tflops == 0.0 || tflops >= before, "%s %s", peak->name,
                          lac_precision_name(order[o]));
            before = tflops > before ? tflops : before;
        }
        for (uint32_t other = 0; other < i; other++) {
            ck_assert_str_ne(peaks[other].name, peak->name);
        }
    }
}
END_TEST

/** A multiprocessor's float32 additions and multiplications a clock: lanes of its generation. */
static double lanes_of(const char *name)
{
    static const char *const of_64[] = {"P100",      "GP100",      "V100", "T4",   "RTX 20",
                                        "TITAN RTX", "Quadro RTX", "A100", "A800", "A30"};
    for (size_t i = 0; i < LAC_COUNT_OF(of_64); i++) {
        if (strstr(name, of_64[i]) != NULL) {
            return 64.0;
        }
    }
    return 128.0;
}

START_TEST(rows_of_gpus_follow_from_their_multiprocessors)
{
    /* what a row says of float32 is multiprocessors x lanes x 2 x clock: another number of
     * multiprocessors, or of dies, gives a clock that no GPU has */
    uint32_t count = 0;
    const struct lac_device_peak *peaks = lac_device_peaks(&count);
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_device_peak *peak = &peaks[i];
        if (strstr(peak->name, "Instinct") != NULL) {
            continue;
        }
        double ghz = peak->tflops[LAC_PRECISION_FP32] * 1e3 /
                     (peak->multiprocessors * lanes_of(peak->name) * 2.0);
        ck_assert_msg(ghz > 1.25 && ghz < 2.65, "%s: %.2f GHz", peak->name, ghz);
        /* tensor cores: a power of two of operations a clock, at that clock or up to 14 % below it */
        double each = peak->tflops[LAC_PRECISION_FP16] * 1e3 / (peak->multiprocessors * ghz);
        double power = log2(each);
        ck_assert_msg(peak->tflops[LAC_PRECISION_FP16] == 0.0 ||
                          fabs(power - floor(power + 0.5)) < 0.22,
                      "%s: %.0f FLOP a clock", peak->name, each);
        double half = peak->tflops[LAC_PRECISION_BF16];
        ck_assert_msg(half == 0.0 || half == peak->tflops[LAC_PRECISION_FP16], "%s", peak->name);
    }
}
END_TEST

START_TEST(gpus_that_are_easily_mistaken_have_their_own_figures)
{
    static const struct {
        const char *name;
        int32_t multiprocessors;
        double fp16, fp64, memory_gb_s;
    } cases[] = {
        {"NVIDIA GB200", 152, 2500, 40, 8000}, /* 152, not the 148 of a B200 */
        {"NVIDIA GB200", 148, 0, 0, 0},
        {"NVIDIA B200", 148, 2250, 37, 7700},
        {"NVIDIA A10G", 80, 70, 0, 600}, /* more lanes than an A10, half its tensor cores' rate */
        {"NVIDIA A10", 72, 125, 0, 600},
        {"NVIDIA A100-PG509-200", 108, 312, 19.5, 1555},
        {"NVIDIA GH200 480GB", 132, 989.5, 67, 4000},
        {"NVIDIA L4", 58, 121, 0, 300},
        {"NVIDIA H100 NVL", 132, 835.5, 60, 3900},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const struct lac_device_peak *peak =
            lac_device_peak_of(cases[i].name, strlen(cases[i].name), cases[i].multiprocessors);
        const struct lac_device_peak none = {.name = ""};
        peak = peak != NULL ? peak : &none;
        ck_assert_msg(peak->tflops[LAC_PRECISION_FP16] == cases[i].fp16 &&
                          peak->tflops[LAC_PRECISION_FP64] == cases[i].fp64 &&
                          peak->memory_gb_s == cases[i].memory_gb_s,
                      "%s", cases[i].name);
    }
}
END_TEST

/* -- in a trace -- */

#define FLOATS  ",\"Input type\":[\"float\",\"float\"]"
#define PRODUCT "aten::mm dims=[[1024,1024],[1024,1024]]" FLOATS
#define GEMM    "volta_sgemm_128x64_nn"
#define ADD                                                                                        \
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"

/** Ten steps of 1 ms: a product of 2.1 GFLOP in 200 us, in it a smaller one, and an addition. */
static void draw_steps(const char *metadata, const char *extra)
{
    sheet_blank();
    for (int i = 0; i < 10; i++) {
        int at = i * 1000;
        sheet_add("main range %d 1000 ProfilerStep#%d\n", at, i);
        sheet_add("main op %d 40 aten::matmul dims=[[1024,1024],[1024,1024]]" FLOATS "\n", at + 5);
        sheet_add("main op %d 20 " PRODUCT "\n", at + 10);
        sheet_corr++;
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 15, sheet_corr);
        sheet_add("gpu0.7 kernel %d 200 #%u " GEMM "\n", at + 30, sheet_corr);
        sheet_corr++;
        sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 32, sheet_corr);
        sheet_add("gpu0.7 kernel %d 100 #%u " ADD "\n", at + 240, sheet_corr);
        sheet_add("main op %d 10 Optimizer.step#SGD.step\n", at + 900);
        if (extra[0] != '\0') {
            sheet_corr++;
            sheet_add("main op %d 20 %s\n", at + 100, extra);
            sheet_add("main call %d 5 #%u cudaLaunchKernel\n", at + 105, sheet_corr);
            sheet_add("gpu0.7 kernel %d 300 #%u volta_sgemm_32x32_nn\n", at + 400, sheet_corr);
        }
    }
    sheet_diagnose(metadata, 7);
}

START_TEST(operations_belong_to_the_innermost_operator)
{
    draw_steps("", "");
    const struct lac_efficiency *efficiency = &analysis->efficiency;
    ck_assert_str_eq(efficiency->basis, "step");
    ck_assert_str_eq(efficiency->why_not, "");
    double product = 2.0 * 1024 * 1024 * 1024;
    ck_assert_double_eq_tol(efficiency->flops_per_step, product, 1.0);
    ck_assert_double_eq_tol(efficiency->achieved_flops_per_s, product / 1e-3, 1e9);
    ck_assert_double_eq_tol(efficiency->mfu_pct, 100.0 * product / 15.7e12 / 1e-3, 0.1);
    ck_assert_double_eq_tol(efficiency->products_pct, 100.0 * product / 15.7e12 / 200e-6, 0.1);
    ck_assert_int_eq(efficiency->precision, LAC_PRECISION_FP32);
    for (uint32_t k = 0; k < analysis->kernel_name_count; k++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[k];
        bool is_product = kernel->names.family == LAC_FAMILY_GEMM;
        ck_assert_int_eq(kernel->flops, is_product ? 10 * (int64_t)product : 0);
        ck_assert(isnan(kernel->pct_of_peak) == !is_product);
    }
}
END_TEST

START_TEST(what_has_no_shape_makes_the_share_unknown)
{
    draw_steps("", "CompiledFunction");
    ck_assert(isnan(analysis->efficiency.mfu_pct));
    ck_assert_ptr_nonnull(strstr(analysis->efficiency.why_not, "40 %"));
    ck_assert_double_eq_tol(analysis->efficiency.counted_pct, 40.0, 0.1);
    /* what was counted is told all the same */
    ck_assert_double_gt(analysis->efficiency.flops_per_step, 1e9);
}
END_TEST

START_TEST(without_shapes_there_is_a_reason)
{
    sheet_draw("gpu0.7 kernel 0 10 volta_sgemm_128x64_nn\ngpu0.7 kernel 20 30 a_new_kernel\n");
    ck_assert_str_eq(analysis->efficiency.basis, "none");
    ck_assert_ptr_nonnull(strstr(analysis->efficiency.why_not, "record_shapes"));
    ck_assert_double_eq_tol(analysis->unknown_kernels_pct, 75.0, 1e-9);
}
END_TEST

/* -- the finding -- */

/** Six steps of `count` products one behind the other, the host far ahead. */
static void draw_products(const char *op, const char *kernel, int count, double length_us)
{
    double device_us = 0.0;
    double host_us = 0.0;
    sheet_blank();
    for (int i = 0; i < 6; i++) {
        double begin = host_us;
        device_us = device_us > host_us ? device_us : host_us;
        for (int k = 0; k < count; k++) {
            sheet_corr++;
            sheet_add("main op %.1f 3 %s\n", host_us, op);
            sheet_add("main call %.1f 1 #%u cudaLaunchKernel\n", host_us + 1.0, sheet_corr);
            sheet_add("gpu0.7 kernel %.1f %.1f #%u %s\n", device_us + 4.0, length_us, sheet_corr,
                      kernel);
            device_us += length_us;
            host_us += 4.0;
        }
        sheet_add("main op %.1f 2 Optimizer.step#SGD.step\n", host_us);
        sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", host_us + 3.0,
                  device_us + 6.0 - host_us - 3.0);
        host_us = device_us + 8.0;
        sheet_add("main range %.1f %.1f ProfilerStep#%d\n", begin, host_us - begin, i);
    }
    sheet_diagnose(NULL, 7);
}

START_TEST(small_products_are_worth_batching)
{
    /* 2 us at the peak, four tiles, and 15 us each */
    draw_products("aten::mm dims=[[64,512],[512,512]]" FLOATS, GEMM, 200, 15);
    const struct lac_finding *finding = sheet_finding("efficiency");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_str_eq(finding->brief, "batch small GEMMs");
    ck_assert_ptr_nonnull(strstr(finding->why, "aten::mm 64 x 512 x 512 (fp32)"));
    /* expected at half of what the shape allows: 15 us become 4.3 */
    ck_assert_double_gt(finding->gain_mid_pct, 60.0);
    ck_assert_double_lt(finding->gain_mid_pct, 75.0);
    ck_assert_double_lt(finding->gain_mid_pct, finding->gain_high_pct);
}
END_TEST

START_TEST(odd_lengths_are_padded_where_names_do_not_say)
{
    draw_products("aten::mm dims=[[4096,1024],[1024,1001]],\"Input type\":[\"c10::Half\"]",
                  "nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", 20, 400);
    const struct lac_finding *finding = sheet_finding("efficiency");
    ck_assert_ptr_nonnull(finding);
    sheet_check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "1001: pad it to 1008"));
}
END_TEST

START_TEST(a_share_of_the_peak_alone_proposes_nothing)
{
    /* large and even, and slow all the same */
    draw_products("aten::mm dims=[[4096,1024],[1024,1024]],\"Input type\":[\"c10::Half\"]",
                  "nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", 20, 400);
    const struct lac_finding *finding = sheet_finding("efficiency");
    ck_assert_ptr_nonnull(finding);
    ck_assert(isnan(finding->gain_mid_pct));
    ck_assert_str_eq(finding->change, "");
}
END_TEST

START_TEST(products_near_their_bound_are_no_finding)
{
    /* 137 us at the peak */
    draw_products("aten::mm dims=[[1024,1024],[1024,1024]]" FLOATS, GEMM, 20, 200);
    ck_assert_ptr_null(sheet_finding("efficiency"));
    /* a product with a vector reads its matrix once: 900 GB/s is all there is */
    draw_products("aten::mv dims=[[8192,8192],[8192]]" FLOATS, "gemv2T_kernel_val", 20, 350);
    ck_assert_ptr_null(sheet_finding("efficiency"));
    /* small ones beside a step that computes something else */
    draw_products("aten::mul", ADD, 100, 15);
    ck_assert_ptr_null(sheet_finding("efficiency"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_flops");
    TCase *tcase = tcase_create("op_flops");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_add_test(tcase, products_are_two_a_term);
    tcase_add_test(tcase, convolutions_by_their_window);
    tcase_add_test(tcase, a_backward_pass_says_its_directions);
    tcase_add_test(tcase, attention_counts_what_a_mask_leaves);
    tcase_add_test(tcase, hostile_shapes_count_nothing_or_saturate);
    tcase_add_test(tcase, lengths_may_be_numbers_of_the_event);
    tcase_add_test(tcase, gpus_by_their_whole_name);
    tcase_add_test(tcase, rows_of_gpus_are_possible);
    tcase_add_test(tcase, rows_of_gpus_follow_from_their_multiprocessors);
    tcase_add_test(tcase, gpus_that_are_easily_mistaken_have_their_own_figures);
    tcase_add_test(tcase, operations_belong_to_the_innermost_operator);
    tcase_add_test(tcase, what_has_no_shape_makes_the_share_unknown);
    tcase_add_test(tcase, without_shapes_there_is_a_reason);
    tcase_add_test(tcase, small_products_are_worth_batching);
    tcase_add_test(tcase, odd_lengths_are_padded_where_names_do_not_say);
    tcase_add_test(tcase, a_share_of_the_peak_alone_proposes_nothing);
    tcase_add_test(tcase, products_near_their_bound_are_no_finding);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
