import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {RunCollective} from '../../api/types';
import {setTestWords} from '../../base/testing/words';
import {ns} from '../../base/units';
import {
  arrivalsOf,
  collectiveAt,
  describePart,
  lastOnes,
  moved,
  sharesOf,
  shiftsOf,
  zoomed,
} from './strips';

const met = (index: number, end: number, durs: number[], skew = 0): RunCollective => ({
  index,
  kind: 'all-gather',
  name: 'nccl',
  end_ns: end,
  ranks: durs.map((_, i) => i),
  dur_ns: durs,
  start_ns: durs.map((dur, i) => end - dur + i * skew),
  last: durs.indexOf(Math.min(...durs)),
  late_ns: Math.max(...durs) - Math.min(...durs),
});

test('arrivals are told from durations: all leave together', () => {
  assert.deepEqual(arrivalsOf(met(0, 100, [30, 10, 25])), [0, 20, 5]);
});

test('aligned at a collective, ranks whose clocks drifted leave it at one moment', () => {
  const it = met(0, 100, [30, 10, 25], 7);
  const shifts = shiftsOf(it);
  it.ranks.forEach((rank, i) => {
    assert.equal((it.start_ns[i] ?? 0) + (it.dur_ns[i] ?? 0) + (shifts.get(rank) ?? NaN), 100);
  });
  assert.equal(shiftsOf(undefined).size, 0);
});

test('a moment belongs to the collective around it, else to the nearest', () => {
  const all = {total: 2, collectives: [met(0, 100, [30, 10]), met(1, 200, [50, 20])]};
  assert.equal(collectiveAt(all, 80)?.index, 0);
  assert.equal(collectiveAt(all, 110)?.index, 0);
  assert.equal(collectiveAt(all, 145)?.index, 1);
  assert.equal(collectiveAt({total: 0, collectives: []}, 1), undefined);
});

test('who comes last most stands first', () => {
  const all = {total: 3, collectives: [met(0, 1, [9, 1]), met(1, 2, [1, 3]), met(2, 3, [9, 2])]};
  assert.deepEqual(lastOnes(all), [
    {rank: 1, count: 2, lateNs: 15},
    {rank: 0, count: 1, lateNs: 2},
  ]);
});

test('windows stay inside and keep what is under the pointer', () => {
  const window = {t0: ns(10_000), t1: ns(20_000)};
  assert.deepEqual(zoomed(window, 0.5, 0, 100_000), {t0: 10_000, t1: 15_000});
  assert.deepEqual(zoomed(window, 0.5, 1, 100_000), {t0: 15_000, t1: 20_000});
  assert.deepEqual(zoomed(window, 100, 0.5, 100_000), {t0: 0, t1: 100_000});
  assert.equal(zoomed(window, 1e-9, 0.5, 100_000).t1 - zoomed(window, 1e-9, 0.5, 100_000).t0, 1000);
  assert.deepEqual(moved(window, -5, 100_000), {t0: 0, t1: 10_000});
  assert.deepEqual(moved(window, 95_000, 100_000), {t0: 90_000, t1: 100_000});
});

test('a part says what it is made of', () => {
  setTestWords();
  const data = {
    t0: 0,
    t1: 100,
    points: 2,
    work: {compute: {total_ns: 60, parts: [1000, 200]}},
    waiting: {data_wait: {total_ns: 40, parts: [0, 800]}},
  };
  assert.match(describePart(data, 0), /^computing 100/);
  assert.match(describePart(data, 1), /computing 20.*, .*80/);
  assert.equal(describePart({...data, work: {}, waiting: {}}, 0), 'nothing recorded');
  assert.deepEqual(
    sharesOf(data).map(share => [share.cause, share.totalNs]),
    [
      [undefined, 60],
      ['data_wait', 40],
    ],
  );
});
