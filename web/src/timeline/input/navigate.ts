// What the keys and buttons do: every command of keymap.ts, as movements of the view state.

import {errorText, getLaunched, getSlices, searchSlices} from '../../api/client';
import type {Bookmark} from '../../api/bookmarks';
import type {Launched} from '../../api/table_types';
import type {Evidence, SliceInfo} from '../../api/types';
import {ns} from '../../base/units';
import {sameSelection, selection, type ViewState} from '../../model/view_state';
import {nextStation, sameStation, type BatchHit} from '../data/batch_chain';
import {stepGap} from '../data/gap_list';
import {nextInLane, previousInLane, type WindowFetch} from '../data/neighbors';
import type {Step} from '../data/steps';
import {isTextTarget, type Command} from './keymap';
import {formatCount, formatDuration} from '../../base/format';
import type {ReadySlice, TimelineModel} from '../data/timeline_model';
import {
  centerWindow,
  fitWindow,
  measure,
  panWindow,
  revealWindow,
  zoomWindow,
  type Span,
} from '../data/view_math';

/** Zoom and pan of one key press or button click. */
const ZOOM_STEP = 1.5;
const PAN_STEP = 0.2;
const NEIGHBORS_LIMIT = 1000;
/** Ranges of one batch number: parts of its fetch, over all epochs. */
const BATCH_HITS_MAX = 1000;
/** What is too short to be seen is shown with this much around it. */
const EVIDENCE_PAD_MIN_NS = 20_000;

export class Navigator {
  /** Which evidence of a finding comes next. */
  private readonly evidenceAt = new Map<number, number>();
  private lastFit: string | undefined;
  /** What the last slice launched from which one went there: "]" goes on along it. */
  private around: Pick<Launched, 'launched' | 'count'> = {launched: [], count: 0};

  constructor(
    private readonly model: TimelineModel,
    private readonly focusSearch: () => void,
    private readonly scrollBy: (px: number) => void,
  ) {}

  /** Where there is nothing to do, it says so. */
  run(command: Command): void {
    if (command !== 'fit') this.lastFit = undefined;
    const {model} = this;
    switch (command) {
      case 'zoom-in':
        return this.zoom(1 / ZOOM_STEP, 0.5);
      case 'zoom-out':
        return this.zoom(ZOOM_STEP, 0.5);
      case 'pan-left':
        return this.pan(-PAN_STEP);
      case 'pan-right':
        return this.pan(PAN_STEP);
      case 'scroll-up':
        return this.scrollBy(-300);
      case 'scroll-down':
        return this.scrollBy(300);
      case 'whole':
        return model.setWindow({t0: 0, t1: model.durationNs});
      case 'fit':
        return this.withSelected(span => this.fit(span));
      case 'clear':
        return model.show({selection: undefined});
      case 'slice-previous':
        return this.neighbor('previous');
      case 'slice-next':
        return this.neighbor('next');
      case 'slice-up':
        return this.parent();
      case 'slice-down':
        return this.child();
      case 'gap-next':
        return void this.gap(1);
      case 'gap-previous':
        return void this.gap(-1);
      case 'gap-same':
        return void this.gap(1, true);
      case 'outlier-next':
        return this.outlier();
      case 'link':
        return this.link();
      case 'flow-next':
        return this.flow(1);
      case 'flow-previous':
        return this.flow(-1);
      case 'batch':
        return this.batch();
      case 'batch-next':
        return this.batchBeside(1);
      case 'batch-previous':
        return this.batchBeside(-1);
      case 'search':
        return this.focusSearch();
      case 'hit-next':
        return void this.hit(1);
      case 'hit-previous':
        return void this.hit(-1);
      case 'mark':
        return this.mark();
      case 'everything':
        return this.selectArea(0, model.durationNs);
      case 'menu':
        return this.say('select a slice first'); // what there is of one, the stage shows
      case 'bookmark':
        return this.bookmark();
      case 'rows':
        return model.changeRows({showAll: !model.rowState.value.showAll});
      case 'back':
        return history.back();
      case 'finding-1':
      case 'finding-2':
      case 'finding-3':
      case 'finding-4':
      case 'finding-5':
        return this.finding(Number(command.slice(-1)) - 1);
    }
  }

  zoom(factor: number, anchor: number): void {
    const {model} = this;
    model.setWindow(zoomWindow(model.window, factor, anchor, model.durationNs));
  }

