// Draws rows of strips: above what a device did, below why it did nothing.
import {CAUSES, CAUSE_STYLES, causeWord, type Cause} from '../../base/causes';
import {WORKS, WORK_CAUSES, type StripData} from '../../model/run/strips';
import type {TimeWindow} from '../../model/view_state';

export interface PaintRow {
  readonly data: StripData | undefined;
  /** Added to its times. */
  readonly shiftNs: number;
  /** From when to when it was in the chosen collective. */
  readonly mark: {readonly startNs: number; readonly endNs: number} | undefined;
  /** Where its steps begin. */
  readonly ticks?: readonly number[];
}

export interface Scene {
  readonly rows: readonly PaintRow[];
  readonly window: TimeWindow;
  readonly rowPx: number;
  readonly isDark: boolean;
  /** Where the pointer is, and where a drag began. */
  readonly cursorPx: number | undefined;
  readonly dragPx: readonly [number, number] | undefined;
}

/** Room between rows. */
const GAP_PX = 3;
/** A letter needs so much. */
const LETTER_PX = 13;

const COLORS = {
  light: {work: '#757d86', ground: '#f0efeb', ink: '#1a1c1f', accent: '#1f5fcc'},
  dark: {work: '#8d959f', ground: '#23272c', ink: '#eceded', accent: '#79a8ff'},
} as const;

export function paintStrips(canvas: HTMLCanvasElement, width: number, scene: Scene): void {
  const scale = Math.max(1, devicePixelRatio || 1);
  const height = scene.rows.length * scene.rowPx;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  scene.rows.forEach((row, index) => {
    paintRow(context, width, scene, row, index * scene.rowPx);
  });
  paintPointer(context, height, scene);
}

function colorOf(cause: Cause, isDark: boolean): string {
  return isDark ? CAUSE_STYLES[cause].dark : CAUSE_STYLES[cause].light;
}

function paintRow(
  context: CanvasRenderingContext2D,
  width: number,
  scene: Scene,
  row: PaintRow,
  top: number,
): void {
  const colors = scene.isDark ? COLORS.dark : COLORS.light;
  const inner = scene.rowPx - GAP_PX;
  const workPx = Math.max(4, Math.round(inner * 0.62));
  const waitTop = top + workPx + 1;
  const waitPx = Math.max(2, inner - workPx - 1);
  context.fillStyle = colors.ground;
  context.fillRect(0, top, width, workPx);
  const length = scene.window.t1 - scene.window.t0;
  const x = (t: number): number => (width * (t + row.shiftNs - scene.window.t0)) / length;
  if (row.data) {
    const {data} = row;
    const partNs = (data.t1 - data.t0) / data.points;
    const edge = (part: number): number => x(data.t0 + part * partNs);
    let base = new Float32Array(data.points);
    for (const name of WORKS) {
      const parts = data.work[name]?.parts;
      const cause = WORK_CAUSES[name];
      if (!parts) continue;
      context.fillStyle = cause === undefined ? colors.work : colorOf(cause, scene.isDark);
      paintParts(context, parts, base, edge, width, top, workPx);
      if (cause !== undefined) letters(context, scene, cause, parts, edge, width, top, workPx);
    }
    base = new Float32Array(data.points);
    for (const cause of CAUSES) {
      const parts = data.waiting[cause]?.parts;
      if (!parts) continue;
      context.fillStyle = colorOf(cause, scene.isDark);
      paintParts(context, parts, base, edge, width, waitTop, waitPx);
      letters(context, scene, cause, parts, edge, width, waitTop, waitPx);
    }
  }
  paintTicks(context, row.ticks ?? [], x, width, top, inner, colors.ink);
  if (row.mark) {
    const from = x(row.mark.startNs);
    const to = x(row.mark.endNs);
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.5;
    context.strokeRect(from, top + 0.75, Math.max(1, to - from), inner - 1.5);
    context.fillStyle = colors.accent;
    context.fillRect(from - 1.5, top - 1, 3, inner + 2);
  }
}

/** Lines at times, unless they would be a gray area. */
function paintTicks(
  context: CanvasRenderingContext2D,
  ticks: readonly number[],
  x: (t: number) => number,
  width: number,
  top: number,
  height: number,
  color: string,
): void {
  const at = ticks.map(x).filter(each => each >= 0 && each <= width);
  if (at.length * 6 > width) return;
  context.fillStyle = color;
  for (const each of at) context.fillRect(Math.round(each) - 0.5, top, 1.5, height);
}

/** Parts that are next to each other and alike are one rectangle: fewer, and without seams. */
function paintParts(
  context: CanvasRenderingContext2D,
  parts: readonly number[],
  base: Float32Array,
  edge: (part: number) => number,
  width: number,
  top: number,
  height: number,
): void {
  let begin = 0;
  for (let i = 0; i <= parts.length; i++) {
    const isSame =
      i < parts.length && i > begin && parts[i] === parts[begin] && base[i] === base[begin];
    if (i === begin || isSame) continue;
    const share = (parts[begin] ?? 0) / 1000;
    const from = Math.max(0, edge(begin));
    const to = Math.min(width, edge(i));
    if (share > 0 && to > from) {
      const under = base[begin] ?? 0;
      const h = Math.max(0.5, share * height);
      context.fillRect(from, top + height - under * height - h, to - from, h);
    }
    begin = i;
  }
  for (let i = 0; i < parts.length; i++) base[i] = (base[i] ?? 0) + (parts[i] ?? 0) / 1000;
}

/** The letter of a cause where it fills a stretch: color alone says nothing to many. */
function letters(
  context: CanvasRenderingContext2D,
  scene: Scene,
  cause: Cause,
  parts: readonly number[],
  edge: (part: number) => number,
  width: number,
  top: number,
  height: number,
): void {
  if (height < 9) return;
  const style = CAUSE_STYLES[cause];
  let begin = -1;
  context.font = `600 ${Math.min(11, height - 1)}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let i = 0; i <= parts.length; i++) {
    const fills = (parts[i] ?? 0) >= 700;
    if (fills && begin < 0) begin = i;
    if (fills || begin < 0) continue;
    const from = Math.max(0, edge(begin));
    const to = Math.min(width, edge(i));
    if (to - from >= LETTER_PX) {
      context.fillStyle = scene.isDark ? style.onDark : style.onLight;
      context.fillText(causeWord(cause).letter, (from + to) / 2, top + height / 2 + 0.5);
    }
    begin = -1;
  }
}

function paintPointer(context: CanvasRenderingContext2D, height: number, scene: Scene): void {
  const colors = scene.isDark ? COLORS.dark : COLORS.light;
  if (scene.dragPx) {
    const [a, b] = scene.dragPx;
    context.globalAlpha = 0.15;
    context.fillStyle = colors.accent;
    context.fillRect(Math.min(a, b), 0, Math.abs(b - a), height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.accent;
    context.strokeRect(Math.min(a, b) + 0.5, 0.5, Math.abs(b - a), height - 1);
  } else if (scene.cursorPx !== undefined) {
    context.fillStyle = colors.ink;
    context.globalAlpha = 0.5;
    context.fillRect(scene.cursorPx, 0, 1, height);
    context.globalAlpha = 1;
  }
}
