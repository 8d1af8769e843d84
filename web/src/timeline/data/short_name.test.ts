import assert from 'node:assert/strict';
import test from 'node:test';
import {shortName} from './short_name';

test('what a person calls it', () => {
  const cases: [string, string][] = [
    ['aten::conv2d', 'aten::conv2d'],
    ['nchwToNhwcKernel', 'nchwToNhwcKernel'],
    [
      'void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 3ul> >(int, at::native::AddFunctor<float>)',
      'vectorized_elementwise_kernel<\u2026>',
    ],
    [
      'void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, 512, true>(cudnnTensorStruct)',
      'bn_fw_tr_1C11_kernel_NCHW<\u2026>',
    ],
    [
      'void (anonymous namespace)::softmax_warp_forward<float>(float*)',
      'softmax_warp_forward<\u2026>',
    ],
    ['torch/nn/modules/module.py(1194): _call_impl', '_call_impl'],
    ['ProfilerStep#12', 'step 12'],
    ['nn.Module: Owlv2Encoder_0', 'Owlv2Encoder_0'],
    ['enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__', 'DataLoader next'],
    ['Memcpy HtoD (Pageable -> Device)', 'Memcpy HtoD (Pageable -> Device)'],
    ['Optimizer.step#SGD.step', 'Optimizer.step#SGD.step'],
    [
      'autograd::engine::evaluate_function: ConvBackward0',
      'autograd::engine::evaluate_function: ConvBackward0',
    ],
    ['std::operator<<(x)', 'std::operator<<(x)'],
    ['', ''],
  ];
  for (const [name, short] of cases) assert.equal(shortName(name), short);
});

test('a hostile name is neither slow nor empty', () => {
  const deep = `void ${'a<'.repeat(30_000)}`;
  assert.notEqual(shortName(deep), '');
  assert.equal(shortName('<img src=x onerror=alert(1)>'), '<img src=x onerror=alert(1)>');
});
