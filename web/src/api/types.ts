// Mirror of server/api/README.md. Each shape is checked where a reply comes in; `null` is
// `undefined` from here on. Times are Ns since the trace's start, absolute ones texts.
import {CAUSES} from '../base/causes';
import {ns, type Ns} from '../base/units';
import {WORD_GROUPS, type Vocabulary, type Word, type WordGroup} from '../base/vocabulary';
import {
  any,
  bool,
  dict,
  list,
  num,
  obj,
  oneOf,
  opt,
  or,
  str,
  tuple,
  type Infer,
  type Shape,
} from '../base/shape';

export const time: Shape<Ns> = (value, path) => ns(num(value, path));

export const errorShape = obj({error: obj({code: str, message: str})});

// ---- traces

const progressShape = obj({
  done_bytes: or(num, 0),
  total_bytes: or(num, 0),
  bytes_per_s: or(num, 0),
  events: or(num, 0),
  eta_s: opt(num),
});

const summaryShape = obj({
  cause: or(str, 'unknown'),
  letter: or(str, '?'),
  text: or(str, ''),
  step_mean_ns: opt(time),
  throughput_per_s: opt(num),
  throughput_unit: or(str, 'steps'),
  not_computing_pct: opt(num),
  next_change: opt(str),
  gain_mid_pct: opt(num),
  gain_low_pct: opt(num),
  gain_high_pct: opt(num),
  model: or(str, ''),
});

const importReportShape = obj({
  dropped_count: or(num, 0),
  repaired_count: or(num, 0),
  lines: or(
    list(
      obj({
        code: or(str, ''),
        severity: or(str, 'info'),
        count: or(num, 0),
        first_offset_bytes: opt(num),
        text: or(str, ''),
      }),
    ),
    [],
  ),
});

export const traceShape = obj({
  id: str,
  name: or(str, ''),
  project: or(str, ''),
  file_name: opt(str), // where somebody renamed it
  notes: or(str, ''),
  tags: or(list(str), []),
  state: str,
  created_at: or(str, ''),
  size_bytes: or(num, 0),
  run: opt(str),
  rank: opt(num),
  host: opt(str),
  simulated: or(bool, false),
  progress: opt(progressShape),
  error: opt(
    obj({
      code: or(str, ''),
      message: or(str, ''),
      fault: or(str, 'file'),
      can_retry: or(bool, false),
    }),
  ),
  generation: or(num, 1),
  event_count: or(num, 0),
  slice_count: or(num, 0),
  duration_ns: or(time, ns(0)),
  t0_ns: or(str, '0'),
  format: or(str, ''),
  device_count: or(num, 0),
  device_names: or(list(str), []),
  summary: opt(summaryShape),
  import_report: opt(importReportShape),
});
export type TraceInfo = Infer<typeof traceShape>;
export type TraceSummary = Infer<typeof summaryShape>;

export const traceListShape = obj({traces: list(traceShape), next: opt(str)});
/** Jobs that hang now, as their launchers say. */
export const hangListShape = obj({
  hangs: list(
    obj({upload: str, name: str, since: str, after_s: num, doing: str, others: or(str, '')}),
  ),
});

export const deletedShape = obj({id: str});
export const createdShape = obj({id: str, state: or(str, 'importing')});

/** Steps of the whole recording, `per` of them a point. */
export const stepPointsShape = obj({
  count: or(num, 0),
  per: or(num, 1),
  start_ns: or(list(time), []),
  mean_ns: or(list(time), []),
  max_ns: or(list(time), []),
  waiting: opt(
    obj({
      device: or(num, 0),
      steps: or(dict(list(num)), {}),
      bin_ns: or(num, 0),
      bins: or(dict(list(num)), {}),
    }),
  ),
});
export type StepPoints = Infer<typeof stepPointsShape>;

// ---- runs

