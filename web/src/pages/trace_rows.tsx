// Rows of the list: a trace in each of its states, and a run with its ranks.
import {signal} from '@preact/signals';
import type {JSX} from 'preact';
import type {TraceInfo, TraceSummary} from '../api/types';
import {
  formatCount,
  formatDuration,
  formatGain,
  formatNumber,
  formatPct,
  formatWhen,
  rateUnit,
  sentence,
} from '../base/format';
import {pick} from '../model/comparison';
import {describeDevices, loopUnit} from '../model/list_rows';
import {comparisonOf, describeMembers, runName, runs, summarizeRun} from '../model/runs';
import {isUnderWay} from '../model/traces';
import {DEFAULT_VIEW} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {IconChevron, IconTrash} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {ProgressLine} from '../ui/progress_line';
import {RetryButton} from './retry_button';

/** Traces to delete together, and what they are called. */
export const toDelete = signal<
  {readonly name: string; readonly traces: readonly TraceInfo[]} | undefined
>(undefined);
/** Runs whose ranks are shown. */
const openRuns = signal<ReadonlySet<string>>(new Set());
/** Rows to compare: at most two. */
export const picked = signal<readonly string[]>([]);

export function TraceRow({trace}: {trace: TraceInfo}): JSX.Element {
  if (trace.state === 'failed') return <FailedRow trace={trace} />;
  if (isUnderWay(trace)) return <BusyRow trace={trace} />;
  return <ReadyRow trace={trace} />;
}

/** A run: one row for all its ranks, and theirs below when it is open. */
export function RunRows({run, members}: {run: string; members: readonly TraceInfo[]}): JSX.Element {
  const isOpen = openRuns.value.has(run);
  const toggle = (): void => {
    const next = new Set(openRuns.value);
    if (!next.delete(run)) next.add(run);
    openRuns.value = next;
  };
  return (
    <>
      <RunRow run={run} members={members} isOpen={isOpen} toggle={toggle} />
      {isOpen && (
        <div class="run-members" role="rowgroup" aria-label="Traces of the run">
          {members.map(trace => (
            <TraceRow key={trace.id} trace={trace} />
          ))}
        </div>
      )}
    </>
  );
}

