// From a number to its evidence: opens the timeline there.
import {getGaps, getSlice} from '../api/client';
import type {Evidence, GapInfo, TraceInfo} from '../api/types';
import {ns, type Ns} from '../base/units';
import {
  DEFAULT_VIEW,
  page,
  runId,
  show,
  traceId,
  type Selection,
  type ViewState,
} from '../model/view_state';

/** Room left and right of what is shown, as a share of it. */
const PADDING = 0.6;
const NARROWEST_NS = 2000;

/** What is on screen: an answer that arrives after it changed opens nothing. */
const place = (): string => `${page.peek()}/${traceId.peek() ?? ''}/${runId.peek()}`;

/** Of which trace, and how long that is. */
type Where = Pick<TraceInfo, 'id' | 'duration_ns'>;

/** A time in the timeline, with room around it, and what is selected there. */
function viewOfTime(
  trace: Where,
  t0: number,
  t1: number,
  selection: Selection,
): Partial<ViewState> {
  const durationNs = trace.duration_ns;
  const room = Math.max((t1 - t0) * PADDING, NARROWEST_NS);
  const start = Math.max(0, Math.round(t0 - room));
  const end = Math.min(Math.max(durationNs, t1), Math.round(t1 + room));
  return {
    ...(traceId.peek() === trace.id ? {} : DEFAULT_VIEW),
    traceId: trace.id,
    page: 'timeline',
    window: {t0: ns(start), t1: ns(Math.max(end, start + 1))},
    selection,
  };
}

export function showInTimeline(trace: Where, t0: number, t1: number, selection: Selection): void {
  show(viewOfTime(trace, t0, t1, selection));
  scrollTo(0, 0);
}

/** The same as an address, for a tab of its own: a gap is an area there, which finds its gap. */
export function viewOfEvidence(trace: Where, evidence: Evidence): Partial<ViewState> {
  const {t0_ns: t0, t1_ns: t1, slice} = evidence;
  const area: Selection = t1 > t0 ? {kind: 'area', t0, t1} : undefined;
  return viewOfTime(trace, t0, t1, slice === undefined ? area : {kind: 'slice', slice});
}

const gapsOf = new Map<string, Promise<readonly GapInfo[]>>();
const GAPS_KEPT = 1000;
const GAPS_WAIT_MS = 500;

/** The longest gaps of a trace, asked for once. */
function longestGaps(trace: TraceInfo): Promise<readonly GapInfo[]> {
  const key = `${trace.id}/${trace.generation}`;
  let gaps = gapsOf.get(key);
  if (!gaps) {
    gaps = getGaps(trace.id, {limit: GAPS_KEPT, sort: 'dur'}).then(reply => reply.gaps);
    gaps.catch(() => gapsOf.delete(key));
    gapsOf.set(key, gaps);
  }
  return gaps;
}

/** The gap with exactly this time, if the server tells in time that it is one. */
async function gapAt(trace: TraceInfo, t0: Ns, t1: Ns): Promise<GapInfo | undefined> {
  const late = new Promise<readonly GapInfo[]>(done => setTimeout(() => done([]), GAPS_WAIT_MS));
  const gaps = await Promise.race([longestGaps(trace), late]).catch(() => []);
  return gaps.find(gap => gap.start_ns === t0 && gap.dur_ns === t1 - t0);
}

/** What a finding points to: a slice, a gap, or a time. */
export async function showEvidence(trace: TraceInfo, evidence: Evidence): Promise<void> {
  const {t0_ns: t0, t1_ns: t1, slice} = evidence;
  const from = place();
  let target: Selection;
  if (slice !== undefined) target = {kind: 'slice', slice};
  else if (t1 > t0) {
    const gap = await gapAt(trace, t0, t1);
    target = gap ? {kind: 'gap', device: gap.device, t0, t1} : {kind: 'area', t0, t1};
  }
  if (place() === from) showInTimeline(trace, t0, t1, target);
}

export async function showSlice(trace: Where, slice: number): Promise<void> {
  const from = place();
  const {start_ns: start, dur_ns: dur} = await getSlice(trace.id, slice);
  if (place() !== from) return;
  // several of it to each side: a slice alone on the screen says little
  const margin = Math.max(dur * 2, NARROWEST_NS);
  showInTimeline(trace, start - margin, start + dur + margin, {kind: 'slice', slice});
}

/** The longest gap of a device that has this cause in it. @return false if there is none */
export async function showLongestGap(
  trace: Where,
  device: number,
  cause: string,
): Promise<boolean> {
  const from = place();
  const {gaps} = await getGaps(trace.id, {device, limit: 1000, sort: 'dur'});
  if (place() !== from) return true;
  let best: (typeof gaps)[number] | undefined;
  for (const gap of gaps) if ((gap.cause_ns[cause] ?? 0) > (best?.cause_ns[cause] ?? 0)) best = gap;
  if (!best) return false;
  const t1 = ns(best.start_ns + best.dur_ns);
  showInTimeline(trace, best.start_ns, t1, {
    kind: 'gap',
    device: best.device,
    t0: best.start_ns,
    t1,
  });
  return true;
}
