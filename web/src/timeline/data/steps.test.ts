import assert from 'node:assert/strict';
import test from 'node:test';
import {ns} from '../../base/units';
import {Steps} from './steps';

const STEPS = {
  start_ns: [0, 100, 200, 400].map(ns),
  dur_ns: [100, 100, 150, 100].map(ns),
  host_start_ns: [],
  host_dur_ns: [],
  name: ['a', 'b', 'c', 'd'],
};
const analysisWith = (outliers: unknown[]) =>
  ({steps: {outliers}}) as unknown as ConstructorParameters<typeof Steps>[1];

test('the step of a time; none between steps', () => {
  const steps = new Steps(STEPS, undefined);
  assert.equal(steps.at(0)?.name, 'a');
  assert.equal(steps.at(99.9)?.name, 'a');
  assert.equal(steps.at(100)?.name, 'b');
  assert.equal(steps.at(349)?.name, 'c');
  assert.equal(steps.at(360), undefined);
  assert.equal(steps.at(-1), undefined);
});

test('what the host does lies between its marks', () => {
  const paced = new Steps(
    {...STEPS, host_start_ns: [0, 40, 80, 120].map(ns), host_dur_ns: [40, 40, 40, 40].map(ns)},
    undefined,
  );
  assert.equal(paced.at(90)?.name, 'a');
  assert.equal(paced.at(90, true)?.name, 'c');
  assert.equal(paced.at(170, true), undefined);
  assert.equal(new Steps(STEPS, undefined).at(90, true)?.name, 'a'); // a reply without them
});

test('outliers are those of the diagnosis, however it names them', () => {
  for (const named of [[2], ['c'], [{index: 2}], [{start_ns: 200}], [{name: 'c', why: 'x'}]]) {
    const steps = new Steps(STEPS, analysisWith(named));
    assert.deepEqual(
      steps.outliers.map(s => s.name),
      ['c'],
      JSON.stringify(named),
    );
  }
  assert.deepEqual(new Steps(STEPS, analysisWith([null, 99, {}])).outliers, []);
  const two = new Steps(STEPS, analysisWith([3, 1]));
  assert.equal(two.outlierAfter(0)?.name, 'b');
  assert.equal(two.outlierAfter(100)?.name, 'd');
  assert.equal(two.outlierAfter(400)?.name, 'b');
});
