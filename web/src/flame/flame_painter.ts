// Draws a flame graph into a canvas: only the visible rows and frames.
import {CAUSE_STYLES, causeWord, isCause, type Cause} from '../base/causes';
import {hashText} from '../base/color';
import type {FlameLayout, FlameMatch, FlameTree} from '../model/flame_tree';

export const ROW_PX = 24;
const GAP_PX = 1;
/** A frame below it is one of "... N more". */
export const MIN_WIDTH_PX = 0.5;
const LABEL_MIN_PX = 30;
const LABEL_PAD_PX = 6;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export interface FlameScene {
  readonly tree: FlameTree;
  readonly layout: FlameLayout;
  readonly match: FlameMatch | undefined;
  readonly hovered: number | undefined;
  readonly active: number | undefined;
  readonly isDark: boolean;
  /** What a frame is called on screen. */
  readonly labelOf: (node: number) => string;
  /** Text of a frame's value, shown after its name where there is room. */
  readonly valueText: (node: number) => string;
  /** Of a difference: from -1, faster, to 1, slower. */
  readonly toneOf?: ((node: number) => number) | undefined;
}

/** Slower is red, faster is blue: told apart by most eyes, and by their signs in the table. Text has
 *  a contrast of 4.5 on both, and on all between them and gray. */
const SLOWER = {light: '#e5695e', dark: '#b0423a'};
const FASTER = {light: '#5c95e6', dark: '#3967ae'};

/** Neighbors too narrow to be seen, as one. */
interface Rest {
  readonly parent: number;
  readonly x0: number;
  x1: number;
  readonly y: number;
  count: number;
}

interface Tints {
  readonly frames: readonly string[];
  readonly work: readonly string[];
  readonly ancestor: string;
  readonly text: string;
  readonly faintText: string;
  readonly outline: string;
  readonly ground: string;
}

/** Working is gray: muted, with a hint of color to tell frames apart. */
export const LIGHT: Tints = {
  frames: ['#dfe2e6', '#d8dde3', '#e3e1e6', '#dbe2e0', '#e5e2dc', '#d9dbe5'],
  work: ['#c3ccd6', '#c9cfd2', '#bfcacd', '#cbc9d3', '#ccccc2', '#c2cbc4'],
  ancestor: '#ecebe7',
  text: '#1a1c1f',
  faintText: '#4a5058',
  outline: '#1a1c1f',
  ground: '#ffffff',
};
export const DARK: Tints = {
  frames: ['#3d444c', '#373f48', '#42404a', '#384442', '#44423b', '#3b3d4a'],
  work: ['#56616d', '#596268', '#516064', '#5e5b69', '#5f5e55', '#536058'],
  ancestor: '#262b30',
  text: '#eceded',
  faintText: '#dadde1',
  outline: '#ffffff',
  ground: '#15181b',
};

/** The color of a frame of a difference: from -1, faster, over gray to 1, slower. */
export function toneColor(tone: number, isDark: boolean): string {
  const end = (tone > 0 ? SLOWER : FASTER)[isDark ? 'dark' : 'light'];
  return mix((isDark ? DARK : LIGHT).frames[0] ?? end, end, Math.min(1, Math.abs(tone)));
}

/** The color of a frame below that of a cause. */
export function underCause(cause: Cause, isDark: boolean): string {
  const style = CAUSE_STYLES[cause];
  return isDark ? mix(style.dark, DARK.ground, 0.7) : mix(style.light, LIGHT.ground, 0.76);
}

const GPU_WORK = new Set(['kernel', 'copy', 'memset']);

/** The cause that a frame of waiting stands under, else undefined. */
function causeOf(tree: FlameTree, node: number): Cause | undefined {
  for (let i = node; i > 0; i = tree.parent[i] ?? -1) {
    if (tree.depth[i] !== 1) continue;
    const name = tree.name[i] ?? '';
    return isCause(name) ? name : undefined;
  }
  return undefined;
}

