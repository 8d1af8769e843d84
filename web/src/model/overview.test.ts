import assert from 'node:assert/strict';
import {test} from 'node:test';
import {analysisShape, kernelsShape} from '../api/types';
import {setTestWords} from '../base/testing/words';
import {
  axisOf,
  effortWords,
  groupFindings,
  kindShares,
  inSeries,
  needsOf,
  needsSentence,
  segmentsOf,
  sumOf,
  settingGroups,
  waitingOutsideNs,
} from './overview';

const analysis = (part: Record<string, unknown>) =>
  analysisShape({schema: 'lacuna.analysis/1', trace: {}, verdict: {}, ...part}, '');
setTestWords();

test('needs keep their order; null is not recorded and not zero', () => {
  const needs = needsOf(analysis({needs_ns: {data: 300, gpu: 230, copies: 0, host: null}}));
  assert.deepEqual(
    needs.map(n => [n.key, n.needNs]),
    [
      ['data', 300],
      ['gpu', 230],
      ['copies', 0],
      ['host', undefined],
      ['comm', undefined],
    ],
  );
  assert.deepEqual(
    needs.filter(n => n.isLongest).map(n => n.key),
    ['data'],
  );
});

test('the longest part is the limit only if it fills the step', () => {
  const needs_ns = {data: 300, gpu: 230};
  const verdict = {cause: 'data_wait'};
  const steps = {mean_ns: 301};
  assert.match(needsSentence(analysis({needs_ns, verdict, steps})) ?? '', /pace: needs data/);
  // the verdict knows better
  assert.equal(needsSentence(analysis({needs_ns, verdict: {cause: 'comm'}, steps})), undefined);
  assert.match(
    needsSentence(analysis({needs_ns, steps: {mean_ns: 520}})) ?? '',
    /one after another/,
  );
  assert.equal(needsSentence(analysis({needs_ns, steps: {mean_ns: null}})), undefined);
  assert.equal(needsSentence(analysis({needs_ns: {gpu: 1}, steps: {mean_ns: 1}})), undefined);
});

test('without workers, loading and what comes behind it stand in a row', () => {
  const of = (needs_ns: object, mean_ns: number, num_workers: number | null = 0) =>
    analysis({needs_ns, steps: {mean_ns}, dataloader: {num_workers}});
  const said = needsSentence(of({data: 69e6, host: 106e6, gpu: 99e6}, 176e6)) ?? '';
  assert.match(said, /^Needs data \(69.ms\) and needs host \(106.ms\) run .* in the main thread/);
  assert.match(
    needsSentence(of({data: 124e6, host: 43e6, gpu: 110e6}, 240e6)) ?? '',
    /needs gpu \(110/,
  );
  // nothing adds up, or workers load beside the main thread
  assert.equal(inSeries(of({data: 20e6, host: 30e6, gpu: 40e6}, 176e6)), undefined);
  assert.equal(inSeries(of({data: 69e6, host: 106e6, gpu: 99e6}, 176e6, 4)), undefined);
  assert.equal(inSeries(of({data: 69e6, host: 106e6}, 176e6, null)), undefined);
});

test('an axis ends at its longest bar and has round marks', () => {
  assert.deepEqual(axisOf(301), {end: 301, step: 100});
  assert.deepEqual(axisOf(300, 6), {end: 300, step: 50});
  assert.deepEqual(axisOf(0), {end: 1, step: 1});
});

test('segments sum to the step, of another device to its span, waiting by cause', () => {
  const of = analysis({
    partition: {per: 'step', device: 1, total_ns: 200, parts_ns: {compute: 150, host: 50}},
    devices: [
      {id: 1, span_ns: 4000},
      {
        id: 0,
        span_ns: 1000,
        partition_ns: {compute: 600, exposed_comm: 0, exposed_copy: 100, idle: 300},
        idle_by_cause_ns: {sync: 50, data_wait: 250},
      },
    ],
  });
  const [first, other] = of.devices;
  assert.ok(first && other);
  const step = sumOf(of, first);
  assert.deepEqual([step.per, step.totalNs], ['step', 200]);
  assert.deepEqual(
    segmentsOf(step).map(s => [s.key, s.valueNs, s.percent]),
    [
      ['compute', 150, 75],
      ['host', 50, 25],
    ],
  );
  const sum = sumOf(of, other);
  assert.equal(sum.per, 'recording');
  const segments = segmentsOf(sum);
  assert.deepEqual(
    segments.map(s => [s.key, s.label]),
    [
      ['compute', 'parts compute'],
      ['exposed_copy', 'parts exposed_copy'],
      ['data_wait', 'causes data_wait'],
      ['sync', 'causes sync'],
    ],
  );
  assert.equal(
    segments.reduce((sum, s) => sum + s.percent, 0),
    100,
  );
});

test('kinds sum kernels and copies', () => {
  const kernel = (family: string, total_ns: number) => ({name: 'k', family, count: 2, total_ns});
  const {kernels} = kernelsShape(
    {total: 3, kernels: [kernel('gemm', 50), kernel('gemm', 25), kernel('norm', 5)]},
    '',
  );
  const shares = kindShares(kernels, analysis({copies: [{kind: 'HtoD', count: 1, total_ns: 20}]}));
  assert.deepEqual(
    shares.map(s => [s.label, s.valueNs, s.count, s.percent]),
    [
      ['kernel_families gemm', 75, 4, 75],
      ['copy_kinds HtoD', 20, 1, 20],
      ['kernel_families norm', 5, 2, 5],
    ],
  );
  assert.deepEqual(kindShares([], analysis({})), []);
});

test('five findings at most', () => {
  const many = analysis({findings: Array.from({length: 8}, (_, i) => ({id: `f${i}`}))}).findings;
  const groups = groupFindings(many);
  assert.equal(groups.first?.id, 'f0');
  assert.equal(groups.further.length, 4);
  assert.equal(groups.smaller.length, 3);
  assert.deepEqual(groupFindings([]), {first: undefined, further: [], smaller: []});
});

test('settings of any form become groups of texts', () => {
  assert.deepEqual(
    settingGroups({a: true, loader: {workers: 5, pin: false, at: null}, deep: {x: {y: 1}}}),
    [
      {title: '', items: [{key: 'a', value: 'on'}]},
      {
        title: 'loader',
        items: [
          {key: 'workers', value: '5'},
          {key: 'pin', value: 'off'},
          {key: 'at', value: 'not recorded'},
        ],
      },
      {title: 'deep', items: [{key: 'x', value: '{"y":1}'}]},
    ],
  );
});

test('what a change takes is a word; nothing is made up where it is not said', () => {
  assert.equal(effortWords('setting'), 'efforts setting');
  assert.equal(effortWords(undefined), '');
});

test('waiting before the first operation is told, since the timeline has no gap there', () => {
  const of = (idle_ns: number | null, kept_count: number, per = 'step') =>
    analysis({
      partition: {per, device: 0, total_ns: 100e6, parts_ns: {compute: 40e6, host: 60e6}},
      steps: {kept_count},
      devices: [{id: 0, name: 'GPU', idle_ns}],
    });
  const outside = (of: ReturnType<typeof analysis>) => waitingOutsideNs(of, of.devices[0]!);
  assert.equal(outside(of(2e6, 1)), 58e6);
  assert.equal(outside(of(290e6, 5)), 10e6);
  // the gaps hold it all, or all but next to nothing
  assert.equal(outside(of(310e6, 5)), undefined);
  assert.equal(outside(of(299e6, 5)), undefined);
  assert.equal(outside(of(2e6, 1, 'recording')), undefined);
  assert.equal(outside(of(null, 1)), undefined);
});
