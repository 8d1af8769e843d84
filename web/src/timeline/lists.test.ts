import assert from 'node:assert/strict';
import test from 'node:test';
import {searchShape, type GapInfo, type SearchReply} from '../api/types';
import {ns} from '../base/units';
import {formatIndexSet} from '../render/tile_plan';
import {CounterStore, valueAt} from './counter_store';
import {FrameStats} from './frame_stats';
import {GapList, stepGap} from './gap_list';
import {NameStore} from './name_store';
import {countText} from './overlay';
import {SearchHits} from './search_hits';
import {Steps} from './steps';

const gap = (start: number, dur: number, signature: number, device = 0): GapInfo => ({
  start_ns: ns(start),
  dur_ns: ns(dur),
  device,
  cause: 'data_wait',
  cause_ns: {},
  root_cause: undefined,
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

const STEPS = {
  start_ns: [0, 100, 200, 400].map(ns),
  dur_ns: [100, 100, 150, 100].map(ns),
  name: ['a', 'b', 'c', 'd'],
};
const analysisWith = (outliers: unknown[]) =>
  ({steps: {outliers}}) as unknown as ConstructorParameters<typeof Steps>[1];

test('the step of a time; none between steps', () => {
  const steps = new Steps(STEPS, undefined);
  assert.equal(steps.at(0)?.name, 'a');
  assert.equal(steps.at(99.9)?.name, 'a');
  assert.equal(steps.at(100)?.name, 'b');
  assert.equal(steps.at(349)?.name, 'c');
  assert.equal(steps.at(360), undefined);
  assert.equal(steps.at(-1), undefined);
});

test('outliers are those of the diagnosis, however it names them', () => {
  for (const named of [[2], ['c'], [{index: 2}], [{start_ns: 200}], [{name: 'c', why: 'x'}]]) {
    const steps = new Steps(STEPS, analysisWith(named));
    assert.deepEqual(
      steps.outliers.map(s => s.name),
      ['c'],
      JSON.stringify(named),
    );
  }
  assert.deepEqual(new Steps(STEPS, analysisWith([null, 99, {}])).outliers, []);
  const two = new Steps(STEPS, analysisWith([3, 1]));
  assert.equal(two.outlierAfter(0)?.name, 'b');
  assert.equal(two.outlierAfter(100)?.name, 'd');
  assert.equal(two.outlierAfter(400)?.name, 'b');
});

const reply = (starts: number[], next: string | null): SearchReply =>
  searchShape(
    {
      total: 5,
      hits: starts.map(t => ({slice: t, track: 0, start_ns: t, dur_ns: 1})),
      next,
    },
    '',
  );

test('hits: the first is at or after the window, pages are loaded as needed, in a circle', async () => {
  const asked: (string | undefined)[] = [];
  const search = new SearchHits(
    (_q, after) => {
      asked.push(after);
      return Promise.resolve(
        after === undefined ? reply([10, 20, 30], 'p2') : reply([40, 50], null),
      );
    },
    () => undefined,
  );
  search.set('conv');
  assert.equal((await search.step(1, 15))?.slice, 20);
  assert.equal((await search.step(1, 15))?.slice, 30);
  assert.equal((await search.step(1, 15))?.slice, 40);
  assert.deepEqual(asked, [undefined, 'p2']);
  assert.equal((await search.step(1, 15))?.slice, 50);
  assert.equal((await search.step(1, 15))?.slice, 10);
  assert.equal((await search.step(-1, 15))?.slice, 50);
  search.set('');
  assert.equal(search.state.value.kind, 'idle');
  assert.equal(await search.step(1, 0), undefined);
});

test('backwards from nothing goes to the last hit before the window', async () => {
  const search = new SearchHits(
    () => Promise.resolve(reply([10, 20, 30], null)),
    () => undefined,
  );
  search.set('conv');
  assert.equal((await search.step(-1, 25))?.slice, 20);
});

test('a page of hits that comes when something else is looked for changes nothing', async () => {
  let answer: (page: SearchReply) => void = () => undefined;
  const search = new SearchHits(
    (_q, after) =>
      after === undefined
        ? Promise.resolve(reply([10], 'p2'))
        : new Promise(resolve => (answer = resolve)),
    () => undefined,
  );
  search.set('conv');
  await search.step(1, 0);
  const second = search.step(1, 0); // asks for the next page
  await Promise.resolve();
  search.set('gemm');
  answer(reply([20], null));
  assert.equal(await second, undefined);
  assert.equal(search.state.value.kind, 'loading');
  search.close();
});

test('a search that fails says so', async () => {
  const search = new SearchHits(
    () => Promise.reject(new Error('no')),
    () => undefined,
  );
  search.set('x');
  assert.equal(await search.step(1, 0), undefined);
  assert.equal(search.state.value.kind, 'error');
});

test('names are asked for once, in one request for all of a frame', async () => {
  const asked: (readonly number[])[] = [];
  const names = new NameStore(
    ids => {
      asked.push(ids);
      return Promise.resolve(ids.map(id => [id, `void ns::k${id}<int>(x)`] as const));
    },
    () => undefined,
  );
  assert.equal(names.text(5), undefined);
  assert.equal(names.label(3), undefined);
  names.text(5);
  names.flush();
  names.text(5);
  names.flush();
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(asked, [[3, 5]]);
  assert.equal(names.text(5), 'void ns::k5<int>(x)');
  assert.equal(names.label(3), 'k3<\u2026>');
  names.putLabel(3, 'gemm bf16');
  assert.equal(names.label(3), 'gemm bf16');
  names.flush();
  assert.equal(asked.length, 1);
});

test('many names are asked for as ranges that take along what is between, in an address of 2 KiB', async () => {
  const asked: (readonly number[])[] = [];
  const names = new NameStore(
    ids => {
      asked.push(ids);
      return Promise.resolve(ids.map(id => [id, `k${id}`] as const));
    },
    () => undefined,
  );
  const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve));
  for (let id = 0; id < 3000; id += 3) names.text(id);
  names.flush();
  await settle();
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.length, 2998);
  assert.equal(names.text(1000), 'k1000');
  for (let i = 0; i < 400; i++) names.text(2_000_000_000 + i * 1000);
  while (!names.isIdle) {
    names.flush();
    await settle();
  }
  assert.ok(asked.every(ids => encodeURIComponent(formatIndexSet(ids)).length < 2048));
  assert.equal(names.text(2_000_399_000), 'k2000399000');
});

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

test('counter values are short', () => {
  assert.equal(countText(0), '0');
  assert.equal(countText(1234), '1.23 k');
  assert.equal(countText(8_740_000_000), '8.74 G');
  assert.equal(countText(-0.125), '-0.125');
});

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

test('counters are asked for with a screen to either side, and again only when that is left', async () => {
  const asked: {t0: number; t1: number}[] = [];
  const store = new CounterStore(
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