export const runShape = obj({
  id: str,
  name: or(str, ''),
  project: or(str, ''),
  created_at: or(str, ''),
  trace_count: or(num, 0),
  ready_count: or(num, 0),
  failed_count: or(num, 0),
  event_count: or(num, 0),
});
export type RunInfo = Infer<typeof runShape>;
export const runListShape = obj({runs: list(runShape), next: opt(str)});

// ---- what findings mean

const findingRow = {id: str, title: or(str, ''), cause: or(str, ''), effort: or(str, '')};
export const findingListShape = obj({findings: list(obj(findingRow))});
export const findingDocumentShape = obj({...findingRow, markdown: or(str, '')});
export type FindingDocument = Infer<typeof findingDocumentShape>;

// ---- tracks

const stepsShape = obj({
  start_ns: or(list(time), []),
  dur_ns: or(list(time), []),
  host_start_ns: or(list(time), []), // between the host's marks, where the device sets the pace
  host_dur_ns: or(list(time), []),
  name: or(list(str), []),
});

const trackShape = obj({
  index: num,
  kind: str,
  process: opt(num),
  name: or(str, ''),
  id: or(str, ''),
  device: opt(num),
  sort_index: or(num, 0),
  lanes: or(num, 1),
  /** Lanes of frames that span all of the row, with those between them. */
  outer_lanes: or(num, 0),
  count: or(num, 0),
  role: opt(str),
});
export type TrackInfo = Infer<typeof trackShape>;

const processShape = obj({
  index: num,
  pid: or(str, ''),
  name: or(str, ''),
  labels: or(str, ''),
  sort_index: or(num, 0),
});

export const tracksShape = obj({
  generation: or(num, 1),
  duration_ns: or(time, ns(0)),
  processes: or(list(processShape), []),
  tracks: or(list(trackShape), []),
  devices: or(
    list(
      obj({
        id: num,
        name: or(str, ''),
      }),
    ),
    [],
  ),
  steps: or(stepsShape, {
    start_ns: [],
    dur_ns: [],
    host_start_ns: [],
    host_dur_ns: [],
    name: [],
  }),
  next: opt(str),
});
export type TracksPage = Infer<typeof tracksShape>;
export type TracksInfo = Omit<TracksPage, 'next'>;

/** Pages of one trace's tracks, in order and at least one, as if they were one reply. */
export function joinTracks(pages: readonly TracksPage[]): TracksInfo {
  const [first, ...rest] = pages;
  if (first === undefined) throw new RangeError('no pages');
  if (rest.length === 0) return first;
  return {
    ...first,
    processes: pages.flatMap(page => page.processes),
    tracks: pages.flatMap(page => page.tracks),
    devices: pages.flatMap(page => page.devices),
    steps: {
      start_ns: pages.flatMap(page => page.steps.start_ns),
      dur_ns: pages.flatMap(page => page.steps.dur_ns),
      host_start_ns: pages.flatMap(page => page.steps.host_start_ns),
      host_dur_ns: pages.flatMap(page => page.steps.host_dur_ns),
      name: pages.flatMap(page => page.steps.name),
    },
  };
}

export const namesShape = obj({names: list(tuple(num, str)), next: opt(num)});

export const counterShape = obj({
  ts_ns: list(time),
  min: list(num),
  max: list(num),
  last: list(num),
  /** Over time; older servers do not tell. */
  mean: opt(num),
});
export type CounterSamples = Omit<Infer<typeof counterShape>, 'mean'>;

// ---- slices

export const sliceShape = obj({
  id: num,
  track: num,
  lane: or(num, 0),
  kind: or(str, 'other'),
  name: or(str, ''),
  name_id: or(num, 0),
  short: or(str, ''),
  start_ns: time,
  dur_ns: time,
  corr: or(num, 0),
  link: opt(num),
  step: opt(any),
  parent: opt(num),
  children: or(num, 0),
  args: or(dict(any), {}),
  kernel: opt(
    obj({
      grid: or(list(num), []),
      block: or(list(num), []),
      registers: opt(num),
      shared_memory_bytes: opt(num),
      occupancy_pct: opt(num),
      graph_node_id: opt(str),
      module: opt(str),
    }),
  ),
  copy: opt(
    obj({
      kind: or(str, ''),
      src: or(str, ''),
      dst: or(str, ''),
      bytes: opt(num),
      gb_per_s: opt(num),
    }),
  ),
  loader: opt(obj({batch: opt(num), worker: opt(num), cpu_ns: opt(time)})),
  same_name: opt(obj({count: num, total_ns: time, per_step: opt(num)})),
  prev: opt(num),
  next: opt(num),
});
export type SliceInfo = Infer<typeof sliceShape>;
export const slicesShape = obj({slices: list(sliceShape), next: opt(str)});

