import assert from 'node:assert/strict';
import {test} from 'node:test';
import {traceShape} from '../api/types';
import {describeDevices, loopUnit, matches, withoutOwnUploads} from './list_rows';
import {begunAgain, canRetry, laterOf, mergePage, mergeTrace} from './traces';

const trace = (part: Record<string, unknown>) =>
  traceShape({id: 'a', state: 'ready', created_at: '2026-01-01T00:00:00Z', ...part}, '');

test('every word must be somewhere', () => {
  const t = trace({name: 'resnet50', device_names: ['Tesla V100'], simulated: true});
  assert.ok(matches(t, {text: 'RESNET v100', hideSimulated: false}));
  assert.ok(!matches(t, {text: 'resnet a100', hideSimulated: false}));
  assert.ok(!matches(t, {text: '', hideSimulated: true}));
});

test('what does not train is a loop of batches or iterations', () => {
  const unit = (letter: string, throughput_unit: string) =>
    loopUnit(trace({summary: {letter, throughput_unit, step_mean_ns: 5}}).summary);
  assert.equal(unit('D', 'steps'), 'step');
  assert.equal(unit('D', 'samples'), 'step');
  assert.equal(unit('i', 'batches'), 'batch');
  assert.equal(unit('i', 'samples'), 'batch');
  assert.equal(unit('i', 'iterations'), 'iteration');
  assert.equal(unit('i', 'steps'), undefined); // a repetition that may be a layer
  assert.equal(unit('~', 'steps'), undefined);
  assert.equal(loopUnit(undefined), undefined);
});

test('devices are counted by name', () => {
  assert.equal(describeDevices([], 0), 'no GPU');
  assert.equal(describeDevices(['', ''], 2), '2 GPUs');
  assert.equal(
    describeDevices(['NVIDIA A100-SXM4-80GB', 'NVIDIA A100-SXM4-80GB'], 2),
    '2 × A100-80GB',
  );
  assert.equal(describeDevices(['Tesla V100', 'NVIDIA Tesla T4'], 2), '1 × V100, 1 × T4');
});

test('a changed trace keeps its row, a new one comes by its age', () => {
  const old = trace({id: 'old', created_at: '2026-01-01T00:00:00Z'});
  const recent = trace({id: 'new', created_at: '2026-01-03T00:00:00Z'});
  const between = trace({id: 'mid', created_at: '2026-01-02T00:00:00Z'});
  const list = mergeTrace([recent, old], between);
  assert.deepEqual(
    list.map(t => t.id),
    ['new', 'mid', 'old'],
  );
  const renamed = mergeTrace(
    list,
    trace({id: 'mid', created_at: '2020-01-01T00:00:00Z', name: 'x'}),
  );
  assert.deepEqual(
    renamed.map(t => t.id),
    ['new', 'mid', 'old'],
  );
  assert.equal(renamed[1]?.name, 'x');
});

test('a reply that an event overtook does not take the end back', () => {
  const reading = trace({id: 'a', state: 'importing'});
  const ready = trace({id: 'a', state: 'ready'});
  assert.equal(laterOf(ready, reading), ready);
  assert.equal(laterOf(trace({id: 'a', state: 'failed'}), reading).state, 'failed');
  assert.equal(laterOf(reading, ready), ready);
  assert.equal(laterOf(ready, trace({id: 'a', state: 'ready', name: 'new'})).name, 'new');
  assert.equal(laterOf(undefined, reading), reading);
});

test('only what the server kept can be tried again', () => {
  const error = {code: 'no_space', message: 'no space', fault: 'host', can_retry: true};
  const failed = trace({state: 'failed', error});
  assert.ok(canRetry(failed));
  assert.ok(!canRetry(trace({state: 'failed', error: {...error, can_retry: false}})));
  assert.ok(!canRetry(trace({state: 'failed', error: {code: 'corrupt', message: 'x'}})));
  assert.ok(!canRetry(trace({state: 'ready', error})));
  const again = begunAgain(failed);
  assert.equal(again.state, 'importing');
  assert.ok(!canRetry(again));
});

test('a file on its way has one row', () => {
  const list = [
    trace({id: '1', name: 'a.json', state: 'receiving'}),
    trace({id: '2', name: 'b.json', state: 'receiving'}),
    trace({id: '3', name: 'a.json', state: 'ready'}),
  ];
  assert.deepEqual(
    withoutOwnUploads(list, new Set(['a.json'])).map(t => t.id),
    ['2', '3'],
  );
});

test('a page that was asked for earlier does not undo what was heard since', () => {
  const at = (id: string, second: number, part: Record<string, unknown> = {}) =>
    trace({id, created_at: `2026-01-01T00:00:0${second}Z`, ...part});
  const ids = (list: readonly {id: string}[]): string[] => list.map(t => t.id);
  const list = [at('new', 9), at('b', 5, {state: 'ready'}), at('gone', 4), at('old', 1)];
  const reply = {
    traces: [at('b', 5, {state: 'importing'}), at('deleted', 3)],
    next: 's3',
  };
  const merged = mergePage(list, reply, new Set(['new', 'b']), new Set(['deleted']));
  // new: heard of meanwhile; gone: not in the page and not heard of; old: behind the page
  assert.deepEqual(ids(merged), ['new', 'b', 'old']);
  assert.equal(merged.find(t => t.id === 'b')?.state, 'ready');
  const last = mergePage(list, {...reply, next: undefined}, new Set(), new Set());
  assert.deepEqual(ids(last), ['b', 'deleted']);
});