  pan(share: number): void {
    const {model} = this;
    model.setWindow(panWindow(model.window, share, model.durationNs));
  }

  /** What is selected, as an interval. */
  get selected(): Span | undefined {
    const sel = selection.peek();
    if (sel === undefined) return undefined;
    if (sel.kind !== 'slice') return {t0: sel.t0, t1: sel.t1};
    const state = this.model.slice.peek();
    if (state.kind !== 'ready') return undefined;
    return {t0: state.slice.start_ns, t1: state.slice.start_ns + state.slice.dur_ns};
  }

  zoomTo(span: Span): void {
    this.model.setWindow(fitWindow(span, this.model.durationNs));
  }

  selectSlice(slice: number): void {
    this.model.show({selection: {kind: 'slice', slice}});
  }

  /** The view in which a slice is selected and seen. */
  viewOfSlice(
    slice: number,
    span: Span | undefined,
  ): Pick<Partial<ViewState>, 'window' | 'selection'> {
    const {model} = this;
    return {
      selection: {kind: 'slice', slice},
      ...(span ? {window: model.asWindow(revealWindow(model.window, span, model.durationNs))} : {}),
    };
  }

  /** Select a slice that may be off screen and bring it there. */
  goToSlice(slice: number, span: Span | undefined): void {
    this.model.show(this.viewOfSlice(slice, span));
    if (!span) this.revealWhenLoaded(slice);
  }

  selectArea(t0: number, t1: number): void {
    const from = Math.floor(Math.min(t0, t1));
    const to = Math.max(from + 1, Math.ceil(Math.max(t0, t1)));
    this.model.show({selection: {kind: 'area', t0: ns(from), t1: ns(to)}});
    this.say(`area of ${formatDuration(to - from)}`);
  }

  /** From what is selected to another slice: an area over both. */
  measureTo(other: Span): void {
    const {selected, model} = this;
    if (!selected) return;
    const measured = measure(selected, other);
    model.measured.value = measured;
    this.selectArea(measured.area.t0, measured.area.t1);
  }

  /** Do something with the interval that is selected, once it is known. */
  withSelected(act: (span: Span) => void, none?: () => void): void {
    const {selected} = this;
    if (selected) act(selected);
    else if (selection.peek()) this.withSlice(() => this.withSelected(act));
    else none?.();
  }

  /** First centered, pressed again fitted. */
  private fit(span: Span): void {
    const {model} = this;
    const key = `${span.t0}/${span.t1}`;
    if (this.lastFit === key) {
      this.zoomTo(span);
      this.lastFit = undefined;
      return;
    }
    this.lastFit = key;
    const isTooLong = span.t1 - span.t0 > model.window.t1 - model.window.t0;
    if (isTooLong) this.zoomTo(span);
    else model.setWindow(centerWindow(model.window, span, model.durationNs));
  }

  private neighbor(side: 'previous' | 'next'): void {
    this.withSlice(
      ({slice}) => void this.beside(slice, side),
      () => {
        if (selection.peek() === undefined) void this.firstOnScreen();
      },
    );
  }

  /** Select the first slice that begins in view, of the uppermost row that has one. */
  private async firstOnScreen(): Promise<void> {
    const {model} = this;
    const {t0, t1} = model.window;
    for (const {track, kind} of model.rows.peek()) {
      if (track === undefined || kind === 'counter') continue;
      try {
        const query = {track, t0: Math.floor(t0), t1: Math.ceil(t1), limit: NEIGHBORS_LIMIT};
        const {slices} = await getSlices(model.trace.id, query);
        if (selection.peek() !== undefined) return; // something else meanwhile
        const first = slices.find(slice => slice.start_ns >= t0) ?? slices[0];
        if (first) return this.selectSlice(first.id);
      } catch (error) {
        return this.say(errorText(error));
      }
    }
    this.say('no slice on screen');
  }

  private async beside(slice: SliceInfo, side: 'previous' | 'next'): Promise<void> {
    const {model} = this;
    const fetch: WindowFetch = async (t0, t1) => {
      const query = {track: slice.track, t0, t1, limit: NEIGHBORS_LIMIT};
      const reply = await getSlices(model.trace.id, query);
      return {slices: reply.slices, isCut: reply.next !== undefined};
    };
    try {
      const found =
        side === 'next'
          ? await nextInLane(slice, model.durationNs, fetch)
          : await previousInLane(slice, fetch);
      const sel = selection.peek();
      if (sel?.kind !== 'slice' || sel.slice !== slice.id) return; // something else meanwhile
      if (!found) return this.say(`no ${side} slice in this lane`);
      this.goToSlice(found.id, {t0: found.start_ns, t1: found.start_ns + found.dur_ns});
    } catch (error) {
      this.say(errorText(error));
    }
  }

