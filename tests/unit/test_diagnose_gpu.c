/* What the device computes with: attention, elementwise chains, optimizers, small grids and tensor
 * cores; and the traces in which the naive text about each would be wrong. */

#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static double host_us, device_us;
static bool gathers_beside; /**< a short collective on another stream beside each kernel */

static void blank(void)
{
    sheet_blank();
    host_us = 0.0;
    device_us = 0.0;
}

/** An operator on the host, its launch inside, its kernel behind what runs already. */
static void launch(const char *thread, const char *op, double length_us, const char *kernel)
{
    sheet_corr++;
    double start = device_us > host_us + 2.0 ? device_us : host_us + 2.0;
    device_us = start + length_us;
    sheet_add("%s op %.1f 3 %s\n", thread, host_us, op);
    sheet_add("%s call %.1f 1 #%u cudaLaunchKernel\n", thread, host_us + 1.0, sheet_corr);
    sheet_add("gpu0.7 kernel %.1f %.1f #%u %s\n", start, length_us, sheet_corr, kernel);
    if (gathers_beside) {
        sheet_corr++;
        sheet_add("%s call %.1f 0.5 #%u cudaLaunchKernel\n", thread, host_us + 2.2, sheet_corr);
        sheet_add("gpu0.20 kernel %.1f 20 #%u ncclDevKernel_AllGather_RING_LL(args)\n", start + 5.0,
                  sheet_corr);
    }
    host_us += 4.0;
}

/** The end of a step that began at `begin`: the host has all of it launched, and waits for it. */
static void end_step(double begin, int index)
{
    sheet_add("main op %.1f 10 Optimizer.step#SGD.step\n", host_us);
    host_us += 11.0;
    sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", host_us, device_us + 1.0 - host_us);
    host_us = device_us + 2.0;
    sheet_add("main range %.1f %.1f ProfilerStep#%d\n", begin, host_us - begin, index);
}

static void check_grammar(const struct lac_finding *finding)
{
    sheet_check_grammar(finding);
    ck_assert(finding->gain_mid_pct >= 1.0);
}

/* -- attention ----------------------------------------------------------------------------------*/

#define HALF_GEMM "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn"
#define ODD_GEMM  "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_tn_align1>"
#define SOFTMAX                                                                                    \
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(int)"
#define LOGITS "void cunn_SoftMaxForward<4, float, float, float, LogSoftMaxForwardEpilogue>(float*)"
#define ADD                                                                                        \
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
#define COPY "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>(int)"

static void draw_attention(const char *product, const char *softmax, const char *behind)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        launch("main", "aten::addmm", 1000, HALF_GEMM);
        for (int layer = 0; layer < 2; layer++) {
            launch("main", product, 200, HALF_GEMM);
            launch("main", "aten::mul", 100, ADD);
            launch("main", "aten::_softmax", 400, softmax);
            launch("main", behind, 200, HALF_GEMM);
        }
        launch("pt_autograd_0", "autograd::engine::evaluate_function: MmBackward0", 1000,
               HALF_GEMM);
        end_step(begin, i);
    }
}

START_TEST(attention_in_separate_kernels_is_found)
{
    draw_attention("aten::bmm dims=[[16,4096,64],[16,64,4096]]", SOFTMAX, "aten::bmm");
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("unfused-attention");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "scaled_dot_product_attention"));
    ck_assert_msg(strstr(finding->why, "between two GEMMs 2 times per step") != NULL, "%s",
                  finding->why);
    /* 2 x (200 + 100 + 400 + 200) us of 3.8 ms; the part between is 1 ms */
    ck_assert_int_eq(finding->cost_ns_per_step / 10000, 180);
    ck_assert(finding->gain_low_pct > 10.0 && finding->gain_high_pct < 40.0);
}
END_TEST

