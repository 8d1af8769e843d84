import assert from 'node:assert/strict';
import test from 'node:test';
import {tracksShape, type TracksInfo} from '../../api/types';
import {
  buildRows,
  laneAt,
  LANES_SHOWN,
  laneTop,
  movedOrder,
  placesShown,
  rowAt,
  ROWS_AT_START,
  rowTops,
  trackLabel,
  visibleRows,
  type Row,
  type RowState,
} from './rows';

const track = (index: number, kind: string, more: Record<string, unknown> = {}) => ({
  index,
  kind,
  process: 0,
  name: `${kind} ${index}`,
  id: String(100 + index),
  device: null,
  sort_index: 0,
  lanes: 1,
  count: 10,
  role: null,
  ...more,
});

const INFO: TracksInfo = tracksShape(
  {
    generation: 1,
    duration_ns: 1000,
    level_max: 3,
    processes: [
      {index: 0, pid: '1', name: 'python'},
      {index: 1, pid: '2', name: 'python'},
    ],
    tracks: [
      track(0, 'thread', {name: 'helper'}),
      track(1, 'thread', {role: 'main', lanes: 20}),
      track(2, 'stream', {device: 0, id: '7', name: ''}),
      track(3, 'gaps', {device: 0}),
      track(4, 'steps'),
      track(5, 'thread', {role: 'worker', name: 'pt_data_worker 10', process: 1}),
      track(6, 'thread', {role: 'worker', name: 'pt_data_worker 2', process: 1}),
      track(7, 'counter', {name: 'GPU memory', device: 0}),
      track(8, 'gpu_range', {device: 0}),
      track(9, 'thread', {count: 0, name: 'never ran'}),
    ],
    devices: [{id: 0, name: 'V100'}],
  },
  '',
);

const marksOf = (index: number, process: number, id: string) =>
  track(index, 'marks', {process, id, name: ''});
const withUnnamed = (pids: readonly string[], tracks: readonly object[]): TracksInfo =>
  tracksShape(
    {
      ...INFO,
      processes: [...INFO.processes, ...pids.map((pid, i) => ({index: 2 + i, pid, name: ''}))],
      tracks: [...INFO.tracks, ...tracks],
    },
    '',
  );
const keysOf = (info: TracksInfo, change: Partial<RowState> = {}): string[] =>
  buildRows(info, {...ROWS_AT_START, showAll: true, ...change}).map(row => row.key);

test('what the profiler says of its own recording is no row, but for a filter and a search', () => {
  const info = withUnnamed(
    ['-1', 'Traces', '', 'Spans', 'main'],
    [
      track(10, 'thread', {process: 2, id: '0', name: ''}),
      marksOf(11, 3, 'Trace PyTorch Profiler'),
      marksOf(12, 4, ''),
      track(13, 'thread', {process: 5, id: 'PyTorch Profiler', name: ''}),
      marksOf(14, 6, 'of a tool'),
    ],
  );
  const keys = keysOf(info);
  assert.deepEqual(
    ['t10', 't11', 't12', 't13'].filter(key => keys.includes(key)),
    [],
  );
  assert.ok(keys.includes('t14') && !keys.includes('gp3'));
  assert.ok(keysOf(info, {filter: 'profiler'}).includes('t11'));
  assert.ok(keysOf(info, {revealed: new Set(['t12'])}).includes('t12'));
  // counted among those that are one key away: three of INFO, t14 and the four
  const more = buildRows(info, ROWS_AT_START).find(row => row.kind === 'more');
  assert.equal(more?.label, '8 more rows');
  assert.match(more?.title ?? '', /; 4 of the profiler’s own recording/);
});

