// Adds a live part to a report: to one that is there, or to a new one.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../../api/client';
import {createReport, getReport, listReports, saveReport} from '../../api/reports';
import {sentence} from '../../base/format';
import {adding, partBlock, type Adding} from '../../model/report_text';
import {DEFAULT_VIEW, show} from '../../model/view_state';
import {Dialog} from '../../ui/dialog';
import {useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';

/** How often somebody else may save in between. */
const TRIES = 4;

/** Append to the newest text; who saves meanwhile loses nothing, and neither do we. */
async function append(id: string, block: string): Promise<void> {
  const report = await getReport(id);
  let {version, markdown} = report;
  for (let tries = 0; tries < TRIES; tries++) {
    const body = {
      version,
      title: report.title,
      markdown: `${markdown.trimEnd()}\n\n${block}`,
      project: report.project,
    };
    const result = await saveReport(id, body);
    if ('saved' in result) return;
    ({version, markdown} = result.conflict);
  }
  throw new Error('Somebody else is saving this report: try again.');
}

const close = (): void => {
  adding.value = undefined;
};

export function AddDialog({choices, project}: Adding): JSX.Element {
  const reports = useResource('reports', signal => listReports({limit: 50}, signal));
  const [line, setLine] = useState(choices[0]?.line ?? '');
  const [target, setTarget] = useState('');
  const [title, setTitle] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const add = async (): Promise<void> => {
    setBusy(true);
    try {
      const block = partBlock(line);
      let id = target;
      if (id === '')
        id = (
          await createReport({
            title: title.trim() || (choices.find(each => each.line === line)?.label ?? 'Report'),
            markdown: block,
            project: project ?? '',
          })
        ).id;
      else await append(id, block);
      close();
      show({...DEFAULT_VIEW, page: 'reports', reportId: id});
    } catch (error) {
      setProblem(sentence(errorText(error)));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Add to a report" onClose={close}>
      <StandIn of={reports} what="the reports" title="The reports cannot be listed" />
      {reports.kind === 'ready' && (
        <form
          class="add-part"
          onSubmit={event => {
            event.preventDefault();
            void add();
          }}
        >
          {choices.length > 1 && (
            <label>
              <span>What</span>
              <select
                class="input"
                value={line}
                onChange={event => setLine(event.currentTarget.value)}
              >
                {choices.map(each => (
                  <option key={each.line} value={each.line}>
                    {each.label}
                  </option>
                ))}
              </select>
            </label>
          )}
          <label>
            <span>Report</span>
            <select
              class="input"
              value={target}
              onChange={event => setTarget(event.currentTarget.value)}
            >
              <option value="">a new report</option>
              {reports.value.reports.map(each => (
                <option key={each.id} value={each.id}>
                  {each.title}
                </option>
              ))}
            </select>
          </label>
          {target === '' && (
            <label>
              <span>Title</span>
              <input
                class="input"
                type="text"
                maxLength={200}
                value={title}
                onInput={event => setTitle(event.currentTarget.value)}
              />
            </label>
          )}
          <p class="muted">The report keeps what it shows now, also when the trace is deleted.</p>
          {problem !== '' && (
            <p class="error-text" role="alert">
              {problem}
            </p>
          )}
          <div class="dialog-actions">
            <button type="submit" class="button button-primary" disabled={isBusy}>
              Add
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
