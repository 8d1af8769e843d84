import assert from 'node:assert/strict';
import test from 'node:test';
import {ALPHA_MIN, StripRaster, type StripRequest} from './strip_raster';
import {buildTile, encodeBatch, type TestSlice} from './testing/tile_encoder';
import {decodeTileBatch, type Tile} from './tile_decode';
import {levelFor, levelMaxFor, tileNs, tilesFor} from './tile_plan';
import type {TileSource} from './tile_walk';

const RED = 0xff0000ff; // A B G R
const BLUE = 0xffff0000;

/** All tiles of a trace, in memory; `without` leaves levels out, as if they were on their way. */
function sourceOf(
  slices: readonly TestSlice[],
  durationNs: number,
  without: number[] = [],
): TileSource {
  const tiles = new Map<string, Tile>();
  const levelMax = levelMaxFor(durationNs);
  for (let level = 0; level <= levelMax; level++) {
    const {first, last} = tilesFor(level, 0, durationNs, durationNs);
    const built = [];
    for (let i = first; i <= last; i++) built.push(buildTile(slices, 0, level, i));
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

const slice = (start: number, dur: number, more: Partial<TestSlice> = {}): TestSlice => ({
  start,
  dur,
  id: start,
  name: 1,
  lane: 0,
  kind: 1,
  ...more,
});

interface Drawn {
  readonly pixels: Uint32Array;
  readonly isComplete: boolean;
}

function draw(
  slices: readonly TestSlice[],
  durationNs: number,
  nsPerPx: number,
  more: Partial<StripRequest> = {},
  without: number[] = [],
): Drawn {
  const columns = more.columns ?? 16;
  const lanes = more.lanes ?? 1;
  const pixels = new Uint32Array(columns * lanes);
  const levelMax = levelMaxFor(durationNs);
  const isComplete = new StripRaster().rasterize(
    {
      source: sourceOf(slices, durationNs, without),
      colors: {color: (_kind, name) => (name === 1 ? RED : BLUE)},
      track: 0,
      level: levelFor(nsPerPx, levelMax),
      levelMax,
      startPx: 0,
      columns,
      nsPerPx,
      lanes,
      merged: false,
      alphaMin: ALPHA_MIN,
      ...more,
    },
    pixels,
  );
  return {pixels, isComplete};
}

const alpha = (p: number | undefined): number => (p ?? 0) >>> 24;
const alphaOf = (share: number): number =>
  Math.floor(255 * Math.min(1, ALPHA_MIN + share * (1 - ALPHA_MIN)) + 0.5);

test('a slice of many pixels is solid between its edges, with a gap to its neighbor', () => {
  const {pixels, isComplete} = draw([slice(400, 800)], 1600, 100);
  assert.ok(isComplete);
  assert.equal(pixels[3], 0);
  for (let x = 4; x < 11; x++) assert.equal(pixels[x], RED, `column ${x}`);
  assert.equal(pixels[11], 0); // the gap
  assert.equal(pixels[12], 0);
});

test('a column shows the share of it that is busy', () => {
  // Each pixel is 1024 ns, two cells of level 3; slices of 100 ns are cells at this zoom.
  const slices = [slice(2048, 100), slice(2300, 107), slice(2600, 100), slice(5120, 64)];
  const {pixels} = draw(slices, 16_384, 1024);
  assert.ok(Math.abs(alpha(pixels[2]) - alphaOf(0.3)) <= 1, `${alpha(pixels[2])}`);
  assert.ok(Math.abs(alpha(pixels[5]) - alphaOf(0.0625)) <= 1);
  assert.equal(pixels[3], 0);
});

test('a slice far below a pixel, or without length, is still seen', () => {
  const {pixels} = draw([slice(3_200_100, 1), slice(9_500_000, 0)], 16_777_216, 1_048_576);
  assert.ok(alpha(pixels[3]) >= Math.floor(255 * ALPHA_MIN));
  assert.ok(alpha(pixels[9]) >= Math.floor(255 * ALPHA_MIN));
  assert.equal(pixels[8], 0);
});

test('the color of a column is the mean of what is busy there', () => {
  const {pixels} = draw([slice(0, 300), slice(600, 100, {name: 2})], 16_384, 1024);
  const p = pixels[0] ?? 0;
  assert.ok(Math.abs((p & 255) - 191) <= 2, 'three parts red');
  assert.ok(Math.abs(((p >>> 16) & 255) - 64) <= 2, 'one part blue');
});

test('lanes are rows of the strip; deeper ones than shown are left out', () => {
  const slices = [slice(0, 1600), slice(0, 800, {lane: 1, name: 2}), slice(0, 800, {lane: 2})];
  const {pixels} = draw(slices, 1600, 100, {lanes: 2});
  assert.equal(pixels[0], RED);
  assert.equal(pixels[16], BLUE);
  assert.equal(pixels[16 + 9], 0);
  assert.equal(pixels.length, 32);
});

test('lanes before the first that is shown are left out', () => {
  const slices = [slice(0, 1600), slice(0, 800, {lane: 1, name: 2}), slice(0, 400, {lane: 2})];
  const {pixels} = draw(slices, 1600, 100, {lanes: 2, laneFirst: 1});
  assert.equal(pixels[0], BLUE);
  assert.equal(pixels[16], RED);
  assert.equal(pixels[16 + 5], 0);
  const short = draw([slice(0, 3), slice(0, 3, {lane: 1})], 1600, 100, {laneFirst: 1}).pixels;
  assert.ok(alpha(short[0]) > 0);
});

test('a collapsed row merges all lanes, and is never more than full', () => {
  const slices = [slice(0, 400), slice(400, 400, {lane: 1}), slice(0, 800, {lane: 2})];
  const {pixels} = draw(slices, 1600, 100, {lanes: 3, merged: true, columns: 16});
  assert.equal(alpha(pixels[2]), 255);
  assert.equal(alpha(pixels[6]), 255);
  assert.equal(pixels[9], 0);
});

test('panning by whole columns moves the picture and changes nothing else', () => {
  const slices = Array.from({length: 30}, (_, i) => slice(i * 517, 40 + 31 * (i % 7)));
  const whole = draw(slices, 16_000, 100, {columns: 160}).pixels;
  const part = draw(slices, 16_000, 100, {columns: 60, startPx: 50}).pixels;
  assert.deepEqual([...part], [...whole.slice(50, 110)]);
});

test('a slice on the border of tiles is drawn once, without a seam', () => {
  const border = tileNs(1); // 4096 ns; slices of 40 ns are native to level 1
  const {pixels} = draw([slice(border - 20, 40)], 16_000, 8, {startPx: border / 8 - 8});
  // From column 5.5 to 10.5: rounded to 6 and 11, less the gap.
  const solid = [...pixels].map(p => p === RED);
  assert.deepEqual(
    solid.flatMap((s, i) => (s ? [i] : [])),
    [6, 7, 8, 9],
  );
});

test('while fine tiles are on their way coarse cells stand in, and nothing is drawn twice', () => {
  const slices = Array.from({length: 128}, (_, i) => slice(i * 512, 256));
  const fine = draw(slices, 65_536, 4088);
  assert.ok(fine.isComplete);
  // Below 4096 ns a pixel the view's level is 3 (cells of 512 ns); without it level 4 stands in.
  const coarse = draw(slices, 65_536, 4088, {}, [3]);
  assert.equal(coarse.isComplete, false);
  for (let x = 0; x < 16; x++) {
    assert.ok(Math.abs(alpha(fine.pixels[x]) - alphaOf(0.5)) <= 14, `fine ${x}`);
    assert.ok(Math.abs(alpha(coarse.pixels[x]) - alphaOf(0.5)) <= 14, `coarse ${x}`);
  }
});

test('nothing loaded is nothing drawn, and said so', () => {
  const {pixels, isComplete} = draw([slice(0, 900)], 1600, 100, {}, [0, 1, 2, 3, 4]);
  assert.equal(isComplete, false);
  assert.ok([...pixels].every(p => p === 0));
});
