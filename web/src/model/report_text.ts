// Texts of reports: inserting parts, and what a part is called. Pure.

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
