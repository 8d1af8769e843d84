import assert from 'node:assert/strict';
import test from 'node:test';
import {nextStation, sameStation, type BatchHit} from './batch_chain';

const hit = (slice: number, name: string, start_ns: number): BatchHit => ({
  slice,
  name,
  start_ns,
  dur_ns: 10,
});

test('a batch goes from its worker over pinning to who waits for it, and round again', () => {
  const hits = [
    hit(1, 'loader.fetch', 0),
    hit(2, 'loader.decode', 2),
    hit(3, 'loader.pin', 20),
    hit(4, 'loader.wait', 30),
  ];
  assert.equal(nextStation(hits, 'loader.fetch', 0)?.slice, 3);
  assert.equal(nextStation(hits, 'loader.pin', 20)?.slice, 4);
  assert.equal(nextStation(hits, 'loader.wait', 30)?.slice, 1);
  // from a part of the fetch: to the fetch itself
  assert.equal(nextStation(hits, 'loader.decode', 2)?.slice, 1);
});

test('what was not recorded is left out', () => {
  const hits = [hit(1, 'loader.fetch', 0), hit(4, 'loader.wait', 30)];
  assert.equal(nextStation(hits, 'loader.fetch', 0)?.slice, 4);
  assert.equal(nextStation([hit(1, 'loader.fetch', 0)], 'loader.fetch', 0), undefined);
});

test('numbers begin again each epoch: the nearest in time is meant', () => {
  const hits = [
    hit(1, 'loader.wait', 100),
    hit(2, 'loader.wait', 9000),
    hit(3, 'loader.fetch', 8900),
  ];
  assert.equal(nextStation(hits, 'loader.fetch', 8900)?.slice, 2);
  assert.equal(sameStation(hits, 'loader.wait', 200)?.slice, 1);
  assert.equal(sameStation(hits, 'loader.read', 200)?.slice, 3);
});
