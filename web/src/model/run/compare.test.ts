import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {WentRow} from '../comparison';
import {histogramsOf, medianOf} from './histogram';
import {fallsOf} from './waterfall';

const row = (name: string, aNs: number, bNs: number): WentRow => ({
  name,
  cause: undefined,
  aNs,
  bNs,
  deltaNs: bNs - aNs,
});

test('a waterfall leads from A to B, what shrank first', () => {
  const falls = fallsOf([row('grew', 10, 30), row('same', 5, 5), row('gone', 60, 0)], 100, 60);
  assert.deepEqual(
    falls.rows.map(fall => [fall.name, fall.from, fall.to]),
    [
      ['gone', 100, 40],
      ['same', 40, 40],
      ['grew', 40, 60],
    ],
  );
  assert.deepEqual([falls.aTo, falls.bTo, falls.restNs], [100, 60, 0]);
});

test('what the rows do not tell is said, and bars stay in the picture', () => {
  const falls = fallsOf([row('grew', 0, 80)], 100, 150);
  assert.equal(falls.restNs, -30);
  assert.ok(falls.rows.every(fall => fall.from >= 0 && fall.to <= 100));
});

test('every step is in one bin of its own trace', () => {
  const both = histogramsOf([10, 11, 12, 10], [20, 25]);
  assert.ok(both);
  const sum = (list: readonly number[]): number => list.reduce((all, each) => all + each, 0);
  assert.ok(Math.abs(sum(both.a) - 1) < 1e-9 && Math.abs(sum(both.b) - 1) < 1e-9);
  assert.equal(both.fromNs, 10);
  assert.ok((both.b[both.b.length - 1] ?? 0) > 0, 'the longest is in the last bin');
  assert.equal(histogramsOf([], [1]), undefined);
  assert.equal(histogramsOf([7], [7]), undefined);
  assert.equal(medianOf([3, 1, 2, 4]), 2);
  assert.equal(medianOf([]), undefined);
});
