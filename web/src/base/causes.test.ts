import assert from 'node:assert/strict';
import {test} from 'node:test';
import {CAUSES, CAUSE_STYLES, causeStyle} from './causes';
import {contrast} from './color';

test('every cause has a letter, a color and a pattern of its own', () => {
  const styles = CAUSES.map(cause => CAUSE_STYLES[cause]);
  assert.equal(styles.map(s => s.letter).join(''), 'DSLCAMNWHP?');
  for (const key of ['letter', 'light', 'dark', 'short'] as const)
    assert.equal(new Set(styles.map(s => s[key])).size, styles.length, key);
  assert.equal(new Set(styles.map(s => JSON.stringify(s.strokes))).size, styles.length);
});

test('letters can be read on their colors', () => {
  for (const cause of CAUSES) {
    const style = CAUSE_STYLES[cause];
    assert.ok(contrast(style.light, style.onLight) >= 4.5, `${cause} light`);
    assert.ok(contrast(style.dark, style.onDark) >= 4.5, `${cause} dark`);
  }
});

test('an unknown cause is "not attributed"', () => {
  assert.equal(causeStyle('made_up').letter, '?');
  assert.equal(causeStyle('toString').letter, '?');
});
