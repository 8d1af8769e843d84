import assert from 'node:assert/strict';
import test from 'node:test';
import {ns} from '../../base/units';
import {RangeStore, valueAt, withValueBefore} from './counter_store';

const samples = (t0: number, t1: number) => ({
  ts_ns: [t0, (t0 + t1) / 2].map(ns),
  min: [1, 2],
  max: [1, 2],
  last: [1, 2],
});

test('the value of a counter is the last one before', () => {
  const s = samples(100, 300);
  assert.equal(valueAt(s, 99), undefined);
  assert.equal(valueAt(s, 100), 1);
  assert.equal(valueAt(s, 199), 1);
  assert.equal(valueAt(s, 200), 2);
  assert.equal(valueAt(s, 1e9), 2);
});

test('a range begins with the value that holds there', async () => {
  const asked: number[][] = [];
  const ask = (t0: number) =>
    withValueBefore(
      (_track, range) => {
        asked.push([range.t0, range.t1, range.points]);
        return Promise.resolve(
          range.points === 1 ? {ts_ns: [ns(40)], min: [1], max: [9], last: [5]} : samples(200, 300),
        );
      },
      1,
      {t0, t1: 400, points: 20},
      new AbortController().signal,
    );
  assert.deepEqual(await ask(100), {
    ts_ns: [40, 200, 250],
    min: [5, 1, 2],
    max: [5, 1, 2],
    last: [5, 1, 2],
  });
  assert.deepEqual(asked, [
    [100, 400, 20],
    [0, 100, 1],
  ]);
  asked.length = 0;
  assert.deepEqual(await ask(0), samples(200, 300));
  assert.deepEqual(await ask(200), samples(200, 300));
  assert.equal(asked.length, 2);
});

test('counters are asked for with a screen to either side, and again only when that is left', async () => {
  const asked: {t0: number; t1: number}[] = [];
  const store = new RangeStore(
    (_track, range) => {
      asked.push(range);
      return Promise.resolve(samples(range.t0, range.t1));
    },
    10_000,
    () => undefined,
  );
  const settle = () => new Promise(resolve => setImmediate(resolve));
  assert.equal(store.get(1, 4000, 5000), undefined);
  assert.equal(store.get(1, 4000, 5000), undefined);
  await settle();
  assert.ok(store.get(1, 4000, 5000));
  store.get(1, 3500, 4500);
  await settle();
  assert.deepEqual(
    asked.map(r => [r.t0, r.t1]),
    [[3000, 6000]],
  );
  store.get(1, 5500, 6500); // beyond what is there
  await settle();
  store.get(1, 6000, 6100); // eleven times closer: finer samples
  await settle();
  assert.deepEqual(
    asked.slice(1).map(r => [r.t0, r.t1]),
    [
      [4500, 7500],
      [5900, 6200],
    ],
  );
  store.get(1, 0, 10_000);
  await settle();
  store.get(1, 0, 10_000);
  assert.equal(asked.length, 4, 'the whole trace covers the whole trace');
});
