import assert from 'node:assert/strict';
import {test} from 'node:test';
import {analysisShape, traceShape} from './types';

test('replies of a newer or poorer server still read', () => {
  const trace = traceShape({id: 'x', state: 'importing', summary: null, later: 1}, '');
  assert.equal(trace.summary, undefined);
  assert.equal(trace.generation, 1);
  const analysis = analysisShape(
    {schema: 'lacuna.analysis/1', trace: {}, verdict: {}, layout: null, tensor_core: null},
    '',
  );
  assert.deepEqual(analysis.findings, []);
  assert.equal(analysis.throughput.per_s, undefined);
});

test('a finding says what it is about and how its change is read; an older one does not', () => {
  const findings = analysisShape(
    {
      schema: 'lacuna.analysis/1',
      trace: {},
      verdict: {},
      findings: [
        {id: 'sync-stall', cause: 'sync', change_kind: 'code', effort: 'lines'},
        {id: 'gpu-bound', cause: 'gpu', change_kind: 'text', effort: 'hardware'},
        {id: 'sync-stall', change: 'x = f(y)'},
        {id: 'later', cause: 'solar_wind', change_kind: 'diagram', effort: 'heroic'},
      ],
    },
    '',
  ).findings;
  assert.deepEqual(
    findings.map(f => [f.cause, f.change_kind, f.effort]),
    [
      ['sync', 'code', 'lines'],
      ['gpu', 'text', 'hardware'],
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
    ],
  );
});
