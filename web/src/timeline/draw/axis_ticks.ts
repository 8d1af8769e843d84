// The ticks of the time axis. Pure: runs in node.

import {THIN, formatCount} from '../../base/format';

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
  /** How a time between two ticks is written. */
  readonly text: (ns: number) => string;
}

/** Digits of an absolute label that still fit between two ticks. */
const LABEL_DIGITS_MAX = 9;
const DECIMALS_MAX = 3;

/** Smallest 1, 2 or 5 x 10^n ns that is at least `ns`; never below 1 ns. */
export function niceStep(ns: number): number {
  if (!(ns > 1)) return 1;
  const power = 10 ** Math.floor(Math.log10(ns) + 1e-12);
  for (const factor of [1, 2, 5]) if (factor * power >= ns * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

const MINUTE = 60e9;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Steps of clocks, from a minute on. */
const CLOCK_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 30].map(n => n * MINUTE),
  ...[1, 2, 6, 12].map(n => n * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map(n => n * DAY),
];

/** Ticks in minutes, hours or days: nobody reads 500 000 s. */
function clockTicks(t0: number, t1: number, atLeastNs: number): Axis {
  const stepNs = CLOCK_STEPS.find(step => step >= atLeastNs) ?? niceStep(atLeastNs / DAY) * DAY;
  const [unitNs, unit] =
    stepNs >= DAY ? [DAY, 'd'] : stepNs >= HOUR ? [HOUR, 'h'] : [MINUTE, 'min'];
  const write = (ns: number, digits: number): string => {
    const value = ns / unitNs;
    const fraction = digits > 0 ? (value % 1).toFixed(digits).slice(1) : '';
    return `${formatCount(digits > 0 ? Math.floor(value) : value)}${fraction}${THIN}${unit}`;
  };
  const ticks: Tick[] = [];
  for (let i = Math.ceil(t0 / stepNs); i * stepNs <= t1 && ticks.length < 1000; i++)
    ticks.push({ns: i * stepNs, label: write(i * stepNs, 0)});
  return {stepNs, ticks, anchorNs: undefined, text: ns => write(ns, 2)};
}

/** Ticks of [t0, t1] on `widthPx`, at least `spacingPx` apart. */
export function axisTicks(t0: number, t1: number, widthPx: number, spacingPx: number): Axis {
  const span = t1 - t0;
  const atLeastNs = (span * spacingPx) / Math.max(1, widthPx);
  if (atLeastNs > MINUTE / 2 && t0 >= 0) return clockTicks(t0, t1, atLeastNs);
  const stepNs = niceStep(atLeastNs);
  const end = Math.max(Math.abs(t0), Math.abs(t1));
  // The largest unit that the times reach and in which a step needs three decimals or fewer.
  const unitFor = (reach: number): Unit =>
    UNITS.find(u => stepNs >= u.ns / 1000 && reach >= u.ns) ?? {ns: 1, text: 'ns'};
  const decimalsOf = (u: Unit): number => {
    const stepDigits = Math.floor(Math.log10(stepNs) + 1e-9);
    return Math.min(DECIMALS_MAX, Math.max(0, Math.log10(u.ns) - stepDigits));
  };
  const first = Math.ceil(t0 / stepNs);
  const last = Math.floor(t1 / stepNs);
  const whole = String(Math.floor(end / unitFor(end).ns)).length;
  const isAbsolute = whole + decimalsOf(unitFor(end)) <= LABEL_DIGITS_MAX;
  const anchorNs = isAbsolute ? undefined : first * stepNs;
  // Offsets are no longer than the window: they have a unit of their own.
  const unit = unitFor(isAbsolute ? end : span);
  const decimals = decimalsOf(unit);
  const write = (ns: number, digits: number): string => {
    const sign = anchorNs === undefined || ns < anchorNs ? '' : '+';
    return `${sign}${((ns - (anchorNs ?? 0)) / unit.ns).toFixed(digits)}${THIN}${unit.text}`;
  };
  const ticks: Tick[] = [];
  // At most one tick per `spacingPx`; the bound holds for any float input.
  for (let i = first; i <= last && ticks.length < 1000; i++) {
    ticks.push({ns: i * stepNs, label: write(i * stepNs, decimals)});
  }
  const finer = unit.ns === 1 ? 0 : decimals + 1;
  return {stepNs, ticks, anchorNs, text: ns => write(ns, finer)};
}
