import assert from 'node:assert/strict';
import {test} from 'node:test';
import {CAUSES, CAUSE_STYLES, causeStyle, causeWord} from './causes';
import {contrast} from './color';
import {setTestWords} from './testing/words';

test('every cause has a color and a pattern of its own', () => {
  const styles = CAUSES.map(cause => CAUSE_STYLES[cause]);
  for (const key of ['light', 'dark'] as const)
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

test('an unknown cause is not attributed', () => {
  setTestWords();
  assert.equal(causeStyle('made_up'), CAUSE_STYLES.unattributed);
  assert.equal(causeWord('made_up').letter, '?');
  assert.equal(causeWord('toString').letter, '?');
  assert.equal(causeWord('sync').waits, 'waits sync');
});
