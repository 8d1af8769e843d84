import assert from 'node:assert/strict';
import test from 'node:test';
import {THIN} from '../../base/format';
import {counterText, countText} from './overlay';

test('counter values are short', () => {
  assert.equal(countText(0), '0');
  assert.equal(countText(1234), '1.23 k');
  assert.equal(countText(8_740_000_000), '8.74 G');
  assert.equal(countText(-0.125), '-0.125');
  assert.equal(countText(74.06), '74.1');
});

test('megabytes are bytes of a fitting unit', () => {
  assert.equal(counterText('GPU 0: tensors allocated (MB)', 2790), `2.79${THIN}GB`);
  assert.equal(counterText('GPU 0: work launched, not begun', 2790), '2.79 k');
});
