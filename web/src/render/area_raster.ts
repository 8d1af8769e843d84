// Rasterizes a stacked area into a bitmap with one column per part: what each layer has of it, from
// the bottom up. Stretched when it is drawn, as the strips of rows are. The same area as one path of
// rectangles took the browser 10 to 20 ms a row in every frame. Pure: runs in node.

/** A layer: its color as r | g << 8 | b << 16, and its share of each part in thousandths. */
export interface AreaLayer {
  readonly color: number;
  readonly parts: readonly number[];
}

/**
 * Draw `layers` into `ret` (columns x height RGBA pixels, not premultiplied, top row first). Shares
 * above what is left of a part's 1000 are cut; a pixel that layers share has their mean color.
 */
export function rasterizeArea(
  layers: readonly AreaLayer[],
  columns: number,
  height: number,
  ret: Uint32Array,
): void {
  ret.fill(0, 0, columns * height);
  // r, g, b and coverage of one column, from the bottom up
  const sum = new Float32Array(height * 4);
  for (let x = 0; x < columns; x++) {
    sum.fill(0);
    let base = 0;
    for (const {color, parts} of layers) {
      const top = Math.min(1000, base + Math.max(0, parts[x] ?? 0));
      cover(sum, (base * height) / 1000, (top * height) / 1000, color);
      base = top;
    }
    for (let y = 0, at = 0; y < height; y++, at += 4) {
      const share = sum[at + 3] as number;
      if (share > 0) ret[(height - 1 - y) * columns + x] = pixel(sum, at, share);
    }
  }
}

/** Adds [from, to) of a column, in pixels from the bottom. */
function cover(sum: Float32Array, from: number, to: number, color: number): void {
  for (let y = Math.floor(from); y < to; y++) {
    const share = Math.min(y + 1, to) - Math.max(y, from);
    const at = y * 4;
    sum[at] = (sum[at] as number) + share * (color & 0xff);
    sum[at + 1] = (sum[at + 1] as number) + share * ((color >>> 8) & 0xff);
    sum[at + 2] = (sum[at + 2] as number) + share * ((color >>> 16) & 0xff);
    sum[at + 3] = (sum[at + 3] as number) + share;
  }
}

function pixel(sum: Float32Array, at: number, share: number): number {
  const channel = (i: number): number => Math.round((sum[at + i] as number) / share);
  const alpha = Math.round(255 * Math.min(1, share));
  return ((alpha << 24) | (channel(2) << 16) | (channel(1) << 8) | channel(0)) >>> 0;
}
