// Rasterizes one row into a strip: one pixel high per lane, one column per device pixel, with an
// exact box filter. A column shows the share of its time that is busy, in the mean color of what
// is busy there. The cost is O(slices + cells + columns) and does not depend on lane height: the
// strip is stretched when it is drawn. Pure: runs in node.

import type {Tile} from './tile_decode';
import {cellNs, tileNs} from './tile_plan';
import {forEachLane, lowerBound, walkTiles, type TileSource, type TileVisitor} from './tile_walk';

/** A lone slice far below a pixel must not vanish. */
export const ALPHA_MIN = 0.16;
/** On a dark ground faint colors are seen less. */
export const ALPHA_MIN_DARK = 0.28;
/** In the row of idle causes a strong color must stand for its share of the time, no more. */
export const ALPHA_MIN_IDLE = 0.05;
/** From this many device pixels on, a slice has sharp edges and a gap to its neighbor. */
const SHARP_PX = 2;
const SPACED_PX = 3;
/** Below this width there is nothing to see, only that something is there. */
const THIN_PX = 1e-3;

export interface ColorTable {
  color(kind: number, nameId: number): number;
}

export interface StripRequest {
  readonly source: TileSource;
  readonly colors: ColorTable;
  readonly track: number;
  readonly level: number;
  readonly levelMax: number;
  /** Column c shows [(startPx + c) * nsPerPx, (startPx + c + 1) * nsPerPx). */
  readonly startPx: number;
  readonly columns: number;
  readonly nsPerPx: number;
  /** Lanes shown, from laneFirst on; others are left out. */
  readonly lanes: number;
  readonly laneFirst?: number;
  /** All lanes merged into one: a collapsed row. */
  readonly merged: boolean;
  /** Alpha of a column in which next to nothing is busy. */
  readonly alphaMin: number;
}

/** Reusable accumulators; one instance serves all rows. */
export class StripRaster implements TileVisitor {
  private sum = new Float32Array(0); // r, g, b, coverage per column and lane
  private request: StripRequest | undefined;

  /**
   * Draw into `ret` (columns x lanes RGBA pixels, not premultiplied).
   * @return whether all tiles wanted were in memory
   */
  rasterize(request: StripRequest, ret: Uint32Array): boolean {
    const {columns, startPx, nsPerPx, source, track, level, levelMax} = request;
    const lanes = request.merged ? 1 : request.lanes;
    const floats = columns * lanes * 4;
    if (this.sum.length < floats) this.sum = new Float32Array(floats);
    else this.sum.fill(0, 0, floats);
    this.request = request;
    const t0 = Math.max(0, startPx * nsPerPx);
    const t1 = (startPx + columns) * nsPerPx;
    const complete = t1 <= 0 || walkTiles(source, track, level, levelMax, t0, t1, this);
    this.resolve(ret, columns * lanes);
    return complete;
  }

  natives(tile: Tile, t0: number, t1: number): void {
    const request = this.request as StripRequest;
    const {nsPerPx, startPx, colors, merged} = request;
    const widest = cellNs(tile.level + 1);
    forEachLane(tile.nativeLane, tile.nativeCount, (inTile, from, to) => {
      const lane = inTile - (request.laneFirst ?? 0);
      if (!merged && (lane < 0 || lane >= request.lanes)) return;
      // What starts a native's length before t0 may still reach in.
      for (let i = lowerBound(tile.nativeStart, t0 - widest, from, to); i < to; i++) {
        const start = tile.nativeStart[i] as number;
        if (start >= t1) break;
        const end = start + (tile.nativeDur[i] as number);
        if (end <= t0 && end > start) continue;
        const color = colors.color(tile.nativeKind[i] as number, tile.nativeName[i] as number);
        let x0 = start / nsPerPx - startPx;
        let x1 = end / nsPerPx - startPx;
        const width = x1 - x0;
        if (width >= SHARP_PX) {
          x0 = Math.round(x0);
          x1 = Math.round(x1) - (width >= SPACED_PX ? 1 : 0);
        }
        // A native on a tile's border is in both tiles: each draws its own part.
        const c0 = t0 / nsPerPx - startPx;
        const c1 = t1 / nsPerPx - startPx;
        if (width < SHARP_PX) {
          this.add(lane, Math.max(x0, c0), Math.min(x1, c1), 1, color, start >= t0);
        } else {
          this.add(
            lane,
            Math.max(x0, Math.floor(c0)),
            Math.min(x1, Math.ceil(c1)),
            1,
            color,
            false,
          );
        }
      }
    });
  }

