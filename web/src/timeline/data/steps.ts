// Steps of a trace: which one a time lies in, which are unusually long. Where the device sets the
// pace, what the host does belongs to another stretch of time than what the device does. Pure: runs
// in node.

import type {Analysis, TracksInfo} from '../../api/types';

export interface Step {
  readonly index: number;
  readonly start: number;
  readonly dur: number;
  readonly hostStart: number;
  readonly hostDur: number;
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
        hostStart: steps.host_start_ns[index] ?? start,
        hostDur: steps.host_dur_ns[index] ?? steps.dur_ns[index] ?? 0,
        name: steps.name[index] ?? '',
      }))
      .sort((a, b) => a.start - b.start);
    this.outliers = outliersOf(this.all, analysis?.steps.outliers ?? []);
  }

  /** The step that `t` lies in: of the device, or between the host's marks. */
  at(t: number, isHost = false): Step | undefined {
    const start = (step: Step): number => (isHost ? step.hostStart : step.start);
    let lo = 0;
    let hi = this.all.length;
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (start(this.all[mid] as Step) <= t) lo = mid + 1;
      else hi = mid;
    }
    const step = this.all[lo - 1];
    return step && t < start(step) + (isHost ? step.hostDur : step.dur) ? step : undefined;
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
