#include "tests/simulator/step_plan.h"

#include "analysis/model/status.h"
#include "server/demo/network.h"
#include "tests/simulator/scenario.h"

#include <stdint.h>
#include <stdlib.h>

enum { FOR_KERNELS = 50, SHORTEST_NS = 1500 };

/* A family of operators: what it is called in each direction, and how heavy it is. */
struct family {
    const char *forward_op;
    const char *forward_kernel;
    const char *backward_op;
    const char *backward_kernel;
    int32_t weight; /* of its time */
    bool is_convolution;
};

static const struct family CONVOLUTIONAL[] = {
    {"aten::cudnn_convolution",
     "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_"
     "warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn",
     "aten::convolution_backward",
     "sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_"
     "warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn",
     60, true},
    {"aten::cudnn_batch_norm",
     "cudnn::bn_fw_tr_1C11_kernel_NHWC<__half2, float, 512, true, 1, true>",
     "aten::cudnn_batch_norm_backward", "cudnn::bn_bw_1C11_kernel_new<__half2, float, 512, true>",
     5, false},
    {"aten::clamp_min_",
     "void at::native::vectorized_elementwise_kernel<4, at::native::launch_clamp_scalar, "
     "at::detail::Array<char*, 2>>",
     "aten::threshold_backward",
     "void at::native::vectorized_elementwise_kernel<4, at::native::threshold_backward, "
     "at::detail::Array<char*, 3>>",
     2, false},
};
static const struct family TRANSFORMER[] = {
    {"aten::addmm", "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "aten::mm",
     "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", 70, false},
    {"aten::_flash_attention_forward",
     "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, "
     "4>>",
     "aten::_flash_attention_backward",
     "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>",
     40, false},
    {"aten::addmm", "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_tn", "aten::mm",
     "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_nt", 80, false},
    {"aten::native_layer_norm",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>",
     "aten::native_layer_norm_backward",
     "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::Half, float>", 4,
     false},
};
static const char OPTIMIZER_KERNEL[] =
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::TensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor>";
static const char TO_NHWC[] = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, "
                              "true, (cudnnKernelDataType_t)0>";
static const char TO_NCHW[] = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, "
                              "false, (cudnnKernelDataType_t)0>";

struct builder {
    const struct lac_demo_scenario *scenario;
    struct lac_demo_network *net;
    int32_t weights[LAC_DEMO_KERNELS_MAX]; /* per kernel, until they are times */
    int64_t compute_weight;
    int64_t layout_weight;
    int32_t compute_count; /* kernels but conversions */
    int32_t layout_count;
    int32_t convolutions; /* so far */
};

static void add_kernel(struct builder *b, const char *name, int64_t weight, bool is_layout)
{
    struct lac_demo_network *net = b->net;
    uint32_t i = net->kernel_count;
    if (i == net->kernel_capacity) {
        return;
    }
    /* numbered by kind, so that a step without conversions is otherwise the same */
    uint64_t which =
        (uint64_t)(is_layout ? LAC_DEMO_KERNELS_MAX + b->layout_count : b->compute_count);
    int64_t drawn = lac_demo_draw(b->scenario->seed, FOR_KERNELS, which, weight * 50, weight * 200);
    b->weights[i] = (int32_t)drawn;
    *(is_layout ? &b->layout_weight : &b->compute_weight) += drawn;
    *(is_layout ? &b->layout_count : &b->compute_count) += 1;
    net->kernels[i] = (struct lac_demo_kernel){
        .name = name,
        .grid = {(uint32_t)lac_demo_draw(b->scenario->seed, FOR_KERNELS + 1, i, 864, 8192), 1, 1},
        .block = 256,
        .registers = 64,
        .is_layout = is_layout,
    };
    net->kernel_count++;
    net->ops[net->op_count - 1].kernel_count++;
}

static void add_op(struct builder *b, const char *name, const char *inner, const char *module,
                   enum lac_demo_phase phase)
{
    struct lac_demo_network *net = b->net;
    if (net->op_count < net->op_capacity) {
        net->ops[net->op_count++] = (struct lac_demo_op){
            .name = name,
            .inner = inner,
            .module = module,
            .phase = phase,
            .kernel_first = net->kernel_count,
        };
    }
}