  private parent(): void {
    this.withSlice(
      ({slice}) => {
        if (slice.parent !== undefined) this.goToSlice(slice.parent, undefined);
        else this.say('no enclosing slice');
      },
      () => this.scrollBy(-60),
    );
  }

  private child(): void {
    this.withSlice(
      ({slice}) => {
        // In order of start the first slice inside comes right after the one around it.
        if (slice.children > 0) this.goToSlice(slice.id + 1, undefined);
        else this.say('no slice inside this one');
      },
      () => this.scrollBy(60),
    );
  }

  private link(): void {
    this.withSlice(
      state => {
        const {slice, link} = state;
        if (slice.link === undefined) return void this.toLaunched(state);
        const span = link && {t0: link.start_ns, t1: link.start_ns + link.dur_ns};
        this.goToSlice(slice.link, span);
      },
      () => this.say('select a kernel or its launch first'),
    );
  }

  /** To what launched it (-1), or to what it launched (1): the first, then one after the other. */
  private flow(direction: 1 | -1): void {
    this.withSlice(
      state => {
        const {slice} = state;
        if (direction > 0) void this.toLaunched(state);
        else if (slice.link !== undefined && slice.kind !== 'api') this.link();
        else this.say('no launch of it was recorded');
      },
      () => this.say('select a kernel or its launch first'),
    );
  }

  /** The first that it launched; of something launched, the next by the same. */
  private async toLaunched({slice, around}: ReadySlice): Promise<void> {
    const at = this.around.launched.findIndex(row => row.slice === slice.id);
    if (at < 0) {
      try {
        this.around = around ?? (await getLaunched(this.model.trace.id, slice.id));
      } catch (error) {
        return this.say(errorText(error));
      }
      const sel = selection.peek();
      if (sel?.kind !== 'slice' || sel.slice !== slice.id) return; // something else meanwhile
    }
    const {launched, count} = this.around;
    const next = launched[at + 1];
    if (next) this.goToSlice(next.slice, {t0: next.start_ns, t1: next.start_ns + next.dur_ns});
    else if (launched.length < count)
      this.say(`these were the first ${formatCount(launched.length)} of ${formatCount(count)}`);
    else this.say(launched[0] ? 'it was the last one' : 'nothing was launched by it');
  }

  /** Follow the batch of the selection to where it goes next, or to the one that a gap waits for. */
  private batch(): void {
    const [wait] = this.model.chain.peek();
    if (selection.peek()?.kind !== 'slice' && wait) return this.goTo(wait);
    this.withSlice(
      ({slice}) =>
        void this.findBatch(slice, 0, hits => nextStation(hits, slice.name, slice.start_ns)),
      () => this.say('select a loader range, or a gap that waits for data, first'),
    );
  }

  private batchBeside(step: 1 | -1): void {
    this.withSlice(
      ({slice}) =>
        void this.findBatch(slice, step, hits => sameStation(hits, slice.name, slice.start_ns)),
      () => this.say('select a batch first'),
    );
  }

  /** Look for the loader's ranges of the slice's batch, or of one beside it, and go to one. */
  private async findBatch(
    slice: SliceInfo,
    step: -1 | 0 | 1,
    choose: (hits: readonly BatchHit[]) => BatchHit | undefined,
  ): Promise<void> {
    const batch = slice.loader?.batch;
    if (batch === undefined || batch < 0) return this.say('no batch was recorded for this slice');
    try {
      const query = {q: `batch:${batch + step}`, limit: BATCH_HITS_MAX};
      const {hits} = await searchSlices(this.model.trace.id, query);
      const sel = selection.peek();
      if (sel?.kind !== 'slice' || sel.slice !== slice.id) return; // something else meanwhile
      const hit = choose(hits);
      if (!hit)
        return this.say(step === 0 ? 'nothing else was recorded for this batch' : 'no such batch');
      this.goToSlice(hit.slice, {t0: hit.start_ns, t1: hit.start_ns + hit.dur_ns});
    } catch (error) {
      this.say(errorText(error));
    }
  }

