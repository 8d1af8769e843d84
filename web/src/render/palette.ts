// From (kind, name) to a packed color, as tables that the renderers index by name id.
// Pure: runs in node. Rebuilt when the theme changes, extended when names arrive.

import {causeStyle} from '../base/causes';
import {hashName, oklchToRgb, packRgb, parseCssColor, type Rgb} from './color';

export type ThemeName = 'light' | 'dark' | 'forced';

/** `enum lac_slice_kind` (analysis/model/model.h). */
export const SliceKind = {
  other: 0,
  kernel: 1,
  copy: 2,
  memset: 3,
  gpuRange: 4,
  api: 5,
  sync: 6,
  overhead: 7,
  op: 8,
  range: 9,
  python: 10,
  alloc: 11,
  instant: 12,
  step: 13,
  gap: 14,
} as const;

interface Tone {
  readonly lightness: number;
  readonly chroma: number;
  /** Names differ by so much lightness. */
  readonly shade: number;
}

// Lightness and chroma by theme. Kernels and operators are the calmest; what the host asks the
// driver for is a little stronger, so that a launch is found beside the operator that made it. What a
// GPU ran has 3:1 to the ground and leaves 4.5 to its text: there is little room between them.
const TONES: Readonly<Record<'light' | 'dark', Readonly<Record<'calm' | 'clear' | 'gpu', Tone>>>> =
  {
    light: {
      calm: {lightness: 0.83, chroma: 0.038, shade: 0.022},
      clear: {lightness: 0.81, chroma: 0.05, shade: 0.022},
      gpu: {lightness: 0.645, chroma: 0.04, shade: 0.012},
    },
    dark: {
      calm: {lightness: 0.41, chroma: 0.034, shade: 0.022},
      clear: {lightness: 0.45, chroma: 0.055, shade: 0.022},
      gpu: {lightness: 0.526, chroma: 0.036, shade: 0.002},
    },
  };
const GPU_KINDS: ReadonlySet<number> = new Set([
  SliceKind.kernel,
  SliceKind.copy,
  SliceKind.memset,
]);

/** Kinds with one color for all names: [hue, chroma factor]. */
const FIXED_HUE: ReadonlyMap<number, readonly [number, number]> = new Map([
  [SliceKind.copy, [245, 1.5]],
  [SliceKind.memset, [215, 0.6]],
  [SliceKind.sync, [300, 0.9]],
  [SliceKind.overhead, [105, 0.9]],
  [SliceKind.alloc, [0, 0.9]],
  [SliceKind.instant, [180, 0.5]],
  [SliceKind.step, [260, 0.25]],
]);

const CLEAR_KINDS: ReadonlySet<number> = new Set([
  SliceKind.api,
  SliceKind.range,
  SliceKind.gpuRange,
  SliceKind.sync,
]);

/** Color of one slice. `name` is undefined until it is loaded. */
export function sliceColor(theme: ThemeName, kind: number, name: string | undefined): Rgb {
  if (theme === 'forced') return forcedColor(kind, name);
  if (kind === SliceKind.gap) {
    const style = causeStyle(name ?? 'unattributed');
    return parseCssColor(theme === 'dark' ? style.dark : style.light) ?? [128, 128, 128];
  }
  const tone = TONES[theme][GPU_KINDS.has(kind) ? 'gpu' : CLEAR_KINDS.has(kind) ? 'clear' : 'calm'];
  const fixed = FIXED_HUE.get(kind);
  if (fixed) return oklchToRgb(tone.lightness, tone.chroma * fixed[1], fixed[0]);
  if (name === undefined) return oklchToRgb(tone.lightness, 0.004, 260);
  const hash = hashName(name);
  const hue = (hash & 0xffff) / (0x10000 / 360);
  // Two steps of lightness keep neighbors of a similar hue apart without one being louder.
  const shade = (((hash >>> 16) % 3) - 1) * tone.shade;
  return oklchToRgb(tone.lightness + shade, tone.chroma, hue);
}

// In forced colors the system decides; patterns and letters carry what color does elsewhere.
function forcedColor(kind: number, name: string | undefined): Rgb {
  if (kind === SliceKind.gap) return [255, 255, 0];
  const step = name === undefined ? 0 : hashName(name) % 3;
  return [96 + 24 * step, 96 + 24 * step, 96 + 24 * step];
}

/** Mix towards the background: what a search does not match. */
function dim(color: Rgb, background: Rgb, keep: number): Rgb {
  return color.map((v, i) =>
    Math.round(v * keep + (background[i] ?? 0) * (1 - keep)),
  ) as unknown as Rgb;
}

/** What the palette asks about names; `version` grows when an answer may have changed. */
export interface NameSource {
  readonly version: number;
  text(id: number): string | undefined;
}

/** Packed colors by (kind, name id), computed once each. A name that is not here yet is gray. */
export class Palette {
  private byKind: Map<number, number>[] = [];
  private unnamed: number[] = [];
  private needle = '';
  /** Grows when colors that were handed out may be different now. */
  version = 0;
  /** Counts the grays handed out: whoever got one has another color when names arrive. */
  unknown = 0;

  constructor(
    private readonly names: NameSource,
    private theme: ThemeName,
    private background: Rgb,
    private highlight: Rgb,
  ) {}

  /** Grows when names arrive. */
  get namesVersion(): number {
    return this.names.version;
  }

  setTheme(theme: ThemeName, background: Rgb, highlight: Rgb): void {
    this.theme = theme;
    this.background = background;
    this.highlight = highlight;
    this.forget();
  }

  /** Names that contain `needle` stand out, all others are dimmed; '' ends it. */
  setSearch(needle: string): void {
    const lower = needle.toLowerCase();
    if (lower === this.needle) return;
    this.needle = lower;
    this.forget();
  }

  color(kind: number, nameId: number): number {
    const table = (this.byKind[kind] ??= new Map());
    let packed = table.get(nameId);
    if (packed !== undefined) return packed;
    const name = this.names.text(nameId);
    if (name === undefined) {
      this.unknown++;
      return (this.unnamed[kind] ??= packRgb(this.compute(kind, undefined)));
    }
    packed = packRgb(this.compute(kind, name));
    table.set(nameId, packed);
    return packed;
  }

  private compute(kind: number, name: string | undefined): Rgb {
    const plain = sliceColor(this.theme, kind, name);
    if (this.needle === '' || kind === SliceKind.gap || kind === SliceKind.step) return plain;
    const hit = name !== undefined && name.toLowerCase().includes(this.needle);
    return hit ? this.highlight : dim(plain, this.background, 0.35);
  }

  private forget(): void {
    this.byKind = [];
    this.unnamed = [];
    this.version++;
  }
}