/* Whether the next convolution works on converted tensors: where only some do, evenly spread. */
static bool is_next_converted(struct builder *b)
{
    int32_t kept = b->scenario->layout_kept_permille;
    int32_t n = b->convolutions++;
    return b->scenario->has_layout && (kept == 0 || (n + 1) * kept / 1000 > n * kept / 1000);
}

static void add_direction(struct builder *b, int32_t wanted, enum lac_demo_phase phase)
{
    const struct lac_demo_scenario *s = b->scenario;
    const struct family *families = s->is_convolutional ? CONVOLUTIONAL : TRANSFORMER;
    int32_t family_count = s->is_convolutional ? 3 : 4;
    bool is_backward = phase == LAC_DEMO_BACKWARD;
    for (int32_t i = 0; i < wanted; i++) {
        const struct family *f = &families[(is_backward ? wanted - 1 - i : i) % family_count];
        const char *name = is_backward ? f->backward_op : f->forward_op;
        bool is_converted = f->is_convolution && is_next_converted(b);
        add_op(b, f->is_convolution && !is_backward ? "aten::conv2d" : name,
               f->is_convolution && !is_backward ? name : NULL, NULL, phase);
        if (is_converted) {
            add_kernel(b, TO_NHWC, 10, true);
        }
        add_kernel(b, is_backward ? f->backward_kernel : f->forward_kernel, f->weight, false);
        if (is_converted) {
            add_kernel(b, TO_NCHW, 10, true);
        }
    }
}

/* Weights into times: all kernels of a kind and the pauses behind them come to `total_ns`. */
static bool scale(struct builder *b, bool is_layout, int64_t total_ns)
{
    int32_t count = is_layout ? b->layout_count : b->compute_count;
    int64_t weight = is_layout ? b->layout_weight : b->compute_weight;
    int64_t rest_ns = total_ns - (b->scenario->kernel_pause_ns + SHORTEST_NS) * count;
    if (count == 0) {
        return true;
    }
    if (rest_ns < 0 && !is_layout) {
        return false;
    }
    rest_ns = rest_ns < 0 ? 0 : rest_ns;
    for (uint32_t i = 0; i < b->net->kernel_count; i++) {
        struct lac_demo_kernel *k = &b->net->kernels[i];
        if (k->is_layout == is_layout) {
            k->dur_ns = SHORTEST_NS + (int64_t)((double)rest_ns * b->weights[i] / (double)weight);
        }
    }
    return true;
}

enum lac_status lac_demo_plan_build(const struct lac_demo_scenario *scenario,
                                    struct lac_demo_network *ret_network)
{
    struct lac_demo_network net = {0};
    struct builder *b = calloc(1, sizeof(*b));
    net.kernels = calloc(LAC_DEMO_KERNELS_MAX, sizeof(*net.kernels));
    net.ops = calloc(LAC_DEMO_KERNELS_MAX, sizeof(*net.ops));
    net.kernel_capacity = net.op_capacity = LAC_DEMO_KERNELS_MAX;
    enum lac_status status = LAC_ERR_NOMEM;
    if (b != NULL && net.kernels != NULL && net.ops != NULL) {
        b->scenario = scenario;
        b->net = &net;
        int32_t optimizer = scenario->kernels / 12 + 1;
        int32_t forward = (scenario->kernels - optimizer) / 3;
        add_direction(b, forward, LAC_DEMO_FORWARD);
        add_direction(b, scenario->kernels - optimizer - forward, LAC_DEMO_BACKWARD);
        for (int32_t i = 0; i < optimizer; i++) {
            add_op(b, "aten::_fused_adamw_", NULL, NULL, LAC_DEMO_OPTIMIZER);
            add_kernel(b, OPTIMIZER_KERNEL, 6, false);
        }
        /* conversions belong to a step of the same convolutions: scaled alone */
        bool fits = scale(b, false, scenario->compute_ns) && scale(b, true, scenario->layout_ns);
        status = fits ? LAC_OK : LAC_ERR_MISUSE;
    }
    free(b);
    if (status != LAC_OK) {
        lac_demo_network_done(&net);
        return status;
    }
    *ret_network = net;
    return LAC_OK;
}
