// What the overview shows, made from the analysis. Pure.
import type {Analysis, DeviceAnalysis, Finding, KernelRow} from '../api/types';
import {CAUSES, type Cause} from '../base/causes';

// ---- what each part needs for one step, on its own

export interface Need {
  readonly key: string;
  readonly label: string;
  readonly definition: string;
  /** Cause that this part makes the GPU wait for; undefined for the GPU itself. */
  readonly cause: Cause | undefined;
  readonly needNs: number | undefined;
  readonly isLongest: boolean;
}

const NEED_PARTS: readonly Omit<Need, 'needNs' | 'isLongest'>[] = [
  {
    key: 'data',
    label: 'Data loading',
    cause: 'data_wait',
    definition: 'Time from one ready batch to the next if nothing else held the loader up.',
  },
  {
    key: 'gpu',
    label: 'GPU kernels',
    cause: undefined,
    definition: 'Time in which computing kernels run, communication not counted.',
  },
  {
    key: 'copies',
    label: 'Copies',
    cause: 'copy_wait',
    definition: 'Time in which memory is copied between host and device.',
  },
  {
    key: 'host',
    label: 'Host',
    cause: 'host',
    definition: 'Time the launching thread needs for its own work, waiting left out.',
  },
  {
    key: 'comm',
    label: 'Other ranks',
    cause: 'comm',
    definition: 'Time in which communication kernels run.',
  },
];

/** All five parts in a fixed order; what was not recorded has no need. */
export function needsOf(analysis: Analysis): readonly Need[] {
  const values = NEED_PARTS.map(part => analysis.needs_ns[part.key]);
  const longest = Math.max(0, ...values.filter(v => v !== undefined));
  return NEED_PARTS.map((part, index) => {
    const needNs = values[index];
    return {...part, needNs, isLongest: needNs !== undefined && needNs > 0 && needNs === longest};
  });
}

const NEED_NAMES: Readonly<Record<string, string>> = {
  data: 'data loading',
  gpu: 'the GPU kernels',
  copies: 'the copies',
  host: 'the host',
  comm: 'the other ranks',
};

export function hasNeeds(analysis: Analysis): boolean {
  return needsOf(analysis).some(need => need.needNs !== undefined);
}

/** A part that fills this much of the step is its limit. */
const LIMIT_SHARE = 0.93;

/** The part that a verdict is about. */
const VERDICT_PARTS: Readonly<Record<string, string>> = {
  data_wait: 'data',
  gpu: 'gpu',
  copy_wait: 'copies',
  comm: 'comm',
  host: 'host',
  launch: 'host',
  sync: 'host',
};

/**
 * One sentence below the bars, or undefined when nothing can be said: the bars are sums, the
 * verdict looked at the order of things, so they do not speak against it.
 */
export function needsSentence(analysis: Analysis): string | undefined {
  const stepNs = analysis.steps.mean_ns;
  const known = needsOf(analysis).filter(need => (need.needNs ?? 0) > 0);
  const longest = known.find(need => need.isLongest);
  if (stepNs === undefined || stepNs <= 0 || !longest || known.length < 2) return undefined;
  const name = NEED_NAMES[longest.key] ?? longest.label;
  if ((longest.needNs ?? 0) >= LIMIT_SHARE * stepNs)
    return VERDICT_PARTS[analysis.verdict.cause] === longest.key
      ? `The longest part is the limit: ${name}.`
      : undefined;
  return `No part fills the step on its own; some of them run one after another. The longest is ${name}.`;
}

/** Nice end of an axis that holds `max`, and the distance of its marks. */
export function axisOf(max: number, marks = 6): {readonly end: number; readonly step: number} {
  if (!(max > 0)) return {end: 1, step: 1};
  const raw = max / marks;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 2.5, 5, 10].find(m => m * power >= raw * 0.999) ?? 10) * power;
  return {end: Math.max(max, step), step};
}

// ---- where a device's time went

export interface Segment {
  readonly key: string;
  readonly label: string;
  readonly definition: string;
  readonly cause: Cause | undefined;
  readonly valueNs: number;
  /** Of the device's span, in percent. */
  readonly percent: number;
}

const BUSY_PARTS = [
  {
    key: 'compute',
    label: 'computing',
    definition: 'At least one computing kernel runs.',
  },
  {
    key: 'exposed_comm',
    label: 'communication',
    definition: 'Communication runs and no computing kernel hides it.',
  },
  {
    key: 'exposed_copy',
    label: 'copies',
    definition: 'A copy runs and neither computing nor communication hides it.',
  },
  {
    key: 'exposed_memset',
    label: 'memory sets',
    definition: 'Only a memory set runs.',
  },
] as const;

/** Parts of the device's span: working first, then waiting by cause, the longest first. */
export function segmentsOf(
  device: DeviceAnalysis,
  labels: (cause: Cause) => CauseWords,
): Segment[] {
  const span = device.span_ns ?? 0;
  if (span <= 0) return [];
  const make = (
    key: string,
    words: CauseWords,
    cause: Cause | undefined,
    valueNs: number | undefined,
  ): Segment => ({
    key,
    label: words.label,
    definition: words.definition,
    cause,
    valueNs: valueNs ?? 0,
    percent: (100 * (valueNs ?? 0)) / span,
  });
  const busy = BUSY_PARTS.map(part =>
    make(part.key, part, undefined, device.partition_ns[part.key]),
  );
  const idle = CAUSES.map(cause =>
    make(cause, labels(cause), cause, device.idle_by_cause_ns[cause]),
  ).sort((a, b) => b.valueNs - a.valueNs);
  return [...busy, ...idle].filter(segment => segment.valueNs > 0);
}

