// A chart of rows: a column for the horizontal axis, columns of numbers above it.
import type {SqlResult} from '../../api/sql';
import {cellText, isNumeric} from '../sql_query';

/** Bars that can be told apart, and their words read. */
const BARS_MAX = 40;
/** Lines that can be told apart. */
export const LINES_MAX = 4;

export interface ChartChoice {
  readonly x: number;
  readonly y: readonly number[];
}

export interface SqlChart {
  /** Bars where x is words, a line where it is numbers. */
  readonly kind: 'bars' | 'line';
  readonly labels: readonly string[];
  /** Of a line, ascending. */
  readonly x: readonly number[];
  readonly series: readonly {readonly name: string; readonly values: readonly number[]}[];
  readonly left: number;
}

/** Words first, times otherwise, over the first column of numbers that is no id. */
export function usualChoice(result: SqlResult): ChartChoice | undefined {
  const numeric = result.columns.map((_, c) => isNumeric(result, c));
  const names = result.columns;
  const words = numeric.indexOf(false);
  const time = names.findIndex(
    (name, c) => numeric[c] && /(^|_)(start_ns|t_ns|ts_ns|step)$/.test(name),
  );
  const x = words >= 0 ? words : Math.max(0, time);
  const isKey = (name: string): boolean => /^(id|track|position|device|step|slice)$/.test(name);
  const y = names.findIndex((name, c) => c !== x && numeric[c] && !isKey(name));
  const any = y >= 0 ? y : names.findIndex((_, c) => c !== x && numeric[c]);
  return any < 0 || result.rows.length === 0 ? undefined : {x, y: [any]};
}

const numberAt = (value: unknown): number => (typeof value === 'number' ? value : 0);

export function chartOf(result: SqlResult, choice: ChartChoice): SqlChart {
  const isLine = isNumeric(result, choice.x);
  const rows = isLine
    ? [...result.rows].sort((a, b) => numberAt(a[choice.x]) - numberAt(b[choice.x]))
    : result.rows.slice(0, BARS_MAX);
  return {
    kind: isLine ? 'line' : 'bars',
    labels: rows.map(row => cellText(row[choice.x])),
    x: rows.map(row => numberAt(row[choice.x])),
    series: choice.y.slice(0, LINES_MAX).map(c => ({
      name: result.columns[c] ?? '',
      values: rows.map(row => numberAt(row[c])),
    })),
    left: result.rows.length - rows.length,
  };
}
