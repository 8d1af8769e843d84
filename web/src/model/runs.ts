// Runs: traces of one job, in the list and side by side.
import {signal} from '@preact/signals';
import {getRunAnalysis, listRuns} from '../api/client';
import type {RunAnalysis, RunInfo, TraceInfo} from '../api/types';
import {plural} from '../base/format';
import {loopUnit} from './list_rows';

/** What is known of runs, by id. */
export const runs = signal<ReadonlyMap<string, RunInfo>>(new Map());

const PAGE_SIZE = 500;
let lastAsked = '';

/** Ask for the names of runs that the list shows, once for each set of them. */
export async function loadRuns(ids?: readonly string[]): Promise<void> {
  const asked = ids?.join() ?? '';
  if (ids && (asked === lastAsked || ids.every(id => runs.value.has(id)))) return;
  lastAsked = asked;
  try {
    const reply = await listRuns({limit: PAGE_SIZE});
    runs.value = new Map([...runs.value, ...reply.runs.map(run => [run.id, run] as const)]);
  } catch {
    lastAsked = ''; // the rows have no names until the next time
  }
}

/** "dlrm_kineto.tar.gz" -> "dlrm_kineto" */
export function runName(name: string): string {
  return name.replace(/\.(tar(\.\w+)?|tgz|zip)$/i, '') || name;
}

// ---- in the list

export type ListRow =
  | {readonly kind: 'trace'; readonly trace: TraceInfo}
  | {readonly kind: 'run'; readonly run: string; readonly members: readonly TraceInfo[]};

/** Traces with those of one run together, at the place of its newest; a run of one is a trace. */
export function groupRuns(traces: readonly TraceInfo[]): readonly ListRow[] {
  const byRun = new Map<string, TraceInfo[]>();
  for (const trace of traces) {
    if (trace.run === undefined) continue;
    const members = byRun.get(trace.run);
    if (members) members.push(trace);
    else byRun.set(trace.run, [trace]);
  }
  const rows: ListRow[] = [];
  for (const trace of traces) {
    const members = trace.run === undefined ? undefined : byRun.get(trace.run);
    if (trace.run === undefined || !members || members.length < 2) {
      rows.push({kind: 'trace', trace});
    } else if (members[0] === trace) {
      rows.push({kind: 'run', run: trace.run, members: inOrder(members)});
    }
  }
  return rows;
}

/** By rank where all know theirs, else by name. */
export function inOrder(members: readonly TraceInfo[]): readonly TraceInfo[] {
  const areRanked = members.every(trace => trace.rank !== undefined);
  return [...members].sort((a, b) =>
    areRanked && a.rank !== b.rank
      ? (a.rank ?? 0) - (b.rank ?? 0)
      : a.name.localeCompare(b.name, 'en', {numeric: true}),
  );
}

/** "8 ranks", "3 traces, 2 hosts" */
export function describeMembers(members: readonly TraceInfo[]): string {
  const areRanked = members.every(trace => trace.rank !== undefined);
  const hosts = new Set(members.map(trace => trace.host ?? '').filter(Boolean));
  const count = plural(members.length, areRanked ? 'rank' : 'trace');
  return hosts.size > 1 ? `${count} on ${plural(hosts.size, 'host')}` : count;
}

export function rankName(trace: TraceInfo): string {
  return trace.rank === undefined ? trace.name : `Rank ${trace.rank}`;
}

export interface RunSummary {
  readonly cause: string;
  readonly letter: string;
  readonly text: string;
  /** Middle of the ranks' mean steps. */
  readonly stepNs: number | undefined;
  /** Of all ranks together; undefined where the ranks do not count samples. */
  readonly throughput: number | undefined;
  readonly throughputUnit: string;
  /** Mean over the ranks. */
  readonly notComputingPct: number | undefined;
}

function middle(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[(values.length - 1) >> 1];
}

const known = (values: readonly (number | undefined)[]): number[] =>
  values.filter((value): value is number => value !== undefined);

/** What one row says of many ranks: the late one, else what they have in common, else that they
 *  differ. */
