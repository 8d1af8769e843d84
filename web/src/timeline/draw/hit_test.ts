// What lies under a point: bisection in the loaded tiles. Pure: runs in node.

import type {Tile} from '../../render/tile_decode';
import {cellNs, tileNs} from '../../render/tile_plan';
import {lowerBound, type TileSource} from '../../render/tile_walk';
import type {Hit} from '../data/hover';

/**
 * The slice of `lane` at time `t`; within `reach` ns when nothing is exactly there.
 * `level` is the view's. Of slices within reach the nearest wins.
 */
export function hitTest(
  source: TileSource,
  track: number,
  lane: number,
  t: number,
  reach: number,
  level: number,
  levelMax: number,
): Hit | undefined {
  let best: Hit | undefined;
  let bestDistance = Infinity;
  const consider = (hit: Hit, distance: number): void => {
    // Exact slices beat cells at the same distance: the finer truth.
    if (distance < bestDistance || (distance === bestDistance && hit.count < (best?.count ?? 0))) {
      best = hit;
      bestDistance = distance;
    }
  };
  for (let k = level; k <= levelMax; k++) {
    const width = tileNs(k);
    const first = Math.max(0, Math.floor((t - reach) / width));
    const last = Math.floor((t + reach) / width);
    for (let i = first; i <= last; i++) {
      const tile = source.get(track, k, i);
      if (tile) hitNatives(tile, lane, t, reach, consider);
      // The finest loaded level stands in for finer ones that are not here yet.
      if (tile && (k === level || isUncovered(source, track, k, t))) {
        hitCells(tile, lane, t, reach, consider);
      }
    }
    if (bestDistance === 0) return best;
  }
  return best;
}

function isUncovered(source: TileSource, track: number, level: number, t: number): boolean {
  const below = level - 1;
  return below >= 0 && source.get(track, below, Math.floor(t / tileNs(below))) === undefined;
}

function laneRun(lanes: Uint16Array, count: number, lane: number): readonly [number, number] {
  const from = lowerBound(lanes, lane, 0, count);
  return [from, lowerBound(lanes, lane + 1, from, count)];
}

function hitNatives(
  tile: Tile,
  lane: number,
  t: number,
  reach: number,
  consider: (hit: Hit, distance: number) => void,
): void {
  const [from, to] = laneRun(tile.nativeLane, tile.nativeCount, lane);
  const next = lowerBound(tile.nativeStart, t, from, to);
  // Slices of a lane do not overlap: the one before and the one after are all there can be, but
  // for slices without length at one time.
  for (let i = Math.max(from, next - 1); i < Math.min(to, next + 2); i++) {
    const start = tile.nativeStart[i] as number;
    const dur = tile.nativeDur[i] as number;
    const distance = t < start ? start - t : t > start + dur ? t - start - dur : 0;
    if (distance > reach) continue;
    consider(
      {
        slice: tile.nativeSlice[i] as number,
        nameId: tile.nativeName[i] as number,
        kind: tile.nativeKind[i] as number,
        lane,
        start,
        dur,
        count: 1,
        busyNs: dur,
      },
      distance,
    );
  }
}

function hitCells(
  tile: Tile,
  lane: number,
  t: number,
  reach: number,
  consider: (hit: Hit, distance: number) => void,
): void {
  const width = cellNs(tile.level);
  const origin = tile.index * tileNs(tile.level);
  const [from, to] = laneRun(tile.cellLane, tile.cellCount, lane);
  const first = Math.floor((t - reach - origin) / width);
  const last = Math.floor((t + reach - origin) / width);
  for (let i = lowerBound(tile.cellIndex, first, from, to); i < to; i++) {
    const index = tile.cellIndex[i] as number;
    if (index > last) break;
    const start = origin + index * width;
    const distance = t < start ? start - t : t > start + width ? t - start - width : 0;
    consider(
      {
        slice: tile.cellLongest[i] as number,
        nameId: tile.cellName[i] as number,
        kind: tile.cellKind[i] as number,
        lane,
        start,
        dur: width,
        count: tile.cellSlices[i] as number,
        busyNs: tile.cellBusy[i] as number,
      },
      distance,
    );
  }
}
