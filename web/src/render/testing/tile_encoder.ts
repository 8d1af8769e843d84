// Test support: slices -> tiles -> bytes, written from the format's text (analysis/model/tile.h,
// server/store/FORMAT.md) the slow and plain way, to check the decoder and to feed small scenes.

import {CELLS_PER_TILE, sectionBytes} from '../tile_decode';
import {cellNs, tileNs} from '../tile_plan';

export interface TestSlice {
  readonly start: number;
  readonly dur: number;
  readonly id: number;
  readonly name: number;
  readonly lane: number;
  readonly kind: number;
}

interface TestCell {
  lane: number;
  index: number;
  count: number;
  busy: number;
  longest: TestSlice;
}

export interface TestTile {
  readonly track: number;
  readonly level: number;
  readonly index: number;
  readonly natives: readonly TestSlice[];
  readonly cells: readonly TestCell[];
}

function nativeLevel(dur: number): number {
  let level = 0;
  while (cellNs(level + 1) <= dur) level++;
  return level;
}

/** One tile of a track's slices. */
export function buildTile(
  slices: readonly TestSlice[],
  track: number,
  level: number,
  index: number,
): TestTile {
  const t0 = index * tileNs(level);
  const t1 = t0 + tileNs(level);
  const width = cellNs(level);
  const natives: TestSlice[] = [];
  const cells = new Map<number, TestCell>();
  for (const slice of slices) {
    const own = nativeLevel(slice.dur);
    if (own === level) {
      const touches = slice.start < t1 && slice.start + slice.dur > t0;
      if (touches || (slice.start >= t0 && slice.start < t1)) natives.push(slice);
    } else if (own < level && slice.start >= t0 && slice.start < t1) {
      const cell = Math.floor((slice.start - t0) / width);
      const key = slice.lane * CELLS_PER_TILE + cell;
      const old = cells.get(key);
      if (old) {
        old.count++;
        old.busy = Math.min(width, old.busy + slice.dur);
        if (slice.dur > old.longest.dur) old.longest = slice;
      } else {
        cells.set(key, {
          lane: slice.lane,
          index: cell,
          count: 1,
          busy: slice.dur,
          longest: slice,
        });
      }
    }
  }
  natives.sort((a, b) => a.lane - b.lane || a.start - b.start);
  const ordered = [...cells.entries()].sort((a, b) => a[0] - b[0]).map(([, cell]) => cell);
  return {track, level, index, natives, cells: ordered};
}

const pad8 = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** A whole batch, empty tiles left out as the server does. */
export function encodeBatch(level: number, tiles: readonly TestTile[]): ArrayBuffer {
  const kept = tiles.filter(t => t.natives.length + t.cells.length > 0);
  const total = kept.reduce((n, t) => n + sectionBytes(t.natives.length, t.cells.length), 16);
  const buffer = new ArrayBuffer(total);
  const view = new DataView(buffer);
  view.setUint32(0, 0x3142544c, true);
  view.setUint16(4, 1, true);
  view.setUint16(6, level, true);
  view.setUint32(8, kept.length, true);
  let at = 16;
  for (const tile of kept) {
    encodeSection(view, at, tile);
    at += sectionBytes(tile.natives.length, tile.cells.length);
  }
  return buffer;
}

function encodeSection(view: DataView, at: number, tile: TestTile): void {
  const {natives, cells} = tile;
  view.setUint32(at, sectionBytes(natives.length, cells.length), true);
  view.setUint32(at + 4, tile.track, true);
  view.setUint32(at + 8, tile.index, true);
  view.setUint32(at + 12, natives.length, true);
  view.setUint32(at + 16, cells.length, true);
  view.setUint8(at + 20, tile.level);
  let next = at + 32;
  function column<T>(rows: readonly T[], bytes: number, put: (at: number, row: T) => void): void {
    rows.forEach((row, i) => put(next + i * bytes, row));
    next += pad8(rows.length * bytes);
  }
  column(natives, 8, (o, s) => view.setFloat64(o, s.start, true));
  column(natives, 8, (o, s) => view.setFloat64(o, s.dur, true));
  column(natives, 4, (o, s) => view.setUint32(o, s.id, true));
  column(natives, 4, (o, s) => view.setUint32(o, s.name, true));
  column(natives, 2, (o, s) => view.setUint16(o, s.lane, true));
  column(natives, 1, (o, s) => view.setUint8(o, s.kind));
  column(cells, 4, (o, c) => view.setFloat32(o, c.busy, true));
  column(cells, 4, (o, c) => view.setUint32(o, c.count, true));
  column(cells, 4, (o, c) => view.setUint32(o, c.longest.id, true));
  column(cells, 4, (o, c) => view.setUint32(o, c.longest.name, true));
  column(cells, 2, (o, c) => view.setUint16(o, c.index, true));
  column(cells, 2, (o, c) => view.setUint16(o, c.lane, true));
  column(cells, 1, (o, c) => view.setUint8(o, c.longest.kind));
}
