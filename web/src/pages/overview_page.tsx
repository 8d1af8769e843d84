// The verdict: what limits the run, what to change, what was checked and is fine.
import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';
import {getFlame} from '../api/client';
import type {Analysis, TraceInfo, TracksInfo} from '../api/types';
import {
  exactNs,
  formatBytes,
  formatCount,
  exactAmount,
  formatAmount,
  formatDuration,
  formatNumber,
  formatPct,
  plural,
  rateUnit,
  sentence,
  unbroken,
} from '../base/format';
import {word} from '../base/vocabulary';
import {buildTree, layoutTree, SUMMED, tableOf} from '../model/flame_tree';
import {loopUnit} from '../model/list_rows';
import {groupFindings, hasNeeds, notComputingPct, unitOf} from '../model/overview';
import {traces} from '../model/traces';
import {DEFAULT_VIEW} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Explain} from '../ui/explain';
import {IconCheck, IconWarning} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {latest, useResource, type Resource} from '../ui/resource';
import {StandIn} from '../ui/states';
import {later} from './later';
import {DevicePanel, KindsPanel} from './device_panel';
import {FindingCard, FurtherFindings} from './finding_card';
import {Ladder} from './ladder';
import {NeedsPanel} from './needs_panel';
import {PhasesPanel} from './phases_panel';
import {ImportPanel, SettingsPanel} from './settings_panel';

const OverviewCharts = later('the charts', pages => pages.OverviewCharts, true);

export function OverviewPage(props: {
  trace: TraceInfo;
  analysis: Resource<Analysis>;
  tracks: TracksInfo | undefined;
}): JSX.Element {
  const {trace, analysis} = props;
  const value = latest(analysis);
  return (
    <main class="page page-overview">
      <StandIn keeps of={analysis} what="the verdict" title="The analysis cannot be shown" />
      {value && <Verdict trace={trace} analysis={value} tracks={props.tracks} />}
    </main>
  );
}

function Verdict(props: {
  trace: TraceInfo;
  analysis: Analysis;
  tracks: TracksInfo | undefined;
}): JSX.Element {
  const {trace, analysis} = props;
  const groups = groupFindings(analysis.findings);
  const verdict = analysis.verdict;
  // nothing by the step and nothing found: where the time went is the main thing
  const isOfHost = analysis.devices.length === 0;
  const isLog = analysis.trace.timeline && analysis.trace.slice_count === 0;
  const isPoor = groups.first === undefined && !hasNeeds(analysis);
  return (
    <>
      <section class="hero">
        <Chip topic={topicOf(verdict.cause, trace.summary?.letter)} large />
        <div>
          <h1 data-testid="verdict">{unbroken(sentence(verdict.text)) || 'No verdict'}</h1>
          {verdict.detail !== '' && <p class="hero-detail">{unbroken(sentence(verdict.detail))}</p>}
        </div>
      </section>
      <Headline trace={trace} analysis={analysis} />
      <Caveats texts={analysis.caveats} />
      {trace.notes !== '' && <p class="trace-notes">{trace.notes}</p>}
      <Ladder analysis={analysis} />
      <div class="overview-columns">
        <div class="overview-main">
          {isOfHost && !groups.first && isLog && <CountersOnly />}
          {isOfHost && !groups.first && !isLog && (
            <NoDevice hasTimeline={analysis.trace.timeline} />
          )}
          {isOfHost && !groups.first && <HostTime trace={trace} />}
          {isPoor && <DevicePanel trace={trace} analysis={analysis} />}
          <NeedsPanel analysis={analysis} />
          {!isPoor && !groups.first && <DevicePanel trace={trace} analysis={analysis} />}
          {groups.first && (
            <FindingCard
              trace={trace}
              finding={groups.first}
              repeatsVerdict={sentence(groups.first.title) === sentence(verdict.text)}
            />
          )}
          <FurtherFindings
            unit={unitOf(analysis)}
            trace={trace}
            findings={groups.further}
            smaller={groups.smaller}
          />
          <OverviewCharts trace={trace} analysis={analysis} tracks={props.tracks} />
          <Checked trace={trace} analysis={analysis} />
        </div>
        <div class="overview-side">
          {groups.first && <DevicePanel trace={trace} analysis={analysis} />}
          {isOfHost && groups.first && <HostTime trace={trace} />}
          <KindsPanel trace={trace} analysis={analysis} />
          <PhasesPanel analysis={analysis} />
          <SettingsPanel analysis={analysis} />
          <ImportPanel trace={trace} />
        </div>
      </div>
    </>
  );
}

