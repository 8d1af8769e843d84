// Draws without a GPU. Each row has a strip: a bitmap one pixel high per lane and wider than the
// screen, rasterized at the true zoom by strip_raster.ts. A frame only copies strips, stretched to
// the lane height, so panning costs a few hundred drawImage calls however many slices there are.
// A strip is drawn again when the window leaves it, the zoom changes or data arrives: as many rows
// per frame as its budget allows, the others show their old strip, moved and scaled, until it is their
// turn. One exact strip per row was measured against one bitmap per tile: tiles need scaling by up
// to 8 at almost every zoom, which blurs, and make eight times as many copies.

import {holds, stampColors, type ColorStamp} from './color_stamp';
import {levelFor} from './tile_plan';
import type {Renderer, Scene, SceneRow} from './scene';
import {StripRaster} from './strip_raster';

/** Share of a 16 ms frame for rasterizing; the rest is for copying, text and the browser. */
const RASTER_BUDGET_MS = 6;
/** And while nothing moves, when few long frames are done sooner than many short ones. */
const RASTER_BUDGET_STILL_MS = 24;
/** Nothing moves when nothing has for this long. */
const STILL_MS = 150;
/** Columns to either side of the screen, in screens, when the window was panned. */
const MARGIN = 0.4;
/** And until then: a zoom draws every strip anew, so that what lies beside the screen is seldom seen. */
const MARGIN_AT_FIRST = 0.1;
/** Strips of rows that scrolled away are kept up to this number. */
const STRIPS_MAX = 256;

interface Strip {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  startPx: number;
  columns: number;
  lanes: number;
  laneFirst: number;
  nsPerPx: number;
  isMerged: boolean;
  sourceVersion: number;
  colors: ColorStamp | undefined;
  usedAt: number;
  /** What it took to draw. */
  costMs: number;
}

