import assert from 'node:assert/strict';
import test from 'node:test';
import type {GapInfo} from '../../api/types';
import {ns} from '../../base/units';
import {GapList, stepGap} from './gap_list';

const gap = (start: number, dur: number, signature: number, device = 0): GapInfo => ({
  start_ns: ns(start),
  dur_ns: ns(dur),
  device,
  cause: 'data_wait',
  cause_ns: {},
  root_cause: undefined,
  wait_slice: undefined,
  batch_slice: undefined,
  ended_by: undefined,
  signature,
  per_step: undefined,
});

test('gaps of all devices, largest first; a failure is not kept', async () => {
  let fails = true;
  const list = new GapList(
    device =>
      fails
        ? Promise.reject(new Error('away'))
        : Promise.resolve([gap(device, 50 + device, 1, device), gap(10, 20, 2, device)]),
    [0, 1, 1],
  );
  await assert.rejects(list.load());
  fails = false;
  const gaps = await list.load();
  assert.deepEqual(
    gaps.map(g => [g.device, g.dur_ns]),
    [
      [1, 51],
      [0, 50],
      [0, 20],
      [1, 20],
    ],
  );
});

test('stepping through gaps: by size, in a circle, or of one kind only', () => {
  const gaps = [gap(5, 90, 1), gap(1, 80, 2), gap(9, 70, 1)];
  const at = (g: GapInfo | undefined) => g && {device: g.device, t0: g.start_ns};
  const first = stepGap(gaps, undefined, 1);
  assert.equal(first, gaps[0]);
  assert.equal(stepGap(gaps, at(first), 1), gaps[1]);
  assert.equal(stepGap(gaps, at(gaps[2]), 1), gaps[0]);
  assert.equal(stepGap(gaps, at(first), -1), gaps[2]);
  assert.equal(stepGap(gaps, undefined, -1), gaps[2]);
  assert.equal(
    stepGap(gaps, at(first), 1, g => g.signature === 1),
    gaps[2],
  );
  assert.equal(stepGap([], undefined, 1), undefined);
});
