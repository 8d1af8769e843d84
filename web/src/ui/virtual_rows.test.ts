import assert from 'node:assert/strict';
import {test} from 'node:test';
import {rowRange} from './virtual_rows';

test('only rows in sight, and a few more', () => {
  assert.deepEqual(rowRange(0, 320, 32, 100_000), {first: 0, end: 18});
  assert.deepEqual(rowRange(32_000, 320, 32, 100_000), {first: 992, end: 1018});
  assert.deepEqual(rowRange(0, 320, 32, 3), {first: 0, end: 3});
  assert.deepEqual(rowRange(9999, 320, 32, 0), {first: 0, end: 0});
});
