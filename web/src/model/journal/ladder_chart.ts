// Runs in a row as a ladder: where each stands, and where it was predicted.

/** What the ladder needs to know of a run. */
export interface LadderRun {
  readonly throughput_per_s?: number | undefined;
  readonly throughput_unit?: string | undefined;
  readonly step_mean_ns?: number | undefined;
  readonly not_computing_pct?: number | undefined;
  readonly from_previous?:
    | {
        readonly prediction?:
          | {
              readonly low_ns: number;
              readonly mid_ns: number;
              readonly high_ns: number;
              readonly is_within: boolean;
            }
          | undefined;
      }
    | undefined;
}

export interface Rung {
  /** Undefined: no throughput was measured. */
  readonly perS: number | undefined;
  /** What the run before predicted for the change: low, mid and high throughput. */
  readonly predicted:
    {readonly low: number; readonly mid: number; readonly high: number} | undefined;
  readonly isWithin: boolean;
  readonly computingPct: number | undefined;
}

/** Oldest first. Steps become throughput by the run's own work a step. */
export function rungsOf(runs: readonly LadderRun[]): readonly Rung[] {
  return runs.map(run => {
    const perS = run.throughput_per_s;
    const prediction = run.from_previous?.prediction;
    const perStep =
      perS === undefined || run.step_mean_ns === undefined ? undefined : perS * run.step_mean_ns;
    return {
      perS,
      predicted:
        prediction === undefined || perStep === undefined
          ? undefined
          : {
              low: perStep / prediction.high_ns,
              mid: perStep / prediction.mid_ns,
              high: perStep / prediction.low_ns,
            },
      isWithin: prediction?.is_within ?? false,
      computingPct: run.not_computing_pct === undefined ? undefined : 100 - run.not_computing_pct,
    };
  });
}

/** The highest throughput that has to fit. */
export function topOf(rungs: readonly Rung[]): number {
  return Math.max(0, ...rungs.flatMap(rung => [rung.perS ?? 0, rung.predicted?.high ?? 0]));
}
