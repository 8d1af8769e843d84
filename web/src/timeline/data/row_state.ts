// What a person changed about the rows, as the address carries it: "all;pin=t3,t5;only=gpu".
// Pure: runs in node.

/** Sets hold keys of rows. */
export interface RowChoice {
  readonly showAll: boolean;
  readonly collapsed: ReadonlySet<string>;
  /** Rows that show all their lanes. */
  readonly expanded: ReadonlySet<string>;
  readonly pinned: ReadonlySet<string>;
  /** Rows that show their outer frames, those that span all of it. */
  readonly unfolded: ReadonlySet<string>;
  /** Rows that were put away. */
  readonly hidden: ReadonlySet<string>;
  /** Keys of rows in the order in which a person put them; empty: the usual one. */
  readonly order: readonly string[];
  readonly filter: string;
}

const SETS = {
  pin: 'pinned',
  open: 'expanded',
  outer: 'unfolded',
  fold: 'collapsed',
  hide: 'hidden',
} as const;
const KEY = /^([tu]\d+|g[dp]-?\d*)$/;
/** An address beyond this is not ours. */
const TEXT_MAX = 100_000;

export function formatRows(rows: RowChoice): string {
  const parts: string[] = [];
  if (rows.showAll) parts.push('all');
  for (const [word, set] of Object.entries(SETS) as [keyof typeof SETS, (typeof SETS)['pin']][])
    if (rows[set].size > 0) parts.push(`${word}=${[...rows[set]].join(',')}`);
  if (rows.order.length > 0) parts.push(`order=${rows.order.join(',')}`);
  if (rows.filter !== '') parts.push(`only=${rows.filter}`);
  return parts.join(';');
}

/** What cannot be read is left out. The filter comes last, so that it may hold anything. */
export function parseRows(text: string): RowChoice {
  const rows = {
    showAll: false,
    collapsed: new Set<string>(),
    expanded: new Set<string>(),
    unfolded: new Set<string>(),
    pinned: new Set<string>(),
    hidden: new Set<string>(),
    order: [] as readonly string[],
    filter: '',
  };
  let rest = text.length <= TEXT_MAX ? text : '';
  while (rest !== '') {
    if (rest.startsWith('only=')) {
      rows.filter = rest.slice('only='.length);
      break;
    }
    const end = rest.indexOf(';');
    const part = end < 0 ? rest : rest.slice(0, end);
    rest = end < 0 ? '' : rest.slice(end + 1);
    if (part === 'all') rows.showAll = true;
    if (part.startsWith('order='))
      rows.order = [...new Set(part.slice('order='.length).split(','))].filter(k => KEY.test(k));
    const match = /^(pin|open|outer|fold|hide)=(.*)$/.exec(part);
    if (!match) continue;
    const set = rows[SETS[match[1] as keyof typeof SETS]];
    for (const key of (match[2] ?? '').split(',')) if (KEY.test(key)) set.add(key);
  }
  return rows;
}
