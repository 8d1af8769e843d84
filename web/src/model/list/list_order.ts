// In which order, and under which heads, the list shows its rows. Pure.
import type {RunAnalysis, TraceInfo} from '../../api/types';
import {describeDevices, loopUnit} from '../list_rows';
import {runName, summarizeRun, type ListRow} from '../runs';

export const LIST_COLUMNS = [
  'name',
  'verdict',
  'step',
  'throughput',
  'share',
  'gain',
  'gpus',
  'recorded',
  'added',
] as const;
export type ListColumn = (typeof LIST_COLUMNS)[number];

export const LIST_GROUPS = ['', 'project', 'model', 'gpu', 'tag'] as const;
export type ListGroup = (typeof LIST_GROUPS)[number];

export interface ListSort {
  readonly column: ListColumn;
  readonly ascending: boolean;
}

/** "step" from the largest, "-step" from the smallest; "" newest first. As in the address. */
export function parseListSort(text: string): ListSort {
  const ascending = text.startsWith('-');
  const name = ascending ? text.slice(1) : text;
  const column = LIST_COLUMNS.find(c => c === name);
  return column === undefined ? {column: 'added', ascending: false} : {column, ascending};
}

export function formatListSort(sort: ListSort): string {
  const text = (sort.ascending ? '-' : '') + sort.column;
  return text === 'added' ? '' : text;
}

/** Pressing a column's head: texts start from A, numbers and dates from the largest. */
export function pressListSort(current: ListSort, column: ListColumn): ListSort {
  if (current.column === column) return {column, ascending: !current.ascending};
  return {column, ascending: ['name', 'verdict', 'gpus'].includes(column)};
}

const EARLIEST_MS = Date.UTC(2005, 0);

/** When the recording began, where its clock tells; some formats count from the start of the
 *  machine, which is no date. */
export function recordedAt(trace: TraceInfo, now: Date): Date | undefined {
  const ms = Number(trace.t0_ns) / 1e6;
  const isDate = Number.isFinite(ms) && ms > EARLIEST_MS && ms < now.getTime() + 86_400_000;
  return isDate ? new Date(ms) : undefined;
}

export interface RowFacts {
  readonly name: string;
  readonly verdict: string;
  readonly stepNs: number | undefined;
  readonly throughput: number | undefined;
  readonly sharePct: number | undefined;
  readonly gainPct: number | undefined;
  readonly gpus: string;
  readonly recordedMs: number | undefined;
  readonly addedMs: number;
  readonly project: string;
  readonly model: string;
  readonly tags: readonly string[];
}

/** What a row is sorted and grouped by. */
export function factsOf(
  row: ListRow,
  runTitle: string | undefined,
  comparison: RunAnalysis | undefined,
  now: Date,
): RowFacts {
  const members = row.kind === 'run' ? row.members : [row.trace];
  const first = members[0];
  const tags = [...new Set(members.flatMap(trace => trace.tags))];
  const shared = {
    gpus: describeDevices(
      members.flatMap(trace => trace.device_names),
      members.reduce((sum, trace) => sum + trace.device_count, 0),
    ),
    recordedMs: first && recordedAt(first, now)?.getTime(),
    addedMs: Date.parse(first?.created_at ?? '') || 0,
    project: first?.project ?? '',
    model: first?.summary?.model ?? '',
    tags,
  };
  if (row.kind === 'run') {
    const summary = summarizeRun(members, comparison);
    return {
      ...shared,
      name: runName(runTitle ?? first?.name ?? ''),
      verdict: `${summary.letter} ${summary.text}`,
      stepNs: summary.stepNs,
      throughput: summary.throughput,
      sharePct: summary.notComputingPct,
      gainPct: comparison?.findings[0]?.gain_pct?.mid,
    };
  }
  const summary = row.trace.summary;
  const loops = loopUnit(summary) !== undefined;
  return {
    ...shared,
    name: row.trace.name,
    verdict: `${summary?.letter ?? '~'} ${summary?.text ?? ''}`,
    stepNs: loops ? summary?.step_mean_ns : undefined,
    throughput: loops ? summary?.throughput_per_s : undefined,
    sharePct: summary?.not_computing_pct,
    gainPct: summary?.gain_mid_pct,
  };
}

function keyOf(facts: RowFacts, column: ListColumn): number | string | undefined {
  switch (column) {
    case 'name':
      return facts.name;
    case 'verdict':
      return facts.verdict;
    case 'step':
      return facts.stepNs;
    case 'throughput':
      return facts.throughput;
    case 'share':
      return facts.sharePct;
    case 'gain':
      return facts.gainPct;
    case 'gpus':
      return facts.gpus;
    case 'recorded':
      return facts.recordedMs;
    case 'added':
      return facts.addedMs;
  }
}

export interface OrderedRow {
  readonly row: ListRow;
  readonly facts: RowFacts;
}

/** Sorted; rows that do not say come last either way, equal ones keep their order. */
export function sortRows(rows: readonly OrderedRow[], sort: ListSort): readonly OrderedRow[] {
  if (sort.column === 'added' && !sort.ascending) return rows; // as they come
  const sign = sort.ascending ? 1 : -1;
  return [...rows].sort((a, b) => {
    const x = keyOf(a.facts, sort.column);
    const y = keyOf(b.facts, sort.column);
    if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? 1 : -1;
    if (typeof x === 'string' && typeof y === 'string')
      return sign * x.localeCompare(y, 'en', {numeric: true, sensitivity: 'base'});
    return sign * (Number(x) - Number(y));
  });
}

export interface RowGroup {
  readonly title: string;
  readonly rows: readonly OrderedRow[];
}

/** Under one head each, the heads in order, those without one at the end. A row with several tags
 *  stands under each. */
export function groupRows(rows: readonly OrderedRow[], by: ListGroup): readonly RowGroup[] {
  if (by === '') return [{title: '', rows}];
  const groups = new Map<string, OrderedRow[]>();
  for (const row of rows) {
    const {facts} = row;
    const own = by === 'tag' ? facts.tags : [by === 'gpu' ? facts.gpus : facts[by]];
    for (const title of own.length > 0 ? own : ['']) {
      const group = groups.get(title);
      if (group) group.push(row);
      else groups.set(title, [row]);
    }
  }
  const named = [...groups].filter(([title]) => title !== '');
  named.sort(([a], [b]) => a.localeCompare(b, 'en', {numeric: true}));
  const rest = groups.get('');
  return [
    ...named.map(([title, own]) => ({title, rows: own})),
    ...(rest
      ? [{title: by === 'tag' ? 'no tag' : by === 'model' ? 'no model' : 'no project', rows: rest}]
      : []),
  ];
}
