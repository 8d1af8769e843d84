// The colors that the canvases need, read from the page's style when it changes.

import {CAUSES, CAUSE_STYLES, type Cause} from '../../base/causes';
import {cssRgb, parseCssColor, type Rgb} from '../../render/color';
import type {ThemeName} from '../../render/palette';

export interface StageTheme {
  readonly name: ThemeName;
  readonly background: Rgb;
  readonly text: string;
  readonly faintText: string;
  readonly line: string;
  readonly faintLine: string;
  readonly accent: string;
  readonly accentFill: string;
  readonly highlight: Rgb;
  /** Text on slices. */
  readonly sliceText: string;
  readonly font: string;
  readonly smallFont: string;
  readonly boldFont: string;
  readonly isReducedMotion: boolean;
}

const FACES = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

/** Read what `element` inherits. Call again when `watchTheme` says so. */
export function readTheme(element: HTMLElement): StageTheme {
  const style = getComputedStyle(element);
  const resolve = (value: string): Rgb | undefined => {
    const probe = document.createElement('span');
    probe.style.color = value;
    probe.style.display = 'none';
    element.append(probe);
    const rgb = parseCssColor(getComputedStyle(probe).color);
    probe.remove();
    return rgb;
  };
  const isForced = matchMedia('(forced-colors: active)').matches;
  const background = resolve(isForced ? 'Canvas' : 'var(--tl-bg)') ?? [255, 255, 255];
  const ink = resolve(isForced ? 'CanvasText' : 'var(--tl-ink)') ?? [20, 22, 26];
  const accent = resolve(isForced ? 'Highlight' : 'var(--tl-accent)') ?? [31, 95, 204];
  const isDark = background[0] + background[1] + background[2] < 384;
  const ink_ = (alpha: number): string => `rgba(${ink.join(', ')}, ${alpha})`;
  const family = style.fontFamily || FACES;
  return {
    name: isForced ? 'forced' : isDark ? 'dark' : 'light',
    background,
    text: cssRgb(ink),
    faintText: ink_(0.66),
    line: ink_(0.13),
    faintLine: ink_(0.07),
    accent: cssRgb(accent),
    accentFill: `rgba(${accent.join(', ')}, 0.12)`,
    highlight: isDark ? [196, 154, 20] : [255, 205, 60],
    sliceText: isForced ? '#ffffff' : isDark ? '#eef0f3' : '#1a1d22',
    font: `11.5px ${family}`,
    smallFont: `10.5px ${family}`,
    boldFont: `600 11.5px ${family}`,
    isReducedMotion: matchMedia('(prefers-reduced-motion: reduce)').matches,
  };
}

/** Calls `onChange` when anything that readTheme() looks at may have changed. */
export function watchTheme(onChange: () => void): () => void {
  const queries = [
    '(prefers-color-scheme: dark)',
    '(forced-colors: active)',
    '(prefers-reduced-motion: reduce)',
  ].map(q => matchMedia(q));
  for (const q of queries) q.addEventListener('change', onChange);
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, {
    attributes: true,
    attributeFilter: ['data-theme', 'class', 'style'],
  });
  return () => {
    for (const q of queries) q.removeEventListener('change', onChange);
    observer.disconnect();
  };
}

/** The pattern of each cause, to lay over its color. */
export class CausePatterns {
  private readonly patterns = new Map<Cause, CanvasPattern>();

  constructor(context: CanvasRenderingContext2D, theme: ThemeName, devicePixelRatio: number) {
    const cell = 8;
    for (const cause of CAUSES) {
      const tile = document.createElement('canvas');
      const size = Math.max(8, Math.round(cell * devicePixelRatio));
      tile.width = size;
      tile.height = size;
      const c = tile.getContext('2d');
      if (!c) continue;
      c.scale(size / cell, size / cell);
      const style = CAUSE_STYLES[cause];
      c.strokeStyle = theme === 'dark' ? style.onDark : style.onLight;
      c.globalAlpha = 0.32;
      c.lineWidth = 1.4;
      c.lineCap = 'round';
      c.beginPath();
      for (const [x0, y0, x1, y1] of style.strokes) {
        c.moveTo(x0, y0);
        c.lineTo(x1 === x0 && y1 === y0 ? x1 + 0.01 : x1, y1);
      }
      c.stroke();
      const pattern = context.createPattern(tile, 'repeat');
      if (!pattern) continue;
      pattern.setTransform(new DOMMatrix().scale(cell / size));
      this.patterns.set(cause, pattern);
    }
  }

  get(cause: Cause): CanvasPattern | undefined {
    return this.patterns.get(cause);
  }
}