  private goTo(slice: SliceInfo): void {
    this.goToSlice(slice.id, {t0: slice.start_ns, t1: slice.start_ns + slice.dur_ns});
  }

  /** Do something with the selected slice: at once, or when its details are here. */
  private withSlice(act: (state: ReadySlice) => void, none?: () => void): void {
    const {model} = this;
    const state = model.slice.peek();
    const wanted = selection.peek();
    if (state.kind === 'ready') return act(state);
    if (state.kind !== 'loading') return none?.();
    const stop = model.slice.subscribe(next => {
      if (next.kind === 'loading' && sameSelection(selection.peek(), wanted)) return;
      queueMicrotask(() => stop());
      // who types meanwhile wants no menu and no other window
      if (isTextTarget(document.activeElement ?? document.body)) return;
      if (next.kind === 'ready' && sameSelection(selection.peek(), wanted)) act(next);
    });
  }

  private revealWhenLoaded(slice: number): void {
    const {model} = this;
    const stop = model.slice.subscribe(state => {
      if (state.kind === 'loading') return;
      queueMicrotask(() => stop());
      const sel = selection.peek();
      if (state.kind !== 'ready' || sel?.kind !== 'slice' || sel.slice !== slice) return;
      if (state.slice.id !== slice) return;
      const {start_ns, dur_ns} = state.slice;
      const span = {t0: start_ns, t1: start_ns + dur_ns};
      model.setWindow(revealWindow(model.window, span, model.durationNs));
    });
  }

  async gap(step: 1 | -1, isSame = false): Promise<void> {
    const {model} = this;
    let gaps;
    try {
      gaps = await model.gaps.load();
    } catch {
      return this.say('the list of gaps could not be loaded');
    }
    const sel = selection.peek();
    // A selected area may be a gap as well.
    const shown = sel === undefined ? undefined : model.gap.peek();
    const current =
      sel?.kind === 'gap'
        ? {device: sel.device, t0: sel.t0 as number}
        : shown && {device: shown.device, t0: shown.start_ns as number};
    const now = gaps.find(g => g.device === current?.device && g.start_ns === current.t0);
    if (isSame && !now) return this.say('select a gap first');
    const next = stepGap(
      gaps,
      current,
      step,
      isSame && now ? g => g.signature === now.signature : undefined,
    );
    if (!next) return this.say('no gap of 10 microseconds or longer');
    this.goToGap(next.device, next.start_ns, next.start_ns + next.dur_ns);
  }

  /** Select a gap and show it with as much again to either side. */
  goToGap(device: number, t0: number, t1: number): void {
    const {model} = this;
    const span = {t0: t0 - (t1 - t0), t1: t1 + (t1 - t0)};
    model.show({
      selection: {kind: 'gap', device, t0: ns(t0), t1: ns(t1)},
      window: model.asWindow(span),
    });
    const track = model.tracks.tracks.find(t => t.kind === 'gaps' && t.device === device);
    if (track) model.revealTrack(track.index, 0);
  }

  /** Select what the launching thread was in for most of an interval, as deep as it goes. */
  async hostDuring(t0: number, t1: number): Promise<void> {
    const {model} = this;
    const threads = model.tracks.tracks.filter(t => t.kind === 'thread' && t.count > 0);
    const main =
      threads.find(t => t.role === 'main') ?? [...threads].sort((a, b) => b.count - a.count)[0];
    if (!main) return this.say('no host thread was recorded');
    try {
      const {slices} = await getSlices(model.trace.id, {
        track: main.index,
        t0: Math.floor(t0),
        t1: Math.ceil(t1),
        limit: 1000,
      });
      const inside = (s: (typeof slices)[number]): number =>
        Math.min(t1, s.start_ns + s.dur_ns) - Math.max(t0, s.start_ns);
      // Of slices that cover the interval equally, the innermost says most.
      const longest = Math.max(0, ...slices.map(inside));
      const best = slices
        .filter(s => longest > 0 && inside(s) >= 0.9 * longest)
        .sort((a, b) => a.dur_ns - b.dur_ns)[0];
      if (!best) return this.say('nothing was recorded on that thread in this interval');
      this.selectSlice(best.id);
    } catch (error) {
      this.say(errorText(error));
    }
  }

