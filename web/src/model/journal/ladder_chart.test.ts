import assert from 'node:assert/strict';
import {test} from 'node:test';
import {rungsOf, topOf} from './ladder_chart';

test('a prediction in time stands beside the throughput that it means', () => {
  const [first, second, third] = rungsOf([
    {throughput_per_s: 340, step_mean_ns: 750e6, not_computing_pct: 53},
    {
      throughput_per_s: 690,
      step_mean_ns: 371e6,
      from_previous: {prediction: {low_ns: 360e6, mid_ns: 371e6, high_ns: 400e6, is_within: true}},
    },
    {from_previous: {prediction: {low_ns: 1, mid_ns: 2, high_ns: 3, is_within: false}}},
  ]);
  assert.equal(first?.predicted, undefined);
  assert.equal(first?.computingPct, 47);
  assert.equal(second?.predicted?.mid, 690);
  assert.ok((second?.predicted?.high ?? 0) > 690 && (second?.predicted?.low ?? 0) < 690);
  assert.equal(third?.predicted, undefined);
  assert.equal(third?.perS, undefined);
});

test('the top has room for what was predicted', () => {
  const rungs = rungsOf([
    {
      throughput_per_s: 100,
      step_mean_ns: 1e9,
      from_previous: {prediction: {low_ns: 5e8, mid_ns: 6e8, high_ns: 7e8, is_within: false}},
    },
  ]);
  assert.equal(topOf(rungs), 200);
  assert.equal(topOf([]), 0);
});
