import assert from 'node:assert/strict';
import {test} from 'node:test';
import {traceShape} from '../../api/types';
import {
  factsOf,
  formatListSort,
  groupRows,
  parseListSort,
  pressListSort,
  recordedAt,
  sortRows,
} from './list_order';
import {groupRuns} from '../runs';

const NOW = new Date('2026-06-01T00:00:00Z');
const trace = (part: Record<string, unknown>) =>
  traceShape({id: 'a', state: 'ready', created_at: '2026-01-01T00:00:00Z', ...part}, '');
const rowsOf = (parts: readonly Record<string, unknown>[]) =>
  groupRuns(parts.map(trace)).map(row => ({row, facts: factsOf(row, undefined, undefined, NOW)}));
const names = (rows: ReturnType<typeof sortRows>) => rows.map(({facts}) => facts.name);

const summary = (step_mean_ns: number | null, letter = 'D') => ({
  letter,
  cause: 'data_wait',
  text: 'x',
  throughput_unit: 'samples',
  step_mean_ns,
});

test('a column sorts both ways, and rows without a value come last both ways', () => {
  const rows = rowsOf([
    {id: '1', name: 'run 10', summary: summary(5)},
    {id: '2', name: 'run 9', summary: summary(70)},
    {id: '3', name: 'run 1', summary: summary(null)},
  ]);
  assert.deepEqual(names(sortRows(rows, parseListSort('step'))), ['run 9', 'run 10', 'run 1']);
  assert.deepEqual(names(sortRows(rows, parseListSort('-step'))), ['run 10', 'run 9', 'run 1']);
  assert.deepEqual(names(sortRows(rows, parseListSort('-name'))), ['run 1', 'run 9', 'run 10']);
  assert.deepEqual(names(sortRows(rows, parseListSort(''))), ['run 10', 'run 9', 'run 1']);
});

test('the address holds the order, and what it may not say is the usual one', () => {
  assert.deepEqual(parseListSort('nonsense'), {column: 'added', ascending: false});
  for (const text of ['', 'step', '-step', '-name', '-added'])
    assert.equal(formatListSort(parseListSort(text)), text);
  assert.equal(formatListSort(pressListSort(parseListSort(''), 'step')), 'step');
  assert.equal(formatListSort(pressListSort(parseListSort('step'), 'step')), '-step');
  assert.equal(formatListSort(pressListSort(parseListSort(''), 'name')), '-name');
});

test('groups have their heads in order, and a row with two tags stands under both', () => {
  const rows = rowsOf([
    {
      id: '1',
      name: 'a',
      project: 'vision',
      tags: ['bf16', 'a100'],
      summary: {...summary(1), model: 'ResNet'},
    },
    {id: '2', name: 'b', tags: ['bf16']},
    {id: '3', name: 'c', project: 'audio'},
  ]);
  const told = (by: 'project' | 'model' | 'tag') =>
    groupRows(rows, by).map(group => [group.title, ...names(group.rows)]);
  assert.deepEqual(told('project'), [
    ['audio', 'c'],
    ['vision', 'a'],
    ['no project', 'b'],
  ]);
  assert.deepEqual(told('model'), [
    ['ResNet', 'a'],
    ['no model', 'b', 'c'],
  ]);
  assert.deepEqual(told('tag'), [
    ['a100', 'a'],
    ['bf16', 'a', 'b'],
    ['no tag', 'c'],
  ]);
});

test('a clock that counts from the start of a machine is no date', () => {
  const at = (t0_ns: string) => recordedAt(trace({t0_ns}), NOW)?.toISOString();
  assert.equal(at('1700000000000000000'), '2023-11-14T22:13:20.000Z');
  assert.equal(at('86400000000000'), undefined);
  assert.equal(at('0'), undefined);
  assert.equal(at('9000000000000000000'), undefined);
});
