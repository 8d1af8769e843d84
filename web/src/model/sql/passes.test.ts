import assert from 'node:assert/strict';
import {test} from 'node:test';
import {otherPass, passQuery, sequenceOf} from './passes';

test('the number of a slice is a whole one from 0 on', () => {
  assert.equal(sequenceOf({'Sequence number': 1067}), 1067);
  for (const bad of [-1, 1.5, '7; DROP', undefined, NaN])
    assert.equal(sequenceOf({'Sequence number': bad}), undefined);
  assert.ok(passQuery(1067).includes('= 1067 ORDER'));
});

test('a forward operator leads to the backward ones, and back', () => {
  const rows = [
    [1, 'aten::nll_loss_nd', 86, 25738, 0],
    [2, 'aten::nll_loss', 73, 25738, undefined],
    [9, 'NllLossBackward', 163, 25772, 1],
    [10, 'torch::autograd::AccumulateGrad', 3, 25772, undefined],
    ['x', 'broken', 1, 1, 1],
  ];
  assert.deepEqual(
    otherPass(rows, 2).map(row => row.slice),
    [9, 10],
  );
  assert.deepEqual(
    otherPass(rows, 9).map(row => row.slice),
    [1, 2],
  );
  assert.equal(otherPass(rows, 77).length, 4);
  assert.deepEqual(otherPass([], 1), []);
});
