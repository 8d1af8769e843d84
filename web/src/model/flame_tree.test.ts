import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  buildTree,
  isSummed,
  layoutTree,
  neighbor,
  nodeAt,
  pathTo,
  searchTree,
  SUMMED,
  tableOf,
} from './flame_tree';

/** "name value" lines, indented by depth, as a tree in preorder. */
function fromText(text: string) {
  const lines = text.split('\n').filter(line => line.trim() !== '');
  const nodes = {
    name: [] as string[],
    parent: [] as number[],
    value_ns: [] as number[],
    self_ns: [] as number[],
    count: [] as number[],
    kind: [] as string[],
    depth: [] as number[],
  };
  const open: number[] = [];
  for (const line of lines) {
    const depth = line.search(/\S/);
    const [name = '', value = '0'] = line.trim().split(' ');
    open.length = depth;
    const parent = open.at(-1) ?? -1;
    const index = nodes.name.length;
    nodes.name.push(name);
    nodes.parent.push(parent);
    nodes.value_ns.push(Number(value));
    nodes.self_ns.push(Number(value));
    nodes.count.push(1);
    nodes.kind.push(depth === 0 ? 'other' : 'op');
    nodes.depth.push(depth);
    if (parent >= 0) nodes.self_ns[parent] = (nodes.self_ns[parent] ?? 0) - Number(value);
    open.push(index);
  }
  return buildTree(nodes);
}

const tree = fromText(`
all 100
 a 60
  c 40
   a 10
  d 20
 b 30
  c 30`);
const [ALL, A, C, A2, D, B, C2] = [0, 1, 2, 3, 4, 5, 6];
const edges = (focus: number, dropped: number[], node: number): [number, number] => {
  const layout = layoutTree(tree, focus, dropped);
  return [layout.x0[node] ?? -1, layout.x1[node] ?? -1].map(v => Math.round(v * 1000) / 1000) as [
    number,
    number,
  ];
};

test('children stand side by side inside their parents', () => {
  assert.deepEqual(edges(ALL, [], ALL), [0, 1]);
  assert.deepEqual(edges(ALL, [], A), [0, 0.6]);
  assert.deepEqual(edges(ALL, [], C), [0, 0.4]);
  assert.deepEqual(edges(ALL, [], D), [0.4, 0.6]);
  assert.deepEqual(edges(ALL, [], B), [0.6, 0.9]);
  assert.deepEqual(edges(ALL, [], C2), [0.6, 0.9]);
});

test('a focused frame fills the width, with its ancestors', () => {
  assert.deepEqual(edges(B, [], ALL), [0, 1]);
  assert.deepEqual(edges(B, [], B), [0, 1]);
  assert.deepEqual(edges(B, [], C2), [0, 1]);
  assert.deepEqual(edges(B, [], A), [0, 0]);
  assert.deepEqual(edges(999, [], A), [0, 0.6]);
});

test('a dropped frame takes its time out of its ancestors', () => {
  const layout = layoutTree(tree, ALL, [C]);
  assert.equal(layout.valueNs[ALL], 60);
  assert.equal(layout.valueNs[A], 20);
  assert.deepEqual(edges(ALL, [C], D), [0, 0.333]);
  assert.deepEqual(edges(ALL, [C], C), [0, 0]);
  // a frame inside a dropped one is not taken out twice
  assert.equal(layoutTree(tree, ALL, [C, A2]).valueNs[ALL], 60);
  // the root stays
  assert.equal(layoutTree(tree, ALL, [0]).valueNs[ALL], 100);
});

test('a place leads to its frame', () => {
  const layout = layoutTree(tree, ALL, []);
  assert.equal(nodeAt(tree, layout, 0.5, 1), A);
  assert.equal(nodeAt(tree, layout, 0.5, 2), D);
  assert.equal(nodeAt(tree, layout, 0.95, 1), undefined);
  assert.equal(nodeAt(tree, layout, 0.7, 2), C2);
});

test('a match inside a match counts once', () => {
  const layout = layoutTree(tree, ALL, []);
  const match = searchTree(tree, layout, ' A');
  assert.equal(match?.frames, 3); // all, a, a
  assert.equal(match?.totalNs, 100);
  assert.equal(searchTree(tree, layout, 'c')?.totalNs, 70);
  assert.equal(searchTree(tree, layout, ' '), undefined);
  assert.equal(searchTree(tree, layout, 'zzz')?.frames, 0);
});

test('the table sums by name, recursion once', () => {
  const rows = tableOf(tree, layoutTree(tree, ALL, []));
  const row = (name: string) => rows.find(r => r.name === name);
  assert.equal(row('a')?.totalNs, 60);
  assert.equal(row('a')?.selfNs, 10);
  assert.equal(row('c')?.totalNs, 70);
  assert.equal(row('c')?.selfNs, 60);
  assert.equal(row('c')?.slices, 2);
  assert.equal(row('c')?.node, C);
  assert.equal(
    rows.reduce((sum, r) => sum + r.selfNs, 0),
    90,
  );
});

test('what the server summed is one row, however many frames it sums in each place', () => {
  const nodes = {
    name: ['all', 'a', '... 5 more', 'b', '... 2 more'],
    parent: [-1, 0, 1, 0, 3],
    value_ns: [100, 60, 30, 40, 10],
    self_ns: [0, 30, 30, 30, 10],
    count: [1, 1, 5, 1, 2],
    kind: ['other', 'op', 'op', 'op', 'op'],
  };
  const pruned = buildTree(nodes);
  const rows = tableOf(pruned, layoutTree(pruned, ALL, []));
  assert.deepEqual(
    rows.map(row => [row.name, row.selfNs, row.slices, row.node]),
    [
      [SUMMED, 40, 7, 2],
      ['a', 30, 1, 1],
      ['b', 30, 1, 3],
    ],
  );
  assert.ok(isSummed(SUMMED) && isSummed('... 12 more') && !isSummed('more'));
});

test('arrow keys walk the tree', () => {
  const layout = layoutTree(tree, ALL, []);
  assert.equal(neighbor(tree, layout, C, 'up'), A);
  assert.equal(neighbor(tree, layout, A, 'down'), C);
  assert.equal(neighbor(tree, layout, A, 'right'), B);
  assert.equal(neighbor(tree, layout, D, 'right'), C2);
  assert.equal(neighbor(tree, layout, C, 'left'), C);
  assert.equal(neighbor(tree, layout, A2, 'down'), A2);
  assert.deepEqual(pathTo(tree, A2), [ALL, A, C, A2]);
});

test('what is no tree in preorder is refused', () => {
  const nodes = {
    name: ['r', 'x'],
    value_ns: [1, 1],
    self_ns: [0, 1],
    count: [1, 1],
    kind: ['', ''],
  };
  assert.throws(() => buildTree({...nodes, parent: [-1, 5], depth: [0, 1]}), /nodes.parent\[1\]/);
  assert.throws(() => buildTree({...nodes, parent: [-1, -1], depth: [0, 0]}), /nodes.parent\[1\]/);
  assert.throws(() => buildTree({...nodes, parent: [-1], depth: [0]}), /2 entries/);
  const empty = buildTree({
    name: [],
    parent: [],
    value_ns: [],
    self_ns: [],
    count: [],
    kind: [],
    depth: [],
  });
  assert.equal(layoutTree(empty, 0, []).x0.length, 0);
});
