// Other shapes of a flame graph: inverted, callers and callees of one name, chains folded into one
// frame, two graphs over each other. Pure; each gives a tree of its own.
import {buildTree, isSummed, SUMMED, type FlameTree} from './flame_tree';

/** A tree while it grows: frames found by parent and name. */
class Growing {
  readonly name: string[] = [];
  readonly parent: number[] = [];
  readonly kind: string[] = [];
  readonly selfNs: number[] = [];
  readonly slices: number[] = [];
  /** Of the second graph, where there are two. */
  readonly otherNs: number[] = [];
  private readonly children: Map<string, number>[] = [];

  constructor(rootName: string, rootKind: string) {
    this.add(-1, rootName, rootKind);
  }

  private add(parent: number, name: string, kind: string): number {
    this.name.push(name);
    this.parent.push(parent);
    this.kind.push(kind);
    this.selfNs.push(0);
    this.otherNs.push(0);
    this.slices.push(0);
    this.children.push(new Map());
    return this.name.length - 1;
  }

  child(parent: number, name: string, kind: string): number {
    const known = this.children[parent]?.get(name);
    if (known !== undefined) return known;
    const made = this.add(parent, name, kind);
    this.children[parent]?.set(name, made);
    return made;
  }

  /** Children from the widest; the tree, and for each of its nodes the number it had here. */
  finish(): {readonly tree: FlameTree; readonly made: readonly number[]} {
    const value = this.selfNs.map((self, i) => self + (this.otherNs[i] ?? 0));
    // a child has a larger number than its parent
    for (let i = value.length - 1; i > 0; i--) {
      const above = this.parent[i] ?? 0;
      value[above] = (value[above] ?? 0) + (value[i] ?? 0);
    }
    const made: number[] = [];
    const place = new Map<number, number>([[-1, -1]]);
    const open = [0];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      place.set(at, made.length);
      made.push(at);
      const own = [...(this.children[at]?.values() ?? [])];
      own.sort((a, b) => (value[a] ?? 0) - (value[b] ?? 0));
      open.push(...own);
    }
    const pick = <T>(list: readonly T[], fallback: T): T[] => made.map(i => list[i] ?? fallback);
    const tree = buildTree({
      name: pick(this.name, ''),
      parent: made.map(i => place.get(this.parent[i] ?? -1) ?? -1),
      value_ns: pick(value, 0),
      self_ns: made.map(i => (this.selfNs[i] ?? 0) + (this.otherNs[i] ?? 0)),
      count: pick(this.slices, 0),
      kind: pick(this.kind, ''),
    });
    return {tree, made};
  }
}

/** What a node has for itself; a node without children has all of its value. */
function selfOf(tree: FlameTree, node: number): number {
  return tree.selfNs[node] ?? 0;
}

/** Leaves first: each stack read from its end. */
export function invertTree(tree: FlameTree): FlameTree {
  const growing = new Growing(tree.name[0] ?? '', tree.kind[0] ?? '');
  for (let i = 1; i < tree.count; i++) {
    const self = selfOf(tree, i);
    if (self <= 0) continue;
    let at = 0;
    for (let frame = i; frame > 0; frame = tree.parent[frame] ?? 0) {
      at = growing.child(at, tree.name[frame] ?? '', tree.kind[frame] ?? '');
      growing.slices[at] = (growing.slices[at] ?? 0) + (tree.slices[i] ?? 0);
    }
    growing.selfNs[at] = (growing.selfNs[at] ?? 0) + self;
  }
  growing.selfNs[0] = (growing.selfNs[0] ?? 0) + selfOf(tree, 0);
  return growing.finish().tree;
}

/** Nodes of a name that lie in no other of it: recursion counts once. */
function outermost(tree: FlameTree, name: string): readonly number[] {
  const found: number[] = [];
  for (let i = 1; i < tree.count;) {
    if (tree.name[i] === name) {
      found.push(i);
      i = tree.end[i] ?? tree.count;
    } else i += 1;
  }
  return found;
}

/** Who called a name: it is the root, below it its callers, theirs, and so on. */
export function callersOf(tree: FlameTree, name: string): FlameTree {
  const nodes = outermost(tree, name);
  const growing = new Growing(name, tree.kind[nodes[0] ?? 0] ?? '');
  for (const node of nodes) {
    let at = 0;
    growing.slices[0] = (growing.slices[0] ?? 0) + (tree.slices[node] ?? 0);
    for (let frame = tree.parent[node] ?? 0; frame > 0; frame = tree.parent[frame] ?? 0) {
      at = growing.child(at, tree.name[frame] ?? '', tree.kind[frame] ?? '');
      growing.slices[at] = (growing.slices[at] ?? 0) + (tree.slices[node] ?? 0);
    }
    growing.selfNs[at] = (growing.selfNs[at] ?? 0) + (tree.valueNs[node] ?? 0);
  }
  return growing.finish().tree;
}

