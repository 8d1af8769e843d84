// Two traces or two runs, before and after: is it faster, what was changed, where did the milliseconds go.
import {Fragment, type JSX} from 'preact';
import {ApiError, getComparison} from '../api/client';
import type {Compared, ComparedFinding, Comparison} from '../api/types';
import {
  durationIn,
  formatDuration,
  formatInUnit,
  formatNumber,
  formatPct,
  plural,
  rateUnit,
  sentence,
  timeUnitFor,
  type TimeUnit,
} from '../base/format';
import {
  bar,
  familyRows,
  kindRows,
  operatorRows,
  toneOf,
  wentRows,
  type WentRow,
} from '../model/comparison';
import {DEFAULT_VIEW, compareA, compareB} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Header, useTitle} from '../ui/header';
import {IconCheck, IconWarning} from '../ui/icons';
import {BackToTraces, ViewLink} from '../ui/link';
import {BothTimelines} from './run/both_timelines';
import {StepHistograms} from './run/step_histograms';
import {Waterfall} from './run/waterfall';
import {ComparedRanks} from './compared_ranks';
import {AddButton} from './reports/add_button';
import {DraftButton} from './reports/draft_button';
import {useResource} from '../ui/resource';
import {Empty, StandIn} from '../ui/states';

export function ComparePage(): JSX.Element {
  const a = compareA.value;
  const b = compareB.value;
  const isNamed = a !== '' && b !== '';
  const comparison = useResource(isNamed ? `${a}/${b}` : undefined, async signal => {
    try {
      return await getComparison(a, b, signal);
    } catch (error) {
      // an old id or one of another server: a page of its own, not a failure of this one
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  });
  useTitle('Compare');
  return (
    <>
      <Header>
        <div class="trace-title">
          <BackToTraces />
          <span class="trace-name">Compare</span>
        </div>
        {comparison.kind === 'ready' && comparison.value?.a.id && comparison.value.b.id && (
          <>
            <DraftButton from={[comparison.value.a.id, comparison.value.b.id]} />
            <AddButton
              choices={[
                {
                  line: `compare a=${comparison.value.a.id} b=${comparison.value.b.id}`,
                  label: 'Before and after',
                },
              ]}
            />
          </>
        )}
      </Header>
      <main class="page page-compare">
        {!isNamed && <ChooseTwo />}
        {isNamed && (
          <StandIn of={comparison} what="the comparison" title="These cannot be compared" />
        )}
        {isNamed &&
          comparison.kind === 'ready' &&
          (comparison.value ? <Result comparison={comparison.value} /> : <Missing />)}
      </main>
    </>
  );
}

function ChooseTwo(): JSX.Element {
  return (
    <Empty title="Select two traces to compare">
      Select two rows in the list, then press Compare. To compare two runs, open one of them.{' '}
      <ViewLink view={DEFAULT_VIEW}>All traces</ViewLink>
    </Empty>
  );
}

function Missing(): JSX.Element {
  return (
    <Empty title="One of these was not found">
      It was deleted, or the link belongs to another server.{' '}
      <ViewLink view={DEFAULT_VIEW}>All traces</ViewLink>
    </Empty>
  );
}

function Result({comparison}: {comparison: Comparison}): JSX.Element {
  return (
    <>
      <Headline comparison={comparison} />
      <div class="compare-sides">
        <Side letter="A" words="before" side={comparison.a} />
        <Side letter="B" words="after" side={comparison.b} />
      </div>
      <CompareTools comparison={comparison} />
      <Changed comparison={comparison} />
      <Predicted comparison={comparison} />
      <Outcome comparison={comparison} />
      {comparison.ranks && <ComparedRanks ranks={comparison.ranks} />}
      <Went comparison={comparison} />
      {comparison.a.id !== undefined && comparison.b.id !== undefined && (
        <>
          <StepHistograms
            a={comparison.a}
            b={comparison.b}
            aId={comparison.a.id}
            bId={comparison.b.id}
          />
          <BothTimelines
            key={`${comparison.a.id}/${comparison.b.id}`}
            aId={comparison.a.id}
            bId={comparison.b.id}
          />
        </>
      )}
      <Findings comparison={comparison} />
    </>
  );
}

/** What else can be done with the two. */
function CompareTools({comparison}: {comparison: Comparison}): JSX.Element {
  const {a, b} = comparison;
  return (
    <p class="compare-tools">
      <ViewLink
        class="button"
        view={{
          ...DEFAULT_VIEW,
          page: 'compare',
          compareA: compareB.value,
          compareB: compareA.value,
        }}
      >
        Swap A and B
      </ViewLink>
      {a.id !== undefined && b.id !== undefined && (
        <ViewLink
          class="button"
          view={{...DEFAULT_VIEW, page: 'flame', traceId: b.id, flameWith: a.id}}
        >
          Difference flame graph
        </ViewLink>
      )}
    </p>
  );
}

function Headline({comparison}: {comparison: Comparison}): JSX.Element {
  const rate = comparison.throughput;
  const isReal = comparison.verdict === 'faster' || comparison.verdict === 'slower';
  return (
    <section class={`compare-head tone-${toneOf(comparison.verdict)}`}>
      <h1>{sentence(comparison.text)}.</h1>
      {isReal && rate.change_pct !== undefined && (
        <p class="lead num">
          {formatNumber(rate.a_per_s ?? 0)} → {formatNumber(rate.b_per_s ?? 0)}{' '}
          {rateUnit(rate.unit)}, {rate.change_pct > 0 ? '+' : ''}
          {formatPct(rate.change_pct)} throughput
        </p>
      )}
      {comparison.verdict !== 'unknown' && comparison.why_not !== '' && (
        <p class="muted">{sentence(comparison.why_not)}.</p>
      )}
    </section>
  );
}

function Side(props: {letter: string; words: string; side: Compared}): JSX.Element {
  const {side} = props;
  return (
    <section class="panel compare-side">
      <p class="faint">
        {props.letter}, {props.words}
      </p>
      <p class="compare-name">
        <span class="break">{side.name || 'unnamed trace'}</span>{' '}
        {side.simulated && <span class="tag tag-simulated">simulated</span>}
      </p>
      <p class="compare-verdict">
        <Chip topic={topicOf(side.cause, side.letter)} /> <span>{sentence(side.text)}</span>
      </p>
      <p class="num compare-figures">
        {side.step_mean_ns === undefined ? (
          'no measurable step'
        ) : (
          <>
            <b>{formatDuration(side.step_mean_ns)}</b> per step, {plural(side.kept_steps, 'step')}
            {side.throughput_per_s !== undefined &&
              `, ${formatNumber(side.throughput_per_s)} ${rateUnit(side.throughput_unit)}`}
          </>
        )}
      </p>
      {side.id !== undefined && (
        <p class="compare-links">
          <ViewLink view={{...DEFAULT_VIEW, traceId: side.id, page: 'overview'}}>Overview</ViewLink>
          <ViewLink view={{...DEFAULT_VIEW, traceId: side.id, page: 'timeline'}}>Timeline</ViewLink>
          <ViewLink view={{...DEFAULT_VIEW, traceId: side.id, page: 'flame'}}>Flame graph</ViewLink>
        </p>
      )}
    </section>
  );
}

function Changed({comparison}: {comparison: Comparison}): JSX.Element {
  const {changed} = comparison;
  const isOne = changed.one_change;
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>What changed</h2>
        <span class={`panel-aside ${changed.count > 1 && !isOne ? 'warn-text' : 'faint'}`}>
          {changed.count === 0 && 'no recorded setting changed'}
          {isOne && (
            <>
              <IconCheck /> one change
            </>
          )}
          {changed.count > 1 && !isOne && (
            <>
              <IconWarning /> {changed.count} changes: the difference has no single cause
            </>
          )}
        </span>
      </header>
      {changed.differences.length > 0 && (
        <dl class="facts">
          {changed.differences.map(it => (
            <Fragment key={it.key}>
              <dt class={it.kind === 'setting' ? '' : 'faint'}>{it.key}</dt>
              <dd class={`break ${it.recorded ? '' : 'faint'}`}>
                {it.a} → {it.b}
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
    </section>
  );
}

function Predicted({comparison}: {comparison: Comparison}): JSX.Element | null {
  const predicted = comparison.predicted;
  if (!predicted || predicted.step_ns.mid === undefined || predicted.achieved_ns === undefined)
    return null;
  const {low, mid, high} = predicted.step_ns;
  const band =
    low === undefined || high === undefined || formatDuration(low) === formatDuration(high)
      ? ''
      : ` (${formatDuration(low)}–${formatDuration(high)})`;
  const isMissed = !predicted.within_band && predicted.achieved_ns > (high ?? mid);
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>Predicted and achieved</h2>
        {predicted.is_the_change && (
          <span class={`panel-aside ${isMissed ? 'warn-text' : 'faint'}`}>
            {isMissed ? <IconWarning /> : <IconCheck />}{' '}
            {isMissed
              ? 'missed'
              : predicted.within_band
                ? 'within the band'
                : 'better than the band'}
          </span>
        )}
      </header>
      <dl class="facts">
        <dt>
          <code>{predicted.change}</code>
        </dt>
        <dd class="num">
          {predicted.within_band && predicted.is_the_change ? (
            <>
              predicted {formatDuration(mid)}
              {band}, achieved <b>{formatDuration(predicted.achieved_ns)}</b>
            </>
          ) : (
            predicted.text
          )}
        </dd>
      </dl>
    </section>
  );
}

/** Whether the training result is the same, and the steps that are not training. */
function Outcome({comparison}: {comparison: Comparison}): JSX.Element | null {
  const result = comparison.result;
  const kinds = kindRows(comparison);
  const time = (ns: number | undefined): string =>
    ns === undefined ? /* text */ 'none' : formatDuration(ns);
  if (!result && kinds.length === 0) return null;
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>Same result?</h2>
        {result?.same !== undefined && (
          <span class={`panel-aside ${result.same ? 'faint' : 'warn-text'}`}>
            {result.same ? <IconCheck /> : <IconWarning />}{' '}
            {result.same ? 'the same' : 'not the same'}
          </span>
        )}
      </header>
      {result && <p class={result.same === undefined ? 'muted' : ''}>{sentence(result.text)}.</p>}
      {kinds.length > 0 && (
        <dl class="facts">
          {kinds.map(kind => (
            <Fragment key={kind.name}>
              <dt>{kind.name}</dt>
              <dd class="num">
                {time(kind.aNs)} → {time(kind.bNs)} per step ({kind.counts} steps)
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
    </section>
  );
}

function Went({comparison}: {comparison: Comparison}): JSX.Element | null {
  const rows = wentRows(comparison);
  const families = familyRows(comparison);
  const operators = operatorRows(comparison);
  if (rows.length === 0) return null;
  const delta = comparison.step.delta_ns ?? 0;
  // one scale for all of them: a bar is as long as another that says as much
  const scale = Math.max(...[...rows, ...families, ...operators].map(row => Math.abs(row.deltaNs)));
  const unit = timeUnitFor(Math.max(comparison.step.a_ns ?? 0, comparison.step.b_ns ?? 0));
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>
          {delta === 0
            ? 'Where the time goes'
            : `Where the ${formatDuration(Math.abs(delta))} went`}
        </h2>
        <span class="panel-aside faint">{unit} per step</span>
      </header>
      <Waterfall
        rows={rows}
        aNs={comparison.step.a_ns ?? 0}
        bNs={comparison.step.b_ns ?? 0}
        unit={unit}
      />
      {families.length > 0 && (
        <>
          <h3 class="compare-sub">Kernel time by kind</h3>
          <WentTable rows={families} scale={scale} unit={unit} label="Kernel time by kind" />
        </>
      )}
      {operators.length > 0 && (
        <>
          <h3 class="compare-sub">GPU time by launching operator</h3>
          <WentTable
            rows={operators}
            scale={scale}
            unit={unit}
            label="GPU time by launching operator"
          />
        </>
      )}
    </section>
  );
}

function WentTable(props: {
  rows: readonly WentRow[];
  scale: number;
  unit: TimeUnit;
  label: string;
}): JSX.Element {
  // as many decimals as make the largest change three digits, one at least
  const decimals = formatInUnit(props.scale, props.unit, 2).includes('.') ? 2 : 1;
  const plain = (value: number): string => durationIn(value, props.unit, decimals);
  return (
    <div class="went" role="table" aria-label={props.label}>
      {props.rows.map(row => {
        const place = bar(row.deltaNs, props.scale);
        const isNothing = plain(Math.abs(row.deltaNs)) === plain(0);
        return (
          <div class="went-row" role="row" key={row.name}>
            <span role="cell" class="went-name">
              {row.name}
            </span>
            <span role="cell" class="num went-numbers">
              {plain(row.aNs)} → {plain(row.bNs)}
            </span>
            <span role="cell" class="went-bar" aria-hidden="true">
              {!isNothing && (
                <span
                  class={row.deltaNs < 0 ? 'went-less' : 'went-more'}
                  style={{left: `${place.left}%`, width: `${place.width}%`}}
                />
              )}
            </span>
            <span role="cell" class="num went-delta">
              {isNothing ? '–' : `${row.deltaNs > 0 ? '+' : ''}${plain(row.deltaNs)}`}
            </span>
          </div>
        );
      })}
    </div>
  );
}

function Findings({comparison}: {comparison: Comparison}): JSX.Element | null {
  const {gone, come, stayed} = comparison.findings;
  if (gone.length + come.length + stayed.length === 0) return null;
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>Findings</h2>
      </header>
      <div class="compare-findings">
        <FindingList title="gone" findings={gone} traceId={comparison.a.id} />
        <FindingList title="new" findings={come} traceId={comparison.b.id} />
        <FindingList title="unchanged" findings={stayed} traceId={comparison.b.id} />
      </div>
    </section>
  );
}

function FindingList(props: {
  title: string;
  findings: readonly ComparedFinding[];
  traceId: string | undefined;
}): JSX.Element {
  return (
    <div>
      <h3 class="compare-sub">{props.title}</h3>
      {props.findings.length === 0 && <p class="faint">none</p>}
      <ul class="plain-list">
        {props.findings.map(finding => (
          <li key={finding.id}>
            {props.traceId === undefined ? (
              finding.title
            ) : (
              <ViewLink view={{...DEFAULT_VIEW, traceId: props.traceId, page: 'overview'}}>
                {sentence(finding.title)}
              </ViewLink>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
