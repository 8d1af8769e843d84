// Numbers for people: few digits to read, all of them to copy.

/** Narrow no-break space: between thousands, and between a number and its unit. */
export const THIN = '\u202f';
const MINUS = '\u2212';
export const NOT_RECORDED = 'not recorded';

/** 1480 -> "1 480". Whole numbers, all digits. */
export function formatCount(value: number): string {
  const digits = Math.round(Math.abs(value)).toString();
  const grouped = digits.length > 3 ? digits.replace(/\B(?=(\d{3})+$)/g, THIN) : digits;
  return value < 0 && grouped !== '0' ? MINUS + grouped : grouped;
}

/**
 * A number with `digits` significant digits, whole part never cut: 1113.4 -> "1 110" with 3.
 * Zeros at the end of a fraction go, unless `pad` keeps them for columns.
 */
export function formatNumber(value: number, digits = 3, pad = false): string {
  if (!Number.isFinite(value)) return NOT_RECORDED;
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(digits));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  const decimals = Math.max(0, digits - 1 - magnitude);
  if (decimals === 0) return formatCount(rounded);
  const text = Math.abs(rounded).toFixed(Math.min(decimals, 12));
  const [whole = '0', fraction = ''] = text.split('.');
  const kept = pad ? fraction : fraction.replace(/0+$/, '');
  const sign = rounded < 0 ? MINUS : '';
  return sign + formatCount(Number(whole)) + (kept === '' ? '' : `.${kept}`);
}

const UNITS = [
  {name: 'h', ns: 3_600_000_000_000},
  {name: 'min', ns: 60_000_000_000},
  {name: 's', ns: 1_000_000_000},
  {name: 'ms', ns: 1_000_000},
  {name: 'µs', ns: 1_000},
  {name: 'ns', ns: 1},
] as const;
export type TimeUnit = (typeof UNITS)[number]['name'];

function unitSize(unit: TimeUnit): number {
  return UNITS.find(u => u.name === unit)?.ns ?? 1;
}

/** The largest unit in which the duration is 1 or more; minutes from 2 on, hours from 2 on. */
export function timeUnitFor(durationNs: number): TimeUnit {
  const size = Math.abs(durationNs);
  const unit = UNITS.find(u => size >= (u.name === 'h' || u.name === 'min' ? 2 * u.ns : u.ns));
  return unit?.name ?? 'ns';
}

/** 301234567 -> "301 ms". Two digits in sentences, three elsewhere. */
export function formatDuration(durationNs: number, digits = 3): string {
  if (!Number.isFinite(durationNs)) return NOT_RECORDED;
  if (durationNs === 0) return `0${THIN}ms`;
  // 999.7 us rounds to 1000 us: choose the unit after rounding
  const rounded = Number(durationNs.toPrecision(digits));
  return formatInUnit(durationNs, timeUnitFor(rounded), digits);
}

/** What ran and was recorded with a length of 0: by a recorder that counts in microseconds. */
export const NO_TIME = `< 1${THIN}µs`;

/** A time of something that long: with the digits that tell its start from its end. */
export function formatAt(timeNs: number, lengthNs: number): string {
  const ratio = Math.abs(timeNs) / Math.max(1, lengthNs);
  return formatDuration(timeNs, Math.min(16, Math.max(4, Math.ceil(Math.log10(ratio + 1)) + 2)));
}

/** The same with the unit given: for columns and axes. */
export function formatInUnit(durationNs: number, unit: TimeUnit, digits = 3, pad = false): string {
  return `${formatNumber(durationNs / unitSize(unit), digits, pad)}${THIN}${unit}`;
}

/** A duration in a column: always milliseconds or always microseconds, chosen by the column. */
export function durationIn(durationNs: number, unit: TimeUnit, decimals: number): string {
  const value = durationNs / unitSize(unit);
  const [whole = '0', fraction] = Math.abs(value).toFixed(decimals).split('.');
  const text = formatCount(Number(whole)) + (fraction === undefined ? '' : `.${fraction}`);
  return value < 0 ? MINUS + text : text;
}

