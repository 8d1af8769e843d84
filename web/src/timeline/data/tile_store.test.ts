import assert from 'node:assert/strict';
import test from 'node:test';
import {buildTile, encodeBatch, type TestSlice} from '../../render/testing/tile_encoder';
import {levelMaxFor, tileNs, type TileRequest} from '../../render/tile_plan';
import {TileStore, type TileFetch, type View} from './tile_store';

const DURATION = 60 * tileNs(1);

const SLICES: TestSlice[] = Array.from({length: 2000}, (_, i) => ({
  start: i * 80,
  dur: 9,
  id: i,
  name: 1,
  lane: 0,
  kind: 1,
}));

const answer = (request: TileRequest): ArrayBuffer => {
  const tiles = [];
  for (const track of request.tracks) {
    for (let i = request.first; i <= request.last; i++) {
      tiles.push(buildTile(SLICES, track, request.level, i));
    }
  }
  return encodeBatch(request.level, tiles);
};

interface Bench {
  readonly store: TileStore;
  readonly asked: TileRequest[];
  /** Replies that wait to be released, when `isHeld`. */
  readonly held: (() => void)[];
  settle(): Promise<void>;
}

function bench(options: {budget?: number; isHeld?: boolean; fetch?: TileFetch} = {}): Bench {
  const asked: TileRequest[] = [];
  const held: (() => void)[] = [];
  const fetch: TileFetch =
    options.fetch ??
    ((request, _set, signal) =>
      new Promise((resolve, reject) => {
        asked.push(request);
        signal.addEventListener('abort', () => reject(new DOMException('gone', 'AbortError')));
        if (options.isHeld) held.push(() => resolve(answer(request)));
        else resolve(answer(request));
      }));
  const store = new TileStore({
    fetch,
    durationNs: DURATION,
    levelMax: levelMaxFor(DURATION),
    budgetBytes: options.budget ?? 1e9,
    onChange: () => undefined,
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) await new Promise(resolve => setImmediate(resolve));
  };
  return {store, asked, held, settle};
}

const view = (t0: number, t1: number, tracks: number[], margin = 0): View => ({
  t0,
  t1,
  nsPerPx: 8,
  tracks,
  margin,
});

test('a view loads its tiles; asking again asks nothing', async () => {
  const {store, asked, settle} = bench();
  store.want([view(0, tileNs(1) - 1, [3])]);
  await settle();
  const tile = store.get(3, 1, 0);
  assert.ok(tile);
  assert.equal(tile.nativeCount, 52);
  assert.equal(store.version(3), asked.length);
  assert.equal(store.pending, 0);
  const before = asked.length;
  store.want([view(0, tileNs(1) - 1, [3])]);
  store.want([view(10, tileNs(1) - 10, [3])]);
  await settle();
  assert.equal(asked.length, before);
});

test('tiles without content are known to be empty, and not asked for again', async () => {
  const {store, asked, settle} = bench();
  const t = 50 * tileNs(1); // beyond the last slice
  store.want([view(t, t + 100, [1])]);
  await settle();
  assert.equal(store.get(1, 1, 50), null);
  assert.equal(store.get(1, 1, 0), undefined);
  const before = asked.length;
  store.want([view(t + 50, t + 150, [1])]);
  await settle();
  assert.equal(asked.length, before);
});

test('what is on screen is asked for before what lies beside it, coarse before fine', () => {
  const {store, asked} = bench({isHeld: true});
  store.want([view(5 * tileNs(1), 6 * tileNs(1) - 1, [1], 1)]);
  // Five at a time: the coarser levels first, down to the view's own.
  const levels = asked.map(r => r.level);
  assert.deepEqual(
    levels,
    [...levels].sort((a, b) => b - a),
  );
  const own = asked.find(r => r.level === 1);
  assert.deepEqual(own && [own.first, own.last], [5, 5]);
});

test('a superseded request is aborted; one that is still wanted is not', async () => {
  const {store, asked, settle} = bench({isHeld: true});
  store.want([view(0, tileNs(1) - 1, [1])]);
  const first = asked.length;
  store.want([view(30 * tileNs(1), 31 * tileNs(1) - 1, [1])]);
  await settle();
  // The coarsest tiles cover both places; the fine one does not.
  assert.ok(store.stats.aborted >= 1);
  assert.ok(store.stats.aborted < first);
  assert.equal(store.get(1, 1, 0), undefined);
});

