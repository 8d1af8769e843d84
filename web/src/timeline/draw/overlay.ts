// The second canvas: text, patterns of causes, counters, selection, the line from launch to
// kernel, the pointer. Everything is in CSS pixels; the context is scaled once.

import {causeStyle, causeWord, isCause} from '../../base/causes';
import type {Bookmark} from '../../api/bookmarks';
import type {CounterSamples} from '../../api/types';
import {SliceKind} from '../../render/palette';
import {levelFor, tileNs} from '../../render/tile_plan';
import {forEachLane, lowerBound, walkTiles, type TileVisitor} from '../../render/tile_walk';
import type {Tile} from '../../render/tile_decode';
import {laneTop, type Row} from '../data/rows';
import type {CausePatterns, StageTheme} from './stage_theme';
import {TextFitter} from './text_fit';
import {firstAt} from './counter_columns';
import {CounterPictures} from './counter_picture';
import {UsagePictures} from './usage_picture';
import {formatBytes, formatDuration} from '../../base/format';
import type {TimelineModel} from '../data/timeline_model';

/** Labels a frame at most: 2 000 take 5 ms. */
const LABELS_MAX = 1500;
/** Below this width no text of three characters fits. */
const LABEL_MIN_PX = 22;
const PATTERN_MIN_PX = 5;
const TEXT_PAD_PX = 4;
const STEP_STACK_PX = 6;
const STEP_STACK_MIN_PX = 12;

/** A row and where it is on the stage. */
export interface PlacedRow {
  readonly row: Row;
  readonly top: number;
  /** It stays while the others scroll. */
  readonly isFixed: boolean;
}

export interface OverlayView {
  readonly t0: number;
  readonly t1: number;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Height of the fixed rows, at the top. */
  readonly fixedPx: number;
  readonly rows: readonly PlacedRow[];
}

/** An interval in one lane of a row that may be off screen. */
export interface LaneMark {
  readonly track: number;
  readonly lane: number;
  readonly start_ns: number;
  readonly dur_ns: number;
}

