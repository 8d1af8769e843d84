// Texts of reports: inserting parts, and what a part is called.
import {signal} from '@preact/signals';

/** The text with a part put at a place: in the block it stands in, or in a block of its own. */
export function insertPart(text: string, at: number, line: string): string {
  const before = text.slice(0, at);
  const after = text.slice(at);
  const opened = before.split('\n').filter(each => /^ {0,3}```/.test(each)).length % 2 === 1;
  if (opened) {
    const start = before.endsWith('\n') ? before : `${before}\n`;
    return `${start}${line}\n${after.replace(/^\n/, '')}`;
  }
  const start = before === '' || before.endsWith('\n\n') ? before : `${before.trimEnd()}\n\n`;
  return `${start}\`\`\`lacuna\n${line}\n\`\`\`\n\n${after.replace(/^\n+/, '')}`;
}

/** The line of a part that shows a window of the timeline. */
export function windowPart(trace: string, fromNs: number, toNs: number): string {
  return `window trace=${trace} from=${fromNs} to=${toNs}`;
}

/** "finding trace=x id=input-starvation" as its id, or undefined for another part. */
export function findingOf(line: string): string | undefined {
  return /^finding trace=[a-z2-7]+ id=([a-z0-9_-]+)$/.exec(line)?.[1];
}

/** Lines of one text that the other lacks, for somebody who merges. */
export function linesMissingIn(other: string, text: string): readonly string[] {
  const there = new Set(other.split('\n').map(line => line.trim()));
  return text.split('\n').filter(line => line.trim() !== '' && !there.has(line.trim()));
}

/** A part that may be added to a report, and what it is called there. */
export interface PartChoice {
  readonly line: string;
  readonly label: string;
}

/** What the dialog that adds a part offers, while it is open. */
export const adding = signal<Adding | undefined>(undefined);
export interface Adding {
  readonly choices: readonly PartChoice[];
  readonly project: string | undefined;
}

/** The block of one part, at the end of a text. */
export const partBlock = (line: string): string => `\`\`\`lacuna\n${line}\n\`\`\`\n`;

/** What a trace offers: the window that is looked at first, then what the page shows. */
export function partsOfTrace(
  trace: string,
  page: string,
  window: {t0: number; t1: number} | undefined,
): readonly PartChoice[] {
  const flame = {line: `flame trace=${trace}`, label: 'The flame graph'};
  const kernels = {line: `table trace=${trace} of=kernels`, label: 'The table of kernels'};
  const parts: PartChoice[] = [
    {line: `table trace=${trace} of=plan`, label: 'The plan: changes and what they gain'},
    {line: `table trace=${trace} of=idle`, label: 'The table of idle time by cause'},
    {line: `table trace=${trace} of=settings`, label: 'The settings of the run'},
  ];
  const first = page === 'kernels' ? [kernels, flame] : [flame, kernels];
  const rest = page === 'overview' ? [...parts, ...first] : [...first, ...parts];
  if (!window) return rest;
  const from = Math.max(0, Math.floor(window.t0));
  const to = Math.max(from + 1, Math.ceil(window.t1));
  return [
    {line: windowPart(trace, from, to), label: 'The stretch of the timeline in view'},
    ...rest,
  ];
}

/** At most this many traces are in a chart of a series. */
const SERIES_MAX = 24;

export const seriesPart = (traces: readonly string[]): string =>
  `series traces=${traces.slice(0, SERIES_MAX).join(',')} of=rate`;
