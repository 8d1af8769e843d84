// Samples of counter rows, and what devices did, for what is on screen, with a screen to either side. No DOM.

import type {CounterSamples} from '../../api/types';

const POINTS = 1500;
const KEPT_MAX = 64;

export type RangeFetch<T> = (
  of: number,
  query: {t0: number; t1: number; points: number},
  signal: AbortSignal,
) => Promise<T>;

interface Entry<T> {
  samples: T | undefined;
  t0: number;
  t1: number;
  flight: AbortController | undefined;
  failedAt: number;
}

const RETRY_MS = 3000;

export class RangeStore<T> {
  private readonly entries = new Map<number, Entry<T>>();
  private inFlight = 0;

  constructor(
    private readonly fetch: RangeFetch<T>,
    private readonly durationNs: number,
    private readonly onChange: () => void,
  ) {}

  /** The samples of a track or device so far; requests more when they do not fit the window well. */
  get(track: number, t0: number, t1: number): T | undefined {
    let entry = this.entries.get(track);
    if (!entry) {
      if (this.entries.size >= KEPT_MAX) this.entries.clear();
      entry = {samples: undefined, t0: 0, t1: 0, flight: undefined, failedAt: -RETRY_MS};
      this.entries.set(track, entry);
    }
    const span = t1 - t0;
    const covers = entry.t0 <= Math.max(0, t0) && entry.t1 >= Math.min(t1, this.durationNs);
    // Points are spread over the interval asked for: after zooming in by four they are too coarse.
    const isFine = entry.t1 - entry.t0 <= span * 8;
    const mayAsk = !entry.flight && performance.now() - entry.failedAt >= RETRY_MS;
    if (!(covers && isFine) && mayAsk) void this.load(entry, track, t0 - span, t1 + span);
    return entry.samples;
  }

  /** Nothing is on its way. */
  get isIdle(): boolean {
    return this.inFlight === 0;
  }

  close(): void {
    for (const entry of this.entries.values()) entry.flight?.abort();
  }

  private async load(entry: Entry<T>, track: number, from: number, to: number): Promise<void> {
    const t0 = Math.max(0, Math.floor(from));
    const t1 = Math.min(this.durationNs, Math.ceil(to));
    const flight = new AbortController();
    entry.flight = flight;
    this.inFlight++;
    try {
      entry.samples = await this.fetch(track, {t0, t1, points: POINTS}, flight.signal);
      entry.t0 = t0;
      entry.t1 = t1;
    } catch {
      entry.failedAt = performance.now();
    } finally {
      entry.flight = undefined;
      this.inFlight--;
    }
    if (!flight.signal.aborted) this.onChange();
  }
}

/** Samples of a range, and the value that holds where it begins: a counter keeps a value until the next one. */
export async function withValueBefore(
  fetch: RangeFetch<CounterSamples>,
  track: number,
  query: {t0: number; t1: number; points: number},
  signal: AbortSignal,
): Promise<CounterSamples> {
  const samples = await fetch(track, query, signal);
  if (query.t0 <= 0 || samples.ts_ns[0] === query.t0) return samples;
  const {ts_ns: at, last} = await fetch(track, {t0: 0, t1: query.t0, points: 1}, signal);
  return {
    ts_ns: [...at, ...samples.ts_ns],
    min: [...last, ...samples.min],
    max: [...last, ...samples.max],
    last: [...last, ...samples.last],
  };
}

/** The last value at or before `t`; undefined before the first. */
export function valueAt(samples: CounterSamples, t: number): number | undefined {
  let lo = 0;
  let hi = samples.ts_ns.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if ((samples.ts_ns[mid] as number) <= t) lo = mid + 1;
    else hi = mid;
  }
  return lo === 0 ? undefined : samples.last[lo - 1];
}
