// The ticks of the time axis. Pure: runs in node.

interface Unit {
  readonly ns: number;
  readonly text: string;
}
const UNITS: readonly Unit[] = [
  {ns: 1e9, text: 's'},
  {ns: 1e6, text: 'ms'},
  {ns: 1e3, text: '\u00b5s'},
  {ns: 1, text: 'ns'},
];

export interface Tick {
  readonly ns: number;
  readonly label: string;
}

export interface Axis {
  readonly stepNs: number;
  readonly ticks: readonly Tick[];
  /** Set when absolute labels would be too long: ticks are then offsets from this time. */
  readonly anchorNs: number | undefined;
}

/** Digits of an absolute label that still fit between two ticks. */
const LABEL_DIGITS_MAX = 9;

/** Smallest 1, 2 or 5 x 10^n ns that is at least `ns`; never below 1 ns. */
export function niceStep(ns: number): number {
  if (ns <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(ns) + 1e-12);
  for (const factor of [1, 2, 5, 10]) if (factor * power >= ns * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/** Ticks of [t0, t1] on `widthPx`, at least `spacingPx` apart. */
export function axisTicks(t0: number, t1: number, widthPx: number, spacingPx: number): Axis {
  const span = t1 - t0;
  if (!(span > 0) || !(widthPx > 0)) return {stepNs: 1, ticks: [], anchorNs: undefined};
  const stepNs = niceStep((span * spacingPx) / widthPx);
  // The unit in which a step is between 0.001 and 100: "301.25 ms" rather than "0.30125 s".
  const unit = UNITS.find(u => stepNs * 10 >= u.ns) ?? {ns: 1, text: 'ns'};
  const decimals = Math.max(
    0,
    Math.round(Math.log10(unit.ns) - Math.floor(Math.log10(stepNs) + 1e-9)),
  );
  const whole = String(Math.floor(Math.max(Math.abs(t0), Math.abs(t1)) / unit.ns)).length;
  const first = Math.ceil(t0 / stepNs);
  const last = Math.floor(t1 / stepNs);
  const isAbsolute = whole + decimals <= LABEL_DIGITS_MAX;
  const anchorNs = isAbsolute ? undefined : first * stepNs;
  const ticks: Tick[] = [];
  // At most one tick per `spacingPx`; the bound holds for any float input.
  for (let i = first; i <= last && ticks.length < 1000; i++) {
    const ns = i * stepNs;
    const value = (ns - (anchorNs ?? 0)) / unit.ns;
    const sign = anchorNs === undefined ? '' : '+';
    ticks.push({ns, label: `${sign}${value.toFixed(decimals)} ${unit.text}`});
  }
  return {stepNs, ticks, anchorNs};
}
