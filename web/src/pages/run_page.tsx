// A run: its ranks side by side, the one that the others wait for, and what one rank alone cannot
// tell.
import type {JSX} from 'preact';
import {ApiError, getRun, getRunAnalysis, listTraces} from '../api/client';
import type {Finding, RunAnalysis, RunInfo, TraceInfo} from '../api/types';
import {
  exactNs,
  formatCount,
  formatDuration,
  formatPct,
  formatWhen,
  plural,
  sentence,
  unbroken,
} from '../base/format';
import {describeDevices, loopUnit} from '../model/list_rows';
import {
  commonest,
  describeMembers,
  inOrder,
  rankName,
  runName,
  stampOf,
  summarizeRun,
} from '../model/runs';
import {isUnderWay, takeReply, traces} from '../model/traces';
import {DEFAULT_VIEW, runId} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Explain} from '../ui/explain';
import {Header, useTitle} from '../ui/header';
import {BackToTraces, ViewLink} from '../ui/link';
import {latest, useResource, type Resource} from '../ui/resource';
import {Empty, StandIn} from '../ui/states';
import {FindingCard} from './finding_card';
import {RunTimeline} from './run/run_timeline';
import {CompareRun} from './run_compare';

const MEMBERS_MAX = 1000;

interface OpenRun {
  readonly info: RunInfo;
  readonly ids: readonly string[];
}

