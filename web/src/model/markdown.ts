// The part of Markdown that our documents use, as data: headings, paragraphs, lists, tables, code.
// Nothing is ever markup: what is not understood stays text.

export type Span =
  | {readonly kind: 'text' | 'code' | 'strong'; readonly text: string}
  | {readonly kind: 'link'; readonly text: string; readonly href: string};

export type Block =
  | {readonly kind: 'heading'; readonly level: number; readonly spans: readonly Span[]}
  | {readonly kind: 'paragraph'; readonly spans: readonly Span[]}
  | {
      readonly kind: 'list';
      readonly isOrdered: boolean;
      /** Number of the first item of an ordered list: code may stand between two items. */
      readonly start: number;
      readonly items: readonly (readonly Span[])[];
    }
  | {readonly kind: 'table'; readonly rows: readonly (readonly (readonly Span[])[])[]}
  | {readonly kind: 'code'; readonly text: string};

const SPAN = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https:\/\/[^)\s]+|[a-z-]+\.md)\)/g;

/** A paragraph's text: code, strong, and links to https or to another document of ours. */
export function parseSpans(text: string): readonly Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const match of text.matchAll(SPAN)) {
    if (match.index > at) spans.push({kind: 'text', text: text.slice(at, match.index)});
    const [whole, code, strong, label = '', href = ''] = match;
    if (code !== undefined) spans.push({kind: 'code', text: code});
    else if (strong !== undefined) spans.push({kind: 'strong', text: strong});
    else spans.push({kind: 'link', text: label, href});
    at = match.index + whole.length;
  }
  if (at < text.length) spans.push({kind: 'text', text: text.slice(at)});
  return spans;
}

/** `| a | b |` as its cells; a bar inside code is written \|. */
function parseRow(line: string): readonly (readonly Span[])[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map(cell => parseSpans(cell.trim().replaceAll('\\|', '|')));
}

const FENCE = /^( *)```/;
const ITEM = /^(?:[-*]|(\d+)\.) +(.*)$/;

export function parseMarkdown(text: string): readonly Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  let at = 0;
  /** The lines from here on that `takes` wants. */
  const take = (takes: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && takes(lines[at] ?? '')) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const heading = /^(#{1,4}) +(.*)$/.exec(line);
    const fence = FENCE.exec(line);
    if (line.trim() === '') {
      at++;
    } else if (fence) {
      // inside a list its lines are indented as it is
      at++;
      const indent = new RegExp(`^ {0,${(fence[1] ?? '').length}}`);
      const code = take(l => !FENCE.test(l)).map(l => l.replace(indent, ''));
      blocks.push({kind: 'code', text: code.join('\n')});
      at++;
    } else if (heading) {
      at++;
      const level = heading[1]?.length ?? 1;
      blocks.push({kind: 'heading', level, spans: parseSpans(heading[2] ?? '')});
    } else if (line.startsWith('|')) {
      const rows = take(l => l.startsWith('|')).filter(l => !/^\|[\s|:-]+\|$/.test(l));
      blocks.push({kind: 'table', rows: rows.map(parseRow)});
    } else if (ITEM.test(line)) {
      const items: string[] = [];
      for (const l of take(l => ITEM.test(l) || (/^ +\S/.test(l) && !FENCE.test(l)))) {
        const item = ITEM.exec(l);
        if (item) items.push(item[2] ?? '');
        else items.push(`${items.pop() ?? ''} ${l.trim()}`);
      }
      const first = ITEM.exec(line)?.[1];
      blocks.push({
        kind: 'list',
        isOrdered: first !== undefined,
        start: Number(first ?? 1),
        items: items.map(parseSpans),
      });
    } else {
      const own = take(l => l.trim() !== '' && !/^(?:#|\|| *```)/.test(l) && !ITEM.test(l));
      if (own.length === 0) at++; // looks like a block, but is not
      blocks.push({kind: 'paragraph', spans: parseSpans(own.length > 0 ? own.join(' ') : line)});
    }
  }
  return blocks;
}
