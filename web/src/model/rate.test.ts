import assert from 'node:assert/strict';
import {test} from 'node:test';
import {RateMeter} from './rate';

test('a rate needs two moments', () => {
  const meter = new RateMeter();
  assert.equal(meter.perSecond(), 0);
  meter.add(1000, 500);
  assert.equal(meter.perSecond(), 0);
  meter.add(1000, 600);
  assert.equal(meter.perSecond(), 0);
});

test('a rate follows the last seconds, not the whole', () => {
  const meter = new RateMeter();
  for (let s = 0; s <= 10; s++) meter.add(s * 1000, s * 10);
  assert.equal(meter.perSecond(), 10);
  for (let s = 11; s <= 20; s++) meter.add(s * 1000, 100 + (s - 10) * 1000);
  assert.equal(meter.perSecond(), 1000);
});
