import assert from 'node:assert/strict';
import {test} from 'node:test';
import {formatRows, parseRows, type RowChoice} from './row_state';

const NONE: RowChoice = {
  showAll: false,
  collapsed: new Set(),
  expanded: new Set(),
  unfolded: new Set(),
  pinned: new Set(),
  hidden: new Set(),
  order: [],
  filter: '',
};

test('what was chosen comes back from its text', () => {
  const choices: RowChoice[] = [
    NONE,
    {...NONE, showAll: true},
    {...NONE, unfolded: new Set(['t3'])},
    {...NONE, pinned: new Set(['t3', 't12']), collapsed: new Set(['gd0', 'gp', 'gp17'])},
    {...NONE, expanded: new Set(['t0']), filter: 'a;b=c,only=d'},
    {...NONE, hidden: new Set(['u0', 't9']), order: ['t4', 'u0', 't1']},
    {...NONE, collapsed: new Set(['gd-1']), filter: ' '},
  ];
  for (const choice of choices) assert.deepEqual(parseRows(formatRows(choice)), choice);
  assert.equal(formatRows(NONE), '');
});

test('what is not ours is left out', () => {
  assert.deepEqual(parseRows('junk;pin=t1,<b>,x9;;open;fold=gd0;all=2'), {
    ...NONE,
    pinned: new Set(['t1']),
    collapsed: new Set(['gd0']),
  });
  assert.deepEqual(parseRows('order=t1,<b>,t1,t0').order, ['t1', 't0']);
  assert.deepEqual(parseRows('only='), NONE);
  assert.deepEqual(parseRows('pin=' + 't1,'.repeat(50_000)), NONE);
});
