// A merged flame graph: the tree the server sends in preorder, its layout, search and sums. Pure.
import {ShapeError} from '../base/shape';
import type {FlameReply} from '../api/types';

export interface FlameTree {
  readonly count: number;
  readonly name: readonly string[];
  readonly parent: Int32Array;
  readonly depth: Uint16Array;
  /** First node after the subtree of a node. */
  readonly end: Int32Array;
  readonly valueNs: Float64Array;
  readonly selfNs: Float64Array;
  /** Slices summed. */
  readonly slices: Float64Array;
  readonly kind: readonly string[];
  readonly depthMax: number;
}

/** Columns of a graph; how deep a frame lies follows from its parents. */
export type FlameColumns = Omit<FlameReply['nodes'], 'depth'> & {
  readonly depth?: readonly number[];
};

/** @throws ShapeError when the columns are not a tree in preorder */
export function buildTree(nodes: FlameColumns): FlameTree {
  const count = nodes.name.length;
  const parent = Int32Array.from(nodes.parent);
  const depth = new Uint16Array(count);
  const end = new Int32Array(count);
  for (const column of ['parent', 'value_ns', 'self_ns', 'count', 'kind'] as const)
    if (nodes[column].length !== count)
      throw new ShapeError(`nodes.${column}`, `${count} entries, as many as names`);
  let depthMax = 0;
  const open: number[] = [];
  for (let i = 0; i < count; i++) {
    const above = parent[i] ?? -1;
    while (open.length > 0 && open[open.length - 1] !== above) end[open.pop() ?? 0] = i;
    const isRoot = i === 0 && above === -1;
    if (open.length === 0 && !isRoot) throw new ShapeError(`nodes.parent[${i}]`, 'a node before');
    depth[i] = open.length;
    depthMax = Math.max(depthMax, open.length);
    open.push(i);
  }
  for (const i of open) end[i] = count;
  return {
    count,
    name: nodes.name,
    parent,
    depth,
    end,
    valueNs: Float64Array.from(nodes.value_ns),
    selfNs: Float64Array.from(nodes.self_ns),
    slices: Float64Array.from(nodes.count),
    kind: nodes.kind,
    depthMax,
  };
}

export interface FlameLayout {
  /** Values without what was dropped. */
  readonly valueNs: Float64Array;
  /** Left and right edge, 0 to 1; equal where a node is not shown. */
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  readonly focus: number;
}

/** Place every node: the focus fills the width, its ancestors too, the rest is not shown. */
export function layoutTree(
  tree: FlameTree,
  focus: number,
  dropped: readonly number[],
): FlameLayout {
  const {count, parent, end} = tree;
  const valueNs = Float64Array.from(tree.valueNs);
  const gone = new Uint8Array(count);
  for (const node of dropped) {
    if (node <= 0 || node >= count || gone[node]) continue;
    const value = valueNs[node] ?? 0;
    for (let i = parent[node] ?? -1; i >= 0; i = parent[i] ?? -1)
      valueNs[i] = Math.max(0, (valueNs[i] ?? 0) - value);
    for (let i = node; i < (end[node] ?? 0); i++) {
      gone[i] = 1;
      valueNs[i] = 0;
    }
  }
  const root = focus > 0 && focus < count && !gone[focus] ? focus : 0;
  const x0 = new Float64Array(count);
  const x1 = new Float64Array(count);
  for (let i = parent[root] ?? -1; i >= 0; i = parent[i] ?? -1) x1[i] = 1;
  const total = valueNs[root] ?? 0;
  if (count === 0 || total <= 0) return {valueNs, x0, x1, focus: root};
  // where the next child of each open node starts
  const next = new Float64Array(count);
  x1[root] = 1;
  for (let i = root + 1; i < (end[root] ?? 0); i++) {
    const above = parent[i] ?? root;
    const left = above === root && next[root] === 0 ? (x0[root] ?? 0) : (next[above] ?? 0);
    const right = Math.min(x1[above] ?? 1, left + (valueNs[i] ?? 0) / total);
    x0[i] = left;
    x1[i] = right;
    next[i] = left;
    next[above] = right;
  }
  return {valueNs, x0, x1, focus: root};
}

/** Node at a place: `x` from 0 to 1, `depth` from the root. */
export function nodeAt(
  tree: FlameTree,
  layout: FlameLayout,
  x: number,
  depth: number,
): number | undefined {
  let i = 0;
  while (i < tree.count) {
    const inside = x >= (layout.x0[i] ?? 0) && x < (layout.x1[i] ?? 0);
    if (inside && tree.depth[i] === depth) return i;
    i = inside ? i + 1 : (tree.end[i] ?? tree.count);
  }
  return undefined;
}

