import assert from 'node:assert/strict';
import {test} from 'node:test';
import {setVocabulary, word, WORD_GROUPS} from '../base/vocabulary';
import {analysisShape, joinTracks, traceShape, tracksShape, vocabularyShape} from './types';

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

test('pages of tracks are one list again', () => {
  const page = (first: number, next: string | null) =>
    tracksShape(
      {
        generation: 3,
        processes: first === 0 ? [{index: 0, pid: '1'}] : [],
        tracks: [{index: first, kind: 'thread'}],
        devices: first === 0 ? [{id: 7}] : [],
        steps: {start_ns: [first], dur_ns: [1], name: ['s']},
        next,
      },
      '',
    );
  const joined = joinTracks([page(0, '0'), page(1, '1'), page(2, null)]);
  assert.deepEqual(
    joined.tracks.map(track => track.index),
    [0, 1, 2],
  );
  assert.deepEqual(joined.steps.start_ns, [0, 1, 2]);
  assert.deepEqual(joined.steps.host_start_ns, []); // of a server that does not tell them
  assert.equal(joined.devices.length, 1);
  assert.equal(joined.processes.length, 1);
  assert.equal(joined.generation, 3);
});

test('a vocabulary lacks no list, and what a newer one has besides does no harm', () => {
  const entry = {id: 'x', letter: '', label: 'X', short: '', waits: '', definition: ''};
  const lists = Object.fromEntries(WORD_GROUPS.map(group => [group, [entry]]));
  setVocabulary(vocabularyShape({schema: 'lacuna.vocabulary/1', ...lists, more: 1}, ''));
  assert.equal(word('parts', 'x').label, 'X');
  assert.throws(() => vocabularyShape({...lists, parts: undefined}, ''), /parts: expected a list/);
});
