// Keys of the timeline: one table for the handler and for the help. Pure: runs in node.

import type {ShortcutGroup} from '../../model/shortcuts';

export type Command =
  | 'zoom-in'
  | 'zoom-out'
  | 'pan-left'
  | 'pan-right'
  | 'scroll-up'
  | 'scroll-down'
  | 'fit'
  | 'whole'
  | 'clear'
  | 'slice-previous'
  | 'slice-next'
  | 'slice-up'
  | 'slice-down'
  | 'gap-next'
  | 'gap-previous'
  | 'gap-same'
  | 'outlier-next'
  | 'link'
  | 'flow-next'
  | 'flow-previous'
  | 'batch'
  | 'batch-next'
  | 'batch-previous'
  | 'search'
  | 'hit-next'
  | 'hit-previous'
  | 'finding-1'
  | 'finding-2'
  | 'finding-3'
  | 'finding-4'
  | 'finding-5'
  | 'mark'
  | 'everything'
  | 'menu'
  | 'bookmark'
  | 'rows'
  | 'back';

/** The part of a KeyboardEvent that decides. */
export interface KeyPress {
  readonly code: string;
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/** What the help shows. */
export const SHORTCUTS: readonly ShortcutGroup[] = [
  {
    title: 'Timeline: move',
    shortcuts: [
      {keys: ['W', 'S'], text: 'zoom in, out (also + and \u2212)'},
      {keys: ['A', 'D'], text: 'move left, right'},
      {keys: ['Ctrl', 'wheel'], text: 'zoom at the pointer (also pinch)'},
      {keys: ['Shift', 'wheel'], text: 'move sideways (also middle or right drag)'},
      {
        keys: ['Shift', 'drag'],
        text: 'zoom to what is dragged over (also a drag on the time axis)',
      },
      {keys: ['F'], text: 'center the selection; again: fit it'},
      {keys: ['0', 'Home'], text: 'whole trace'},
      {keys: ['Backspace'], text: 'back to the previous selection (also Alt Left)'},
    ],
  },
  {
    title: 'Timeline: gaps',
    shortcuts: [
      {keys: ['G'], text: 'next gap by size'},
      {keys: ['Shift', 'G'], text: 'previous gap by size'},
      {keys: ['Alt', 'G'], text: 'next gap of the same kind'},
      {keys: ['N'], text: 'next unusually long step'},
    ],
  },
  {
    title: 'Timeline: slices',
    shortcuts: [
      {keys: ['click'], text: 'select (double click: zoom to the selection)'},
      {keys: [',', '.'], text: 'previous, next slice of the row (also Left and Right)'},
      {keys: ['Up', 'Down'], text: 'enclosing slice, first slice inside'},
      {keys: ['L'], text: 'from a kernel to its launch, from an operator to its first kernel'},
      {keys: ['[', ']'], text: 'what launched this, what this launched (again: the next)'},
      {keys: ['right click'], text: 'what can be done with a slice (also Shift F10)'},
      {keys: ['B'], text: 'follow a batch: worker, the wait for it, and back'},
      {keys: ['Shift', 'B'], text: 'next batch (Alt B: previous)'},
      {keys: ['drag'], text: 'select an area; it snaps to the edges of slices (Alt: it does not)'},
      {keys: ['Shift', 'click'], text: 'measure from the selected slice to this one'},
      {keys: ['M'], text: 'select the time of the selection as an area (Ctrl A: all of it)'},
      {keys: ['Shift', 'M'], text: 'bookmark the selection (also a double click on the time axis)'},
      {keys: ['Esc'], text: 'clear the selection'},
    ],
  },
  {
    title: 'Timeline: search and rows',
    shortcuts: [
      {keys: ['/'], text: 'search names (also Ctrl F)'},
      {keys: ['Enter'], text: 'next hit'},
      {keys: ['Shift', 'Enter'], text: 'previous hit'},
      {keys: ['R'], text: 'essential rows or all rows'},
      {keys: ['Tab', 'arrows'], text: 'the buttons of the rows'},
    ],
  },
];

// Letters by position on the keyboard, so that W A S D is the same cross on every layout.
const BY_CODE: ReadonlyMap<string, Command> = new Map([
  ['KeyW', 'zoom-in'],
  ['KeyS', 'zoom-out'],
  ['KeyA', 'pan-left'],
  ['KeyD', 'pan-right'],
  ['NumpadAdd', 'zoom-in'],
  ['NumpadSubtract', 'zoom-out'],
  ['Home', 'whole'],
  ['ArrowLeft', 'slice-previous'],
  ['ArrowRight', 'slice-next'],
  ['ArrowUp', 'slice-up'],
  ['ArrowDown', 'slice-down'],
  ['PageUp', 'scroll-up'],
  ['PageDown', 'scroll-down'],
  ['Escape', 'clear'],
  ['Backspace', 'back'],
]);

// All other letters and signs by what they write: G is where its label is.
const BY_KEY: ReadonlyMap<string, Command> = new Map([
  ['+', 'zoom-in'],
  ['=', 'zoom-in'],
  ['-', 'zoom-out'],
  ['_', 'zoom-out'],
  ['0', 'whole'],
  ['f', 'fit'],
  [',', 'slice-previous'],
  ['.', 'slice-next'],
  ['n', 'outlier-next'],
  ['l', 'link'],
  [']', 'flow-next'],
  ['[', 'flow-previous'],
  ['r', 'rows'],
  ['/', 'search'],
  ['1', 'finding-1'],
  ['2', 'finding-2'],
  ['3', 'finding-3'],
  ['4', 'finding-4'],
  ['5', 'finding-5'],
]);

const HELD: ReadonlySet<Command> = new Set(['zoom-in', 'zoom-out', 'pan-left', 'pan-right']);

/** Commands that go on while their key is down. */
export const isHeldCommand = (command: Command): boolean => HELD.has(command);

/** The command of a key press; undefined when it is not ours (the browser's, or none). */
export function commandFor(press: KeyPress): Command | undefined {
  const {code, key, ctrlKey, metaKey, altKey, shiftKey} = press;
  const letter = key.toLowerCase();
  // layouts write brackets with AltGr, which is Ctrl and Alt, or with Alt
  if ((key === '[' || key === ']') && !metaKey && (altKey || !ctrlKey)) return BY_KEY.get(key);
  if (ctrlKey || metaKey) {
    if (altKey || shiftKey) return undefined;
    return letter === 'f' ? 'search' : letter === 'a' ? 'everything' : undefined;
  }
  // With Alt a layout may write another sign on G: its place counts as well.
  if (altKey) {
    if (letter === 'g' || code === 'KeyG') return 'gap-same';
    if (letter === 'b' || code === 'KeyB') return 'batch-previous';
    return code === 'ArrowLeft' ? 'back' : undefined;
  }
  if (key === 'ContextMenu' || (key === 'F10' && shiftKey)) return 'menu';
  if (letter === 'b') return shiftKey ? 'batch-next' : 'batch';
  if (letter === 'g') return shiftKey ? 'gap-previous' : 'gap-next';
  if (letter === 'm') return shiftKey ? 'bookmark' : 'mark';
  if (key === 'Enter') return shiftKey ? 'hit-previous' : 'hit-next';
  return BY_CODE.get(code) ?? BY_KEY.get(letter);
}

/** Where keys must stay text input. */
export function isTextTarget(element: {tagName: string; isContentEditable?: boolean}): boolean {
  return element.isContentEditable === true || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
}