export class FlamePainter {
  private readonly context: CanvasRenderingContext2D;
  private readonly patterns = new Map<string, CanvasPattern | null>();
  private readonly widths = new Map<string, number>();
  /** The frame that fills the width, or that callers and callees are of, is. */
  private isBold = false;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d', {alpha: false});
    if (!context) throw new Error('This browser gives no canvas to draw on.');
    this.context = context;
  }

  /** Draw what a box of that size shows when scrolled that far. */
  paint(scene: FlameScene, widthPx: number, heightPx: number, scrollPx: number): void {
    const ratio = devicePixelRatio;
    const width = Math.max(1, Math.round(widthPx * ratio));
    const height = Math.max(1, Math.round(heightPx * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.height = `${heightPx}px`;
    }
    const c = this.context;
    const tints = scene.isDark ? DARK : LIGHT;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = tints.ground;
    c.fillRect(0, 0, widthPx, heightPx);
    c.font = FONT;
    c.textBaseline = 'middle';
    const {tree, layout} = scene;
    let i = 0;
    let rest: Rest | undefined;
    while (i < tree.count) {
      const x0 = (layout.x0[i] ?? 0) * widthPx;
      const x1 = (layout.x1[i] ?? 0) * widthPx;
      const y = (tree.depth[i] ?? 0) * ROW_PX - scrollPx;
      const parent = tree.parent[i] ?? -1;
      if (rest && rest.parent !== parent) {
        this.rest(rest, tints);
        rest = undefined;
      }
      if (x1 - x0 < MIN_WIDTH_PX || y > heightPx) {
        if (x1 > x0 && y <= heightPx && y + ROW_PX > 0) {
          rest ??= {parent, x0, x1, y, count: 0};
          rest.x1 = x1;
          rest.count += 1;
        }
        i = tree.end[i] ?? tree.count;
        continue;
      }
      if (y + ROW_PX > 0) this.frame(scene, tints, i, x0, x1, y);
      i += 1;
    }
    if (rest) this.rest(rest, tints);
    for (const node of [scene.active, scene.hovered])
      if (node !== undefined) this.outline(scene, tints, node, widthPx, scrollPx);
  }

  private rest(rest: Rest, tints: Tints): void {
    const width = rest.x1 - rest.x0 - GAP_PX;
    if (width < 1) return;
    const c = this.context;
    c.fillStyle = tints.ancestor;
    c.fillRect(rest.x0, rest.y, width, ROW_PX - GAP_PX);
    const text = this.fit(`… ${rest.count} more`, width - LABEL_PAD_PX);
    if (text === '' || width < LABEL_MIN_PX) return;
    c.fillStyle = tints.faintText;
    c.fillText(text, rest.x0 + LABEL_PAD_PX / 2, rest.y + ROW_PX / 2);
  }

  private frame(
    scene: FlameScene,
    tints: Tints,
    node: number,
    x0: number,
    x1: number,
    y: number,
  ): void {
    const c = this.context;
    const {tree, match} = scene;
    const width = Math.max(MIN_WIDTH_PX, x1 - x0 - GAP_PX);
    const height = ROW_PX - GAP_PX;
    const cause = scene.toneOf ? undefined : causeOf(tree, node);
    const isCauseRow = cause !== undefined && tree.depth[node] === 1;
    const isAncestor = node < scene.layout.focus || node === 0;
    c.globalAlpha = match && !match.hit[node] ? (scene.isDark ? 0.4 : 0.3) : 1;
    c.fillStyle = this.fill(scene, tints, node, cause, isAncestor);
    c.fillRect(x0, y, width, height);
    if (isCauseRow && !isAncestor) {
      const pattern = this.pattern(cause, scene.isDark);
      if (pattern) {
        c.fillStyle = pattern;
        c.fillRect(x0, y, width, height);
      }
    }
    if (match?.hit[node]) {
      c.fillStyle = tints.outline;
      c.fillRect(x0, y + height - 2, width, 2);
    }
    if (width >= LABEL_MIN_PX)
      this.label(scene, tints, node, x0, width, y, isCauseRow ? cause : undefined);
    c.globalAlpha = 1;
  }

  private fill(
    scene: FlameScene,
    tints: Tints,
    node: number,
    cause: Cause | undefined,
    isAncestor: boolean,
  ): string {
    const {tree} = scene;
    if (scene.toneOf && !isAncestor) return toneColor(scene.toneOf(node), scene.isDark);
    if (cause !== undefined)
      return tree.depth[node] === 1
        ? CAUSE_STYLES[cause][scene.isDark ? 'dark' : 'light']
        : underCause(cause, scene.isDark);
    if (isAncestor) return tints.ancestor;
    const name = tree.name[node] ?? '';
    const list = GPU_WORK.has(tree.kind[node] ?? '') ? tints.work : tints.frames;
    return list[hashText(name) % list.length] ?? tints.ancestor;
  }

  private label(
    scene: FlameScene,
    tints: Tints,
    node: number,
    x0: number,
    width: number,
    y: number,
    cause: Cause | undefined,
  ): void {
    const c = this.context;
    // a wide frame may start left of the box; its label stays in sight
    const left = Math.max(0, x0) + LABEL_PAD_PX;
    const room = x0 + width - left - LABEL_PAD_PX;
    if (room < LABEL_MIN_PX - 2 * LABEL_PAD_PX) return;
    const middle = y + ROW_PX / 2;
    const full = scene.labelOf(node);
    this.setBold(node === scene.layout.focus);
    const name = this.fit(full, room);
    if (name === '') return;
    const style = cause === undefined ? undefined : CAUSE_STYLES[cause];
    const onColor = style && (scene.isDark ? style.onDark : style.onLight);
    if (style && onColor !== undefined) {
      // a plate below the letters: a pattern must not run through them
      c.fillStyle = scene.isDark ? style.dark : style.light;
      c.fillRect(left - 3, y + 3, this.textWidth(name) + 6, ROW_PX - GAP_PX - 6);
    }
    c.fillStyle = onColor ?? tints.text;
    c.fillText(name, left, middle);
    const nameWidth = this.textWidth(name);
    this.setBold(false);
    if (name !== full) return;
    const value = scene.valueText(node);
    const valueWidth = this.textWidth(value);
    if (nameWidth + valueWidth + 14 > room) return;
    if (style && onColor !== undefined) {
      c.fillStyle = scene.isDark ? style.dark : style.light;
      c.fillRect(left + nameWidth + 3, y + 3, valueWidth + 10, ROW_PX - GAP_PX - 6);
    }
    c.fillStyle = onColor ?? (scene.toneOf ? tints.text : tints.faintText);
    c.fillText(value, left + nameWidth + 8, middle);
  }

  /** The text, cut with an ellipsis to the room that it has; empty when that is too little. */
  private fit(text: string, room: number): string {
    if (this.textWidth(text) <= room) return text;
    let low = 0;
    let high = Math.min(text.length, Math.ceil(room / 3));
    while (low < high) {
      const half = Math.ceil((low + high) / 2);
      if (this.textWidth(`${text.slice(0, half)}…`) <= room) low = half;
      else high = half - 1;
    }
    return low < 2 ? '' : `${text.slice(0, low)}…`;
  }

  private setBold(isBold: boolean): void {
    if (this.isBold === isBold) return;
    this.isBold = isBold;
    this.context.font = isBold ? `bold ${FONT}` : FONT;
  }

  private textWidth(text: string): number {
    const key = this.isBold ? `\0${text}` : text;
    const known = this.widths.get(key);
    if (known !== undefined) return known;
    if (this.widths.size > 20_000) this.widths.clear();
    const width = this.context.measureText(text).width;
    this.widths.set(key, width);
    return width;
  }

  private outline(
    scene: FlameScene,
    tints: Tints,
    node: number,
    widthPx: number,
    scrollPx: number,
  ): void {
    const {tree, layout} = scene;
    const x0 = (layout.x0[node] ?? 0) * widthPx;
    const x1 = (layout.x1[node] ?? 0) * widthPx;
    if (x1 <= x0) return;
    const c = this.context;
    c.strokeStyle = tints.outline;
    c.lineWidth = node === scene.active ? 2 : 1;
    const inset = c.lineWidth / 2;
    const y = (tree.depth[node] ?? 0) * ROW_PX - scrollPx;
    c.strokeRect(
      x0 + inset,
      y + inset,
      Math.max(1, x1 - x0 - GAP_PX - 2 * inset),
      ROW_PX - GAP_PX - 2 * inset,
    );
  }

  private pattern(cause: Cause, isDark: boolean): CanvasPattern | null {
    const key = `${cause}/${isDark}`;
    const known = this.patterns.get(key);
    if (known !== undefined) return known;
    const cell = document.createElement('canvas');
    cell.width = 8;
    cell.height = 8;
    const c = cell.getContext('2d');
    if (!c) return null;
    const style = CAUSE_STYLES[cause];
    c.strokeStyle = isDark ? style.onDark : style.onLight;
    c.globalAlpha = 0.35;
    c.lineWidth = 1.4;
    c.lineCap = 'round';
    for (const [x0, y0, x1, y1] of style.strokes) {
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1 === y0 && x1 === x0 ? y1 + 0.01 : y1);
      c.stroke();
    }
    const pattern = this.context.createPattern(cell, 'repeat');
    this.patterns.set(key, pattern);
    return pattern;
  }
}

const MODULE = 'nn.Module: ';

/** What a frame is called on screen: causes by their words, kernels by their short names. */
export function frameLabel(
  tree: FlameTree,
  node: number,
  shortNames: ReadonlyMap<string, string>,
): string {
  const name = tree.name[node] ?? '';
  if (tree.kind[node] === 'gap' && isCause(name)) {
    const {letter, label} = causeWord(name);
    return `${letter}  ${label}`;
  }
  const short = tree.kind[node] === 'kernel' ? shortNames.get(name) : undefined;
  return short ?? (name.startsWith(MODULE) ? name.slice(MODULE.length) : name);
}

/** `share` of the second color in the first, both "#rrggbb". */
function mix(a: string, b: string, share: number): string {
  const part = (index: number): string => {
    const from = Number.parseInt(a.slice(1 + 2 * index, 3 + 2 * index), 16);
    const to = Number.parseInt(b.slice(1 + 2 * index, 3 + 2 * index), 16);
    return Math.round(from + (to - from) * share)
      .toString(16)
      .padStart(2, '0');
  };
  return `#${part(0)}${part(1)}${part(2)}`;
}
