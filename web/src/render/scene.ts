// The input and the contract of a renderer. There are two:
// webgl_renderer.ts for real GPUs and cpu_renderer.ts for everything else.

import type {ColorTable} from './strip_raster';
import type {TileSource} from './tile_walk';

/** One track on screen. Positions in CSS pixels from the canvas's top. */
export interface SceneRow {
  readonly key: string;
  readonly track: number;
  readonly top: number;
  readonly laneHeight: number;
  /** Lanes shown, from laneFirst on. */
  readonly lanes: number;
  readonly laneFirst: number;
  /** All lanes as one: a shade of utilization. */
  readonly isMerged: boolean;
  /** Alpha of a column in which next to nothing is busy. */
  readonly alphaMin: number;
  /** It stays at the top; the others scroll behind it. */
  readonly isFixed: boolean;
}

export interface SceneColors extends ColorTable {
  /** Grows when any color may be another one. */
  readonly version: number;
  /** Grows when names arrive, which changes the colors counted in `unknown`. */
  readonly namesVersion: number;
  readonly unknown: number;
}

export interface Scene {
  /** Visible time, ns since the trace's start. */
  readonly t0: number;
  readonly t1: number;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly devicePixelRatio: number;
  readonly durationNs: number;
  readonly levelMax: number;
  readonly rows: readonly SceneRow[];
  /** Height at the top that belongs to fixed rows. */
  readonly fixedPx: number;
  /** What is behind the slices, as CSS. */
  readonly background: string;
  readonly source: TileSource;
  readonly colors: SceneColors;
}

export interface Renderer {
  readonly name: 'webgl' | 'cpu';
  /**
   * Draw everything but text. @return false when it ran out of its share of the frame and wants
   * another one to finish (what is on screen is coarser then, never wrong).
   */
  draw(scene: Scene): boolean;
  dispose(): void;
}