export class Overlay {
  private readonly fitter: TextFitter;
  private readonly pictures = new UsagePictures();
  private readonly counters: CounterPictures;
  private readonly counterLabels = new Map<string, {text: string; width: number}>();
  private labels = 0;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly theme: StageTheme,
    private readonly patterns: CausePatterns,
    private readonly model: TimelineModel,
    /** Device pixels for each of the context's. */
    private readonly dpr: number,
  ) {
    this.counters = new CounterPictures(theme);
    this.fitter = new TextFitter(text => {
      context.font = theme.font;
      return context.measureText(text).width;
    });
  }

  /** Text, patterns, counters and lines of the rows. */
  drawRows(view: OverlayView): void {
    const {context, theme} = this;
    this.labels = 0;
    context.lineWidth = 1;
    this.stepLines(view);
    context.save();
    let isClipped = false;
    for (const {row, top, isFixed} of view.rows) {
      if (!isFixed && !isClipped) {
        isClipped = true;
        context.beginPath();
        context.rect(0, view.fixedPx, view.widthPx, view.heightPx);
        context.clip();
      }
      context.fillStyle = theme.faintLine;
      context.fillRect(0, Math.round(top + row.height) - 1, view.widthPx, 1);
      if (row.kind === 'usage') this.usage(row, top, view);
      if (row.track === undefined) continue;
      if (row.kind === 'counter') this.counter(row, top, view);
      else if (!row.isCollapsed) this.texts(row, top, view);
      if (row.kind === 'steps') this.stepCauses(row, top, view);
    }
    context.restore();
    context.fillStyle = theme.line;
    context.fillRect(0, view.fixedPx - 1, view.widthPx, 1);
  }

  /** Faint lines where steps begin, through all rows. */
  private stepLines(view: OverlayView): void {
    const {context, model} = this;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    const steps = model.steps.all;
    let lastX = -Infinity;
    context.fillStyle = this.theme.line;
    for (const step of steps) {
      if (step.start < view.t0) continue;
      if (step.start > view.t1) break;
      const x = Math.round((step.start - view.t0) * pxPerNs);
      // Denser than this they would be a gray wall.
      if (x - lastX < 24) continue;
      lastX = x;
      context.fillRect(x, 0, 1, view.heightPx);
    }
  }

  /** What the GPU waited for in each step, as a stack along the foot of its bar. */
  private stepCauses(row: Row, top: number, view: OverlayView): void {
    const {context, theme, model} = this;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    const y = top + laneTop(row, 0) + row.laneHeight - 1 - STEP_STACK_PX;
    model.steps.all.forEach((step, i) => {
      const width = step.dur * pxPerNs;
      if (width < STEP_STACK_MIN_PX || step.start + step.dur < view.t0 || step.start > view.t1)
        return;
      let x = (step.start - view.t0) * pxPerNs;
      for (const [cause, waited] of model.stepWaits[i] ?? []) {
        const part = waited * pxPerNs;
        const style = causeStyle(cause);
        context.fillStyle = theme.name === 'dark' ? style.dark : style.light;
        context.fillRect(x, y, Math.max(0, part - 0.5), STEP_STACK_PX);
        x += part;
      }
    });
  }

  private texts(row: Row, top: number, view: OverlayView): void {
    const {context, theme, model} = this;
    const track = row.track as number;
    const nsPerPx = (view.t1 - view.t0) / view.widthPx;
    const level = levelFor(nsPerPx, model.levelMax);
    const isGaps = row.kind === 'gaps';
    const minPx = isGaps ? PATTERN_MIN_PX : LABEL_MIN_PX;
    // Natives of the view's own level are below 8 px: no text fits, but a gap's pattern does.
    const from = isGaps ? level : Math.min(model.levelMax, level + 1);
    context.font = theme.font;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    const visitor: TileVisitor = {
      cells: () => undefined,
      natives: (tile, t0, t1) => {
        forEachLane(tile.nativeLane, tile.nativeCount, (lane, first, last) => {
          if (lane >= row.lanes || lane < row.laneFirst) return;
          const y = top + laneTop(row, lane);
          if (y > view.heightPx || y + row.laneHeight < 0) return;
          const begin = lowerBound(
            tile.nativeStart,
            t0 - (8 * tileNs(tile.level)) / 512,
            first,
            last,
          );
          for (let i = begin; i < last && this.labels < LABELS_MAX; i++) {
            const start = tile.nativeStart[i] as number;
            if (start >= t1) break;
            const dur = tile.nativeDur[i] as number;
            if (dur < minPx * nsPerPx) continue;
            // One on the border is in two tiles: the one where its visible part begins draws it.
            const seen = Math.max(start, view.t0);
            if (seen < t0 || seen >= t1 || start + dur <= view.t0) continue;
            const x0 = (seen - view.t0) / nsPerPx;
            const x1 = Math.min(view.widthPx, (start + dur - view.t0) / nsPerPx);
            if (isGaps) this.gapText(tile, i, x0, x1, y, row.laneHeight);
            else this.sliceText(tile, i, x0, x1, y, row.laneHeight);
          }
        });
      },
    };
    walkTiles(model.tiles, track, from, model.levelMax, view.t0, view.t1, visitor);
  }

  private sliceText(tile: Tile, i: number, x0: number, x1: number, y: number, h: number): void {
    const room = x1 - x0 - 2 * TEXT_PAD_PX + 1;
    if (room < LABEL_MIN_PX - 2 * TEXT_PAD_PX) return;
    const label = this.model.names.label(tile.nativeName[i] as number);
    if (label === undefined) return;
    const kind = tile.nativeKind[i] as number;
    const {context, theme} = this;
    let text = this.fitter.fit(label, room);
    // A step is known by its number, an operator by its last part: better that than half a word.
    if (text !== label) text = this.fitter.fit(essence(label, kind), room);
    if (text === '') return;
    this.labels++;
    const middle = y + (h - 1) / 2 + 0.5;
    const withTime =
      kind === SliceKind.step || kind === SliceKind.kernel || kind === SliceKind.copy;
    context.fillStyle = theme.sliceText;
    if (withTime && text === label) {
      const time = formatDuration(tile.nativeDur[i] as number);
      const used = this.fitter.width(text) + 10;
      if (used + this.fitter.width(time) <= room) {
        context.fillText(text, x0 + TEXT_PAD_PX, middle);
        context.fillText(time, x0 + TEXT_PAD_PX + used, middle);
        return;
      }
    }
    context.fillText(text, x0 + TEXT_PAD_PX, middle);
  }

  private gapText(tile: Tile, i: number, x0: number, x1: number, y: number, h: number): void {
    const {context, theme, model} = this;
    const name = model.names.text(tile.nativeName[i] as number);
    if (name === undefined) return;
    const style = causeStyle(name);
    const {letter} = causeWord(name);
    const width = x1 - x0 - 1;
    const pattern = this.patterns.get(isCause(name) ? name : 'unattributed');
    if (pattern) {
      context.fillStyle = pattern;
      context.fillRect(x0, y, width, h - 1);
    }
    if (width < 13) return;
    this.labels++;
    const middle = y + (h - 1) / 2 + 0.5;
    const time = formatDuration(tile.nativeDur[i] as number);
    const long = `${letter}  ${time}`;
    const room = width - 8;
    const text = this.fitter.width(long) * 1.06 <= room ? long : letter;
    const textWidth = this.fitter.width(text) * 1.06;
    const left = width > 260 ? x0 + 6 : x0 + (width - textWidth) / 2;
    context.font = theme.boldFont; // after measuring, which sets the plain one
    // A plate of the plain color keeps the text readable on the pattern.
    context.fillStyle = theme.name === 'dark' ? style.dark : style.light;
    context.fillRect(left - 3, y + 2, textWidth + 6, h - 5);
    context.fillStyle = theme.name === 'dark' ? style.onDark : style.onLight;
    context.fillText(text, left, middle);
    context.font = theme.font;
  }

  /** How much of each moment a device works, by kind: a stacked area that fills the row. */
  private usage(row: Row, top: number, view: OverlayView): void {
    const {context, theme, model} = this;
    const strip = model.usage.get(row.device as number, view.t0, view.t1);
    if (!strip) return;
    const bottom = top + row.height - 2;
    const height = row.height - 5;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    const partNs = (strip.t1_ns - strip.t0_ns) / strip.points;
    const first = Math.max(0, Math.floor((view.t0 - strip.t0_ns) / partNs));
    const last = Math.min(strip.points, Math.ceil((view.t1 - strip.t0_ns) / partNs));
    context.fillStyle = theme.faintLine;
    context.fillRect(0, Math.round(bottom - height), view.widthPx, 1);
    const picture = this.pictures.get(strip, theme.name, Math.round(height * this.dpr));
    if (!picture || last <= first) return;
    context.imageSmoothingEnabled = false;
    context.drawImage(
      picture,
      first,
      0,
      last - first,
      picture.height,
      (strip.t0_ns + first * partNs - view.t0) * pxPerNs,
      bottom - height,
      (last - first) * partNs * pxPerNs,
      height,
    );
  }

  /** A line over an area, behind it all values of a column as a band, the largest in sight at the left. */
  private counter(row: Row, top: number, view: OverlayView): void {
    const {context, theme, model} = this;
    const samples = model.counters.get(row.track as number, view.t0, view.t1);
    if (!samples || samples.ts_ns.length === 0) return;
    const [low, high] = extent(samples, view.t0, view.t1);
    const height = row.height - 8;
    const shown = {samples, t0: view.t0, t1: view.t1, low: Math.min(0, low), high};
    const columns = Math.round(view.widthPx * this.dpr);
    const rows = Math.max(1, Math.round(height * this.dpr));
    const picture = this.counters.get(row.track as number, shown, columns, rows);
    if (picture) context.drawImage(picture, 0, top + 4, view.widthPx, height);
    context.font = theme.smallFont;
    const {text: label, width} = this.counterLabel(row.title, high);
    context.fillStyle = `rgba(${theme.background.join(', ')}, 0.75)`;
    context.fillRect(1, top + 3, width + 6, 13);
    context.fillStyle = theme.faintText;
    context.textBaseline = 'alphabetic';
    context.fillText(label, 4, top + 13);
  }

  /** A value in the context's font, measured once. */
  private counterLabel(title: string, value: number): {text: string; width: number} {
    const text = counterText(title, value);
    let label = this.counterLabels.get(text);
    if (label === undefined) {
      if (this.counterLabels.size > 1000) this.counterLabels.clear();
      label = {text, width: this.context.measureText(text).width};
      this.counterLabels.set(text, label);
    }
    return label;
  }

  /** A ring around a slice; an arrow at the edge when it is off screen sideways. */
  ring(mark: LaneMark, view: OverlayView, isStrong: boolean): {x: number; y: number} | undefined {
    const placed = view.rows.find(({row}) => row.track === mark.track);
    if (!placed) return undefined;
    const {context, theme} = this;
    const {row, top, isFixed} = placed;
    const isShown = mark.lane >= row.laneFirst && mark.lane < row.lanes;
    if (!isShown && !row.isCollapsed) return undefined;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    const lane = row.isCollapsed ? 0 : mark.lane;
    const y = top + laneTop(row, lane);
    const h = row.laneHeight - 1;
    if (!isFixed && y + h / 2 < view.fixedPx) return undefined;
    const x0 = (mark.start_ns - view.t0) * pxPerNs;
    const x1 = (mark.start_ns + mark.dur_ns - view.t0) * pxPerNs;
    context.strokeStyle = isStrong ? theme.accent : theme.text;
    context.fillStyle = context.strokeStyle;
    context.lineWidth = isStrong ? 2 : 1;
    if (x1 < 0 || x0 > view.widthPx) {
      if (isStrong) this.edgeArrow(x1 < 0, y + h / 2, view.widthPx);
      return {x: x1 < 0 ? 0 : view.widthPx, y: y + h / 2};
    }
    const left = Math.max(-4, Math.round(x0) - 0.5);
    const right = Math.min(view.widthPx + 4, Math.max(Math.round(x1) + 0.5, left + 3));
    context.strokeRect(left, Math.round(y) - 0.5, right - left, h + 1);
    return {x: Math.min(view.widthPx, Math.max(0, (x0 + x1) / 2)), y: y + h / 2};
  }

  private edgeArrow(isLeft: boolean, y: number, widthPx: number): void {
    const {context} = this;
    const x = isLeft ? 3 : widthPx - 3;
    const d = isLeft ? 8 : -8;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + d, y - 6);
    context.lineTo(x + d, y + 6);
    context.closePath();
    context.fill();
  }

  /** From a launch to what it launched. */
  linkLine(from: {x: number; y: number}, to: {x: number; y: number}): void {
    const {context, theme} = this;
    const bend = Math.max(24, Math.abs(to.y - from.y) * 0.4);
    const down = to.y >= from.y ? bend : -bend;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.setLineDash([5, 3]);
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.bezierCurveTo(from.x, from.y + down, to.x, to.y - down, to.x, to.y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = theme.accent;
    context.beginPath();
    context.arc(to.x, to.y, 3.5, 0, 2 * Math.PI);
    context.fill();
  }

  /** An area or a gap, from top to bottom, with its length. */
  band(t0: number, t1: number, view: OverlayView, text: string): void {
    const {context, theme} = this;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    const x0 = (t0 - view.t0) * pxPerNs;
    const x1 = (t1 - view.t0) * pxPerNs;
    if (x1 < 0 || x0 > view.widthPx) return;
    const left = Math.max(-2, x0);
    const right = Math.min(view.widthPx + 2, x1);
    context.fillStyle = theme.accentFill;
    // not over why the GPU is idle: colors have a meaning there
    let from = 0;
    const shade = (to: number): void =>
      context.fillRect(left, from, Math.max(1, right - left), Math.max(0, to - from));
    for (const {row, top} of view.rows) {
      if (row.kind !== 'gaps') continue;
      shade(top);
      from = top + row.height;
    }
    shade(view.heightPx);
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(left), 0, 1, view.heightPx);
    context.fillRect(Math.round(right) - 1, 0, 1, view.heightPx);
    if (text === '') return;
    context.font = theme.boldFont;
    const width = context.measureText(text).width + 12;
    const middle = Math.min(view.widthPx - width - 2, Math.max(2, (left + right - width) / 2));
    const y = view.heightPx - 24;
    context.fillRect(middle, y, width, 18);
    context.fillStyle = theme.name === 'dark' ? '#101216' : '#ffffff';
    context.textBaseline = 'middle';
    context.fillText(text, middle + 6, y + 9.5);
  }

  /** Where a bookmark begins, and where it ends. */
  bookmark({start_ns: start, dur_ns: dur}: Bookmark, view: OverlayView): void {
    const {context, theme} = this;
    const pxPerNs = view.widthPx / (view.t1 - view.t0);
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.6;
    for (const t of dur > 0 ? [start, start + dur] : [start])
      context.fillRect(Math.round((t - view.t0) * pxPerNs), 0, 1, view.heightPx);
    context.globalAlpha = 1;
  }

  pointerLine(x: number, view: OverlayView): void {
    this.context.fillStyle = this.theme.line;
    this.context.fillRect(Math.round(x), 0, 1, view.heightPx);
  }
}

