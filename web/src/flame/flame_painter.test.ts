// Text of the flame graph can be read on every color that it stands on.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {CAUSES} from '../base/causes';
import {contrast} from '../base/color';
import {buildTree, layoutTree} from '../model/flame_tree';
import {DARK, FlamePainter, LIGHT, toneColor, underCause} from './flame_painter';

for (const [name, tints, isDark] of [
  ['light', LIGHT, false],
  ['dark', DARK, true],
] as const) {
  test(`names and amounts have a contrast of 4.5 on frames, ${name}`, () => {
    const grounds = [...tints.frames, ...tints.work, tints.ancestor];
    for (const cause of CAUSES) grounds.push(underCause(cause, isDark));
    for (const text of [tints.text, tints.faintText])
      for (const ground of grounds)
        assert.ok(contrast(text, ground) >= 4.5, `${text} on ${ground}: ${contrast(text, ground)}`);
  });

  test(`and on all colors of a difference, ${name}`, () => {
    for (let tone = -1; tone <= 1; tone += 0.05) {
      const ground = toneColor(tone, isDark);
      assert.ok(contrast(tints.text, ground) >= 4.5, `${tints.text} on ${ground}`);
    }
  });
}

test('the name of the focused frame is bold, those around it and its value are not', () => {
  const fonts = new Map<string, string>();
  const context = {
    font: '',
    setTransform: () => undefined,
    fillRect: () => undefined,
    measureText: (text: string) => ({width: 6 * text.length}),
    fillText: (text: string) => fonts.set(text, context.font),
  };
  const canvas = {style: {}, getContext: () => context} as unknown as HTMLCanvasElement;
  Object.assign(globalThis, {devicePixelRatio: 1});
  const tree = buildTree({
    name: ['all', 'outer', 'inner'],
    parent: [-1, 0, 1],
    value_ns: [100, 90, 80],
    self_ns: [10, 10, 80],
    count: [1, 1, 1],
    kind: ['other', 'op', 'op'],
  });
  new FlamePainter(canvas).paint(
    {
      tree,
      layout: layoutTree(tree, 1, []),
      match: undefined,
      hovered: undefined,
      active: undefined,
      isDark: false,
      labelOf: node => tree.name[node] ?? '',
      valueText: node => `value ${node}`,
    },
    1000,
    100,
    0,
  );
  const isBold = [...fonts].map(([text, font]) => [text, font.startsWith('bold')]);
  assert.deepEqual(isBold, [
    ['all', false],
    ['value 0', false],
    ['outer', true],
    ['value 1', false],
    ['inner', false],
    ['value 2', false],
  ]);
});
