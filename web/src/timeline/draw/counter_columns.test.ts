import assert from 'node:assert/strict';
import test from 'node:test';
import type {CounterSamples} from '../../api/types';
import {ns} from '../../base/units';
import {counterRuns} from './counter_columns';

function samples(...values: readonly (readonly [number, number])[]): CounterSamples {
  return {
    ts_ns: values.map(([t]) => ns(t)),
    min: values.map(([, v]) => v),
    max: values.map(([, v]) => v),
    last: values.map(([, v]) => v),
  };
}

test('a value holds until the next one, and nothing is shown before the first', () => {
  const runs = counterRuns(samples([20, 5], [60, 7]), 0, 100, 10);
  assert.deepEqual(runs, [
    {x: 2, columns: 4, low: 5, high: 5, last: 5},
    {x: 6, columns: 1, low: 5, high: 7, last: 7},
    {x: 7, columns: 3, low: 7, high: 7, last: 7},
  ]);
});

test('the value from before the window holds at its begin', () => {
  assert.deepEqual(counterRuns(samples([20, 5]), 50, 100, 10), [
    {x: 0, columns: 10, low: 5, high: 5, last: 5},
  ]);
  assert.deepEqual(counterRuns(samples([20, 5], [200, 9]), 50, 100, 10), [
    {x: 0, columns: 10, low: 5, high: 5, last: 5},
  ]);
  assert.deepEqual(counterRuns(samples(), 0, 100, 10), []);
  assert.deepEqual(counterRuns(samples([200, 9]), 50, 100, 10), []);
});

test('each column has the extremes of its time, for any samples and window', () => {
  let seed = 11;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const times = [...new Set(Array.from({length: random(30)}, () => random(1000)))].sort(
      (a, b) => a - b,
    );
    const all = samples(...times.map(t => [t, random(5)] as const));
    const columns = 1 + random(40);
    const t0 = random(500);
    const t1 = t0 + columns * (1 + random(20)); // a whole number of ns a column
    const drawn = new Map<number, string>();
    for (const run of counterRuns(all, t0, t1, columns))
      for (let x = run.x; x < run.x + run.columns; x++) {
        assert.ok(!drawn.has(x), `column ${x} twice`);
        drawn.set(x, `${run.low}..${run.high}, ${run.last}`);
      }
    for (let x = 0; x < columns; x++) {
      const a = t0 + (x * (t1 - t0)) / columns;
      const b = t0 + ((x + 1) * (t1 - t0)) / columns;
      const values = all.ts_ns.flatMap((t, i) => (t >= a && t < b ? [all.last[i] as number] : []));
      const before = all.ts_ns.filter(t => t < a).length - 1;
      if (before >= 0) values.unshift(all.last[before] as number);
      const expected =
        values.length === 0
          ? undefined
          : `${Math.min(...values)}..${Math.max(...values)}, ${values.at(-1)}`;
      assert.equal(drawn.get(x), expected, `column ${x} of ${columns} in ${t0} to ${t1}`);
    }
  }
});
