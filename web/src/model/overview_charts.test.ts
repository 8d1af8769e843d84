import assert from 'node:assert/strict';
import {test} from 'node:test';
import {analysisShape, stepPointsShape, tracksShape} from '../api/types';
import {
  chartedTracks,
  idlePct,
  idleShares,
  ladderOf,
  longPoints,
  memoryUnit,
  seenCauses,
  stepBars,
  workersChart,
} from './overview_charts';

const points = stepPointsShape(
  {
    count: 5,
    per: 2,
    start_ns: [0, 200, 400],
    mean_ns: [100, 100, 130],
    max_ns: [105, 150, 130],
    waiting: {
      device: 0,
      steps: {data_wait: [40, 80, 60]},
      bin_ns: 100,
      bins: {data_wait: [10, 200], launch: [5, 0]},
    },
  },
  '',
);

test('bars are of one step, the last point has fewer', () => {
  const bars = stepBars(points);
  assert.deepEqual(bars.layers, [{cause: 'data_wait', values: [20, 40, 60]}]);
  assert.equal(bars.topNs, 150);
  assert.deepEqual(longPoints(bars, 100), [1, 2]);
  assert.deepEqual(longPoints(bars, undefined), []);
});

test('a part of the recording is idle for all of it at most', () => {
  const told = Object.fromEntries(idleShares(points).map(({cause, values}) => [cause, values]));
  assert.deepEqual(told, {data_wait: [0.1, 1], launch: [0.05, 0]});
});

test('the bins of all causes sum to the idle share of the recording', () => {
  assert.ok(Math.abs(idlePct(points, 200) - 57.5) < 1e-9); // 0.1, 1 and 0.05 of two bins
  assert.equal(idlePct(points, 0), 0);
});

const analysis = (part: Record<string, unknown>) =>
  analysisShape({schema: 'x', trace: {}, verdict: {}, ...part}, '');

test('more workers help until the rest of the step is the limit', () => {
  const chart = workersChart(
    analysis({
      steps: {mean_ns: 750, without_starvation_ns: 370},
      dataloader: {num_workers: 2, fetch_mean_ns: 1500, recommended_num_workers: 5},
    }),
  );
  assert.deepEqual(
    chart?.points.map(point => Math.round(point.stepNs)),
    [1500, 750, 500, 375, 370, 370, 370],
  );
  assert.deepEqual([chart?.today, chart?.advised], [2, 5]);
  assert.deepEqual([chart?.pins, chart?.hasBand], [false, false]);
  assert.equal(workersChart(analysis({})), undefined);
});

test('a step may take several batches, and one thread may pin them', () => {
  const chart = workersChart(
    analysis({
      steps: {mean_ns: 800, without_starvation_ns: 300},
      dataloader: {num_workers: 2, fetch_mean_ns: 400, batches_per_step: 4, pin_mean_ns: 100},
    }),
  );
  assert.deepEqual(
    chart?.points.map(point => Math.round(point.stepNs)),
    [1600, 800, 533, 400, 400, 400],
  );
  assert.equal(chart?.pins, true);
});

test('each rung of the ladder begins where the one before ended', () => {
  const rungs = ladderOf(
    analysis({
      steps: {mean_ns: 750},
      plan: [
        {brief: 'a', step_ns: 371, gain_pct: 50.5},
        {brief: 'b', step_ns: 300, gain_pct: 19},
      ],
      findings: [{id: 'x', brief: 'a'}],
    }),
  );
  assert.deepEqual(
    rungs.map(rung => [rung.fromNs, rung.toNs, rung.findingId]),
    [
      [750, 371, 'x'],
      [371, 300, undefined],
    ],
  );
});

test('a counter of memory is told in bytes', () => {
  assert.deepEqual(memoryUnit('GPU 0: tensors allocated (MB)'), {
    title: 'GPU 0: tensors allocated',
    bytes: 1e6,
  });
  assert.deepEqual(memoryUnit('memory (peak)'), {title: 'memory (peak)', bytes: 1});
  assert.deepEqual(memoryUnit('GPU 0: power (W)'), {title: 'GPU 0: power (W)', bytes: undefined});
});

test('a trace shows its memory, a log of counters all of them', () => {
  const {tracks} = tracksShape(
    {
      tracks: ['power (W)', 'memory used (MB)', 'tensors'].map((name, index) => ({
        index,
        kind: 'counter',
        process: 0,
        name,
        count: 2,
      })),
    },
    '',
  );
  const named = (all: boolean) => chartedTracks(tracks, all).map(track => track.name);
  assert.deepEqual(named(false), ['tensors']);
  assert.deepEqual(named(true), ['power (W)', 'memory used (MB)', 'tensors']);
});

test('a legend names what can be seen', () => {
  const layers = [
    {cause: 'data_wait', values: [500, 499]},
    {cause: 'sync', values: [1, 0]},
  ] as const;
  assert.deepEqual(seenCauses(layers), ['data_wait']);
});
