import assert from 'node:assert/strict';
import {test} from 'node:test';
import {callersOf, calleesOf, differenceOf, foldChains, invertTree, toneOf} from './flame_shapes';
import {buildTree, SUMMED, type FlameTree} from './flame_tree';

/** A tree of stacks with their own time, such as {'a/b': 3}. */
function treeOf(stacks: Readonly<Record<string, number>>): FlameTree {
  const name = ['all'];
  const parent = [-1];
  const self = [0];
  const place = new Map([['', 0]]);
  for (const stack of Object.keys(stacks).sort()) {
    const frames = stack.split('/');
    for (let depth = 1; depth <= frames.length; depth++) {
      const path = frames.slice(0, depth).join('/');
      if (place.has(path)) continue;
      place.set(path, name.length);
      name.push(frames[depth - 1] ?? '');
      parent.push(place.get(frames.slice(0, depth - 1).join('/')) ?? 0);
      self.push(stacks[path] ?? 0);
    }
  }
  const value = [...self];
  for (let i = name.length - 1; i > 0; i--)
    value[parent[i] ?? 0] = (value[parent[i] ?? 0] ?? 0) + (value[i] ?? 0);
  return buildTree({
    name,
    parent,
    value_ns: value,
    self_ns: self,
    count: name.map(() => 1),
    kind: name.map(() => 'cpu_op'),
  });
}

/** The stacks back, with what each has in all. */
function told(tree: FlameTree): Record<string, number> {
  const paths: string[] = [];
  const out: Record<string, number> = {};
  for (let i = 0; i < tree.count; i++) {
    const above = paths[tree.parent[i] ?? -1];
    paths[i] = above === undefined ? (tree.name[i] ?? '') : `${above}/${tree.name[i] ?? ''}`;
    out[paths[i] ?? ''] = tree.valueNs[i] ?? 0;
  }
  return out;
}

const SAMPLE = {'main/f/g': 5, 'main/h/g': 3, 'main/h': 2, 'main/h/g/f': 1};

test('an inverted graph has the ends of stacks first and the same total', () => {
  assert.deepEqual(told(invertTree(treeOf(SAMPLE))), {
    all: 11,
    'all/g': 8,
    'all/g/f': 5,
    'all/g/f/main': 5,
    'all/g/h': 3,
    'all/g/h/main': 3,
    'all/h': 2,
    'all/h/main': 2,
    'all/f': 1,
    'all/f/g': 1,
    'all/f/g/h': 1,
    'all/f/g/h/main': 1,
  });
});

test('callers and callees of a name have its time, recursion once', () => {
  const tree = treeOf(SAMPLE);
  assert.deepEqual(told(callersOf(tree, 'g')), {
    g: 9,
    'g/f': 5,
    'g/f/main': 5,
    'g/h': 4,
    'g/h/main': 4,
  });
  assert.deepEqual(told(calleesOf(tree, 'g')), {g: 9, 'g/f': 1});
  assert.deepEqual(told(calleesOf(treeOf({'r/r/r': 4}), 'r')), {r: 4, 'r/r': 4, 'r/r/r': 4});
  assert.equal(callersOf(treeOf({'r/r/r': 4}), 'r').valueNs[0], 4);
});

test('frames without time of their own or a second child are folded', () => {
  assert.deepEqual(told(foldChains(treeOf({'top/a/b/c/x': 4, 'top/a/b/c/y': 1}))), {
    all: 5,
    'all/top': 5,
    'all/top/c (+2)': 5,
    'all/top/c (+2)/x': 4,
    'all/top/c (+2)/y': 1,
  });
  const branching = treeOf({'top/a': 1, 'top/a/b': 2});
  assert.deepEqual(told(foldChains(branching)), told(branching));
});

test('a difference is by the step, and shows what is in one alone', () => {
  const a = {tree: treeOf({'f/x': 8, 'f/gone': 4}), steps: 2};
  const b = {tree: treeOf({'f/x': 6, 'f/new': 3}), steps: 1};
  const both = differenceOf(a, b);
  const at = (name: string) => both.tree.name.indexOf(name);
  const sides = (name: string) => [both.aNs[at(name)], both.bNs[at(name)]];
  assert.deepEqual(sides('f'), [6, 9]);
  assert.deepEqual(sides('x'), [4, 6]);
  assert.deepEqual(sides('gone'), [2, 0]);
  assert.deepEqual(sides('new'), [0, 3]);
  assert.deepEqual([toneOf(both, at('gone')), toneOf(both, at('new'))], [-1, 1]);
  assert.equal(both.tree.valueNs[0], 15);
});

test('what is summed on both sides is one frame, though each side sums another number', () => {
  const a = {tree: treeOf({'f/x': 10, 'f/... 17 more': 4}), steps: 1};
  const b = {tree: treeOf({'f/x': 10, 'f/... 15 more': 3}), steps: 1};
  const both = differenceOf(a, b);
  const at = both.tree.name.indexOf(SUMMED);
  assert.deepEqual([both.aNs[at], both.bNs[at]], [4, 3]);
  assert.equal(both.tree.count, 4);
});
