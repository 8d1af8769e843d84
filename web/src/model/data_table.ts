// Tables as the server makes them: what cells say on screen and in a copy. Pure: runs in node.
import type {Cell, TableColumn, TableName, TableRow} from '../api/table_types';
import {TABLE_NAMES} from '../api/table_types';
import {
  NO_TIME,
  exactNs,
  formatByteRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatPct,
  unbroken,
} from '../base/format';
import {ns} from '../base/units';
import {word} from '../base/vocabulary';
import type {Selection} from './view_state';

export interface TableKind {
  readonly label: string;
  /** What of: "No kernels in this trace". */
  readonly many: string;
  /** Why there may be none. */
  readonly missing: string;
  /** What rows can have in common: groupings as the server takes them, the usual one first. */
  readonly groups: readonly {readonly by: string; readonly label: string}[];
}

const BY_NAME = {by: 'name', label: 'by name'} as const;
const BY_THREAD = [
  BY_NAME,
  {by: 'name,track', label: 'by name and thread'},
  {by: 'track', label: 'by thread'},
];

export const TABLES: Readonly<Record<TableName, TableKind>> = {
  kernels: {
    label: 'Kernels',
    many: 'kernels',
    missing: 'Record with ProfilerActivity.CUDA to see what the GPU runs.',
    groups: [
      BY_NAME,
      {by: 'operator', label: 'by operator'},
      {by: 'name,operator', label: 'by name and operator'},
      {by: 'name,track', label: 'by name and stream'},
      {by: 'track', label: 'by stream'},
      {by: 'family', label: 'by kind of work'},
    ],
  },
  operators: {
    label: 'Operators',
    many: 'operators',
    missing: 'Record with ProfilerActivity.CPU to see the operators of the framework.',
    groups: BY_THREAD,
  },
  ranges: {
    label: 'Ranges',
    many: 'ranges',
    missing: 'Ranges are what record_function() and NVTX name.',
    groups: BY_THREAD,
  },
  calls: {
    label: 'CUDA calls',
    many: 'CUDA calls',
    missing: 'The recorder of this trace did not keep them.',
    groups: BY_THREAD,
  },
  copies: {
    label: 'Copies',
    many: 'copies',
    missing: 'Nothing was copied or set on a GPU, or it was not recorded.',
    groups: [
      {by: 'direction', label: 'by direction'},
      {by: 'direction,track', label: 'by direction and stream'},
      {by: 'direction,operator', label: 'by direction and operator'},
      BY_NAME,
    ],
  },
  allocations: {
    label: 'Allocations',
    many: 'allocations',
    missing: 'Record with profile_memory=True to see them.',
    groups: [{by: 'name,size', label: 'by size'}, {by: 'name,track', label: 'by thread'}, BY_NAME],
  },
  python: {
    label: 'Python',
    many: 'Python functions',
    missing: 'Record with with_stack=True, or with lacuna run, to see them.',
    groups: BY_THREAD,
  },
  steps: {
    label: 'Steps',
    many: 'steps',
    missing: 'No step was found.',
    groups: [],
  },
  gaps: {
    label: 'Gaps',
    many: 'gaps of 10 µs and longer',
    missing: 'The GPU was never idle for that long, or there is none.',
    groups: [],
  },
  batches: {
    label: 'Batches',
    many: 'batches',
    missing: 'Run the job with lacuna run to see each batch, its worker and the wait for it.',
    groups: [],
  },
};

export function tableOf(text: string, usual: TableName = 'kernels'): TableName {
  return TABLE_NAMES.find(name => name === text) ?? usual;
}

// ---- order

export interface TableSort {
  readonly column: string;
  readonly ascending: boolean;
}

/** "p95_ns" descending, "-p95_ns" ascending, "" as the server likes: as in the address. */
export function parseTableSort(text: string): TableSort | undefined {
  if (text === '' || text === '-') return undefined;
  return text.startsWith('-')
    ? {column: text.slice(1), ascending: true}
    : {column: text, ascending: false};
}

export function formatTableSort(sort: TableSort): string {
  return (sort.ascending ? '-' : '') + sort.column;
}

