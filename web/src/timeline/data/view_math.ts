// The visible window: zoom, pan, fit, clamp. Pure: runs in node. All times are f64 ns since the
// trace's start.

/** A part of the trace's time, t0 < t1. */
export interface Span {
  readonly t0: number;
  readonly t1: number;
}

/**
 * The narrowest window. Slices begin and end on whole nanoseconds, so nothing more is to be seen
 * below some pixels a nanosecond: 64 ns are 25 px/ns on a screen of 1600 px. Doubles still have the
 * digits: a time below 2^53 ns is exact, so an edge is never off by more than a nanosecond even at
 * the end of a trace of 104 days.
 */
export const WINDOW_MIN_NS = 64;

/**
 * Edges are multiples of 2^-6 ns, which doubles hold up to 39 hours: a window has exactly the
 * length that its edges say, so nothing adds up while it is zoomed and moved.
 */
const snap = (t: number): number => Math.round(t * 64) / 64;

/** The nearest window inside the trace: its length first, then its place. */
export function clampWindow(window: Span, durationNs: number): Span {
  const whole = Math.max(durationNs, WINDOW_MIN_NS);
  const length = Math.min(whole, Math.max(WINDOW_MIN_NS, snap(window.t1 - window.t0)));
  if (!Number.isFinite(length)) return {t0: 0, t1: whole};
  const t0 = Math.min(
    whole - length,
    Math.max(0, Number.isFinite(window.t0) ? snap(window.t0) : 0),
  );
  return {t0, t1: t0 + length};
}

/** Zoom by `factor` (below 1: closer) so that the time at `anchor` (0..1 of the width) stays. */
export function zoomWindow(window: Span, factor: number, anchor: number, durationNs: number): Span {
  const length = window.t1 - window.t0;
  const limit = Math.max(durationNs, WINDOW_MIN_NS);
  const next = Math.min(limit, Math.max(WINDOW_MIN_NS, length * factor));
  const t0 = window.t0 + length * anchor - next * anchor;
  return clampWindow({t0, t1: t0 + next}, durationNs);
}

/** Move by a share of the window's length. */
export function panWindow(window: Span, share: number, durationNs: number): Span {
  const delta = (window.t1 - window.t0) * share;
  return clampWindow({t0: window.t0 + delta, t1: window.t1 + delta}, durationNs);
}

/** A window that shows `span` with a tenth of it to either side. */
export function fitWindow(span: Span, durationNs: number): Span {
  const pad = Math.max((span.t1 - span.t0) * 0.1, WINDOW_MIN_NS / 4);
  return clampWindow({t0: span.t0 - pad, t1: span.t1 + pad}, durationNs);
}

/** The same length, with `span` in the middle. */
export function centerWindow(window: Span, span: Span, durationNs: number): Span {
  const half = (window.t1 - window.t0) / 2;
  const middle = (span.t0 + span.t1) / 2;
  return clampWindow({t0: middle - half, t1: middle + half}, durationNs);
}

/** Below this share of the window a slice is not seen. */
const SEEN_SHARE = 1 / 400;
/** What is brought closer gets this many times its length as window: seen, with what is around. */
const CONTEXT = 40;
const CONTEXT_MIN_NS = 2000;

/** As little movement as shows `span`: none if it is visible and wide enough to be seen. */
export function revealWindow(window: Span, span: Span, durationNs: number): Span {
  const length = window.t1 - window.t0;
  const own = span.t1 - span.t0;
  const isSeen = own >= length * SEEN_SHARE;
  if (isSeen && span.t0 >= window.t0 && span.t1 <= window.t1) return window;
  if (own > length) return fitWindow(span, durationNs);
  const half = isSeen ? length / 2 : Math.min(length, Math.max(own * CONTEXT, CONTEXT_MIN_NS)) / 2;
  return centerWindow({t0: -half, t1: half}, span, durationNs);
}

/** The nearest of the edges within reach of a time, else the time itself. */
export function nearestEdge(t: number, edges: readonly number[], reach: number): number {
  let best = t;
  let distance = reach;
  for (const edge of edges) {
    if (Math.abs(edge - t) > distance) continue;
    best = edge;
    distance = Math.abs(edge - t);
  }
  return best;
}

/** Two slices, the earlier first: from the one's begin to the other's, and what lies between. */
export interface Measure {
  readonly area: Span;
  readonly beginToBegin: number;
  /** Below zero where they overlap. */
  readonly endToBegin: number;
}

export function measure(a: Span, b: Span): Measure {
  const [first, second] = a.t0 <= b.t0 ? [a, b] : [b, a];
  return {
    area: {t0: first.t0, t1: Math.max(first.t1, second.t1)},
    beginToBegin: second.t0 - first.t0,
    endToBegin: second.t0 - first.t1,
  };
}
