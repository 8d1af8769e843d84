import assert from 'node:assert/strict';
import test from 'node:test';
import {buildTile, encodeBatch, type TestSlice} from '../../render/testing/tile_encoder';
import {decodeTileBatch, type Tile} from '../../render/tile_decode';
import {levelMaxFor, tilesFor} from '../../render/tile_plan';
import type {TileSource} from '../../render/tile_walk';
import {hitTest} from './hit_test';

const DURATION = 1_000_000;
const LEVEL_MAX = levelMaxFor(DURATION);

function sourceOf(slices: readonly TestSlice[], without: number[] = []): TileSource {
  const tiles = new Map<string, Tile>();
  for (let level = 0; level <= LEVEL_MAX; level++) {
    const {last} = tilesFor(level, 0, DURATION, DURATION);
    const built = Array.from({length: last + 1}, (_, i) => buildTile(slices, 0, level, i));
    for (const tile of decodeTileBatch(encodeBatch(level, built)).tiles) {
      tiles.set(`${level}/${tile.index}`, tile);
    }
  }
  return {
    get: (_track, level, index) =>
      without.includes(level) ? undefined : (tiles.get(`${level}/${index}`) ?? null),
    version: () => 1,
  };
}

const slice = (id: number, start: number, dur: number, lane = 0): TestSlice => ({
  id,
  start,
  dur,
  lane,
  name: id,
  kind: 1,
});

const SLICES = [
  slice(0, 1000, 5000),
  slice(1, 6000, 100),
  slice(2, 6200, 100),
  slice(3, 1500, 3000, 1),
  slice(4, 700_000, 200_000),
];

const at = (t: number, lane = 0, reach = 0, level = 0, without: number[] = []) =>
  hitTest(sourceOf(SLICES, without), 0, lane, t, reach, level, LEVEL_MAX);

test('a slice is hit from its first to its last nanosecond, in its own lane', () => {
  assert.equal(at(1000)?.slice, 0);
  assert.equal(at(5999)?.slice, 0);
  assert.equal(at(999), undefined);
  assert.equal(at(6150), undefined);
  assert.equal(at(2000, 1)?.slice, 3);
  assert.equal(at(1200, 1), undefined);
  assert.equal(at(2000, 2), undefined);
});

test('a long slice is found from anywhere inside, at any zoom', () => {
  for (const level of [0, 2, 4]) assert.equal(at(812_345, 0, 0, level)?.slice, 4, `${level}`);
});

test('a near miss counts within reach, and the nearest wins', () => {
  assert.equal(at(6140, 0, 60)?.slice, 1);
  assert.equal(at(6170, 0, 60)?.slice, 2);
  assert.equal(at(6450, 0, 60), undefined);
});

test('small slices are hit as their cell: how many, how long, the longest', () => {
  // At level 4 (cells of 4096 ns) the slices of 100 ns are one cell together.
  const hit = at(5000, 0, 0, 4);
  assert.equal(hit?.slice, 0, 'an exact slice at the place wins over the cell');
  const cell = at(6500, 0, 0, 4);
  assert.equal(cell?.count, 2);
  assert.equal(cell?.busyNs, 200);
  assert.equal(cell?.slice, 1);
});

test('while the fine level is on its way the coarser cells answer', () => {
  const hit = at(6020, 0, 0, 2, [2, 3]);
  assert.equal(hit?.count, 2);
});

test('zero-length slices can be hit within reach', () => {
  const source = sourceOf([slice(7, 500, 0)]);
  assert.equal(hitTest(source, 0, 0, 503, 4, 0, LEVEL_MAX)?.slice, 7);
  assert.equal(hitTest(source, 0, 0, 503, 1, 0, LEVEL_MAX), undefined);
});

test('hits agree with a plain search through all slices', () => {
  let seed = 7;
  const random = (n: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % n;
  };
  const slices: TestSlice[] = [];
  for (let t = 0, id = 0; t < DURATION - 5000; id++) {
    const dur = 1 + random(1 << (1 + random(12)));
    slices.push(slice(id, t, dur));
    t += dur + 1 + random(300);
  }
  const source = sourceOf(slices);
  for (let i = 0; i < 2000; i++) {
    const t = random(DURATION);
    const plain = slices.find(s => t >= s.start && t <= s.start + s.dur);
    assert.equal(hitTest(source, 0, 0, t, 0, 0, LEVEL_MAX)?.slice, plain?.id, `t ${t}`);
  }
});
