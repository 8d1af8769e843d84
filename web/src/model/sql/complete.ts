// What may stand at the cursor of a query: tables, columns of the tables in the query, words of SQL.
import type {SqlReference} from '../../api/sql';

const KEYWORDS =
  'SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ON AS AND OR NOT IN BETWEEN LIKE GLOB IS NULL DESC DISTINCT COUNT SUM AVG MIN MAX MEDIAN PERCENTILE STDDEV ROUND COALESCE CASE WHEN THEN ELSE END WITH UNION HAVING'.split(
    ' ',
  );
const SHOWN = 8;

export interface Completion {
  /** Where the word begins that it stands for. */
  readonly from: number;
  readonly words: readonly string[];
}

const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(text.toLowerCase().match(/[a-z_]\w*/g) ?? []);

/** What begins like the word before the cursor. Columns come first, of tables that the query names. */
export function complete(
  text: string,
  cursor: number,
  reference: SqlReference | undefined,
): Completion {
  const before = text.slice(0, cursor);
  const word = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? '';
  const from = cursor - word.length;
  const quotes = (before.match(/'/g) ?? []).length;
  const afterDot = before[from - 1] === '.';
  if ((word === '' && !afterDot) || quotes % 2 === 1 || !reference) return {from, words: []};
  const named = wordsOf(text.slice(0, from) + ' ' + text.slice(cursor));
  const used = reference.tables.filter(table => named.has(table.name));
  const columns = (used.length > 0 ? used : reference.tables).flatMap(table =>
    table.columns.map(column => column.name),
  );
  const all = afterDot
    ? columns
    : [...columns, ...reference.tables.map(table => table.name), ...KEYWORDS];
  const low = word.toLowerCase();
  const words = [...new Set(all)].filter(
    each => each.toLowerCase().startsWith(low) && each.toLowerCase() !== low,
  );
  return {from, words: words.slice(0, SHOWN)};
}
