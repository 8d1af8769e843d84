// Strips: what devices did in a few hundred parts of a window, as rows of one picture. Pure.
import type {RunCollective, RunCollectives, RunStrips, StripParts} from '../../api/types';
import {CAUSES, causeWord, type Cause} from '../../base/causes';
import {formatDuration, formatPct} from '../../base/format';
import {ns} from '../../base/units';
import type {TimeWindow} from '../view_state';

export const WORKS = ['compute', 'exposed_comm', 'exposed_copy'] as const;
export type Work = (typeof WORKS)[number];

export const WORK_NAMES: Readonly<Record<Work, string>> = {
  compute: /* text */ 'computing',
  exposed_comm: 'communication alone',
  exposed_copy: 'copies alone',
};
/** Whose color communication and copies have. */
export const WORK_CAUSES: Readonly<Record<Work, Cause | undefined>> = {
  compute: undefined,
  exposed_comm: 'comm',
  exposed_copy: 'copy_wait',
};

/** What one row shows, and of which window. */
export interface StripData {
  readonly t0: number;
  readonly t1: number;
  readonly points: number;
  readonly work: Readonly<Record<string, StripParts>>;
  readonly waiting: Readonly<Record<string, StripParts>>;
}

export type StripRank = RunStrips['ranks'][number];

/** @param of its parts @param window that they are of */
export function dataOf(
  of: Pick<StripRank, 'work' | 'waiting'>,
  window: {readonly t0_ns: number; readonly t1_ns: number; readonly points: number},
): StripData | undefined {
  if (!of.work || !of.waiting) return undefined;
  return {
    t0: window.t0_ns,
    t1: window.t1_ns,
    points: window.points,
    work: of.work,
    waiting: of.waiting,
  };
}

/** A part of a bar: how much of the window goes to what. */
export interface Share {
  readonly name: string;
  readonly cause: Cause | undefined;
  readonly isWaiting: boolean;
  readonly totalNs: number;
}

/** What the window is made of, work first; what is left was not recorded or is in gaps below
 *  10 us. */
export function sharesOf(data: StripData): readonly Share[] {
  const work = WORKS.map(name => ({
    name: WORK_NAMES[name],
    cause: WORK_CAUSES[name],
    isWaiting: false,
    totalNs: data.work[name]?.total_ns ?? 0,
  }));
  const waiting = CAUSES.map(cause => ({
    name: causeWord(cause).label,
    cause,
    isWaiting: true,
    totalNs: data.waiting[cause]?.total_ns ?? 0,
  }));
  return [...work, ...waiting].filter(share => share.totalNs > 0);
}

/** "computing 80 %, waits for data 20 %" of one part. */
export function describePart(data: StripData, part: number): string {
  const said: string[] = [];
  for (const name of WORKS) {
    const share = data.work[name]?.parts[part] ?? 0;
    if (share >= 5) said.push(`${WORK_NAMES[name]} ${formatPct(share / 10)}`);
  }
  for (const cause of CAUSES) {
    const share = data.waiting[cause]?.parts[part] ?? 0;
    if (share >= 5) said.push(`${causeWord(cause).label} ${formatPct(share / 10)}`);
  }
  return said.join(', ') || 'nothing recorded';
}

// ---- windows

export const WINDOW_MIN_NS = 1000;

/** The window zoomed by `factor` around the place `at` (0 left, 1 right), inside [0, end). */
export function zoomed(window: TimeWindow, factor: number, at: number, end: number): TimeWindow {
  const length = window.t1 - window.t0;
  const wanted = Math.min(Math.max(length * factor, WINDOW_MIN_NS), end);
  return moved({t0: ns(0), t1: ns(wanted)}, window.t0 + (length - wanted) * at, end);
}

/** The window with its begin at `t0`, kept inside [0, end). */
export function moved(window: TimeWindow, t0: number, end: number): TimeWindow {
  const length = Math.min(window.t1 - window.t0, end);
  const from = Math.round(Math.min(Math.max(0, t0), Math.max(0, end - length)));
  return {t0: ns(from), t1: ns(from + Math.max(1, Math.round(length)))};
}

// ---- collectives

/** How much later than the first one each of its ranks came; by place in `ranks`. */
export function arrivalsOf(it: RunCollective): readonly number[] {
  const longest = Math.max(...it.dur_ns);
  return it.dur_ns.map(dur => longest - dur);
}

/** What to add to a rank's times so that all leave this collective at the same moment. */
export function shiftsOf(it: RunCollective | undefined): ReadonlyMap<number, number> {
  if (!it) return new Map();
  return new Map(
    it.ranks.map((rank, i) => [rank, it.end_ns - ((it.start_ns[i] ?? 0) + (it.dur_ns[i] ?? 0))]),
  );
}

/** The one that a moment belongs to: it is in it, or it ends next. */
export function collectiveAt(met: RunCollectives, atNs: number): RunCollective | undefined {
  let best: RunCollective | undefined;
  let bestApart = Infinity;
  for (const it of met.collectives) {
    const begin = it.end_ns - Math.max(...it.dur_ns);
    const apart = atNs < begin ? begin - atNs : atNs > it.end_ns ? atNs - it.end_ns : 0;
    if (apart < bestApart || (apart === bestApart && it.end_ns < (best?.end_ns ?? Infinity))) {
      best = it;
      bestApart = apart;
    }
  }
  return best;
}

/** "Rank 5 entered last, 5.54 ms after the median of the others." */
export function describeCollective(it: RunCollective, nameOf: (rank: number) => string): string {
  if (it.last === undefined || it.late_ns === undefined)
    return `${it.kind}, from one rank to another`;
  if (it.late_ns < 1000) return `${it.kind}: all ranks came within a microsecond`;
  return `${it.kind}: ${nameOf(it.last)} entered last, ${formatDuration(it.late_ns)} after the median of the others`;
}

/** Times of a run: how often a rank entered last, and how late in all; the worst first. */
export function lastOnes(
  met: RunCollectives,
): readonly {rank: number; count: number; lateNs: number}[] {
  const by = new Map<number, {rank: number; count: number; lateNs: number}>();
  for (const it of met.collectives) {
    if (it.last === undefined || it.late_ns === undefined) continue;
    const row = by.get(it.last) ?? {rank: it.last, count: 0, lateNs: 0};
    by.set(it.last, {rank: it.last, count: row.count + 1, lateNs: row.lateNs + it.late_ns});
  }
  return [...by.values()].sort((a, b) => b.lateNs - a.lateNs);
}
