import assert from 'node:assert/strict';
import test from 'node:test';
import {rasterizeArea, type AreaLayer} from './area_raster';

const RED = 0x0000ff;
const BLUE = 0xff0000;

/** Pixels of a column from the bottom up. */
function column(
  layers: readonly AreaLayer[],
  x: number,
  columns: number,
  height: number,
): string[] {
  const pixels = new Uint32Array(columns * height);
  rasterizeArea(layers, columns, height, pixels);
  return Array.from({length: height}, (_, y) =>
    (pixels[(height - 1 - y) * columns + x] ?? 0).toString(16).padStart(8, '0'),
  );
}

test('layers stand on each other, from the bottom up', () => {
  const layers = [
    {color: RED, parts: [500, 0]},
    {color: BLUE, parts: [250, 1000]},
  ];
  assert.deepEqual(column(layers, 0, 2, 4), ['ff0000ff', 'ff0000ff', 'ffff0000', '00000000']);
  assert.deepEqual(column(layers, 1, 2, 4), ['ffff0000', 'ffff0000', 'ffff0000', 'ffff0000']);
});

test('a pixel that two layers share has the mean of both, an edge its share', () => {
  const layers = [
    {color: RED, parts: [125]},
    {color: BLUE, parts: [500]},
  ];
  assert.deepEqual(column(layers, 0, 1, 4), ['ff800080', 'ffff0000', '80ff0000', '00000000']);
});

test('nothing is drawn above the whole, nor for less than nothing', () => {
  const layers = [
    {color: RED, parts: [900]},
    {color: BLUE, parts: [900]},
    {color: RED, parts: [-5]},
  ];
  assert.deepEqual(column(layers, 0, 1, 2), ['ff0000ff', 'ff3300cc']);
});

test('the drawn area of each layer is its share, whatever the shares and the height', () => {
  let seed = 7;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const height = 1 + Math.floor(random() * 60);
    const parts = [0, 0, 0].map(() => Math.floor(random() * 400));
    // one color channel a layer: the sum over the column is what each one covers
    const layers = parts.map((share, i) => ({color: 0xff << (8 * i), parts: [share]}));
    const pixels = new Uint32Array(height);
    rasterizeArea(layers, 1, height, pixels);
    parts.forEach((share, i) => {
      let covered = 0;
      for (const p of pixels) covered += (((p >>> (8 * i)) & 255) / 255) * ((p >>> 24) / 255);
      const cut = Math.min(share, Math.max(0, 1000 - parts.slice(0, i).reduce((a, b) => a + b, 0)));
      assert.ok(Math.abs(covered - (cut * height) / 1000) < 0.05, `${covered} of ${cut}`);
    });
  }
});
