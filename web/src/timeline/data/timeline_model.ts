// One trace as the timeline sees it: tiles, names, rows and the selection's details. Lives as long
// as the trace is shown; the drawing and the panel read it, navigate.ts moves it.

import {computed, effect, signal} from '@preact/signals';
import * as api from '../../api/client';
import type {
  Analysis,
  CounterSamples,
  GapInfo,
  SliceInfo,
  Strip,
  TraceInfo,
  TracksInfo,
} from '../../api/types';
import type {Launched} from '../../api/table_types';
import {causeWord, type Cause} from '../../base/causes';
import {waitsByStep} from './step_waits';
import {formatDuration} from '../../base/format';
import {ns} from '../../base/units';
import {
  query,
  rowsShown,
  sameSelection,
  selection,
  show,
  timeWindow,
  type Selection,
  type ViewState,
} from '../../model/view_state';
import type {Rgb} from '../../render/color';
import {Palette, type ThemeName} from '../../render/palette';
import {formatIndexSet, levelMaxFor} from '../../render/tile_plan';
import {Bookmarks} from './bookmarks';
import {RangeStore, withValueBefore} from './counter_store';
import {GapList} from './gap_list';
import type {Hover} from './hover';
import {NameStore} from './name_store';
import {formatRows, parseRows, type RowChoice} from './row_state';
import {buildRows, rowTops, trackLabel, type Row, type RowState} from './rows';
import {SEARCH_BINS, SearchHits} from './search_hits';
import {Steps} from './steps';
import {TileStore} from './tile_store';
import {clampWindow, type Measure, type Span} from './view_math';

/** Tiles kept in memory: minutes of zooming and panning. */
const TILE_BUDGET_BYTES = 192 * 1024 * 1024;
/** Steps of a longer recording are plain bars: there are more of them than pixels. */
const STEPS_WITH_WAITS_MAX = 2000;

/** Pinned rows leave this part of the height to those that scroll. */
const SCROLLED_PART = 0.4;

/** While more is on its way, what arrives is drawn this often. */
const ARRIVALS_MS = 50;

/** What a selected slice's panel shows. */
export type SliceState =
  | {readonly kind: 'none'}
  | {readonly kind: 'loading'}
  | {
      readonly kind: 'ready';
      readonly slice: SliceInfo;
      readonly link: SliceInfo | undefined;
      /** What is around it and what it launched; undefined until known. */
      readonly around: Launched | undefined;
    }
  | {readonly kind: 'error'; readonly text: string};

export type ReadySlice = Extract<SliceState, {kind: 'ready'}>;

/** Whether L leads anywhere from it: along its launch, or to what was launched inside it. */
export const hasLink = ({slice, around}: ReadySlice): boolean =>
  slice.link !== undefined || (around !== undefined && around.launched.length > 0);

/** A lane of a row. */
export interface RowPlace {
  readonly key: string;
  readonly lane: number;
}

export class TimelineModel {
  readonly durationNs: number;
  readonly levelMax: number;
  readonly tiles: TileStore;
  readonly names: NameStore;
  readonly counters: RangeStore<CounterSamples>;
  /** What each device did, by its number. */
  readonly usage: RangeStore<Strip>;
  readonly gaps: GapList;
  readonly search: SearchHits;
  readonly bookmarks: Bookmarks;
  readonly palette: Palette;
  /** Comes a little after the rows. */
  private readonly diagnosis = signal<Analysis | undefined>(undefined);
  private readonly stepList = computed(() => new Steps(this.tracks.steps, this.diagnosis.value));
  private readonly revealed = signal<ReadonlySet<string>>(new Set());
  readonly rowState = computed<RowState>(() => ({
    ...parseRows(rowsShown.value),
    revealed: this.revealed.value,
  }));
  /** What there is for rows, CSS pixels. */
  readonly stageHeight = signal(0);
  readonly rows = computed(() =>
    buildRows(this.tracks, this.rowState.value, this.stageHeight.value),
  );
  readonly tops = computed(() => rowTops(this.rows.value));
  /** Pinned rows that stay at the top while the others scroll. */
  readonly fixedCount = computed(() => {
    const room = this.stageHeight.value * (1 - SCROLLED_PART);
    const tops = this.tops.value;
    const isFixed = ({isPinned}: Row, i: number): boolean =>
      isPinned && (tops[i + 1] as number) <= room;
    return Math.max(
      0,
      this.rows.value.findIndex((row, i) => !isFixed(row, i)),
    );
  });
  readonly fixedPx = computed(() => this.tops.value[this.fixedCount.value] as number);
  readonly windowText = computed(() => {
    const {t0, t1} = this.window;
    return formatDuration(t1 - t0);
  });
  /** Of each step in order: what the GPU waited for in it; empty until known. */
  stepWaits: readonly (readonly (readonly [Cause, number])[])[] = [];
  readonly slice = signal<SliceState>({kind: 'none'});
  readonly gap = signal<GapInfo | undefined>(undefined);
  /** What the selected gap waited for: the wait, then the worker's batch. Empty when not recorded. */
  readonly chain = signal<readonly SliceInfo[]>([]);
  /** From one slice to another, of the area that spans both. */
  readonly measured = signal<Measure | undefined>(undefined);
  readonly hover = signal<Hover | undefined>(undefined);
  /** Where on the page the menu of the selected slice is open. */
  readonly menu = signal<{readonly x: number; readonly y: number} | undefined>(undefined);
  /** Counts what arrived; the panel and the stage redraw when it grows. */
  readonly arrivals = signal(0);
  /** The browser took the graphics context: nothing is drawn until there is one again. */
  readonly isDrawingLost = signal(false);
  /** What a screen reader hears. */
  readonly spoken = signal('');
  /** Times of a kernel in the whole trace, by name id. */
  readonly kernelCounts = new Map<number, number>();
  /** Grows when the picture is no longer true; whoever draws watches it. */
  readonly redraws = signal(0);
  /** The row to bring into view; a new object for each request. */
  readonly rowInView = signal<RowPlace | undefined>(undefined);