START_TEST(inference_is_told_to_fuse_attention)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        launch("main", "aten::bmm dims=[[16,5185,64],[16,64,5185]]", 200, ODD_GEMM);
        launch("main", "aten::_softmax", 400, SOFTMAX);
        launch("main", "aten::bmm dims=[[16,5185,5185],[16,5185,64]]", 200, ODD_GEMM);
        sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", host_us,
                  device_us + 1.0 - host_us);
        host_us = device_us + 2.0;
        sheet_add("main range %.1f %.1f ProfilerStep#%d\n", begin, host_us - begin, i);
    }
    sheet_diagnose(NULL, 9);
    ck_assert_int_eq((int)analysis->workload, (int)LAC_WORKLOAD_INFERENCE);
    ck_assert_str_eq(analysis->findings[0].id, "unfused-attention");
    ck_assert_ptr_nonnull(strstr(analysis->findings[0].change, "scaled_dot_product_attention"));
    ck_assert_ptr_null(
        sheet_finding("tensor-cores-misaligned")); /* a fused kernel takes any length */
    ck_assert_msg(strstr(analysis->verdict.detail, "takes 100 % of the kernel time") != NULL, "%s",
                  analysis->verdict.detail);
    ck_assert_ptr_nonnull(strstr(analysis->verdict.detail, "5185 is not a multiple of 8"));
    /* which takes any length: nothing is to be padded for it */
    ck_assert_ptr_nonnull(strstr(analysis->verdict.detail, "a fused kernel takes any"));
    ck_assert_ptr_null(strstr(analysis->verdict.detail, "pad it"));
    ck_assert_ptr_null(strstr(analysis->findings[0].why, "pad it"));
}
END_TEST

/** Attention that a function of that frame computes. */
static const char *change_in(const char *frame)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        sheet_add("main python %.1f 12.5 %s\n", host_us - 0.5, frame);
        launch("main", "aten::bmm", 200, HALF_GEMM);
        launch("main", "aten::_softmax", 400, SOFTMAX);
        launch("main", "aten::bmm", 200, HALF_GEMM);
        host_us += 2.0;
        launch("main", "aten::addmm", 1000, HALF_GEMM);
        end_step(begin, i);
    }
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("unfused-attention");
    ck_assert_ptr_nonnull(finding);
    return finding->change;
}

START_TEST(what_selects_attention_is_advised_where_it_selects)
{
    /* a class that has the softmax in its own forward() knows no other */
    const char *change = change_in("transformers/models/owlv2/modeling_owlv2.py(410): forward");
    ck_assert_msg(strstr(change, "in owlv2/modeling_owlv2.py:410 (forward), which") != NULL, "%s",
                  change);
    ck_assert_ptr_nonnull(strstr(change, "scaled_dot_product_attention(q, k, v"));
    ck_assert_ptr_null(strstr(change, "from_pretrained"));
    change = change_in("transformers/models/llama/modeling_llama.py(180): eager_attention_forward");
    ck_assert_ptr_nonnull(strstr(change, "attn_implementation=\"sdpa\""));
    ck_assert_ptr_null(strstr(change, "softmax"));
    change = change_in("train/net.py(12): attend");
    ck_assert_ptr_nonnull(strstr(change, "# in train/net.py:12 (attend)"));
    ck_assert_ptr_null(strstr(change, "attn_implementation"));
}
END_TEST

START_TEST(a_softmax_of_the_loss_or_between_layers_is_no_attention)
{
    draw_attention("aten::bmm", LOGITS, "aten::bmm");
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-attention"));
    draw_attention("aten::addmm", SOFTMAX, "aten::addmm");
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-attention"));
}
END_TEST

START_TEST(a_call_that_fell_back_is_told_from_code_without_the_call)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        sheet_add("main op %.1f 15.5 aten::_scaled_dot_product_attention_math\n", host_us);
        launch("main", "aten::bmm", 200, HALF_GEMM);
        launch("main", "aten::_softmax", 400, SOFTMAX);
        launch("main", "aten::bmm", 200, HALF_GEMM);
        host_us += 4.0;
        launch("main", "aten::addmm", 1000, HALF_GEMM);
        end_step(begin, i);
    }
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("unfused-attention");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "fell back"));
    ck_assert_ptr_nonnull(strstr(finding->change, "sdpa_kernel"));
}
END_TEST

/* -- elementwise chains -------------------------------------------------------------------------*/

