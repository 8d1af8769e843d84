import assert from 'node:assert/strict';
import test from 'node:test';
import {
  cellNs,
  formatIndexSet,
  levelFor,
  levelMaxFor,
  planRequests,
  planView,
  tileNs,
  tilesFor,
  TILES_PER_REQUEST,
} from './tile_plan';

test('cells are powers of eight, exact to the last level', () => {
  assert.equal(cellNs(0), 1);
  assert.equal(cellNs(3), 512);
  assert.equal(cellNs(17), 2 ** 51);
  assert.equal(tileNs(2), 512 * 64);
});

test('the level is floor(log8(ns per px)), exact at the powers, never below 0 or above the last', () => {
  const cases: [number, number][] = [
    [0.01, 0],
    [1, 0],
    [7.999, 0],
    [8, 1],
    [63.999, 1],
    [64, 2],
    [511.999, 2],
    [512, 3],
    [8 ** 9, 9],
  ];
  for (const [nsPerPx, level] of cases) assert.equal(levelFor(nsPerPx, 17), level, `${nsPerPx}`);
  assert.equal(levelFor(1e15, 4), 4);
});

test('a cell of the chosen level is at most a pixel and more than an eighth of one', () => {
  for (let nsPerPx = 1; nsPerPx < 1e12; nsPerPx *= 1.37) {
    const cell = cellNs(levelFor(nsPerPx, 17));
    assert.ok(cell <= nsPerPx && cell * 8 > nsPerPx, `${nsPerPx}`);
  }
});

test('no slice of the trace is native to a level coarser than the coarsest', () => {
  for (const duration of [1, 7, 8, 9, 4095, 1e9, 8.69e9, 2 ** 53 - 1]) {
    const level = levelMaxFor(duration);
    assert.ok(cellNs(level + 1) > duration, `${duration}: native`);
    assert.ok(tileNs(level) > duration, `${duration}: one tile covers it`);
  }
});

test('tiles of a window: both ends included, inside the trace', () => {
  const width = tileNs(1); // 4096 ns
  assert.deepEqual(tilesFor(1, 0, width - 1, 1e6), {level: 1, first: 0, last: 0});
  assert.deepEqual(tilesFor(1, width - 1, width, 1e6), {level: 1, first: 0, last: 1});
  assert.deepEqual(tilesFor(1, -5000, 2e9, 3 * width), {level: 1, first: 0, last: 2});
  assert.deepEqual(tilesFor(1, 5e9, 6e9, 3 * width), {level: 1, first: 2, last: 2});
  assert.deepEqual(tilesFor(3, 0, 0, 0), {level: 3, first: 0, last: 0});
});

test('a view asks for its own level and every coarser one, coarsest first', () => {
  const ranges = planView(1e9, 1.1e9, 1e8 / 1600, 8.69e9, levelMaxFor(8.69e9), 0);
  assert.deepEqual(
    ranges.map(r => r.level),
    [11, 10, 9, 8, 7, 6, 5],
  );
  const finest = ranges[ranges.length - 1];
  assert.ok(finest);
  assert.equal(finest.first, Math.floor(1e9 / tileNs(5)));
  assert.equal(finest.last, Math.floor(1.1e9 / tileNs(5)));
});

test('a margin of one screen fetches that much to either side', () => {
  const plan = planView(10 * tileNs(2), 11 * tileNs(2), 64, 100 * tileNs(2), 2, 1);
  assert.deepEqual(plan, [{level: 2, first: 9, last: 12}]);
});

test('index sets are written as the API reads them', () => {
  assert.equal(formatIndexSet([]), '');
  assert.equal(formatIndexSet([4]), '4');
  assert.equal(formatIndexSet([1, 4, 5, 6, 9, 10]), '1,4-6,9-10');
});

test('tracks that miss the same tiles share a request; what is there is not asked for', () => {
  const have = new Set(['1/2/5', '1/2/6', '3/2/5']);
  const requests = planRequests(
    [{level: 2, first: 5, last: 7}],
    [3, 1, 2],
    (track, level, tile) => !have.has(`${track}/${level}/${tile}`),
  );
  assert.deepEqual(requests, [
    {level: 2, first: 5, last: 5, tracks: [2]},
    {level: 2, first: 6, last: 6, tracks: [2, 3]},
    {level: 2, first: 7, last: 7, tracks: [1, 2, 3]},
  ]);
});

test('no request is larger than the server takes', () => {
  const requests = planRequests([{level: 0, first: 10, last: 209}], [1], () => true);
  assert.deepEqual(
    requests.map(r => [r.first, r.last]),
    [
      [10, 10 + TILES_PER_REQUEST - 1],
      [74, 137],
      [138, 201],
      [202, 209],
    ],
  );
});
