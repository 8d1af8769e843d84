// The drawing surface: canvases, the frame loop and its share of the DOM's events. Draws only when
// something changed: one requestAnimationFrame with a dirty flag, no idle loop.

import {effect, untracked} from '@preact/signals';
import {selection, timeWindow} from '../../model/view_state';
import {cssRgb} from '../../render/color';
import {choiceFromQuery, createRenderer} from '../../render/choose_renderer';
import type {Renderer, SceneRow} from '../../render/scene';
import {ALPHA_MIN, ALPHA_MIN_DARK, ALPHA_MIN_IDLE} from '../../render/strip_raster';
import {levelFor} from '../../render/tile_plan';
import {FrameStats} from './frame_stats';
import {valueAt} from '../data/counter_store';
import {hitTest} from './hit_test';
import {Minimap} from './minimap';
import {Overlay, type LaneMark, type OverlayView, type PlacedRow} from './overlay';
import {laneAt, laneTop, placesShown, rowAt, visibleRows, type Row} from '../data/rows';
import {describeUsage} from '../data/usage';
import {CausePatterns, readTheme, watchTheme, type StageTheme} from './stage_theme';
import {drawAxis} from './time_axis';
import {formatDuration} from '../../base/format';
import type {Hit} from '../data/hover';
import type {RowPlace, TimelineModel} from '../data/timeline_model';
import {panWindow, zoomWindow, type Span} from '../data/view_math';

/** Zoom and pan per second while a key is held. */
const ZOOM_PER_S = 6;
const PAN_PER_S = 1.1;
/** A click may miss by this much. */
const REACH_PX = 4;
const STATS_EVERY_MS = 500;
/** Read when the page is loaded: the address is rewritten as soon as something moves. */
const RENDERER_CHOICE = choiceFromQuery(location.search);

export interface StageElements {
  readonly root: HTMLElement;
  /** Scrolls vertically; holds labels and the sticky canvases. */
  readonly scroller: HTMLElement;
  readonly base: HTMLCanvasElement;
  readonly overlay: HTMLCanvasElement;
  readonly axis: HTMLCanvasElement;
  readonly minimap: HTMLCanvasElement;
}

/** What a point of the stage means. */
export interface StagePoint {
  readonly t: number;
  readonly row: Row | undefined;
  readonly lane: number | undefined;
}

export class Stage {
  readonly stats = new FrameStats();
  readonly minimap: Minimap;
  theme: StageTheme;
  widthPx = 0;
  heightPx = 0;
  /** Where the pointer is over the stage, for its line. */
  pointerX: number | undefined;
  /** An area that is being dragged out. */
  dragArea: Span | undefined;
  /** Zoom and pan keys that are down: -1, 0, 1. */
  held = {zoom: 0, pan: 0};

  private renderer: Renderer;
  private readonly context: CanvasRenderingContext2D;
  private overlayPainter: Overlay | undefined;
  private dpr = 1;
  /** As of the last event: asking in each frame would lay out the page in each frame. */
  private scrollTop = 0;
  private frameHandle = 0;
  private lastFrameMs = 0;
  private lastStatsMs = 0;
  private readonly disposers: (() => void)[] = [];

  constructor(
    readonly elements: StageElements,
    readonly model: TimelineModel,
  ) {
    const context = elements.overlay.getContext('2d');
    if (!context) throw new Error('this browser gives no 2D canvas');
    this.context = context;
    this.renderer = createRenderer(elements.base, RENDERER_CHOICE, isLost => {
      model.isDrawingLost.value = isLost;
      elements.root.dataset['renderer'] = this.renderer.name;
      this.invalidate();
    });
    elements.root.dataset['renderer'] = this.renderer.name;
    this.minimap = new Minimap(elements.minimap, model);
    this.theme = readTheme(elements.root);
    this.applyTheme();
    this.observe();
  }

  close(): void {
    for (const dispose of this.disposers) dispose();
    cancelAnimationFrame(this.frameHandle);
    this.renderer.dispose();
  }

  invalidate(): void {
    if (this.frameHandle === 0) {
      this.frameHandle = requestAnimationFrame(now => this.frame(now));
    }
  }

