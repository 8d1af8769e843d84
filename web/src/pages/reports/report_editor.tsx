// Writing a report: Markdown beside what it looks like, parts by a choice, and both texts where
// somebody else saved meanwhile.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {errorText, isAbort} from '../../api/client';
import {preview, saveReport, type Conflict, type Report} from '../../api/reports';
import {sentence} from '../../base/format';
import {insertPart, linesMissingIn} from '../../model/report_text';
import {traces} from '../../model/traces';
import {ReportFrame} from './report_frame';

const PREVIEW_AFTER_MS = 400;

const PARTS: readonly {label: string; line: (id: string) => string}[] = [
  {label: 'flame graph', line: id => `flame trace=${id}`},
  {label: 'where the time goes', line: id => `table trace=${id} of=idle`},
  {label: 'kernels', line: id => `table trace=${id} of=kernels`},
  {label: 'what to change', line: id => `table trace=${id} of=plan`},
  {label: 'settings', line: id => `table trace=${id} of=settings`},
  {label: 'timeline, first 100 ms', line: id => `window trace=${id} from=0 to=100000000`},
];

export function ReportEditor({report, onDone}: {report: Report; onDone: () => void}): JSX.Element {
  const [base, setBase] = useState(report.version);
  const [title, setTitle] = useState(report.title);
  const [project, setProject] = useState(report.project);
  const [text, setText] = useState(report.markdown);
  const [conflict, setConflict] = useState<Conflict | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const busy = useRef(false);
  const isChanged =
    text !== report.markdown || title !== report.title || project !== report.project;
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isChanged]);

  const save = async (): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    setProblem('');
    try {
      const result = await saveReport(report.id, {version: base, title, markdown: text, project});
      if ('saved' in result) onDone();
      else {
        setConflict(result.conflict);
        setBase(result.conflict.version);
      }
    } catch (error) {
      setProblem(sentence(errorText(error)));
    } finally {
      busy.current = false;
    }
  };
  return (
    <form
      class="report-editor"
      onSubmit={event => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={event => {
        if (event.key === 's' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void save();
        }
      }}
    >
      <div class="report-fields">
        <input
          class="input report-title"
          aria-label="Title"
          maxLength={200}
          value={title}
          onInput={event => setTitle(event.currentTarget.value)}
        />
        <input
          class="input"
          aria-label="Project"
          placeholder="Project"
          maxLength={200}
          value={project}
          onInput={event => setProject(event.currentTarget.value)}
        />
        <button type="button" class="button" onClick={onDone}>
          {isChanged ? 'Discard' : 'Close'}
        </button>
        <button type="submit" class="button button-primary">
          {conflict ? 'Save the merged text' : 'Save'}
        </button>
      </div>
      {problem !== '' && (
        <p class="error-text" role="alert">
          {problem}
        </p>
      )}
      {conflict && <Merge conflict={conflict} text={text} onTake={setText} />}
      <Insert
        onInsert={line => {
          const at = field.current?.selectionStart ?? text.length;
          setText(insertPart(text, at, line));
        }}
      />
      <div class="report-panes">
        <textarea
          ref={field}
          class="input report-text"
          aria-label="Text in Markdown"
          spellcheck
          value={text}
          maxLength={120000}
          onInput={event => setText(event.currentTarget.value)}
        />
        <Preview report={report} title={title} text={text} />
      </div>
    </form>
  );
}

/** The other text, whole, and what of it is not in one's own. */
function Merge(props: {
  conflict: Conflict;
  text: string;
  onTake: (text: string) => void;
}): JSX.Element {
  const {conflict, text, onTake} = props;
  const missing = linesMissingIn(text, conflict.markdown);
  return (
    <section class="report-merge" role="alert">
      <h2>
        {conflict.editor} saved version {conflict.version} while you wrote
      </h2>
      <p>
        Nothing is lost: your text is below, theirs is here. Put both together, then save. Of theirs
        {missing.length === 0
          ? ' every line is in yours.'
          : ` ${missing.length === 1 ? '1 line is' : `${missing.length} lines are`} not in yours.`}
      </p>
      <textarea
        class="input report-theirs"
        aria-label="Their text"
        readOnly
        value={conflict.markdown}
      />
      <div class="report-bar">
        <button
          type="button"
          class="button"
          onClick={() => onTake(`${text.trimEnd()}\n\n${missing.join('\n')}\n`)}
        >
          Append the missing lines
        </button>
        <button type="button" class="button" onClick={() => onTake(conflict.markdown)}>
          Take theirs
        </button>
      </div>
    </section>
  );
}

function Insert({onInsert}: {onInsert: (line: string) => void}): JSX.Element {
  const ready = traces.value.filter(trace => trace.state === 'ready');
  const [chosen, setChosen] = useState('');
  const [kind, setKind] = useState(0);
  const id = chosen === '' ? ready[0]?.id : chosen;
  const insert = (): void => {
    const part = PARTS[kind];
    if (id !== undefined && part) onInsert(part.line(id));
  };
  return (
    <div class="report-bar">
      <span class="muted">Show</span>
      <select
        class="input"
        aria-label="What to show"
        value={String(kind)}
        onChange={event => setKind(Number(event.currentTarget.value))}
      >
        {PARTS.map((part, index) => (
          <option key={part.label} value={String(index)}>
            {part.label}
          </option>
        ))}
      </select>
      <span class="muted">of</span>
      <select
        class="input"
        aria-label="Of which trace"
        value={id ?? ''}
        onChange={event => setChosen(event.currentTarget.value)}
      >
        {ready.map(trace => (
          <option key={trace.id} value={trace.id}>
            {trace.name || 'unnamed trace'}
          </option>
        ))}
      </select>
      <button type="button" class="button" disabled={id === undefined} onClick={insert}>
        Insert
      </button>
    </div>
  );
}

function Preview(props: {report: Report; title: string; text: string}): JSX.Element {
  const {report, title, text} = props;
  const [html, setHtml] = useState('');
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(
      () => {
        preview({title, markdown: text, report: report.id}, controller.signal).then(
          made => {
            setHtml(made);
            setProblem('');
          },
          (error: unknown) => {
            if (!isAbort(error)) setProblem(sentence(errorText(error)));
          },
        );
      },
      html === '' ? 0 : PREVIEW_AFTER_MS,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [title, text]);
  return (
    <div class="report-preview">
      {problem !== '' && <p class="error-text">{problem}</p>}
      {html !== '' && <ReportFrame html={html} title="Preview" />}
    </div>
  );
}
