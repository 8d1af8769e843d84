// Rows of the list: a trace in each of its states, and a run with its ranks. One line each.
import {signal} from '@preact/signals';
import type {ComponentChildren, JSX} from 'preact';
import type {TraceInfo, TraceSummary} from '../api/types';
import {
  formatCount,
  formatDuration,
  formatFromTo,
  formatGain,
  formatNumber,
  formatPct,
  formatWhen,
  rateUnit,
  sentence,
  unbroken,
} from '../base/format';
import {recordedAt} from '../model/list/list_order';
import {describeDevices, loopUnit} from '../model/list_rows';
import {comparisonOf, describeMembers, runName, runs, summarizeRun} from '../model/runs';
import {isUnderWay} from '../model/traces';
import {DEFAULT_VIEW, listGroup} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {IconChevron, IconNote, IconPencil, IconTrash} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {ProgressLine} from '../ui/progress_line';
import {later} from './later';
import {RetryButton} from './retry_button';
import {Sparkline} from './sparkline';

/** Traces to delete together, and what they are called. */
export const toDelete = signal<
  {readonly name: string; readonly traces: readonly TraceInfo[]} | undefined
>(undefined);
/** The trace whose labels are edited. */
export const edited = signal<string | undefined>(undefined);
/** Runs whose ranks are shown. */
const openRuns = signal<ReadonlySet<string>>(new Set());
/** Ids of the traces that are selected. */
export const picked = signal<readonly string[]>([]);

const LabelEditor = later('the labels', pages => pages.LabelEditor, true);

export function setPicked(ids: readonly string[], isPicked: boolean): void {
  const rest = picked.value.filter(id => !ids.includes(id));
  picked.value = isPicked ? [...rest, ...ids] : rest;
}

export function TraceRow({trace}: {trace: TraceInfo}): JSX.Element {
  return (
    <>
      {trace.state === 'failed' ? (
        <FailedRow trace={trace} />
      ) : isUnderWay(trace) ? (
        <BusyRow trace={trace} />
      ) : (
        <ReadyRow trace={trace} />
      )}
      {edited.value === trace.id && <LabelEditor key={trace.id} trace={trace} />}
    </>
  );
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
  const text =
    ready.length > 0
      ? sentence(summary.text)
      : waiting > 0
        ? 'Importing'
        : 'None of the traces could be read';
  return (
    <div class="trace-row run-row" role="row" data-testid="run">
      <Pick ids={members.map(trace => trace.id)} label={`Select ${name} with its ${what}`} />
      <span class="cell-name" role="cell">
        <Chip
          topic={ready.length > 0 ? topicOf(summary.cause, summary.letter) : topicOf('import', '…')}
        />
        <ViewLink
          class="row-link ellipsis"
          title={name}
          view={{...DEFAULT_VIEW, page: 'run', runId: run}}
        >
          {name}
        </ViewLink>
        <button
          type="button"
          class="tag run-toggle"
          aria-expanded={isOpen}
          title={isOpen ? 'Hide the traces' : 'Show the traces'}
          onClick={props.toggle}
        >
          <IconChevron /> {what}
        </button>
        <Tags traces={members} />
        {waiting > 0 && <span class="tag">{formatCount(waiting)} importing</span>}
      </span>
      <Verdict text={text} />
      <span class="cell-spark" role="cell">
        {ready[0] && <Sparkline trace={ready[0]} />}
      </span>
      <span class="cell-num cell-step num" role="cell" title="median rank">
        {summary.stepNs === undefined ? (
          <Dash title="no training steps found, or too few" />
        ) : (
          <>
            {formatDuration(summary.stepNs)}
            <span class="unit step-unit">/step</span>
          </>
        )}
      </span>
      <span class="cell-num cell-throughput num" role="cell" title="sum of all ranks">
        {summary.throughput === undefined ? (
          <Dash title="samples were not counted on all ranks" />
        ) : (
          <Rate value={summary.throughput} unit={summary.throughputUnit} />
        )}
      </span>
      <Share percent={summary.notComputingPct} />
      <Change
        text={finding === undefined ? undefined : finding.brief || finding.change}
        full={finding?.change}
        stepNs={summary.stepNs}
        gain={[finding?.gain_pct?.mid, finding?.gain_pct?.low, finding?.gain_pct?.high]}
        none="see the ranks"
      />
      <Gpus traces={ready} />
      <Dates trace={members[0]} />
      <Actions>
        <DeleteButton
          label={`Delete ${name} with its ${what}`}
          title="Delete all traces of the run"
          onClick={() => (toDelete.value = {name, traces: members})}
        />
      </Actions>
    </div>
  );
}

