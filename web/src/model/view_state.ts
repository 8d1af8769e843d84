// What the page shows, as signals. The address is the state: it is read at start and on
// "back", and written whenever a signal changes, so that a reload or a sent link shows the same.
//
//   BASE/?q=text&sim=0&sort=-step&group=project   the list of traces, filtered, without simulated ones
//   BASE/t/ID?view=timeline&v=START,DUR&sel=s:12&q=text
//   BASE/t/ID?view=timeline&sel=a:T0,T1&tab=gpu&rows=all;pin=t3
//   BASE/t/ID?view=timeline&q=text&dock=hits
//   BASE/t/ID?view=flame&m=gpu&by=op&focus=12&drop=3,40&as=table&sel=a:T0,T1
//   BASE/t/ID?view=flame&shape=inverted&fold=1&of=NAME&with=ID&detail=full
//   BASE/t/ID?view=flame&steps=2,5-9&tracks=7&order=time   steps=measured: the verdict's; steps=all: all time
//   BASE/t/ID?view=kernels&table=copies&group=track&sort=-count&f=text&sel=a:T0,T1
//   BASE/r/ID?v=START,DUR&met=12       a run: its ranks side by side, a window, a collective of it
//   BASE/compare?a=ID&b=ID&met=3&v=... two traces, before and after, aligned at a step
//   BASE/findings, BASE/findings/ID   what findings mean
//   BASE/reports, BASE/reports/ID     reports that people write
//   BASE/p/NAME?tab=series&setting=K   a project's runs over time (pages/project reads the rest)
//   BASE/settings/tokens               oneself, tokens; users and audit for administrators
//   anything else                     a line that says so
//
// Selecting, zooming and changing the page make a history entry; moving the window does not.
import {batch, signal, type Signal} from '@preact/signals';
import {ns, type Ns} from '../base/units';

const PAGES = [
  'list',
  'overview',
  'timeline',
  'kernels',
  'flame',
  'sql',
  'compare',
  'run',
  'findings',
  'reports',
  'project',
  'settings',
  'not_found',
] as const;
export type Page = (typeof PAGES)[number];

/** A part of the trace's time: t0 < t1. */
export interface TimeWindow {
  readonly t0: Ns;
  readonly t1: Ns;
}

export type Selection =
  | {readonly kind: 'slice'; readonly slice: number}
  | {readonly kind: 'area'; readonly t0: Ns; readonly t1: Ns}
  | {readonly kind: 'gap'; readonly device: number; readonly t0: Ns; readonly t1: Ns}
  | undefined;

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export const AREA_TABS = ['slices', 'gpu', 'idle', 'steps', 'counters', 'flame'] as const;
export type AreaTab = (typeof AREA_TABS)[number];

/** What the dock shows while nothing is selected; '': it is closed. */
export const DOCK_TABS = ['', 'findings', 'view', 'gaps', 'steps', 'hits', 'bookmarks'] as const;
export type DockTab = (typeof DOCK_TABS)[number];

/** Everything that the address carries. */
export interface ViewState {
  readonly page: Page;
  readonly traceId: string | undefined;
  readonly window: TimeWindow | undefined;
  readonly selection: Selection;
  readonly query: string;
  /** "": what fits the trace, waiting of the GPU or, without one, time of the host. */
  readonly flameMetric: string;
  readonly flameBy: string;
  /** Frame that fills the width; 0 is the root. Frames are numbered by the server's order. */
  readonly flameFocus: number;
  /** Frames taken out. */
  readonly flameDropped: readonly number[];
  readonly flameForm: 'both' | 'graph' | 'table';
  /** "inverted": stacks from their ends. */
  readonly flameShape: string;
  /** Whether chains are folded: "1", "0", or "": as fits. */
  readonly flameFold: string;
  /** A name with its callers and callees; "" none. */
  readonly flameOf: string;
  /** The trace that this one is compared with. */
  readonly flameWith: string;
  /** "full": without summing small frames. */
  readonly flameDetail: string;
  /** Only time in these steps, "2,5-9", and of these rows; "": all. */
  readonly flameSteps: string;
  readonly flameTracks: string;
  /** "time": frames in the order of time. */
  readonly flameOrder: string;
  /** Which table, "" that of kernels; and what its rows have in common, "" as usual. */
  readonly tableName: string;
  readonly tableGroup: string;
  /** Its column, with "-" before it for ascending order; "": as usual. */
  readonly tableSort: string;
  readonly tableFilter: string;
  /** What was changed about the timeline's rows (timeline/data/row_state.ts). */
  readonly rows: string;
  /** What is shown of a selected area. */
  readonly areaTab: AreaTab;
  /** What is shown of the whole while nothing is selected. */
  readonly dockTab: DockTab;
  /** List: without simulated traces. */
  readonly hideSimulated: boolean;
  /** List: its order and its groups (model/list/list_order.ts). */
  readonly listSort: string;
  readonly listGroup: string;
  /** The traces that are compared, before and after. */
  readonly compareA: string;
  readonly compareB: string;
  /** The run whose ranks are shown. */
  readonly runId: string;
  /** What rows are aligned at: a collective of a run by its number, a step of two traces; '': none. */
  readonly met: string;
  /** The finding that is explained; '': the list of them. */
  readonly findingId: string;
  /** The report that is shown; '': the list of them. */
  readonly reportId: string;
  /** The project whose runs are shown ("-": traces without one), and the query of its address. */
  readonly projectName: string;
  readonly projectQuery: string;
  /** Of the settings page; '': oneself. */
  readonly settingsTab: string;
}

