// Beside a report: what became of its findings, and what people say, in threads.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {errorText} from '../../api/client';
import {
  addComment,
  deleteComment,
  getComments,
  getFindingStates,
  resolveThread,
  setFindingState,
  type Comment,
  type FindingState,
  type Report,
} from '../../api/reports';
import {formatWhen, sentence} from '../../base/format';
import {findingOf} from '../../model/report_text';
import {latest, useResource} from '../../ui/resource';
import {Failed} from '../../ui/states';

/** Others write at the same time. */
const AGAIN_MS = 10000;

export function ReportTalk({report}: {report: Report}): JSX.Element {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setRound(before => before + 1);
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const resource = useResource(`${report.id}/${round}`, async signal => ({
    comments: (await getComments(report.id, signal)).comments,
    states: (await getFindingStates(report.id, signal)).findings,
  }));
  const known = latest(resource);
  const again = (): void => setRound(round + 1);
  const findings = report.parts.filter(part => part.kind === 'finding');
  return (
    <aside class="report-talk" aria-label="Comments">
      {findings.length > 0 && known && (
        <section>
          <h2>Findings</h2>
          {findings.map(({part}) => (
            <Finding
              key={part}
              report={report.id}
              part={part}
              state={known.states.find(state => state.part === part)}
              onChange={again}
            />
          ))}
        </section>
      )}
      <h2>Comments</h2>
      {resource.kind === 'error' && (
        <Failed title="The comments cannot be shown" text={resource.text} retry={resource.retry} />
      )}
      {known?.comments
        .filter(comment => comment.thread === comment.id)
        .map(first => (
          <Thread
            key={first.id}
            report={report.id}
            first={first}
            answers={known.comments.filter(
              other => other.thread === first.id && other.id !== first.id,
            )}
            onChange={again}
          />
        ))}
      <Say report={report.id} label="Comment" onSaid={again} />
    </aside>
  );
}

const STATES: readonly {id: string; label: string}[] = [
  {id: 'open', label: 'open'},
  {id: 'in_work', label: 'in progress'},
  {id: 'fixed', label: 'fixed by'},
  {id: 'wont_fix', label: 'won’t fix'},
];

function Finding(props: {
  report: string;
  part: string;
  state: FindingState | undefined;
  onChange: () => void;
}): JSX.Element {
  const {report, part, state, onChange} = props;
  const [chosen, setChosen] = useState(state?.state ?? 'open');
  const [note, setNote] = useState(state?.note ?? '');
  const [problem, setProblem] = useState('');
  useEffect(() => {
    setChosen(state?.state ?? 'open');
    setNote(state?.note ?? '');
  }, [state?.state, state?.note]);
  const needsNote = chosen === 'fixed' || chosen === 'wont_fix';
  const set = async (next: string, said: string): Promise<void> => {
    try {
      await setFindingState(report, {part, state: next, note: said});
      setProblem('');
      onChange();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  return (
    <form
      class="report-finding"
      onSubmit={event => {
        event.preventDefault();
        void set(chosen, note.trim());
      }}
    >
      <code>{findingOf(part) ?? part}</code>
      <select
        class="input"
        aria-label={`State of ${findingOf(part) ?? part}`}
        value={chosen}
        onChange={event => {
          const next = event.currentTarget.value;
          setChosen(next);
          if (next === 'open' || next === 'in_work') void set(next, '');
        }}
      >
        {STATES.map(each => (
          <option key={each.id} value={each.id}>
            {each.label}
          </option>
        ))}
      </select>
      {needsNote && (
        <>
          <input
            class="input"
            aria-label={chosen === 'fixed' ? 'The run that shows it' : 'Why'}
            placeholder={chosen === 'fixed' ? 'run 14' : 'why'}
            maxLength={500}
            value={note}
            onInput={event => setNote(event.currentTarget.value)}
          />
          <button type="submit" class="button">
            Set
          </button>
        </>
      )}
      {problem !== '' && <span class="error-text">{problem}</span>}
    </form>
  );
}

function Thread(props: {
  report: string;
  first: Comment;
  answers: readonly Comment[];
  onChange: () => void;
}): JSX.Element {
  const {report, first, answers, onChange} = props;
  const [problem, setProblem] = useState('');
  const act = async (what: Promise<unknown>): Promise<void> => {
    try {
      await what;
      onChange();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  const remove = (
    <button
      type="button"
      class="button button-quiet"
      onClick={() => void act(deleteComment(report, first.id))}
    >
      Delete
    </button>
  );
  if (first.resolved)
    return (
      <details class="report-thread">
        <summary class="muted">
          {`Resolved by ${first.resolved_by ?? ''}: `}
          {first.body.slice(0, 60)}
        </summary>
        {[first, ...answers].map(comment => (
          <Said key={comment.id} comment={comment} />
        ))}
        <button
          type="button"
          class="button button-quiet"
          onClick={() => void act(resolveThread(report, first.id, false))}
        >
          Open again
        </button>
        {remove}
      </details>
    );
  return (
    <section class="report-thread">
      {[first, ...answers].map(comment => (
        <Said key={comment.id} comment={comment} />
      ))}
      {problem !== '' && <p class="error-text">{problem}</p>}
      <Say report={report} thread={first.id} label="Answer" onSaid={onChange} />
      <button
        type="button"
        class="button button-quiet"
        onClick={() => void act(resolveThread(report, first.id, true))}
      >
        Resolve
      </button>
      {remove}
    </section>
  );
}

function Said({comment}: {comment: Comment}): JSX.Element {
  return (
    <div class="report-comment">
      <span class="muted">
        {`${comment.author === '' ? '' : `${comment.author} · `}${formatWhen(comment.created_at, new Date())}`}
        {comment.edited_at === undefined ? '' : ' · edited'}
      </span>
      <p>{comment.body === '' ? <em class="muted">Deleted by its author.</em> : comment.body}</p>
    </div>
  );
}

function Say(props: {
  report: string;
  thread?: string;
  label: string;
  onSaid: () => void;
}): JSX.Element {
  const {report, thread, label, onSaid} = props;
  const [body, setBody] = useState('');
  const [problem, setProblem] = useState('');
  const busy = useRef(false);
  const say = async (): Promise<void> => {
    if (busy.current || body.trim() === '') return;
    busy.current = true;
    try {
      await addComment(report, {body, ...(thread === undefined ? {} : {thread})});
      setBody('');
      setProblem('');
      onSaid();
    } catch (error) {
      setProblem(sentence(errorText(error)));
    } finally {
      busy.current = false;
    }
  };
  return (
    <form
      class="report-say"
      onSubmit={event => {
        event.preventDefault();
        void say();
      }}
    >
      <textarea
        class="input"
        rows={thread === undefined ? 3 : 1}
        aria-label={label}
        placeholder={thread === undefined ? 'Write a comment; @name mentions a person' : 'Answer'}
        maxLength={4000}
        value={body}
        onInput={event => setBody(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void say();
        }}
      />
      {problem !== '' && <span class="error-text">{problem}</span>}
      {body.trim() !== '' && (
        <button type="submit" class="button">
          {label}
        </button>
      )}
    </form>
  );
}