function Pick({ids, label}: {ids: readonly string[]; label: string}): JSX.Element {
  const count = ids.filter(id => picked.value.includes(id)).length;
  return (
    <span class="cell-pick" role="cell">
      <input
        type="checkbox"
        class="row-pick"
        aria-label={label}
        checked={count > 0 && count === ids.length}
        indeterminate={count > 0 && count < ids.length}
        onChange={event => setPicked(ids, event.currentTarget.checked)}
      />
    </span>
  );
}

/** What people said of it, and what is special about it. */
function Tags({traces}: {traces: readonly TraceInfo[]}): JSX.Element {
  const first = traces[0];
  const own = [...new Set(traces.flatMap(trace => trace.tags))];
  const notes = traces.map(trace => trace.notes).find(text => text !== '');
  return (
    <>
      {notes !== undefined && (
        <span class="row-note" title={notes} role="img" aria-label={`Notes: ${notes}`}>
          <IconNote />
        </span>
      )}
      {first !== undefined && first.project !== '' && listGroup.value !== 'project' && (
        <ViewLink
          class="tag"
          title={`project ${first.project}: its runs over time`}
          view={{...DEFAULT_VIEW, page: 'project', projectName: first.project}}
        >
          {first.project}
        </ViewLink>
      )}
      {own.map(tag => (
        <span key={tag} class="tag tag-own">
          {tag}
        </span>
      ))}
      {traces.some(trace => trace.simulated) && (
        <span class="tag tag-simulated" title="simulated">
          sim
        </span>
      )}
    </>
  );
}

function NameCell(props: {trace: TraceInfo; letter: string; cause: string}): JSX.Element {
  const {trace} = props;
  const name = trace.name || 'unnamed trace';
  return (
    <>
      <Pick ids={[trace.id]} label={`Select ${name}`} />
      <span class="cell-name" role="cell">
        <Chip topic={topicOf(props.cause, props.letter)} />
        <ViewLink
          class="row-link ellipsis"
          title={[name, trace.file_name && `uploaded as ${trace.file_name}`, trace.format]
            .filter(Boolean)
            .join(', ')}
          view={{...DEFAULT_VIEW, page: 'overview', traceId: trace.id}}
        >
          {name}
        </ViewLink>
        {trace.rank !== undefined && <span class="tag tag-rank">rank {trace.rank}</span>}
        <Tags traces={[trace]} />
      </span>
    </>
  );
}

function Verdict({text, isError = false}: {text: string; isError?: boolean}): JSX.Element {
  return (
    <span class={`cell-verdict ${isError ? 'error-text' : ''}`} role="cell" title={text}>
      {text}
    </span>
  );
}

function Dates({trace}: {trace: TraceInfo | undefined}): JSX.Element {
  const now = new Date();
  const recorded = trace && recordedAt(trace, now);
  return (
    <>
      <span class="cell-when cell-recorded num" role="cell" title={recorded?.toLocaleString()}>
        {recorded ? (
          formatWhen(recorded.toISOString(), now)
        ) : (
          <Dash title="the recording does not say when" />
        )}
      </span>
      <span class="cell-when cell-added num" role="cell" title={trace?.created_at}>
        {formatWhen(trace?.created_at ?? '', now)}
      </span>
    </>
  );
}

function Actions({children}: {children: ComponentChildren}): JSX.Element {
  return (
    <span class="cell-actions" role="cell">
      {children}
    </span>
  );
}

function DeleteButton(props: {label: string; title: string; onClick: () => void}): JSX.Element {
  return (
    <button
      type="button"
      class="button button-quiet button-icon"
      aria-label={props.label}
      title={props.title}
      onClick={props.onClick}
    >
      <IconTrash />
    </button>
  );
}

function RowEnd({trace}: {trace: TraceInfo}): JSX.Element {
  return (
    <>
      <Dates trace={trace} />
      <Actions>
        <button
          type="button"
          class="button button-quiet button-icon"
          aria-label={`Edit ${trace.name}`}
          title="Name, project, tags and notes"
          onClick={() => (edited.value = edited.value === trace.id ? undefined : trace.id)}
        >
          <IconPencil />
        </button>
        <DeleteButton
          label={`Delete ${trace.name}`}
          title="Delete"
          onClick={() => (toDelete.value = {name: trace.name, traces: [trace]})}
        />
      </Actions>
    </>
  );
}

