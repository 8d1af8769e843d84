// Steps of a trace: which one a time lies in, which are unusually long. Pure: runs in node.

import type {Analysis, TracksInfo} from '../../api/types';

export interface Step {
  readonly index: number;
  readonly start: number;
  readonly dur: number;
  readonly name: string;
}

export class Steps {
  readonly all: readonly Step[];
  readonly outliers: readonly Step[];

  constructor(steps: TracksInfo['steps'], analysis: Analysis | undefined) {
    this.all = steps.start_ns
      .map((start, index) => ({
        index,
        start,
        dur: steps.dur_ns[index] ?? 0,
        name: steps.name[index] ?? '',
      }))
      .sort((a, b) => a.start - b.start);
    this.outliers = outliersOf(this.all, analysis?.steps.outliers ?? []);
  }

  /** The step that `t` lies in. */
  at(t: number): Step | undefined {
    let lo = 0;
    let hi = this.all.length;
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if ((this.all[mid] as Step).start <= t) lo = mid + 1;
      else hi = mid;
    }
    const step = this.all[lo - 1];
    return step && t < step.start + step.dur ? step : undefined;
  }

  /** The first outlier that starts after `t`, then from the front again. */
  outlierAfter(t: number): Step | undefined {
    return this.outliers.find(step => step.start > t) ?? this.outliers[0];
  }
}

// The diagnosis decides what is unusual (it knows the kinds of steps); it names them by index, by
// name or by start.
function outliersOf(all: readonly Step[], named: readonly unknown[]): Step[] {
  const found = new Set<Step>();
  for (const entry of named) {
    const step = stepOf(all, entry);
    if (step) found.add(step);
  }
  return [...found].sort((a, b) => a.start - b.start);
}

function stepOf(all: readonly Step[], entry: unknown): Step | undefined {
  if (typeof entry === 'number') return all.find(step => step.index === entry);
  if (typeof entry === 'string') return all.find(step => step.name === entry);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const fields = entry as Readonly<Record<string, unknown>>;
  const start = fields['start_ns'];
  if (typeof start === 'number') return all.find(step => step.start === start);
  for (const key of ['index', 'step', 'name']) {
    const value = fields[key];
    if (typeof value === 'number' || typeof value === 'string') return stepOf(all, value);
  }
  return undefined;
}
