import assert from 'node:assert/strict';
import test from 'node:test';
import type {CounterSamples} from '../../api/types';
import {ns} from '../../base/units';
import {counterRuns, rasterizeCounter} from './counter_columns';

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

/** The rows of a picture, a letter for each pixel. */
function drawn(of: CounterSamples, columns: number, height: number, high: number): string[] {
  const pixels = new Uint32Array(columns * height).fill(99);
  const colors = {line: 1, area: 2, band: 3};
  const runs = counterRuns(of, 0, columns * 10, columns);
  rasterizeCounter(runs, {low: 0, high}, columns, height, colors, pixels);
  return Array.from({length: height}, (_, y) =>
    [...pixels.subarray(y * columns, (y + 1) * columns)].map(p => ' -#|'[p] ?? '?').join(''),
  );
}

test('a line along the last values, over an area', () => {
  assert.deepEqual(drawn(samples([10, 3], [30, 1]), 5, 4, 3), [' --- ', ' ##- ', ' ##--', ' ####']);
});

test('all values of a column are a band behind the line', () => {
  const spike = {...samples([0, 1], [20, 1]), min: [1, 0], max: [1, 3]} as CounterSamples;
  assert.deepEqual(drawn(spike, 4, 4, 3), ['  | ', '  | ', '----', '##|#']);
});

test('values out of sight and a flat counter stay inside the picture', () => {
  assert.deepEqual(drawn(samples([0, 9]), 2, 3, 3), ['--', '##', '##']);
  assert.deepEqual(drawn(samples([0, 0]), 2, 2, 0), ['--', '##']);
});