async function openRun(id: string, signal: AbortSignal): Promise<OpenRun | undefined> {
  try {
    const info = await getRun(id, signal);
    const reply = await listTraces({run: id, limit: MEMBERS_MAX}, signal);
    for (const trace of reply.traces) takeReply(trace);
    return {info, ids: reply.traces.map(trace => trace.id)};
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export function RunPage(): JSX.Element {
  const id = runId.value;
  const opened = useResource(id, signal => openRun(id, signal));
  const run = opened.kind === 'ready' ? opened.value : undefined;
  const members = inOrder(traces.value.filter(trace => trace.run === id));
  const name = run === undefined ? '' : runName(run.info.name);

  useTitle(name || 'Run');

  return (
    <div class="trace-page">
      <Header>
        <RunTitle name={name} run={run?.info} members={members} />
      </Header>
      <main class="page page-run">
        <StandIn of={opened} what="the run" />
        {opened.kind === 'ready' && (run === undefined || members.length === 0) && (
          <Empty title="There is no such run here">
            Its traces were deleted, or the link belongs to another server.{' '}
            <ViewLink view={DEFAULT_VIEW}>All traces</ViewLink>
          </Empty>
        )}
        {run !== undefined && members.length > 0 && <KnownRun id={id} members={members} />}
        {run !== undefined && members.some(trace => trace.state === 'ready') && (
          <CompareRun run={run.info} />
        )}
      </main>
    </div>
  );
}

function RunTitle(props: {
  name: string;
  run: RunInfo | undefined;
  members: readonly TraceInfo[];
}): JSX.Element {
  const {members} = props;
  const names = members.flatMap(trace => trace.device_names);
  const count = members.reduce((sum, trace) => sum + trace.device_count, 0);
  const meta = [
    describeMembers(members),
    members.some(trace => trace.state === 'ready') ? describeDevices(names, count) : '',
    props.run === undefined ? '' : formatWhen(props.run.created_at, new Date()),
  ].filter(text => text !== '');
  return (
    <div class="trace-title">
      <BackToTraces />
      <div class="trace-names">
        <span class="trace-name ellipsis" title={props.name}>
          <bdi>{props.name || 'run'}</bdi>
        </span>
        <span class="trace-meta">
          {members.some(trace => trace.simulated) && (
            <span class="tag tag-simulated">simulated</span>
          )}
          {members.length > 0 && <span class="ellipsis">{meta.join(' · ')}</span>}
        </span>
      </div>
    </div>
  );
}

function KnownRun({id, members}: {id: string; members: readonly TraceInfo[]}): JSX.Element {
  const waiting = members.filter(isUnderWay).length;
  const failed = members.filter(trace => trace.state === 'failed').length;
  const isDone = waiting === 0 && members.some(trace => trace.state === 'ready');
  const analysis = useResource(isDone ? `${id}/${stampOf(members)}` : undefined, signal =>
    getRunAnalysis(id, signal),
  );
  const value = latest(analysis);
  const finding = value?.findings[0];
  // what is seen of a finding is on the late rank; where they are late in turns, on the first
  const late = members.find(trace => trace.rank === value?.late_rank);
  const shown = late ?? members.find(trace => trace.id === value?.ranks[0]?.trace);
  return (
    <>
      {isDone ? (
        <RunVerdict analysis={analysis} members={members} />
      ) : (
        <p class="muted" role="status">
          {waiting > 0
            ? `${formatCount(waiting)} of ${plural(members.length, 'trace')} still importing; the ranks are compared once all are in.`
            : 'None of the traces could be read.'}
        </p>
      )}
      {finding && shown && (
        <FindingCard trace={shown} finding={withoutChip(finding)} repeatsVerdict />
      )}
      {isDone && (
        <RunTimeline run={id} stamp={stampOf(members)} members={members} late={value?.late_rank} />
      )}
      <RankTable members={members} analysis={value} />
      {failed > 0 && (
        <p class="muted">
          {plural(failed, 'trace')} of this run could not be read; a missing rank may be the late
          one.
        </p>
      )}
    </>
  );
}

function RunVerdict(props: {
  analysis: Resource<RunAnalysis>;
  members: readonly TraceInfo[];
}): JSX.Element {
  const {analysis, members} = props;
  if (latest(analysis) === undefined)
    return (
      <StandIn
        of={analysis}
        what="the comparison of the ranks"
        title="The ranks cannot be compared"
      />
    );
  const value = latest(analysis);
  const summary = summarizeRun(members, value);
  return (
    <section class="hero">
      <Chip topic={topicOf(summary.cause, summary.letter)} large />
      <div>
        <h1 data-testid="verdict">{unbroken(sentence(summary.text))}</h1>
        {value !== undefined && value.note !== '' && <p class="hero-detail">{value.note}</p>}
      </div>
    </section>
  );
}

/** The rank that differs stands on top. */
function lateFirst(members: readonly TraceInfo[], late: number | undefined): readonly TraceInfo[] {
  const isLate = (trace: TraceInfo): boolean => late !== undefined && trace.rank === late;
  return [...members.filter(isLate), ...members.filter(trace => !isLate(trace))];
}

type RankFacts = RunAnalysis['ranks'][number];

function RankTable(props: {
  members: readonly TraceInfo[];
  analysis: RunAnalysis | undefined;
}): JSX.Element {
  const {members, analysis} = props;
  const facts = new Map(analysis?.ranks.map(rank => [rank.trace, rank] as const));
  const perStep = waitsArePerStep([...facts.values()]);
  const waits = [...facts.values()].map(rank => waitOf(rank, perStep) ?? 0);
  const largestNs = Math.max(0, ...waits);
  const hasHosts = members.some(trace => (trace.host ?? '') !== '');
  const hasWaits = (analysis?.collectives_matched ?? 0) > 0;
  const said = commonest(members.map(stateText));
  return (
    <section class="panel ranks-panel" aria-labelledby="ranks-title">
      <header class="panel-head">
        <h2 id="ranks-title">Ranks side by side</h2>
        {hasWaits && (
          <span class="panel-aside">
            <Explain
              title="Matched collectives"
              text="The same collective on every rank that took part. It ends on all ranks at once, so it is shortest on the rank that enters last; whatever the others take beyond that is waiting. No clocks are compared."
            >
              {plural(analysis?.collectives_matched ?? 0, 'collective')} matched
            </Explain>
          </span>
        )}
      </header>
      {said && (
        <p class="muted">
          {formatCount(said.count)} of {describeMembers(members)}: {said.text}
        </p>
      )}
      <div class="ranks-scroll" role="group" aria-labelledby="ranks-title" tabIndex={0}>
        <table class="ranks">
          <thead>
            <tr>
              <th scope="col">rank</th>
              {hasHosts && (
                <th scope="col" class="rank-aside">
                  host
                </th>
              )}
              <th scope="col" class="cell-num">
                step
              </th>
              <th scope="col" class="cell-num">
                not computing
              </th>
              {hasWaits && (
                <>
                  <th scope="col">waits for other ranks, {perStep ? 'per step' : 'total'}</th>
                  <th scope="col" class="cell-num">
                    entered last
                  </th>
                  <th scope="col" class="cell-num rank-aside">
                    late by
                  </th>
                </>
              )}
              <th scope="col" class="rank-aside">
                verdict of this rank alone
              </th>
            </tr>
          </thead>
          <tbody>
            {lateFirst(members, analysis?.late_rank).map(trace => (
              <RankRow
                key={trace.id}
                trace={trace}
                facts={facts.get(trace.id)}
                analysis={analysis}
                hasHosts={hasHosts}
                hasWaits={hasWaits}
                perStep={perStep}
                largestNs={largestNs}
                said={said?.text}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function RankRow(props: {
  trace: TraceInfo;
  facts: RankFacts | undefined;
  analysis: RunAnalysis | undefined;
  hasHosts: boolean;
  hasWaits: boolean;
  perStep: boolean;
  largestNs: number;
  /** What was said for all ranks that say so. */
  said: string | undefined;
}): JSX.Element {
  const {trace, facts, analysis} = props;
  const text = stateText(trace);
  const summary = trace.summary;
  const isLate = trace.rank !== undefined && trace.rank === analysis?.late_rank;
  const lateNs = isLate ? analysis?.findings[0]?.cost_ns_per_step : undefined;
  const step = loopUnit(summary) === undefined ? undefined : summary?.step_mean_ns;
  return (
    <tr class={isLate ? 'rank-late' : ''} data-rank={trace.rank}>
      <th scope="row">
        <ViewLink view={{...DEFAULT_VIEW, page: 'overview', traceId: trace.id}} title={trace.name}>
          <bdi>{rankName(trace)}</bdi>
        </ViewLink>
        {isLate && <span class="tag tag-late">late</span>}
      </th>
      {props.hasHosts && (
        <td class="rank-host">
          <bdi>{trace.host || <span class="faint">not recorded</span>}</bdi>
        </td>
      )}
      <td class="cell-num num">
        {step === undefined ? <span class="faint">–</span> : formatDuration(step)}
      </td>
      <td class="cell-num num">
        {summary?.not_computing_pct === undefined ? (
          <span class="faint">–</span>
        ) : (
          formatPct(summary.not_computing_pct)
        )}
      </td>
      {props.hasWaits && (
        <>
          <td>
            <WaitCell facts={facts} perStep={props.perStep} largestNs={props.largestNs} />
          </td>
          <td class="cell-num num">
            {facts?.collectives_entered_last === undefined ? (
              <span class="faint">–</span>
            ) : (
              formatCount(facts.collectives_entered_last)
            )}
          </td>
          <td class="cell-num num rank-aside">
            {lateNs === undefined ? (
              <span class="faint">–</span>
            ) : (
              <Explain
                title="Late by"
                text="How much longer the median of the other ranks waits than this one: per step if the trace has steps, else in total."
                exact={exactNs(lateNs)}
              >
                {formatDuration(lateNs, 2)}
              </Explain>
            )}
          </td>
        </>
      )}
      <td class="rank-says">
        <span class="rank-verdict" title={text}>
          <Chip topic={stateTopic(trace)} />
          {text !== props.said && <span>{text}</span>}
        </span>
      </td>
    </tr>
  );
}

function stateTopic(trace: TraceInfo): ReturnType<typeof topicOf> {
  if (trace.state === 'failed') return topicOf('failed', '!');
  if (isUnderWay(trace)) return topicOf('import', '…');
  return topicOf(trace.summary?.cause ?? 'unknown', trace.summary?.letter ?? '~');
}

function stateText(trace: TraceInfo): string {
  if (trace.state === 'failed')
    return `Could not be read: ${trace.error?.message ?? 'unknown reason'}`;
  if (isUnderWay(trace)) return trace.state === 'receiving' ? 'Receiving' : 'Importing';
  return sentence(trace.summary?.text || 'no verdict');
}

/** Steps make ranks comparable; where a rank has too few, all show the whole trace. */
function waitsArePerStep(ranks: readonly RankFacts[]): boolean {
  const matched = ranks.filter(rank => rank.collective_wait_ns !== undefined);
  return (
    matched.length > 0 && matched.every(rank => rank.collective_wait_ns_per_step !== undefined)
  );
}

function waitOf(rank: RankFacts | undefined, perStep: boolean): number | undefined {
  return perStep ? rank?.collective_wait_ns_per_step : rank?.collective_wait_ns;
}

function WaitCell(props: {
  facts: RankFacts | undefined;
  perStep: boolean;
  largestNs: number;
}): JSX.Element {
  const {largestNs} = props;
  const waitNs = waitOf(props.facts, props.perStep);
  if (waitNs === undefined) return <span class="faint">unknown</span>;
  return (
    <span class="rank-wait">
      <Explain
        title="Waits for other ranks"
        text={`Time in matched collectives beyond the shortest of each, ${props.perStep ? 'divided by the steps of the trace' : 'over the whole trace'}. The others wait for the rank that waits least.`}
        exact={exactNs(waitNs)}
      >
        <span class="num">{formatDuration(waitNs, 2)}</span>
      </Explain>
      <span class="rank-wait-bar" aria-hidden="true">
        <span style={{width: `${largestNs > 0 ? (100 * waitNs) / largestNs : 0}%`}} />
      </span>
    </span>
  );
}

/** Without steps the gain is of this recording, not of a change: its sentence says so, a chip would not. */
const withoutChip = (finding: Finding): Finding =>
  finding.step_ns?.mid === undefined ? {...finding, gain_pct: undefined} : finding;