export interface FlameMatch {
  readonly hit: Uint8Array;
  readonly frames: number;
  /** Time under matching frames; a match inside a match counts once. */
  readonly totalNs: number;
}

export function searchTree(
  tree: FlameTree,
  layout: FlameLayout,
  query: string,
): FlameMatch | undefined {
  const text = query.trim().toLowerCase();
  if (text === '') return undefined;
  const hit = new Uint8Array(tree.count);
  let frames = 0;
  let totalNs = 0;
  let coveredTo = 0;
  for (let i = 0; i < tree.count; i++) {
    if (!(tree.name[i] ?? '').toLowerCase().includes(text)) continue;
    hit[i] = 1;
    frames += 1;
    if (i < coveredTo) continue;
    totalNs += layout.valueNs[i] ?? 0;
    coveredTo = tree.end[i] ?? i;
  }
  return {hit, frames, totalNs};
}

/** What frames that the server summed are called where frames of one name are one, whatever number of
 *  them each sums. */
export const SUMMED = /* text */ 'small frames';

/** Frames that the server summed, because each was below a part in two thousand of all. */
export const isSummed = (name: string): boolean =>
  name === SUMMED || /^(\.\.\.|…) \d+ more/.test(name);

export interface FlameRow {
  /** {@link SUMMED}: of all frames that the server summed. */
  readonly name: string;
  readonly kind: string;
  readonly selfNs: number;
  /** Time under this name; recursion counts once. */
  readonly totalNs: number;
  readonly slices: number;
  /** Its widest frame. */
  readonly node: number;
}

/** The same tree as a table: one row per name, the largest self time first. */
export function tableOf(tree: FlameTree, layout: FlameLayout): readonly FlameRow[] {
  const rows = new Map<
    string,
    {kind: string; selfNs: number; totalNs: number; slices: number; node: number; openTo: number}
  >();
  const last = tree.end[layout.focus] ?? 0;
  for (let i = layout.focus; i < last; i++) {
    const value = layout.valueNs[i] ?? 0;
    if (value <= 0 || i === 0) continue;
    const own = tree.name[i] ?? '';
    const name = isSummed(own) ? SUMMED : own;
    const children = childrenValue(tree, layout, i);
    const row = rows.get(name) ?? {
      kind: tree.kind[i] ?? '',
      selfNs: 0,
      totalNs: 0,
      slices: 0,
      node: i,
      openTo: 0,
    };
    row.selfNs += Math.max(0, value - children);
    row.slices += tree.slices[i] ?? 0;
    if (i >= row.openTo) {
      row.totalNs += value;
      row.openTo = tree.end[i] ?? i;
    }
    if (value > (layout.valueNs[row.node] ?? 0)) row.node = i;
    rows.set(name, row);
  }
  return [...rows]
    .map(([name, {kind, selfNs, totalNs, slices, node}]) => ({
      name,
      kind,
      selfNs,
      totalNs,
      slices,
      node,
    }))
    .sort((a, b) => b.selfNs - a.selfNs || b.totalNs - a.totalNs);
}

function childrenValue(tree: FlameTree, layout: FlameLayout, node: number): number {
  let sum = 0;
  const end = tree.end[node] ?? 0;
  for (let i = node + 1; i < end; i = tree.end[i] ?? end) {
    // a dropped child leaves its time out of the parent as well
    sum += layout.valueNs[i] ?? 0;
  }
  return sum;
}

/** Nodes from the root to `node`. */
export function pathTo(tree: FlameTree, node: number): readonly number[] {
  const path: number[] = [];
  for (let i = node; i >= 0 && i < tree.count; i = tree.parent[i] ?? -1) path.unshift(i);
  return path;
}

/** The node an arrow key leads to from `node`: parent, first child, neighbors of the same depth. */
export function neighbor(
  tree: FlameTree,
  layout: FlameLayout,
  node: number,
  way: 'up' | 'down' | 'left' | 'right',
): number {
  const shown = (i: number): boolean => (layout.x1[i] ?? 0) > (layout.x0[i] ?? 0);
  if (way === 'up') return Math.max(0, tree.parent[node] ?? 0);
  if (way === 'down') {
    for (let i = node + 1; i < (tree.end[node] ?? 0); i = tree.end[i] ?? tree.count)
      if (shown(i)) return i;
    return node;
  }
  const depth = tree.depth[node];
  const step = way === 'right' ? 1 : -1;
  for (let i = node + step; i >= 0 && i < tree.count; i += step)
    if (tree.depth[i] === depth && shown(i)) return i;
  return node;
}
