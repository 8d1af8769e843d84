// The rows of the timeline: which tracks, in which order, how high. Pinned ones first, then the
// essential ones, all others one key away, grouped by process. Pure: runs in node.

import type {TrackInfo, TracksInfo} from '../../api/types';
import {parseRows, type RowChoice} from './row_state';

export type RowKind =
  'steps' | 'gaps' | 'slices' | 'counter' | 'usage' | 'group' | 'more' | 'hidden';

export interface Row {
  readonly key: string;
  readonly kind: RowKind;
  /** Index of the track; undefined for groups. */
  readonly track: number | undefined;
  readonly label: string;
  /** The whole of it, for the tooltip. */
  readonly title: string;
  readonly depth: number;
  readonly laneHeight: number;
  /** Lanes before it are folded: outer frames that span all of the row. */
  readonly laneFirst: number;
  /** How many lanes of such there are. */
  readonly lanesOuter: number;
  /** Where the lanes shown end, and lanes there are. */
  readonly lanes: number;
  readonly lanesTotal: number;
  readonly height: number;
  readonly isCollapsed: boolean;
  readonly canCollapse: boolean;
  readonly isPinned: boolean;
  readonly device: number | undefined;
}

/** What a person changed about the rows, and what selections did. */
export interface RowState extends RowChoice {
  /** Rows shown because something in them was selected. */
  readonly revealed: ReadonlySet<string>;
}

export const ROWS_AT_START: RowState = {...parseRows(''), revealed: new Set()};

/** Deeper lanes show on demand. */
export const LANES_SHOWN = 8;
const STREAMS_ESSENTIAL_MAX = 8;
const WORKERS_ESSENTIAL_MAX = 16;
const THREADS_ESSENTIAL_MAX = 6;
const PADDING = 4;
const LANE_HEIGHT = {steps: 24, gaps: 22, stream: 22, thread: 17} as const;
const GROUP_HEIGHT = 24;
const COUNTER_HEIGHT = 44;
const USAGE_HEIGHT = 40;
const COLLAPSED_HEIGHT = 14;

/** @param heightPx what the rows may fill: where some of it is left, there are more lanes and rows */
export function buildRows(info: TracksInfo, state: RowState, heightPx = 0): Row[] {
  const essential = essentialTracks(info);
  const chosen = new Set(essential.map(t => t.index));
  const isOpen = state.showAll || state.filter !== '';
  const isPinned = (t: TrackInfo): boolean =>
    state.pinned.has(trackKey(t)) ||
    (state.revealed.has(trackKey(t)) && (!isOpen || state.collapsed.has(groupOf(info, t).key)));
  const pinned = info.tracks.filter(
    t => isPinned(t) && !chosen.has(t.index) && t.kind !== 'profile',
  );
  for (const track of pinned) chosen.add(track.index);
  const ofRecording = tracksOfRecording(info);
  const others = info.tracks.filter(
    t => !chosen.has(t.index) && t.count > 0 && t.kind !== 'profile',
  );
  let rest = others.filter(
    t => state.filter !== '' || state.revealed.has(trackKey(t)) || !ofRecording.has(t),
  );
  const leftOut = others.length - rest.length;

  const rows: Row[] = [];
  const matches = matcher(state.filter);
  let hiddenCount = 0;
  const put = (row: Row): void => {
    if (state.hidden.has(row.key)) hiddenCount++;
    else if (matches(row.label) || matches(row.title)) rows.push(row);
  };
  const add = (track: TrackInfo, depth: number): void => put(trackRow(info, track, depth, state));
  const used = new Set<number>();
  for (const track of [...essential, ...pinned]) {
    const device = isOnDevice(track) ? track.device : undefined;
    if (device !== undefined && !used.has(device)) {
      used.add(device);
      put(usageRow(info, device, state));
    }
    add(track, 0);
  }
  if (state.filter === '' && !isOpen && heightPx > 0) {
    const most = info.tracks.reduce((n, t) => (t.kind === 'thread' ? Math.max(n, t.count) : n), 0);
    const filled = fill(rows, rest, track => trackRow(info, track, 0, state), heightPx, most);
    rest = rest.filter(track => !filled.has(track.index));
  }
  arrange(rows, state.order);
  rows.sort((a, b) => Number(b.isPinned) - Number(a.isPinned));
  if (rest.length + leftOut > 0) {
    // A filter looks everywhere: no one wants to open a group to search in it.
    if (state.filter === '') rows.push(moreRow(rest.length + leftOut, leftOut, isOpen));
    if (isOpen) addGroups(info, rest, state, rows, add);
  }
  if (hiddenCount > 0 && state.filter === '') rows.push(hiddenRow(hiddenCount));
  return rows;
}