export interface CauseWords {
  readonly label: string;
  readonly definition: string;
}

// ---- GPU time by kind of work

export interface KindShare {
  readonly key: string;
  readonly label: string;
  readonly valueNs: number;
  readonly count: number;
  readonly percent: number;
}

/** Families of the server's name tables; one it adds later is shown by its own name. */
const FAMILY_LABELS: Readonly<Record<string, string>> = {
  gemm: 'matrix products',
  conv: 'convolution',
  attention: 'attention',
  norm: 'normalization',
  softmax: 'softmax and loss',
  optimizer: 'optimizer',
  reduce: 'reductions',
  index: 'indexing',
  elementwise: 'elementwise',
  rng: 'random numbers',
  triton: 'compiler-made',
  fill: 'fills',
  moe: 'expert routing',
  pool: 'pooling',
  layout: 'layout conversion',
  copy: 'permutes and casts',
  comm: 'communication',
  other: 'other kernels',
  '': 'other kernels',
};

export function familyLabel(family: string): string {
  return FAMILY_LABELS[family] ?? family.replaceAll('_', ' ');
}

/** Kernel time by family and copies by direction, the longest first; percent of the sum. */
export function kindShares(kernels: readonly KernelRow[], analysis: Analysis): KindShare[] {
  const sums = new Map<string, {key: string; valueNs: number; count: number}>();
  const add = (key: string, label: string, valueNs: number, count: number): void => {
    const sum = sums.get(label) ?? {key, valueNs: 0, count: 0};
    sums.set(label, {key: sum.key, valueNs: sum.valueNs + valueNs, count: sum.count + count});
  };
  for (const row of kernels) add(row.family, familyLabel(row.family), row.total_ns, row.count);
  for (const copy of analysis.copies)
    add('', `copies ${copyWords(copy.kind)}`, copy.total_ns ?? 0, copy.count);
  const total = [...sums.values()].reduce((sum, s) => sum + s.valueNs, 0);
  if (total <= 0) return [];
  return [...sums]
    .map(([label, s]) => ({...s, label, percent: (100 * s.valueNs) / total}))
    .filter(share => share.valueNs > 0)
    .sort((a, b) => b.valueNs - a.valueNs);
}

function copyWords(kind: string): string {
  switch (kind) {
    case 'HtoD':
      return 'to the GPU';
    case 'DtoH':
      return 'to the host';
    case 'DtoD':
      return 'in the GPU';
    case 'PtoP':
      return 'between GPUs';
    default:
      return kind;
  }
}

// ---- findings

const EFFORTS = {
  setting: 'a setting',
  lines: 'a few lines',
  rewrite: 'a rewrite',
  hardware: 'other hardware',
} as const;

/** What a change takes, in a word or two; '' when the analysis does not say. */
export function effortWords(effort: Finding['effort']): string {
  return effort === undefined ? '' : EFFORTS[effort];
}

/** Ids are for scripts; this is for people: "input-starvation" -> "input starvation". */
export function findingName(id: string): string {
  return id.replaceAll('-', ' ');
}

const FINDINGS_MAX = 5;

export interface FindingGroups {
  readonly first: Finding | undefined;
  readonly further: readonly Finding[];
  /** Shown when asked for: more than five is noise. */
  readonly smaller: readonly Finding[];
}

export function groupFindings(findings: readonly Finding[]): FindingGroups {
  return {
    first: findings[0],
    further: findings.slice(1, FINDINGS_MAX),
    smaller: findings.slice(FINDINGS_MAX),
  };
}

/** Two sentences that say the same: then one of them is enough. */
export function sameSentence(a: string, b: string): boolean {
  const plain = (text: string): string =>
    text
      .toLowerCase()
      .replace(/[\s.]+/g, ' ')
      .trim();
  return plain(a) === plain(b);
}

// ---- settings

export interface SettingGroup {
  readonly title: string;
  readonly items: readonly {readonly key: string; readonly value: string}[];
}

/** Settings as the recorder wrote them: one level of groups, anything deeper as text. */
export function settingGroups(settings: Readonly<Record<string, unknown>>): SettingGroup[] {
  const loose: {key: string; value: string}[] = [];
  const groups: SettingGroup[] = [];
  for (const [key, value] of Object.entries(settings)) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const items = Object.entries(value).map(([k, v]) => ({key: k, value: settingText(v)}));
      if (items.length > 0) groups.push({title: key, items});
    } else {
      loose.push({key, value: settingText(value)});
    }
  }
  return loose.length > 0 ? [{title: '', items: loose}, ...groups] : groups;
}

function settingText(value: unknown): string {
  if (value === null || value === undefined) return 'not recorded';
  if (value === true) return 'on';
  if (value === false) return 'off';
  if (typeof value === 'string') return value;
  return JSON.stringify(value);
}
