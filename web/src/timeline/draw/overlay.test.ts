import assert from 'node:assert/strict';
import test from 'node:test';
import {countText} from './overlay';

test('counter values are short', () => {
  assert.equal(countText(0), '0');
  assert.equal(countText(1234), '1.23 k');
  assert.equal(countText(8_740_000_000), '8.74 G');
  assert.equal(countText(-0.125), '-0.125');
});
