// The slices of an area as text, for a spreadsheet or a chat. Pure: runs in node.
import type {AreaName} from '../api/types';

export const AREA_COLUMNS = ['total', 'self', 'count', 'mean', 'max', 'name'] as const;
export type AreaColumn = (typeof AREA_COLUMNS)[number];

export interface AreaSort {
  readonly column: AreaColumn;
  readonly ascending: boolean;
}

/** A press on a column's head: first its usual order, then the other one. */
export function pressAreaSort(sort: AreaSort, column: AreaColumn): AreaSort {
  if (sort.column === column) return {column, ascending: !sort.ascending};
  return {column, ascending: column === 'name'};
}

const HEAD = ['name', 'kind', 'count', 'total_ns', 'self_ns', 'mean_ns', 'max_ns'] as const;

const cells = (row: AreaName): readonly (string | number)[] => [
  row.name,
  row.kind,
  row.count,
  row.total_ns,
  row.self_ns,
  row.mean_ns,
  row.max_ns,
];

/** A name that begins like a formula is one to a spreadsheet: it gets a quote before it. */
function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** All digits, in nanoseconds. */
export function areaCsv(rows: readonly AreaName[]): string {
  const lines = rows.map(row => cells(row).map(csvCell).join(','));
  return [HEAD.join(','), ...lines].join('\n') + '\n';
}

const markdownCell = (text: string): string =>
  text
    .replace(/[\r\n]+/g, ' ')
    .replaceAll('\\', '\\\\')
    .replaceAll('|', '\\|');

/** In milliseconds, to be read. */
export function areaMarkdown(rows: readonly AreaName[]): string {
  const ms = (ns: number): string => (ns / 1e6).toFixed(3);
  const lines = rows.map(
    row =>
      `| ${markdownCell(row.short || row.name)} | ${row.kind} | ${row.count} | ${ms(row.total_ns)} | ${ms(row.self_ns)} | ${ms(row.mean_ns)} | ${ms(row.max_ns)} |`,
  );
  return (
    [
      '| name | kind | count | total ms | self ms | mean ms | max ms |',
      '|---|---|--:|--:|--:|--:|--:|',
      ...lines,
    ].join('\n') + '\n'
  );
}