/** Texts and times of day start with the first, numbers with the largest. */
export function pressTableSort(before: TableSort | undefined, column: TableColumn): TableSort {
  if (before?.column === column.id) return {column: column.id, ascending: !before.ascending};
  return {column: column.id, ascending: !isNumber(column) || column.unit === 'at'};
}

export const isNumber = (column: TableColumn): boolean =>
  !['text', 'cause', 'bins'].includes(column.unit);

// ---- cells

/** A time since the start with as many digits as tell neighbors apart. */
const formatAt = (ns: number): string => formatDuration(ns, 7);

export function formatCell(column: TableColumn, cell: Cell): string {
  if (cell === undefined) return '';
  if (typeof cell === 'string') {
    if (column.unit === 'cause') return word('causes', cell).label;
    if (column.id === 'layout') return word('layout_classes', cell).label;
    return column.id === 'root_cause' ? unbroken(cell) : cell;
  }
  switch (column.unit) {
    case 'ns':
      return formatDuration(cell);
    case 'at':
      return formatAt(cell);
    case 'bytes':
      return formatBytes(cell);
    case 'pct':
    case 'share':
      return formatPct(cell);
    case 'bytes_per_s':
      return formatByteRate(cell);
    case 'count':
      return formatCount(cell);
    default:
      return formatNumber(cell);
  }
}

/** Lengths of the operations that a row counts: none of them took no time. */
const LENGTHS: ReadonlySet<string> = new Set([
  'total_ns',
  'mean_ns',
  'p50_ns',
  'p95_ns',
  'min_ns',
  'max_ns',
]);

/** A cell of a row of operations: what was recorded as 0 was shorter than the recorder's unit. */
export function formatRowCell(columns: readonly TableColumn[], row: TableRow, i: number): string {
  const column = columns[i] as TableColumn;
  const cell = row.cells[i];
  const isLength = LENGTHS.has(column.id) && columns.some(c => c.id === 'count');
  return isLength && cell === 0 ? NO_TIME : formatCell(column, cell);
}

/** The same with all digits, for a title. */
export function exactCell(column: TableColumn, cell: Cell): string {
  if (cell === undefined) return 'not recorded, or not of this row';
  if (typeof cell === 'string') return cell;
  if (column.unit === 'ns' || column.unit === 'at') return exactNs(cell);
  return column.unit === 'bytes' ? `${formatCount(cell)} bytes` : String(cell);
}

// ---- copies

/** A name that begins like a formula is one to a spreadsheet: it gets a quote before it. */
function csvCell(value: Cell): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** All digits; times in nanoseconds. */
export function tableCsv(columns: readonly TableColumn[], rows: readonly TableRow[]): string {
  const lines = rows.map(row => row.cells.map(csvCell).join(','));
  return [columns.map(c => c.id).join(','), ...lines].join('\n') + '\n';
}

const markdownCell = (text: string): string =>
  text
    .replace(/[\r\n]+/g, ' ')
    .replaceAll('\\', '\\\\')
    .replaceAll('|', '\\|')
    .replaceAll('\u202f', ' ');

/** To be read: as on screen. */
export function tableMarkdown(columns: readonly TableColumn[], rows: readonly TableRow[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return (
    [
      line(columns.map(c => markdownCell(c.label))),
      `|${columns.map(c => (isNumber(c) ? '--:' : '---')).join('|')}|`,
      ...rows.map(row =>
        line(
          columns.map((column, i) =>
            markdownCell(
              column.id === 'name' && row.short !== '' ? row.short : formatRowCell(columns, row, i),
            ),
          ),
        ),
      ),
    ].join('\n') + '\n'
  );
}

/** What a row is of: its longest slice, a gap, or a time. */
export function selectionOf(row: TableRow): Selection {
  if (row.slice !== undefined) return {kind: 'slice', slice: row.slice};
  const t0 = row.start_ns ?? ns(0);
  const t1 = ns(t0 + Math.max(1, row.dur_ns ?? 0));
  return row.device === undefined
    ? {kind: 'area', t0, t1}
    : {kind: 'gap', device: row.device, t0, t1};
}