  private readonly trackOf = new Map<number, TracksInfo['tracks'][number]>();
  private readonly closing = new AbortController();
  private sliceFlight: AbortController | undefined;
  private arrivalTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly disposers: (() => void)[] = [];

  constructor(
    readonly trace: TraceInfo,
    readonly tracks: TracksInfo,
    analysis: Analysis | undefined,
  ) {
    this.diagnosis.value = analysis;
    this.durationNs = Math.max(1, tracks.duration_ns, trace.duration_ns);
    this.levelMax = levelMaxFor(this.durationNs);
    const arrived = (): void => this.arrived();
    const id = trace.id;
    this.tiles = new TileStore({
      fetch: ({level, first, last}, set, signal) =>
        api.getTiles(id, tracks.generation, level, first, last, set, signal),
      durationNs: this.durationNs,
      levelMax: this.levelMax,
      budgetBytes: TILE_BUDGET_BYTES,
      // names while other tiles are still on their way, not after the picture that lacks them
      onTiles: tiles => {
        for (const {nativeName, cellName} of tiles) {
          for (const name of nativeName) this.names.text(name);
          for (const name of cellName) this.names.text(name);
        }
        this.names.flush();
      },
      onChange: arrived,
    });
    this.names = new NameStore(async ids => {
      const reply = await api.getNames(id, {ids: formatIndexSet(ids)}, this.closing.signal);
      return reply.names;
    }, arrived);
    this.counters = new RangeStore(
      (track, range, signal) =>
        withValueBefore((...of) => api.getCounter(id, ...of), track, range, signal),
      this.durationNs,
      arrived,
    );
    this.usage = new RangeStore(
      (device, range, signal) => {
        const room = Math.floor(range.t1 - range.t0);
        const points = Math.max(1, Math.min(range.points, room));
        return api.getStrip(id, {...range, points, device}, signal);
      },
      this.durationNs,
      arrived,
    );
    this.gaps = new GapList(
      (device, limit) =>
        api.getGaps(id, {device, limit, sort: 'dur'}, this.closing.signal).then(r => r.gaps),
      tracks.tracks.flatMap(t => (t.kind === 'gaps' && t.device !== undefined ? [t.device] : [])),
    );
    this.search = new SearchHits(
      (q, after, signal) =>
        api.searchSlices(
          id,
          {q, limit: 500, ...(after === undefined ? {bins: SEARCH_BINS} : {after})},
          signal,
        ),
      arrived,
    );
    this.bookmarks = new Bookmarks(id, arrived);
    this.palette = new Palette(this.names, 'light', [255, 255, 255], [255, 200, 0]);
    for (const track of tracks.tracks) this.trackOf.set(track.index, track);
    this.disposers.push(
      effect(() => this.followSelection(selection.value)),
      effect(() => {
        const text = query.value;
        this.search.set(text);
        this.palette.setSearch(/^(id|corr|batch|track):/.test(text) ? '' : text.trim());
        this.requestFrame();
      }),
    );
    const names = api.getFirstNames(id, this.closing.signal);
    void this.names.takeFirst(
      api.FIRST_NAMES,
      names.then(reply => reply.names),
    );
    void this.loadKernels();
    void this.loadStepWaits();
  }