export const searchShape = obj({
  total: num,
  hits: list(
    obj({
      slice: num,
      track: num,
      start_ns: time,
      dur_ns: time,
      name_id: or(num, 0),
      name: or(str, ''),
      kind: or(str, 'other'),
    }),
  ),
  bins: or(list(num), []),
  next: opt(str),
});
export type SearchReply = Infer<typeof searchShape>;

// ---- tables

const kernelRowShape = obj({
  name_id: or(num, 0),
  name: str,
  short: or(str, ''),
  family: or(str, ''),
  count: num,
  total_ns: time,
  mean_ns: opt(time),
  min_ns: opt(time),
  max_ns: opt(time),
  longest_slice: opt(num),
});
export type KernelRow = Infer<typeof kernelRowShape>;
export const kernelsShape = obj({
  total: num,
  kernels: list(kernelRowShape),
  next: opt(str),
});

const gapShape = obj({
  start_ns: time,
  dur_ns: time,
  device: or(num, 0),
  cause: or(str, 'unattributed'),
  cause_ns: or(dict(opt(num)), {}),
  root_cause: opt(str),
  wait_slice: opt(num),
  batch_slice: opt(num),
  ended_by: opt(num),
  signature: opt(num),
  per_step: opt(num),
});
export type GapInfo = Infer<typeof gapShape>;
export const gapsShape = obj({total: num, gaps: list(gapShape), next: opt(str)});

const areaNameShape = obj({
  name_id: num,
  name: str,
  short: or(str, ''),
  kind: or(str, 'other'),
  count: num,
  total_ns: time,
  self_ns: time,
  mean_ns: time,
  max_ns: time,
  longest_slice: num,
});
export type AreaName = Infer<typeof areaNameShape>;
const areaDeviceShape = obj({
  id: num,
  span_ns: time,
  busy_ns: time,
  computing_ns: opt(time),
  idle_ns: time,
  idle_by_cause_ns: or(dict(opt(num)), {}),
  kinds: list(obj({kind: str, count: num, total_ns: time})),
});
export type AreaDevice = Infer<typeof areaDeviceShape>;
export const areaShape = obj({
  slice_count: num,
  name_count: num,
  names: list(areaNameShape),
  next: opt(str),
  tracks: list(obj({track: num, count: num, total_ns: time})),
  devices: list(areaDeviceShape),
});
export type AreaInfo = Infer<typeof areaShape>;

// ---- flame

export const flameShape = obj({
  metric: str,
  by: str,
  t0_ns: or(time, ns(0)),
  t1_ns: or(time, ns(0)),
  steps: or(num, 0),
  total_ns: or(num, 0),
  /** What lengths count where they are no times ("samples"), and the length of one. */
  unit: or(str, ''),
  unit_ns: or(num, 1),
  nodes: obj({
    name: list(str),
    parent: list(num),
    value_ns: list(num),
    self_ns: list(num),
    count: list(num),
    kind: list(or(str, '')),
    depth: list(num),
  }),
});
export type FlameReply = Infer<typeof flameShape>;

// ---- what people call things

const wordShape: Shape<Word> = obj({
  id: str,
  letter: str,
  label: str,
  short: str,
  waits: str,
  definition: str,
});
const wordsShape = list(wordShape);
export const vocabularyShape: Shape<Vocabulary> = obj(
  Object.fromEntries(WORD_GROUPS.map(group => [group, wordsShape])) as Record<
    WordGroup,
    typeof wordsShape
  >,
);

