// The slices of an area by name, as a table. Pure: runs in node.
import type {TableColumn, TableRow} from '../api/table_types';
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

const COLUMNS = [
  ['name', 'text'],
  ['kind', 'text'],
  ['count', 'count'],
  ['total_ns', 'ns'],
  ['self_ns', 'ns'],
  ['mean_ns', 'ns'],
  ['max_ns', 'ns'],
] as const;

/** To be copied. */
export function areaTable(names: readonly AreaName[]): {
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
} {
  return {
    columns: COLUMNS.map(([id, unit]) => ({
      id,
      label: id.replace('_ns', ''),
      unit,
      definition: '',
    })),
    rows: names.map(name => ({
      cells: COLUMNS.map(([id]) => name[id]),
      short: name.short,
      slice: name.longest_slice,
      start_ns: undefined,
      dur_ns: undefined,
      device: undefined,
      bins: [],
    })),
  };
}
