import assert from 'node:assert/strict';
import {test} from 'node:test';
import {sqlResultShape} from '../api/sql';
import {isNumeric, parseHistory, remember, resultCsv} from './sql_query';

test('a query that is asked again stands first, once, and the oldest are forgotten', () => {
  assert.deepEqual(remember(['b', 'a'], ' a '), ['a', 'b']);
  assert.deepEqual(remember(['a'], '  '), ['a']);
  let history: readonly string[] = [];
  for (let i = 0; i < 100; i++) history = remember(history, `SELECT ${i}`);
  assert.equal(history.length, 30);
  assert.equal(history[0], 'SELECT 99');
});

test('what storage holds is taken only as a list of texts', () => {
  assert.deepEqual(parseHistory(null), []);
  assert.deepEqual(parseHistory('{"a":1}'), []);
  assert.deepEqual(parseHistory('not json'), []);
  assert.deepEqual(parseHistory('["a",1,null,"b"]'), ['a', 'b']);
});

test('rows are copied as CSV', () => {
  const result = sqlResultShape(
    {
      columns: ['a', 'b,c'],
      rows: [
        [1, 'x"y'],
        [null, 'line\nbreak'],
      ],
      row_count: 2,
      cut: null,
    },
    '',
  );
  assert.equal(resultCsv(result), 'a,"b,c"\r\n1,"x""y"\r\n,"line\nbreak"\r\n');
  assert.ok(isNumeric(result, 0));
  assert.ok(!isNumeric(result, 1));
});