// ---- analysis (lacuna.analysis/1)

const evidenceShape = obj({
  track: or((v: unknown, p: string) => (typeof v === 'number' ? String(v) : str(v, p)), ''),
  t0_ns: time,
  t1_ns: time,
  text: or(str, ''),
  slice: opt(num),
});
export type Evidence = Infer<typeof evidenceShape>;

/** What a part of a finding is for: pasted, run, or read. */
const kindShape = oneOf(['code', 'command', 'text']);

// undefined in analyses of older versions: shown as plain text, without a mark
const findingShape = obj({
  id: str,
  cause: oneOf([...CAUSES, 'gpu']),
  severity: or(str, 'info'),
  cost_ns_per_step: opt(num),
  cost_pct: opt(num),
  gain_pct: opt(obj({low: opt(num), mid: opt(num), high: opt(num)})),
  step_ns: opt(obj({mid: opt(num)})),
  confidence: opt(num),
  title: or(str, ''),
  why: or(str, ''),
  change: or(str, ''),
  change_kind: kindShape,
  effort: oneOf(['setting', 'lines', 'rewrite', 'hardware']),
  where: or(str, ''),
  brief: or(str, ''),
  expect: or(str, ''),
  costs: or(str, ''),
  wrong_if: or(str, ''),
  check: or(str, ''),
  check_kind: kindShape,
  evidence: or(list(evidenceShape), []),
});
export type Finding = Infer<typeof findingShape>;

const deviceAnalysisShape = obj({
  id: num,
  name: or(str, ''),
  first_ns: opt(time),
  span_ns: opt(time),
  busy_ns: opt(time),
  idle_ns: opt(time),
  busy_pct: opt(num),
  not_computing_pct: opt(num),
  partition_ns: or(dict(opt(num)), {}),
  gaps: opt(
    obj({
      count_10us: or(num, 0),
      total_10us_ns: or(num, 0),
      longest_ns: or(num, 0),
    }),
  ),
  idle_by_cause_ns: or(dict(opt(num)), {}),
});
export type DeviceAnalysis = Infer<typeof deviceAnalysisShape>;

/** Where the time of a device goes: parts that sum to the whole, of a step or of the recording. */
const partitionShape = obj({
  per: or(str, 'recording'),
  device: or(num, 0),
  total_ns: or(time, ns(0)),
  parts_ns: or(dict(opt(num)), {}),
});

const stepKindShape = obj({
  kind: or(str, 'other'),
  count: or(num, 0),
  own_ns: or(time, ns(0)),
  why: or(str, ''),
  text: or(str, ''),
});

const phaseShape = obj({
  name: or(str, 'other'),
  start_ns: or(time, ns(0)),
  dur_ns: or(time, ns(0)),
});

