// Text of the flame graph can be read on every color that it stands on.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {CAUSES} from '../base/causes';
import {contrast} from '../base/color';
import {DARK, LIGHT, toneColor, underCause} from './flame_painter';

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
