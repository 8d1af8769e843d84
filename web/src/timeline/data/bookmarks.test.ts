import assert from 'node:assert/strict';
import test from 'node:test';
import {bookmarkAt} from './bookmarks';

const mark = (start_ns: number, dur_ns: number) => ({
  id: `${start_ns}`,
  start_ns,
  dur_ns,
  note: '',
  author: '',
});

test('a bookmark is met at its flag, within its length, and a little beside', () => {
  const all = [mark(100, 0), mark(200, 1000), mark(500, 10)];
  assert.equal(bookmarkAt(all, 104, 5)?.id, '100');
  assert.equal(bookmarkAt(all, 106, 5), undefined);
  assert.equal(bookmarkAt(all, 300, 5)?.id, '200');
  assert.equal(bookmarkAt(all, 505, 5)?.id, '500'); // inside the long one
  assert.equal(bookmarkAt(all, 900, 5)?.id, '200');
  assert.equal(bookmarkAt(all, 1206, 5), undefined);
  assert.equal(bookmarkAt([], 0, 5), undefined);
});