  /** Time and row at a place of the stage, CSS pixels from its top left. */
  pointAt(x: number, y: number): StagePoint {
    const {model} = this;
    const {t0, t1} = model.window;
    const t = t0 + (x / Math.max(1, this.widthPx)) * (t1 - t0);
    const tops = model.tops.value;
    const inside = y + (y < model.fixedPx.value ? 0 : this.elements.scroller.scrollTop);
    if (inside >= (tops[tops.length - 1] ?? 0)) return {t, row: undefined, lane: undefined};
    const index = rowAt(tops, inside);
    const row = model.rows.value[index];
    if (!row) return {t, row: undefined, lane: undefined};
    return {t, row, lane: laneAt(row, inside - (tops[index] as number))};
  }

  /** What lies under a point. */
  hitAt({t, row, lane}: StagePoint): Hit | undefined {
    if (row?.track === undefined || lane === undefined || row.kind === 'counter') return undefined;
    const {model} = this;
    const nsPerPx = (model.window.t1 - model.window.t0) / Math.max(1, this.widthPx);
    const level = levelFor(nsPerPx / this.dpr, model.levelMax);
    const reach = REACH_PX * nsPerPx;
    return hitTest(model.tiles, row.track, lane, t, reach, level, model.levelMax);
  }

  /** The value of the counter under a point: the last one at or before its time. */
  counterAt({t, row}: StagePoint): number | undefined {
    if (row?.kind !== 'counter' || row.track === undefined) return undefined;
    const {t0, t1} = this.model.window;
    const samples = this.model.counters.get(row.track, t0, t1);
    return samples && valueAt(samples, t);
  }

  /** What a device did around a point, in words. */
  usageAt({t, row}: StagePoint): string | undefined {
    if (row?.kind !== 'usage' || row.device === undefined) return undefined;
    const {t0, t1} = this.model.window;
    const strip = this.model.usage.get(row.device, t0, t1);
    return strip && describeUsage(strip, t);
  }

  private observe(): void {
    const {elements, model} = this;
    const resize = new ResizeObserver(() => this.measure());
    resize.observe(elements.root);
    resize.observe(elements.scroller);
    const onScroll = (): void => {
      this.scrollTop = elements.scroller.scrollTop;
      this.invalidate();
    };
    elements.scroller.addEventListener('scroll', onScroll, {passive: true});
    this.disposers.push(
      () => resize.disconnect(),
      () => elements.scroller.removeEventListener('scroll', onScroll),
      watchTheme(() => {
        this.theme = readTheme(elements.root);
        this.applyTheme();
      }),
      this.watchPixelRatio(),
      effect(() => {
        // Whatever of these changes, the picture does.
        void [
          model.redraws.value,
          timeWindow.value,
          selection.value,
          model.rows.value,
          model.slice.value,
        ];
        void [model.gap.value, model.chain.value, model.hover.value, model.search.state.value];
        this.invalidate();
      }),
      effect(() => {
        const place = model.rowInView.value;
        if (place) untracked(() => this.scrollToRow(place));
      }),
    );
    this.measure();
  }

  private watchPixelRatio(): () => void {
    let query: MediaQueryList | undefined;
    const onChange = (): void => {
      query?.removeEventListener('change', onChange);
      query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
      query.addEventListener('change', onChange);
      this.measure();
    };
    onChange();
    return () => query?.removeEventListener('change', onChange);
  }

  private measure(): void {
    const box = this.elements.overlay.getBoundingClientRect();
    const map = this.elements.minimap.getBoundingClientRect();
    this.scrollTop = this.elements.scroller.scrollTop;
    this.widthPx = Math.floor(box.width);
    this.heightPx = Math.floor(this.elements.scroller.clientHeight);
    this.model.stageHeight.value = this.heightPx;
    const dpr = Math.min(4, Math.max(0.5, devicePixelRatio || 1));
    if (dpr !== this.dpr) {
      this.dpr = dpr;
      this.applyTheme();
    }
    this.minimap.resize(Math.floor(map.width), Math.floor(map.height));
    this.invalidate();
  }

  private applyTheme(): void {
    const {theme, model, context} = this;
    model.setTheme(theme.name, theme.background, theme.highlight);
    const patterns = new CausePatterns(context, theme.name, this.dpr);
    this.overlayPainter = new Overlay(context, theme, patterns, model, this.dpr);
    this.invalidate();
  }

  /** The menu of what is selected, where it begins: what a right click opens at the pointer. */
  openMenu({t0}: Span): void {
    const {model, elements} = this;
    const {window, rowInView} = model;
    const box = elements.overlay.getBoundingClientRect();
    const row = model.rows.value.findIndex(({key}) => key === rowInView.value?.key);
    const part = Math.min(1, Math.max(0, (t0 - window.t0) / (window.t1 - window.t0)));
    const scrolled = row < model.fixedCount.value ? 0 : elements.scroller.scrollTop;
    const top = (model.tops.value[row + 1] ?? 0) - scrolled;
    model.menu.value = {
      x: box.left + part * box.width,
      y: box.top + Math.min(box.height, Math.max(0, top)),
    };
  }