test('what was aborted is asked for again when it comes back into view', async () => {
  const {store, asked, held, settle} = bench({isHeld: true});
  const here = view(0, tileNs(1) - 1, [1]);
  store.want([here]);
  store.want([view(30 * tileNs(1), 31 * tileNs(1) - 1, [1])]);
  await settle();
  store.want([here]);
  for (let i = 0; i < 20; i++) {
    for (const release of held.splice(0)) release();
    await settle();
  }
  assert.ok(store.get(1, 1, 0));
  assert.ok(asked.filter(r => r.level === 1 && r.first === 0).length >= 2);
});

test('the cache stays within its budget, and drops what was used longest ago', async () => {
  const {store, settle} = bench({budget: 12_000});
  for (let i = 0; i < 30; i++) {
    store.want([view(i * tileNs(1), (i + 1) * tileNs(1) - 1, [1])]);
    await settle();
    store.get(1, 1, i);
    store.get(1, levelMaxFor(DURATION), 0);
  }
  assert.ok(store.stats.evicted > 0);
  assert.ok(store.bytes <= 12_000, `${store.bytes}`);
  assert.equal(store.get(1, 1, 0), undefined, 'the oldest is gone');
  assert.ok(store.get(1, 1, 29) !== undefined, 'the newest is there');
  assert.ok(store.get(1, levelMaxFor(DURATION), 0) !== undefined, 'what is in use is there');
});

test('a damaged reply is a failure with its reason, not a picture; retry asks again', async () => {
  let isBroken = true;
  const {store, settle} = bench({
    fetch: request => {
      const bytes = answer(request);
      if (isBroken) new Uint8Array(bytes)[0] = 0;
      return Promise.resolve(bytes);
    },
  });
  store.want([view(0, 100, [1])]);
  await settle();
  assert.equal(store.failure?.isCorrupt, true);
  assert.equal(store.get(1, 1, 0), undefined);
  assert.equal(store.pending, 0);
  isBroken = false;
  store.retry();
  await settle();
  assert.equal(store.failure, undefined);
  assert.ok(store.get(1, 1, 0));
});

test('a tile that nobody asked for is a damaged reply', async () => {
  const {store, settle} = bench({
    fetch: request => Promise.resolve(answer({...request, tracks: [9]})),
  });
  store.want([view(0, 100, [1])]);
  await settle();
  assert.equal(store.failure?.isCorrupt, true);
});

test('when the server is away the store says so and tries again by itself', async t => {
  const waiting: {run: () => void; ms: number}[] = [];
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => waiting.push({run, ms}));
  let isAway = true;
  const {store, settle} = bench({
    fetch: request =>
      isAway ? Promise.reject(new TypeError('fetch failed')) : Promise.resolve(answer(request)),
  });
  store.want([view(0, 100, [1])]);
  await settle();
  assert.equal(store.failure?.isCorrupt, false);
  isAway = false;
  assert.equal(waiting.length, 1);
  assert.ok((waiting[0]?.ms ?? Infinity) <= 1000);
  waiting[0]?.run();
  await settle();
  assert.equal(store.failure, undefined);
  assert.ok(store.get(1, 1, 0));
  store.close();
});

test('two views share what they have in common', async () => {
  const {store, asked, settle} = bench();
  store.want([view(0, 100, [1, 2]), {...view(0, DURATION, [2]), nsPerPx: 512}]);
  await settle();
  const seen = new Set<string>();
  for (const r of asked) {
    for (const track of r.tracks) {
      for (let i = r.first; i <= r.last; i++) {
        const key = `${track}/${r.level}/${i}`;
        assert.ok(!seen.has(key), `${key} twice`);
        seen.add(key);
      }
    }
  }
});

test('what two views want of the same tiles is one request', async () => {
  const {store, asked, settle} = bench();
  store.want([view(0, tileNs(1) - 1, [3, 7]), view(0, tileNs(1) - 1, [5, 7])]);
  await settle();
  const ofLevel = asked.filter(({level}) => level === 1);
  assert.deepEqual(
    ofLevel.map(({tracks}) => tracks),
    [[3, 5, 7]],
  );
  assert.ok(store.get(5, 1, 0));
});