export const analysisShape = obj({
  schema: str,
  trace: obj({
    name: or(str, ''),
    format: or(str, ''),
    event_count: or(num, 0),
    slice_count: or(num, 0),
    dropped_count: or(num, 0),
    repaired_count: or(num, 0),
    t0_ns: or(str, '0'),
    duration_ns: or(time, ns(0)),
    timeline: or(bool, true),
  }),
  verdict: obj({cause: or(str, 'unknown'), text: or(str, ''), detail: or(str, '')}),
  throughput: or(
    obj({
      unit: or(str, 'steps'),
      per_s: opt(num),
      batch_size: opt(num),
      padding_pct: opt(num),
    }),
    {unit: 'steps', per_s: undefined, batch_size: undefined, padding_pct: undefined},
  ),
  needs_ns: or(dict(opt(num)), {}),
  devices: or(list(deviceAnalysisShape), []),
  partition: opt(partitionShape),
  steps: or(
    obj({
      method: or(str, ''),
      count: or(num, 0),
      kept_count: or(num, 0),
      mean_ns: opt(time),
      median_ns: opt(time),
      p95_ns: opt(time),
      without_starvation_ns: opt(num),
      uncertain_pct: opt(num),
      outliers: or(list(any), []),
      kinds: or(list(stepKindShape), []),
    }),
    {
      method: '',
      count: 0,
      kept_count: 0,
      mean_ns: undefined,
      median_ns: undefined,
      p95_ns: undefined,
      without_starvation_ns: undefined,
      uncertain_pct: undefined,
      outliers: [],
      kinds: [],
    },
  ),
  phases: or(list(phaseShape), []),
  kernels: opt(obj({count: or(num, 0), total_ns: opt(num), unknown_pct: opt(num)})),
  python_samples: opt(
    obj({
      hz: num,
      samples: num,
      idle_samples: or(num, 0),
      text: or(str, ''),
      lines: or(list(obj({function: str, place: str, samples: num, idle_samples: num})), []),
    }),
  ),
  efficiency: opt(
    obj({
      mfu_pct: opt(num),
      source: or(str, ''),
      why_not: or(str, ''),
      text: or(str, ''),
      kernels: or(list(obj({name: str, flops: opt(num), pct_of_peak: opt(num)})), []),
    }),
  ),
  memory: opt(
    obj({
      is_relative: or(bool, false),
      peak_bytes: num,
      peak_ns: num,
      reserved_bytes: opt(num),
      device_bytes: opt(num),
      peak_in: or(str, ''),
      held: or(list(obj({name: str, bytes: num})), []),
    }),
  ),
  copies: or(
    list(
      obj({
        kind: or(str, ''),
        src: or(str, ''),
        dst: or(str, ''),
        count: or(num, 0),
        bytes: opt(num),
        total_ns: opt(num),
      }),
    ),
    [],
  ),
  dataloader: opt(
    obj({
      num_workers: opt(num),
      num_workers_inferred: opt(num),
      fetch_mean_ns: opt(num),
      fetch_p95_ns: opt(num),
      fetch_ns_inferred: opt(num),
      recommended_num_workers: opt(num),
      batches_per_step: opt(num),
      pin_mean_ns: opt(num),
    }),
  ),
  settings: or(dict(any), {}),
  findings: or(list(findingShape), []),
  plan: or(list(obj({brief: or(str, ''), step_ns: or(num, 0), gain_pct: or(num, 0)})), []),
  checked_fine: or(list(str), []),
  not_recorded: or(list(str), []),
  caveats: or(list(str), []),
});
export type Analysis = Infer<typeof analysisShape>;

/** lacuna.run/1, without the analyses of the ranks. */
export const runAnalysisShape = obj({
  schema: str,
  ranks: or(
    list(
      obj({
        rank: num,
        host: or(str, ''),
        trace: opt(str),
        collective_wait_ns: opt(num),
        collective_wait_ns_per_step: opt(num),
        collectives_entered_last: opt(num),
      }),
    ),
    [],
  ),
  collectives_matched: or(num, 0),
  late_rank: opt(num),
  findings: or(list(findingShape), []),
  note: or(str, ''),
});
export type RunAnalysis = Infer<typeof runAnalysisShape>;

// ---- ranks in one picture

const stripPartsShape = obj({total_ns: num, parts: list(num)});
export type StripParts = Infer<typeof stripPartsShape>;

const stripShape = {
  duration_ns: num,
  device: opt(num),
  work: opt(dict(stripPartsShape)),
  waiting: opt(dict(stripPartsShape)),
};
const stripWindow = {t0_ns: num, t1_ns: num, points: num};
export const stripOfTraceShape = obj({
  ...stripShape,
  ...stripWindow,
  kinds: opt(dict(stripPartsShape)),
});
export type Strip = Infer<typeof stripOfTraceShape>;

export const runStripsShape = obj({
  ...stripWindow,
  duration_ns: num,
  ranks: list(
    obj({
      ...stripShape,
      trace: str,
      rank: num,
      clock: or(str, 'none'),
      offset_ns: num,
    }),
  ),
});
export type RunStrips = Infer<typeof runStripsShape>;

