// What a counter's row shows in each column of pixels. Pure: runs in node.

import type {CounterSamples} from '../../api/types';

/** Neighboring columns in which the counter had the same values. */
export interface CounterRun {
  readonly x: number;
  readonly columns: number;
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
    const before = runs.at(-1);
    const isSame = before?.low === low && before.high === high && before.last === last;
    if (isSame && before.x + before.columns === x)
      runs[runs.length - 1] = {...before, columns: before.columns + end - x};
    else if (end > x) runs.push({x, columns: end - x, low, high, last});
  };
  const perNs = columns / (t1 - t0);
  let i = 0;
  let held: number | undefined;
  while (i < ts.length && (ts[i] as number) < t0) held = last[i++];
  let x = 0;
  while (i < ts.length && (ts[i] as number) < t1) {
    const column = Math.min(columns - 1, Math.floor(((ts[i] as number) - t0) * perNs));
    if (held !== undefined) put(x, column, held, held, held);
    let low = held ?? Infinity;
    let high = held ?? -Infinity;
    const end = t0 + (column + 1) / perNs;
    do {
      low = Math.min(low, min[i] ?? 0);
      high = Math.max(high, max[i] ?? 0);
      held = last[i++] ?? 0;
    } while (i < ts.length && (ts[i] as number) < Math.min(end, t1));
    put(column, column + 1, low, high, held ?? 0);
    x = column + 1;
  }
  if (held !== undefined) put(x, columns, held, held, held);
  return runs;
}
