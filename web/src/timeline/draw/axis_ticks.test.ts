import assert from 'node:assert/strict';
import test from 'node:test';
import {axisTicks, niceStep} from './axis_ticks';

const plain = (text: string): string => text.replaceAll('\u202f', ' ');
const labels = (t0: number, t1: number, width = 1000): string[] =>
  axisTicks(t0, t1, width, 100).ticks.map(t => plain(t.label));

test('steps are 1, 2 or 5 times a power of ten, never below a nanosecond', () => {
  const cases: [number, number][] = [
    [0.3, 1],
    [1, 1],
    [1.1, 2],
    [2, 2],
    [3, 5],
    [7, 10],
    [1000, 1000],
    [1001, 2000],
    [4.2e8, 5e8],
    [NaN, 1],
  ];
  for (const [at, step] of cases) assert.equal(niceStep(at), step, `${at}`);
});

test('long times are in minutes, hours and days', () => {
  const h = 3.6e12;
  assert.deepEqual(labels(0, 7.5e11), [
    '0 min',
    '2 min',
    '4 min',
    '6 min',
    '8 min',
    '10 min',
    '12 min',
  ]);
  assert.deepEqual(labels(0, 7 * h), ['0 h', '1 h', '2 h', '3 h', '4 h', '5 h', '6 h', '7 h']);
  assert.deepEqual(labels(24 * h, 720 * h).slice(0, 3), ['5 d', '10 d', '15 d']);
  assert.equal(plain(axisTicks(0, 7 * h, 1000, 100).text(5.4e12)), '1.50 h');
});

test('ticks are apart as asked, inside the window, on round times', () => {
  for (const [t0, t1] of [
    [0, 8.69e9],
    [1.2345e9, 1.2355e9],
    [17, 93],
    [0, 64],
  ] as const) {
    const {ticks, stepNs} = axisTicks(t0, t1, 1200, 96);
    assert.ok(ticks.length >= 1 && ticks.length <= 13, `${ticks.length}`);
    for (const {ns} of ticks) {
      assert.ok(ns >= t0 && ns <= t1);
      assert.ok(Math.abs(ns / stepNs - Math.round(ns / stepNs)) < 1e-6);
    }
    if (stepNs > 1) assert.ok((stepNs * 1200) / (t1 - t0) >= 95);
  }
});

test('labels have as many digits as the step needs, in a unit that the times reach', () => {
  assert.deepEqual(labels(0, 10e9).slice(0, 3), ['0 s', '1 s', '2 s']);
  assert.deepEqual(labels(0, 1e6).slice(0, 3), ['0.0 ms', '0.1 ms', '0.2 ms']);
  assert.deepEqual(labels(924.2e6, 924.21e6).slice(0, 2), ['924.200 ms', '924.201 ms']);
  assert.deepEqual(labels(2.3e9, 2.31e9).slice(0, 2), ['2.300 s', '2.301 s']);
  assert.deepEqual(labels(0, 64).slice(0, 2), ['0 ns', '10 ns']);
});

test('neighboring labels differ', () => {
  for (let span = 64; span < 1e13; span *= 2.3) {
    for (const t0 of [0, span * 0.77, 3e9, 5e12]) {
      const texts = labels(t0, t0 + span);
      assert.equal(new Set(texts).size, texts.length, `${t0} ${span}: ${texts.join()}`);
    }
  }
});

test('deep in a long trace labels are offsets from a time that is told', () => {
  const {anchorNs, ticks} = axisTicks(3600e9 + 100, 3600e9 + 300, 1000, 100);
  assert.equal(anchorNs, ticks[0]?.ns);
  assert.ok(ticks.every(t => t.label.length < 14));
  assert.deepEqual(
    ticks.slice(1, 3).map(t => plain(t.label)),
    ['+20 ns', '+40 ns'],
  );
});

test('an empty or broken window draws nothing and does not hang', () => {
  assert.deepEqual(axisTicks(NaN, NaN, 100, 10).ticks, []);
  assert.ok(axisTicks(0, Infinity, 100, 10).ticks.length <= 1000);
  assert.ok(axisTicks(0, 1e9, 0, 10).ticks.length <= 1000);
});