/** A length on a flame graph: a time, or what a profile counts. */
export interface Amount {
  /** "samples", "" for times. */
  readonly unit: string;
  /** Length of one unit. */
  readonly unit_ns: number;
}

const counted = (number: string, unit: string) =>
  `${number}${THIN}${number === '1' ? unit.replace(/^(sample|byte|event)s$/, '$1') : unit}`;

/** A duration, or "1234 samples". */
export function formatAmount(lengthNs: number, amount: Amount): string {
  if (amount.unit === '' || amount.unit_ns <= 0) return formatDuration(lengthNs);
  return counted(formatNumber(lengthNs / amount.unit_ns), amount.unit);
}

/** The same with all digits. */
export function exactAmount(lengthNs: number, amount: Amount): string {
  if (amount.unit === '' || amount.unit_ns <= 0) return exactNs(lengthNs);
  return counted(formatNumber(lengthNs / amount.unit_ns, 15), amount.unit);
}

/** All digits, for hovering and copying: "301 234 567 ns". */
export function exactNs(durationNs: number): string {
  return `${formatCount(durationNs)}${THIN}ns`;
}

/** How often something is met: "12× per step", "once in 28 steps". */
export function formatPerStep(perStep: number): string {
  if (!(perStep > 0)) return 'outside the steps';
  if (perStep < 0.5) return `once in ${formatCount(Math.round(1 / perStep))} steps`;
  return `${formatNumber(perStep, perStep < 10 ? 2 : 3)}× per step`;
}

/** Windows of a recording are seconds, runs that were recorded whole are hours. */
export function formatGpuTime(hours: number): string {
  return hours < 0.5 ? formatDuration(hours * 3.6e12) : `${formatNumber(hours, 3)} h`;
}

/** 11.83 -> "12 %", 3.42 -> "3.4 %". Never 0 for something, never 100 for less than all. */
export function formatPct(percent: number): string {
  if (!Number.isFinite(percent)) return NOT_RECORDED;
  const size = Math.abs(percent);
  if (size > 0 && size < 0.05) return `<${THIN}0.1${THIN}%`;
  if (size > 99 && size < 100) return `>${THIN}99${THIN}%`;
  const text = size >= 9.95 ? formatCount(size) : formatNumber(Number(size.toFixed(1)), 2);
  return `${percent < 0 ? MINUS : ''}${text}${THIN}%`;
}

/** Time saved, in percent of a step, as people think of it: 50 -> "2.0×". */
function speedOf(percent: number): string {
  const factor = 100 / (100 - Math.min(percent, 99));
  return `${factor < 1.095 ? factor.toFixed(2) : factor < 9.95 ? factor.toFixed(1) : formatCount(factor)}×`;
}

/**
 * A gain, given as time saved in percent of a step, as a speed: "1.1× faster" with its band
 * "1.1–1.2×", left out where there is none. Below 1 % nobody can tell.
 */
export function formatGain(
  mid: number | undefined,
  low?: number | undefined,
  high?: number | undefined,
): {readonly mid: string; readonly band: string} {
  const isNothing = (mid ?? 0) === 0 && (high ?? 0) === 0;
  if (mid === undefined || isNothing) return {mid: '', band: ''};
  if (Math.abs(mid) < 1) return {mid: /* text */ `<${THIN}1${THIN}% faster`, band: ''};
  if (mid < 0) return {mid: `${formatPct(-mid)} slower`, band: ''};
  const text = `${speedOf(mid)} faster`;
  if (low === undefined || high === undefined) return {mid: text, band: ''};
  const [from, to] = [speedOf(low), speedOf(high)];
  return {mid: text, band: from === to ? '' : `${from.replace('×', '')}\u2013${to}`};
}

