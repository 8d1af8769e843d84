import assert from 'node:assert/strict';
import {test} from 'node:test';
import {analysisShape} from '../api/types';
import {setTestWords} from '../base/testing/words';
import {kindLines, phaseMarks} from './phases';

setTestWords();

const analysis = (part: Record<string, unknown>) =>
  analysisShape({schema: 'lacuna.analysis/1', trace: {}, verdict: {}, ...part}, '');

test('what is no training is drawn where it lies', () => {
  const phases = [
    {name: 'start_up', start_ns: 0, dur_ns: 100},
    {name: 'training', start_ns: 100, dur_ns: 600},
    {name: 'checkpoint', start_ns: 700, dur_ns: 200},
    {name: 'something_new', start_ns: 900, dur_ns: 100},
  ];
  const marks = phaseMarks(analysis({phases}));
  assert.deepEqual(
    marks.map(mark => [mark.label, mark.start, mark.percent]),
    [
      ['phases checkpoint', 70, 20],
      ['something_new', 90, 10],
    ],
  );
  assert.deepEqual(phaseMarks(analysis({})), []);
});

test('kinds that are training, or that take next to nothing, have no line', () => {
  const phases = [{name: 'training', start_ns: 0, dur_ns: 1000}];
  const kinds = [
    {kind: 'train', count: 40, own_ns: 900, why: '', text: ''},
    {kind: 'checkpoint', count: 4, own_ns: 100, why: 'a range', text: 'every 10th step'},
    {kind: 'epoch_end', count: 1, own_ns: 5, why: 'from 0', text: 'one step'},
  ];
  assert.deepEqual(
    kindLines(analysis({phases, steps: {kinds}})).map(line => line.text),
    ['every 10th step'],
  );
  assert.deepEqual(kindLines(analysis({})), []);
});