/** The places at which PyTorch's profiler writes of its own recording: kind, process, thread. */
const RECORDING = /^(marks (Traces\/Trace .*|\/)|thread ((Traces|Spans)\/.*|-1\/0))$/;

/** Where a trace is PyTorch's, the tracks with what its profiler says of its own recording, of processes
 *  that have nothing else: a filter shows them, and a search that leads to one. */
function tracksOfRecording({processes, tracks}: TracksInfo): ReadonlySet<TrackInfo> {
  const unnamed = new Map<number | undefined, string>();
  for (const {index, name, pid} of processes) if (name === '') unnamed.set(index, pid);
  const placed = tracks
    .filter(t => t.count > 0)
    .map(track => ({track, place: `${track.kind} ${unnamed.get(track.process)}/${track.id}`}));
  if (!placed.some(({place}) => place.startsWith('marks Traces/Trace '))) return new Set();
  const own = placed.filter(({place}) => RECORDING.test(place)).map(({track}) => track);
  const isOwn = new Set(own);
  const busy = new Set(placed.map(({track}) => !isOwn.has(track) && track.process));
  return new Set(own.filter(({process}) => process !== undefined && !busy.has(process)));
}

const isOnDevice = (t: TrackInfo): boolean => t.kind === 'stream' || t.kind === 'gaps';

/** Rows that a person put in an order come in it, the others stay behind what they were behind. */
function arrange(rows: Row[], order: readonly string[]): void {
  if (order.length === 0) return;
  const place = new Map(order.map((key, i) => [key, i]));
  let last = -1;
  const at = new Map<string, number>();
  rows.forEach((row, i) => {
    last = place.get(row.key) ?? last;
    at.set(row.key, last + i / (rows.length + 1) / 2);
  });
  for (const row of rows) {
    const own = place.get(row.key);
    if (own !== undefined) at.set(row.key, own);
  }
  rows.sort((a, b) => (at.get(a.key) ?? 0) - (at.get(b.key) ?? 0));
}

/** The order in which rows are after one was moved up (-1) or down (1) by a place. */
export function movedOrder(rows: readonly Row[], key: string, by: number): readonly string[] {
  const movable = rows.filter(isMovable);
  const flat = movable.map(row => row.key);
  const from = flat.indexOf(key);
  const to = from + by;
  // pinned rows stay before the others
  if (movable[from] && movable[from].isPinned === movable[to]?.isPinned)
    flat.splice(to, 0, ...flat.splice(from, 1));
  return flat;
}

/** Rows inside of groups stay where they are. */
export const isMovable = (row: Row): boolean =>
  row.depth === 0 && row.kind !== 'group' && row.kind !== 'more' && row.kind !== 'hidden';

/** More lanes of threads, then rows that are not essential, as far as they fit.
 *  @return tracks that have a row now */
function fill(
  rows: Row[],
  rest: readonly TrackInfo[],
  rowOf: (track: TrackInfo) => Row,
  heightPx: number,
  /** Slices of the busiest thread: those with a hundredth of it are worth a row. */
  most: number,
): ReadonlySet<number> {
  let spare = heightPx - GROUP_HEIGHT - rows.reduce((sum, row) => sum + row.height, 0);
  rows.forEach((row, i) => {
    if (row.kind !== 'slices' || row.isCollapsed || row.lanes >= row.lanesTotal) return;
    const lanes = Math.min(row.lanesTotal - row.lanes, Math.floor(spare / row.laneHeight));
    if (lanes <= 0) return;
    spare -= lanes * row.laneHeight;
    rows[i] = {...row, lanes: row.lanes + lanes, height: row.height + lanes * row.laneHeight};
  });
  const filled = new Set<number>();
  const wanted = [
    ...rest.filter(t => t.kind === 'gpu_range'),
    ...rest
      .filter(t => t.kind === 'thread' && t.role !== 'worker' && t.count >= most / 100)
      .sort((a, b) => b.count - a.count),
    ...rest.filter(t => t.kind === 'counter').sort(byOrder),
  ];
  for (const track of wanted) {
    const row = rowOf(track);
    if (row.height > spare) continue;
    spare -= row.height;
    rows.push(row);
    filled.add(track.index);
  }
  return filled;
}

