import assert from 'node:assert/strict';
import test from 'node:test';
import {slicesShape, tracksShape} from '../../api/types';
import {eventsOf} from './window_export';

test('slices become events of their rows, exact to the nanosecond', () => {
  const info = tracksShape(
    {
      processes: [{index: 0, pid: '4021', name: 'python'}],
      tracks: [
        {index: 0, kind: 'thread', process: 0, name: 'main', id: '7', count: 1},
        {index: 1, kind: 'stream', process: 0, device: 2, id: '21', count: 1},
      ],
      devices: [],
    },
    '',
  );
  const slice = (kind: string): object => ({
    id: 1,
    track: 0,
    name: '<b>',
    kind,
    start_ns: 1234567,
    dur_ns: 1,
  });
  const {slices} = slicesShape({slices: [slice('op'), slice('kernel')]}, '');
  const [thread, stream] = info.tracks;
  assert.ok(thread && stream);
  const of = eventsOf(info, thread, slices.slice(0, 1));
  assert.deepEqual(of[0], {
    ph: 'M',
    name: 'process_name',
    pid: '4021',
    tid: 0,
    args: {name: 'python'},
  });
  assert.deepEqual(of[2], {
    ph: 'X',
    cat: 'cpu_op',
    name: '<b>',
    pid: '4021',
    tid: 0,
    ts: 1234.567,
    dur: 0.001,
  });
  const [, named, kernel] = eventsOf(info, stream, slices.slice(1));
  assert.deepEqual(named?.['args'], {name: '21'});
  assert.deepEqual([kernel?.['cat'], kernel?.['pid']], ['kernel', 2]);
  assert.deepEqual(kernel?.['args'], {device: 2, stream: 21});
  assert.deepEqual(eventsOf(info, stream, []), [], 'a row without anything is left out');
});
