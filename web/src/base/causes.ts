// The causes of idle time on screen: a color and a pattern each, the same everywhere. Order and
// names are those of `idle_by_cause_ns` in lacuna.analysis/1; their words come from the program.
import {word, type Word} from './vocabulary';

export const CAUSES = [
  'data_wait',
  'sync',
  'launch',
  'copy_wait',
  'allocator',
  'module_load',
  'comm',
  'dependency',
  'host',
  'profiler',
  'unattributed',
] as const;

export type Cause = (typeof CAUSES)[number];

/** One stroke inside an 8 x 8 cell that repeats: x0, y0, x1, y1. A dot is a stroke of no length. */
export type Stroke = readonly [number, number, number, number];

export interface CauseStyle {
  readonly light: string;
  readonly dark: string;
  /** Text on the color, with a contrast of 4.5 or more. */
  readonly onLight: string;
  readonly onDark: string;
  readonly strokes: readonly Stroke[];
}

const diagonal: readonly Stroke[] = [
  [0, 8, 8, 0],
  [-2, 2, 2, -2],
  [6, 10, 10, 6],
];
const backDiagonal: readonly Stroke[] = [
  [0, 0, 8, 8],
  [-2, 6, 2, 10],
  [6, -2, 10, 2],
];
const horizontal: readonly Stroke[] = [[0, 4, 8, 4]];
const vertical: readonly Stroke[] = [[4, 0, 4, 8]];
const dots: readonly Stroke[] = [
  [2, 2, 2, 2],
  [6, 6, 6, 6],
];
const zigzag: readonly Stroke[] = [
  [0, 6, 4, 2],
  [4, 2, 8, 6],
];
const dashes: readonly Stroke[] = [
  [1, 2, 5, 2],
  [5, 6, 8, 6],
  [0, 6, 1, 6],
];

const WHITE = '#ffffff';
const INK = '#14161a';

export const CAUSE_STYLES: Readonly<Record<Cause, CauseStyle>> = {
  data_wait: {
    light: '#d0430c',
    dark: '#ff8a4c',
    onLight: WHITE,
    onDark: INK,
    strokes: diagonal,
  },
  sync: {
    light: '#7048d8',
    dark: '#ab8fff',
    onLight: WHITE,
    onDark: INK,
    strokes: vertical,
  },
  launch: {
    light: '#f0b400',
    dark: '#ffd23f',
    onLight: INK,
    onDark: INK,
    strokes: zigzag,
  },
  copy_wait: {
    light: '#1971c2',
    dark: '#62b4ff',
    onLight: WHITE,
    onDark: INK,
    strokes: horizontal,
  },
  allocator: {
    light: '#c2255c',
    dark: '#ff7aa8',
    onLight: WHITE,
    onDark: INK,
    strokes: [...diagonal, ...backDiagonal],
  },
  module_load: {
    light: '#8f5a33',
    dark: '#d9a074',
    onLight: WHITE,
    onDark: INK,
    strokes: dashes,
  },
  comm: {
    light: '#087f6f',
    dark: '#3fd0b6',
    onLight: WHITE,
    onDark: INK,
    strokes: dots,
  },
  dependency: {
    light: '#4c6ea8',
    dark: '#93b4ea',
    onLight: WHITE,
    onDark: INK,
    strokes: backDiagonal,
  },
  host: {
    light: '#4f7d0c',
    dark: '#a3d65c',
    onLight: WHITE,
    onDark: INK,
    strokes: [...horizontal, ...vertical],
  },
  profiler: {
    light: '#6d6a3f',
    dark: '#c4c08a',
    onLight: WHITE,
    onDark: INK,
    strokes: [[2, 4, 6, 4]],
  },
  unattributed: {
    light: '#868c95',
    dark: '#9aa1ab',
    onLight: INK,
    onDark: INK,
    strokes: [
      [0, 8, 8, 0],
      [-2, 2, 2, -2],
      [6, 10, 10, 6],
      [4, 4, 4, 4],
    ],
  },
};

export function isCause(text: string): text is Cause {
  return (CAUSES as readonly string[]).includes(text);
}

/** Style of a cause by its name; unknown names are "not attributed". */
export function causeStyle(name: string): CauseStyle {
  return CAUSE_STYLES[knownCause(name)];
}

/** Words of a cause by its name; unknown names are "not attributed". */
export function causeWord(name: string): Word {
  return word('causes', knownCause(name));
}

function knownCause(name: string): Cause {
  return isCause(name) ? name : 'unattributed';
}
