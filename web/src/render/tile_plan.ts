// Which tiles a view needs (analysis/model/tile.h). Pure: runs in node.

import {CELLS_PER_TILE, LEVEL_COUNT} from './tile_decode';

/** The server takes at most this many tiles of a level in one request. */
export const TILES_PER_REQUEST = 64;

/** Width of a cell of `level`: 8^level ns. Exact: 8^17 = 2^51. */
export function cellNs(level: number): number {
  return 2 ** (3 * level);
}

/** Width of a tile of `level`. */
export function tileNs(level: number): number {
  return CELLS_PER_TILE * cellNs(level);
}

/**
 * The level whose cells are at most one pixel and more than an eighth: floor(log8(nsPerPx)).
 * By comparison, not by logarithm: log(512) / log(8) is 2.9999999999999996.
 */
export function levelFor(nsPerPx: number, levelMax: number): number {
  let level = 0;
  while (level < levelMax && cellNs(level + 1) <= nsPerPx) level++;
  return level;
}

/**
 * The coarsest level worth asking for. No slice is longer than the trace, so none is native to a
 * coarser one; and its tiles are 64 times as long as that or more, so one covers the trace.
 */
export function levelMaxFor(durationNs: number): number {
  let level = 0;
  while (level < LEVEL_COUNT - 1 && cellNs(level + 1) <= durationNs) level++;
  return level;
}

/** Tiles first..last (inclusive) of one level. */
export interface TileRange {
  readonly level: number;
  readonly first: number;
  readonly last: number;
}

/** The tiles of `level` that [t0, t1] touches, inside the trace. */
export function tilesFor(level: number, t0: number, t1: number, durationNs: number): TileRange {
  const width = tileNs(level);
  const lastOfTrace = Math.max(0, Math.floor(Math.max(0, durationNs - 1) / width));
  const clamp = (i: number): number => Math.min(lastOfTrace, Math.max(0, i));
  const first = clamp(Math.floor(t0 / width));
  return {level, first, last: Math.max(first, clamp(Math.floor(t1 / width)))};
}

/**
 * Everything a view of [t0, t1] draws, coarsest level first (few bytes, whole picture), then finer
 * ones; `margin` screens to either side so that panning finds its tiles there.
 */
export function planView(
  t0: number,
  t1: number,
  nsPerPx: number,
  durationNs: number,
  levelMax: number,
  margin: number,
): TileRange[] {
  const finest = levelFor(nsPerPx, levelMax);
  const pad = (t1 - t0) * margin;
  const ranges: TileRange[] = [];
  for (let level = levelMax; level >= finest; level--) {
    ranges.push(tilesFor(level, t0 - pad, t1 + pad, durationNs));
  }
  return ranges;
}

/** Ascending indices as the API's list: [1,4,5,6] -> "1,4-6". */
export function formatIndexSet(sorted: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    const from = sorted[i] as number;
    let to = from;
    while (++i < sorted.length && sorted[i] === to + 1) to++;
    parts.push(to === from ? String(from) : `${from}-${to}`);
  }
  return parts.join(',');
}

/** A request: tiles first..last of `level` for these tracks (ascending). */
export interface TileRequest extends TileRange {
  readonly tracks: readonly number[];
}

/**
 * Missing tiles as few requests: per level, runs of neighboring tiles that the same tracks miss.
 * `missing(track, level, tile)` says what is neither cached nor on its way.
 */
export function planRequests(
  ranges: readonly TileRange[],
  tracks: readonly number[],
  missing: (track: number, level: number, tile: number) => boolean,
): TileRequest[] {
  const sorted = [...tracks].sort((a, b) => a - b);
  const requests: TileRequest[] = [];
  for (const {level, first, last} of ranges) {
    let open: {first: number; last: number; tracks: number[]; key: string} | undefined;
    const close = (): void => {
      if (open) requests.push({level, first: open.first, last: open.last, tracks: open.tracks});
      open = undefined;
    };
    for (let tile = first; tile <= last; tile++) {
      const need = sorted.filter(track => missing(track, level, tile));
      const key = formatIndexSet(need);
      if (open && open.key === key && tile - open.first < TILES_PER_REQUEST) {
        open.last = tile;
        continue;
      }
      close();
      if (need.length > 0) open = {first: tile, last: tile, tracks: need, key};
    }
    close();
  }
  return requests;
}