  close(): void {
    clearTimeout(this.arrivalTimer);
    for (const dispose of this.disposers) dispose();
    this.closing.abort();
    this.sliceFlight?.abort();
    this.tiles.close();
    this.counters.close();
    this.usage.close();
    this.search.close();
    this.bookmarks.close();
  }

  setTheme(theme: ThemeName, background: Rgb, highlight: Rgb): void {
    this.palette.setTheme(theme, background, highlight);
    this.requestFrame();
  }

  /** Ask for another picture. */
  requestFrame(): void {
    // peek: an effect that asks for a picture must not run again for having asked
    this.redraws.value = this.redraws.peek() + 1;
  }

  /** Everything that the picture asked for is here. */
  get isComplete(): boolean {
    const {tiles, names, counters, usage} = this;
    return tiles.pending === 0 && names.isIdle && counters.isIdle && usage.isIdle;
  }

  // What is asked for together arrives within milliseconds, in a dozen pieces: one picture of all of
  // it costs less than a picture of each, and stands earlier.
  private arrived(): void {
    this.arrivals.value = this.arrivals.peek() + 1;
    if (this.isComplete) {
      clearTimeout(this.arrivalTimer);
      this.arrivalTimer = undefined;
      this.requestFrame();
      return;
    }
    this.arrivalTimer ??= setTimeout(() => {
      this.arrivalTimer = undefined;
      this.requestFrame();
    }, ARRIVALS_MS);
  }

  track(index: number): TracksInfo['tracks'][number] | undefined {
    return this.trackOf.get(index);
  }

  get analysis(): Analysis | undefined {
    return this.diagnosis.value;
  }

  setAnalysis(analysis: Analysis | undefined): void {
    if (analysis === this.diagnosis.peek()) return;
    this.diagnosis.value = analysis;
    this.requestFrame();
  }

  get steps(): Steps {
    return this.stepList.value;
  }

  /** The visible time, always inside the trace. */
  get window(): Span {
    const chosen = timeWindow.value;
    return clampWindow(chosen ?? {t0: 0, t1: this.durationNs}, this.durationNs);
  }

  setWindow(window: Span): void {
    this.show({window: this.asWindow(window)});
  }

  /** Change window and selection together: one entry in the history. */
  show(change: Pick<Partial<ViewState>, 'window' | 'selection'>): void {
    // an answer that comes when another page or trace is shown is not for that one
    if (this.closing.signal.aborted) return;
    show(change);
    this.requestFrame();
  }

  /** For the address: tenths of a nanosecond are finer than any pixel; the whole trace is none. */
  asWindow(window: Span): ViewState['window'] {
    const {t0, t1} = clampWindow(window, this.durationNs);
    if (t0 <= 0 && t1 >= this.durationNs) return undefined;
    const round = (t: number): number => Math.round(t * 16) / 16;
    return {t0: ns(round(t0)), t1: ns(Math.max(round(t1), round(t0) + 1))};
  }

  changeRows(change: Partial<RowChoice>): void {
    rowsShown.value = formatRows({...this.rowState.peek(), ...change});
    this.requestFrame();
  }

  toggle(set: 'collapsed' | 'expanded' | 'unfolded' | 'pinned' | 'hidden', key: string): void {
    const next = new Set(this.rowState.value[set]);
    if (!next.delete(key)) next.add(key);
    this.changeRows({[set]: next});
  }

  /** Make the lane of a track visible, whatever hides it. */
  revealTrack(track: number, lane: number): void {
    const key = `t${track}`;
    const state = this.rowState.value;
    if (!this.rows.value.some(row => row.key === key)) {
      this.revealed.value = new Set([...state.revealed, key]);
      this.changeRows({filter: ''});
    }
    const row = this.rows.value.find(r => r.key === key);
    // A collapsed row shows its first lane well enough.
    if (row?.isCollapsed && lane > 0) this.toggle('collapsed', key);
    if (row && lane >= row.lanes && !state.expanded.has(key)) this.toggle('expanded', key);
    if (row && lane < row.laneFirst) this.toggle('unfolded', key);
    this.rowInView.value = {key, lane};
  }

  private followSelection(sel: Selection): void {
    this.sliceFlight?.abort();
    this.sliceFlight = undefined;
    this.gap.value = undefined;
    this.chain.value = [];
    this.rowInView.value = undefined;
    if (sel?.kind === 'slice') {
      void this.loadSlice(sel.slice);
    } else {
      this.slice.value = {kind: 'none'};
      if (sel) void this.loadGap(sel);
    }
    this.requestFrame();
  }