export class CpuRenderer implements Renderer {
  readonly name = 'cpu';
  private readonly context: CanvasRenderingContext2D;
  private readonly raster = new StripRaster();
  private readonly strips = new Map<string, Strip>();
  private pixels = new Uint32Array(0);
  private frame = 0;
  /** What the canvas shows where. */
  private place = '';
  private movedAt = -Infinity;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d', {alpha: false});
    if (!context) throw new Error('this browser gives no 2D canvas');
    this.context = context;
  }

  draw(scene: Scene): boolean {
    this.frame++;
    const dpr = scene.devicePixelRatio;
    const width = Math.max(1, Math.round(scene.widthPx * dpr));
    const height = Math.max(1, Math.round(scene.heightPx * dpr));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const nsPerPx = (scene.t1 - scene.t0) / width;
    // The screen's first column; whole, so that a pan moves strips by whole pixels and stays sharp.
    const originPx = Math.round(scene.t0 / nsPerPx);
    const place = placeOf(scene, width, height);
    const isSamePlace = place === this.place;
    if (!isSamePlace && this.place !== '') this.movedAt = performance.now();
    this.place = place;
    const stale = this.staleRows(scene, nsPerPx, originPx, width);
    // what is drawn elsewhere asks for frames, too, and the largest layer of the page is as it was
    if (isSamePlace && stale.length === 0) return true;
    const isDone = this.refresh(stale, scene, nsPerPx, originPx, width);
    // Opaque: the browser need not blend the largest layer of the page.
    this.context.fillStyle = scene.background;
    this.context.fillRect(0, 0, width, height);
    this.context.imageSmoothingEnabled = false;
    for (const isFixed of [false, true]) {
      for (const row of scene.rows)
        if (row.isFixed === isFixed) this.compose(row, scene, nsPerPx, originPx, width);
      if (!isFixed) this.context.fillRect(0, 0, width, Math.round(scene.fixedPx * dpr));
    }
    this.prune();
    return isDone;
  }

  dispose(): void {
    this.strips.clear();
  }

  /** What is out of date, most visible faults first. */
  private staleRows(
    scene: Scene,
    nsPerPx: number,
    originPx: number,
    width: number,
  ): readonly SceneRow[] {
    const stale: {row: SceneRow; rank: number}[] = [];
    for (const row of scene.rows) {
      const rank = this.staleness(row, scene, nsPerPx, originPx, width);
      if (rank > 0) stale.push({row, rank});
    }
    return stale.sort((a, b) => b.rank - a.rank).map(({row}) => row);
  }

  /** Rasterize rows within the budget. @return whether that was all of them */
  private refresh(
    stale: readonly SceneRow[],
    scene: Scene,
    nsPerPx: number,
    originPx: number,
    width: number,
  ): boolean {
    let now = performance.now();
    const isStill = now - this.movedAt > STILL_MS;
    const end = now + (isStill ? RASTER_BUDGET_STILL_MS : RASTER_BUDGET_MS);
    let done = 0;
    for (const row of stale) {
      // One that would pass the end waits, unless it is the first.
      if (done > 0 && now + (this.strips.get(row.key)?.costMs ?? 0) > end) break;
      const strip = this.rasterize(row, scene, nsPerPx, originPx, width);
      const start = now;
      now = performance.now();
      strip.costMs = now - start;
      done++;
    }
    return done === stale.length;
  }

  /** 0: as it should be; more: the worse it would look. */
  private staleness(
    row: SceneRow,
    scene: Scene,
    nsPerPx: number,
    originPx: number,
    width: number,
  ): number {
    const strip = this.strips.get(row.key);
    if (!strip || strip.lanes !== row.lanes || strip.isMerged !== row.isMerged) return 1e9;
    if (strip.laneFirst !== row.laneFirst) return 1e9;
    // Rows that waited longest go first among equals: none starves during a long zoom.
    const wait = Math.min(1e6, this.frame - strip.usedAt);
    if (strip.nsPerPx !== nsPerPx) return 1e7 + wait;
    if (!covers(strip, originPx, width)) {
      // Nothing lies before 0 or after the end: a strip that reaches the border covers it.
      return 1e8 + wait;
    }
    if (!holds(strip.colors, scene.colors)) return 1e5 + wait;
    return strip.sourceVersion !== scene.source.version(row.track) ? 1e6 + wait : 0;
  }

  private rasterize(
    row: SceneRow,
    scene: Scene,
    nsPerPx: number,
    originPx: number,
    width: number,
  ): Strip {
    const strip = this.stripFor(row.key);
    const near = Math.round(width * MARGIN_AT_FIRST);
    const isPanned =
      strip.nsPerPx === nsPerPx &&
      (strip.columns > width + 2 * near || !covers(strip, originPx, width));
    const margin = isPanned ? Math.round(width * MARGIN) : near;
    const columns = width + 2 * margin;
    const startPx = originPx - margin;
    const lanes = row.isMerged ? 1 : row.lanes;
    if (this.pixels.length < columns * lanes) this.pixels = new Uint32Array(columns * lanes);
    if (strip.canvas.width !== columns) strip.canvas.width = columns;
    if (strip.canvas.height !== lanes) strip.canvas.height = lanes;
    const unknownBefore = scene.colors.unknown;
    this.raster.rasterize(
      {
        source: scene.source,
        colors: scene.colors,
        track: row.track,
        level: levelFor(nsPerPx, scene.levelMax),
        levelMax: scene.levelMax,
        startPx,
        columns,
        nsPerPx,
        lanes: row.lanes,
        laneFirst: row.laneFirst,
        merged: row.isMerged,
        alphaMin: row.alphaMin,
      },
      this.pixels,
    );
    const bytes = new Uint8ClampedArray(this.pixels.buffer, 0, columns * lanes * 4);
    strip.context.putImageData(new ImageData(bytes, columns, lanes), 0, 0);
    strip.startPx = startPx;
    strip.columns = columns;
    strip.lanes = row.lanes;
    strip.laneFirst = row.laneFirst;
    strip.isMerged = row.isMerged;
    strip.nsPerPx = nsPerPx;
    strip.sourceVersion = scene.source.version(row.track);
    strip.colors = stampColors(scene.colors, unknownBefore);
    strip.usedAt = this.frame;
    return strip;
  }

  private stripFor(key: string): Strip {
    let strip = this.strips.get(key);
    if (!strip) {
      const canvas = document.createElement('canvas');
      // willReadFrequently keeps the bitmap in main memory: no upload for each new strip.
      const context = canvas.getContext('2d', {willReadFrequently: true});
      if (!context) throw new Error('this browser gives no 2D canvas');
      strip = {
        canvas,
        context,
        startPx: 0,
        columns: 0,
        lanes: 0,
        laneFirst: 0,
        nsPerPx: 0,
        isMerged: false,
        sourceVersion: -1,
        colors: undefined,
        usedAt: 0,
        costMs: 0,
      };
      this.strips.set(key, strip);
    }
    return strip;
  }

  private compose(
    row: SceneRow,
    scene: Scene,
    nsPerPx: number,
    originPx: number,
    width: number,
  ): void {
    const strip = this.strips.get(row.key);
    if (!strip || strip.columns === 0 || strip.lanes !== row.lanes) return;
    if (strip.laneFirst !== row.laneFirst) return;
    const dpr = scene.devicePixelRatio;
    const lanes = strip.isMerged ? 1 : row.lanes;
    const top = Math.round(row.top * dpr);
    const laneHeight = row.laneHeight * dpr;
    const bottom = Math.round(row.top * dpr + lanes * laneHeight);
    const scale = strip.nsPerPx / nsPerPx;
    const left = strip.startPx * scale - originPx;
    // Only the part on screen: far off-screen coordinates lose precision after a deep zoom.
    const from = Math.max(0, Math.floor(-left / scale));
    const to = Math.min(strip.columns, Math.ceil((width - left) / scale));
    if (to <= from) return;
    this.context.drawImage(
      strip.canvas,
      from,
      0,
      to - from,
      lanes,
      left + from * scale,
      top,
      (to - from) * scale,
      bottom - top,
    );
    // A line of background between lanes, cut out of the stretched strip.
    const gap = Math.max(1, Math.round(dpr));
    for (let lane = 1; lane <= lanes; lane++) {
      const y = Math.round(row.top * dpr + lane * laneHeight);
      this.context.fillRect(0, y - gap, width, gap);
    }
  }

  private prune(): void {
    if (this.strips.size <= STRIPS_MAX) return;
    const oldest = [...this.strips.entries()].sort((a, b) => a[1].usedAt - b[1].usedAt);
    for (const [key] of oldest.slice(0, STRIPS_MAX / 4)) this.strips.delete(key);
  }
}

function placeOf({t0, t1, background, rows}: Scene, width: number, height: number): string {
  const of = rows.map(row => `${row.key} ${row.top} ${row.laneHeight} ${row.lanes}`);
  return `${t0} ${t1} ${width} ${height} ${background} ${of.join()}`;
}

const covers = ({startPx, columns}: Strip, originPx: number, width: number): boolean =>
  startPx <= originPx && startPx + columns >= originPx + width;
