// The bitmap of what a device did, drawn once for the parts that arrived and stretched in each frame.

import type {Strip} from '../../api/types';
import {rasterizeArea} from '../../render/area_raster';
import {parseCssColor} from '../../render/color';
import type {ThemeName} from '../../render/palette';
import {usageLayers} from '../data/usage';

interface Picture {
  readonly canvas: HTMLCanvasElement;
  readonly theme: ThemeName;
}

export class UsagePictures {
  /** Goes with the parts: new ones have a picture of their own. */
  private readonly pictures = new WeakMap<Strip, Picture>();

  /** One column a part, `height` rows. */
  get(strip: Strip, theme: ThemeName, height: number): HTMLCanvasElement | undefined {
    const known = this.pictures.get(strip);
    if (known?.theme === theme && known.canvas.height === height) return known.canvas;
    const canvas = document.createElement('canvas');
    canvas.width = strip.points;
    canvas.height = height;
    // kept in main memory: it is written once and copied in each frame
    const context = canvas.getContext('2d', {willReadFrequently: true});
    if (!context) return undefined;
    const layers = usageLayers(strip, theme).map(({color, parts}) => {
      const [r, g, b] = parseCssColor(color) ?? [128, 128, 128];
      return {color: r | (g << 8) | (b << 16), parts};
    });
    const image = context.createImageData(strip.points, height);
    rasterizeArea(layers, strip.points, height, new Uint32Array(image.data.buffer));
    context.putImageData(image, 0, 0);
    this.pictures.set(strip, {canvas, theme});
    return canvas;
  }
}
