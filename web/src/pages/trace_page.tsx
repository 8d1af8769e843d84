// A trace: its head with the tabs, and the page that the tabs choose.
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {ApiError, getAnalysis, getTrace, getTracks} from '../api/client';
import type {Analysis, TraceInfo, TracksInfo} from '../api/types';
import {formatBytes, formatCount, formatWhen, sentence} from '../base/format';
import {describeDevices} from '../model/list_rows';
import {runs} from '../model/runs';
import {places, registerCommands} from '../model/palette/commands';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {deletedTraces, isUnderWay, takeReply, traceById, traces} from '../model/traces';
import {DEFAULT_VIEW, page, show, traceId, type Page} from '../model/view_state';
import {sqlTrack} from '../model/sql/shown_track';
import {Boundary} from '../ui/boundary';
import {Header, useTitle} from '../ui/header';
import {BackToTraces, ViewLink} from '../ui/link';
import {lazy} from '../ui/lazy';
import {ProgressLine} from '../ui/progress_line';
import {latest, useResource, type Resource} from '../ui/resource';
import {Empty, StandIn} from '../ui/states';
import {later} from './later';
import {OverviewPage} from './overview_page';
import {showEvidence} from './evidence_link';
import {ShareButton} from './share_button';

const Broken = later('what went wrong', pages => pages.Broken, true);
const FlamePage = later('the flame graph', pages => pages.FlamePage);
const SqlPage = later('the query', pages => pages.SqlPage);
const SqlStrip = later('the rows', pages => pages.SqlStrip, true);
const TimelinePanel = lazy(
  'the timeline',
  async () => (await import('../timeline/timeline_panel')).TimelinePanel,
);
const TablesPage = later('the table', pages => pages.TablesPage);

const TABS: readonly {page: Page; label: string}[] = [
  {page: 'overview', label: 'Overview'},
  {page: 'timeline', label: 'Timeline'},
  {page: 'kernels', label: 'Tables'},
  {page: 'flame', label: 'Flame graph'},
  {page: 'sql', label: 'SQL'},
];

