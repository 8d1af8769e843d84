// The slice before or after another one in its lane. Pure but for the questions it asks.

/** What is needed of a slice. */
export interface LaneSlice {
  readonly id: number;
  readonly lane: number;
  readonly start_ns: number;
  readonly dur_ns: number;
}

/** Slices of the track that overlap [t0, t1), ascending by start; whether some were left out. */
export type WindowFetch = (
  t0: number,
  t1: number,
) => Promise<{readonly slices: readonly LaneSlice[]; readonly isCut: boolean}>;

/** Questions at most: windows grow by eight where there is little, so few reach across a trace. */
const TRIES_MAX = 64;
const TOO_FAR = 'too many slices lie before the next one of this lane: zoom out and click it';
const FIRST_WINDOW_MIN_NS = 1000;
const GROWTH = 8;

/** @return undefined when it is the last one @throws Error when it is out of reach */
export async function nextInLane(
  slice: LaneSlice,
  durationNs: number,
  fetch: WindowFetch,
): Promise<LaneSlice | undefined> {
  let from = slice.start_ns + slice.dur_ns;
  let width = Math.max(FIRST_WINDOW_MIN_NS, slice.dur_ns * 4);
  for (let i = 0; i < TRIES_MAX && from <= durationNs; i++) {
    const to = Math.min(durationNs, from + width) + 1;
    const {slices, isCut} = await fetch(from, to);
    const found = slices.find(s => s.lane === slice.lane && s.id > slice.id);
    if (found) return found;
    // Cut: continue after the last one; else in the next, wider window.
    const last = slices[slices.length - 1];
    from = isCut && last ? Math.max(from + 1, last.start_ns) : to;
    if (!isCut) width *= GROWTH;
  }
  if (from <= durationNs) throw new Error(TOO_FAR);
  return undefined;
}

/** @return undefined when it is the first one @throws Error when it is out of reach */
export async function previousInLane(
  slice: LaneSlice,
  fetch: WindowFetch,
): Promise<LaneSlice | undefined> {
  let to = slice.start_ns;
  let width = Math.max(FIRST_WINDOW_MIN_NS, slice.dur_ns * 4);
  for (let i = 0; i < TRIES_MAX && to >= 0; i++) {
    const from = Math.max(0, to - width);
    const {slices, isCut} = await fetch(from, to + 1);
    if (isCut && width > 1) {
      // What was left out are the last ones, the ones that are wanted: a narrower window.
      width = Math.max(1, Math.floor(width / GROWTH));
      continue;
    }
    const before = slices.filter(s => s.lane === slice.lane && s.id < slice.id);
    const found = before[before.length - 1];
    if (found) return found;
    if (from === 0) return undefined;
    to = from;
    width *= GROWTH;
  }
  throw new Error(TOO_FAR);
}
