// Questions to a trace in SQL: a query, its rows, what was asked before, and what can be asked.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {askSql, getSqlReference, type SqlReference, type SqlResult} from '../api/sql';
import type {TraceInfo} from '../api/types';
import {formatCount, formatNumber} from '../base/format';
import {
  cellText,
  isNumeric,
  readHistory,
  remember,
  resultCsv,
  writeHistory,
} from '../model/sql_query';
import {CopyButton} from '../ui/copy_button';
import {useResource} from '../ui/resource';
import {Failed, Loading} from '../ui/states';

const FIRST_QUERY =
  'SELECT name, count, total_ns, self_ns\nFROM by_name\nORDER BY total_ns DESC\nLIMIT 50';
const ROWS_SHOWN = 1000;

type Answer =
  | {readonly kind: 'none'}
  | {readonly kind: 'running'}
  | {readonly kind: 'failed'; readonly text: string}
  | {readonly kind: 'rows'; readonly result: SqlResult; readonly ms: number};

export function SqlPage({trace}: {trace: TraceInfo}): JSX.Element {
  const reference = useResource('sql', signal => getSqlReference(signal));
  const [history, setHistory] = useState(readHistory);
  const [query, setQuery] = useState(history[0] ?? FIRST_QUERY);
  const [answer, setAnswer] = useState<Answer>({kind: 'none'});
  const asked = useRef(0);

  const run = async (): Promise<void> => {
    const number = ++asked.current;
    const begin = performance.now();
    setAnswer({kind: 'running'});
    let next: Answer;
    try {
      const result = await askSql(trace.id, query, ROWS_SHOWN);
      next = {kind: 'rows', result, ms: performance.now() - begin};
      const kept = remember(history, query);
      setHistory(kept);
      writeHistory(kept);
    } catch (error) {
      next = {kind: 'failed', text: errorText(error)};
    }
    if (number === asked.current) setAnswer(next);
  };

  return (
    <main class="page page-full page-sql">
      <section class="sql-ask" aria-label="Query">
        <textarea
          class="sql-query"
          aria-label="Query in SQL"
          spellcheck={false}
          value={query}
          onInput={event => setQuery(event.currentTarget.value)}
          onKeyDown={event => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void run();
            }
          }}
        />
        <div class="sql-actions">
          <button
            type="button"
            class="button button-primary"
            disabled={answer.kind === 'running' || query.trim() === ''}
            onClick={() => void run()}
          >
            Run
          </button>
          <span class="muted">Ctrl+Enter; queries only read. Times are ns.</span>
          <History history={history} choose={setQuery} />
        </div>
      </section>
      <div class="sql-body">
        <section class="sql-answer" aria-label="Rows" aria-live="polite">
          <AnswerView answer={answer} />
        </section>
        <aside class="sql-tables" aria-label="Tables">
          {reference.kind === 'loading' && <Loading what="the tables" />}
          {reference.kind === 'error' && (
            <Failed
              title="The tables cannot be listed"
              text={reference.text}
              retry={reference.retry}
            />
          )}
          {reference.kind === 'ready' && (
            <Reference reference={reference.value} choose={setQuery} />
          )}
        </aside>
      </div>
    </main>
  );
}

function History({
  history,
  choose,
}: {
  history: readonly string[];
  choose: (query: string) => void;
}): JSX.Element | null {
  if (history.length === 0) return null;
  return (
    <select
      class="sql-history"
      aria-label="Queries asked before"
      value=""
      onChange={event => {
        const chosen = history[Number(event.currentTarget.value)];
        if (event.currentTarget.value !== '' && chosen !== undefined) choose(chosen);
        event.currentTarget.value = '';
      }}
    >
      <option value="">asked before</option>
      {history.map((query, i) => (
        <option key={query} value={i}>
          {query.replace(/\s+/g, ' ').slice(0, 100)}
        </option>
      ))}
    </select>
  );
}

function AnswerView({answer}: {answer: Answer}): JSX.Element | null {
  switch (answer.kind) {
    case 'none':
      return null;
    case 'running':
      return <Loading what="the rows" />;
    case 'failed':
      return (
        <p class="error-text sql-error" role="alert">
          {answer.text}
        </p>
      );
    case 'rows':
      return <Rows result={answer.result} ms={answer.ms} />;
  }
}

function Rows({result, ms}: {result: SqlResult; ms: number}): JSX.Element {
  const right = result.columns.map((_, c) => isNumeric(result, c));
  return (
    <>
      <p class="sql-summary muted">
        {result.cut === undefined
          ? `${formatCount(result.row_count)} rows`
          : `the first ${formatCount(result.row_count)} rows`}
        {`, ${formatNumber(ms)} ms`}
        <CopyButton text={resultCsv(result)} label="Copy as CSV" />
      </p>
      <div class="sql-rows">
        <table>
          <thead>
            <tr>
              {result.columns.map((name, c) => (
                <th key={c} class={right[c] ? 'num' : ''}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {result.rows.map((row, r) => (
              <tr key={r}>
                {row.map((value, c) => (
                  <td key={c} class={right[c] ? 'num' : ''} title={cellText(value)}>
                    {cellText(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Reference({
  reference,
  choose,
}: {
  reference: SqlReference;
  choose: (query: string) => void;
}): JSX.Element {
  return (
    <>
      <h2>Questions</h2>
      <ul class="sql-questions">
        {reference.questions.map(question => (
          <li key={question.id}>
            <button type="button" class="button button-quiet" onClick={() => choose(question.sql)}>
              {question.question}
            </button>
          </li>
        ))}
      </ul>
      <h2>Tables</h2>
      {reference.tables.map(table => (
        <details key={table.name}>
          <summary>
            <code>{table.name}</code> <span class="muted">{table.doc}</span>
          </summary>
          <dl>
            {table.columns.map(column => (
              <div key={column.name}>
                <dt>
                  <code>{column.name}</code>
                  {column.is_argument && <span class="muted"> argument</span>}
                </dt>
                <dd class="muted">{column.doc}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
    </>
  );
}
