// Recent queries, and rows as text.
import type {SqlResult, SqlValue} from '../api/sql';

const STORAGE_KEY = 'lacuna.sql.history';
const KEPT = 30;
const LENGTH_MAX = 20_000;

/** The query first, once; the oldest ones are forgotten. */
export function remember(history: readonly string[], query: string): readonly string[] {
  const text = query.trim();
  if (text === '' || text.length > LENGTH_MAX) return history;
  return [text, ...history.filter(other => other !== text)].slice(0, KEPT);
}

/** What storage holds is somebody's: anything but a list of texts is none. */
export function parseHistory(text: string | null): readonly string[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    if (!Array.isArray(value)) return [];
    return value.filter((one): one is string => typeof one === 'string').slice(0, KEPT);
  } catch {
    return [];
  }
}

export function readHistory(): readonly string[] {
  try {
    return parseHistory(localStorage.getItem(STORAGE_KEY));
  } catch {
    return []; // storage can be forbidden
  }
}

export function writeHistory(history: readonly string[]): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(history));
  } catch {
    // storage can be forbidden or full: the history ends with the page
  }
}

export function cellText(value: SqlValue): string {
  return value === undefined ? '' : String(value);
}

/** Whether a column holds numbers and nothing else. */
export function isNumeric(result: SqlResult, column: number): boolean {
  return (
    result.rows.length > 0 &&
    result.rows.every(row => row[column] === undefined || typeof row[column] === 'number')
  );
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** RFC 4180. */
export function resultCsv(result: SqlResult): string {
  const lines = [result.columns, ...result.rows.map(row => row.map(cellText))];
  return lines.map(line => line.map(quoted).join(',') + '\r\n').join('');
}
