// Queries in SQL: apart from the rest, for a page that most visits do not open.
import {bool, list, num, obj, opt, or, str, type Infer, type Shape} from '../base/shape';
import {apiUrl, getJson, jsonBody, request, trace} from './client';

/** Text, a number, or NULL. */
export type SqlValue = string | number | undefined;

const sqlValueShape: Shape<SqlValue> = (value, path) =>
  typeof value === 'number' ? value : opt(str)(value, path);

export const sqlResultShape = obj({
  columns: list(str),
  rows: list(list(sqlValueShape)),
  row_count: num,
  cut: opt(str),
});
export type SqlResult = Infer<typeof sqlResultShape>;

export const sqlReferenceShape = obj({
  tables: list(
    obj({
      name: str,
      doc: str,
      columns: list(obj({name: str, type: str, doc: str, is_argument: or(bool, false)})),
    }),
  ),
  questions: list(obj({id: str, question: str, sql: str})),
});
export type SqlReference = Infer<typeof sqlReferenceShape>;

/** The tables that a query may read, and questions with the query that answers each. */
export const getSqlReference = (s?: AbortSignal) => getJson('sql', sqlReferenceShape, {}, s);

/** Answer a query over the tables of a trace. */
export async function askSql(id: string, query: string, limit: number): Promise<SqlResult> {
  const response = await request(apiUrl(`${trace(id)}/sql`, {limit}), {
    method: 'POST',
    ...jsonBody({query}),
  });
  return sqlResultShape(await response.json(), '');
}
