import assert from 'node:assert/strict';
import test from 'node:test';
import {formatIndexSet} from '../../render/tile_plan';
import {NameStore} from './name_store';

const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Names of a server that names each by its number as `textOf` says, and what it was asked for. */
function bench(textOf: (id: number) => string): {
  names: NameStore;
  asked: (readonly number[])[];
} {
  const asked: (readonly number[])[] = [];
  const fetch = (ids: readonly number[]): Promise<(readonly [number, string])[]> => {
    asked.push(ids);
    return Promise.resolve(ids.map(id => [id, textOf(id)] as const));
  };
  return {names: new NameStore(fetch, () => undefined), asked};
}

test('names are asked for once, in one request for all of a frame', async () => {
  const {names, asked} = bench(id => `void ns::k${id}<int>(x)`);
  assert.equal(names.text(5), undefined);
  assert.equal(names.label(3), undefined);
  names.text(5);
  names.flush();
  names.text(5);
  names.flush();
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(asked, [[3, 5]]);
  assert.equal(names.text(5), 'void ns::k5<int>(x)');
  assert.equal(names.label(3), 'k3<\u2026>');
  names.putLabel(3, 'gemm bf16');
  assert.equal(names.label(3), 'gemm bf16');
  names.flush();
  assert.equal(asked.length, 1);
});

test('many names are asked for as ranges that take along what is between, in an address of 2 KiB', async () => {
  const {names, asked} = bench(id => `k${id}`);
  for (let id = 0; id < 3000; id += 3) names.text(id);
  names.flush();
  await settle();
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.length, 2998);
  assert.equal(names.text(1000), 'k1000');
  for (let i = 0; i < 400; i++) names.text(2_000_000_000 + i * 1000);
  while (!names.isIdle) {
    names.flush();
    await settle();
  }
  assert.ok(asked.every(ids => encodeURIComponent(formatIndexSet(ids)).length < 2048));
  assert.equal(names.text(2_000_399_000), 'k2000399000');
});

test('names that are on their way from the start are not asked for again, but if they do not come', async () => {
  for (const isHere of [true, false]) {
    const {names, asked} = bench(id => `later ${id}`);
    const first = isHere
      ? Promise.resolve([[3, 'first 3'] as const])
      : Promise.reject(new Error('away'));
    void names.takeFirst(100, first);
    assert.ok(!names.isIdle);
    assert.equal(names.text(3), undefined);
    names.text(100);
    names.flush();
    assert.deepEqual(asked, [[100]]);
    await settle();
    names.text(3);
    names.flush();
    await settle();
    assert.equal(names.text(3), isHere ? 'first 3' : 'later 3');
    assert.equal(asked.length, isHere ? 1 : 2);
    assert.ok(names.isIdle);
  }
});