/** What a step takes before and after: "750 -> 371 ms"; "" where either is not known. */
export function formatFromTo(beforeNs: number | undefined, savedPct: number | undefined): string {
  if (beforeNs === undefined || savedPct === undefined || beforeNs <= 0) return '';
  const afterNs = beforeNs * (1 - Math.min(savedPct, 100) / 100);
  const unit = timeUnitFor(Number(beforeNs.toPrecision(3)));
  const from = formatInUnit(beforeNs, unit).replace(`${THIN}${unit}`, '');
  return `${from} \u2192 ${formatInUnit(afterNs, unit)}`;
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** 154140672 -> "154 MB"; powers of 1000. */
export function formatBytes(bytes: number, digits = 3): string {
  let value = Math.abs(bytes);
  let index = 0;
  while (index < BYTE_UNITS.length - 1 && Number(value.toPrecision(digits)) >= 1000) {
    value /= 1000;
    index += 1;
  }
  const text = formatNumber(value, digits);
  return `${bytes < 0 ? MINUS : ''}${text}${THIN}${BYTE_UNITS[index] ?? 'B'}`;
}

/** "310 MB/s" */
export function formatByteRate(bytesPerS: number): string {
  return `${formatBytes(bytesPerS, 2)}/s`;
}

/** Time left, roughly: "~4 s", "~3 min". */
export function formatEta(seconds: number): string {
  if (seconds < 1) return `<${THIN}1${THIN}s`;
  if (seconds < 90) return `~${Math.round(seconds)}${THIN}s`;
  if (seconds < 5400) return `~${Math.round(seconds / 60)}${THIN}min`;
  return `~${formatNumber(seconds / 3600, 2)}${THIN}h`;
}

const DAYS = /* text */ ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const MONTHS = /* text */ [
  'Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec',
] as const; // prettier-ignore

const two = (value: number): string => value.toString().padStart(2, '0');

/** Today "11:02", this week "Tue 11:02", this year "3 Nov", else "2025-11-03". Local time. */
export function formatWhen(iso: string, now: Date): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (date.toDateString() === now.toDateString()) return clock;
  const ageDays = (now.getTime() - date.getTime()) / 86_400_000;
  if (ageDays >= 0 && ageDays < 6) return `${DAYS[date.getDay()] ?? ''} ${clock}`;
  if (date.getFullYear() === now.getFullYear())
    return `${date.getDate()} ${MONTHS[date.getMonth()] ?? ''}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "1 step", "6 steps" */
export function plural(
  count: number,
  one: string,
  many = one.endsWith('ch') ? `${one}es` : `${one}s`,
): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** The unit of a throughput as people write it: "img/s" only where samples are images is too bold. */
export function rateUnit(unit: string): string {
  return `${unit}/s`;
}

/** A sentence of the program as the page writes it: no line ends between a number and its unit, and
 *  microseconds have the sign that they have in every number here ("us" is for terminals). */
export function unbroken(text: string): string {
  return text
    .replace(/(\d) us(?![\p{L}\d])/gu, '$1 µs')
    .replace(/(\d) (?=(?:[nµm]?s|min|h|%|[kMG]i?B)(?![\p{L}\d]))/gu, '$1\u00a0');
}

/** What stands at the start of a line or alone on it. Names of code keep their letters. */
export function sentence(text: string): string {
  const first = /^\S*/.exec(text)?.[0] ?? '';
  const isCode = /::|[_.(]\S/.test(first) || /^\S+ \([^)]*\.py:\d/.test(text);
  const start = isCode ? first : first.slice(0, 1).toUpperCase() + first.slice(1);
  return start + text.slice(first.length);
}

/** "2021-06-08 09:18:09.861 342 117 UTC" of a moment; undefined where the trace has no clock.
 *  @param t0Ns of the trace's begin, decimal, ns since 1970 @param atNs after it */
export function formatClock(t0Ns: string, atNs: number): string | undefined {
  if (!/^\d{1,19}$/.test(t0Ns)) return undefined;
  const ns = BigInt(t0Ns) + BigInt(Math.round(atNs));
  const date = new Date(Number(ns / 1_000_000n));
  // Earlier than this it counts from the start of a machine, not of 1970.
  if (date.getUTCFullYear() < 2000) return undefined;
  const [day, time = ''] = date.toISOString().replace('Z', '').split('T');
  const rest = (ns % 1_000_000n).toString().padStart(6, '0');
  return `${day} ${time}\u2009${rest.slice(0, 3)}\u2009${rest.slice(3)} UTC`;
}