/** What a device does, as an area: how much of each moment, by kind of work. */
function usageRow(info: TracksInfo, device: number, state: RowState): Row {
  const key = `u${device}`;
  return {
    ...GROUP,
    key,
    kind: 'usage',
    label: severalDevices(info) ? `GPU ${device} busy` : 'GPU busy',
    title: `how much of the time GPU ${device} works, by kind: GEMM, convolutions, attention, elementwise and memory, other kernels, communication, copies`,
    laneHeight: USAGE_HEIGHT,
    laneFirst: 0,
    lanesOuter: 0,
    lanes: 1,
    lanesTotal: 1,
    height: USAGE_HEIGHT,
    isCollapsed: false,
    canCollapse: false,
    isPinned: state.pinned.has(key),
    device,
  };
}

function hiddenRow(count: number): Row {
  return {
    ...GROUP,
    key: 'hidden',
    kind: 'hidden',
    label: `show ${count} hidden ${count === 1 ? 'row' : 'rows'}`,
    title: 'rows that were hidden by their button',
    isCollapsed: true,
  };
}

function matcher(filter: string): (text: string) => boolean {
  const needle = filter.trim().toLowerCase();
  return text => needle === '' || text.toLowerCase().includes(needle);
}

const trackKey = (track: TrackInfo): string => `t${track.index}`;

/** Made once: `localeCompare` with options makes one for each two names. */
const {compare: byName} = new Intl.Collator('en', {numeric: true});

function byOrder(a: TrackInfo, b: TrackInfo): number {
  return a.sort_index - b.sort_index || byName(a.name, b.name) || byName(a.id, b.id);
}

/** Steps, each GPU with why it was idle, main threads, batches ready, workers. */
function essentialTracks(info: TracksInfo): TrackInfo[] {
  const live = info.tracks.filter(t => t.count > 0 && t.kind !== 'profile');
  const steps = live.filter(t => t.kind === 'steps');
  const threads = live.filter(t => t.kind === 'thread');
  const main = mainThreads(threads);
  const workers = threads.filter(t => t.role === 'worker').sort(byOrder);
  const batches = live.filter(t => t.kind === 'counter' && /^batches[ _]ready$/i.test(t.name));
  const gpu: TrackInfo[] = [];
  const devices = new Set<number>();
  for (const t of live) {
    if (t.device !== undefined && (t.kind === 'stream' || t.kind === 'gaps')) devices.add(t.device);
  }
  for (const device of [...devices].sort((a, b) => a - b)) {
    const own = live.filter(t => t.device === device);
    const streams = own.filter(t => t.kind === 'stream').sort((a, b) => b.count - a.count);
    gpu.push(...streams.slice(0, STREAMS_ESSENTIAL_MAX).sort(byOrder));
    gpu.push(...own.filter(t => t.kind === 'gaps'));
    gpu.push(...countersOf(live, device));
  }
  const busiest = [
    ...busiestThreads(threads, main),
    ...threads.filter(t => t.role === 'autograd' && !main.includes(t)).sort(byOrder),
  ].filter((t, i, all) => all.indexOf(t) === i);
  const chosen = [
    ...steps,
    ...gpu,
    ...[...main, ...busiest].flatMap(t => [...live.filter(b => isBackwardOf(b, t)), t]),
    ...batches,
    ...workers.slice(0, WORKERS_ESSENTIAL_MAX),
  ];
  // Nothing of the usual kinds (counters only, async only): then everything is essential.
  return chosen.length > 0 ? chosen : live.slice(0, WORKERS_ESSENTIAL_MAX);
}

/** The modules whose backward pass a thread runs. */
const isBackwardOf = (track: TrackInfo, thread: TrackInfo): boolean =>
  track.kind === 'backward' && track.process === thread.process && track.id === thread.id;

/** How far the host is ahead of a device, and what memory is held on it. */
function countersOf(live: readonly TrackInfo[], device: number): TrackInfo[] {
  const own = live.filter(t => t.kind === 'counter' && gpuOfCounter(t.name) === device);
  const ahead = own.filter(t => /work launched, not begun$/.test(t.name));
  const held = own.filter(t => HELD.test(t.name) && !NOT_HELD.test(t.name));
  return [...ahead.slice(0, 1), ...held.slice(0, 1)];
}

