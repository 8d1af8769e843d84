// The report to share: what it would disclose is shown first, each kind with a switch.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText, exportUrl, getReportContents, reportUrl} from '../api/client';
import type {Shared} from '../api/reports';
import type {ReportContents, TraceInfo} from '../api/types';
import {plural, sentence} from '../base/format';
import {word} from '../base/vocabulary';
import {partsOfTrace, windowPart} from '../model/report_text';
import {fileName, redactList} from '../model/share/share';
import {page, timeWindow} from '../model/view_state';
import {openInPerfetto} from '../model/share/perfetto';
import {exportWindow} from '../model/share/window_export';
import {CopyButton} from '../ui/copy_button';
import {CopyLink} from '../ui/copy_link';
import {Dialog} from '../ui/dialog';
import {useResource} from '../ui/resource';
import {StandIn} from '../ui/states';
import {AddButton} from './reports/add_button';
import {DraftButton} from './reports/draft_button';
import {ShareLink} from './reports/share_link';

export function ShareDialog({
  trace,
  onClose,
}: {
  trace: TraceInfo;
  onClose: () => void;
}): JSX.Element {
  const [isLinking, setLinking] = useState(false);
  const contents = useResource(`${trace.id}/${trace.generation}`, signal =>
    getReportContents(trace.id, signal),
  );
  return (
    <Dialog title="Share" onClose={onClose}>
      <p class="share-here">
        <CopyLink isWide />
        <span class="muted">to this view, for people who may read this trace</span>
      </p>
      <details onToggle={event => setLinking(event.currentTarget.open)}>
        <summary>A link for anyone</summary>
        {isLinking && <ShareLink what={sharedOf(trace)} />}
      </details>
      <h3>Trace</h3>
      {timeWindow.value && <WindowDownload trace={trace} window={timeWindow.value} />}
      <WholeDownloads trace={trace} />
      <h3>Report</h3>
      <Report trace={trace} onClose={onClose} />
      <p>
        One file with the verdict, findings, evidence and settings; it needs neither scripts nor
        this server.
      </p>
      <StandIn of={contents} what="the report’s contents" title="The report cannot be made" />
      {contents.kind === 'ready' && <Choice trace={trace} contents={contents.value} />}
    </Dialog>
  );
}

function saveAs(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** What the timeline shows, for other tools. */
function WindowDownload(props: {
  trace: TraceInfo;
  window: NonNullable<typeof timeWindow.value>;
}): JSX.Element {
  const {trace, window} = props;
  const [state, setState] = useState('');
  const make = (use: (blob: Promise<Blob>) => Promise<void>): void => {
    setState('Reading the slices');
    const t0 = Math.max(0, Math.floor(window.t0));
    use(exportWindow(trace.id, t0, Math.ceil(window.t1))).then(
      () => setState(''),
      error => setState(errorText(error)),
    );
  };
  const save = async (blob: Promise<Blob>): Promise<void> =>
    saveAs(await blob, fileName(trace.name, 'json', 'window'));
  return (
    <p class="share-here">
      <button type="button" class="button" onClick={() => make(save)}>
        This window as Chrome JSON
      </button>
      <button
        type="button"
        class="button"
        title="In a new tab, which gets the slices from this one; nothing is uploaded"
        onClick={() => make(blob => openInPerfetto(trace.name, blob))}
      >
        Open it in Perfetto
      </button>
      <span class="muted" role="status">
        {state}
      </span>
    </p>
  );
}

/** Form, what people call it, ending of the file. */
const FORMS = [
  ['perfetto', 'Perfetto', 'pftrace'],
  ['chrome', 'Chrome JSON', 'json'],
  ['sqlite', 'SQLite', 'db'],
  ['speedscope', 'speedscope', 'speedscope.json'],
  ['folded', /* text */ 'folded stacks', 'folded'],
  ['original', /* text */ 'as uploaded', 'original'],
] as const;

/** All of the trace, as the server writes it. */
function WholeDownloads({trace}: {trace: TraceInfo}): JSX.Element {
  return (
    <p class="share-here">
      <span>Download all of it:</span>
      {FORMS.map(([form, label, ending]) => (
        <a
          key={form}
          href={exportUrl(trace.id, form)}
          download={form === 'original' ? trace.name : fileName(trace.name, ending, 'trace')}
        >
          {label}
        </a>
      ))}
      <span class="muted">with all names and paths</span>
    </p>
  );
}

/** The window of the timeline where one is looked at, else the whole trace. */
function sharedOf(trace: TraceInfo): Shared {
  const window = page.value === 'timeline' ? timeWindow.value : undefined;
  if (!window) return {trace: trace.id};
  const from = Math.max(0, Math.floor(window.t0));
  return {
    trace: trace.id,
    view: windowPart(trace.id, from, Math.max(from + 1, Math.ceil(window.t1))),
  };
}

/** A report that a team writes: drafted of this trace, or one that gets what is looked at. */
function Report({trace, onClose}: {trace: TraceInfo; onClose: () => void}): JSX.Element {
  const window = page.value === 'timeline' ? timeWindow.value : undefined;
  return (
    <div class="report-bar">
      <DraftButton from={[trace.id]} project={trace.project} onMade={onClose} />
      <AddButton choices={partsOfTrace(trace.id, page.value, window)} project={trace.project} />
      <WindowLine trace={trace} />
    </div>
  );
}

/** The line that shows this window in a report, for who writes one elsewhere. */
function WindowLine({trace}: {trace: TraceInfo}): JSX.Element | null {
  const shared = sharedOf(trace);
  if (!('view' in shared) || shared.view === undefined) return null;
  return (
    <>
      <span class="muted">This window as a part of a report:</span>
      <CopyButton text={/* no text */ `\`\`\`lacuna\n${shared.view}\n\`\`\`\n`} label="Copy" />
    </>
  );
}

function Choice({trace, contents}: {trace: TraceInfo; contents: ReportContents}): JSX.Element {
  const present = contents.contains.filter(row => row.count > 0);
  const [leftOut, setLeftOut] = useState<readonly string[]>([]);
  const redact = redactList(leftOut);
  const isNamed = !leftOut.includes('names');
  return (
    <>
      {present.length === 0 ? (
        <p class="muted">
          It contains no host names, user names, paths, command lines or names chosen by people.
        </p>
      ) : (
        <fieldset class="share-kinds">
          <legend>Include in the report</legend>
          {present.map(row => {
            const shown = row.items.slice(0, 3).join(', ');
            const more = row.items.length > 3 ? ', …' : '';
            const isOut = leftOut.includes(row.kind);
            return (
              <label class="check share-kind" key={row.kind}>
                <input
                  type="checkbox"
                  checked={!isOut}
                  onChange={() =>
                    setLeftOut(
                      isOut ? leftOut.filter(kind => kind !== row.kind) : [...leftOut, row.kind],
                    )
                  }
                />
                <span>
                  {sentence(word('redactions', row.kind).label)}{' '}
                  <span class="faint">({isOut ? 'left out' : plural(row.count, 'place')})</span>
                  <span class="share-items break">{shown + more}</span>
                </span>
              </label>
            );
          })}
        </fieldset>
      )}
      <div class="dialog-actions">
        <a
          class="button"
          href={reportUrl(trace.id, 'markdown', redact)}
          download={fileName(isNamed ? trace.name : '', 'md')}
        >
          Markdown
        </a>
        <a
          class="button button-primary"
          href={reportUrl(trace.id, 'html', redact)}
          download={fileName(isNamed ? trace.name : '', 'html')}
        >
          Download HTML
        </a>
      </div>
    </>
  );
}
