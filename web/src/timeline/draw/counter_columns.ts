// What a counter's row shows in each column of pixels, and the pixels. Pure: runs in node.

import type {CounterSamples} from '../../api/types';

/** Neighboring columns in which the counter had the same values. */
export interface CounterRun {
  readonly x: number;
  columns: number;
  readonly low: number;
  readonly high: number;
  /** What it holds at the end. */
  readonly last: number;
}

/**
 * The smallest, largest and last value of each of `columns` columns that share [t0, t1). A value
 * holds until the next one; before its first value nothing is known of a counter, and nothing is shown.
 */
export function counterRuns(
  {ts_ns: ts, min, max, last}: CounterSamples,
  t0: number,
  t1: number,
  columns: number,
): CounterRun[] {
  const runs: CounterRun[] = [];
  const put = (x: number, end: number, low: number, high: number, last: number): void => {
    const before = runs[runs.length - 1];
    const isSame = before?.low === low && before.high === high && before.last === last;
    if (isSame && before.x + before.columns === x) before.columns += end - x;
    else if (end > x) runs.push({x, columns: end - x, low, high, last});
  };
  const perNs = columns / (t1 - t0);
  let i = firstAt(ts, t0);
  let held = last[i - 1];
  let x = 0;
  while (i < ts.length && (ts[i] as number) < t1) {
    const column = Math.min(columns - 1, Math.floor(((ts[i] as number) - t0) * perNs));
    if (held !== undefined) put(x, column, held, held, held);
    let low = held ?? Infinity;
    let high = held ?? -Infinity;
    const end = t0 + (column + 1) / perNs;
    do {
      const lower = min[i] ?? 0;
      const upper = max[i] ?? 0;
      if (lower < low) low = lower;
      if (upper > high) high = upper;
      held = last[i++] ?? 0;
    } while (i < ts.length && (ts[i] as number) < Math.min(end, t1));
    put(column, column + 1, low, high, held ?? 0);
    x = column + 1;
  }
  if (held !== undefined) put(x, columns, held, held, held);
  return runs;
}

/** The first of ascending times that is not before `t`. */
export function firstAt(times: CounterSamples['ts_ns'], t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] as number) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What a counter is drawn with, RGBA as a little-endian number, not premultiplied. */
export interface CounterColors {
  readonly line: number;
  /** Below the line. */
  readonly area: number;
  /** Values of a column that are not its last, above and below the line. */
  readonly band: number;
}

/**
 * Draw runs into `ret` (columns x height pixels, top row first): a line along the last values, over
 * an area, and all values of a column as a band. `low` is at the bottom, `high` at the top.
 */
export function rasterizeCounter(
  runs: readonly CounterRun[],
  {low, high}: {readonly low: number; readonly high: number},
  columns: number,
  height: number,
  colors: CounterColors,
  ret: Uint32Array,
): void {
  ret.fill(0, 0, columns * height);
  const scale = (height - 1) / (high - low || 1);
  const rowOf = (value: number): number =>
    Math.min(height - 1, Math.max(0, Math.round((high - value) * scale)));
  const fill = (run: CounterRun, top: number, end: number, color: number): void => {
    const {x, columns: width} = run;
    // Most are one column wide: a loop less.
    if (width === 1) {
      const last = end * columns + x;
      for (let at = top * columns + x; at < last; at += columns) ret[at] = color;
      return;
    }
    for (let y = top; y < end; y++) ret.fill(color, y * columns + x, y * columns + x + width);
  };
  let before = runs[0]?.last ?? 0;
  for (const run of runs) {
    const at = rowOf(run.last);
    fill(run, at, height, colors.area);
    if (run.low < run.high) fill(run, rowOf(run.high), rowOf(run.low) + 1, colors.band);
    const from = rowOf(before);
    fill(run, Math.min(at, from), Math.max(at, from) + 1, colors.line);
    before = run.last;
  }
}
