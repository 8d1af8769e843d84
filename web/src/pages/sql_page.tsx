// Questions to a trace in SQL: a query, its rows, recent queries, and what can be asked.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {askSql, getSqlReference, type SqlReference, type SqlResult} from '../api/sql';
import type {TraceInfo} from '../api/types';
import {formatDuration, plural, unbroken} from '../base/format';
import {
  cellText,
  isNumeric,
  readHistory,
  remember,
  resultCsv,
  writeHistory,
} from '../model/sql_query';
import {complete} from '../model/sql/complete';
import {sqlTrack} from '../model/sql/shown_track';
import {hasTimes, trackOf} from '../model/sql/track';
import {show} from '../model/view_state';
import {CopyButton} from '../ui/copy_button';
import {useResource} from '../ui/resource';
import {Loading, StandIn} from '../ui/states';
import {SqlChartView} from './sql_chart';

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
  const field = useRef<HTMLTextAreaElement>(null);
  const [cursor, setCursor] = useState<number>();
  const [chosen, setChosen] = useState(0);
  const offered =
    cursor === undefined
      ? undefined
      : complete(query, cursor, reference.kind === 'ready' ? reference.value : undefined);

  const accept = (word: string): void => {
    if (!offered || cursor === undefined) return;
    const at = offered.from + word.length;
    setQuery(query.slice(0, offered.from) + word + query.slice(cursor));
    setCursor(undefined);
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(at, at);
    });
  };

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
          ref={field}
          aria-label="Query in SQL"
          aria-controls="sql-offered"
          spellcheck={false}
          value={query}
          onInput={event => {
            setQuery(event.currentTarget.value);
            setCursor(event.currentTarget.selectionEnd);
            setChosen(0);
          }}
          onBlur={() => setCursor(undefined)}
          onKeyDown={event => {
            const words = offered?.words ?? [];
            const word = words[chosen];
            if (word !== undefined && !event.ctrlKey && !event.metaKey) {
              if (event.key === 'Tab') accept(word);
              else if (event.key === 'Escape') setCursor(undefined);
              else if (event.key === 'ArrowDown') setChosen((chosen + 1) % words.length);
              else if (event.key === 'ArrowUp')
                setChosen((chosen + words.length - 1) % words.length);
              else return;
              event.preventDefault();
              event.stopPropagation();
              return;
            }
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void run();
            }
          }}
        />
        <ul id="sql-offered" class="sql-offered" role="listbox" aria-label="Tab takes the first">
          {(offered?.words ?? []).map((word, i) => (
            <li
              key={word}
              role="option"
              aria-selected={i === chosen}
              onMouseDown={event => {
                event.preventDefault(); // the field keeps the cursor
                accept(word);
              }}
            >
              {word}
            </li>
          ))}
        </ul>
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
          <AnswerView answer={answer} trace={trace} query={query} />
        </section>
        <aside class="sql-tables" aria-label="Tables">
          <StandIn of={reference} what="the tables" title="The tables cannot be listed" />
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
      class="input list-choice sql-history"
      aria-label="Recent queries"
      value=""
      onChange={event => {
        const chosen = history[Number(event.currentTarget.value)];
        if (event.currentTarget.value !== '' && chosen !== undefined) choose(chosen);
        event.currentTarget.value = '';
      }}
    >
      <option value="">recent queries</option>
      {history.map((query, i) => (
        <option key={query} value={i}>
          {query.replace(/\s+/g, ' ').slice(0, 100)}
        </option>
      ))}
    </select>
  );
}

interface AnswerProps {
  readonly answer: Answer;
  readonly trace: TraceInfo;
  readonly query: string;
}

function AnswerView({answer, trace, query}: AnswerProps): JSX.Element {
  switch (answer.kind) {
    case 'none':
      return <p class="muted sql-error">Run shows the rows here.</p>;
    case 'running':
      return <Loading what="the rows" />;
    case 'failed':
      return (
        <p class="error-text sql-error" role="alert">
          {answer.text}
        </p>
      );
    case 'rows':
      return <Rows result={answer.result} ms={answer.ms} trace={trace} query={query} />;
  }
}

function Rows({
  result,
  ms,
  trace,
  query,
}: {
  result: SqlResult;
  ms: number;
  trace: TraceInfo;
  query: string;
}): JSX.Element {
  const [hasChart, setChart] = useState(false);
  const right = result.columns.map((_, c) => isNumeric(result, c));
  return (
    <>
      <p class="sql-summary muted">
        {result.cut === undefined
          ? plural(result.row_count, 'row')
          : `the first ${plural(result.row_count, 'row')}`}
        {`, ${formatDuration(ms * 1e6)}`}
        <CopyButton text={resultCsv(result)} label="Copy as CSV" />
        <button
          type="button"
          class="button"
          aria-pressed={hasChart}
          onClick={() => setChart(!hasChart)}
        >
          Chart
        </button>
        <button
          type="button"
          class="button"
          disabled={!hasTimes(result) || result.rows.length === 0}
          title="Rows with start_ns and dur_ns or end_ns, as a row of the timeline"
          onClick={() => {
            sqlTrack.value = trackOf(trace.id, query, result);
            show({page: 'timeline'});
          }}
        >
          Show as track
        </button>
      </p>
      {hasChart && <SqlChartView key={result.columns.join()} result={result} />}
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
              {unbroken(question.question)}
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
