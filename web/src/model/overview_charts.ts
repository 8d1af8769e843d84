// What the charts of the overview draw, in numbers. Pure.
import type {Analysis, StepPoints, TrackInfo} from '../api/types';
import {CAUSES, type Cause} from '../base/causes';

export interface Layer {
  readonly cause: Cause;
  readonly values: readonly number[];
}

/** Step times from point to point: what computes and the rest below, each cause of waiting above. */
export interface StepBars {
  readonly startNs: readonly number[];
  readonly totalNs: readonly number[];
  /** The longest of the steps that a point stands for. */
  readonly maxNs: readonly number[];
  readonly layers: readonly Layer[];
  readonly per: number;
  readonly topNs: number;
}

export function stepBars(points: StepPoints): StepBars {
  const {mean_ns: mean, max_ns: max, start_ns: start, per, count} = points;
  const waiting = points.waiting?.steps ?? {};
  const stepsIn = (i: number): number => Math.max(1, Math.min(per, count - i * per));
  const layers = CAUSES.flatMap((cause): Layer[] => {
    const values = waiting[cause];
    return values === undefined
      ? []
      : [{cause, values: values.map((value, i) => value / stepsIn(i))}];
  });
  return {
    startNs: start,
    totalNs: mean,
    maxNs: max,
    layers,
    per,
    topNs: Math.max(0, ...max),
  };
}

/** Points whose steps take a tenth more than the median, the longest first. */
export function longPoints(bars: StepBars, medianNs: number | undefined): readonly number[] {
  if (medianNs === undefined || medianNs <= 0) return [];
  return bars.maxNs
    .flatMap((value, i) => (value > 1.1 * medianNs ? [i] : []))
    .sort((a, b) => (bars.maxNs[b] ?? 0) - (bars.maxNs[a] ?? 0));
}

/** Shares of each part of the recording in which the device was idle, by cause. */
export function idleShares(points: StepPoints): readonly Layer[] {
  const waiting = points.waiting;
  if (!waiting || waiting.bin_ns <= 0) return [];
  return CAUSES.flatMap((cause): Layer[] => {
    const values = waiting.bins[cause];
    return values === undefined
      ? []
      : [{cause, values: values.map(value => Math.min(1, value / waiting.bin_ns))}];
  });
}

/** Share of the recording, in percent, in which the device was idle for any of these causes. */
export function idlePct(points: StepPoints, durationNs: number): number {
  const binNs = points.waiting?.bin_ns ?? 0;
  const bins = idleShares(points).flatMap(layer => layer.values);
  return durationNs <= 0 ? 0 : (100 * binNs * bins.reduce((a, b) => a + b, 0)) / durationNs;
}

/** Causes that can be seen in a chart: with a part in two hundred of all waiting, or more. */
export function seenCauses(layers: readonly Layer[]): readonly Cause[] {
  const sums = layers.map(layer => layer.values.reduce((sum, value) => sum + value, 0));
  const all = sums.reduce((sum, value) => sum + value, 0);
  return layers.flatMap((layer, i) => ((sums[i] ?? 0) * 200 >= all ? [layer.cause] : []));
}

export interface WorkerPoint {
  readonly workers: number;
  readonly stepNs: number;
  /** With a batch that takes as long as one in twenty does. */
  readonly slowNs: number;
}

export interface WorkersChart {
  readonly points: readonly WorkerPoint[];
  readonly today: number;
  readonly advised: number | undefined;
  /** What the step takes without a wait for data. */
  readonly floorNs: number;
  /** That is of the thread that pins batches, not of the rest of the step. */
  readonly pins: boolean;
  /** Slow batches take so much longer that it is seen. */
  readonly hasBand: boolean;
}

const WORKERS_MAX = 64;

/** Step time by the number of workers: a batch is ready every fetch / workers, one thread may pin all of
 *  them, a step takes one or several, and none is shorter than what it does besides. Undefined where the loader was not recorded. */
export function workersChart(analysis: Analysis): WorkersChart | undefined {
  const loader = analysis.dataloader;
  const today = loader?.num_workers ?? loader?.num_workers_inferred;
  const batches = loader?.batches_per_step ?? 1;
  const fetchNs = batches * (loader?.fetch_mean_ns ?? loader?.fetch_ns_inferred ?? 0);
  const ownNs = analysis.steps.without_starvation_ns;
  if (!loader || !today || !fetchNs || !ownNs || ownNs <= 0 || today > WORKERS_MAX)
    return undefined;
  const pinNs = batches * (loader.pin_mean_ns ?? 0);
  const floorNs = Math.max(ownNs, pinNs);
  const advised = loader?.recommended_num_workers;
  const last = Math.min(
    WORKERS_MAX,
    Math.max(today, advised ?? 0, Math.ceil(fetchNs / floorNs)) + 2,
  );
  const slow = Math.max(fetchNs, batches * (loader.fetch_p95_ns ?? 0));
  const points = Array.from({length: last}, (_, i) => ({
    workers: i + 1,
    stepNs: Math.max(floorNs, fetchNs / (i + 1)),
    slowNs: Math.max(floorNs, slow / (i + 1)),
  }));
  return {points, today, advised, floorNs, pins: pinNs > ownNs, hasBand: slow > 1.02 * fetchNs};
}

export interface Rung {
  readonly brief: string;
  readonly fromNs: number;
  readonly toNs: number;
  readonly gainPct: number;
  /** Of the finding that is about it; a later rung may come of none that is there today. */
  readonly findingId: string | undefined;
}

/** What to change, in this order, each with the step time that it leaves. */
export function ladderOf(analysis: Analysis): readonly Rung[] {
  let fromNs: number | undefined = analysis.steps.mean_ns;
  return analysis.plan.flatMap((step): Rung[] => {
    const before = fromNs;
    fromNs = step.step_ns;
    return before === undefined || step.step_ns <= 0
      ? []
      : [
          {
            brief: step.brief,
            fromNs: before,
            toNs: step.step_ns,
            gainPct: step.gain_pct,
            findingId: analysis.findings.find(finding => finding.brief === step.brief)?.id,
          },
        ];
  });
}

const COUNTERS_MAX = 12;

/** The counter of the memory that tensors take; where there is nothing else than counters, all of them. */
export function chartedTracks(
  tracks: readonly TrackInfo[],
  hasOnlyCounters: boolean,
): readonly TrackInfo[] {
  const counters = tracks.filter(track => track.kind === 'counter' && track.count > 1);
  if (hasOnlyCounters) return counters.slice(0, COUNTERS_MAX);
  const memory =
    counters.find(track => /memory.*alloc|alloc.*memory|tensors/i.test(track.name)) ??
    counters.find(track => /gpu.*memory|memory.*(used|gpu)/i.test(track.name));
  return memory ? [memory] : [];
}

const UNITS: Readonly<Record<string, number>> = {B: 1, kB: 1e3, MB: 1e6, GB: 1e9, MiB: 2 ** 20};

/** What a counter is called without its unit, and how many bytes that is; undefined: it is not of memory. */
export function memoryUnit(name: string): {
  readonly title: string;
  readonly bytes: number | undefined;
} {
  const unit = / \((\w+)\)$/.exec(name);
  const bytes = UNITS[unit?.[1] ?? ''];
  return bytes === undefined || !unit
    ? {title: name, bytes: /memory|alloc|tensors/i.test(name) ? 1 : undefined}
    : {title: name.slice(0, unit.index), bytes};
}
