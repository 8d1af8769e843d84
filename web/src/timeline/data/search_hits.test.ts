import assert from 'node:assert/strict';
import test from 'node:test';
import {searchShape, type SearchReply} from '../../api/types';
import {SearchHits} from './search_hits';

const reply = (starts: number[], next: string | null): SearchReply =>
  searchShape(
    {
      total: 5,
      hits: starts.map(t => ({slice: t, track: 0, start_ns: t, dur_ns: 1})),
      next,
    },
    '',
  );

test('hits: the first is at or after the window, pages are loaded as needed, in a circle', async () => {
  const asked: (string | undefined)[] = [];
  const search = new SearchHits(
    (_q, after) => {
      asked.push(after);
      return Promise.resolve(
        after === undefined ? reply([10, 20, 30], 'p2') : reply([40, 50], null),
      );
    },
    () => undefined,
  );
  search.set('conv');
  assert.equal((await search.step(1, 15))?.slice, 20);
  assert.equal((await search.step(1, 15))?.slice, 30);
  assert.equal((await search.step(1, 15))?.slice, 40);
  assert.deepEqual(asked, [undefined, 'p2']);
  assert.equal((await search.step(1, 15))?.slice, 50);
  assert.equal((await search.step(1, 15))?.slice, 10);
  assert.equal((await search.step(-1, 15))?.slice, 50);
  search.set('');
  assert.equal(search.state.value.kind, 'idle');
  assert.equal(await search.step(1, 0), undefined);
});

test('backwards from nothing goes to the last hit before the window', async () => {
  const search = new SearchHits(
    () => Promise.resolve(reply([10, 20, 30], null)),
    () => undefined,
  );
  search.set('conv');
  assert.equal((await search.step(-1, 25))?.slice, 20);
});

test('a page of hits that comes when something else is looked for changes nothing', async () => {
  let answer: (page: SearchReply) => void = () => undefined;
  const search = new SearchHits(
    (_q, after) =>
      after === undefined
        ? Promise.resolve(reply([10], 'p2'))
        : new Promise(resolve => (answer = resolve)),
    () => undefined,
  );
  search.set('conv');
  await search.step(1, 0);
  const second = search.step(1, 0); // asks for the next page
  await Promise.resolve();
  search.set('gemm');
  answer(reply([20], null));
  assert.equal(await second, undefined);
  assert.equal(search.state.value.kind, 'loading');
  search.close();
});

test('a search that fails says so', async () => {
  const search = new SearchHits(
    () => Promise.reject(new Error('no')),
    () => undefined,
  );
  search.set('x');
  assert.equal(await search.step(1, 0), undefined);
  assert.equal(search.state.value.kind, 'error');
});

test('all hits are known by their part of the trace from the first page on', async () => {
  const pages = [
    searchShape(
      {total: 3, hits: [{slice: 1, track: 0, start_ns: 1, dur_ns: 1}], next: 'p2', bins: [1, 0, 2]},
      '',
    ),
    searchShape({total: 3, hits: [{slice: 2, track: 0, start_ns: 9, dur_ns: 1}], next: null}, ''),
  ];
  const search = new SearchHits(
    () => Promise.resolve(pages.shift() ?? reply([], null)),
    () => undefined,
  );
  search.set('conv');
  await search.step(1, 0);
  await search.step(1, 0);
  assert.equal(search.hits.length, 2);
  assert.deepEqual(search.bins, [1, 0, 2]);
  search.set('gemm');
  assert.deepEqual(search.bins, []);
  search.close();
});
