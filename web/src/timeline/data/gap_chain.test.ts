import assert from 'node:assert/strict';
import {test} from 'node:test';
import {sliceShape, type SliceInfo} from '../../api/types';
import {lastEnded, lateBatch, waitInGap} from './gap_chain';

function slice(id: number, name: string, start: number, dur: number, batch?: number): SliceInfo {
  const loader = batch === undefined ? null : {batch, worker: 0, cpu_ns: null};
  return sliceShape({id, track: 0, name, start_ns: start, dur_ns: dur, loader}, '');
}

test('the wait that covers the gap is chosen', () => {
  const slices = [
    slice(1, 'step', 0, 900),
    slice(2, 'loader.wait', 0, 90, 3),
    slice(3, 'loader.wait', 100, 400, 4),
  ];
  assert.equal(waitInGap(slices, 80, 400)?.id, 3);
  assert.equal(waitInGap(slices, 600, 700), undefined);
});

test('the batch that was waited for leads to its fetch, else to its last part', () => {
  const wait = slice(1, 'loader.wait', 100, 400, 4);
  const fetch = slice(2, 'loader.fetch', 50, 440, 4);
  const decode = slice(3, 'loader.decode', 60, 200, 4);
  const collate = slice(4, 'loader.collate', 300, 190, 4);
  const other = slice(5, 'loader.fetch', 0, 500, 5);
  assert.equal(lateBatch(wait, [other, decode, fetch])?.id, 2);
  assert.equal(lateBatch(wait, [other, decode, collate])?.id, 4);
});

test('nothing is made up: no batch number, no line', () => {
  const fetch = slice(2, 'loader.fetch', 50, 440, 4);
  assert.equal(lateBatch(slice(1, 'loader.wait', 100, 400), [fetch]), undefined);
  assert.equal(lateBatch(slice(1, 'loader.wait', 100, 400, 5), [fetch]), undefined);
  assert.equal(lateBatch(slice(1, 'loader.wait', 600, 400, 4), [fetch]), undefined);
});

test('only what ended during the wait can have delivered', () => {
  const wait = slice(1, 'loader.wait', 100, 400, 4);
  const ids = lastEnded(wait, [
    slice(2, 'loader.fetch', 50, 440),
    slice(3, 'loader.collate', 300, 190),
    slice(4, 'loader.fetch', 300, 900),
    slice(5, 'other', 100, 50),
    slice(6, 'loader.fetch', 0, 90),
  ]).map(s => s.id);
  assert.deepEqual(ids, [2, 3]);
});
