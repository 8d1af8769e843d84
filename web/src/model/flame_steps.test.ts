import assert from 'node:assert/strict';
import {test} from 'node:test';

import {ALL_TIME, MEASURED, usualSteps} from './flame_steps';

test('a flame graph is of the measured steps, and of all time where a part of it takes seconds', () => {
  assert.equal(usualSteps({slice_count: 0}), MEASURED);
  assert.equal(usualSteps({slice_count: 2_000_000}), MEASURED);
  assert.equal(usualSteps({slice_count: 24_000_000}), ALL_TIME);
});