  private async loadSlice(id: number): Promise<void> {
    const flight = new AbortController();
    this.sliceFlight = flight;
    this.slice.value = {kind: 'loading'};
    try {
      const slice = await api.getSlice(this.trace.id, id, flight.signal);
      if (flight.signal.aborted) return;
      // first its row and its name: what waits for the details opens a menu there, and speaks after it
      this.revealTrack(slice.track, slice.lane);
      this.speakSlice(slice);
      let ready: ReadySlice = {kind: 'ready', slice, link: undefined, around: undefined};
      const add = (part: Partial<ReadySlice>): void => {
        if (flight.signal.aborted) return;
        this.slice.value = ready = {...ready, ...part};
        this.requestFrame();
      };
      add({});
      // Each as it comes. What does not come stays unknown: L asks once more, and says why.
      void api.getLaunched(this.trace.id, id, flight.signal).then(
        around => add({around}),
        () => undefined,
      );
      if (slice.link !== undefined)
        add({link: await api.getSlice(this.trace.id, slice.link, flight.signal)});
    } catch (error) {
      if (flight.signal.aborted || api.isAbort(error)) return;
      this.slice.value = {kind: 'error', text: api.errorText(error)};
    }
  }

  private speakSlice(slice: SliceInfo): void {
    const track = this.track(slice.track);
    const row = track ? `, ${trackLabel(this.tracks, track).label}` : '';
    const name = slice.short || slice.name;
    const at = formatDuration(slice.start_ns);
    this.spoken.value = `${name}, ${formatDuration(slice.dur_ns)}, at ${at}${row}`;
  }

  /** The gap that a selection is, or that a selected area covers exactly. */
  private async loadGap(sel: Extract<Selection, {t0: number}>): Promise<void> {
    try {
      const list = await this.gaps.load();
      if (!sameSelection(selection.peek(), sel)) return;
      const matches = (g: GapInfo): boolean =>
        (sel.kind === 'area' || g.device === sel.device) &&
        Math.abs(g.start_ns - sel.t0) < 1 &&
        Math.abs(g.start_ns + g.dur_ns - sel.t1) < 1;
      const gap = list.find(matches);
      this.gap.value = gap;
      if (gap) void this.loadChain(gap, sel);
      if (gap || sel.kind === 'gap') {
        const why = gap ? ` ${causeWord(gap.cause).waits}` : '';
        const device = gap?.device ?? (sel.kind === 'gap' ? sel.device : 0);
        this.spoken.value = `GPU ${device} waits ${formatDuration(sel.t1 - sel.t0)}${why}`;
      }
      this.requestFrame();
    } catch {
      // The panel shows the interval without its causes and says so.
    }
  }

  /** A line is drawn only along the slices that the gap names; a failure draws none. */
  private async loadChain(gap: GapInfo, sel: Selection): Promise<void> {
    if (gap.wait_slice === undefined) return;
    const ids = [gap.wait_slice, gap.batch_slice].filter(id => id !== undefined);
    try {
      const slices = await Promise.all(
        ids.map(id => api.getSlice(this.trace.id, id, this.closing.signal)),
      );
      if (!sameSelection(selection.peek(), sel)) return;
      this.chain.value = slices;
      this.requestFrame();
    } catch {
      // the panel says in words what is known
    }
  }

  private async loadStepWaits(): Promise<void> {
    const count = this.tracks.steps.start_ns.length;
    if (count === 0 || count > STEPS_WITH_WAITS_MAX) return;
    try {
      const points = await api.getSteps(
        this.trace.id,
        {points: STEPS_WITH_WAITS_MAX, waiting: 'yes'},
        this.closing.signal,
      );
      this.stepWaits = waitsByStep(points, this.tracks.steps.start_ns);
      this.arrived();
    } catch {
      // The bars of steps are plain then.
    }
  }

  private async loadKernels(): Promise<void> {
    try {
      const {kernels} = await api.getLongestKernels(this.trace.id, this.closing.signal);
      this.names.putAll(kernels.map(kernel => [kernel.name_id, kernel.name]));
      for (const kernel of kernels) {
        this.kernelCounts.set(kernel.name_id, kernel.count);
        this.names.putLabel(kernel.name_id, kernel.short);
      }
      this.arrived();
    } catch {
      // Without the table names are shortened by our own rules and "times per step" is left out.
    }
  }
}
