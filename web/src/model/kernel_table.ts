// All kernels of a trace by name, loaded page by page.
import {getKernels} from '../api/client';
import type {KernelRow} from '../api/types';

const PAGE_SIZE = 1000;
/** Distinct kernels kept in the page; the rest is counted. */
const ROWS_MAX = 50_000;

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

/** What kernels are called on screen, by their names in the trace. */
export function shortNamesOf(table: KernelTable | undefined): ReadonlyMap<string, string> {
  const named = table?.rows.filter(row => row.short !== '') ?? [];
  return new Map(named.map(row => [row.name, row.short]));
}