test('rows of other tools and of processes that worked stay, whatever they are called', () => {
  const other = withUnnamed(
    ['', '-1', 'Spans'],
    [
      marksOf(10, 2, '1'),
      marksOf(11, 2, ''),
      track(12, 'thread', {process: 3, id: '0', name: ''}),
      track(13, 'counter', {process: 4, name: 'load'}),
    ],
  );
  const kept = ['t10', 't11', 't12', 't13'];
  assert.deepEqual(
    kept.filter(key => keysOf(other).includes(key)),
    kept,
  );
  // PyTorch's, where somebody else's events have no process either
  const worked = withUnnamed(
    ['Traces', '', 'Spans'],
    [
      marksOf(9, 2, 'Trace PyTorch Profiler'),
      marksOf(10, 3, '1'),
      marksOf(11, 3, ''),
      track(12, 'thread', {process: 3, id: '1', name: ''}),
      track(13, 'counter', {process: 4, name: 'load'}),
    ],
  );
  assert.deepEqual(
    ['t9', ...kept].filter(key => keysOf(worked).includes(key)),
    kept,
  );
});

const rowsWith = (change: Partial<RowState> = {}): Row[] =>
  buildRows(INFO, {...ROWS_AT_START, ...change});
const labels = (rows: readonly Row[]): string[] => rows.map(r => r.label);

test('essential rows: steps, GPU, why idle, main thread, workers in order; the rest is one line', () => {
  assert.deepEqual(labels(rowsWith()), [
    'steps',
    'GPU busy',
    'GPU 0',
    'why idle',
    'main thread',
    'pt_data_worker 2',
    'pt_data_worker 10',
    '3 more rows',
  ]);
});

test('all rows: the others follow, grouped by device and process; empty ones are left out', () => {
  assert.deepEqual(labels(rowsWith({showAll: true})).slice(7), [
    '3 more rows',
    'GPU 0 \u00b7 V100',
    'GPU memory',
    'ranges gpu_range 8',
    'python 1',
    'helper',
  ]);
});

test('a group folds; a filter looks into it all the same', () => {
  const folded = rowsWith({showAll: true, collapsed: new Set(['gp0'])});
  assert.ok(!labels(folded).includes('helper'));
  const found = rowsWith({filter: 'HELP', collapsed: new Set(['gp0'])});
  assert.deepEqual(labels(found), ['python 1', 'helper']);
});

test('pinned rows come first, essential or not, whatever the order; moving keeps them there', () => {
  assert.equal(labels(rowsWith({pinned: new Set(['t0'])}))[0], 'helper');
  const pinned = rowsWith({pinned: new Set(['t1', 'u0'])});
  assert.deepEqual(labels(pinned).slice(0, 4), ['GPU busy', 'main thread', 'steps', 'GPU 0']);
  const ordered = rowsWith({pinned: new Set(['t1']), order: ['t2', 't4', 't1']});
  assert.equal(labels(ordered)[0], 'main thread');
  assert.deepEqual(movedOrder(pinned, 'u0', 1).slice(0, 3), ['t1', 'u0', 't4']);
  assert.deepEqual(movedOrder(pinned, 't1', 1).slice(0, 3), ['u0', 't1', 't4']);
});

test('a row in which something was selected joins the essential ones', () => {
  assert.equal(labels(rowsWith({revealed: new Set(['t0'])}))[7], 'helper');
  const open = rowsWith({revealed: new Set(['t0']), showAll: true});
  assert.equal(labels(open).filter(l => l === 'helper').length, 1);
  const hidden = {revealed: new Set(['t0']), showAll: true, collapsed: new Set(['gp0'])};
  assert.ok(labels(rowsWith(hidden)).includes('helper'));
});

test('many lanes show in part, all on demand, one when collapsed', () => {
  const main = (change: Partial<RowState> = {}): Row | undefined =>
    rowsWith(change).find(r => r.key === 't1');
  assert.equal(main()?.lanes, LANES_SHOWN);
  assert.equal(main({expanded: new Set(['t1'])})?.lanes, 20);
  const collapsed = main({collapsed: new Set(['t1'])});
  assert.equal(collapsed?.lanes, 1);
  assert.ok((collapsed?.height ?? 99) < (main()?.height ?? 0) / 4);
});

