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