function RunRow(props: {
  run: string;
  members: readonly TraceInfo[];
  isOpen: boolean;
  toggle: () => void;
}): JSX.Element {
  const {run, members, isOpen} = props;
  const name = runName(runs.value.get(run)?.name ?? members[0]?.name ?? '');
  const missing = (runs.value.get(run)?.trace_count ?? 0) - members.length;
  // the rest is on a page of the list that is not loaded yet
  const what = `${describeMembers(members)}${missing > 0 ? ` and ${formatCount(missing)} older` : ''}`;
  const ready = members.filter(trace => trace.state === 'ready');
  const waiting = members.filter(isUnderWay).length;
  const comparison = comparisonOf(run, members);
  const summary = summarizeRun(members, comparison);
  const finding = comparison?.findings[0];
  const gain = formatGain(finding?.gain_pct?.mid, finding?.gain_pct?.low, finding?.gain_pct?.high);
  const names = ready.flatMap(trace => trace.device_names);
  return (
    <div class="trace-row run-row" role="row" data-testid="run">
      <span class="cell-verdict" role="cell">
        <Chip
          topic={ready.length > 0 ? topicOf(summary.cause, summary.letter) : topicOf('import', '…')}
        />
        <span class="verdict-words">
          <span class="verdict-text">
            <ViewLink class="row-link" view={{...DEFAULT_VIEW, page: 'run', runId: run}}>
              {ready.length > 0
                ? sentence(summary.text)
                : waiting > 0
                  ? 'Importing'
                  : 'None of the traces could be read'}
            </ViewLink>
          </span>
          <span class="verdict-name">
            <bdi class="ellipsis" title={name}>
              {name}
            </bdi>
            {members[0]?.project !== '' && <span class="tag">{members[0]?.project}</span>}
            <button
              type="button"
              class="tag run-toggle"
              aria-expanded={isOpen}
              title={isOpen ? 'Hide the traces' : 'Show the traces'}
              onClick={props.toggle}
            >
              <IconChevron /> {what}
            </button>
            {members.some(trace => trace.simulated) && (
              <span class="tag tag-simulated">simulated</span>
            )}
            {waiting > 0 && <span class="tag">{formatCount(waiting)} importing</span>}
          </span>
        </span>
      </span>
      <span class="cell-num cell-throughput" role="cell">
        {summary.throughput === undefined ? (
          <Dash title="samples were not counted on all ranks" />
        ) : (
          <span class="num" title="sum of all ranks">
            {formatNumber(summary.throughput)}{' '}
            <span class="unit">{rateUnit(summary.throughputUnit)}</span>
          </span>
        )}
      </span>
      <span class="cell-num cell-step num" role="cell" title="median rank">
        {summary.stepNs === undefined ? (
          <Dash title="no training steps found, or too few" />
        ) : (
          <>
            {formatDuration(summary.stepNs)} <span class="unit step-unit">per step</span>
          </>
        )}
      </span>
      <span class="cell-share" role="cell">
        <ShareBar percent={summary.notComputingPct} />
      </span>
      <span class="cell-change" role="cell">
        {finding ? (
          <>
            <span class="ellipsis" title={finding.change}>
              {finding.brief || finding.change}
            </span>
            {gain.mid !== '' && (
              <span class="gain num" title={`Predicted reduction of the step time, ${gain.band}`}>
                {gain.mid}
              </span>
            )}
          </>
        ) : (
          <Dash title="see the ranks" />
        )}
      </span>
      <span class="cell-gpus" role="cell" title={names.join(', ')}>
        {ready.length > 0 &&
          describeDevices(
            names,
            ready.reduce((sum, trace) => sum + trace.device_count, 0),
          )}
      </span>
      <span class="cell-when num" role="cell" title={members[0]?.created_at}>
        {formatWhen(members[0]?.created_at ?? '', new Date())}
      </span>
      <span class="cell-actions" role="cell">
        <button
          type="button"
          class="button button-quiet button-icon row-delete"
          aria-label={`Delete ${name} with its ${what}`}
          title="Delete all traces of the run"
          onClick={() => (toDelete.value = {name, traces: members})}
        >
          <IconTrash />
        </button>
      </span>
    </div>
  );
}

function TraceLink({trace, text}: {trace: TraceInfo; text: string}): JSX.Element {
  return (
    <ViewLink class="row-link" view={{...DEFAULT_VIEW, page: 'overview', traceId: trace.id}}>
      {text}
    </ViewLink>
  );
}

function VerdictCell(props: {
  trace: TraceInfo;
  letter: string;
  cause: string;
  text: string;
  isError?: boolean;
}): JSX.Element {
  const {trace} = props;
  return (
    <span class="cell-verdict" role="cell">
      <Chip topic={topicOf(props.cause, props.letter)} />
      <span class="verdict-words">
        <span class={`verdict-text ${props.isError ? 'error-text' : ''}`}>
          <TraceLink trace={trace} text={props.text} />
        </span>
        <span class="verdict-name">
          <span class="ellipsis" title={trace.name}>
            {trace.name}
          </span>
          {trace.project !== '' && <span class="tag">{trace.project}</span>}
          {trace.rank !== undefined && <span class="tag">rank {trace.rank}</span>}
          {trace.simulated && <span class="tag tag-simulated">simulated</span>}
          {trace.format !== '' && trace.state === 'ready' && (
            <span class="tag tag-format">{trace.format}</span>
          )}
        </span>
      </span>
    </span>
  );
}

function RowEnd({trace}: {trace: TraceInfo}): JSX.Element {
  return (
    <>
      <span class="cell-when num" role="cell" title={trace.created_at}>
        {formatWhen(trace.created_at, new Date())}
      </span>
      <span class="cell-actions" role="cell">
        {trace.state === 'ready' && (
          <input
            type="checkbox"
            class="row-pick"
            title="Select two to compare"
            aria-label={`Compare ${trace.name}`}
            checked={picked.value.includes(trace.id)}
            onChange={() => (picked.value = pick(picked.value, trace.id))}
          />
        )}
        <button
          type="button"
          class="button button-quiet button-icon row-delete"
          aria-label={`Delete ${trace.name}`}
          title="Delete"
          onClick={() => (toDelete.value = {name: trace.name, traces: [trace]})}
        >
          <IconTrash />
        </button>
      </span>
    </>
  );
}