test('a trace without the usual kinds still shows its busiest threads', () => {
  const info: TracksInfo = {...INFO, tracks: INFO.tracks.filter(t => t.index === 0)};
  assert.deepEqual(labels(buildRows(info, ROWS_AT_START)), ['helper']);
  const counters: TracksInfo = {...INFO, tracks: INFO.tracks.filter(t => t.index === 7)};
  assert.deepEqual(labels(buildRows(counters, ROWS_AT_START)), ['GPU memory']);
});

test('places: prefix sums, the rows on screen by bisection', () => {
  const rows = rowsWith({showAll: true});
  const tops = rowTops(rows);
  assert.equal(tops.length, rows.length + 1);
  for (let y = 0; y < (tops[rows.length] ?? 0); y += 3) {
    const i = rowAt(tops, y);
    assert.ok(y >= (tops[i] ?? 0) && y < (tops[i + 1] ?? 0), `y ${y}`);
  }
  assert.deepEqual(visibleRows(tops, 0, tops[2] ?? 0), {first: 0, last: 2});
  assert.deepEqual(visibleRows(tops, (tops[1] ?? 0) + 1, (tops[3] ?? 0) + 1), {first: 1, last: 4});
  assert.deepEqual(visibleRows(rowTops([]), 0, 100), {first: 0, last: 0});
  assert.deepEqual(visibleRows(tops, 1e6, 1e6 + 10), {first: rows.length - 1, last: rows.length});
});

test('lanes inside a row: each from its top to the next, nothing in the padding', () => {
  const row = rowsWith().find(r => r.key === 't1');
  assert.ok(row);
  for (let lane = 0; lane < row.lanes; lane++) {
    assert.equal(laneAt(row, laneTop(row, lane)), lane);
    assert.equal(laneAt(row, laneTop(row, lane) + row.laneHeight - 0.01), lane);
  }
  assert.equal(laneAt(row, 0), undefined);
  assert.equal(laneAt(row, row.height - 1), undefined);
});

test('names that say nothing or all say the same become ones that tell rows apart', () => {
  const info: TracksInfo = {
    ...INFO,
    tracks: tracksShape(
      {
        tracks: [
          track(0, 'thread', {role: 'worker', name: 'pt_data_worker', id: '31'}),
          track(1, 'thread', {role: 'worker', name: 'pt_data_worker', id: '30'}),
          track(2, 'thread', {name: 'thread 25772 (python)', id: '25772', role: 'autograd'}),
          track(3, 'marks', {name: 'thread 25738 (python)', id: '25738'}),
        ],
      },
      '',
    ).tracks,
  };
  const all = buildRows(info, {...ROWS_AT_START, showAll: true});
  assert.deepEqual(
    all.filter(r => r.kind === 'slices').map(r => r.label),
    ['autograd 25772', 'worker 0', 'worker 1', 'marks python 25738'],
  );
});

test('a thread that did most of the work is shown even if its role was not recognized', () => {
  const threads = (counts: [string | null, number][]): string[] => {
    const tracks = counts.map(([role, count], i) =>
      track(i, 'thread', {role, count, name: `thread ${i}`}),
    );
    return labels(buildRows(tracksShape({tracks}, ''), ROWS_AT_START));
  };
  assert.deepEqual(
    threads([
      ['main', 10],
      ['autograd', 5000],
      [null, 8000],
      [null, 20],
    ]),
    ['autograd 101', 'thread 2', '2 more rows'],
  );
  assert.deepEqual(
    threads([
      ['main', 1000],
      ['autograd', 5000],
    ]),
    ['main thread', 'autograd 101'],
  );
});

test('counters of a device stand at its rows: how far the host is ahead, what memory is held', () => {
  const info = {
    ...INFO,
    tracks: [
      ...INFO.tracks,
      ...tracksShape(
        {
          tracks: [
            track(20, 'counter', {name: 'GPU 0: tensors allocated (MB)'}),
            track(21, 'counter', {name: 'GPU 0: work launched, not begun'}),
            track(22, 'counter', {name: 'GPU 0 memory clock'}),
            track(23, 'counter', {name: 'GPU 1: work launched, not begun'}),
          ],
        },
        '',
      ).tracks,
    ],
  };
  assert.deepEqual(labels(buildRows(info, ROWS_AT_START)).slice(3, 7), [
    'why idle',
    'launch queue',
    'memory',
    'main thread',
  ]);
});