function ReadyRow({trace}: {trace: TraceInfo}): JSX.Element {
  const summary = trace.summary;
  const unit = loopUnit(summary);
  return (
    <div class="trace-row" role="row">
      <NameCell trace={trace} letter={summary?.letter ?? '~'} cause={summary?.cause ?? 'unknown'} />
      <Verdict text={unbroken(sentence(summary?.text || 'no verdict'))} />
      <span class="cell-spark" role="cell">
        {unit !== undefined && <Sparkline trace={trace} />}
      </span>
      <span class="cell-num cell-step num" role="cell">
        {summary?.step_mean_ns === undefined || unit === undefined ? (
          <Dash title="no steps or batches found, or too few" />
        ) : (
          <>
            {formatDuration(summary.step_mean_ns)}
            <span class={unit === 'step' ? 'unit step-unit' : 'unit'}>/{unit}</span>
          </>
        )}
      </span>
      <span class="cell-num cell-throughput num" role="cell">
        {summary?.throughput_per_s === undefined || unit === undefined ? (
          <Dash title="unknown without steps" />
        ) : (
          <Rate value={summary.throughput_per_s} unit={summary.throughput_unit} />
        )}
      </span>
      <Share percent={summary?.not_computing_pct} />
      <NextChange summary={summary} />
      <Gpus traces={[trace]} />
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

function Rate({value, unit}: {value: number; unit: string}): JSX.Element {
  return (
    <>
      {formatNumber(value)} <span class="unit">{rateUnit(unit)}</span>
    </>
  );
}

function Share({percent}: {percent: number | undefined}): JSX.Element {
  return (
    <span class="cell-num cell-share num" role="cell">
      {percent === undefined ? (
        <Dash title="not recorded" />
      ) : (
        <>
          {formatPct(percent)}
          <span class="cell-share-bar" aria-hidden="true">
            <span style={{width: `${Math.min(100, Math.max(0, percent))}%`}} />
          </span>
        </>
      )}
    </span>
  );
}

function Change(props: {
  text: string | undefined;
  full: string | undefined;
  stepNs: number | undefined;
  gain: readonly [number | undefined, number | undefined, number | undefined];
  none: string;
}): JSX.Element {
  const gain = formatGain(...props.gain);
  return (
    <span class="cell-change" role="cell">
      {props.text ? (
        <>
          {gain.mid !== '' && (
            <span
              class="gain num"
              title={['Predicted', gain.band, formatFromTo(props.stepNs, props.gain[0])]
                .filter(Boolean)
                .join(', ')}
            >
              {gain.mid}
            </span>
          )}
          <span class="ellipsis" title={props.full}>
            {props.text}
          </span>
        </>
      ) : (
        <Dash title={props.none} />
      )}
    </span>
  );
}

function NextChange({summary}: {summary: TraceSummary | undefined}): JSX.Element {
  return (
    <Change
      text={summary?.next_change}
      full={summary?.next_change}
      stepNs={loopUnit(summary) === undefined ? undefined : summary?.step_mean_ns}
      gain={[summary?.gain_mid_pct, summary?.gain_low_pct, summary?.gain_high_pct]}
      none="no change suggested"
    />
  );
}

function Gpus({traces}: {traces: readonly TraceInfo[]}): JSX.Element {
  const names = traces.flatMap(trace => trace.device_names);
  const count = traces.reduce((sum, trace) => sum + trace.device_count, 0);
  return (
    <span class="cell-gpus ellipsis" role="cell" title={names.join(', ')}>
      {traces.length > 0 && describeDevices(names, count)}
    </span>
  );
}

function BusyRow({trace}: {trace: TraceInfo}): JSX.Element {
  const progress = trace.progress;
  return (
    <div class="trace-row trace-row-busy" role="row">
      <NameCell trace={trace} letter="…" cause="import" />
      <span class="cell-progress" role="cell">
        <ProgressLine
          done={progress?.done_bytes ?? 0}
          total={progress?.total_bytes ?? 0}
          rate={progress?.bytes_per_s ?? 0}
          etaS={progress?.eta_s}
          label={`${trace.state === 'receiving' ? 'Receiving' : 'Importing'} ${trace.name}`}
        />
      </span>
      <RowEnd trace={trace} />
    </div>
  );
}

function FailedRow({trace}: {trace: TraceInfo}): JSX.Element {
  const reason = `${trace.error?.fault === 'host' ? 'Not imported' : 'Could not be read'}: ${
    trace.error?.message || 'no reason was given'
  }`;
  return (
    <div class="trace-row trace-row-failed" role="row">
      <NameCell trace={trace} letter="!" cause="failed" />
      <span class="cell-reason" role="cell" title={reason}>
        <span class="ellipsis error-text">{reason}</span> <RetryButton trace={trace} />
      </span>
      <RowEnd trace={trace} />
    </div>
  );
}
