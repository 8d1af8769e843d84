// One report: read, written, talked about, shared.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {ApiError, errorText} from '../../api/client';
import {
  deleteReport,
  documentUrl,
  getDocument,
  getReport,
  getVersions,
  type Report,
} from '../../api/reports';
import {formatWhen, sentence} from '../../base/format';
import {fileName} from '../../model/share/share';
import {DEFAULT_VIEW, show} from '../../model/view_state';
import {Dialog} from '../../ui/dialog';
import {Header, useTitle} from '../../ui/header';
import {BackToTraces, ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {ReportEditor} from './report_editor';
import {ReportFrame} from './report_frame';
import {ReportTalk} from './report_talk';
import {ShareLink} from './share_link';

const ALL: Partial<typeof DEFAULT_VIEW> = {...DEFAULT_VIEW, page: 'reports'};

export function ReportPage({id}: {id: string}): JSX.Element {
  const [round, setRound] = useState(0);
  const resource = useResource(`${id}/${round}`, async signal => {
    try {
      return await getReport(id, signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  });
  const report = latest(resource);
  useTitle(report?.title ?? '');
  return (
    <>
      <Header>
        <div class="trace-title">
          <BackToTraces />
          <div class="trace-names">
            <h1 class="trace-name ellipsis">{report?.title ?? 'Report'}</h1>
            <span class="trace-meta">
              <ViewLink view={ALL}>All reports</ViewLink>
            </span>
          </div>
        </div>
      </Header>
      <main class="page page-report">
        <StandIn keeps of={resource} what="the report" />
        {resource.kind === 'ready' && !resource.value && (
          <Empty title="There is no such report here">
            It was deleted, or the link belongs to another server.{' '}
            <ViewLink view={ALL}>All reports</ViewLink>
          </Empty>
        )}
        {report && <Known report={report} onChange={() => setRound(round + 1)} />}
      </main>
    </>
  );
}

function Known({report, onChange}: {report: Report; onChange: () => void}): JSX.Element {
  const [isEditing, setEditing] = useState(report.version === 1 && report.markdown === '');
  const [version, setVersion] = useState(0);
  const [isSharing, setSharing] = useState(false);
  const document = useResource(
    isEditing ? undefined : `${report.id}/${report.version}/${version}`,
    signal => getDocument(report.id, version, signal),
  );
  if (isEditing)
    return (
      <ReportEditor
        report={report}
        onDone={() => {
          setEditing(false);
          setVersion(0);
          onChange();
        }}
      />
    );
  return (
    <div class="report-columns">
      <div class="report-main">
        <div class="report-bar">
          <button type="button" class="button button-primary" onClick={() => setEditing(true)}>
            Edit
          </button>
          <button type="button" class="button" onClick={() => setSharing(true)}>
            Share
          </button>
          <a
            class="button"
            href={documentUrl(report.id, 'html')}
            download={fileName(report.title, 'html')}
          >
            HTML
          </a>
          <a
            class="button"
            href={documentUrl(report.id, 'markdown')}
            download={fileName(report.title, 'md')}
          >
            Markdown
          </a>
          <Versions report={report} version={version} onChoose={setVersion} />
          <DeleteButton report={report} />
        </div>
        <StandIn of={document} what="the report" />
        {document.kind === 'ready' && <ReportFrame html={document.value} title={report.title} />}
      </div>
      <ReportTalk report={report} />
      {isSharing && (
        <Dialog title="Share the report" onClose={() => setSharing(false)}>
          <ShareLink what={{report: report.id}} />
        </Dialog>
      )}
    </div>
  );
}

function Versions(props: {
  report: Report;
  version: number;
  onChoose: (version: number) => void;
}): JSX.Element {
  const {report, version, onChoose} = props;
  const all = useResource(
    `${report.id}/${report.version}`,
    async signal => (await getVersions(report.id, signal)).versions,
  );
  if (all.kind !== 'ready') return <span class="muted">version {report.version}</span>;
  return (
    <select
      class="input"
      aria-label="Version"
      value={String(version)}
      onChange={event => onChoose(Number(event.currentTarget.value))}
    >
      {all.value.map((each, index) => (
        <option key={each.version} value={index === 0 ? '0' : String(each.version)}>
          {`version ${each.version}, ${each.editor}, ${formatWhen(each.saved_at, new Date())}`}
        </option>
      ))}
    </select>
  );
}

function DeleteButton({report}: {report: Report}): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState('');
  const remove = async (): Promise<void> => {
    try {
      await deleteReport(report.id);
      show(ALL);
    } catch (error) {
      setProblem(sentence(errorText(error)));
    }
  };
  return (
    <>
      <button type="button" class="button button-quiet" onClick={() => setAsking(true)}>
        Delete
      </button>
      {isAsking && (
        <Dialog title="Delete the report?" onClose={() => setAsking(false)}>
          <p>
            Its {report.version === 1 ? 'text' : `${report.version} versions`}, comments and links
            are deleted with it. The traces stay.
          </p>
          {problem !== '' && (
            <p class="error-text" role="alert">
              {problem}
            </p>
          )}
          <div class="dialog-actions">
            <button type="button" class="button" onClick={() => setAsking(false)}>
              Cancel
            </button>
            <button type="button" class="button button-danger" onClick={() => void remove()}>
              Delete
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