static void draw_chain(int length, double kernel_us, bool is_in_optimizer, const char *kernel)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        launch("main", "aten::addmm", 4000, HALF_GEMM);
        if (is_in_optimizer) {
            sheet_add("main op %.1f %.1f Optimizer.step#Adam.step\n", host_us, 4.0 * length + 1.0);
        }
        for (int k = 0; k < length; k++) {
            launch("main", "aten::mul", kernel_us, kernel);
        }
        host_us += 2.0;
        launch("main", "aten::addmm", 1000, HALF_GEMM);
        end_step(begin, i);
    }
}

/** Beneath larger kernels of another stream a chain is in nobody's way. */
START_TEST(a_chain_that_hides_is_not_worth_fusing)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        const double side_us = device_us > host_us + 2.0 ? device_us : host_us + 2.0;
        for (int k = 0; k < 10; k++) {
            launch("main", "aten::addmm", 600, HALF_GEMM);
        }
        for (int k = 0; k < 60; k++) {
            sheet_corr++;
            sheet_add("main op %.1f 3 aten::add\n", host_us);
            sheet_add("main call %.1f 1 #%u cudaLaunchKernel\n", host_us + 1.0, sheet_corr);
            sheet_add("gpu0.13 kernel %.1f 50 #%u %s\n", side_us + 300.0 + 55.0 * k, sheet_corr,
                      ADD);
            host_us += 4.0;
        }
        end_step(begin, i);
    }
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-elementwise"));
}
END_TEST

/** Six elementwise kernels of 200 us before a product, and an all-reduce of 3 ms that begins with it and
 *  is what the update waits for. */
static void draw_before_reduction(void)
{
    blank();
    for (int i = 0; i < 10; i++) {
        const double begin = host_us;
        for (int k = 0; k < 6; k++) {
            launch("main", "aten::add", 200, ADD);
        }
        launch("main", "aten::addmm", 1000, HALF_GEMM);
        const double reduced_us = device_us - 1000.0 + 3000.0;
        sheet_add("main call %.1f 1 #%u cudaLaunchKernel\n", host_us, ++sheet_corr);
        sheet_add("gpu0.20 kernel %.1f 3000 #%u ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n",
                  device_us - 1000.0, sheet_corr);
        host_us += 2.0;
        sheet_add("main call %.1f 1 cudaStreamWaitEvent\n", host_us);
        host_us += 2.0;
        device_us = reduced_us;
        launch("main", "aten::addmm", 500, HALF_GEMM);
        end_step(begin, i);
    }
    sheet_diagnose(NULL, 8);
}

START_TEST(what_is_fused_before_a_reduction_gains_all_of_it)
{
    draw_before_reduction();
    const struct lac_finding *before = sheet_finding("unfused-elementwise");
    ck_assert_ptr_nonnull(before);
    ck_assert_double_gt(before->gain_high_pct, 15.0); /* 0.9 x 1 of 4.7 ms */
}
END_TEST

/** What another stream does between two kernels of one breaks no sequence of it. */
START_TEST(sequences_are_those_of_a_stream)
{
    gathers_beside = true;
    draw_attention("aten::bmm", SOFTMAX, "aten::bmm");
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_nonnull(sheet_finding("unfused-attention"));
    ck_assert_int_eq(sheet_finding("unfused-attention")->cost_ns_per_step / 10000, 180);
    ck_assert_ptr_nonnull(
        strstr(sheet_finding("unfused-attention")->why, "between two GEMMs 2 times per step"));
    draw_chain(8, 300, false, ADD);
    sheet_diagnose(NULL, 8);
    gathers_beside = false;
    const struct lac_finding *chain = sheet_finding("unfused-elementwise");
    ck_assert_ptr_nonnull(chain);
    ck_assert_ptr_nonnull(strstr(chain->why, "8 kernels per step"));
    ck_assert_int_eq(chain->cost_ns_per_step, 8 * 300000);
}
END_TEST

