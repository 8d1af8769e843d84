import assert from 'node:assert/strict';
import test from 'node:test';
import {shortName} from './short_name';
import {elideMiddle, TextFitter} from './text_fit';

test('text that fits is whole; text that does not loses its middle', () => {
  const fitter = new TextFitter(text => 6 * text.length);
  assert.equal(fitter.fit('aten::conv2d', 72), 'aten::conv2d');
  const cut = fitter.fit('volta_fp16_s884cudnn_fp16_256x128_nhwc', 120);
  assert.match(cut, /^volta_.*\u2026.*nhwc$/);
  assert.ok(cut.length * 6 <= 120);
});

test('fewer than three characters are not worth drawing', () => {
  const fitter = new TextFitter(text => 6 * text.length);
  assert.equal(fitter.fit('aten::conv2d', 20), '');
  assert.equal(fitter.fit('ab', 12), 'ab');
  assert.equal(fitter.fit('', 100), '');
  assert.equal(fitter.fit('abc', -5), '');
});

test('a name is measured once', () => {
  let measured = 0;
  const fitter = new TextFitter(text => {
    measured++;
    return text.length;
  });
  for (let i = 0; i < 10; i++) fitter.fit('gemm', 10);
  assert.equal(measured, 1);
});

test('eliding keeps the ends, and whole characters', () => {
  assert.equal(elideMiddle('abcdefghijklmnop', 10), 'abcdef\u2026mnop');
  assert.equal(elideMiddle('abcdefgh', 4), 'abcd\u2026');
  assert.equal(elideMiddle('abc', 5), 'abc');
  assert.equal(elideMiddle('\u{1f600}\u{1f601}\u{1f602}\u{1f603}', 2), '\u{1f600}\u{1f601}\u2026');
});

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

test('what is drawn never exceeds its room, however uneven the letters', () => {
  const width = (text: string): number =>
    [...text].reduce((n, c) => n + (c === 'W' ? 12 : c === 'i' ? 2 : 6), 0);
  const fitter = new TextFitter(width);
  for (const text of ['WWWWWWiiiiiiiiiiiiii', 'iiiiiiiiiiiiiiWWWWWW', 'aWiWiWiWiWiWiWiWiWb']) {
    for (let room = 0; room < 200; room += 7) {
      assert.ok(width(fitter.fit(text, room)) <= room, `${text} ${room}`);
    }
  }
});
