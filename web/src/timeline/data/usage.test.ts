import assert from 'node:assert/strict';
import {test} from 'node:test';
import {formatPct} from '../../base/format';
import {parseCssColor} from '../../render/color';
import {describeUsage, usageLayers} from './usage';

const part = (parts: readonly number[]): {total_ns: number; parts: number[]} => ({
  total_ns: parts.reduce((a, b) => a + b, 0),
  parts: [...parts],
});
const STRIP = {
  duration_ns: 1000,
  device: 0,
  t0_ns: 100,
  t1_ns: 300,
  points: 2,
  work: {compute: part([800, 100]), exposed_copy: part([50, 0])},
  waiting: {},
  kinds: {matrix: part([600, 0]), memory: part([200, 100])},
};

test('layers are what there is, computing by kind first', () => {
  const layers = usageLayers(STRIP, 'light');
  assert.deepEqual(
    layers.map(layer => layer.word),
    ['GEMM', 'elementwise and memory', 'copies alone'],
  );
  assert.equal(usageLayers({work: undefined, kinds: undefined}, 'dark').length, 0);
});

test('a part in words, by its time', () => {
  assert.equal(
    describeUsage(STRIP, 150),
    `GEMM ${formatPct(60)}, elementwise and memory ${formatPct(20)}, copies alone ${formatPct(5)}`,
  );
  assert.equal(describeUsage(STRIP, 299), `elementwise and memory ${formatPct(10)}`);
  assert.equal(describeUsage(STRIP, 300), undefined);
  assert.equal(describeUsage({...STRIP, kinds: {}, work: {}}, 150), 'nothing ran');
});

test('every layer stands out from its ground by 3:1 or more', () => {
  const kinds = ['matrix', 'convolution', 'attention', 'memory', 'other'];
  const all = {
    kinds: Object.fromEntries(kinds.map(kind => [kind, part([1])])),
    work: {exposed_comm: part([1]), exposed_copy: part([1])},
  };
  for (const [theme, ground] of [
    ['light', [255, 255, 255]],
    ['dark', [22, 24, 29]],
  ] as const)
    for (const layer of usageLayers(all, theme))
      assert.ok(contrast(parseCssColor(layer.color) ?? [0, 0, 0], ground) >= 3, layer.word);
});

function contrast(a: readonly number[], b: readonly number[]): number {
  const light = (color: readonly number[]): number => {
    const [r = 0, g = 0, b_ = 0] = color.map(v =>
      v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b_;
  };
  const [low = 0, high = 0] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