START_TEST(a_chain_of_elementwise_kernels_can_be_fused)
{
    draw_chain(5, 300, false, ADD);
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("unfused-elementwise");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_double_le(finding->confidence, 0.5); /* which share data the trace does not say */
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO); /* less than a quarter */
    ck_assert_str_eq(analysis->findings[0].id, "gpu-bound");
    draw_chain(8, 300, false, ADD);
    sheet_diagnose(NULL, 8);
    ck_assert_str_eq(analysis->findings[0].id, "unfused-elementwise");
    ck_assert_int_ne((int)analysis->findings[0].severity, (int)LAC_SEVERITY_INFO);
}
END_TEST

START_TEST(what_is_compiled_or_stands_alone_or_is_the_optimizer_is_not_fused)
{
    draw_chain(5, 300, true, ADD);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-elementwise"));
    draw_chain(1, 1500, false, ADD);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-elementwise"));
    draw_chain(5, 300, false, "triton_poi_fused_add_mul_3");
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("unfused-elementwise"));
    draw_chain(5, 300, false, ADD);
    sheet_diagnose("{\"lacuna\":{\"settings\":{\"compile\":true}}}", 8);
    ck_assert_ptr_null(sheet_finding("unfused-elementwise"));
}
END_TEST

/* -- the optimizer ----------------------------------------------------------------------------- */

/** What the updates are called, how many there are, and whether a range is around them. */
static const char *update_name = "aten::add_";
static int update_count = 200;
static bool is_unnamed;

/** The host needs `each_us` for each update; the device has 2 ms of work beside. */
static void draw_optimizer(double each_us, const char *kernel, double ahead_us, bool has_python)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        launch("main", "aten::addmm", ahead_us, HALF_GEMM);
        double from = host_us;
        for (int k = 0; k < update_count; k++) {
            launch("main", update_name, 3, kernel);
            host_us += each_us - 4.0;
        }
        sheet_add("main op %.1f %.1f %s\n", from - 0.5, is_unnamed ? 0.3 : host_us - from,
                  is_unnamed ? "autograd::engine::evaluate_function: AddmmBackward0"
                             : "Optimizer.step#Adam.step");
        if (has_python) {
            sheet_add("main python %.1f 1 optim.py(3): step\n", host_us);
        }
        host_us += 1.0;
        launch("main", "aten::addmm", 2000, HALF_GEMM);
        double done = device_us > host_us ? device_us : host_us;
        sheet_add("main call %.1f %.1f cudaStreamSynchronize\n", host_us, done + 1.0 - host_us);
        host_us = done + 2.0;
        sheet_add("main range %.1f %.1f ProfilerStep#%d\n", begin, host_us - begin, i);
    }
}

START_TEST(an_optimizer_without_groups_is_found)
{
    draw_optimizer(20, ADD, 100, false);
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("slow-optimizer");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "torch.optim.Adam("));
    ck_assert_ptr_nonnull(strstr(finding->change, "fused=True"));
    ck_assert(finding->gain_high_pct < 70.0);
}
END_TEST

/** The change that is proposed for an optimizer without groups, of a recording that says this of itself. */
static const char *optimizer_change(const char *metadata, int64_t day_s, const char *frame)
{
    draw_optimizer(20, ADD, 100, false);
    sheet_add("main op 0 0.5 aten::empty args={\"Call_stack\":\"%s\"}\n", frame);
    sheet_wipe();
    model = trace_draw_with(sheet_text(), metadata, 8);
    model->info.t0_ns = day_s * INT64_C(1000000000);
    analysis = trace_diagnose(model);
    const struct lac_finding *finding = sheet_finding("slow-optimizer");
    ck_assert_ptr_nonnull(finding);
    return finding->change;
}

