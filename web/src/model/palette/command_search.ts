// What is typed into the command palette: a time, a step, or words of a name. Pure.
import type {Command} from './commands';

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
};

/** "1.5 s", "473.1ms", "20 us": ns; undefined for anything else. */
export function parseTime(text: string): number | undefined {
  const match = /^(\d+(?:[.,]\d+)?)\s*(ns|us|µs|ms|s|min)$/i.exec(text.trim());
  const unit = UNITS[match?.[2]?.toLowerCase() ?? ''];
  if (!match || unit === undefined) return undefined;
  return Math.round(Number((match[1] ?? '').replace(',', '.')) * unit);
}

/** "step 12" or "12": the number of a step; undefined for anything else. */
export function parseStep(text: string): number | undefined {
  const match = /^(?:step\s*)?#?(\d{1,9})$/i.exec(text.trim());
  return match ? Number(match[1]) : undefined;
}

/** Those that have every word of the query; where one begins with it, first. */
export function findCommands(all: readonly Command[], query: string): readonly Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked: {command: Command; rank: number}[] = [];
  for (const command of all) {
    const text = `${command.name} ${command.hint}`.toLowerCase();
    if (!words.every(word => text.includes(word))) continue;
    const name = command.name.toLowerCase();
    const first = words[0] ?? '';
    const rank = name.startsWith(first) ? 0 : name.includes(` ${first}`) ? 1 : 2;
    ranked.push({command, rank});
  }
  return ranked.sort((a, b) => a.rank - b.rank).map(each => each.command);
}
