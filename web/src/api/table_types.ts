// Replies of tables, and of what a slice launched.
import {bool, list, num, obj, opt, or, str, type Infer} from '../base/shape';
import {time} from './types';

export const TABLE_NAMES = [
  'kernels',
  'operators',
  'ranges',
  'calls',
  'copies',
  'allocations',
  'python',
  'steps',
  'gaps',
  'batches',
] as const;
export type TableName = (typeof TABLE_NAMES)[number];

/** What a cell holds: text, a number, or nothing where it was not recorded. */
export type Cell = string | number | undefined;
const cellShape = (value: unknown, path: string): Cell =>
  typeof value === 'string' ? str(value, path) : opt(num)(value, path);
const tableColumnShape = obj({id: str, label: str, unit: or(str, 'text'), definition: or(str, '')});
export type TableColumn = Infer<typeof tableColumnShape>;
const tableRowShape = obj({
  cells: list(cellShape),
  short: or(str, ''),
  slice: opt(num),
  start_ns: opt(time),
  dur_ns: opt(time),
  device: opt(num),
  bins: or(list(num), []),
});
export type TableRow = Infer<typeof tableRowShape>;
export const tableShape = obj({
  t0_ns: or(num, 0),
  t1_ns: or(num, 0),
  /** That numbers of one step are of. */
  steps: or(num, 0),
  columns: list(tableColumnShape),
  total: num,
  is_cut: or(bool, false),
  has_operators: or(bool, true),
  has_percentiles: or(bool, true),
  all: opt(tableRowShape),
  rows: list(tableRowShape),
  next: opt(str),
});
export type TableInfo = Infer<typeof tableShape>;

const launchedRowShape = obj({
  slice: num,
  track: num,
  lane: or(num, 0),
  kind: or(str, 'other'),
  name: str,
  short: or(str, ''),
  start_ns: time,
  dur_ns: time,
});
export type LaunchedRow = Infer<typeof launchedRowShape>;
export const launchedShape = obj({
  chain: list(launchedRowShape),
  count: num,
  total_ns: num,
  first_ns: time,
  end_ns: time,
  is_cut: or(bool, false),
  launched: list(launchedRowShape),
});
export type Launched = Infer<typeof launchedShape>;