START_TEST(what_an_old_pytorch_lacks_is_said_with_the_release_that_has_it)
{
    static const char needs[] = "foreach=True)  # from PyTorch 1.12";
    static const char of_1_11[] =
        "{\"lacuna\":{\"settings\":{\"torch_version\":\"1.11.0+cu113\"}}}";
    static const char of_2_6[] = "{\"lacuna\":{\"settings\":{\"torch_version\":\"2.6.0\"}}}";
    const int64_t june_2021 = 1623143089;
    const int64_t july_2025 = 1751410836;
    ck_assert_ptr_nonnull(strstr(optimizer_change(NULL, june_2021, "train.py(3): main"), needs));
    ck_assert_ptr_null(strstr(optimizer_change(NULL, july_2025, "train.py(3): main"), needs));
    /* a time since the machine started, and nothing else, tells nothing */
    ck_assert_ptr_null(strstr(optimizer_change(NULL, 4711, "train.py(3): main"), needs));
    ck_assert_ptr_nonnull(strstr(
        optimizer_change(NULL, 4711, "/opt/lib/python3.6/site-packages/torch/nn.py(3): f"), needs));
    ck_assert_ptr_null(
        strstr(optimizer_change(NULL, 4711, "/opt/lib/python3.12/site-packages/torch/nn.py(3): f"),
               needs));
    /* the version that was recorded comes first */
    ck_assert_ptr_nonnull(strstr(optimizer_change(of_1_11, july_2025, "train.py(3): main"), needs));
    ck_assert_ptr_null(strstr(optimizer_change(of_2_6, june_2021, "train.py(3): main"), needs));
}
END_TEST

/** No range around them: dozens of updates in place, one after the other, are an optimizer. */
START_TEST(an_optimizer_without_a_range_is_known_by_its_updates)
{
    is_unnamed = true;
    draw_optimizer(20, ADD, 100, false);
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("slow-optimizer");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "No range names it"));
    ck_assert(finding->gain_high_pct > 20.0 && finding->gain_high_pct < 70.0);
    update_name = "aten::relu"; /* as many of a layer */
    draw_optimizer(20, ADD, 100, false);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("slow-optimizer"));
    update_name = "aten::add_"; /* and few */
    update_count = 40;
    draw_optimizer(100, ADD, 100, false);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("slow-optimizer"));
    update_count = 200;
    is_unnamed = false;
}
END_TEST

START_TEST(an_optimizer_that_the_device_does_not_notice_costs_nothing)
{
    draw_optimizer(20, ADD, 6000, false); /* 4 ms of host time behind 6 ms of device time */
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("slow-optimizer"));
    draw_optimizer(20, "multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >", 100,
                   false);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("slow-optimizer"));
    draw_optimizer(20, ADD, 100, true); /* Python stacks: the host is slower than it is */
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("slow-optimizer"));
}
END_TEST

/* -- small grids ------------------------------------------------------------------------------- */

static void draw_grids(int blocks, double length_us)
{
    char name[160];
    (void)snprintf(name, sizeof(name), "%s grid=%d", HALF_GEMM, blocks);
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        for (int k = 0; k < 10; k++) {
            launch("main", "aten::bmm", length_us, name);
        }
        launch("main", "aten::addmm", 1000, HALF_GEMM " grid=800");
        end_step(begin, i);
    }
}

START_TEST(kernels_with_fewer_blocks_than_multiprocessors_are_said)
{
    draw_grids(8, 200);
    sheet_diagnose(NULL, 8);
    const struct lac_finding *finding = sheet_finding("small-grid");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)finding->severity, (int)LAC_SEVERITY_INFO);
    ck_assert(finding->gain_mid_pct != finding->gain_mid_pct); /* a fact, no promise */
    ck_assert_ptr_nonnull(strstr(finding->why, "80 SMs"));
    ck_assert_ptr_nonnull(strstr(finding->costs, "changes training"));
}
END_TEST

START_TEST(grids_that_fill_the_gpu_or_were_not_recorded_are_not)
{
    draw_grids(160, 200);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("small-grid"));
    draw_grids(0, 200);
    sheet_diagnose(NULL, 8);
    ck_assert_ptr_null(sheet_finding("small-grid"));
    draw_grids(8, 200);
    sheet_diagnose(NULL, 0); /* number of multiprocessors not recorded */
    ck_assert_ptr_null(sheet_finding("small-grid"));
}
END_TEST

/* -- tensor cores ------------------------------------------------------------------------------ */

static void draw_products(const char *op, const char *kernel, int cc_major)
{
    blank();
    for (int i = 0; i < 8; i++) {
        double begin = host_us;
        launch("main", "aten::mul", 1000, ADD);
        launch("main", op, 3000, kernel);
        end_step(begin, i);
    }
    sheet_diagnose(NULL, cc_major);
}