test('a row that was put away is gone, and one line brings all back', () => {
  const rows = rowsWith({hidden: new Set(['t3', 'u0'])});
  assert.ok(!rows.some(row => row.key === 't3' || row.key === 'u0'));
  assert.equal(rows.at(-1)?.label, 'show 2 hidden rows');
});

test('rows move up and down, and the order that is kept brings them back there', () => {
  const before = rowsWith();
  const order = movedOrder(before, 't1', -1);
  const moved = rowsWith({order});
  assert.deepEqual(labels(moved).slice(0, 5), [
    'steps',
    'GPU busy',
    'GPU 0',
    'main thread',
    'why idle',
  ]);
  const back = rowsWith({order: movedOrder(moved, 't1', 1)});
  assert.deepEqual(labels(back), labels(before));
  // beyond the ends nothing moves, and what has no place stays behind its neighbor
  assert.deepEqual(labels(rowsWith({order: movedOrder(before, 't4', -1)})), labels(before));
  const few = labels(rowsWith({order: ['t1', 't4']}));
  assert.deepEqual(
    few.slice(0, 3),
    ['main thread', 'pt_data_worker 2', 'pt_data_worker 10'].slice(0, 3),
  );
});

test('modules of the backward pass stand above the thread that runs it', () => {
  const tracks = [
    track(0, 'thread', {role: 'main'}),
    track(1, 'thread', {role: 'autograd', process: 1, id: '7'}),
    track(2, 'backward', {process: 1, id: '7'}),
    track(3, 'backward', {process: 0, id: '7'}),
  ];
  const rows = buildRows(tracksShape({processes: [], tracks, devices: []}, ''), ROWS_AT_START, 0);
  assert.deepEqual(labels(rows).slice(0, 3), ['main thread', 'backward', 'autograd 7']);
});

test('a projection says what it is of, and of several GPUs which', () => {
  const label = (name: string, devices: readonly number[]): string => {
    const streams = devices.map((device, i) => track(i + 1, 'stream', {device}));
    const tracks = [track(0, 'gpu_range', {device: 0, name}), ...streams];
    const info: TracksInfo = tracksShape({processes: [], tracks, devices: []}, '');
    const [projected] = info.tracks;
    assert.ok(projected);
    return trackLabel(info, projected).label;
  };
  assert.equal(label('stream 7', [0]), 'ranges stream 7');
  assert.equal(label('outer ranges stream 7', [0, 0]), 'outer ranges stream 7');
  assert.equal(label('modules stream 7', [0, 1]), 'GPU 0 modules 7');
  assert.equal(label('ranges stream 4294967295', [0]), 'ranges', 'a stream that is not told');
});

test('streams are called by what fills them, and what may be a layer is no step', () => {
  const tracks = [
    track(0, 'stream', {device: 0, id: '7', name: '', role: 'gpu'}),
    track(1, 'stream', {device: 0, id: '21', name: '', role: 'collectives'}),
    track(2, 'steps', {name: 'repeats'}),
    track(3, 'steps', {name: 'steps'}),
  ];
  const labelsOf = (all: readonly object[]): string[] => {
    const info: TracksInfo = tracksShape({processes: [], tracks: all, devices: []}, '');
    return info.tracks.map(each => trackLabel(info, each).label);
  };
  assert.deepEqual(labelsOf(tracks), ['stream 7', 'stream 21, collectives', 'repeats', 'steps']);
  assert.deepEqual(
    labelsOf([...tracks.slice(0, 2), track(4, 'stream', {device: 1, id: '7', name: ''})]),
    ['GPU 0 stream 7', 'GPU 0 stream 21, collectives', 'GPU 1'],
  );
});