  private scrollToRow({key, lane}: RowPlace): void {
    const {model, elements} = this;
    const index = model.rows.value.findIndex(row => row.key === key);
    const row = model.rows.value[index];
    if (!row || index < model.fixedCount.value) return;
    const shown = Math.max(row.laneFirst, Math.min(lane, row.lanes - 1));
    const top = (model.tops.value[index] as number) + laneTop(row, shown);
    const {scrollTop, clientHeight} = elements.scroller;
    const fixed = model.fixedPx.value;
    if (top >= scrollTop + fixed && top + row.laneHeight + 4 <= scrollTop + clientHeight) return;
    // The rows may have just grown: the browser must know of it before it can scroll there.
    requestAnimationFrame(() => {
      elements.scroller.scrollTop = Math.max(0, top - fixed - (clientHeight - fixed) / 3);
      this.invalidate();
    });
  }

  private frame(now: number): void {
    this.frameHandle = 0;
    const start = performance.now();
    this.moveByKeys(now);
    const isDone = this.draw();
    this.stats.add(performance.now() - start);
    this.publish(now);
    this.publishSettled(isDone);
    this.lastFrameMs = now;
    if (!isDone || this.held.zoom !== 0 || this.held.pan !== 0) this.invalidate();
  }

  private moveByKeys(now: number): void {
    const {zoom, pan} = this.held;
    if (zoom === 0 && pan === 0) return;
    const {model} = this;
    // After a pause the first frame moves by one frame's worth.
    const seconds = Math.min(0.05, Math.max(0.004, (now - this.lastFrameMs) / 1000));
    let window: Span = model.window;
    if (zoom !== 0) {
      const anchor = this.pointerX === undefined ? 0.5 : this.pointerX / Math.max(1, this.widthPx);
      window = zoomWindow(window, ZOOM_PER_S ** (-zoom * seconds), anchor, model.durationNs);
    }
    if (pan !== 0) window = panWindow(window, pan * PAN_PER_S * seconds, model.durationNs);
    model.setWindow(window);
  }

  private draw(): boolean {
    const {model, widthPx, heightPx} = this;
    if (widthPx < 10 || heightPx < 10) return true;
    const {t0, t1} = model.window;
    const rows = this.placedRows();
    this.want(rows, t0, t1);
    const isDone = this.renderer.draw({
      t0,
      t1,
      widthPx,
      heightPx,
      devicePixelRatio: this.dpr,
      durationNs: model.durationNs,
      levelMax: model.levelMax,
      fixedPx: model.fixedPx.value,
      rows: rows.flatMap(row => sceneRow(row, this.theme.name === 'dark')),
      source: model.tiles,
      colors: model.palette,
      background: cssRgb(this.theme.background),
    });
    this.drawOverlay({t0, t1, widthPx, heightPx, rows, fixedPx: model.fixedPx.value});
    const {axis} = this.elements;
    drawAxis(
      axis,
      this.theme,
      this.dpr,
      widthPx,
      24,
      {t0, t1},
      this.pointerX,
      model.bookmarks.all.peek(),
    );
    this.minimap.draw(this.theme, this.dpr, {t0, t1});
    model.names.flush();
    return isDone;
  }

  private placedRows(): PlacedRow[] {
    const {model, heightPx} = this;
    const {scrollTop} = this;
    const tops = model.tops.value;
    const fixed = model.fixedCount.value;
    const top = scrollTop + model.fixedPx.value;
    const {first, last} = visibleRows(tops, top, scrollTop + heightPx);
    return placesShown(fixed, first, last).map(i => {
      const isFixed = i < fixed;
      const row = model.rows.value[i] as Row;
      return {row, top: (tops[i] as number) - (isFixed ? 0 : scrollTop), isFixed};
    });
  }

  private want(rows: readonly PlacedRow[], t0: number, t1: number): void {
    const {model} = this;
    const tracks = rows.flatMap(({row}) =>
      row.track === undefined || row.kind === 'counter' ? [] : [row.track],
    );
    const nsPerPx = (t1 - t0) / (this.widthPx * this.dpr);
    const overview = this.minimap.view();
    const main = {t0, t1, nsPerPx, tracks, margin: 1};
    // The rows first: they are what is looked at. The strip above is a few requests more.
    model.tiles.want(overview ? [main, overview] : [main]);
    // asked for now, not when the picture comes to their rows
    for (const {row} of rows) {
      if (row.kind === 'usage' && row.device !== undefined) model.usage.get(row.device, t0, t1);
      if (row.kind === 'counter' && row.track !== undefined) model.counters.get(row.track, t0, t1);
    }
  }

