// Step times of two traces in common bins. Pure.

export interface Histograms {
  readonly fromNs: number;
  readonly binNs: number;
  /** Share of its steps in each bin, 0 to 1. */
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly top: number;
}

const BINS_MAX = 40;

/** Undefined where one of them has no step, or all are of one length. */
export function histogramsOf(a: readonly number[], b: readonly number[]): Histograms | undefined {
  if (a.length === 0 || b.length === 0) return undefined;
  let low = Infinity;
  let high = -Infinity;
  for (const value of [...a, ...b]) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(high > low)) return undefined;
  const bins = Math.min(
    BINS_MAX,
    Math.max(8, 2 * Math.ceil(Math.sqrt(Math.max(a.length, b.length)))),
  );
  const binNs = (high - low) / bins;
  const count = (values: readonly number[]): readonly number[] => {
    const shares = new Array<number>(bins).fill(0);
    for (const value of values) {
      const bin = Math.min(bins - 1, Math.floor((value - low) / binNs));
      shares[bin] = (shares[bin] ?? 0) + 1 / values.length;
    }
    return shares;
  };
  const [ofA, ofB] = [count(a), count(b)];
  return {fromNs: low, binNs, a: ofA, b: ofB, top: Math.max(...ofA, ...ofB)};
}

/** Lower median; undefined without values. */
export function medianOf(values: readonly number[]): number | undefined {
  return [...values].sort((x, y) => x - y)[(values.length - 1) >> 1];
}
