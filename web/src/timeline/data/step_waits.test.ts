import assert from 'node:assert/strict';
import {test} from 'node:test';
import {stepPointsShape} from '../../api/types';
import {waitsByStep} from './step_waits';

const POINTS = {
  count: 3,
  per: 1,
  start_ns: [10, 20, 30],
  mean_ns: [10, 10, 10],
  max_ns: [10, 10, 10],
  waiting: {device: 0, steps: {data_wait: [0, 4, 1], host: [2, 5, 0]}, bin_ns: 1, bins: {}},
};

test('each step has its own waits, the longest first', () => {
  const waits = waitsByStep(stepPointsShape(POINTS, ''), [30, 10, 20, 99]);
  assert.deepEqual(waits, [
    [['host', 2]],
    [
      ['host', 5],
      ['data_wait', 4],
    ],
    [['data_wait', 1]],
    [],
  ]);
});

test('points of several steps, or without a device, say nothing of one', () => {
  assert.deepEqual(waitsByStep(stepPointsShape({...POINTS, per: 2}, ''), [10]), []);
  assert.deepEqual(waitsByStep(stepPointsShape({...POINTS, waiting: null}, ''), [10]), []);
});