function ReadyRow({trace}: {trace: TraceInfo}): JSX.Element {
  const summary = trace.summary;
  const unit = loopUnit(summary);
  return (
    <div class="trace-row" role="row">
      <VerdictCell
        trace={trace}
        letter={summary?.letter ?? '~'}
        cause={summary?.cause ?? 'unknown'}
        text={sentence(summary?.text || 'no verdict')}
      />
      <span class="cell-num cell-throughput" role="cell">
        <Throughput summary={summary} />
      </span>
      <span class="cell-num cell-step num" role="cell">
        {summary?.step_mean_ns === undefined || unit === undefined ? (
          <Dash title="no steps or batches found, or too few" />
        ) : (
          <>
            {formatDuration(summary.step_mean_ns)}
            {unit === 'step' ? (
              <span class="unit step-unit"> per step</span>
            ) : (
              <>
                <wbr />
                <span class="unit">/{unit}</span>
              </>
            )}
          </>
        )}
      </span>
      <span class="cell-share" role="cell">
        <ShareBar percent={summary?.not_computing_pct} />
      </span>
      <span class="cell-change" role="cell">
        <NextChange summary={summary} />
      </span>
      <span class="cell-gpus" role="cell" title={trace.device_names.join(', ')}>
        {describeDevices(trace.device_names, trace.device_count)}
      </span>
      <RowEnd trace={trace} />
    </div>
  );
}

function Dash({title}: {title: string}): JSX.Element {
  return (
    <span class="faint dash" title={title}>
      –
    </span>
  );
}

function Throughput({summary}: {summary: TraceSummary | undefined}): JSX.Element {
  if (summary?.throughput_per_s === undefined || loopUnit(summary) === undefined)
    return <Dash title="unknown without steps" />;
  return (
    <span class="num">
      {formatNumber(summary.throughput_per_s)}{' '}
      <span class="unit">{rateUnit(summary.throughput_unit)}</span>
    </span>
  );
}

function ShareBar({percent}: {percent: number | undefined}): JSX.Element {
  if (percent === undefined)
    return (
      <span class="share">
        <Dash title="not recorded" />
      </span>
    );
  return (
    <span class="share">
      <span class="num">{formatPct(percent)}</span>
      <span class="share-bar" aria-hidden="true">
        <span style={{width: `${Math.min(100, Math.max(0, percent))}%`}} />
      </span>
    </span>
  );
}

function NextChange({summary}: {summary: TraceSummary | undefined}): JSX.Element {
  if (!summary?.next_change) return <Dash title="no change suggested" />;
  const gain = formatGain(summary.gain_mid_pct, summary.gain_low_pct, summary.gain_high_pct);
  return (
    <>
      <span class="ellipsis" title={summary.next_change}>
        {summary.next_change}
      </span>
      {gain.mid !== '' && (
        <span
          class="gain num"
          title={`Predicted reduction of the step time${gain.band === '' ? '' : `, ${gain.band}`}`}
        >
          {gain.mid}
        </span>
      )}
    </>
  );
}

function BusyRow({trace}: {trace: TraceInfo}): JSX.Element {
  const progress = trace.progress;
  return (
    <div class="trace-row trace-row-busy" role="row">
      <VerdictCell
        trace={trace}
        letter="…"
        cause="import"
        text={trace.state === 'receiving' ? 'Receiving' : 'Importing'}
      />
      <span class="cell-progress" role="cell">
        <ProgressLine
          done={progress?.done_bytes ?? 0}
          total={progress?.total_bytes ?? 0}
          rate={progress?.bytes_per_s ?? 0}
          etaS={progress?.eta_s}
          label={`Importing ${trace.name}`}
        />
      </span>
      <RowEnd trace={trace} />
    </div>
  );
}

function FailedRow({trace}: {trace: TraceInfo}): JSX.Element {
  return (
    <div class="trace-row trace-row-failed" role="row">
      <VerdictCell
        trace={trace}
        letter="!"
        cause="failed"
        text={trace.error?.fault === 'host' ? 'Not imported' : 'Could not be read'}
        isError
      />
      <span class="cell-reason" role="cell">
        {sentence(trace.error?.message || 'No reason was given.')} <RetryButton trace={trace} />
      </span>
      <RowEnd trace={trace} />
    </div>
  );
}
