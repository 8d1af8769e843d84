// The gaps of all devices, largest first, loaded when somebody first asks. No DOM.

import type {GapInfo} from '../../api/types';

/** More than a person steps through; the rest is reached by zooming. */
const GAPS_MAX = 2000;

export type GapFetch = (device: number, limit: number) => Promise<readonly GapInfo[]>;

export class GapList {
  private promise: Promise<readonly GapInfo[]> | undefined;
  private readonly devices: readonly number[];

  constructor(
    private readonly fetch: GapFetch,
    devices: readonly number[],
  ) {
    this.devices = [...new Set(devices)];
  }

  /** Largest first; of equals the earlier. */
  load(): Promise<readonly GapInfo[]> {
    this.promise ??= Promise.all(this.devices.map(device => this.fetch(device, GAPS_MAX))).then(
      lists => lists.flat().sort((a, b) => b.dur_ns - a.dur_ns || a.start_ns - b.start_ns),
    );
    // A failure is not kept: the next question asks again.
    this.promise.catch(() => {
      this.promise = undefined;
    });
    return this.promise;
  }
}

const isSameGap = (a: GapInfo, device: number, t0: number): boolean =>
  a.device === device && a.start_ns === t0;

/** The gap `step` places further in the list, by size, in a circle; `filter` leaves some out. */
export function stepGap(
  gaps: readonly GapInfo[],
  current: {readonly device: number; readonly t0: number} | undefined,
  step: 1 | -1,
  isWanted: (gap: GapInfo) => boolean = () => true,
): GapInfo | undefined {
  const wanted = gaps.filter(isWanted);
  if (wanted.length === 0) return undefined;
  const at = current ? wanted.findIndex(g => isSameGap(g, current.device, current.t0)) : -1;
  // Nothing selected yet: forwards begins with the largest, backwards with the smallest.
  const next = at < 0 ? (step > 0 ? 0 : wanted.length - 1) : at + step;
  return wanted[(next + wanted.length) % wanted.length];
}
