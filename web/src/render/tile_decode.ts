// Binary tile batches (server/store/FORMAT.md) as typed-array views over the reply: nothing is
// copied, nothing is allocated per slice. Every byte is checked before a view is made, so a damaged
// reply is one TileFormatError and never a wrong picture or a crash. Pure: runs in node.

export const CELLS_PER_TILE = 512;
export const LEVEL_COUNT = 18;
const BATCH_MAGIC = 0x3142544c; // "LTB1" read as a little-endian u32
const BATCH_VERSION = 1;
const BATCH_HEADER_BYTES = 16;
const SECTION_HEADER_BYTES = 32;
const KIND_COUNT = 15;
/** Latest time a trace can hold (2^53 - 1 ns); a tile beyond it is damage. */
const TIME_MAX_NS = Number.MAX_SAFE_INTEGER;

/** One tile: exact slices ("natives") and merged cells, both ascending by (lane, position). */
export interface Tile {
  readonly track: number;
  readonly level: number;
  readonly index: number;
  readonly nativeCount: number;
  readonly nativeStart: Float64Array;
  readonly nativeDur: Float64Array;
  readonly nativeSlice: Uint32Array;
  readonly nativeName: Uint32Array;
  readonly nativeLane: Uint16Array;
  readonly nativeKind: Uint8Array;
  readonly cellCount: number;
  readonly cellBusy: Float32Array;
  readonly cellSlices: Uint32Array;
  readonly cellLongest: Uint32Array;
  readonly cellName: Uint32Array;
  readonly cellIndex: Uint16Array;
  readonly cellLane: Uint16Array;
  readonly cellKind: Uint8Array;
  /** Bytes this tile keeps alive, for the cache's budget. */
  readonly bytes: number;
}

/** The reply is not a tile batch of this version, or is damaged at `offset`. */
export class TileFormatError extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(`${message} (byte ${offset})`);
    this.name = 'TileFormatError';
  }
}

const pad8 = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Bytes of a section with n natives and m cells, header and padding included. */
export function sectionBytes(n: number, m: number): number {
  const natives = 2 * pad8(8 * n) + 2 * pad8(4 * n) + pad8(2 * n) + pad8(n);
  const cells = 4 * pad8(4 * m) + 2 * pad8(2 * m) + pad8(m);
  return SECTION_HEADER_BYTES + natives + cells;
}

export interface TileBatch {
  readonly level: number;
  readonly tiles: readonly Tile[];
}

/**
 * Decode a batch. `buffer` must stay unmodified: the tiles are views of it.
 * @throws TileFormatError
 */
export function decodeTileBatch(buffer: ArrayBuffer): TileBatch {
  const size = buffer.byteLength;
  const view = new DataView(buffer);
  if (size < BATCH_HEADER_BYTES) {
    throw new TileFormatError(`the tile reply has ${size} bytes, fewer than its header`, 0);
  }
  if (view.getUint32(0, true) !== BATCH_MAGIC) {
    throw new TileFormatError('the reply is not a tile batch', 0);
  }
  const version = view.getUint16(4, true);
  if (version !== BATCH_VERSION) {
    throw new TileFormatError(`tile batch version ${version}, this page reads ${BATCH_VERSION}`, 4);
  }
  const level = view.getUint16(6, true);
  if (level >= LEVEL_COUNT) throw new TileFormatError(`tile level ${level} does not exist`, 6);
  const count = view.getUint32(8, true);
  // A section is at least its header: a count that cannot fit must not drive an allocation.
  if (count > (size - BATCH_HEADER_BYTES) / SECTION_HEADER_BYTES) {
    throw new TileFormatError(`${count} tiles announced, ${size} bytes received`, 8);
  }
  const tiles: Tile[] = [];
  let offset = BATCH_HEADER_BYTES;
  for (let i = 0; i < count; i++) {
    const tile = decodeSection(view, offset, level);
    tiles.push(tile);
    offset += tile.bytes;
  }
  if (offset !== size) {
    throw new TileFormatError(`${size - offset} bytes after the last tile`, offset);
  }
  return {level, tiles};
}

