import assert from 'node:assert/strict';
import {test} from 'node:test';
import {runAnalysisShape, traceShape, type TraceInfo} from '../api/types';
import {commonest, describeMembers, groupRuns, inOrder, runName, summarizeRun} from './runs';

const trace = (part: Record<string, unknown>): TraceInfo =>
  traceShape({id: 'a', state: 'ready', created_at: '2026-01-01T00:00:00Z', ...part}, '');

const rank = (number: number, summary: Record<string, unknown> = {}): TraceInfo =>
  trace({
    id: `r${number}`,
    run: 'R',
    rank: number,
    name: `rank${number}`,
    summary: {letter: 'D', cause: 'data_wait', text: 'waits for data', ...summary},
  });

test('traces of a run share a row at the place of the newest, in the order of their ranks', () => {
  const rows = groupRuns([trace({id: 'new'}), rank(1), trace({id: 'mid'}), rank(0)]);
  assert.deepEqual(
    rows.map(row => (row.kind === 'run' ? row.members.map(t => t.id) : row.trace.id)),
    ['new', ['r0', 'r1'], 'mid'],
  );
});

test('a run of one trace is a trace', () => {
  assert.deepEqual(
    groupRuns([rank(0)]).map(row => row.kind),
    ['trace'],
  );
});

test('without ranks the names order, numbers in them as numbers', () => {
  const names = ['w10', 'w9', 'w1'].map(name => trace({id: name, name}));
  assert.deepEqual(
    inOrder(names).map(t => t.name),
    ['w1', 'w9', 'w10'],
  );
  assert.equal(describeMembers(names), '3 traces');
  assert.equal(describeMembers([rank(0), rank(1)]), '2 ranks');
});

test('archives lose their ending, other names nothing', () => {
  assert.equal(runName('dlrm_kineto.tar.gz'), 'dlrm_kineto');
  assert.equal(runName('v1.2'), 'v1.2');
  assert.equal(runName('.tgz'), '.tgz');
});

test('what the ranks have in common is said once, with the rank it was read from', () => {
  const text = summarizeRun([rank(0), rank(1)], undefined).text;
  assert.match(text, /like the others: waits for data/);
  const mixed = [rank(0), rank(1), rank(2, {letter: 'N', cause: 'comm', text: 'waits'})];
  assert.match(summarizeRun(mixed, undefined).text, /^2 of 3 ranks, such as 0/);
  assert.match(summarizeRun(mixed.slice(1), undefined).text, /^rank 1: waits for data/);
});

test('a hang is said of the job, not of a rank like the others', () => {
  const hang = {letter: '?', cause: 'unknown', text: 'The job hangs: rank 1 waits in barrier'};
  assert.equal(summarizeRun([rank(0, hang), rank(1, hang)], undefined).text, hang.text);
});

test('the late rank is the verdict', () => {
  const analysis = runAnalysisShape(
    {schema: 'lacuna.run/1', late_rank: 1, findings: [{id: 'straggler-rank', title: 'rank 1!'}]},
    '',
  );
  const summary = summarizeRun([rank(0), rank(1)], analysis);
  assert.deepEqual([summary.letter, summary.text], ['N', 'rank 1!']);
});

test('samples of all ranks add up, steps do not, and steps that mean nothing are not shown', () => {
  const images = {throughput_per_s: 100, throughput_unit: 'samples', step_mean_ns: 5};
  assert.equal(summarizeRun([rank(0, images), rank(1, images)], undefined).throughput, 200);
  const steps = {...images, throughput_unit: 'steps'};
  assert.equal(summarizeRun([rank(0, steps), rank(1, steps)], undefined).throughput, undefined);
  const few = {...images, letter: '~'};
  const summary = summarizeRun([rank(0, few), rank(1, few)], undefined);
  assert.deepEqual([summary.throughput, summary.stepNs], [undefined, undefined]);
});

test('what most ranks say is found once more than one says it', () => {
  assert.deepEqual(commonest(['a', 'b', 'c', 'b']), {text: 'b', count: 2});
  assert.equal(commonest(['a', 'b']), undefined);
  assert.equal(commonest([]), undefined);
});
