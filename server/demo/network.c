#include "server/demo/network.h"

#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A V100 as cuDNN reaches it in half precision: operations and bytes in a nanosecond. */
static const double FLOP_PER_NS = 55000.0;
static const double BYTES_PER_NS = 760.0;
static const double HALF_BYTES = 2.0;

enum { PARAMETER_TENSORS = 161, FUSED_OPTIMIZER_KERNELS = 8 };

/* Where an operator of the forward pass stands; kept to walk it backwards. */
struct layer {
    enum { LAYER_CONV, LAYER_NORM, LAYER_RELU, LAYER_ADD, LAYER_MAXPOOL } kind;
    int32_t in_channels, out_channels, width, in_width, filter;
    const char *module;
};

enum { LAYERS_MAX = 256 };

struct plan {
    struct lac_demo_network net;
    struct layer layers[LAYERS_MAX];
    int32_t layer_count;
    double batch;
    bool channels_last;
    bool failed;
};

static const char RELU_NAME[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
    "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
    "at::native::detail::ClampLimits)::{lambda()#1}, at::detail::Array<char*, 2> >(int)";
static const char RELU_BACK_NAME[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
    "namespace)::threshold_kernel_impl<c10::Half>(at::TensorIteratorBase&, c10::Half, "
    "c10::Half)::{lambda(c10::Half, c10::Half)#1}, at::detail::Array<char*, 3> >(int)";
static const char ADD_NAME[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::Half>)";
static const char CAST_NAME[] =
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
    "TensorIteratorBase&)::{lambda()#3}, at::detail::Array<char*, 2>, at::native::memory::"
    "LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)";
static const char TO_NHWC_NAME[] =
    "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, "
    "(cudnnKernelDataType_t)0>(cudnn::ops::nchw2nhwc_params_t<float>, __half const*, __half*)";
static const char TO_NCHW_NAME[] =
    "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false, "
    "(cudnnKernelDataType_t)0>(cudnn::ops::nhwc2nchw_params_t<float>, __half const*, __half*)";
static const char OPTIMIZER_NAME[] =
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::TensorListMetadata<3>, at::native::(anonymous "
    "namespace)::FusedSgdMathFunctor<float, 3>>(at::native::(anonymous "
    "namespace)::TensorListMetadata<3>)";

static void add_op(struct plan *plan, enum lac_demo_phase phase, const char *name,
                   const char *inner, const char *module)
{
    struct lac_demo_network *net = &plan->net;
    if (plan->failed) {
        return;
    }
    plan->failed = !LAC_RESERVE(net->ops, net->op_capacity, net->op_count, 1);
    if (plan->failed) {
        return;
    }
    net->ops[net->op_count++] = (struct lac_demo_op){
        .name = name,
        .inner = inner,
        .module = module,
        .phase = phase,
        .kernel_first = net->kernel_count,
    };
}

/* A kernel of the latest operator that takes `cost_ns` before scaling. */
static void add_kernel(struct plan *plan, const char *name, double cost_ns, uint32_t registers,
                       uint32_t shared_bytes, bool is_layout)
{
    struct lac_demo_network *net = &plan->net;
    if (plan->failed) {
        return;
    }
    plan->failed = !LAC_RESERVE(net->kernels, net->kernel_capacity, net->kernel_count, 1);
    if (plan->failed) {
        return;
    }
    double cost = fmax(cost_ns, 1500.0);
    uint32_t block = registers > 100 ? 256 : registers > 40 ? 512 : 128;
    net->kernels[net->kernel_count++] = (struct lac_demo_kernel){
        .name = name,
        .dur_ns = (int64_t)cost,
        .grid = {(uint32_t)fmax(1.0, cost * 0.9), 1, 1},
        .block = block,
        .registers = registers,
        .shared_bytes = shared_bytes,
        .is_layout = is_layout,
    };
    net->ops[net->op_count - 1].kernel_count++;
}

static double tensor_bytes(const struct plan *plan, int32_t channels, int32_t width)
{
    return plan->batch * channels * width * width * HALF_BYTES;
}

static double conv_cost(const struct plan *plan, const struct layer *l)
{
    double flops = 2.0 * plan->batch * l->width * l->width * l->out_channels * l->in_channels *
                   l->filter * l->filter;
    double bytes = tensor_bytes(plan, l->in_channels, l->in_width) +
                   tensor_bytes(plan, l->out_channels, l->width);
    return fmax(flops / FLOP_PER_NS, bytes / BYTES_PER_NS);
}

/* A layout conversion reads and writes the tensor once. */
static void add_layout(struct plan *plan, bool to_nhwc, int32_t channels, int32_t width)
{
    if (!plan->channels_last) {
        add_kernel(plan, to_nhwc ? TO_NHWC_NAME : TO_NCHW_NAME,
                   2.0 * tensor_bytes(plan, channels, width) / BYTES_PER_NS, 32, 8448, true);
    }
}

static const char *conv_name(const struct plan *plan, int direction, bool large)
{
    /* direction: 0 forward, 1 data gradient, 2 weight gradient */
    static const char *const NHWC[3][2] = {
        {"sm70_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage1_"
         "warpsize2x2x1_g1_tensor8x8x4_t1r1s1_kernel",
         "sm70_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x128x32_stage1_"
         "warpsize4x2x1_g1_tensor8x8x4_kernel"},
        {"sm70_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage1_"
         "warpsize2x2x1_g1_tensor8x8x4_t1r1s1_kernel",
         "sm70_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x128x32_stage1_"
         "warpsize4x2x1_g1_tensor8x8x4_kernel"},
        {"sm70_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_"
         "stage1_warpsize2x2x1_g1_tensor8x8x4_kernel_cudnn",
         "sm70_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x256x32_"
         "stage1_warpsize2x4x1_g1_tensor8x8x4_kernel_cudnn"}};
    static const char *const NCHW[3][2] = {
        {"volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc2nchw_tn_v1",
         "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1"},
        {"volta_fp16_s884cudnn_fp16_128x128_ldg8_dgrad_f2f_exp_interior_nhwc_tt_v1",
         "volta_fp16_s884cudnn_fp16_256x128_ldg8_dgrad_f2f_exp_small_nhwc_tt_v1"},
        {"volta_fp16_s884cudnn_fp16_128x128_ldg8_wgrad_idx_exp_interior_nhwc_nt_v1",
         "volta_fp16_s884cudnn_fp16_256x64_sliced1x2_ldg8_wgrad_idx_exp_interior_nhwc_nt_v1"}};
    return plan->channels_last ? NHWC[direction][large] : NCHW[direction][large];
}

static void forward_cast(struct plan *plan, double bytes, const char *module)
{
    add_op(plan, LAC_DEMO_FORWARD, "aten::to", "aten::copy_", module);
    add_kernel(plan, CAST_NAME, bytes / BYTES_PER_NS, 26, 0, false);
}

static void forward_layer(struct plan *plan, const struct layer *l)
{
    double out = tensor_bytes(plan, l->out_channels, l->width) / BYTES_PER_NS;
    switch (l->kind) {
    case LAYER_CONV:
        forward_cast(plan, 6.0 * l->in_channels * l->out_channels * l->filter * l->filter,
                     l->module);
        add_op(plan, LAC_DEMO_FORWARD, "aten::conv2d", "aten::cudnn_convolution", l->module);
        add_layout(plan, true, l->in_channels, l->in_width);
        add_kernel(plan, conv_name(plan, 0, l->width >= 28), conv_cost(plan, l), 254, 49152, false);
        add_layout(plan, false, l->out_channels, l->width);
        break;
    case LAYER_NORM:
        add_op(plan, LAC_DEMO_FORWARD, "aten::batch_norm", "aten::cudnn_batch_norm", l->module);
        add_kernel(plan,
                   plan->channels_last
                       ? "void cudnn::batchnorm_fwtr_nhwc_semiPersist<__half, __half, float, "
                         "float, 512, 8, 4, 2, 0>(cudnn::BNFwParams)"
                       : "void cudnn::bn_fw_tr_1C11_kernel_NCHW<__half, float, 512, true, 1>("
                         "cudnnTensorStruct, __half const*, cudnnTensorStruct, __half*)",
                   2.6 * out, 64, 4096, false);
        break;
    case LAYER_RELU:
        add_op(plan, LAC_DEMO_FORWARD, "aten::relu_", "aten::clamp_min_", l->module);
        add_kernel(plan, RELU_NAME, 2.0 * out, 22, 0, false);
        break;
    case LAYER_ADD:
        add_op(plan, LAC_DEMO_FORWARD, "aten::add_", NULL, l->module);
        add_kernel(plan, ADD_NAME, 3.0 * out, 20, 0, false);
        break;
    case LAYER_MAXPOOL:
        add_op(plan, LAC_DEMO_FORWARD, "aten::max_pool2d", "aten::max_pool2d_with_indices",
               l->module);
        add_kernel(plan,
                   "void at::native::(anonymous namespace)::max_pool_forward_nhwc<c10::Half, "
                   "c10::Half>(c10::Half const*, int, int, int, int, int, int)",
                   7.0 * out, 40, 12288, false);
        break;
    default:
        break;
    }
}

static void backward_conv(struct plan *plan, const struct layer *l, bool first)
{
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: ConvolutionBackward0",
           "aten::convolution_backward", NULL);
    add_layout(plan, true, l->out_channels, l->width);
    if (!first) {
        add_kernel(plan, conv_name(plan, 1, l->width >= 28), conv_cost(plan, l), 242, 65536, false);
        add_layout(plan, false, l->in_channels, l->in_width);
    }
    add_layout(plan, true, l->in_channels, l->in_width);
    add_kernel(plan, conv_name(plan, 2, l->width >= 28), 1.1 * conv_cost(plan, l), 234, 57344,
               false);
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: ToCopyBackward0",
           "aten::to", NULL);
    add_kernel(plan, CAST_NAME,
               6.0 * l->in_channels * l->out_channels * l->filter * l->filter / BYTES_PER_NS, 26, 0,
               false);
}

static void backward_layer(struct plan *plan, const struct layer *l, bool first)
{
    double out = tensor_bytes(plan, l->out_channels, l->width) / BYTES_PER_NS;
    switch (l->kind) {
    case LAYER_CONV:
        backward_conv(plan, l, first);
        break;
    case LAYER_NORM:
        add_op(plan, LAC_DEMO_BACKWARD,
               "autograd::engine::evaluate_function: CudnnBatchNormBackward0",
               "aten::cudnn_batch_norm_backward", NULL);
        add_kernel(plan,
                   plan->channels_last
                       ? "void cudnn::batchnorm_bwtr_nhwc_semiPersist<__half, __half, float, "
                         "float, 512, 8, 4, 2, 0>(cudnn::BNBwParams)"
                       : "void cudnn::bn_bw_1C11_kernel_new<__half, float, float2, 512, true, 1>("
                         "float, float, float, float, cudnnTensorStruct, __half const*)",
                   4.2 * out, 72, 8192, false);
        break;
    case LAYER_RELU:
        add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: ReluBackward0",
               "aten::threshold_backward", NULL);
        add_kernel(plan, RELU_BACK_NAME, 3.0 * out, 24, 0, false);
        break;
    case LAYER_ADD:
        add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: AddBackward0",
               "aten::add_", NULL);
        add_kernel(plan, ADD_NAME, 3.0 * out, 20, 0, false);
        break;
    case LAYER_MAXPOOL:
        add_op(plan, LAC_DEMO_BACKWARD,
               "autograd::engine::evaluate_function: MaxPool2DWithIndicesBackward0",
               "aten::max_pool2d_with_indices_backward", NULL);
        add_kernel(plan,
                   "void at::native::(anonymous namespace)::max_pool_backward_nhwc<c10::Half, "
                   "float>(c10::Half const*, long const*, int, int, int, int, int)",
                   8.0 * out, 48, 16384, false);
        break;
    default:
        break;
    }
}