export const DEFAULT_VIEW: ViewState = {
  page: 'list',
  traceId: undefined,
  window: undefined,
  selection: undefined,
  query: '',
  flameMetric: '',
  flameBy: 'op',
  flameFocus: 0,
  flameDropped: [],
  flameForm: 'both',
  flameShape: '',
  flameFold: '',
  flameOf: '',
  flameWith: '',
  flameDetail: '',
  flameSteps: '',
  flameTracks: '',
  flameOrder: '',
  tableName: '',
  tableGroup: '',
  tableSort: '',
  tableFilter: '',
  rows: '',
  areaTab: 'slices',
  dockTab: '',
  hideSimulated: false,
  listSort: '',
  listGroup: '',
  compareA: '',
  compareB: '',
  runId: '',
  met: '',
  findingId: '',
  reportId: '',
  projectName: '',
  projectQuery: '',
  settingsTab: '',
};

type Signals = {readonly [K in keyof ViewState]: Signal<ViewState[K]>};
const MEMBERS = Object.keys(DEFAULT_VIEW) as readonly (keyof ViewState)[];
const signals = Object.fromEntries(
  MEMBERS.map(member => [member, signal<unknown>(DEFAULT_VIEW[member])]),
) as unknown as Signals;

export const {
  page,
  traceId,
  /** Visible time of the timeline; undefined: the whole trace. */
  window: timeWindow,
  selection,
  /** Text of the search field: of the list, or of all pages of a trace. */
  query,
  flameMetric,
  flameBy,
  flameFocus,
  flameDropped,
  flameForm,
  flameShape,
  flameFold,
  flameOf,
  flameWith,
  flameDetail,
  flameSteps,
  flameTracks,
  flameOrder,
  tableName,
  tableGroup,
  tableSort,
  tableFilter,
  rows: rowsShown,
  areaTab,
  dockTab,
  hideSimulated,
  listSort,
  listGroup,
  compareA,
  compareB,
  runId,
  met,
  findingId,
  reportId,
  projectName,
  projectQuery,
  settingsTab,
} = signals;
/** Kept in the browser, not in the address. */
export const theme = signal<Theme>('auto');

export function currentView(): ViewState {
  const entries = MEMBERS.map(member => [member, signals[member].value]);
  return Object.fromEntries(entries) as unknown as ViewState;
}

/** Set several parts of the view at once: one entry in the history. */
export function show(change: Partial<ViewState>): void {
  batch(() => {
    for (const member of Object.keys(change) as (keyof ViewState)[])
      if (member !== 'selection' || !sameSelection(selection.value, change[member]))
        (signals[member] as Signal<unknown>).value = change[member];
  });
}

let isLeap = false;

/** Set several parts at once as a step of the history of its own: Back undoes it, a window too. */
export function leap(change: Partial<ViewState>): void {
  isLeap = true;
  show(change);
  isLeap = false;
}

/** The same of the window alone. */
export const leapTo = (window: TimeWindow | undefined): void => leap({window});

/** Whether the change that is told now was a leap. */
export const isLeaping = (): boolean => isLeap;

