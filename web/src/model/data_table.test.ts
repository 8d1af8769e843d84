import assert from 'node:assert/strict';
import {test} from 'node:test';
import {tableShape} from '../api/table_types';
import {setTestWords} from '../base/testing/words';
import {
  exactCell,
  formatCell,
  formatRowCell,
  formatTableSort,
  parseTableSort,
  pressTableSort,
  tableCsv,
  tableMarkdown,
  tableOf,
} from './data_table';

setTestWords();

const table = tableShape(
  {
    columns: [
      {id: 'name', label: 'name', unit: 'text', definition: ''},
      {id: 'total_ns', label: 'total', unit: 'ns', definition: ''},
      {id: 'p95_ns', label: 'p95', unit: 'ns', definition: ''},
      {id: 'bytes', label: 'bytes', unit: 'bytes', definition: ''},
    ],
    total: 2,
    all: null,
    rows: [
      {cells: ['void gemm<a|b>(int, "x")', 1500, 900, null], short: 'gemm', slice: 4, bins: null},
      {cells: ['=SUM(A1)', 2, null, 2048], short: null, slice: null, bins: [1, 2]},
    ],
    next: null,
  },
  '',
);
const [name, total, , bytes] = table.columns;

test('cells are read by their unit, and nothing is no zero', () => {
  assert.ok(name && total && bytes);
  assert.equal(formatCell(total, 1500).replace(/\s/, ' '), '1.5 µs');
  assert.equal(formatCell(bytes, undefined), '');
  assert.equal(
    formatCell({...name, id: 'root_cause'}, 'launched (13 us)'),
    'launched (13\u00a0µs)',
  );
  assert.equal(formatCell(name, 'sleep 13 us'), 'sleep 13 us');
  assert.equal(exactCell(bytes, undefined), 'not recorded, or not of this row');
  assert.match(exactCell(bytes, 2048), /2.?048 bytes/);
});

test('what ran in no time of a whole microsecond is not said to have taken none', () => {
  const counted = tableShape(
    {
      columns: [
        {id: 'count', label: 'count', unit: 'count', definition: ''},
        {id: 'min_ns', label: 'min', unit: 'ns', definition: ''},
        {id: 'wait_ns', label: 'wait', unit: 'ns', definition: ''},
      ],
      total: 1,
      all: null,
      rows: [{cells: [3, 0, 0], short: null, slice: null, bins: null}],
      next: null,
    },
    '',
  );
  const row = counted.rows[0];
  assert.ok(row && total);
  const texts = [1, 2].map(i => formatRowCell(counted.columns, row, i).replace(/\s/g, ' '));
  assert.deepEqual(texts, ['< 1 µs', '0 ms']);
});

test('a copy has all digits, quotes what needs it, and disarms formulas', () => {
  assert.equal(
    tableCsv(table.columns, table.rows),
    'name,total_ns,p95_ns,bytes\n"void gemm<a|b>(int, ""x"")",1500,900,\n\'=SUM(A1),2,,2048\n',
  );
  const markdown = tableMarkdown(table.columns, table.rows);
  assert.match(
    markdown,
    /^\| name \| total \| p95 \| bytes \|\n\|---\|--:\|--:\|--:\|\n\| gemm \| 1\.5 µs/,
  );
});

test('pressing a head again turns the order around; texts begin with A', () => {
  assert.ok(name && total);
  const sort = pressTableSort(undefined, total);
  assert.equal(formatTableSort(sort), 'total_ns');
  assert.equal(formatTableSort(pressTableSort(sort, total)), '-total_ns');
  assert.equal(formatTableSort(pressTableSort(sort, name)), '-name');
  assert.deepEqual(parseTableSort('-p95_ns'), {column: 'p95_ns', ascending: true});
  assert.equal(parseTableSort(''), undefined);
});

test('an address that names no table is that of kernels', () => {
  assert.equal(tableOf('gaps'), 'gaps');
  assert.equal(tableOf('__proto__'), 'kernels');
});
