import assert from 'node:assert/strict';
import test from 'node:test';
import {FrameStats} from './frame_stats';

test('frame statistics: the nearest-rank percentile of the last frames', () => {
  const stats = new FrameStats();
  assert.equal(stats.percentile(95), 0);
  for (let i = 1; i <= 100; i++) stats.add(i);
  assert.equal(stats.percentile(95), 95);
  assert.equal(stats.percentile(50), 50);
  for (let i = 0; i < 600; i++) stats.add(2);
  assert.equal(stats.percentile(100), 2);
  assert.equal(stats.frames, 700);
});