/** What a name called, from all places together. */
export function calleesOf(tree: FlameTree, name: string): FlameTree {
  const nodes = outermost(tree, name);
  const growing = new Growing(name, tree.kind[nodes[0] ?? 0] ?? '');
  const at = new Int32Array(tree.count);
  for (const node of nodes) {
    for (let i = node; i < (tree.end[node] ?? 0); i++) {
      at[i] =
        i === node
          ? 0
          : growing.child(at[tree.parent[i] ?? 0] ?? 0, tree.name[i] ?? '', tree.kind[i] ?? '');
      const own = at[i] ?? 0;
      growing.selfNs[own] = (growing.selfNs[own] ?? 0) + selfOf(tree, i);
      growing.slices[own] = (growing.slices[own] ?? 0) + (tree.slices[i] ?? 0);
    }
  }
  return growing.finish().tree;
}

/** A frame whose whole time is in its only child says nothing of its own: the two become one, under
 *  the name of the last, with how many were folded before it. */
export function foldChains(tree: FlameTree): FlameTree {
  const {count, parent, end} = tree;
  const isFolded = new Uint8Array(count);
  const folded = new Int32Array(count);
  for (let i = 1; i < count; i++) {
    const child = i + 1;
    const hasOne = child < (end[i] ?? 0) && end[child] === end[i];
    // a cause of waiting keeps its row: it has the color
    if (hasOne && selfOf(tree, i) <= 0 && parent[i] !== 0) {
      isFolded[i] = 1;
      folded[child] = (folded[i] ?? 0) + 1;
    }
  }
  const kept: number[] = [];
  const place = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    place[i] = isFolded[i] ? (place[parent[i] ?? 0] ?? 0) : kept.length;
    if (!isFolded[i]) kept.push(i);
  }
  return buildTree({
    name: kept.map(i => {
      const more = folded[i] ?? 0;
      return more > 0 ? `${tree.name[i] ?? ''} (+${more})` : (tree.name[i] ?? '');
    }),
    parent: kept.map(i => (i === 0 ? -1 : (place[parent[i] ?? 0] ?? 0))),
    value_ns: kept.map(i => tree.valueNs[i] ?? 0),
    self_ns: kept.map(i => selfOf(tree, i)),
    count: kept.map(i => tree.slices[i] ?? 0),
    kind: kept.map(i => tree.kind[i] ?? ''),
  });
}

/** Two graphs of which each node knows what it has in both, in ns of a step. */
export interface FlameDifference {
  /** Widths are the sums of both, so that what is in one alone shows as well. */
  readonly tree: FlameTree;
  readonly aNs: Float64Array;
  readonly bNs: Float64Array;
}

export function differenceOf(
  a: {readonly tree: FlameTree; readonly steps: number},
  b: {readonly tree: FlameTree; readonly steps: number},
): FlameDifference {
  const growing = new Growing(b.tree.name[0] ?? '', b.tree.kind[0] ?? '');
  const addAll = (side: typeof a, into: number[]): void => {
    const {tree} = side;
    const at = new Int32Array(tree.count);
    const steps = Math.max(1, side.steps);
    for (let i = 0; i < tree.count; i++) {
      // what is summed of a frame is one thing on both sides, whatever number of frames that is
      const name = tree.name[i] ?? '';
      const both = isSummed(name) ? SUMMED : name;
      if (i > 0) at[i] = growing.child(at[tree.parent[i] ?? 0] ?? 0, both, tree.kind[i] ?? '');
      const own = at[i] ?? 0;
      into[own] = (into[own] ?? 0) + selfOf(tree, i) / steps;
      growing.slices[own] = (growing.slices[own] ?? 0) + (tree.slices[i] ?? 0);
    }
  };
  addAll(a, growing.otherNs);
  addAll(b, growing.selfNs);
  const {tree, made} = growing.finish();
  const aNs = Float64Array.from(made, i => growing.otherNs[i] ?? 0);
  const bNs = Float64Array.from(made, i => growing.selfNs[i] ?? 0);
  for (let i = tree.count - 1; i > 0; i--) {
    const above = tree.parent[i] ?? 0;
    aNs[above] = (aNs[above] ?? 0) + (aNs[i] ?? 0);
    bNs[above] = (bNs[above] ?? 0) + (bNs[i] ?? 0);
  }
  return {tree, aNs, bNs};
}

/** How much slower (to 1) or faster (to -1) a frame became. */
export function toneOf(difference: FlameDifference, node: number): number {
  const a = difference.aNs[node] ?? 0;
  const b = difference.bNs[node] ?? 0;
  return a + b > 0 ? (b - a) / Math.max(a, b) : 0;
}
