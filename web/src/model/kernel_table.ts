// The kernel table: all rows of a trace, loaded page by page, then sorted and filtered here.
import {getKernels} from '../api/client';
import type {Analysis, KernelRow} from '../api/types';
import {word} from '../base/vocabulary';
import {familyLabel} from './overview';

const PAGE_SIZE = 1000;
/** Distinct kernels kept in the page; the rest is counted. */
const ROWS_MAX = 50_000;

/** A kernel with how fast it computes, where shapes were recorded. */
export interface KernelSpeedRow extends KernelRow {
  readonly tflops?: number | undefined;
  readonly pct_of_peak?: number | undefined;
}

/** The rows with the operations that the analysis counted for their names. */
export function withSpeed(
  rows: readonly KernelRow[],
  analysis: Analysis | undefined,
): readonly KernelSpeedRow[] {
  const speeds = new Map((analysis?.efficiency?.kernels ?? []).map(k => [k.name, k]));
  return rows.map(row => {
    const speed = speeds.get(row.name);
    if (speed?.flops === undefined || row.total_ns <= 0) return row;
    return {...row, tflops: speed.flops / row.total_ns / 1e3, pct_of_peak: speed.pct_of_peak};
  });
}

export interface KernelTable {
  readonly rows: readonly KernelRow[];
  readonly total: number;
}

const cache = new Map<string, Promise<KernelTable>>();
const CACHE_MAX = 4;

/** All kernels by name. Kept for the traces seen last. */
export function loadKernels(traceId: string, generation: number): Promise<KernelTable> {
  const key = `${traceId}/${generation}`;
  const known = cache.get(key);
  if (known) return known;
  const loading = loadAll(traceId);
  cache.set(key, loading);
  loading.catch(() => cache.delete(key));
  for (const old of cache.keys()) if (cache.size > CACHE_MAX && old !== key) cache.delete(old);
  return loading;
}

async function loadAll(traceId: string): Promise<KernelTable> {
  const rows: KernelRow[] = [];
  let total = 0;
  let after: string | undefined;
  do {
    const reply = await getKernels(traceId, {
      sort: 'total',
      order: 'desc',
      limit: PAGE_SIZE,
      ...(after === undefined ? {} : {after}),
    });
    rows.push(...reply.kernels);
    total = reply.total;
    after = reply.kernels.length === 0 ? undefined : reply.next;
  } while (after !== undefined && rows.length < ROWS_MAX);
  return {rows, total};
}

const COLUMNS = [
  'name',
  'family',
  'count',
  'total',
  'step',
  'share',
  'mean',
  'min',
  'max',
  'tflops',
  'peak',
  'tensor',
  'layout',
] as const;
export type Column = (typeof COLUMNS)[number];

export interface Sort {
  readonly column: Column;
  readonly ascending: boolean;
}

/** "total" descending, "-total" ascending: as in the address. */
export function parseSort(text: string): Sort {
  const ascending = text.startsWith('-');
  const name = ascending ? text.slice(1) : text;
  const column = COLUMNS.find(c => c === name);
  return column === undefined ? {column: 'total', ascending: false} : {column, ascending};
}

export function formatSort(sort: Sort): string {
  return (sort.ascending ? '-' : '') + sort.column;
}

/** Pressing a column's head: texts start from A, numbers from the largest. */
export function pressSort(current: Sort, column: Column): Sort {
  if (current.column === column) return {column, ascending: !current.ascending};
  return {column, ascending: column === 'name' || column === 'family'};
}

type Key = number | string;

function keyOf(row: KernelSpeedRow, column: Column): Key {
  switch (column) {
    case 'name':
      return (row.short || row.name).toLowerCase();
    case 'family':
      return familyLabel(row.family);
    case 'count':
      return row.count;
    case 'total':
    case 'share':
      return row.total_ns;
    case 'step':
      return row.per_step_ns ?? row.total_ns;
    case 'mean':
      return row.mean_ns ?? row.total_ns / Math.max(1, row.count);
    case 'min':
      return row.min_ns ?? -1;
    case 'max':
      return row.max_ns ?? -1;
    case 'tflops':
      return row.tflops ?? -1;
    case 'peak':
      return row.pct_of_peak ?? -1;
    case 'tensor':
      return tensorCoreWord(row.tensor_core);
    case 'layout':
      return row.layout_class ?? '';
  }
}

/** Rows whose name, short name or kind has every word of the filter, sorted; ties by total. */
export function selectRows(
  rows: readonly KernelSpeedRow[],
  filter: string,
  sort: Sort,
): readonly KernelSpeedRow[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = rows.filter(row => {
    const text = `${row.name}\n${row.short}\n${familyLabel(row.family)}`.toLowerCase();
    return words.every(word => text.includes(word));
  });
  const sign = sort.ascending ? 1 : -1;
  return kept
    .map(row => ({row, key: keyOf(row, sort.column)}))
    .sort((a, b) => {
      if (a.key < b.key) return -sign;
      if (a.key > b.key) return sign;
      return b.row.total_ns - a.row.total_ns;
    })
    .map(({row}) => row);
}

/** "yes", "no", or "" where the name does not say. */
export function tensorCoreWord(value: unknown): string {
  if (value === true || value === 'yes' || value === 'used') return 'yes';
  if (value === false || value === 'no' || value === 'unused') return 'no';
  return typeof value === 'string' && value !== 'unknown' ? value : '';
}

export function layoutWord(layoutClass: string | undefined): string {
  return layoutClass === undefined ? '' : word('layout_classes', layoutClass).label;
}
