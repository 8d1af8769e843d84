// The causes of idle time: a letter, a color and a pattern each, the same everywhere.
// Order and names are those of `idle_by_cause_ns` in lacuna.analysis/1.

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
  readonly cause: Cause;
  readonly letter: string;
  /** One or two words: legends, chips. */
  readonly short: string;
  /** "The GPU waits ...": a sentence's end without jargon. */
  readonly words: string;
  /** What exactly is counted here. */
  readonly definition: string;
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
    cause: 'data_wait',
    letter: 'D',
    short: 'data',
    words: 'for data',
    definition: 'The device is idle while the training process waits for the next batch.',
    light: '#d0430c',
    dark: '#ff8a4c',
    onLight: WHITE,
    onDark: INK,
    strokes: diagonal,
  },
  sync: {
    cause: 'sync',
    letter: 'S',
    short: 'synchronization',
    words: 'for the host after a synchronization',
    definition:
      'A blocking call had emptied the queue: the rest of the gap until the next operation starts, less what another cause explains.',
    light: '#7048d8',
    dark: '#ab8fff',
    onLight: WHITE,
    onDark: INK,
    strokes: vertical,
  },
  launch: {
    cause: 'launch',
    letter: 'L',
    short: 'launches',
    words: 'for launches',
    definition:
      'The host is launching work, or a launch is on its way, and it is slower than the device.',
    light: '#f0b400',
    dark: '#ffd23f',
    onLight: INK,
    onDark: INK,
    strokes: zigzag,
  },
  copy_wait: {
    cause: 'copy_wait',
    letter: 'C',
    short: 'copies',
    words: 'for copies',
    definition: 'The device waits for a copy from the host to be prepared or to arrive.',
    light: '#1971c2',
    dark: '#62b4ff',
    onLight: WHITE,
    onDark: INK,
    strokes: horizontal,
  },
  allocator: {
    cause: 'allocator',
    letter: 'A',
    short: 'allocator',
    words: 'for the memory allocator',
    definition: 'The host is in cudaMalloc, cudaFree or the like while the device is idle.',
    light: '#c2255c',
    dark: '#ff7aa8',
    onLight: WHITE,
    onDark: INK,
    strokes: [...diagonal, ...backDiagonal],
  },
  module_load: {
    cause: 'module_load',
    letter: 'M',
    short: 'modules and compile',
    words: 'for modules to load or code to compile',
    definition: 'The host loads GPU code or compiles it, mostly at the first use of a kernel.',
    light: '#8f5a33',
    dark: '#d9a074',
    onLight: WHITE,
    onDark: INK,
    strokes: dashes,
  },
  comm: {
    cause: 'comm',
    letter: 'N',
    short: 'other ranks',
    words: 'for other ranks',
    definition: 'The device is idle while the host waits for other ranks or the network.',
    light: '#087f6f',
    dark: '#3fd0b6',
    onLight: WHITE,
    onDark: INK,
    strokes: dots,
  },
  dependency: {
    cause: 'dependency',
    letter: 'W',
    short: 'another stream',
    words: 'for another stream',
    definition: 'Work was queued, but had to wait for an event of another stream.',
    light: '#4c6ea8',
    dark: '#93b4ea',
    onLight: WHITE,
    onDark: INK,
    strokes: backDiagonal,
  },
  host: {
    cause: 'host',
    letter: 'H',
    short: 'other host work',
    words: 'for the host',
    definition: 'The launching thread does something else, or is not on a core.',
    light: '#4f7d0c',
    dark: '#a3d65c',
    onLight: WHITE,
    onDark: INK,
    strokes: [...horizontal, ...vertical],
  },
  profiler: {
    cause: 'profiler',
    letter: 'P',
    short: 'the profiler itself',
    words: 'for the profiler itself',
    definition: 'The recorder flushes its buffers or adds its own cost to the host.',
    light: '#6d6a3f',
    dark: '#c4c08a',
    onLight: WHITE,
    onDark: INK,
    strokes: [[2, 4, 6, 4]],
  },
  unattributed: {
    cause: 'unattributed',
    letter: '?',
    short: 'not attributed',
    words: 'for something this trace does not show',
    definition: 'Nothing in the trace explains this part of the gap.',
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

/** Style of a cause by its name; what is not known is "not attributed". */
export function causeStyle(name: string): CauseStyle {
  return CAUSE_STYLES[isCause(name) ? name : 'unattributed'];
}