  private drawOverlay(view: OverlayView): void {
    const {context, dpr, overlayPainter: painter} = this;
    const canvas = this.elements.overlay;
    const width = Math.round(view.widthPx * dpr);
    const height = Math.round(view.heightPx * dpr);
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.clearRect(0, 0, view.widthPx, view.heightPx);
    if (!painter) return;
    painter.drawRows(view);
    for (const mark of this.model.bookmarks.all.peek()) painter.bookmark(mark, view);
    this.drawSelection(painter, view);
    const hover = this.model.hover.value;
    if (hover?.hit && hover.row.track !== undefined) {
      const {lane, start, dur} = hover.hit;
      painter.ring({track: hover.row.track, lane, start_ns: start, dur_ns: dur}, view, false);
    }
    if (this.dragArea) {
      const {t0, t1} = this.dragArea;
      painter.band(t0, t1, view, formatDuration(Math.round(t1 - t0)));
    }
    if (this.pointerX !== undefined) painter.pointerLine(this.pointerX, view);
  }

  private drawSelection(painter: Overlay, view: OverlayView): void {
    const sel = selection.value;
    if (sel === undefined) return;
    if (sel.kind !== 'slice') {
      painter.band(sel.t0, sel.t1, view, formatDuration(sel.t1 - sel.t0));
      this.drawChain(painter, view);
      return;
    }
    const state = this.model.slice.value;
    if (state.kind !== 'ready') return;
    const {slice, link, around} = state;
    const others: LaneMark[] = [...(around?.launched ?? [])];
    if (link && (slice.kind !== 'api' || others.length === 0)) others.push(link);
    const isStrong = others.length === 1;
    const ends = others.map(other => [other, painter.ring(other, view, isStrong)] as const);
    const own = painter.ring(slice, view, true);
    for (const [{start_ns: start}, end] of ends) {
      if (!own || !end) continue;
      const isLater = slice.kind === 'api' || slice.start_ns < start;
      painter.linkLine(isLater ? own : end, isLater ? end : own);
    }
  }

  /** One line from a gap to the wait and on to the batch that was late. */
  private drawChain(painter: Overlay, view: OverlayView): void {
    const gap = this.model.gap.value;
    const chain = this.model.chain.value;
    const row = this.model.tracks.tracks.find(t => t.kind === 'gaps' && t.device === gap?.device);
    if (!gap || !row || chain.length === 0) return;
    let from = painter.ring({...gap, track: row.index, lane: 0}, view, true);
    for (const s of chain) {
      const to = painter.ring(s, view, true);
      if (from && to) painter.linkLine(from, to);
      from = to;
    }
  }

  /** Whether the picture is final: everything is here and drawn. For tests and screenshots. */
  private publishSettled(isDone: boolean): void {
    const {isComplete, tiles} = this.model;
    const isSettled = isDone && isComplete && tiles.failure === undefined;
    const settled = isSettled ? 'yes' : 'no';
    const {dataset} = this.elements.root;
    if (dataset['settled'] !== settled) dataset['settled'] = settled;
  }

  /** Figures of the last seconds on the root element, for tests and measurements. */
  private publish(now: number): void {
    if (now - this.lastStatsMs < STATS_EVERY_MS) return;
    this.lastStatsMs = now;
    const {dataset} = this.elements.root;
    dataset['frames'] = String(this.stats.frames);
    dataset['frameWorkP95Ms'] = this.stats.percentile(95).toFixed(2);
  }
}

function sceneRow({row, top, isFixed}: PlacedRow, isDark: boolean): SceneRow[] {
  if (row.track === undefined || row.kind === 'counter') return [];
  return [
    {
      key: row.key,
      isFixed,
      track: row.track,
      top: top + laneTop(row, row.laneFirst),
      laneHeight: row.laneHeight,
      lanes: row.lanes - row.laneFirst,
      laneFirst: row.laneFirst,
      isMerged: row.isCollapsed,
      alphaMin: row.kind === 'gaps' ? ALPHA_MIN_IDLE : isDark ? ALPHA_MIN_DARK : ALPHA_MIN,
    },
  ];
}
