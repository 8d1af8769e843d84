import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {AreaName} from '../api/types';
import {areaTable, pressAreaSort} from './area_table';
import {tableCsv, tableMarkdown} from './data_table';

const areaCsv = (names: readonly AreaName[]): string => {
  const {columns, rows} = areaTable(names);
  return tableCsv(columns, rows);
};
const areaMarkdown = (names: readonly AreaName[]): string => {
  const {columns, rows} = areaTable(names);
  return tableMarkdown(columns, rows);
};

const row = (name: string, change: Partial<AreaName> = {}): AreaName => ({
  name_id: 1,
  name,
  short: '',
  kind: 'op',
  count: 2,
  total_ns: 3_000_500 as AreaName['total_ns'],
  self_ns: 1_000_000 as AreaName['self_ns'],
  mean_ns: 1_500_250 as AreaName['mean_ns'],
  max_ns: 2_000_000 as AreaName['max_ns'],
  longest_slice: 7,
  ...change,
});

test('CSV holds every digit and no formula', () => {
  assert.equal(
    areaCsv([row('a,"b"\n'), row('=HYPERLINK(1)'), row('plain')]),
    'name,kind,count,total_ns,self_ns,mean_ns,max_ns\n' +
      '"a,""b""\n",op,2,3000500,1000000,1500250,2000000\n' +
      "'=HYPERLINK(1),op,2,3000500,1000000,1500250,2000000\n" +
      'plain,op,2,3000500,1000000,1500250,2000000\n',
  );
});

test('Markdown keeps its columns whatever the names hold', () => {
  const text = areaMarkdown([row('a|b\nc', {short: ''}), row('long name', {short: 'short'})]);
  const lines = text.trimEnd().split('\n');
  assert.equal(lines.length, 4);
  assert.equal(lines[2], '| a\\|b c | op | 2 | 3 ms | 1 ms | 1.5 ms | 2 ms |');
  assert.match(lines[3] ?? '', /^\| short \|/);
});

test('a press on a head turns the order round, on another begins with its own', () => {
  const sort = {column: 'total', ascending: false} as const;
  assert.deepEqual(pressAreaSort(sort, 'total'), {column: 'total', ascending: true});
  assert.deepEqual(pressAreaSort(sort, 'name'), {column: 'name', ascending: true});
  assert.deepEqual(pressAreaSort(sort, 'count'), {column: 'count', ascending: false});
});
