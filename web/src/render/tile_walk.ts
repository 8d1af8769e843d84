// Which parts of which loaded tiles show an interval: exact where the fine tiles are loaded,
// the next coarser cells elsewhere. Nothing is drawn twice. Pure: runs in node.

import {tileNs} from './tile_plan';
import type {Tile} from './tile_decode';

/** Tiles in memory. `null` is a tile that is loaded and has no content. */
export interface TileSource {
  get(track: number, level: number, index: number): Tile | null | undefined;
  /** Grows when a tile of the track arrived. */
  version(track: number): number;
}

export interface TileVisitor {
  /** Exact slices of `tile`; draw what lies in [t0, t1). */
  natives(tile: Tile, t0: number, t1: number): void;
  /** Merged cells of `tile`; draw what lies in [t0, t1). */
  cells(tile: Tile, t0: number, t1: number): void;
}

/**
 * Visit what is known of [t0, t1) at resolution `level`.
 * @return whether everything wanted was there
 */
export function walkTiles(
  source: TileSource,
  track: number,
  level: number,
  levelMax: number,
  t0: number,
  t1: number,
  visitor: TileVisitor,
): boolean {
  const width = tileNs(levelMax);
  const last = Math.floor(t1 / width);
  let complete = true;
  for (let i = Math.max(0, Math.floor(t0 / width)); i <= last; i++) {
    complete = walk(source, track, level, levelMax, i, t0, t1, visitor) && complete;
  }
  return complete;
}

function walk(
  source: TileSource,
  track: number,
  level: number,
  here: number,
  index: number,
  t0: number,
  t1: number,
  visitor: TileVisitor,
): boolean {
  const tile = source.get(track, here, index);
  if (tile === undefined) return false;
  // No content: no slice of this level touches it and none of a finer one starts in it. One that
  // starts before and reaches in may still exist, in the tiles before, so go on where they are.
  const from = Math.max(t0, index * tileNs(here));
  const to = Math.min(t1, (index + 1) * tileNs(here));
  if (tile !== null) visitor.natives(tile, from, to);
  if (here === level) {
    if (tile !== null) visitor.cells(tile, from, to);
    return true;
  }
  const child = tileNs(here - 1);
  const last = Math.min(index * 8 + 7, Math.ceil(to / child) - 1);
  let complete = true;
  for (let i = Math.max(index * 8, Math.floor(from / child)); i <= last; i++) {
    if (source.get(track, here - 1, i) === undefined) {
      complete = false;
      const c0 = Math.max(from, i * child);
      const c1 = Math.min(to, (i + 1) * child);
      if (tile !== null && c0 < c1) visitor.cells(tile, c0, c1);
    } else {
      complete = walk(source, track, level, here - 1, i, t0, t1, visitor) && complete;
    }
  }
  return complete;
}

/** First index in [from, to) with values[index] >= key; `to` when none. */
export function lowerBound(
  values: Float64Array | Uint16Array,
  key: number,
  from: number,
  to: number,
): number {
  let lo = from;
  let hi = to;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if ((values[mid] as number) < key) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Calls `use(lane, from, to)` for each lane's run in a lane column. */
export function forEachLane(
  lanes: Uint16Array,
  count: number,
  use: (lane: number, from: number, to: number) => void,
): void {
  for (let from = 0; from < count;) {
    const lane = lanes[from] as number;
    const to = lowerBound(lanes, lane + 1, from, count);
    use(lane, from, to);
    from = to;
  }
}
