// What the compare page shows of a comparison: pure.
import type {Comparison, WhereRow} from '../api/types';
import {causeWord} from '../base/causes';
import {word} from '../base/vocabulary';
import {familyLabel} from './overview';

/** One line of "where the milliseconds went". */
export interface WentRow {
  readonly name: string;
  /** Cause of idle time, for its color; undefined for work. */
  readonly cause: string | undefined;
  readonly aNs: number;
  readonly bNs: number;
  readonly deltaNs: number;
}

const bySize = (a: WentRow, b: WentRow): number =>
  Math.abs(b.deltaNs) - Math.abs(a.deltaNs) || a.name.localeCompare(b.name);

function row(source: WhereRow, name: string, cause?: string): WentRow {
  return {name, cause, aNs: source.a_ns, bNs: source.b_ns, deltaNs: source.delta_ns};
}

/** Work and idle time by cause: together the step. The largest change first; what is less
 *  than a thousandth of the step on both sides is left out. */
export function wentRows(comparison: Comparison): readonly WentRow[] {
  const where = comparison.where;
  if (!where) return [];
  const least = Math.max(comparison.step.a_ns ?? 0, comparison.step.b_ns ?? 0) / 1000;
  const rows = [
    ...where.partition
      .filter(part => part.name !== 'idle')
      .map(part => row(part, word('parts', part.name).label)),
    ...where.idle_by_cause.map(part => row(part, causeWord(part.name).label, part.name)),
  ];
  return rows.filter(part => Math.max(part.aNs, part.bNs) >= least).sort(bySize);
}

/** Kernel time by kind, those that changed by a thousandth of the step or more. */
export function familyRows(comparison: Comparison): readonly WentRow[] {
  const least = Math.max(comparison.step.a_ns ?? 0, comparison.step.b_ns ?? 0) / 1000;
  return (comparison.where?.kernel_family ?? [])
    .map(part => row(part, familyLabel(part.name)))
    .filter(part => Math.abs(part.deltaNs) >= least)
    .sort(bySize);
}

/** The common name of an operator: autograd's own prefix says nothing. */
function operatorName(name: string): string {
  return name.replace(/^autograd::engine::evaluate_function: /, '').replace(/^aten::/, '');
}

/** GPU time by the operator that launched it: the changes of a thousandth of the step or more, ten
 *  at most, without what no operator launched. */
export function operatorRows(comparison: Comparison): readonly WentRow[] {
  const least = Math.max(comparison.step.a_ns ?? 0, comparison.step.b_ns ?? 0) / 1000;
  return (comparison.where?.operator ?? [])
    .filter(part => part.name !== '(no operator)')
    .map(part => row(part, operatorName(part.name)))
    .filter(part => Math.abs(part.deltaNs) >= least)
    .sort(bySize)
    .slice(0, 10);
}

/** Steps that are not training, one line per kind: "2.1 s → 2.3 s, 3 and 3 steps". */
export function kindRows(comparison: Comparison): readonly {
  readonly name: string;
  readonly aNs: number | undefined;
  readonly bNs: number | undefined;
  readonly counts: string;
}[] {
  return comparison.kinds
    .filter(it => it.kind !== 'train')
    .map(it => ({
      name: word('step_kinds', it.kind).label,
      aNs: it.a_mean_ns,
      bNs: it.b_mean_ns,
      counts: `${it.a_count} and ${it.b_count}`,
    }));
}

/** A diverging bar: where it starts and how wide it is, in percent of the room, the middle being 0. */
export function bar(
  deltaNs: number,
  scaleNs: number,
): {readonly left: number; readonly width: number} {
  const half = scaleNs > 0 ? Math.min(50, (50 * Math.abs(deltaNs)) / scaleNs) : 0;
  return {left: deltaNs < 0 ? 50 - half : 50, width: half};
}

export type Tone = 'good' | 'bad' | 'neutral';

/** Faster is good, slower is bad, undecided is neither. */
export function toneOf(verdict: string): Tone {
  return verdict === 'faster' ? 'good' : verdict === 'slower' ? 'bad' : 'neutral';
}

/** Two traces, the older one first: before and after. Undefined for any other number. */
export function beforeAndAfter(
  picked: readonly string[],
  traces: readonly {readonly id: string; readonly created_at: string}[],
): readonly [string, string] | undefined {
  const chosen = traces.filter(trace => picked.includes(trace.id));
  const [x, y] = chosen;
  if (!x || !y || chosen.length > 2) return undefined;
  // the list is newest first, which decides between traces of the same second
  const isInOrder = x.created_at < y.created_at;
  return isInOrder ? [x.id, y.id] : [y.id, x.id];
}
