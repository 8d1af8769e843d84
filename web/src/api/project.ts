// A project's runs over time: apart from the rest, for a page that most visits do not open.
import {bool, dict, list, num, obj, opt, or, str, type Infer} from '../base/shape';
import {getJson} from './client';

const changeShape = obj({pct: opt(num), low_pct: opt(num), high_pct: opt(num)});
const bandShape = obj({low: opt(num), mid: opt(num), high: opt(num)});

const comparedShape = obj({
  trace: str,
  verdict: str,
  headline: or(str, ''),
  why_not: or(str, ''),
  changed: or(str, ''),
  change_count: or(num, 0),
  is_one_change: or(bool, false),
  changes: or(list(obj({key: str, a: str, b: str, is_setting: or(bool, false)})), []),
  step: opt(changeShape),
  prediction: opt(
    obj({
      finding: str,
      change: or(str, ''),
      low_ns: num,
      mid_ns: num,
      high_ns: num,
      achieved_ns: num,
      is_within: bool,
      text: or(str, ''),
    }),
  ),
  result: opt(obj({is_known: bool, is_same: opt(bool), text: or(str, '')})),
});

const runShape = obj({
  trace: str,
  run: opt(str),
  trace_count: or(num, 1),
  name: or(str, ''),
  notes: or(opt(str), undefined),
  is_simulated: or(bool, false),
  recorded_at: or(str, ''),
  baseline: or(bool, false),
  pinned: or(bool, false),
  throughput_unit: opt(str),
  throughput_per_s: opt(num),
  step_mean_ns: opt(num),
  not_computing_pct: opt(num),
  gpu_hours: opt(num),
  gpu_hours_wasted: opt(num),
  energy_j: opt(num),
  mfu_pct: opt(num),
  regression: opt(
    obj({
      verdict: str,
      change_pct: opt(num),
      low_pct: opt(num),
      high_pct: opt(num),
      confidence: opt(num),
      visible_pct: opt(num),
      baseline_count: or(num, 0),
      same_settings: or(bool, false),
      lasting: opt(obj({run_count: num, change_pct: num, confidence: num})),
    }),
  ),
  facts: opt(
    obj({
      command: opt(str),
      commit: opt(str),
      metrics: or(list(obj({name: str, last: opt(num), best: opt(num), count: or(num, 0)})), []),
    }),
  ),
  from_previous: opt(comparedShape),
  person: opt(str),
  is_first: or(bool, false),
});
export type JournalRun = Infer<typeof runShape>;

const journalShape = obj({
  job: or(str, ''),
  jobs: or(list(obj({name: str, run_count: num})), []),
  run_count: num,
  pending: or(num, 0),
  baseline: opt(str),
  runs: list(runShape),
  next: opt(str),
  calibration: obj({count: num, ratio: opt(num), text: or(str, '')}),
  next_change: opt(
    obj({
      trace: str,
      finding: str,
      text: or(str, ''),
      gain_pct: bandShape,
      calibrated_pct: bandShape,
    }),
  ),
  stop: opt(obj({verdict: str, text: or(str, '')})),
  saved_pct: opt(num),
});
export type Journal = Infer<typeof journalShape>;

const sumsShape = obj({
  name: opt(str),
  run_count: num,
  gpu_hours: num,
  gpu_hours_wasted: num,
  mfu_pct: opt(num),
  mfu_gpu_hours: or(num, 0),
});
export type Sums = Infer<typeof sumsShape>;

const trendsShape = obj({
  pending: or(num, 0),
  weeks: list(
    obj({
      week: str,
      run_count: num,
      gpu_hours: num,
      gpu_hours_wasted: num,
      mfu_pct: opt(num),
      energy_j: opt(num),
      parts_gpu_hours: dict(num),
      people: list(sumsShape),
      jobs: list(sumsShape),
    }),
  ),
});
export type Trends = Infer<typeof trendsShape>;

const seriesShape = obj({
  job: or(str, ''),
  setting: opt(str),
  pending: or(num, 0),
  unit: opt(str),
  left_out_count: or(num, 0),
  has_ideal: or(bool, false),
  others_vary: or(bool, false),
  values: list(
    obj({
      value: str,
      number: opt(num),
      run_count: num,
      throughput_per_s: num,
      low_per_s: num,
      high_per_s: num,
      ideal_per_s: opt(num),
      of_ideal_pct: opt(num),
      grew: opt(obj({part: str, from_pct: num, to_pct: num})),
      traces: list(str),
    }),
  ),
  text: or(str, ''),
  varied: list(obj({setting: str, value_count: num, trace_count: num})),
});
export type Series = Infer<typeof seriesShape>;
export type SeriesValue = Series['values'][number];

const path = (name: string, what: string): string => `projects/${encodeURIComponent(name)}/${what}`;

export const getJournal = (
  name: string,
  query: {job?: string | undefined; after?: string | undefined; limit?: number},
  s?: AbortSignal,
) => getJson(path(name, 'journal'), journalShape, query, s);

export const getTrends = (name: string, s?: AbortSignal) =>
  getJson(path(name, 'trends'), trendsShape, {}, s);

export const getSeries = (
  name: string,
  query: {setting?: string | undefined; job?: string | undefined},
  s?: AbortSignal,
) => getJson(path(name, 'series'), seriesShape, query, s);
