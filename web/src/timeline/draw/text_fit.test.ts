import assert from 'node:assert/strict';
import test from 'node:test';
import {TextFitter} from './text_fit';

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
