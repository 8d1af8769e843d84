// The whole trace in one strip: how busy the GPUs are (or the main thread, when there is none), why
// they are not, steps and search hits, and the window as a brush.

import {causeStyle} from '../../base/causes';
import {holds, stampColors, type ColorStamp} from '../../render/color_stamp';
import {parseCssColor} from '../../render/color';
import {StripRaster} from '../../render/strip_raster';
import {levelFor} from '../../render/tile_plan';
import type {StageTheme} from './stage_theme';
import type {View} from '../data/tile_store';
import type {TimelineModel} from '../data/timeline_model';
import type {Span} from '../data/view_math';

const STEP_TICK_PX = 5;
const CAUSE_PX = 5;
/** Of 255: the shape lies behind the brush and the marks. */
const BUSY_ALPHA = 93;
/** Handles are caught from this far. */
const GRIP_PX = 6;

export type MinimapGrip = 'left' | 'right' | 'inside' | 'outside';

export class Minimap {
  private readonly raster = new StripRaster();
  private readonly picture = document.createElement('canvas');
  private pictureKey = '';
  /** Every tile of the picture was here: what arrives later does not change it. */
  private isWhole = false;
  private colors: ColorStamp | undefined;
  private widthPx = 0;
  private heightPx = 0;
  private readonly busyTracks: readonly number[][];
  private readonly gapTracks: readonly number[];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
  ) {
    const {tracks} = model.tracks;
    const devices = new Map<number, number[]>();
    for (const track of tracks) {
      if (track.kind !== 'stream' || track.device === undefined) continue;
      const own = devices.get(track.device) ?? [];
      own.push(track.index);
      devices.set(track.device, own);
    }
    if (devices.size === 0) {
      const threads = tracks.filter(t => t.kind === 'thread');
      const main = threads.find(t => t.role === 'main') ?? threads[0];
      if (main) devices.set(0, [main.index]);
    }
    this.busyTracks = [...devices.values()].slice(0, 8).map(own => own.slice(0, 8));
    this.gapTracks = tracks
      .filter(t => t.kind === 'gaps')
      .map(t => t.index)
      .slice(0, 8);
  }

  resize(widthPx: number, heightPx: number): void {
    this.widthPx = widthPx;
    this.heightPx = heightPx;
  }

  /** The tiles it needs. */
  view(): View | undefined {
    if (this.widthPx <= 0) return undefined;
    return {
      t0: 0,
      t1: this.model.durationNs,
      nsPerPx: this.model.durationNs / this.widthPx,
      tracks: [...this.busyTracks.flat(), ...this.gapTracks],
      margin: 0,
    };
  }

  draw(theme: StageTheme, dpr: number, window: Span): void {
    const width = Math.max(1, Math.round(this.widthPx * dpr));
    const height = Math.max(1, Math.round(this.heightPx * dpr));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const context = this.canvas.getContext('2d');
    if (!context || width <= 1) return;
    this.refreshPicture(theme, dpr, width, height);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    this.hits(context, theme);
    this.brush(context, theme, window);
  }

  /** What the pointer is over. */
  grip(x: number, window: Span): MinimapGrip {
    const [left, right] = this.brushPx(window);
    // A brush thinner than both grips is moved, not resized.
    if (right - left > 2 * GRIP_PX) {
      if (Math.abs(x - left) <= GRIP_PX) return 'left';
      if (Math.abs(x - right) <= GRIP_PX) return 'right';
    }
    return x >= left - GRIP_PX && x <= right + GRIP_PX ? 'inside' : 'outside';
  }

  timeAt(x: number): number {
    return (x / Math.max(1, this.widthPx)) * this.model.durationNs;
  }

  private brushPx(window: Span): [number, number] {
    const scale = this.widthPx / this.model.durationNs;
    return [window.t0 * scale, window.t1 * scale];
  }

  private refreshPicture(theme: StageTheme, dpr: number, width: number, height: number): void {
    const {model} = this;
    const tracks = [...this.busyTracks.flat(), ...this.gapTracks];
    const {outliers} = model.steps;
    const look = `${width}x${height}/${theme.name}/${outliers.length}/`;
    const key = look + tracks.map(t => model.tiles.version(t)).join();
    const isSame = this.isWhole ? this.pictureKey.startsWith(look) : key === this.pictureKey;
    if (isSame && holds(this.colors, model.palette)) return;
    const unknownBefore = model.palette.unknown;
    this.pictureKey = key;
    this.isWhole = true;
    this.picture.width = width;
    this.picture.height = height;
    const context = this.picture.getContext('2d');
    if (!context) return;
    const causes = this.gapTracks.length > 0 ? Math.round(CAUSE_PX * dpr) : 0;
    const top = Math.round((STEP_TICK_PX + 2) * dpr);
    // Pixels rather than a rectangle for each column: drawn again for whatever arrives.
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    this.busy(pixels, theme, width, top, height - causes - top);
    this.causes(pixels, width, height - causes, causes);
    context.putImageData(image, 0, 0);
    if (theme.name === 'forced' && causes > 0) {
      context.fillStyle = theme.line;
      context.fillRect(0, height - causes, width, 1);
    }
    this.stepTicks(context, theme, dpr, width);
    this.colors = stampColors(model.palette, unknownBefore);
  }

  private columns(track: number, width: number, pixels: Uint32Array): void {
    const {model} = this;
    const nsPerPx = model.durationNs / width;
    const isWhole = this.raster.rasterize(
      {
        source: model.tiles,
        colors: model.palette,
        track,
        level: levelFor(nsPerPx, model.levelMax),
        levelMax: model.levelMax,
        startPx: 0,
        columns: width,
        nsPerPx,
        lanes: model.track(track)?.lanes ?? 1,
        merged: true,
        alphaMin: 0,
      },
      pixels,
    );
    this.isWhole &&= isWhole;
  }

  /** Mean over devices of the share of each column in which any of its streams is busy. */
  private busy(
    ret: Uint32Array,
    theme: StageTheme,
    width: number,
    top: number,
    height: number,
  ): void {
    const total = new Float32Array(width);
    const device = new Float32Array(width);
    const column = new Uint32Array(width);
    for (const streams of this.busyTracks) {
      device.fill(0);
      for (const track of streams) {
        this.columns(track, width, column);
        for (let x = 0; x < width; x++) {
          const share = ((column[x] as number) >>> 24) / 255;
          device[x] = Math.min(1, (device[x] as number) + share);
        }
      }
      for (let x = 0; x < width; x++) {
        total[x] = (total[x] as number) + (device[x] as number) / this.busyTracks.length;
      }
    }
    const [r, g, b] = parseCssColor(theme.text) ?? [128, 128, 128];
    const color = ((BUSY_ALPHA << 24) | (b << 16) | (g << 8) | r) >>> 0;
    for (let x = 0; x < width; x++) {
      const h = Math.round((total[x] as number) * height);
      for (let y = top + height - h; y < top + height; y++) ret[y * width + x] = color;
    }
  }

  /** What each device waited for, one above the other. */
  private causes(ret: Uint32Array, width: number, top: number, height: number): void {
    const column = new Uint32Array(width);
    const each = Math.max(1, Math.floor(height / this.gapTracks.length));
    this.gapTracks.forEach((track, i) => {
      const from = top + i * each;
      if (from + each > top + height) return;
      this.columns(track, width, column);
      for (let y = from; y < from + each; y++) ret.set(column, y * width);
    });
  }

  /** A tick where a step begins; an unusually long one as a bar over its whole length. */
  private stepTicks(
    context: CanvasRenderingContext2D,
    theme: StageTheme,
    dpr: number,
    width: number,
  ): void {
    const {steps, durationNs} = this.model;
    const scale = width / durationNs;
    const h = Math.round(STEP_TICK_PX * dpr);
    context.fillStyle = theme.faintText;
    let last = -Infinity;
    for (const step of steps.all) {
      const x = Math.round(step.start * scale);
      if (x - last < 3 * dpr) continue;
      last = x;
      context.fillRect(x, 0, Math.max(1, Math.round(dpr)), h);
    }
    const style = causeStyle('data_wait');
    context.fillStyle = theme.name === 'dark' ? style.dark : style.light;
    for (const step of steps.outliers) {
      const x = Math.round(step.start * scale);
      context.fillRect(x, 0, Math.max(2 * dpr, Math.round(step.dur * scale) - dpr), h - dpr);
    }
  }

  private hits(context: CanvasRenderingContext2D, theme: StageTheme): void {
    const {hits, bins} = this.model.search;
    if (hits.length === 0) return;
    const scale = this.widthPx / this.model.durationNs;
    context.fillStyle = theme.accent;
    // those that are not loaded yet are marked, too, as far as the parts they begin in are fine
    bins.forEach((count, bin) => {
      if (count === 0) return;
      const x0 = Math.floor((bin / bins.length) * this.widthPx);
      const x1 = Math.max(x0 + 1, Math.floor(((bin + 1) / bins.length) * this.widthPx));
      context.fillRect(x0, this.heightPx - CAUSE_PX - 5, x1 - x0, 4);
    });
    if (bins.length > 0) return;
    let last = -1;
    for (const hit of hits) {
      const x = Math.round(hit.start_ns * scale);
      if (x === last) continue;
      last = x;
      context.fillRect(x, this.heightPx - CAUSE_PX - 5, 1, 4);
    }
  }

  private brush(context: CanvasRenderingContext2D, theme: StageTheme, window: Span): void {
    const [left, right] = this.brushPx(window);
    const isWhole = window.t0 <= 0 && window.t1 >= this.model.durationNs;
    const {widthPx, heightPx} = this;
    if (!isWhole) {
      context.fillStyle = `rgba(${theme.background.join(', ')}, 0.62)`;
      context.fillRect(0, 0, Math.max(0, left), heightPx);
      context.fillRect(right, 0, Math.max(0, widthPx - right), heightPx);
    }
    const x0 = Math.round(left);
    const x1 = Math.max(x0 + 2, Math.round(right));
    context.fillStyle = theme.accent;
    context.fillRect(x0, 0, x1 - x0, 1);
    context.fillRect(x0, heightPx - 1, x1 - x0, 1);
    context.fillRect(Math.max(0, x0), 0, 2, heightPx);
    context.fillRect(Math.min(widthPx, x1) - 2, 0, 2, heightPx);
    if (x1 - x0 < 24) return;
    for (const x of [x0, x1]) {
      context.fillRect(Math.min(widthPx - 4, Math.max(0, x - 2)), heightPx / 2 - 8, 4, 16);
    }
  }
}