export function summarizeRun(
  members: readonly TraceInfo[],
  analysis: RunAnalysis | undefined,
): RunSummary {
  const ready = members.filter(trace => trace.state === 'ready');
  const summaries = ready.map(trace => trace.summary).filter(s => s !== undefined);
  const looping = summaries.filter(s => loopUnit(s) !== undefined);
  const rates = known(looping.map(s => s.throughput_per_s));
  const units = new Set(summaries.map(s => s.throughput_unit));
  const counts =
    rates.length === ready.length &&
    rates.length > 0 &&
    !['steps', 'batches', 'iterations'].some(unit => units.has(unit));
  const shares = known(summaries.map(s => s.not_computing_pct));
  return {
    ...verdictOf(ready, analysis),
    stepNs: middle(known(looping.map(s => s.step_mean_ns))),
    throughput: counts && units.size === 1 ? rates.reduce((sum, rate) => sum + rate, 0) : undefined,
    throughputUnit: [...units][0] ?? 'steps',
    notComputingPct:
      shares.length > 0 ? shares.reduce((sum, share) => sum + share, 0) / shares.length : undefined,
  };
}

/** The text that more than one says, and more than say any other. */
export function commonest(
  texts: readonly string[],
): {readonly text: string; readonly count: number} | undefined {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most && most[1] > 1 ? {text: most[0], count: most[1]} : undefined;
}

function verdictOf(
  ready: readonly TraceInfo[],
  analysis: RunAnalysis | undefined,
): Pick<RunSummary, 'cause' | 'letter' | 'text'> {
  const first = analysis?.findings[0];
  if (first) return {cause: 'comm', letter: 'N', text: first.title};
  const groups = new Map<string, TraceInfo[]>();
  for (const trace of ready) {
    const key = `${trace.summary?.letter ?? '~'}${trace.summary?.cause ?? 'unknown'}`;
    groups.set(key, [...(groups.get(key) ?? []), trace]);
  }
  const largest = [...groups.values()].sort((a, b) => b.length - a.length)[0];
  if (!largest?.[0]) return {cause: 'unknown', letter: '~', text: 'no verdict'};
  const steps = middle(known(largest.map(trace => trace.summary?.step_mean_ns)));
  const typical = largest.find(trace => trace.summary?.step_mean_ns === steps) ?? largest[0];
  const summary = typical.summary;
  // a hang is the whole job's: each rank's trace says the same of it
  const isOfJob = groups.size === 1 && (summary?.text ?? '').startsWith('The job ');
  const which =
    groups.size === 1
      ? `rank ${typical.rank ?? 0}, like the others`
      : largest.length === 1
        ? `rank ${typical.rank ?? 0}`
        : `${largest.length} of ${ready.length} ranks, such as ${typical.rank ?? 0}`;
  const isRanked = typical.rank !== undefined && !isOfJob;
  return {
    cause: summary?.cause ?? 'unknown',
    letter: summary?.letter ?? '~',
    text: isRanked ? `${which}: ${summary?.text ?? ''}` : (summary?.text ?? ''),
  };
}

// ---- the comparison of a run's ranks

/** Which traces, in which state: a comparison is of these. */
export function stampOf(members: readonly TraceInfo[]): string {
  return members.map(trace => `${trace.id}.${trace.generation}.${trace.state}`).join();
}

/** Above this the comparison is made only when somebody opens the run. */
const UNASKED_EVENTS_MAX = 5_000_000;

/** Runs that are being taken apart here: what is left of one meanwhile is no run to ask for. */
export const endingRuns = new Set<string>();

const comparisons = new Map<string, RunAnalysis | 'asked'>();
/** Counts up when another one came. */
const arrivals = signal(0);
let queue: Promise<void> = Promise.resolve();

/** The comparison for a row of the list, asked for one at a time; undefined until it is here. */
export function comparisonOf(run: string, members: readonly TraceInfo[]): RunAnalysis | undefined {
  if (
    endingRuns.has(run) ||
    !members.every(trace => trace.state === 'ready' || trace.state === 'failed')
  )
    return undefined;
  const events = members.reduce((sum, trace) => sum + trace.event_count, 0);
  const key = `${run}/${stampOf(members)}`;
  const kept = comparisons.get(key);
  if (kept === undefined && events <= UNASKED_EVENTS_MAX) {
    comparisons.set(key, 'asked');
    queue = queue
      .then(() => getRunAnalysis(run))
      .then(
        analysis => {
          comparisons.set(key, analysis);
          arrivals.value += 1;
        },
        () => undefined, // the row has none; the page of the run says why
      );
  }
  // only who still waits needs to hear of arrivals
  if (kept === undefined || kept === 'asked') void arrivals.value;
  return kept === 'asked' ? undefined : kept;
}
