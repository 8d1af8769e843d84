// What lies under the pointer.

import type {Row} from './rows';

/** An exact slice, or a cell: `count` slices that are together below a pixel or two. */
export interface Hit {
  readonly slice: number;
  readonly nameId: number;
  readonly kind: number;
  readonly lane: number;
  readonly start: number;
  readonly dur: number;
  /** 1: exactly this slice. More: the longest of these, `start` and `dur` being the cell's. */
  readonly count: number;
  readonly busyNs: number;
}

export interface Hover {
  readonly row: Row;
  readonly hit: Hit | undefined;
  /** A counter's value at the pointer. */
  readonly value: number | undefined;
  /** What a device did there, in words. */
  readonly text: string | undefined;
  /** Pointer, CSS pixels in the stage. */
  readonly x: number;
  readonly y: number;
  readonly stageWidth: number;
}