static void push_layer(struct plan *plan, struct layer layer)
{
    if (plan->layer_count < LAYERS_MAX) {
        plan->layers[plan->layer_count++] = layer;
    } else {
        plan->failed = true;
    }
}

/* A convolution, its normalization and, but for the last of a block, its activation. */
static void push_conv_norm(struct plan *plan, struct layer layer, bool relu)
{
    layer.kind = LAYER_CONV;
    push_layer(plan, layer);
    layer.kind = LAYER_NORM;
    push_layer(plan, layer);
    if (relu) {
        layer.kind = LAYER_RELU;
        push_layer(plan, layer);
    }
}

static void push_layers(struct plan *plan)
{
    static const char *const MODULE[4] = {"layer1", "layer2", "layer3", "layer4"};
    static const int32_t BLOCKS[4] = {3, 4, 6, 3};
    push_conv_norm(plan, (struct layer){LAYER_CONV, 3, 64, 112, 224, 7, "stem"}, true);
    push_layer(plan, (struct layer){LAYER_MAXPOOL, 64, 64, 56, 112, 3, "stem"});
    int32_t in = 64;
    int32_t in_width = 56;
    for (int32_t stage = 0; stage < 4; stage++) {
        int32_t mid = 64 << stage;
        int32_t width = 56 >> stage;
        for (int32_t block = 0; block < BLOCKS[stage]; block++) {
            push_conv_norm(
                plan, (struct layer){LAYER_CONV, in, mid, in_width, in_width, 1, MODULE[stage]},
                true);
            push_conv_norm(plan,
                           (struct layer){LAYER_CONV, mid, mid, width, in_width, 3, MODULE[stage]},
                           true);
            push_conv_norm(plan,
                           (struct layer){LAYER_CONV, mid, 4 * mid, width, width, 1, MODULE[stage]},
                           false);
            if (block == 0) {
                push_conv_norm(
                    plan,
                    (struct layer){LAYER_CONV, in, 4 * mid, width, in_width, 1, MODULE[stage]},
                    false);
            }
            struct layer sum = {LAYER_ADD, 4 * mid, 4 * mid, width, width, 1, MODULE[stage]};
            push_layer(plan, sum);
            sum.kind = LAYER_RELU;
            push_layer(plan, sum);
            in = 4 * mid;
            in_width = width;
        }
    }
}