START_TEST(an_odd_length_is_quoted_with_the_padded_one)
{
    draw_products("aten::mm dims=[[8192,1024],[1024,50257]]", ODD_GEMM, 8);
    const struct lac_finding *finding = sheet_finding("tensor-cores-misaligned");
    ck_assert_ptr_nonnull(finding);
    check_grammar(finding);
    ck_assert_ptr_nonnull(strstr(finding->change, "N is 50257: pad it to 50304"));
}
END_TEST

START_TEST(without_shapes_the_length_is_not_guessed)
{
    draw_products("aten::mm", ODD_GEMM, 8);
    const struct lac_finding *finding = sheet_finding("tensor-cores-misaligned");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->why, "Record shapes"));
}
END_TEST

START_TEST(each_type_has_its_own_multiple)
{
    /* TF32 takes four elements at a time: align4 is all there is to have */
    draw_products("aten::mm dims=[[64,64],[64,68]]",
                  "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>", 8);
    ck_assert_ptr_null(sheet_finding("tensor-cores-misaligned"));
    draw_products("aten::mm dims=[[64,64],[64,66]]",
                  "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align2>", 8);
    ck_assert_ptr_nonnull(strstr(sheet_finding("tensor-cores-misaligned")->why, "TF32"));
    ck_assert_ptr_nonnull(strstr(sheet_finding("tensor-cores-misaligned")->check, "align4"));
    draw_products("aten::mm dims=[[64,64],[64,72]]",
                  "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x128_tn_align8>",
                  8);
    ck_assert_ptr_null(sheet_finding("tensor-cores-misaligned"));
}
END_TEST

START_TEST(kernels_of_an_older_gpu_are_a_fact_without_a_promise)
{
    const char kernel[] =
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>";
    draw_products("aten::mm", kernel, 9);
    const struct lac_finding *finding = sheet_finding("tensor-cores-older-kernels");
    ck_assert_ptr_nonnull(finding);
    ck_assert(finding->gain_mid_pct != finding->gain_mid_pct);
    draw_products("aten::mm", kernel, 8); /* they are its own */
    ck_assert_ptr_null(sheet_finding("tensor-cores-older-kernels"));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("gpu");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, attention_in_separate_kernels_is_found);
    tcase_add_test(tcase, inference_is_told_to_fuse_attention);
    tcase_add_test(tcase, sequences_are_those_of_a_stream);
    tcase_add_test(tcase, what_is_fused_before_a_reduction_gains_all_of_it);
    tcase_add_test(tcase, a_chain_that_hides_is_not_worth_fusing);
    tcase_add_test(tcase, what_selects_attention_is_advised_where_it_selects);
    tcase_add_test(tcase, a_softmax_of_the_loss_or_between_layers_is_no_attention);
    tcase_add_test(tcase, a_call_that_fell_back_is_told_from_code_without_the_call);
    tcase_add_test(tcase, a_chain_of_elementwise_kernels_can_be_fused);
    tcase_add_test(tcase, what_is_compiled_or_stands_alone_or_is_the_optimizer_is_not_fused);
    tcase_add_test(tcase, an_optimizer_without_groups_is_found);
    tcase_add_test(tcase, what_an_old_pytorch_lacks_is_said_with_the_release_that_has_it);
    tcase_add_test(tcase, an_optimizer_without_a_range_is_known_by_its_updates);
    tcase_add_test(tcase, an_optimizer_that_the_device_does_not_notice_costs_nothing);
    tcase_add_test(tcase, kernels_with_fewer_blocks_than_multiprocessors_are_said);
    tcase_add_test(tcase, grids_that_fill_the_gpu_or_were_not_recorded_are_not);
    tcase_add_test(tcase, an_odd_length_is_quoted_with_the_padded_one);
    tcase_add_test(tcase, without_shapes_the_length_is_not_guessed);
    tcase_add_test(tcase, each_type_has_its_own_multiple);
    tcase_add_test(tcase, kernels_of_an_older_gpu_are_a_fact_without_a_promise);
    Suite *suite = suite_create("diagnose_gpu");
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
