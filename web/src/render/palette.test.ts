import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';
import {contrast, hashName, oklchToRgb, packRgb, parseCssColor, type Rgb} from './color';
import {Palette, sliceColor, SliceKind} from './palette';

const NAMES = Array.from({length: 400}, (_, i) => `kernel_${i.toString(36)}_${i * 7919}`);

test('text on every slice color has a contrast of 4.5 or more, in both themes', () => {
  const texts = {light: parseCssColor('#1a1d22'), dark: parseCssColor('#eef0f3')};
  for (const theme of ['light', 'dark'] as const) {
    for (const kind of Object.values(SliceKind)) {
      if (kind === SliceKind.gap) continue; // letters on causes have colors of their own
      for (const name of [...NAMES, undefined]) {
        const ratio = contrast(sliceColor(theme, kind, name), texts[theme] as Rgb);
        assert.ok(ratio >= 4.5, `${theme} kind ${kind} ${String(name)}: ${ratio.toFixed(2)}`);
      }
    }
  }
});

test('what a GPU ran has a contrast of 3 or more to the background, in both themes', () => {
  const style = readFileSync('src/style/base.css', 'utf8');
  const [light, dark] = [...style.matchAll(/--surface: (#\w+)/g)].map(match => match[1] ?? '');
  for (const [theme, ground] of [
    ['light', light],
    ['dark', dark],
  ] as const) {
    for (const kind of [SliceKind.kernel, SliceKind.copy, SliceKind.memset]) {
      for (const name of [...NAMES, undefined]) {
        const ratio = contrast(sliceColor(theme, kind, name), parseCssColor(ground ?? '') as Rgb);
        assert.ok(ratio >= 3, `${theme} kind ${kind} ${String(name)}: ${ratio.toFixed(2)}`);
      }
    }
  }
});

/** Distance from gray: largest less smallest channel. */
const strength = (c: Rgb): number => Math.max(...c) - Math.min(...c);

test('busy is calm: every cause of idle time is a stronger color than every kernel', () => {
  const causes = ['data_wait', 'sync', 'launch', 'copy_wait', 'allocator', 'comm', 'host'];
  for (const theme of ['light', 'dark'] as const) {
    const kernels = NAMES.map(name => strength(sliceColor(theme, SliceKind.kernel, name)));
    for (const cause of causes) {
      assert.ok(strength(sliceColor(theme, SliceKind.gap, cause)) > Math.max(...kernels), cause);
    }
  }
});

test('a name has one color, whatever its number', () => {
  assert.equal(hashName('ProfilerStep#9'), hashName('ProfilerStep#10'));
  assert.notEqual(hashName('gemm_128x64_nt'), hashName('gemm_256x64_nt'));
  assert.notEqual(hashName('aten::add'), hashName('aten::mul'));
});

test('conversions: oklch, packing, css', () => {
  assert.deepEqual(oklchToRgb(1, 0, 0), [255, 255, 255]);
  assert.deepEqual(oklchToRgb(0, 0, 0), [0, 0, 0]);
  assert.equal(packRgb([1, 2, 3]), 0xff030201);
  assert.deepEqual(parseCssColor('#0a0b0c'), [10, 11, 12]);
  assert.deepEqual(parseCssColor('rgb(1, 2, 3)'), [1, 2, 3]);
  assert.equal(parseCssColor('teal'), undefined);
});

test('a search lights up what matches and steps everything else back', () => {
  const texts = new Map([
    [1, 'aten::conv2d'],
    [2, 'aten::relu'],
  ]);
  const names = {version: 1, text: (id: number) => texts.get(id)};
  const palette = new Palette(names, 'light', [255, 255, 255], [255, 200, 0]);
  const before = palette.color(SliceKind.op, 2);
  palette.setSearch('CONV');
  assert.equal(palette.color(SliceKind.op, 1), packRgb([255, 200, 0]));
  assert.notEqual(palette.color(SliceKind.op, 2), before);
  const version = palette.version;
  palette.setSearch('');
  assert.ok(palette.version > version);
  assert.equal(palette.color(SliceKind.op, 2), before);
});

test('a name that arrives changes its color', () => {
  const texts = new Map<number, string>();
  const names = {version: 1, text: (id: number) => texts.get(id)};
  const palette = new Palette(names, 'dark', [0, 0, 0], [255, 200, 0]);
  const gray = palette.color(SliceKind.op, 5);
  assert.equal(palette.unknown, 1);
  texts.set(5, 'aten::conv2d');
  names.version++;
  assert.equal(palette.namesVersion, 2);
  assert.notEqual(palette.color(SliceKind.op, 5), gray);
  assert.equal(palette.unknown, 1);
  assert.equal(palette.version, 0); // no other color is another one now
});
