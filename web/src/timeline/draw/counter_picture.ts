// The bitmap of each counter row: rectangles and paths of as many columns cost the browser more.

import type {CounterSamples} from '../../api/types';
import {parseCssColor} from '../../render/color';
import {counterRuns, rasterizeCounter, type CounterColors} from './counter_columns';
import type {StageTheme} from './stage_theme';

/** What a picture shows; the same again is not drawn again. */
export interface CounterView {
  readonly samples: CounterSamples;
  readonly t0: number;
  readonly t1: number;
  readonly low: number;
  readonly high: number;
}

interface Picture {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  /** Used again: one for each frame of a zoom would be 9 MB of garbage a second. */
  image: ImageData | undefined;
  view: CounterView | undefined;
}

/** Rows that were on screen; far more than fit on one. */
const KEPT_MAX = 64;

export class CounterPictures {
  private readonly pictures = new Map<number, Picture>();
  private readonly colors: CounterColors;

  constructor(theme: StageTheme) {
    const packed = (css: string, alpha: number): number => {
      const [r, g, b] = parseCssColor(css) ?? [128, 128, 128];
      return ((Math.round(255 * alpha) << 24) | (b << 16) | (g << 8) | r) >>> 0;
    };
    this.colors = {
      line: packed(theme.text, 0.66),
      area: packed(theme.accent, 0.12),
      band: packed(theme.text, 0.16),
    };
  }

  get(
    track: number,
    view: CounterView,
    columns: number,
    height: number,
  ): HTMLCanvasElement | undefined {
    const picture = this.pictures.get(track) ?? this.create(track);
    if (!picture) return undefined;
    const {canvas, context} = picture;
    const isSize = canvas.width === columns && canvas.height === height;
    if (isSize && picture.view && isSame(picture.view, view)) return canvas;
    if (!isSize) {
      canvas.width = columns;
      canvas.height = height;
    }
    const runs = counterRuns(view.samples, view.t0, view.t1, columns);
    const image =
      isSize && picture.image ? picture.image : context.createImageData(columns, height);
    picture.image = image;
    const pixels = new Uint32Array(image.data.buffer);
    rasterizeCounter(runs, view, columns, height, this.colors, pixels);
    context.putImageData(image, 0, 0);
    picture.view = view;
    return canvas;
  }

  private create(track: number): Picture | undefined {
    const canvas = document.createElement('canvas');
    // kept in main memory: it is written and copied, never drawn into
    const context = canvas.getContext('2d', {willReadFrequently: true});
    if (!context) return undefined;
    if (this.pictures.size >= KEPT_MAX) this.pictures.clear();
    const picture = {canvas, context, image: undefined, view: undefined};
    this.pictures.set(track, picture);
    return picture;
  }
}

const isSame = (a: CounterView, b: CounterView): boolean =>
  a.samples === b.samples && a.t0 === b.t0 && a.t1 === b.t1 && a.low === b.low && a.high === b.high;