static void head(struct plan *plan)
{
    add_op(plan, LAC_DEMO_FORWARD, "aten::adaptive_avg_pool2d", "aten::mean", "head");
    add_kernel(plan,
               "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half, "
               "at::native::MeanOps<c10::Half, float, float>, unsigned int, c10::Half, 4> >("
               "at::native::ReduceOp<c10::Half>)",
               90000.0, 32, 16, false);
    add_op(plan, LAC_DEMO_FORWARD, "aten::linear", "aten::addmm", "head");
    add_kernel(plan, "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_tn", 45000.0, 118, 12288, false);
    add_op(plan, LAC_DEMO_FORWARD, "aten::cross_entropy_loss", "aten::log_softmax", "head");
    add_kernel(plan,
               "void (anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, (anonymous "
               "namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)",
               12000.0, 30, 2048, false);
    add_op(plan, LAC_DEMO_FORWARD, "aten::nll_loss_nd", "aten::nll_loss_forward", "head");
    add_kernel(plan,
               "void at::native::(anonymous "
               "namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*)",
               6000.0, 20, 128, false);
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: NllLossBackward0",
           "aten::nll_loss_backward", NULL);
    add_kernel(plan,
               "void at::native::(anonymous "
               "namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(float*)",
               5000.0, 20, 0, false);
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: LogSoftmaxBackward0",
           "aten::_log_softmax_backward_data", NULL);
    add_kernel(plan,
               "void (anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, "
               "(anonymous namespace)::LogSoftMaxBackwardEpilogue>(float*, float*, float*, int)",
               13000.0, 32, 2048, false);
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: AddmmBackward0",
           "aten::mm", NULL);
    add_kernel(plan, "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", 44000.0, 118, 12288, false);
    add_kernel(plan, "volta_fp16_s884gemm_fp16_64x128_ldg8_f2f_nt", 47000.0, 120, 12288, false);
    add_op(plan, LAC_DEMO_BACKWARD, "autograd::engine::evaluate_function: MeanBackward1",
           "aten::div", NULL);
    add_kernel(plan, ADD_NAME, 90000.0, 20, 0, false);
}