function decodeSection(view: DataView, at: number, level: number): Tile {
  const left = view.byteLength - at;
  if (left < SECTION_HEADER_BYTES) throw new TileFormatError('a tile is cut short', at);
  const size = view.getUint32(at, true);
  const track = view.getUint32(at + 4, true);
  const index = view.getUint32(at + 8, true);
  const n = view.getUint32(at + 12, true);
  const m = view.getUint32(at + 16, true);
  if (view.getUint8(at + 20) !== level) {
    throw new TileFormatError('a tile of another level in the batch', at + 20);
  }
  // n, m < 2^32, so the sum below stays exact in a double and cannot wrap.
  if (size !== sectionBytes(n, m)) {
    throw new TileFormatError(`a tile of ${n} slices and ${m} cells cannot have ${size} bytes`, at);
  }
  if (size > left) throw new TileFormatError('a tile is cut short', at);

  let next = at + SECTION_HEADER_BYTES;
  const column = (bytes: number): number => {
    const here = next;
    next += pad8(bytes);
    return here;
  };
  const buffer = view.buffer as ArrayBuffer;
  const tile: Tile = {
    track,
    level,
    index,
    nativeCount: n,
    nativeStart: new Float64Array(buffer, column(8 * n), n),
    nativeDur: new Float64Array(buffer, column(8 * n), n),
    nativeSlice: new Uint32Array(buffer, column(4 * n), n),
    nativeName: new Uint32Array(buffer, column(4 * n), n),
    nativeLane: new Uint16Array(buffer, column(2 * n), n),
    nativeKind: new Uint8Array(buffer, column(n), n),
    cellCount: m,
    cellBusy: new Float32Array(buffer, column(4 * m), m),
    cellSlices: new Uint32Array(buffer, column(4 * m), m),
    cellLongest: new Uint32Array(buffer, column(4 * m), m),
    cellName: new Uint32Array(buffer, column(4 * m), m),
    cellIndex: new Uint16Array(buffer, column(2 * m), m),
    cellLane: new Uint16Array(buffer, column(2 * m), m),
    cellKind: new Uint8Array(buffer, column(m), m),
    bytes: size,
  };
  checkNatives(tile, at);
  checkCells(tile, at);
  return tile;
}

// Order and range are what drawing and hit testing rely on (bisection, indexing by lane).
function checkNatives(tile: Tile, at: number): void {
  let lane = -1;
  let start = -1;
  for (let i = 0; i < tile.nativeCount; i++) {
    const s = tile.nativeStart[i] as number;
    const d = tile.nativeDur[i] as number;
    const l = tile.nativeLane[i] as number;
    // Negated comparisons, so that NaN fails too.
    if (!(s >= 0) || !(d >= 0) || !(s + d <= TIME_MAX_NS)) {
      throw new TileFormatError('a slice lies outside the trace', at);
    }
    if (l < lane || (l === lane && s < start)) {
      throw new TileFormatError('slices out of order', at);
    }
    if ((tile.nativeKind[i] as number) >= KIND_COUNT) {
      throw new TileFormatError('a slice of unknown kind', at);
    }
    lane = l;
    start = s;
  }
}

function checkCells(tile: Tile, at: number): void {
  let lane = -1;
  let cell = -1;
  for (let i = 0; i < tile.cellCount; i++) {
    const l = tile.cellLane[i] as number;
    const c = tile.cellIndex[i] as number;
    if (c >= CELLS_PER_TILE) throw new TileFormatError(`cell ${c} does not exist`, at);
    if (l < lane || (l === lane && c <= cell)) {
      throw new TileFormatError('cells out of order', at);
    }
    if (!((tile.cellBusy[i] as number) >= 0)) {
      throw new TileFormatError('a cell has a negative busy time', at);
    }
    if ((tile.cellKind[i] as number) >= KIND_COUNT) {
      throw new TileFormatError('a cell of unknown kind', at);
    }
    lane = l;
    cell = c;
  }
}
