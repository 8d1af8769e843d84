import assert from 'node:assert/strict';
import {test} from 'node:test';
import {findCommands, parseStep, parseTime} from './command_search';
import {commandsNow, registerCommands} from './commands';

const command = (name: string, hint = '') => ({name, hint, run: () => undefined});

test('times are read with their unit, and nothing else is', () => {
  assert.equal(parseTime('1.5 s'), 1.5e9);
  assert.equal(parseTime('473.144948ms'), 473_144_948);
  assert.equal(parseTime('20 us'), 20_000);
  assert.equal(parseTime('7µs'), 7000);
  assert.equal(parseTime('1,25 s'), 1.25e9);
  for (const text of ['', '5', 'ms', '-1 s', '1 s later', '1.2.3 s'])
    assert.equal(parseTime(text), undefined);
});

test('steps are numbers', () => {
  assert.equal(parseStep('step 12'), 12);
  assert.equal(parseStep('#3'), 3);
  assert.equal(parseStep('12'), 12);
  for (const text of ['', 'step', '1.5', 'step x']) assert.equal(parseStep(text), undefined);
});

test('every word has to be there, beginnings come first', () => {
  const all = [
    command('Zoom out', 'S'),
    command('Timeline', 'view'),
    command('Move left in the timeline'),
  ];
  assert.deepEqual(
    findCommands(all, 'timeline').map(each => each.name),
    ['Timeline', 'Move left in the timeline'],
  );
  assert.deepEqual(findCommands(all, 'zoom in').length, 0);
  assert.equal(findCommands(all, '').length, 3);
  assert.deepEqual(
    findCommands(all, 'OUT s').map(each => each.name),
    ['Zoom out'],
  );
});

test('what was registered last comes first and goes again', () => {
  const forgetA = registerCommands([command('a')]);
  const forgetB = registerCommands([command('b')]);
  assert.deepEqual(
    commandsNow().map(each => each.name),
    ['b', 'a'],
  );
  forgetB();
  forgetA();
  assert.deepEqual(commandsNow(), []);
});