test('what is left of the height goes to lanes and further rows, never beyond it', () => {
  for (let height = 0; height < 1500; height += 37) {
    const plain = rowsWith().reduce((sum, row) => sum + row.height, 0);
    const rows = buildRows(INFO, ROWS_AT_START, height);
    const all = rows.reduce((sum, row) => sum + row.height, 0);
    assert.ok(all <= Math.max(plain, height), `${all} of ${height}`);
  }
  const tall = buildRows(INFO, ROWS_AT_START, 1500);
  assert.equal(tall.find(row => row.key === 't1')?.lanes, 20);
  assert.ok(labels(tall).includes('ranges gpu_range 8') && labels(tall).includes('helper'));
  assert.ok(!tall.some(row => row.kind === 'more'));
});

test('nameless threads carry the name of their process', () => {
  const info = tracksShape(
    {
      processes: [
        {index: 0, pid: '1', name: '/job:localhost/replica:0/task:0/gpu:0 Compute'},
        {index: 1, pid: '2', name: ''},
      ],
      tracks: [
        track(0, 'thread', {name: '', id: '3'}),
        track(1, 'thread', {name: '', id: '4', process: 1}),
      ],
    },
    '',
  );
  assert.deepEqual(labels(buildRows(info, ROWS_AT_START)), ['gpu:0 Compute 3', '4']);
});

test('a thread called main is the main thread, whatever its role', () => {
  const info = tracksShape(
    {
      tracks: [
        track(0, 'thread', {name: 'thread 7 (pt_main_thread)', role: 'autograd', count: 5000}),
        track(1, 'thread', {name: '', id: '-5', role: 'main', count: 40}),
      ],
    },
    '',
  );
  assert.deepEqual(labels(buildRows(info, ROWS_AT_START)), ['main thread', '1 more row']);
});

test('outer frames are folded, until somebody unfolds them', () => {
  const info = tracksShape(
    {
      generation: 1,
      duration_ns: 1000,
      level_max: 3,
      processes: [],
      tracks: [
        track(0, 'thread', {role: 'main', lanes: 20, outer_lanes: 11}),
        track(1, 'thread', {role: 'main', lanes: 5, outer_lanes: 5}),
      ],
      devices: [],
    },
    '',
  );
  const rowOf = (key: string, change: Partial<RowState> = {}): Row => {
    const found = buildRows(info, {...ROWS_AT_START, ...change}).find(row => row.key === key);
    assert.ok(found);
    return found;
  };
  const folded = rowOf('t0');
  assert.deepEqual([folded.laneFirst, folded.lanes, folded.lanesOuter], [11, 19, 11]);
  assert.equal(folded.height, LANES_SHOWN * folded.laneHeight + 4);
  assert.equal(laneAt(folded, 3), 11, 'the first that is drawn');
  assert.equal(laneAt(folded, laneTop(folded, 13) + 1), 13);
  assert.equal(laneAt(folded, folded.height), undefined);
  const open = rowOf('t0', {unfolded: new Set(['t0'])});
  assert.deepEqual([open.laneFirst, open.lanes, laneAt(open, 3)], [0, LANES_SHOWN, 0]);
  const all = rowOf('t0', {expanded: new Set(['t0'])});
  assert.deepEqual([all.laneFirst, all.lanes], [11, 20]);
  assert.equal(all.height, 9 * all.laneHeight + 4);
  assert.equal(rowOf('t0', {collapsed: new Set(['t0'])}).laneFirst, 0);
  assert.equal(rowOf('t1').laneFirst, 0, 'two lanes at least are there to see');
});

test('rows drawn: the fixed ones and those in sight, none between', () => {
  assert.deepEqual(placesShown(2, 100_000, 100_003), [0, 1, 100_000, 100_001, 100_002]);
  assert.deepEqual(placesShown(2, 1, 4), [0, 1, 2, 3]);
  assert.deepEqual(placesShown(0, 3, 5), [3, 4]);
  assert.deepEqual(placesShown(3, 0, 2), [0, 1]);
  assert.deepEqual(placesShown(0, 0, 0), []);
});