  // Most of the work of a frame: no call for a cell that lies in one column, as nearly all do.
  cells(tile: Tile, t0: number, t1: number): void {
    const request = this.request as StripRequest;
    const {nsPerPx, startPx, colors, merged, columns} = request;
    const {cellIndex, cellKind, cellName, cellBusy} = tile;
    const {sum} = this;
    const width = cellNs(tile.level);
    const origin = tile.index * tileNs(tile.level);
    const first = Math.floor((t0 - origin) / width);
    const last = Math.ceil((t1 - origin) / width);
    const pxPerNs = 1 / nsPerPx;
    const perBusy = 1 / width;
    let kind = -1;
    let name = -1;
    let color = 0;
    forEachLane(tile.cellLane, tile.cellCount, (inTile, from, to) => {
      const lane = inTile - (request.laneFirst ?? 0);
      if (!merged && (lane < 0 || lane >= request.lanes)) return;
      const base = merged ? 0 : lane * columns;
      for (let i = lowerBound(cellIndex, first, from, to); i < to; i++) {
        const index = cellIndex[i] as number;
        if (index >= last) break;
        const start = origin + index * width;
        const x0 = Math.max(start, t0) * pxPerNs - startPx;
        const x1 = Math.min(start + width, t1) * pxPerNs - startPx;
        // Neighbors are mostly of one name.
        if (cellName[i] !== name || cellKind[i] !== kind) {
          kind = cellKind[i] as number;
          name = cellName[i] as number;
          color = colors.color(kind, name);
        }
        const share = Math.min(1, (cellBusy[i] as number) * perBusy);
        const column = Math.floor(x0);
        if (column < 0 || column >= columns || x1 > column + 1 || x1 - x0 < THIN_PX) {
          this.add(lane, x0, x1, share, color, true);
          continue;
        }
        const cover = Math.max((x1 - x0) * share, 1e-4);
        const at = (base + column) * 4;
        sum[at] = (sum[at] as number) + cover * (color & 0xff);
        sum[at + 1] = (sum[at + 1] as number) + cover * ((color >>> 8) & 0xff);
        sum[at + 2] = (sum[at + 2] as number) + cover * ((color >>> 16) & 0xff);
        sum[at + 3] = (sum[at + 3] as number) + cover;
      }
    });
  }

  /** Spread coverage over the columns [x0, x1) touches; a `dot` leaves a trace however thin. */
  private add(
    lane: number,
    x0: number,
    x1: number,
    share: number,
    color: number,
    dot: boolean,
  ): void {
    const {columns, merged} = this.request as StripRequest;
    const base = merged ? 0 : lane * columns;
    if (x1 <= 0 || x0 >= columns) {
      if (!(dot && x0 >= 0 && x0 < columns)) return;
    }
    const r = color & 0xff;
    const g = (color >>> 8) & 0xff;
    const b = (color >>> 16) & 0xff;
    const from = Math.max(0, Math.floor(x0));
    const to = Math.min(columns, Math.ceil(x1));
    if (to <= from || x1 - x0 < THIN_PX) {
      // The resolve step lifts it to alphaMin.
      if (dot && from < columns) this.put((base + from) * 4, 1e-3, r, g, b);
      return;
    }
    for (let x = from; x < to; x++) {
      const cover = (Math.min(x + 1, x1) - Math.max(x, x0)) * share;
      this.put((base + x) * 4, dot ? Math.max(cover, 1e-4) : cover, r, g, b);
    }
  }

  private put(at: number, cover: number, r: number, g: number, b: number): void {
    const sum = this.sum;
    sum[at] = (sum[at] as number) + cover * r;
    sum[at + 1] = (sum[at + 1] as number) + cover * g;
    sum[at + 2] = (sum[at + 2] as number) + cover * b;
    sum[at + 3] = (sum[at + 3] as number) + cover;
  }

  private resolve(ret: Uint32Array, pixels: number): void {
    const sum = this.sum;
    const {alphaMin} = this.request as StripRequest;
    for (let p = 0, at = 0; p < pixels; p++, at += 4) {
      const cover = sum[at + 3] as number;
      if (cover <= 0) {
        ret[p] = 0;
        continue;
      }
      const inverse = 1 / cover;
      const alpha = (255 * Math.min(1, alphaMin + cover * (1 - alphaMin)) + 0.5) | 0;
      ret[p] =
        ((alpha << 24) |
          ((((sum[at + 2] as number) * inverse + 0.5) | 0) << 16) |
          ((((sum[at + 1] as number) * inverse + 0.5) | 0) << 8) |
          (((sum[at] as number) * inverse + 0.5) | 0)) >>>
        0;
    }
  }
}