export const runCollectivesShape = obj({
  total: num,
  collectives: list(
    obj({
      index: num,
      kind: str,
      name: str,
      end_ns: num,
      ranks: list(num),
      dur_ns: list(num),
      start_ns: list(num),
      last: opt(num),
      late_ns: opt(num),
    }),
  ),
});
export type RunCollectives = Infer<typeof runCollectivesShape>;
export type RunCollective = RunCollectives['collectives'][number];

// ---- comparisons and reports

const comparedShape = obj({
  id: opt(str),
  name: or(str, ''),
  simulated: or(bool, false),
  cause: or(str, 'unknown'),
  letter: or(str, '?'),
  text: or(str, ''),
  kept_steps: or(num, 0),
  step_mean_ns: opt(num),
  throughput_per_s: opt(num),
  throughput_unit: or(str, 'steps'),
  not_computing_pct: opt(num),
});
export type Compared = Infer<typeof comparedShape>;

const whereRowShape = obj({name: str, a_ns: num, b_ns: num, delta_ns: num});
export type WhereRow = Infer<typeof whereRowShape>;

/** One run as a whole. */
const comparedRunShape = obj({
  count: num,
  late_rank: opt(num),
  text: or(str, ''),
});
export type ComparedRun = Infer<typeof comparedRunShape>;

const comparedFindingShape = obj({id: str, title: or(str, ''), brief: or(str, '')});
export type ComparedFinding = Infer<typeof comparedFindingShape>;

export const comparisonShape = obj({
  schema: str,
  a: comparedShape,
  b: comparedShape,
  verdict: str,
  text: or(str, ''),
  why_not: or(str, ''),
  refusal: opt(str),
  step: obj({
    a_ns: opt(num),
    b_ns: opt(num),
    delta_ns: opt(num),
    change_pct: opt(num),
    low_pct: opt(num),
    high_pct: opt(num),
  }),
  throughput: obj({
    unit: or(str, 'steps'),
    a_per_s: opt(num),
    b_per_s: opt(num),
    change_pct: opt(num),
    low_pct: opt(num),
    high_pct: opt(num),
  }),
  changed: obj({
    text: or(str, ''),
    count: or(num, 0),
    one_change: or(bool, false),
    differences: or(
      list(
        obj({
          key: str,
          a: or(str, ''),
          b: or(str, ''),
          kind: or(str, ''),
          recorded: or(bool, true),
        }),
      ),
      [],
    ),
  }),
  predicted: opt(
    obj({
      change: or(str, ''),
      is_the_change: or(bool, false),
      step_ns: obj({low: opt(num), mid: opt(num), high: opt(num)}),
      achieved_ns: opt(num),
      within_band: or(bool, false),
      text: or(str, ''),
    }),
  ),
  result: opt(obj({metric: opt(str), same: opt(bool), text: or(str, '')})),
  kinds: or(
    list(
      obj({
        kind: str,
        a_count: num,
        b_count: num,
        a_mean_ns: opt(num),
        b_mean_ns: opt(num),
      }),
    ),
    [],
  ),
  ranks: opt(
    obj({
      a: comparedRunShape,
      b: comparedRunShape,
      shared: list(
        obj({
          rank: num,
          a_step_mean_ns: opt(num),
          b_step_mean_ns: opt(num),
          a_collective_wait_ns_per_step: opt(num),
          b_collective_wait_ns_per_step: opt(num),
        }),
      ),
    }),
  ),
  where: opt(
    obj({
      partition: list(whereRowShape),
      idle_by_cause: list(whereRowShape),
      kernel_family: list(whereRowShape),
      operator: or(list(whereRowShape), []),
    }),
  ),
  findings: obj({
    gone: or(list(comparedFindingShape), []),
    come: or(list(comparedFindingShape), []),
    stayed: or(list(comparedFindingShape), []),
  }),
});
export type Comparison = Infer<typeof comparisonShape>;

export const reportContentsShape = obj({
  contains: list(obj({kind: str, count: or(num, 0), items: or(list(str), [])})),
});
export type ReportContents = Infer<typeof reportContentsShape>;