static void optimizer(struct plan *plan)
{
    add_op(plan, LAC_DEMO_OPTIMIZER, "aten::_fused_sgd_", NULL, NULL);
    double bytes = 25.6e6 * 4.0 * 5.0;
    for (int32_t i = 0; i < FUSED_OPTIMIZER_KERNELS; i++) {
        add_kernel(plan, OPTIMIZER_NAME, bytes / BYTES_PER_NS / FUSED_OPTIMIZER_KERNELS, 48, 0,
                   false);
    }
}

/* Make the kernels of one group take `target_ns` together with a pause after each; the last one
 * takes up what rounding leaves. */
static bool scale(struct lac_demo_network *net, bool layout, int64_t target_ns, int64_t pause_ns)
{
    double sum = 0.0;
    int64_t count = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < net->kernel_count; i++) {
        if (net->kernels[i].is_layout == layout) {
            sum += (double)net->kernels[i].dur_ns;
            count++;
            last = i;
        }
    }
    if (count == 0) {
        return true;
    }
    int64_t room_ns = target_ns - count * pause_ns;
    if (room_ns < count) {
        return false;
    }
    int64_t used_ns = 0;
    for (uint32_t i = 0; i < net->kernel_count; i++) {
        struct lac_demo_kernel *k = &net->kernels[i];
        if (k->is_layout == layout) {
            k->dur_ns = (int64_t)((double)k->dur_ns * (double)room_ns / sum);
            used_ns += k->dur_ns;
        }
    }
    net->kernels[last].dur_ns += room_ns - used_ns;
    return net->kernels[last].dur_ns > 0;
}

