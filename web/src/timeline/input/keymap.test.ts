import assert from 'node:assert/strict';
import test from 'node:test';
import {commandFor, isHeldCommand, isTextTarget, SHORTCUTS, type KeyPress} from './keymap';

const press = (code: string, key: string, more: Partial<KeyPress> = {}): KeyPress => ({
  code,
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...more,
});

test('W A S D are places on the keyboard, whatever the layout writes there', () => {
  assert.equal(commandFor(press('KeyW', 'w')), 'zoom-in');
  assert.equal(commandFor(press('KeyW', 'z')), 'zoom-in'); // AZERTY
  assert.equal(commandFor(press('KeyA', 'q')), 'pan-left'); // AZERTY
  assert.equal(commandFor(press('KeyS', 'o')), 'zoom-out'); // Dvorak
  assert.equal(commandFor(press('KeyD', 'D', {shiftKey: true})), 'pan-right');
});

test('all other letters are what they write', () => {
  assert.equal(commandFor(press('KeyU', 'g')), 'gap-next'); // Dvorak
  assert.equal(commandFor(press('KeyG', 'G', {shiftKey: true})), 'gap-previous');
  assert.equal(commandFor(press('KeyG', '\u00a9', {altKey: true})), 'gap-same'); // macOS
  assert.equal(commandFor(press('KeyF', 'f')), 'fit');
  assert.equal(commandFor(press('KeyL', 'l')), 'link');
  assert.equal(commandFor(press('BracketLeft', '[')), 'flow-previous');
  assert.equal(commandFor(press('Digit9', ']', {ctrlKey: true, altKey: true})), 'flow-next'); // AltGr
  assert.equal(commandFor(press('Digit6', ']', {altKey: true})), 'flow-next'); // macOS
  assert.equal(commandFor(press('BracketLeft', '[', {metaKey: true})), undefined); // Back
  assert.equal(commandFor(press('KeyB', 'b')), 'batch');
  assert.equal(commandFor(press('KeyB', 'B', {shiftKey: true})), 'batch-next');
  assert.equal(commandFor(press('KeyB', '\u222b', {altKey: true})), 'batch-previous'); // macOS
  assert.equal(commandFor(press('KeyN', 'n')), 'outlier-next');
  assert.equal(commandFor(press('KeyM', 'm')), 'mark');
  assert.equal(commandFor(press('KeyM', 'M', {shiftKey: true})), 'bookmark');
  assert.equal(commandFor(press('KeyR', 'r')), 'rows');
  assert.equal(commandFor(press('Comma', ',')), 'slice-previous');
  assert.equal(commandFor(press('Period', '.')), 'slice-next');
  assert.equal(commandFor(press('Digit7', '/', {shiftKey: true})), 'search'); // German
  assert.equal(commandFor(press('Digit3', '3')), 'finding-3');
  assert.equal(commandFor(press('Digit6', '6')), undefined);
});

test('the rest of the table', () => {
  assert.equal(commandFor(press('Digit0', '0')), 'whole');
  assert.equal(commandFor(press('Home', 'Home')), 'whole');
  assert.equal(commandFor(press('Escape', 'Escape')), 'clear');
  assert.equal(commandFor(press('Enter', 'Enter')), 'hit-next');
  assert.equal(commandFor(press('Enter', 'Enter', {shiftKey: true})), 'hit-previous');
  assert.equal(commandFor(press('Equal', '+', {shiftKey: true})), 'zoom-in');
  assert.equal(commandFor(press('Minus', '-')), 'zoom-out');
  assert.equal(commandFor(press('Backspace', 'Backspace')), 'back');
  assert.equal(commandFor(press('ArrowLeft', 'ArrowLeft')), 'slice-previous');
  assert.equal(commandFor(press('ArrowLeft', 'ArrowLeft', {altKey: true})), 'back');
});

test('Ctrl A and Cmd A select the whole time', () => {
  assert.equal(commandFor(press('KeyA', 'a', {ctrlKey: true})), 'everything');
  assert.equal(commandFor(press('KeyQ', 'a', {metaKey: true})), 'everything'); // AZERTY
});

test('the menu has the keys that menus have', () => {
  assert.equal(commandFor(press('ContextMenu', 'ContextMenu')), 'menu');
  assert.equal(commandFor(press('F10', 'F10', {shiftKey: true})), 'menu');
  assert.equal(commandFor(press('F10', 'F10')), undefined);
});

test('what belongs to the browser stays with it', () => {
  for (const [code, key] of [
    ['KeyS', 's'],
    ['KeyW', 'w'],
    ['KeyD', 'd'],
    ['KeyR', 'r'],
    ['KeyL', 'l'],
    ['Digit0', '0'],
    ['Digit1', '1'],
    ['Minus', '-'],
  ] as const) {
    assert.equal(commandFor(press(code, key, {ctrlKey: true})), undefined, key);
    assert.equal(commandFor(press(code, key, {metaKey: true})), undefined, key);
  }
  assert.equal(commandFor(press('KeyF', 'f', {ctrlKey: true})), 'search');
  assert.equal(commandFor(press('KeyF', 'F', {ctrlKey: true, shiftKey: true})), undefined);
  assert.equal(commandFor(press('KeyA', 'A', {ctrlKey: true, shiftKey: true})), undefined);
  assert.equal(commandFor(press('Tab', 'Tab')), undefined);
  assert.equal(commandFor(press('F5', 'F5')), undefined);
});

test('zoom and pan go on while held, nothing else does', () => {
  assert.ok(isHeldCommand('zoom-in') && isHeldCommand('pan-right'));
  assert.ok(!isHeldCommand('gap-next') && !isHeldCommand('whole'));
});

test('typing is typing', () => {
  assert.ok(isTextTarget({tagName: 'INPUT'}));
  assert.ok(isTextTarget({tagName: 'TEXTAREA'}));
  assert.ok(isTextTarget({tagName: 'DIV', isContentEditable: true}));
  assert.ok(!isTextTarget({tagName: 'BUTTON'}));
});

test('the help has no key twice', () => {
  const seen = new Set<string>();
  for (const {shortcuts} of SHORTCUTS) {
    for (const {keys, text} of shortcuts) {
      assert.ok(text !== '');
      const key = keys.join('+');
      assert.ok(!seen.has(key), key);
      seen.add(key);
    }
  }
});