/** A log: values over time, and nothing that ran. */
function CountersOnly(): JSX.Element {
  return (
    <section class="panel no-device">
      <h2>Counters only</h2>
      <p>
        All are in the <ViewLink view={{page: 'timeline'}}>timeline</ViewLink>. To see them beside
        what ran, drop this file on the trace of the same job.
      </p>
    </section>
  );
}

/** A trace of the host alone: what can be seen in it all the same. */
function NoDevice({hasTimeline}: {hasTimeline: boolean}): JSX.Element {
  return (
    <section class="panel no-device">
      <h2>Host-only trace</h2>
      <p>
        It has no GPU operations, so there are no gaps to explain. See what the host did in the{' '}
        {hasTimeline && (
          <>
            <ViewLink view={{page: 'timeline'}}>timeline</ViewLink> and in the{' '}
          </>
        )}
        <ViewLink view={{page: 'flame', flameMetric: 'cpu'}}>
          flame graph of the host’s threads
        </ViewLink>
        .
      </p>
    </section>
  );
}

const HOST_ROWS = 10;

/** What the host's threads were in for longest, without what that calls. */
function HostTime({trace}: {trace: TraceInfo}): JSX.Element | null {
  const flame = useResource(`${trace.id}/${trace.generation}`, signal =>
    getFlame(trace.id, {metric: 'cpu', by: 'op'}, signal),
  );
  const reply = flame.kind === 'ready' ? flame.value : undefined;
  const rows = useMemo(() => {
    if (!reply) return [];
    const tree = buildTree(reply.nodes);
    return [...tableOf(tree, layoutTree(tree, 0, []))]
      .sort((a, b) => b.selfNs - a.selfNs)
      .filter(row => row.selfNs > 0 && row.name !== SUMMED)
      .slice(0, HOST_ROWS);
  }, [reply]);
  const largest = rows[0]?.selfNs ?? 0;
  if (largest <= 0) return null;
  return (
    <section class="panel" aria-labelledby="host-time-title">
      <header class="panel-head">
        <h2 id="host-time-title">Where the host’s time went</h2>
        <ViewLink
          class="panel-aside"
          view={{page: 'flame', flameMetric: 'cpu', flameForm: 'table'}}
        >
          full table
        </ViewLink>
      </header>
      <table class="legend kinds host-time">
        <tbody>
          {rows.map(row => (
            <tr key={row.name}>
              <th scope="row" title={row.name}>
                <bdi class="ellipsis">{row.name}</bdi>
              </th>
              <td class="kind-bar" aria-hidden="true">
                <span style={{width: `${(100 * row.selfNs) / largest}%`}} />
              </td>
              <td class="num">
                <Explain
                  title={`Time in ${row.name.slice(0, 60)}`}
                  text="Self time, summed over all threads."
                  exact={reply && exactAmount(row.selfNs, reply)}
                >
                  {reply && formatAmount(row.selfNs, reply)}
                </Explain>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** What the numbers above are not good for. */
function Caveats({texts}: {texts: readonly string[]}): JSX.Element | null {
  if (texts.length === 0) return null;
  return (
    <ul class="caveats" aria-label="Limits of this trace">
      {texts.map(text => (
        <li key={text}>
          <IconWarning /> {sentence(text)}
        </li>
      ))}
    </ul>
  );
}

function Headline({trace, analysis}: {trace: TraceInfo; analysis: Analysis}): JSX.Element | null {
  const {throughput, steps, devices, partition} = analysis;
  if (steps.mean_ns === undefined && devices.length === 0) return null;
  const unit = unitOf(analysis);
  const counted = throughput.unit === 'steps' ? plural(2, unit).slice(2) : throughput.unit;
  const notComputing = notComputingPct(analysis);
  const of = partition?.per === 'recording' ? 'the recording' : `the ${unit}`;
  return (
    <section class="headline" aria-label="The run in numbers">
      {throughput.per_s !== undefined && loopUnit(trace.summary) !== undefined && (
        <div class="stat">
          <Explain
            class="stat-value"
            title="Throughput"
            text={`${sentence(counted)} per second, from the mean ${unit}.`}
            exact={`${throughput.per_s} ${rateUnit(counted)}`}
          >
            {formatNumber(throughput.per_s)}
          </Explain>
          <span class="stat-label">
            {rateUnit(counted)}
            {throughput.batch_size !== undefined && `, batch ${formatCount(throughput.batch_size)}`}
            {throughput.padding_pct !== undefined &&
              `, ${formatPct(throughput.padding_pct)} of it padding`}
          </span>
        </div>
      )}
      {steps.mean_ns !== undefined && (
        <div class="stat">
          <Explain
            class="stat-value"
            title={`Mean ${unit}`}
            text={`Mean of ${plural(steps.kept_count, `kept ${unit}`)}${
              steps.count > steps.kept_count
                ? `; ${formatCount(steps.count - steps.kept_count)} of ${formatCount(steps.count)} left out (warm-up, truncated, of another kind, or of unknown length)`
                : ''
            }${
              steps.uncertain_pct === undefined
                ? ''
                : `; known to ±${formatPct(steps.uncertain_pct)} in 95 of 100 cases`
            }. Steps found by: ${word('step_methods', steps.method).label}.`}
            exact={exactNs(steps.mean_ns)}
          >
            {formatDuration(steps.mean_ns)}
          </Explain>
          <span class="stat-label">
            per {unit}
            {steps.uncertain_pct !== undefined && ` ±${formatPct(steps.uncertain_pct)}`},{' '}
            {plural(steps.kept_count, unit)}
            {steps.median_ns !== undefined &&
              steps.p95_ns !== undefined &&
              steps.kept_count > 1 && (
                <span class="stat-more">
                  {' · '}
                  median {formatDuration(steps.median_ns)}, p95 {formatDuration(steps.p95_ns)}
                </span>
              )}
          </span>
        </div>
      )}
      {notComputing !== undefined && (
        <div class="stat">
          <Explain
            class="stat-value"
            title="Not computing"
            text={`Share of ${of} in which no compute kernel runs: idle time, exposed copies and exposed communication.`}
            exact={`${notComputing} %`}
          >
            {formatPct(notComputing)}
          </Explain>
          <span class="stat-label">
            of {of} {devices.length > 1 ? `GPU ${partition?.device ?? 0}` : 'the GPU'} does not
            compute
          </span>
        </div>
      )}
      <Compute analysis={analysis} />
      <Memory analysis={analysis} />
      <PythonLines analysis={analysis} />
      {steps.mean_ns === undefined && (
        <div class="stat">
          <span class="stat-value stat-none">no steps</span>
          <span class="stat-label">
            were found: mark them with <code>profiler.step()</code>
          </span>
        </div>
      )}
    </section>
  );
}

/** How much of what the GPU can compute is used, and how much of its time nothing is known of. */
function Compute({analysis}: {analysis: Analysis}): JSX.Element | null {
  const {efficiency} = analysis;
  const unknown = analysis.kernels?.unknown_pct;
  if (efficiency === undefined || efficiency.text === '') return null;
  if (efficiency.mfu_pct === undefined)
    return unknown === undefined || unknown < 1 ? null : (
      <div class="stat" data-testid="compute">
        <Explain
          class="stat-value"
          title="Unknown kernels"
          text={`Share of the kernel time in kernels whose names say nothing. ${sentence(efficiency.text)}.`}
          exact={`${unknown} %`}
        >
          {formatPct(unknown)}
        </Explain>
        <span class="stat-label">of the kernel time is in unknown kernels</span>
      </div>
    );
  return (
    <div class="stat" data-testid="compute">
      <Explain
        class="stat-value"
        title="Model FLOP/s used"
        text={`${sentence(efficiency.text)}.${
          efficiency.source === ''
            ? ''
            : ` Counted from the shapes of GEMMs, convolutions and attention. Peak: ${efficiency.source}.`
        }`}
        exact={`${efficiency.mfu_pct} %`}
      >
        {formatPct(efficiency.mfu_pct)}
      </Explain>
      <span class="stat-label">
        of the GPU’s peak FLOP/s
        {unknown !== undefined && unknown >= 1 && (
          <span class="stat-more">{` · unknown kernels: ${formatPct(unknown)} of the time`}</span>
        )}
      </span>
    </div>
  );
}

/** The line of Python that the host was found in most. */
function PythonLines({analysis}: {analysis: Analysis}): JSX.Element | null {
  const {python_samples: python} = analysis;
  const first = python?.lines[0];
  if (python === undefined || first === undefined || python.text === '') return null;
  const isIdle = python.idle_samples > 0 && first.idle_samples > 0;
  const [part, whole] = isIdle
    ? [first.idle_samples, python.idle_samples]
    : [first.samples, python.samples];
  return (
    <div class="stat" data-testid="python-lines">
      <Explain
        class="stat-value"
        title="Python, sampled"
        text={`${sentence(python.text)}. The stack was sampled ${python.hz} times a second while a window was recorded: a sample stands for ${1000 / python.hz} ms.`}
        exact={python.lines
          .map(
            line => `${line.function} (${line.place}) ${isIdle ? line.idle_samples : line.samples}`,
          )
          .join(', ')}
      >
        {formatPct((100 * part) / whole)}
      </Explain>
      <span class="stat-label">
        {isIdle ? 'of the GPU’s idle time the host is in ' : 'of the time the host is in '}
        {`${first.function} `}
        <span class="stat-more">{first.place}</span>
      </span>
    </div>
  );
}

/** The most memory that tensors took, and what held it. */
function Memory({analysis}: {analysis: Analysis}): JSX.Element | null {
  const {memory} = analysis;
  if (memory === undefined) return null;
  const held = memory.held.map(each => `${formatBytes(each.bytes)} ${each.name}`).join(', ');
  const first = memory.held[0];
  return (
    <div class="stat" data-testid="memory">
      <Explain
        class="stat-value"
        title="Peak GPU memory"
        text={`${
          memory.is_relative
            ? 'Bytes allocated since the recording began: only changes were recorded.'
            : 'Bytes that the allocator had given to tensors.'
        }${memory.peak_in === '' ? '' : ` Reached in ${memory.peak_in}.`}${
          held === '' ? '' : ` Held by: ${held}.`
        }${
          memory.reserved_bytes === undefined
            ? ''
            : ` The allocator held ${formatBytes(memory.reserved_bytes)}.`
        }`}
        exact={`${memory.peak_bytes} bytes, ${formatDuration(memory.peak_ns)} after the start`}
      >
        {`${memory.is_relative ? '+' : ''}${formatBytes(memory.peak_bytes)}`}
      </Explain>
      <span class="stat-label">
        {memory.is_relative ? 'at the peak, since the start' : 'of GPU memory at the peak'}
        {memory.device_bytes !== undefined && !memory.is_relative && (
          <span class="stat-more">{` · of ${formatBytes(memory.device_bytes)}`}</span>
        )}
        {first !== undefined && (
          <span class="stat-more">{` · ${formatBytes(first.bytes)} ${first.name}`}</span>
        )}
      </span>
    </div>
  );
}

function Checked({trace, analysis}: {trace: TraceInfo; analysis: Analysis}): JSX.Element | null {
  const {checked_fine: fine} = analysis;
  // one trace misses the other ranks; the run may have them
  const run = traces.value.filter(t => t.run === trace.run).length > 1 ? trace.run : undefined;
  const others = word('missing', 'ranks').label;
  const missing = analysis.not_recorded.filter(text => run === undefined || text !== others);
  if (fine.length + missing.length === 0) return null;
  return (
    <section class="checked">
      {fine.length > 0 && (
        <div>
          <h2>Checked and fine</h2>
          <ul class="checks">
            {fine.map(text => (
              <li key={text}>
                <IconCheck /> {text}
              </li>
            ))}
          </ul>
        </div>
      )}
      {run !== undefined && (
        <div>
          <h2>What one rank cannot show</h2>
          <p class="muted">
            From one rank, a late peer and a slow network look the same:{' '}
            <ViewLink view={{...DEFAULT_VIEW, page: 'run', runId: run}}>compare the ranks</ViewLink>
            .
          </p>
        </div>
      )}
      <Notes title="Not recorded" texts={missing} />
    </section>
  );
}

function Notes({title, texts}: {title: string; texts: readonly string[]}): JSX.Element | null {
  if (texts.length === 0) return null;
  return (
    <div>
      <h2>{title}</h2>
      <ul class="notes">
        {texts.map(text => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}
