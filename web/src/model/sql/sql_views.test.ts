import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {SqlResult} from '../../api/sql';
import {chartOf, usualChoice} from './chart';
import {complete} from './complete';
import {hasTimes, trackOf} from './track';

const column = (name: string) => ({name, type: 'INTEGER', doc: '', is_argument: false});
const reference = {
  tables: [
    {name: 'kernels', doc: '', columns: [column('id'), column('start_ns'), column('stream')]},
    {name: 'steps', doc: '', columns: [column('step'), column('starved_ns')]},
  ],
  questions: [],
};
const result = (columns: string[], rows: SqlResult['rows']): SqlResult => ({
  columns,
  rows,
  row_count: rows.length,
  cut: undefined,
});

test('a word is completed from the tables that the query names, then from all', () => {
  const text = 'SELECT st FROM kernels';
  assert.deepEqual(complete(text, 9, reference), {
    from: 7,
    words: ['start_ns', 'stream', 'steps', 'STDDEV'],
  });
  assert.deepEqual(complete('SELECT sta', 10, reference).words, ['start_ns', 'starved_ns']);
  assert.deepEqual(complete('SELECT k. FROM kernels k', 9, reference).words, [
    'id',
    'start_ns',
    'stream',
  ]);
  assert.deepEqual(complete('FROM ker', 8, reference).words, ['kernels']);
  assert.deepEqual(complete('FROM kernels', 12, reference).words, []);
  assert.deepEqual(complete("WHERE name = 'st", 16, reference).words, []);
  assert.deepEqual(complete('SELECT st', 9, undefined).words, []);
});

test('words become bars and numbers a line', () => {
  const rows = result(
    ['name', 'id', 'total_ns'],
    [
      ['b', 1, 5],
      ['a', 2, 7],
    ],
  );
  const choice = usualChoice(rows);
  assert.deepEqual(choice, {x: 0, y: [2]});
  const bars = chartOf(rows, choice ?? {x: 0, y: []});
  assert.deepEqual([bars.kind, bars.labels, bars.series[0]?.values], ['bars', ['b', 'a'], [5, 7]]);
  const line = chartOf(
    result(
      ['step', 'dur_ns'],
      [
        [2, 20],
        [1, 10],
      ],
    ),
    {x: 0, y: [1]},
  );
  assert.deepEqual([line.kind, line.x, line.series[0]?.values], ['line', [1, 2], [10, 20]]);
  assert.equal(usualChoice(result(['name'], [['a']])), undefined);
  const many = result(
    ['n', 'v'],
    Array.from({length: 100}, (_, i) => [`x${i}`, i]),
  );
  assert.equal(chartOf(many, {x: 0, y: [1]}).left, 60);
});

test('rows with times become a track in lanes', () => {
  const rows = result(
    ['id', 'name', 'start_ns', 'end_ns'],
    [
      [3, 'c', 10, 30],
      [1, 'a', 0, 20],
      [2, undefined, 20, 25],
      [4, 'd', undefined, 5],
    ],
  );
  assert.equal(hasTimes(rows), true);
  assert.equal(hasTimes(result(['start_ns'], [])), false);
  const track = trackOf('t', 'q', rows);
  assert.deepEqual(
    track.slices.map(slice => [slice.id, slice.start, slice.dur, slice.lane]),
    [
      [1, 0, 20, 0],
      [3, 10, 20, 1],
      [2, 20, 5, 0],
    ],
  );
  assert.deepEqual([track.lanes, track.left], [2, 1]);
});
