// The time axis over the rows: ticks, the pointer's time.

import type {StageTheme} from './stage_theme';
import type {Bookmark} from '../../api/bookmarks';
import {axisTicks} from './axis_ticks';
import type {Span} from '../data/view_math';

const TICK_SPACING_PX = 96;

export function drawAxis(
  canvas: HTMLCanvasElement,
  theme: StageTheme,
  dpr: number,
  widthPx: number,
  heightPx: number,
  window: Span,
  pointerX: number | undefined,
  bookmarks: readonly Bookmark[],
): void {
  const width = Math.max(1, Math.round(widthPx * dpr));
  const height = Math.max(1, Math.round(heightPx * dpr));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const c = canvas.getContext('2d');
  if (!c) return;
  c.setTransform(dpr, 0, 0, dpr, 0, 0);
  c.clearRect(0, 0, widthPx, heightPx);
  c.font = theme.smallFont;
  c.textBaseline = 'middle';
  const {
    ticks,
    anchorNs,
    text: timeText,
  } = axisTicks(window.t0, window.t1, widthPx, TICK_SPACING_PX);
  const scale = widthPx / (window.t1 - window.t0);
  const at = pointerX === undefined ? undefined : timeText(window.t0 + pointerX / scale);
  const box = at === undefined ? 0 : c.measureText(at).width + 10;
  const left = Math.min(widthPx - box, Math.max(0, (pointerX ?? 0) - box / 2));
  for (const tick of ticks) {
    const x = Math.round((tick.ns - window.t0) * scale);
    c.fillStyle = theme.line;
    c.fillRect(x, heightPx - 7, 1, 7);
    c.fillStyle = theme.faintText;
    // The first label steps aside for the anchor.
    const text = anchorNs !== undefined && tick.ns === anchorNs ? anchorText(anchorNs) : tick.label;
    const end = x + 4 + c.measureText(text).width;
    // a label under the pointer's time would show as half of one
    const isCovered = at !== undefined && x + 4 < left + box + 3 && end > left - 3;
    if (end + 2 < widthPx && !isCovered) c.fillText(text, x + 4, heightPx / 2 - 1);
  }
  for (const {start_ns: start, dur_ns: dur} of bookmarks)
    flag(c, theme, heightPx, (start - window.t0) * scale, dur * scale);
  if (at !== undefined) pointer(c, theme, heightPx, left, box, at);
}

/** A flag where a bookmark begins, and a line along what it spans. */
function flag(
  c: CanvasRenderingContext2D,
  theme: StageTheme,
  heightPx: number,
  x: number,
  lengthPx: number,
): void {
  c.fillStyle = theme.accent;
  c.fillRect(x, heightPx - 3, Math.max(1, lengthPx), 3);
  c.fillRect(x, 2, 1, heightPx - 2);
  c.beginPath();
  c.moveTo(x, 2);
  c.lineTo(x + 8, 5.5);
  c.lineTo(x, 9);
  c.fill();
}

/** A time to the nanosecond: what the ticks after it are offsets from. */
function anchorText(ns: number): string {
  return `${(ns / 1e9).toFixed(9)} s`;
}

function pointer(
  c: CanvasRenderingContext2D,
  theme: StageTheme,
  heightPx: number,
  left: number,
  width: number,
  text: string,
): void {
  c.fillStyle = theme.text;
  c.fillRect(left, 2, width, heightPx - 6);
  c.fillStyle = `rgb(${theme.background.join(', ')})`;
  c.fillText(text, left + 5, heightPx / 2 - 1);
}