export function TracePage(): JSX.Element {
  const id = traceId.value ?? '';
  const known = traceById(id);
  const isGone = deletedTraces.value.has(id);
  const losses = useLosses(known);
  const first = useResource(isGone ? undefined : `${id}/${losses}`, async signal => {
    try {
      const trace = await getTrace(id, signal);
      takeReply(trace);
      return trace;
    } catch (error) {
      // an old id or one of another server: a page of its own, not a failure of this one
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  });
  const trace = known ?? (first.kind === 'ready' ? first.value : undefined);

  // what tells tabs of one trace apart comes first
  const tab = TABS.find(each => each.page === page.value)?.label ?? 'Trace';
  useTitle(trace ? `${tab} · ${trace.name || 'trace'}` : '');

  if (trace) return <KnownTrace trace={trace} />;
  return (
    <>
      <Header />
      <main class="page">
        {!isGone && <StandIn of={first} what="the trace" />}
        {(isGone || first.kind === 'ready') && (
          <Empty title="There is no such trace here" isPage>
            It was deleted, or the link belongs to another server.{' '}
            <ViewLink view={DEFAULT_VIEW}>All traces</ViewLink>
          </Empty>
        )}
      </main>
    </>
  );
}

/** How often it was in the list and is no more: then the server is asked what became of it, for
 *  its end may have come while nobody listened. */
function useLosses(known: TraceInfo | undefined): number {
  const seen = useRef({isKnown: false, losses: 0});
  if (seen.current.isKnown && !known) seen.current.losses++;
  seen.current.isKnown = known !== undefined;
  return seen.current.losses;
}

function KnownTrace({trace}: {trace: TraceInfo}): JSX.Element {
  const ready = trace.state === 'ready';
  const key = ready ? `${trace.id}/${trace.generation}` : undefined;
  const analysis = useResource(key, signal => getAnalysis(trace.id, signal));
  const tracks = useResource(key, signal => getTracks(trace.id, signal));
  useFindingKeys(trace, analysis.kind === 'ready' ? analysis.value : undefined);
  useCommands(
    trace,
    analysis.kind === 'ready' ? analysis.value : undefined,
    tracks.kind === 'ready' ? tracks.value : undefined,
  );
  return (
    <div class={`trace-page trace-page-${page.value}`}>
      <Header>
        <TraceTitle trace={trace} />
        {ready && <Tabs views={viewsOf(latest(analysis))} />}
        {ready && <ShareButton trace={trace} />}
      </Header>
      {ready ? (
        <Boundary key={page.value} what="This view">
          <TraceBody trace={trace} analysis={analysis} tracks={tracks} />
        </Boundary>
      ) : (
        <main class="page">
          {isUnderWay(trace) ? <Importing trace={trace} /> : <Broken trace={trace} />}
        </main>
      )}
    </div>
  );
}

function TraceTitle({trace}: {trace: TraceInfo}): JSX.Element {
  const meta = [
    // a log of counters names no device, and is of GPUs nonetheless
    trace.slice_count === 0 ? '' : describeDevices(trace.device_names, trace.device_count),
    formatWhen(trace.created_at, new Date()),
    trace.format,
  ].filter(text => text !== '');
  // the overview's and a failed trace's head is what they say; elsewhere it is the name
  const Name = trace.state === 'ready' && page.value !== 'overview' ? 'h1' : 'span';
  return (
    <div class="trace-title">
      <BackToTraces />
      <div class="trace-names">
        <Name class="trace-name ellipsis" title={trace.name}>
          {trace.name || 'unnamed trace'}
        </Name>
        <span class="trace-meta">
          {trace.simulated && <span class="tag tag-simulated">simulated</span>}
          <RunLink trace={trace} />
          {trace.state === 'ready' && <span class="ellipsis">{meta.join(' · ')}</span>}
        </span>
      </div>
    </div>
  );
}

/** From a rank to its run, where what it cannot tell alone is told. */
function RunLink({trace}: {trace: TraceInfo}): JSX.Element | null {
  if (trace.run === undefined) return null;
  const here = traces.value.filter(other => other.run === trace.run).length;
  const count = Math.max(here, runs.value.get(trace.run)?.trace_count ?? 0);
  if (count < 2) return null;
  return (
    <ViewLink
      class="run-link"
      view={{...DEFAULT_VIEW, page: 'run', runId: trace.run}}
      title="The run: all ranks side by side"
    >
      {trace.rank === undefined ? `one of ${count} traces` : `rank ${trace.rank} of ${count}`}
    </ViewLink>
  );
}

/** A profile without times has no timeline, a log of counters nothing that ran; until the analysis is here, a trace has all. */
function viewsOf(analysis: Analysis | undefined): typeof TABS {
  const of = analysis?.trace;
  return TABS.filter(
    ({page}) =>
      (page !== 'timeline' || of?.timeline !== false) &&
      (!['kernels', 'flame'].includes(page) || of?.slice_count !== 0),
  );
}

function Tabs({views}: {views: typeof TABS}): JSX.Element {
  return (
    <nav class="tabs" aria-label="Views of this trace">
      {views.map(tab => (
        <ViewLink
          key={tab.page}
          class="tab"
          view={{page: tab.page}}
          current={page.value === tab.page}
        >
          {tab.label}
        </ViewLink>
      ))}
    </nav>
  );
}

function TraceBody(props: {
  trace: TraceInfo;
  analysis: Resource<Analysis>;
  tracks: Resource<TracksInfo>;
}): JSX.Element {
  const {trace, analysis, tracks} = props;
  switch (page.value) {
    case 'timeline':
      return (
        <main class="page page-full">
          <StandIn of={tracks} what="the rows" title="The timeline cannot be shown" />
          {tracks.kind === 'ready' && (
            <TimelinePanel
              trace={trace}
              tracks={tracks.value}
              analysis={analysis.kind === 'ready' ? analysis.value : undefined}
              strip={sqlTrack.value?.trace === trace.id && <SqlStrip trace={trace} />}
            />
          )}
        </main>
      );
    case 'kernels':
      return (
        <TablesPage
          trace={trace}
          analysis={analysis.kind === 'ready' ? analysis.value : undefined}
        />
      );
    case 'flame':
      return <FlamePage trace={trace} />;
    case 'sql':
      return <SqlPage trace={trace} />;
    case 'overview':
    case 'list':
    case 'compare':
    case 'run':
    case 'findings':
    case 'reports':
    case 'project':
    case 'settings':
    case 'not_found':
      return (
        <OverviewPage
          trace={trace}
          analysis={analysis}
          tracks={tracks.kind === 'ready' ? tracks.value : undefined}
        />
      );
  }
}

function Importing({trace}: {trace: TraceInfo}): JSX.Element {
  const progress = trace.progress;
  return (
    <section class="importing" aria-live="polite">
      <h1>{trace.state === 'receiving' ? 'Receiving the trace' : 'Importing the trace'}</h1>
      <p class="muted break">{trace.name}</p>
      <ProgressLine
        done={progress?.done_bytes ?? 0}
        total={progress?.total_bytes ?? 0}
        rate={progress?.bytes_per_s ?? 0}
        etaS={progress?.eta_s}
        label="Import"
      />
      <dl class="facts">
        {progress !== undefined && progress.total_bytes > 0 && (
          <>
            <dt>read</dt>
            <dd class="num">
              {formatBytes(progress.done_bytes)} of {formatBytes(progress.total_bytes)}
            </dd>
          </>
        )}
        {progress !== undefined && progress.events > 0 && (
          <>
            <dt>events so far</dt>
            <dd class="num">{formatCount(progress.events)}</dd>
          </>
        )}
      </dl>
      <p class="muted">The verdict opens here when the import is done.</p>
    </section>
  );
}

const FINDING_KEYS_MAX = 5;

/** 1..5: the evidence of that finding in the timeline, from any tab. */
function useFindingKeys(trace: TraceInfo, analysis: Analysis | undefined): void {
  const count = Math.min(FINDING_KEYS_MAX, analysis?.findings.length ?? 0);
  useEffect(() => {
    if (!analysis || count === 0) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (!/^[1-5]$/.test(event.key)) return;
      const evidence = analysis.findings[Number(event.key) - 1]?.evidence[0];
      if (!evidence) return;
      event.preventDefault();
      void showEvidence(trace, evidence);
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Findings',
      shortcuts: [
        {
          keys: count === 1 ? ['1'] : ['1', '…', String(count)],
          text: 'show evidence of that finding in the timeline',
        },
      ],
    });
    return () => {
      removeEventListener('keydown', onKey);
      forget();
    };
  }, [trace.id, analysis]);
}

/** For the command palette: the trace's views, its findings, and its times. */
function useCommands(
  trace: TraceInfo,
  analysis: Analysis | undefined,
  tracks: TracksInfo | undefined,
): void {
  useEffect(() => {
    if (!analysis) return undefined;
    const forget = registerCommands([
      ...viewsOf(analysis).map(tab => ({
        name: tab.label,
        hint: 'view of this trace',
        run: () => show({page: tab.page}),
      })),
      ...analysis.findings.flatMap(finding => {
        const evidence = finding.evidence[0];
        return evidence
          ? [
              {
                name: sentence(finding.title),
                hint: 'finding',
                run: () => void showEvidence(trace, evidence),
              },
            ]
          : [];
      }),
    ]);
    return forget;
  }, [trace.id, analysis]);
  useEffect(() => {
    if (!tracks || tracks.duration_ns <= 0) return undefined;
    places.value = {
      durationNs: tracks.duration_ns,
      stepStartNs: tracks.steps.start_ns,
      stepDurNs: tracks.steps.dur_ns,
    };
    return () => {
      places.value = undefined;
    };
  }, [trace.id, tracks]);
}
