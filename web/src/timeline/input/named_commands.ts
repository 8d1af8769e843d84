// Names of what the timeline's keys do. Only the command palette needs them.
import type {Command} from './keymap';

/** By name, for the command palette: command, name, keys. */
export const NAMED_COMMANDS: readonly (readonly [Command, string, string])[] = [
  ['gap-next', 'Next gap by size', 'G'],
  ['gap-previous', 'Previous gap by size', 'Shift G'],
  ['gap-same', 'Next gap of the same kind', 'Alt G'],
  ['outlier-next', 'Next unusually long step', 'N'],
  ['whole', 'Whole trace', '0'],
  ['fit', 'Zoom to the selection', 'F'],
  ['zoom-in', 'Zoom in', 'W'],
  ['zoom-out', 'Zoom out', 'S'],
  ['link', 'From a kernel to its launch and back', 'L'],
  ['batch', 'Follow a batch', 'B'],
  ['batch-next', 'Next batch', 'Shift B'],
  ['batch-previous', 'Previous batch', 'Alt B'],
  ['mark', 'Select the time of the selection as an area', 'M'],
  ['bookmark', 'Bookmark the selection', 'Shift M'],
  ['slice-previous', 'Previous slice of the row', ','],
  ['slice-next', 'Next slice of the row', '.'],
  ['search', 'Search names', '/'],
  ['rows', 'Essential rows or all rows', 'R'],
  ['clear', 'Clear the selection', 'Esc'],
  ['back', 'Back to the previous selection', 'Backspace'],
];
