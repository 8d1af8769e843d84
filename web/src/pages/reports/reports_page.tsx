// Reports: their list, or one of them.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {errorText} from '../../api/client';
import {createReport, listReports, type ReportRow} from '../../api/reports';
import {formatWhen, plural, sentence} from '../../base/format';
import {DEFAULT_VIEW, reportId, show} from '../../model/view_state';
import {Header, useTitle} from '../../ui/header';
import {BackToTraces, ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {ReportPage} from './report_page';

export function ReportsPage(): JSX.Element {
  return reportId.value === '' ? <Index /> : <ReportPage id={reportId.value} />;
}

function Index(): JSX.Element {
  const [filter, setFilter] = useState('');
  const [more, setMore] = useState<readonly ReportRow[]>([]);
  const [next, setNext] = useState<string | undefined>(undefined);
  const page = useResource(`reports ${filter}`, async signal => {
    const found = await listReports({q: filter, limit: 50}, signal);
    setMore([]);
    setNext(found.next);
    return found.reports;
  });
  useTitle('Reports');
  const loadMore = async (): Promise<void> => {
    if (next === undefined) return;
    const found = await listReports({q: filter, limit: 50, after: next});
    setMore([...more, ...found.reports]);
    setNext(found.next);
  };
  const first = latest(page);
  return (
    <>
      <Header>
        <div class="trace-title">
          <BackToTraces />
          <h1 class="trace-name">Reports</h1>
        </div>
      </Header>
      <main class="page page-reports">
        <div class="reports-head">
          <input
            class="input"
            type="search"
            placeholder="Filter by title"
            aria-label="Filter the reports"
            value={filter}
            onInput={event => setFilter(event.currentTarget.value)}
          />
          <NewReport />
        </div>
        <StandIn keeps of={page} what="the reports" />
        {first?.length === 0 && (
          <Empty title={filter === '' ? 'No report yet' : 'No report has this title'}>
            “Share” on a trace or a comparison drafts one; or begin with an empty page here.
          </Empty>
        )}
        {first && first.length > 0 && (
          <ul class="report-list">
            {[...first, ...more].map(report => (
              <Row key={report.id} report={report} />
            ))}
          </ul>
        )}
        {next !== undefined && (
          <button type="button" class="button" onClick={() => void loadMore()}>
            Show more
          </button>
        )}
      </main>
    </>
  );
}

function Row({report}: {report: ReportRow}): JSX.Element {
  return (
    <li>
      <ViewLink view={{...DEFAULT_VIEW, page: 'reports', reportId: report.id}} class="report-link">
        {report.title}
      </ViewLink>
      <span class="muted">
        {[
          report.project,
          `version ${report.version} by ${report.editor}`,
          formatWhen(report.updated_at, new Date()),
          report.open_threads > 0 ? plural(report.open_threads, 'open thread') : '',
        ]
          .filter(text => text !== '')
          .join(' · ')}
      </span>
    </li>
  );
}

function NewReport(): JSX.Element {
  const [title, setTitle] = useState('');
  const [problem, setProblem] = useState('');
  const busy = useRef(false);
  const make = async (): Promise<void> => {
    if (busy.current || title.trim() === '') return;
    busy.current = true;
    try {
      const made = await createReport({title: title.trim(), markdown: ''});
      show({...DEFAULT_VIEW, page: 'reports', reportId: made.id});
    } catch (error) {
      setProblem(sentence(errorText(error)));
    } finally {
      busy.current = false;
    }
  };
  return (
    <form
      class="report-new"
      onSubmit={event => {
        event.preventDefault();
        void make();
      }}
    >
      <input
        class="input"
        aria-label="Title of the new report"
        placeholder="Title of a new report"
        maxLength={200}
        value={title}
        onInput={event => setTitle(event.currentTarget.value)}
      />
      <button type="submit" class="button button-primary">
        New report
      </button>
      {problem !== '' && (
        <span class="error-text" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}
