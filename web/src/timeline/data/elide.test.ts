import assert from 'node:assert/strict';
import test from 'node:test';
import {elideMiddle} from './elide';

test('eliding keeps the ends, and whole characters', () => {
  assert.equal(elideMiddle('abcdefghijklmnop', 10), 'abcdef\u2026mnop');
  assert.equal(elideMiddle('abcdefgh', 4), 'abcd\u2026');
  assert.equal(elideMiddle('abc', 5), 'abc');
  assert.equal(elideMiddle('\u{1f600}\u{1f601}\u{1f602}\u{1f603}', 2), '\u{1f600}\u{1f601}\u2026');
});