/** Open a trace (or the list) with nothing of another trace left over. */
export function openTrace(id: string | undefined, change: Partial<ViewState> = {}): void {
  show({...DEFAULT_VIEW, traceId: id, page: id === undefined ? 'list' : 'overview', ...change});
}

export function sameSelection(a: Selection, b: Selection): boolean {
  return formatSelection(a) === formatSelection(b);
}

// ---- address <-> state

/** What the address of a trace says as it is, by its key there. */
const TRACE_TEXTS = /* no text */ [
  ['q', 'query'],
  ['m', 'flameMetric'],
  ['by', 'flameBy'],
  ['as', 'flameForm'],
  ['shape', 'flameShape'],
  ['fold', 'flameFold'],
  ['of', 'flameOf'],
  ['with', 'flameWith'],
  ['detail', 'flameDetail'],
  ['steps', 'flameSteps'],
  ['tracks', 'flameTracks'],
  ['order', 'flameOrder'],
  ['table', 'tableName'],
  ['group', 'tableGroup'],
  ['sort', 'tableSort'],
  ['f', 'tableFilter'],
  ['rows', 'rows'],
  ['tab', 'areaTab'],
  ['dock', 'dockTab'],
] as const;

/** Path and query relative to the page's base, without a slash before it. */
export function formatLocation(view: ViewState): string {
  const params: string[] = [];
  const put = (key: string, value: string, usual: string): void => {
    if (value !== usual)
      params.push(
        `${key}=${encodeURIComponent(value).replaceAll('%3A', ':').replaceAll('%2C', ',')}`,
      );
  };
  const withParams = (path: string): string =>
    params.length === 0 ? path : `${path}?${params.join('&')}`;
  const putWindow = (): void => {
    if (view.window) put('v', `${view.window.t0},${view.window.t1 - view.window.t0}`, '');
  };
  if (view.page === 'compare') {
    put('a', view.compareA, '');
    put('b', view.compareB, '');
    putWindow();
    put('met', view.met, '');
    return withParams('compare');
  }
  if (view.page === 'run' && view.runId !== '') {
    putWindow();
    put('met', view.met, '');
    return withParams(`r/${encodeURIComponent(view.runId)}`);
  }
  if (view.page === 'findings')
    return view.findingId === '' ? 'findings' : `findings/${encodeURIComponent(view.findingId)}`;
  if (view.page === 'reports')
    return view.reportId === '' ? 'reports' : `reports/${encodeURIComponent(view.reportId)}`;
  if (view.page === 'project' && view.projectName !== '')
    return `p/${encodeURIComponent(view.projectName)}${view.projectQuery === '' ? '' : `?${view.projectQuery}`}`;
  if (view.page === 'settings')
    return view.settingsTab === '' ? 'settings' : `settings/${view.settingsTab}`;
  if (view.page === 'not_found') return 'not_found';
  if (view.traceId === undefined || view.page === 'list') {
    put('q', view.query, '');
    put('sim', view.hideSimulated ? '0' : '1', '1');
    put('sort', view.listSort, '');
    put('group', view.listGroup, '');
    return withParams('');
  }
  put('view', view.page, 'overview');
  putWindow();
  put('sel', formatSelection(view.selection), '');
  for (const [key, member] of TRACE_TEXTS) put(key, String(view[member]), DEFAULT_VIEW[member]);
  put('focus', String(view.flameFocus), '0');
  put('drop', view.flameDropped.join(','), '');
  return withParams(`t/${encodeURIComponent(view.traceId)}`);
}

