import assert from 'node:assert/strict';
import test from 'node:test';
import {buildTile, encodeBatch, type TestSlice} from './testing/tile_encoder';
import {decodeTileBatch, sectionBytes, TileFormatError} from './tile_decode';

const slice = (
  start: number,
  dur: number,
  id: number,
  more: Partial<TestSlice> = {},
): TestSlice => ({
  start,
  dur,
  id,
  name: id + 100,
  lane: 0,
  kind: 1,
  ...more,
});

/** Two native slices in two lanes, three short ones in two cells, at level 2 (cells of 64 ns). */
function scene(): ArrayBuffer {
  const slices = [
    slice(0, 100, 0),
    slice(200, 10, 1),
    slice(210, 30, 2),
    slice(300, 5, 3, {kind: 2}),
    slice(50, 80, 4, {lane: 1, kind: 8}),
  ];
  return encodeBatch(2, [buildTile(slices, 7, 2, 0)]);
}

test('a batch decodes to what was encoded', () => {
  const {level, tiles} = decodeTileBatch(scene());
  assert.equal(level, 2);
  assert.equal(tiles.length, 1);
  const tile = tiles[0];
  assert.ok(tile);
  assert.deepEqual([tile.track, tile.level, tile.index], [7, 2, 0]);
  assert.deepEqual([...tile.nativeStart], [0, 50]);
  assert.deepEqual([...tile.nativeDur], [100, 80]);
  assert.deepEqual([...tile.nativeSlice], [0, 4]);
  assert.deepEqual([...tile.nativeName], [100, 104]);
  assert.deepEqual([...tile.nativeLane], [0, 1]);
  assert.deepEqual([...tile.nativeKind], [1, 8]);
  assert.deepEqual([...tile.cellIndex], [3, 4]);
  assert.deepEqual([...tile.cellBusy], [40, 5]);
  assert.deepEqual([...tile.cellSlices], [2, 1]);
  assert.deepEqual([...tile.cellLongest], [2, 3]);
  assert.deepEqual([...tile.cellKind], [1, 2]);
});

test('columns are views over the reply, not copies', () => {
  const bytes = scene();
  const tile = decodeTileBatch(bytes).tiles[0];
  assert.equal(tile?.nativeStart.buffer, bytes);
});

test('an empty batch has no tiles', () => {
  assert.deepEqual(decodeTileBatch(encodeBatch(0, [])).tiles, []);
});

test('several tiles follow one another, whatever their sizes', () => {
  const slices = Array.from({length: 40}, (_, i) => slice(i * 100, 9, i));
  const batch = encodeBatch(
    1,
    [0, 1, 2].map(i => buildTile(slices, 3, 1, i)),
  );
  // Slices of 9 ns are native to level 1; tiles of level 1 are 4096 ns wide.
  assert.equal(decodeTileBatch(batch).tiles.length, 1);
  const two = encodeBatch(
    0,
    [0, 1].map(i => buildTile([slice(5, 3, 0), slice(600, 3, 1)], 3, 0, i)),
  );
  assert.deepEqual(
    decodeTileBatch(two).tiles.map(t => t.nativeStart[0]),
    [5, 600],
  );
});

test('a reply cut at any byte is an error and nothing else', () => {
  const whole = scene();
  for (let size = 0; size < whole.byteLength; size++) {
    assert.throws(() => decodeTileBatch(whole.slice(0, size)), TileFormatError, `cut at ${size}`);
  }
});

test('a reply with any one byte changed decodes or is an error, and never breaks an invariant', () => {
  const whole = scene();
  for (let at = 0; at < whole.byteLength; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const copy = whole.slice(0);
      const bytes = new Uint8Array(copy);
      bytes[at] = (bytes[at] ?? 0) ^ flip;
      try {
        for (const tile of decodeTileBatch(copy).tiles) {
          assert.ok([...tile.cellIndex].every(i => i < 512));
          assert.ok([...tile.nativeStart].every(t => t >= 0));
          assert.ok([...tile.nativeDur].every(d => d >= 0));
        }
      } catch (error) {
        assert.ok(error instanceof TileFormatError, `byte ${at}: ${String(error)}`);
      }
    }
  }
});

function patched(change: (view: DataView) => void): ArrayBuffer {
  const copy = scene();
  change(new DataView(copy));
  return copy;
}

test('hostile headers are refused before anything is allocated', () => {
  const cases: [string, (view: DataView) => void][] = [
    ['magic', v => v.setUint32(0, 0x31323334, true)],
    ['version', v => v.setUint16(4, 2, true)],
    ['level', v => v.setUint16(6, 18, true)],
    ['four billion tiles', v => v.setUint32(8, 0xffffffff, true)],
    ['more tiles than sections', v => v.setUint32(8, 2, true)],
    ['fewer tiles than sections', v => v.setUint32(8, 0, true)],
    ['section size 0', v => v.setUint32(16, 0, true)],
    ['section beyond the end', v => v.setUint32(16, 0xfffffff8, true)],
    ['four billion natives', v => v.setUint32(28, 0xffffffff, true)],
    ['four billion cells', v => v.setUint32(32, 0xffffffff, true)],
    ['another level', v => v.setUint8(36, 3)],
  ];
  for (const [name, change] of cases) {
    assert.throws(() => decodeTileBatch(patched(change)), TileFormatError, name);
  }
});

test('counts whose size wraps around 32 bits are refused', () => {
  // 8 n alone would be 2^32 for n = 2^29: the check must not be done in 32 bits.
  const n = 2 ** 29;
  assert.ok(sectionBytes(n, 0) > 2 ** 32);
  const bad = patched(v => {
    v.setUint32(28, n, true);
    v.setUint32(16, sectionBytes(n, 0) >>> 0, true);
  });
  assert.throws(() => decodeTileBatch(bad), TileFormatError);
});

test('hostile columns are refused: not a number, before 0, out of order, cells that do not exist', () => {
  const start = 16 + 32; // first column of the first section
  const cases: [string, (view: DataView) => void][] = [
    ['NaN start', v => v.setFloat64(start, NaN, true)],
    ['negative start', v => v.setFloat64(start, -1, true)],
    ['infinite duration', v => v.setFloat64(start + 16, Infinity, true)],
    ['beyond 2^53', v => v.setFloat64(start, 2 ** 53, true)],
    ['lanes descend', v => v.setUint16(start + 16 + 16 + 8 + 8, 5, true)],
    ['unknown kind', v => v.setUint8(start + 16 + 16 + 8 + 8 + 8, 15)],
  ];
  for (const [name, change] of cases) {
    assert.throws(() => decodeTileBatch(patched(change)), TileFormatError, name);
  }
  // Cells: busy, count, slice, name (8 bytes each for two), then the indices.
  const cells = start + 16 + 16 + 8 + 8 + 8 + 8;
  const cellCases: [string, (view: DataView) => void][] = [
    ['busy NaN', v => v.setFloat32(cells, NaN, true)],
    ['busy below 0', v => v.setFloat32(cells, -1, true)],
    ['cell 512', v => v.setUint16(cells + 32 + 2, 512, true)],
    ['cells descend', v => v.setUint16(cells + 32, 9, true)],
    ['one cell twice', v => v.setUint16(cells + 32, 4, true)],
  ];
  for (const [name, change] of cellCases) {
    assert.throws(() => decodeTileBatch(patched(change)), TileFormatError, name);
  }
});