  /** Select a step in the row of steps. */
  async goToStep({start, dur}: Step): Promise<void> {
    const {model} = this;
    const row = model.tracks.tracks.find(t => t.kind === 'steps');
    if (!row) return this.say('this trace has no row of steps');
    try {
      const query = {track: row.index, t0: start, t1: start + 1, limit: 10};
      const {slices} = await getSlices(model.trace.id, query);
      const slice = slices.find(s => s.start_ns === start);
      if (!slice) return this.say('this step is not in the row of steps');
      this.goToSlice(slice.id, {t0: start, t1: start + dur});
    } catch (error) {
      this.say(errorText(error));
    }
  }

  private outlier(): void {
    const {model} = this;
    const {window} = model;
    const sel = selection.peek();
    const from = sel?.kind === 'area' ? sel.t0 : window.t0 - 1;
    const step = model.steps.outlierAfter(from);
    if (!step) return this.say('no unusually long step');
    const span = {t0: step.start, t1: step.start + step.dur};
    model.show({
      selection: {kind: 'area', t0: ns(span.t0), t1: ns(span.t1)},
      window: model.asWindow(fitWindow(span, model.durationNs)),
    });
    this.say(`${step.name}, ${formatDuration(step.dur)}`);
  }

  async hit(direction: 1 | -1): Promise<void> {
    const {model} = this;
    const hit = await model.search.step(direction, model.window.t0);
    if (!hit) return;
    this.goToSlice(hit.slice, {t0: hit.start_ns, t1: hit.start_ns + hit.dur_ns});
  }

  finding(index: number): void {
    const {model} = this;
    const finding = model.analysis?.findings[index];
    if (!finding) return this.say(`no finding ${index + 1}`);
    if (finding.evidence.length === 0) return this.say('this finding has no place in the timeline');
    const at = this.evidenceAt.get(index) ?? 0;
    const evidence = finding.evidence[at % finding.evidence.length];
    if (!evidence) return;
    this.evidenceAt.set(index, at + 1);
    this.goToEvidence(evidence);
    this.say(`${finding.title}. ${evidence.text}`);
  }

  /** What a finding points to is selected, and shown with half of its length around it. */
  viewOfEvidence({slice, t0_ns: t0, t1_ns: t1}: Evidence): Pick<ViewState, 'window' | 'selection'> {
    const end = ns(Math.max(t1, t0 + 1));
    const pad = Math.max(EVIDENCE_PAD_MIN_NS, (end - t0) / 2);
    return {
      selection: slice !== undefined ? {kind: 'slice', slice} : {kind: 'area', t0: ns(t0), t1: end},
      window: this.model.asWindow({t0: t0 - pad, t1: end + pad}),
    };
  }

  goToEvidence(evidence: Evidence): void {
    const {model} = this;
    const {slice, track} = evidence;
    model.show(this.viewOfEvidence(evidence));
    // A slice brings its row along; a time on a device is seen in that device's row of causes.
    const device = /^GPU (\d+)/.exec(track)?.[1];
    if (slice !== undefined || device === undefined) return;
    const row = model.tracks.tracks.find(t => t.kind === 'gaps' && t.device === Number(device));
    if (row) model.revealTrack(row.index, 0);
  }

  private mark(): void {
    const select = ({t0, t1}: Span): void => this.selectArea(t0, t1);
    this.withSelected(select, () => select(this.model.window));
  }

  /** The selection, or where the middle of the view is. */
  private bookmark(): void {
    const begin = (span: Span): void => this.model.bookmarks.begin(span);
    this.withSelected(begin, () => {
      const {t0, t1} = this.model.window;
      begin({t0: (t0 + t1) / 2, t1: (t0 + t1) / 2});
    });
  }

  /** Select its time and bring it into view. */
  goToBookmark({start_ns: t0, dur_ns: dur, note}: Bookmark): void {
    const {model} = this;
    const span = {t0, t1: t0 + Math.max(1, dur)};
    model.show({
      selection: {kind: 'area', t0: ns(span.t0), t1: ns(span.t1)},
      window: model.asWindow(
        dur > 0
          ? fitWindow(span, model.durationNs)
          : revealWindow(model.window, span, model.durationNs),
      ),
    });
    this.say(`bookmark ${note}`);
  }

  private say(text: string): void {
    this.model.spoken.value = text;
  }
}
