// What the overview shows, made from the analysis. Pure.
import type {Analysis, DeviceAnalysis, Finding, KernelRow} from '../api/types';
import {CAUSES, causeWord, type Cause} from '../base/causes';
import {formatDuration, sentence} from '../base/format';
import {word, words, type Word} from '../base/vocabulary';

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

/** The cause that a part makes the GPU wait for. */
const NEED_CAUSES: Readonly<Record<string, Cause>> = {
  data: 'data_wait',
  copies: 'copy_wait',
  host: 'host',
  comm: 'comm',
};

/** All parts in a fixed order; what was not recorded has no need. */
export function needsOf(analysis: Analysis): readonly Need[] {
  const parts = words('needs');
  const values = parts.map(part => analysis.needs_ns[part.id]);
  const longest = Math.max(0, ...values.filter(v => v !== undefined));
  return parts.map(({id, label, definition}, index) => {
    const needNs = values[index];
    const isLongest = needNs !== undefined && needNs > 0 && needNs === longest;
    return {key: id, label, definition, cause: NEED_CAUSES[id], needNs, isLongest};
  });
}

export function hasNeeds(analysis: Analysis): boolean {
  return needsOf(analysis).some(need => need.needNs !== undefined);
}

/** A part that takes this share of the step is its limit. */
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
  if ((longest.needNs ?? 0) >= LIMIT_SHARE * stepNs)
    return VERDICT_PARTS[analysis.verdict.cause] === longest.key
      ? `The longest part sets the pace: ${longest.label}.`
      : undefined;
  const row = inSeries(analysis);
  if (row) {
    const [a, b] = row.map(need => `${need.label} (${formatDuration(need.needNs ?? 0)})`);
    const where = row[1].key === 'host' ? ' in the main thread' : '';
    return sentence(`${a} and ${b} run one after the other${where}.`);
  }
  return `No part fills the ${unitOf(analysis)} on its own; some run one after another. Longest: ${longest.label}.`;
}

/**
 * Loading and what comes behind it, where both together are the step: without workers the main
 * thread loads, then launches, or waits for the GPU. Undefined where that is not known.
 */
export function inSeries(analysis: Analysis): readonly [Need, Need] | undefined {
  const stepNs = analysis.steps.mean_ns ?? 0;
  if (analysis.dataloader?.num_workers !== 0 || stepNs <= 0) return undefined;
  const needs = needsOf(analysis);
  const [loading, ...others] = ['data', 'host', 'gpu'].map(key => needs.find(n => n.key === key));
  const share = (need: Need): number => ((loading?.needNs ?? 0) + (need.needNs ?? 0)) / stepNs;
  const next = others.find(n => n?.needNs && Math.abs(share(n) - 1) <= 1 - LIMIT_SHARE);
  return loading?.needNs && next ? [loading, next] : undefined;
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
  /** Of the whole, in percent. */
  readonly percent: number;
}

/** Parts that sum to a whole: of the mean step, or of what was recorded of a device. */
export interface TimeSum {
  /** "step", "batch", "iteration"; "recording" where there is nothing of the kind. */
  readonly per: string;
  readonly totalNs: number;
  readonly partsNs: Readonly<Record<string, number | undefined>>;
}

/** The sum that is shown of a device: the analysis' own, of the others their span. */
export function sumOf(analysis: Analysis, device: DeviceAnalysis): TimeSum {
  const {partition} = analysis;
  if (partition && partition.device === device.id)
    return {per: partition.per, totalNs: partition.total_ns, partsNs: partition.parts_ns};
  return {
    per: 'recording',
    totalNs: device.span_ns ?? 0,
    partsNs: {...device.partition_ns, ...device.idle_by_cause_ns},
  };
}

/**
 * Waiting of the measured steps that is no gap in the timeline, because it lies before the device's
 * first operation or after its last. Undefined where that is next to nothing.
 */
export function waitingOutsideNs(analysis: Analysis, device: DeviceAnalysis): number | undefined {
  const {partition, steps} = analysis;
  if (partition?.device !== device.id || partition.per === 'recording') return undefined;
  const perStep = segmentsOf(sumOf(analysis, device)).reduce(
    (sum, {cause, valueNs}) => sum + (cause ? valueNs : 0),
    0,
  );
  const outside = perStep * (steps?.kept_count ?? 0) - (device.idle_ns ?? Infinity);
  return outside > OUTSIDE_MIN * partition.total_ns ? outside : undefined;
}

/** Less than this part of a step is no reason for a line. */
const OUTSIDE_MIN = 0.02;

/** What is repeated: "step", "batch" or "iteration". */
export function unitOf({partition}: Analysis): string {
  if (partition === undefined) return 'step';
  return partition.per === 'recording' ? 'repetition' : partition.per;
}

/** Percent of the sum in which no compute kernel runs. */
export function notComputingPct({partition}: Analysis): number | undefined {
  if (partition === undefined || partition.total_ns <= 0) return undefined;
  return 100 - (100 * (partition.parts_ns['compute'] ?? 0)) / partition.total_ns;
}

/** Parts of the sum: working first, then waiting by cause, the longest first. */
export function segmentsOf({totalNs, partsNs}: TimeSum): Segment[] {
  if (totalNs <= 0) return [];
  const make = ({id, label, definition}: Word, cause?: Cause): Segment => {
    const valueNs = partsNs[id] ?? 0;
    return {key: id, label, definition, cause, valueNs, percent: (100 * valueNs) / totalNs};
  };
  const busy = words('parts')
    .filter(part => part.id !== 'idle')
    .map(part => make(part));
  const idle = CAUSES.map(cause => make(causeWord(cause), cause)).sort(
    (a, b) => b.valueNs - a.valueNs,
  );
  return [...busy, ...idle].filter(segment => segment.valueNs > 0);
}

// ---- GPU time by kind of work

export interface KindShare {
  readonly key: string;
  readonly label: string;
  readonly valueNs: number;
  readonly count: number;
  readonly percent: number;
}

/** What a kernel does, in a word or two. */
export function familyLabel(family: string): string {
  return word('kernel_families', family === '' ? 'other' : family).label;
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
    add('', word('copy_kinds', copy.kind).label, copy.total_ns ?? 0, copy.count);
  const total = [...sums.values()].reduce((sum, s) => sum + s.valueNs, 0);
  if (total <= 0) return [];
  return [...sums]
    .map(([label, s]) => ({...s, label, percent: (100 * s.valueNs) / total}))
    .filter(share => share.valueNs > 0)
    .sort((a, b) => b.valueNs - a.valueNs);
}

// ---- findings

/** What a change takes, in a word or two; '' when the analysis does not say. */
export function effortWords(effort: Finding['effort']): string {
  return effort === undefined ? '' : word('efforts', effort).label;
}

const FINDINGS_MAX = 5;

export interface FindingGroups {
  readonly first: Finding | undefined;
  readonly further: readonly Finding[];
  /** Shown on request: more than five is noise. */
  readonly smaller: readonly Finding[];
}

export function groupFindings(findings: readonly Finding[]): FindingGroups {
  return {
    first: findings[0],
    further: findings.slice(1, FINDINGS_MAX),
    smaller: findings.slice(FINDINGS_MAX),
  };
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