const HELD = /memory|allocated/i;
const NOT_HELD = /clock|util|bandwidth|temperature|busy|read|write|%/i;

function gpuOfCounter(name: string): number | undefined {
  const digits = /^GPU (\d+)\b/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** By role or by name; but not one that did next to nothing beside the others. */
function mainThreads(threads: readonly TrackInfo[]): TrackInfo[] {
  const most = Math.max(0, ...threads.filter(t => t.role !== 'worker').map(t => t.count));
  return threads.filter(t => isMain(t) && t.count >= most / 100).sort(byOrder);
}

const isMain = (track: TrackInfo): boolean =>
  track.role === 'main' || /main_?thread/i.test(track.name);

/** Roles are guesses from what was recorded: when they leave most of the work out, show it anyway. */
function busiestThreads(threads: readonly TrackInfo[], main: readonly TrackInfo[]): TrackInfo[] {
  const others = threads.filter(t => t.role !== 'worker' && !main.includes(t));
  const sum = (tracks: readonly TrackInfo[]): number => tracks.reduce((n, t) => n + t.count, 0);
  if (sum(main) >= 0.1 * (sum(others) + sum(main))) return [];
  const most = Math.max(0, ...others.map(t => t.count));
  return others
    .filter(t => t.count >= most / 100)
    .sort((a, b) => b.count - a.count)
    .slice(0, THREADS_ESSENTIAL_MAX)
    .sort(byOrder);
}

/** @param leftOut how many of them are of the profiler's own recording */
function moreRow(count: number, leftOut: number, isOpen: boolean): Row {
  return {
    ...GROUP,
    key: 'more',
    kind: 'more',
    label: `${count} more ${count === 1 ? 'row' : 'rows'}`,
    title:
      'other threads, streams and counters (R)' +
      (leftOut > 0 ? `; ${leftOut} of the profiler’s own recording, which a filter shows` : ''),
    isCollapsed: !isOpen,
  };
}

const GROUP = {
  track: undefined,
  depth: 0,
  laneHeight: GROUP_HEIGHT,
  laneFirst: 0,
  lanesOuter: 0,
  lanes: 0,
  lanesTotal: 0,
  height: GROUP_HEIGHT,
  canCollapse: true,
  isPinned: false,
  device: undefined,
} as const;

function addGroups(
  info: TracksInfo,
  rest: readonly TrackInfo[],
  state: RowState,
  rows: Row[],
  add: (track: TrackInfo, depth: number) => void,
): void {
  const groups = new Map<string, {label: string; order: number; tracks: TrackInfo[]}>();
  for (const track of rest) {
    const {key, label, order} = groupOf(info, track);
    const group = groups.get(key) ?? {label, order, tracks: []};
    group.tracks.push(track);
    groups.set(key, group);
  }
  const sorted = [...groups.entries()].sort(
    (a, b) => a[1].order - b[1].order || byName(a[1].label, b[1].label),
  );
  for (const [key, {label, tracks}] of sorted) {
    const isCollapsed = state.collapsed.has(key) && state.filter === '';
    const at = rows.length;
    rows.push({...GROUP, key, kind: 'group', label, title: label, isCollapsed});
    if (!isCollapsed) for (const track of tracks.sort(byOrder)) add(track, 1);
    if (state.filter !== '' && rows.length === at + 1) rows.pop();
  }
}

function groupOf(info: TracksInfo, track: TrackInfo): {key: string; label: string; order: number} {
  if (track.device !== undefined && track.kind !== 'thread') {
    return {key: `gd${track.device}`, label: deviceLabel(info, track.device), order: -1};
  }
  const process = info.processes.find(p => p.index === track.process);
  if (!process) return {key: 'gp', label: 'no process', order: 1e9};
  const parts = [
    process.name || (process.pid === '' ? '' : /* text */ 'process'),
    process.pid,
    process.labels,
  ];
  const label = parts.filter(text => text !== '').join(' ') || 'no process';
  return {key: `gp${process.index}`, label, order: process.sort_index};
}

function deviceLabel(info: TracksInfo, device: number): string {
  const name = info.devices.find(d => d.id === device)?.name ?? '';
  return name === '' ? `GPU ${device}` : `GPU ${device} \u00b7 ${name}`;
}

function trackRow(info: TracksInfo, track: TrackInfo, depth: number, state: RowState): Row {
  const key = trackKey(track);
  const lanesTotal = Math.max(1, track.lanes);
  const kind = rowKind(track);
  const canCollapse = kind === 'slices';
  const isCollapsed = canCollapse && state.collapsed.has(key);
  // two lanes at least are left: in fewer there is no room to say what was folded
  const lanesOuter =
    kind === 'slices' && track.outer_lanes + 2 <= lanesTotal ? track.outer_lanes : 0;
  const laneFirst = isCollapsed || state.unfolded.has(key) ? 0 : lanesOuter;
  const lanes = isCollapsed
    ? 1
    : state.expanded.has(key)
      ? lanesTotal
      : Math.min(laneFirst + LANES_SHOWN, lanesTotal);
  const laneHeight = isCollapsed ? COLLAPSED_HEIGHT : laneHeightOf(track);
  const height = kind === 'counter' ? COUNTER_HEIGHT : (lanes - laneFirst) * laneHeight + PADDING;
  const {label, title} = trackLabel(info, track);
  return {
    key,
    kind,
    track: track.index,
    label,
    title,
    depth,
    laneHeight,
    laneFirst,
    lanesOuter,
    lanes,
    lanesTotal,
    height,
    isCollapsed,
    canCollapse,
    isPinned: state.pinned.has(key),
    device: track.device,
  };
}

function rowKind(track: TrackInfo): RowKind {
  if (track.kind === 'steps' || track.kind === 'gaps' || track.kind === 'counter') {
    return track.kind;
  }
  return 'slices';
}

function laneHeightOf(track: TrackInfo): number {
  if (track.kind === 'steps') return LANE_HEIGHT.steps;
  if (track.kind === 'gaps') return LANE_HEIGHT.gaps;
  return track.kind === 'stream' ? LANE_HEIGHT.stream : LANE_HEIGHT.thread;
}

/** What a row is called, and its whole name. */
export function trackLabel(info: TracksInfo, track: TrackInfo): {label: string; title: string} {
  const process = info.processes.find(p => p.index === track.process);
  const owner = process ? `${process.name} ${process.pid}`.trim() : '';
  // Kineto's "thread 25738 (python)" in the order in which it can be cut.
  const own = (track.name === '' ? track.id : track.name).replace(
    /^thread (\S+) \((.+)\)$/,
    '$2 $1',
  );
  const title = [own, track.id !== own ? track.id : '', owner]
    .filter(t => t !== '')
    .join(' \u00b7 ');
  switch (track.kind) {
    case 'steps':
      return own === 'repeats'
        ? {label: own, title: 'kernels that repeat: a step, or a layer'}
        : {label: 'steps', title: 'training steps'};
    case 'gaps': {
      const many = info.tracks.filter(t => t.kind === 'gaps').length > 1;
      const label = many ? `GPU ${track.device ?? 0} why idle` : 'why idle';
      return {label, title: `why GPU ${track.device ?? 0} was idle`};
    }
    case 'stream': {
      const siblings = info.tracks.filter(t => t.kind === 'stream' && t.device === track.device);
      const gpu = track.device === undefined ? own : `GPU ${track.device}`;
      const device = info.devices.find(d => d.id === track.device)?.name ?? '';
      const what = track.role === 'gpu' || track.role === undefined ? '' : `, ${track.role}`;
      const where = severalDevices(info) ? `${gpu} ` : '';
      const label = siblings.length > 1 ? `${where}${streamName(track)}${what}` : gpu;
      return {
        label,
        title: [`${gpu} ${streamName(track)}${what}`, device, owner]
          .filter(t => t !== '')
          .join(' \u00b7 '),
      };
    }
    case 'gpu_range': {
      // Those that the server projects say "ranges stream 7", "outer ranges ..." or "modules ...".
      const what = (
        /^(outer ranges|ranges|modules) /.test(own) ? own : `ranges ${own}`.trim()
      ).replace(` stream ${NO_STREAM}`, '');
      return {
        label: severalDevices(info) ? `GPU ${track.device} ${what.replace('stream ', '')}` : what,
        title,
      };
    }
    case 'backward':
      return {label: 'backward', title: `modules whose backward pass runs · ${title}`};
    case 'marks':
      return {label: `marks ${own}`.trim(), title};
    case 'stacks':
      return {
        label: `Python ${own}`.trim(),
        title: `Python stacks, sampled 50 times a second · ${title}`,
      };
    case 'thread':
      return {label: threadName(info, track, own), title};
    case 'counter':
      return {label: counterLabel(info, own), title};
    default:
      return {label: own === '' ? track.kind : own, title};
  }
}

/** What CUPTI writes for a stream that it does not tell. */
const NO_STREAM = 0xffffffff;

const severalDevices = (info: TracksInfo): boolean =>
  new Set(info.tracks.filter(isOnDevice).map(t => t.device)).size > 1;

/** "launch queue" of "GPU 0: work launched, not begun": the device only where there are several. */
function counterLabel(info: TracksInfo, own: string): string {
  const [, gpu, rest] = /^(GPU \d+): (.+)$/.exec(own) ?? [];
  const word =
    rest === 'work launched, not begun'
      ? 'launch queue'
      : rest?.startsWith('tensors allocated')
        ? 'memory'
        : undefined;
  if (gpu === undefined || word === undefined) return own === '' ? /* text */ 'counter' : own;
  return severalDevices(info) ? `${gpu} ${word}` : word;
}

function streamName(track: TrackInfo): string {
  const name = track.name.trim();
  return /stream/i.test(name) || track.id === '' ? name : `stream ${track.id}`;
}

function threadName(info: TracksInfo, track: TrackInfo, own: string): string {
  const mains = mainThreads(info.tracks.filter(t => t.kind === 'thread'));
  if (mains.includes(track)) return mains.length > 1 ? `main thread ${own}` : 'main thread';
  if (track.role === 'worker') {
    const workers = info.tracks.filter(t => t.role === 'worker').sort(byOrder);
    const isUnique = workers.filter(t => t.name === track.name).length === 1;
    if (/worker/i.test(own) && isUnique) return own;
    return `worker ${workers.findIndex(t => t.index === track.index)}`;
  }
  if (track.role === 'autograd') return `autograd ${track.id}`;
  if (track.role === 'pin') return 'pin memory';
  // A bare number says nothing: whose thread it is does. TensorFlow puts the device there.
  if (track.name === '') {
    const owner = info.processes.find(p => p.index === track.process)?.name ?? '';
    const short = owner.replace(/^\/job:[^/]+\/replica:\d+\/task:\d+\//, '');
    return [short, own].filter(text => text !== '').join(' ') || 'thread';
  }
  return own;
}

/** Rows with their places: tops[i] is the top of row i, tops[n] the height of all. */
export function rowTops(rows: readonly Row[]): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach((row, i) => {
    tops[i + 1] = (tops[i] as number) + row.height;
  });
  return tops;
}

/** Rows [first, last) that lie in [top, bottom), by bisection. */
export function visibleRows(
  tops: Float64Array,
  top: number,
  bottom: number,
): {readonly first: number; readonly last: number} {
  const count = tops.length - 1;
  if (count <= 0 || bottom <= top) return {first: 0, last: 0};
  return {first: rowAt(tops, top), last: Math.min(count, rowAt(tops, bottom - 1e-6) + 1)};
}

/** Places of the fixed rows before `last`, then of the others in [first, last). */
export function placesShown(fixed: number, first: number, last: number): readonly number[] {
  const head = Math.min(fixed, last);
  const from = Math.max(first, head);
  return Array.from({length: head + last - from}, (_, i) => (i < head ? i : i - head + from));
}

/** The row at height `y`, clamped to the first and last. */
export function rowAt(tops: Float64Array, y: number): number {
  let lo = 0;
  let hi = tops.length - 2;
  while (lo < hi) {
    const mid = (lo + hi + 1) >>> 1;
    if ((tops[mid] as number) <= y) lo = mid;
    else hi = mid - 1;
  }
  return Math.max(0, lo);
}

/** The lane at `y` inside a row; undefined in its padding or below its lanes. */
export function laneAt(row: Row, y: number): number | undefined {
  const lane = Math.floor((y - PADDING / 2) / row.laneHeight);
  return lane >= 0 && lane + row.laneFirst < row.lanes ? lane + row.laneFirst : undefined;
}

/** Where a lane starts inside its row. */
export const laneTop = (row: Row, lane: number): number =>
  PADDING / 2 + (lane - row.laneFirst) * row.laneHeight;