/** What an address says; what cannot be read is as if it were not there. */
export function parseLocation(path: string, search: string): ViewState {
  const params = new URLSearchParams(search);
  const get = (key: string): string => params.get(key) ?? '';
  const window = parseWindow(get('v'));
  const aligned = {...DEFAULT_VIEW, window, met: /^\d{1,15}$/.exec(get('met'))?.[0] ?? ''};
  if (/^\/?compare\/?$/.test(path))
    return {...aligned, page: 'compare', compareA: get('a'), compareB: get('b')};
  const run = decode(/^\/?r\/([^/]+)\/?$/.exec(path)?.[1] ?? '');
  if (run) return {...aligned, page: 'run', runId: run};
  const finding = /^\/?findings(?:\/([^/]*))?\/?$/.exec(path);
  if (finding)
    return {...DEFAULT_VIEW, page: 'findings', findingId: decode(finding[1] ?? '') ?? ''};
  const report = /^\/?reports(?:\/([^/]*))?\/?$/.exec(path);
  if (report) return {...DEFAULT_VIEW, page: 'reports', reportId: decode(report[1] ?? '') ?? ''};
  const project = decode(/^\/?p\/([^/]+)\/?$/.exec(path)?.[1] ?? '');
  if (project)
    return {
      ...DEFAULT_VIEW,
      page: 'project',
      projectName: project,
      projectQuery: search.replace(/^\?/, ''),
    };
  const settings = /^\/?settings(?:\/([a-z]*))?\/?$/.exec(path);
  if (settings) return {...DEFAULT_VIEW, page: 'settings', settingsTab: settings[1] ?? ''};
  const id = decode(/^\/?t\/([^/]+)\/?$/.exec(path)?.[1] ?? '');
  if (!id && !/^\/?(index\.html)?$/.test(path)) return {...DEFAULT_VIEW, page: 'not_found'};
  if (!id)
    return {
      ...DEFAULT_VIEW,
      query: get('q'),
      hideSimulated: get('sim') === '0',
      listSort: get('sort'),
      listGroup: get('group'),
    };
  const view = get('view');
  const texts = Object.fromEntries(
    TRACE_TEXTS.map(([key, member]) => [member, params.get(key) ?? DEFAULT_VIEW[member]]),
  );
  return {
    ...DEFAULT_VIEW,
    page: isTracePage(view) ? view : 'overview',
    traceId: id,
    window,
    selection: parseSelection(get('sel')),
    ...texts,
    flameFocus: parseIndices(get('focus'))[0] ?? 0,
    flameDropped: parseIndices(get('drop')),
    flameForm: (['graph', 'table'] as const).find(form => form === params.get('as')) ?? 'both',
    areaTab: AREA_TABS.find(tab => tab === params.get('tab')) ?? DEFAULT_VIEW.areaTab,
    dockTab: DOCK_TABS.find(tab => tab === params.get('dock')) ?? '',
  };
}

/** Pages that are not of one trace. */
export const OTHER_PAGES: readonly string[] = [
  'list',
  'compare',
  'run',
  'findings',
  'reports',
  'project',
  'settings',
  'not_found',
];

function isTracePage(text: string): text is Page {
  return (PAGES as readonly string[]).includes(text) && !OTHER_PAGES.includes(text);
}

/** undefined where it is none of ours: a percent sign with no digits behind it. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export function formatSelection(sel: Selection): string {
  switch (sel?.kind) {
    case 'slice':
      return `s:${sel.slice}`;
    case 'area':
      return `a:${sel.t0},${sel.t1}`;
    case 'gap':
      return `g:${sel.device},${sel.t0},${sel.t1}`;
    case undefined:
      return '';
  }
}

export function parseSelection(text: string): Selection {
  const match = /^([sag]):(-?\d+(?:,-?\d+)*)$/.exec(text);
  if (!match) return undefined;
  const numbers = (match[2] ?? '').split(',').map(Number);
  if (!numbers.every(Number.isSafeInteger)) return undefined;
  const [a, b, c] = numbers;
  if (match[1] === 's' && a !== undefined && a >= 0 && b === undefined)
    return {kind: 'slice', slice: a};
  if (match[1] === 'a' && a !== undefined && b !== undefined && a < b && c === undefined)
    return {kind: 'area', t0: ns(a), t1: ns(b)};
  if (match[1] === 'g' && a !== undefined && b !== undefined && c !== undefined && b < c)
    return {kind: 'gap', device: a, t0: ns(b), t1: ns(c)};
  return undefined;
}

/** "START,DUR" in ns; fractions are allowed, for a window may end between two nanoseconds. */
function parseWindow(text: string): TimeWindow | undefined {
  const match = /^(-?\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(text);
  if (!match) return undefined;
  const start = Number(match[1]);
  const duration = Number(match[2]);
  if (!Number.isFinite(start) || !Number.isFinite(duration) || duration <= 0) return undefined;
  return {t0: ns(start), t1: ns(start + duration)};
}

/** "3,40": whole numbers from 0 on; anything else makes the whole list empty. */
function parseIndices(text: string): readonly number[] {
  if (!/^\d+(,\d+)*$/.test(text)) return [];
  const indices = text.split(',').map(Number);
  return indices.every(Number.isSafeInteger) ? indices : [];
}