enum lac_status lac_demo_network_build(int32_t batch_size, bool channels_last, int64_t compute_ns,
                                       int64_t layout_ns, int64_t pause_ns,
                                       struct lac_demo_network *ret_network)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return LAC_ERR_NOMEM;
    }
    plan->batch = batch_size;
    plan->channels_last = channels_last;
    push_layers(plan);
    forward_cast(plan, 6.0 * batch_size * 3 * 224 * 224, "stem");
    for (int32_t i = 0; i < plan->layer_count; i++) {
        forward_layer(plan, &plan->layers[i]);
    }
    head(plan);
    for (int32_t i = plan->layer_count - 1; i >= 0; i--) {
        backward_layer(plan, &plan->layers[i], i == 0);
    }
    optimizer(plan);
    enum lac_status status = plan->failed ? LAC_ERR_NOMEM : LAC_OK;
    if (status == LAC_OK && (!scale(&plan->net, false, compute_ns, pause_ns) ||
                             !scale(&plan->net, true, layout_ns, pause_ns))) {
        status = LAC_ERR_MISUSE;
    }
    if (status == LAC_OK) {
        *ret_network = plan->net;
    } else {
        lac_demo_network_done(&plan->net);
    }
    free(plan);
    return status;
}

void lac_demo_network_done(struct lac_demo_network *network)
{
    free(network->kernels);
    free(network->ops);
    *network = (struct lac_demo_network){0};
}
