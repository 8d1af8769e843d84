import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {Comparison} from '../api/types';
import {setTestWords} from '../base/testing/words';
import {
  bar,
  beforeAndAfter,
  familyRows,
  kindRows,
  operatorRows,
  toneOf,
  wentRows,
} from './comparison';

setTestWords();

const row = (name: string, a: number, b: number) => ({name, a_ns: a, b_ns: b, delta_ns: b - a});

function made(change: Partial<Comparison> = {}): Comparison {
  const side = {
    id: undefined,
    name: '',
    simulated: false,
    cause: 'gpu',
    letter: 'G',
    text: '',
    kept_steps: 6,
    step_mean_ns: 1e8,
    throughput_per_s: 10,
    throughput_unit: 'steps',
    not_computing_pct: 1,
  };
  return {
    schema: 'lacuna.compare/1',
    a: side,
    b: side,
    verdict: 'faster',
    text: '',
    why_not: '',
    refusal: undefined,
    step: {
      a_ns: 1e8,
      b_ns: 8e7,
      delta_ns: -2e7,
      change_pct: -20,
      low_pct: -21,
      high_pct: -19,
    },
    throughput: {
      unit: 'steps',
      a_per_s: 10,
      b_per_s: 12.5,
      change_pct: 25,
      low_pct: 24,
      high_pct: 26,
    },
    changed: {text: '', count: 0, one_change: false, differences: []},
    predicted: undefined,
    result: undefined,
    kinds: [],
    ranks: undefined,
    where: {
      partition: [row('compute', 6e7, 6e7), row('exposed_copy', 0, 5e6), row('idle', 4e7, 1.5e7)],
      idle_by_cause: [
        row('data_wait', 3.9e7, 1e7),
        row('sync', 10, 20),
        row('unattributed', 1e6, 5e6),
      ],
      kernel_family: [row('gemm', 5e7, 5.00001e7), row('layout', 1e7, 0)],
      operator: [
        row('aten::linear', 5e7, 5.00001e7),
        row('autograd::engine::evaluate_function: ConvolutionBackward0', 1e7, 0),
        row('aten::to', 0, 2e7),
        row('(no operator)', 0, 3e7),
      ],
    },
    findings: {gone: [], come: [], stayed: []},
    ...change,
  };
}

test('the step is divided into work and waiting, the largest change first', () => {
  const rows = wentRows(made());
  assert.deepEqual(
    rows.map(r => [r.name, r.deltaNs]),
    [
      ['causes data_wait', -2.9e7],
      ['parts exposed_copy', 5e6],
      ['causes unattributed', 4e6],
      ['parts compute', 0],
    ],
  );
  assert.equal(rows[0]?.cause, 'data_wait');
  assert.equal(rows[1]?.cause, undefined);
});

test('without a division there are no rows', () => {
  assert.deepEqual(wentRows(made({where: undefined})), []);
  assert.deepEqual(familyRows(made({where: undefined})), []);
});

test('families of kernels are named, those that did not change left out', () => {
  assert.deepEqual(
    familyRows(made()).map(r => r.name),
    ['kernel_families layout'],
  );
});

test('bars grow from the middle', () => {
  assert.deepEqual(bar(-10, 20), {left: 25, width: 25});
  assert.deepEqual(bar(20, 20), {left: 50, width: 50});
  assert.deepEqual(bar(90, 20), {left: 50, width: 50});
  assert.deepEqual(bar(5, 0), {left: 50, width: 0});
});

test('only what is real has a tone', () => {
  assert.deepEqual(['faster', 'slower', 'same', 'too_few', 'unknown', ''].map(toneOf), [
    'good',
    'bad',
    'neutral',
    'neutral',
    'neutral',
    'neutral',
  ]);
});

test('of two traces the older one is before; more or fewer are no comparison', () => {
  const traces = [
    {id: 'new', created_at: '2026-02-01'},
    {id: 'old', created_at: '2026-01-01'},
    {id: 'older', created_at: '2026-01-01'},
  ];
  assert.deepEqual(beforeAndAfter(['new', 'old'], traces), ['old', 'new']);
  assert.deepEqual(beforeAndAfter(['old', 'older'], traces), ['older', 'old']);
  assert.equal(beforeAndAfter(['new'], traces), undefined);
  assert.equal(beforeAndAfter(['new', 'old', 'older'], traces), undefined);
  assert.equal(beforeAndAfter(['new', 'gone'], traces), undefined);
});

test('operators are those that changed, under the names that people use', () => {
  assert.deepEqual(
    operatorRows(made()).map(it => it.name),
    ['to', 'ConvolutionBackward0'],
  );
});

test('kinds of steps beside training are rows of their own', () => {
  const kinds = [
    {kind: 'train', a_count: 10, b_count: 10, a_mean_ns: 1e8, b_mean_ns: 8e7},
    {kind: 'validation', a_count: 2, b_count: 0, a_mean_ns: 1e9, b_mean_ns: undefined},
  ];
  assert.deepEqual(kindRows(made({kinds})), [
    {name: 'step_kinds validation', aNs: 1e9, bNs: undefined, counts: '2 and 0'},
  ]);
});
