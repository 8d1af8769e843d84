// From the step of A to the step of B, one change after the other. Pure.
import type {WentRow} from '../comparison';

export interface Fall {
  readonly name: string;
  readonly cause: string | undefined;
  readonly aNs: number;
  readonly bNs: number;
  readonly deltaNs: number;
  /** Where the bar begins and ends, in percent of the width. */
  readonly from: number;
  readonly to: number;
}

export interface Falls {
  /** The bars of both steps. */
  readonly aTo: number;
  readonly bTo: number;
  readonly rows: readonly Fall[];
  /** What the rows leave out: parts that are too small, or not told. */
  readonly restNs: number;
}

/** What shrank first, then what grew, the largest change of each first; parts that stay as they are
 *  come last. */
export function fallsOf(rows: readonly WentRow[], aNs: number, bNs: number): Falls {
  const order = [...rows].sort(
    (a, b) =>
      Number(a.deltaNs > 0) - Number(b.deltaNs > 0) ||
      Number(a.deltaNs === 0) - Number(b.deltaNs === 0) ||
      Math.abs(b.deltaNs) - Math.abs(a.deltaNs),
  );
  let at = aNs;
  let top = Math.max(aNs, bNs, 1);
  const steps = order.map(row => {
    const from = at;
    at += row.deltaNs;
    top = Math.max(top, at);
    return {...row, from, to: at};
  });
  const percent = (value: number): number => (100 * Math.max(0, value)) / top;
  return {
    aTo: percent(aNs),
    bTo: percent(bNs),
    rows: steps.map(step => ({...step, from: percent(step.from), to: percent(step.to)})),
    restNs: bNs - at,
  };
}
