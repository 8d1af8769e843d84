"""Operators and kernels of layers, as PyTorch names them, with the share of a layer's time that each takes."""
GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>(pytorch_flash::Flash_fwd_params)"
FLASH_BACK = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8>>(Flash_bwd_params)"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, float, c10::Half const*)"
NORM_BACK = "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::Half, float>(c10::Half const*)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, at::detail::Array<char*, 2>>(int)"
GELU_BACK = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl, at::detail::Array<char*, 3>>(int)"
CONV = ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_"
        "kernel_cudnn")
CONV_BACK = CONV.replace("fprop", "dgrad")
BATCH_NORM = "void cudnn::bn_fw_tr_1C11_kernel_NHWC<__half2, float, 512, true, 1, true>(cudnnTensorStruct, __half2 const*)"
BATCH_NORM_BACK = "void cudnn::bn_bw_1C11_kernel_new<__half2, float, float2, 512, true, 1>(float, float, float, float, cudnnTensorStruct)"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar, at::detail::Array<char*, 2>>(int)"
RELU_BACK = "void at::native::vectorized_elementwise_kernel<4, at::native::threshold_backward, at::detail::Array<char*, 3>>(int)"
ADAM = ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>")
FOREACH = ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, "
           "at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>")
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>(int)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE_SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>(cudnn::ops::nchw2nhwc_params_t<float>)"
TO_NCHW = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false, (cudnnKernelDataType_t)0>(cudnn::ops::nhwc2nchw_params_t<float>)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>>"
LOSS = "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float*, long*)"

# (operator, kernel, weight, the node of the backward pass, its operator, its kernel, how many of those)
LAYERS = {
    "transformer": [
        ("aten::native_layer_norm", NORM, 3, "NativeLayerNormBackward0", "aten::native_layer_norm_backward", NORM_BACK, 1),
        ("aten::addmm", GEMM, 24, "AddmmBackward0", "aten::mm", GEMM, 2),
        ("aten::_flash_attention_forward", FLASH, 16, "FlashAttentionBackward0", "aten::_flash_attention_backward", FLASH_BACK, 1),
        ("aten::addmm", GEMM, 9, "AddmmBackward0", "aten::mm", GEMM, 2),
        ("aten::native_layer_norm", NORM, 3, "NativeLayerNormBackward0", "aten::native_layer_norm_backward", NORM_BACK, 1),
        ("aten::addmm", GEMM, 32, "AddmmBackward0", "aten::mm", GEMM, 2),
        ("aten::gelu", GELU, 3, "GeluBackward0", "aten::gelu_backward", GELU_BACK, 1),
        ("aten::addmm", GEMM, 30, "AddmmBackward0", "aten::mm", GEMM, 2),
    ],
    "convolutional": [
        ("aten::cudnn_convolution", CONV, 40, "ConvolutionBackward0", "aten::convolution_backward", CONV_BACK, 2),
        ("aten::cudnn_batch_norm", BATCH_NORM, 4, "CudnnBatchNormBackward0", "aten::cudnn_batch_norm_backward", BATCH_NORM_BACK, 1),
        ("aten::clamp_min_", RELU, 2, "ReluBackward0", "aten::threshold_backward", RELU_BACK, 1),
        ("aten::cudnn_convolution", CONV, 30, "ConvolutionBackward0", "aten::convolution_backward", CONV_BACK, 2),
        ("aten::cudnn_batch_norm", BATCH_NORM, 4, "CudnnBatchNormBackward0", "aten::cudnn_batch_norm_backward", BATCH_NORM_BACK, 1),
        ("aten::clamp_min_", RELU, 2, "ReluBackward0", "aten::threshold_backward", RELU_BACK, 1),
    ],
}
