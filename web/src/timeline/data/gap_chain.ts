// What a gap waited for, as far as it was recorded: the main thread's wait for a batch, and the
// worker's range for that batch. Pure: runs in node.

import type {SliceInfo} from '../../api/types';

const overlap = (s: SliceInfo, t0: number, t1: number): number =>
  Math.min(t1, s.start_ns + s.dur_ns) - Math.max(t0, s.start_ns);

/** The wait for a batch that covers most of the gap; of equals the innermost. */
export function waitInGap(
  slices: readonly SliceInfo[],
  t0: number,
  t1: number,
): SliceInfo | undefined {
  return slices
    .filter(s => s.name === 'loader.wait' && overlap(s, t0, t1) > 0)
    .sort((a, b) => overlap(b, t0, t1) - overlap(a, t0, t1) || a.dur_ns - b.dur_ns)[0];
}

const CANDIDATES_MAX = 16;

/** Ranges of workers that ended during the wait, the last first: one of them delivered. */
export function lastEnded(wait: SliceInfo, worker: readonly SliceInfo[]): readonly SliceInfo[] {
  const end = (s: SliceInfo): number => s.start_ns + s.dur_ns;
  return worker
    .filter(s => s.name.startsWith('loader.') && end(s) > wait.start_ns && end(s) <= end(wait))
    .sort((a, b) => end(b) - end(a) || b.dur_ns - a.dur_ns)
    .slice(0, CANDIDATES_MAX);
}

/**
 * The worker's range that delivered the batch the wait was for: its fetch, else (a recording that
 * began in the middle of it) the last part of it. Nothing when no range names that batch.
 */
export function lateBatch(wait: SliceInfo, worker: readonly SliceInfo[]): SliceInfo | undefined {
  const batch = wait.loader?.batch;
  if (batch === undefined || batch < 0) return undefined;
  const end = wait.start_ns + wait.dur_ns;
  const parts = worker.filter(
    s =>
      s.name.startsWith('loader.') &&
      s.name !== 'loader.wait' &&
      s.loader?.batch === batch &&
      s.start_ns < end &&
      overlap(s, wait.start_ns, end) > 0,
  );
  return (
    parts.find(s => s.name === 'loader.fetch') ??
    [...parts].sort((a, b) => b.start_ns + b.dur_ns - (a.start_ns + a.dur_ns))[0]
  );
}