/** What is left of a name when there is little room. */
function essence(label: string, kind: number): string {
  if (kind === SliceKind.step || /^step \d+$/.test(label)) return /\d+$/.exec(label)?.[0] ?? '';
  const scope = label.lastIndexOf('::');
  return scope < 0 ? label : label.slice(scope + 2);
}

/** Smallest and largest value in sight. */
function extent(samples: CounterSamples, t0: number, t1: number): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  const {ts_ns: at, min, max, last} = samples;
  const first = firstAt(at, t0);
  const before = last[first - 1];
  for (let i = first; i < at.length && (at[i] as number) <= t1; i++) {
    low = Math.min(low, min[i] ?? 0);
    high = Math.max(high, max[i] ?? 0);
  }
  if (before !== undefined) {
    low = Math.min(low, before);
    high = Math.max(high, before);
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A value of the row with that title: bytes where it counts megabytes. */
export const counterText = (title: string, value: number): string =>
  /\(MB\)/.test(title) ? formatBytes(value * 1e6) : countText(value);

/** A counter's value, short: 1 234, 12.3 k, 4.56 G. */
export function countText(value: number): string {
  const size = Math.abs(value);
  for (const [unit, text] of [
    [1e12, ' T'],
    [1e9, ' G'],
    [1e6, ' M'],
    [1e3, ' k'],
  ] as const) {
    if (size >= unit) return `${Number((value / unit).toPrecision(3))}${text}`;
  }
  return String(Number(value.toPrecision(3)));
}
