// Where the time of each GPU went: working in gray, waiting in the colors of its causes.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../api/client';
import type {Analysis, DeviceAnalysis, TraceInfo} from '../api/types';
import {causeWord} from '../base/causes';
import {exactNs, formatDuration, formatPct, plural, sentence} from '../base/format';
import {ALL_TIME} from '../model/flame_steps';
import {loadKernels} from '../model/kernel_table';
import {shortDeviceName} from '../model/list_rows';
import {
  kindShares,
  segmentsOf,
  sumOf,
  waitingOutsideNs,
  type Segment,
  type TimeSum,
} from '../model/overview';
import type {ViewState} from '../model/view_state';
import {Chip, patternUrl, topicOf} from '../ui/cause_mark';
import {Explain} from '../ui/explain';
import {IconArrow} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {useResource} from '../ui/resource';
import {StandIn} from '../ui/states';
import {showLongestGap} from './evidence_link';

const DEVICES_SHOWN = 16;
/** A segment narrower than this has no room for its letter. */
const LETTER_MIN_PERCENT = 5;

/** A table with the rows that the text is in; of all time, as what leads there. */
const listOf = (tableName: string, tableFilter: string): Partial<ViewState> => ({
  page: 'kernels',
  flameSteps: ALL_TIME,
  tableName,
  tableFilter,
  tableSort: '',
});

export function DevicePanel(props: {trace: TraceInfo; analysis: Analysis}): JSX.Element | null {
  const {trace, analysis} = props;
  const devices = analysis.devices;
  const main = devices.findIndex(each => each.id === analysis.partition?.device);
  const [chosen, setChosen] = useState(main);
  const device = devices[chosen] ?? devices[0];
  if (!device) return null;
  const sum = sumOf(analysis, device);
  return (
    <section class="panel" aria-labelledby="device-title">
      <header class="panel-head">
        <h2 id="device-title">
          {devices.length > 1 ? 'Where the GPUs’ time went' : 'Where the GPU’s time went'}
        </h2>
        <span class="panel-aside num">{wholeText(sum)}</span>
      </header>
      {devices.slice(0, DEVICES_SHOWN).map((each, index) => (
        <DeviceBar
          key={each.id}
          device={each}
          sum={sumOf(analysis, each)}
          label={devices.length > 1}
          isChosen={devices.length > 1 && each === device}
          onChoose={() => setChosen(index)}
        />
      ))}
      {devices.length > DEVICES_SHOWN && (
        <p class="panel-note">{plural(devices.length - DEVICES_SHOWN, 'more device')} not shown</p>
      )}
      <Legend
        trace={trace}
        sum={sum}
        device={device}
        outsideNs={waitingOutsideNs(analysis, device)}
      />
    </section>
  );
}

/** "176 ms per step", "of 299 ms recorded". */
function wholeText({per, totalNs}: TimeSum): string {
  const whole = formatDuration(totalNs);
  return per === 'recording' ? `of ${whole} recorded` : `${whole} per ${per}`;
}

function DeviceBar(props: {
  device: DeviceAnalysis;
  sum: TimeSum;
  label: boolean;
  isChosen: boolean;
  onChoose: () => void;
}): JSX.Element {
  const {device, sum} = props;
  const segments = segmentsOf(sum);
  const name = device.name === '' ? `GPU ${device.id}` : `GPU ${device.id}, ${device.name}`;
  let at = 0;
  const placed = segments.map(segment => {
    const start = at;
    at += segment.percent;
    return {segment, start};
  });
  const bar = (
    <svg
      class="device-bar"
      height="26"
      role="img"
      aria-label={`${name}, ${wholeText(sum)}: ${segments.map(s => `${s.label} ${formatPct(s.percent)}`).join(', ')}`}
    >
      {placed.map(({segment, start}) => (
        <SegmentRect key={segment.key} segment={segment} start={start} />
      ))}
    </svg>
  );
  if (!props.label) return bar;
  return (
    <button
      type="button"
      class={`device-choice ${props.isChosen ? 'device-chosen' : ''}`}
      aria-pressed={props.isChosen}
      title={name}
      onClick={props.onChoose}
    >
      <span class="num">{device.id}</span>
      {bar}
    </button>
  );
}

function SegmentRect({segment, start}: {segment: Segment; start: number}): JSX.Element {
  const x = `${start}%`;
  const width = `${segment.percent}%`;
  const title = `${segment.label} ${formatPct(segment.percent)}, ${formatDuration(segment.valueNs)}`;
  if (!segment.cause)
    return (
      <rect class={`busy-${segment.key}`} x={x} width={width} height="26">
        <title>{title}</title>
      </rect>
    );
  return (
    <g>
      <title>{title}</title>
      <rect class={`fill-${segment.cause}`} x={x} width={width} height="26" />
      <rect x={x} width={width} height="26" fill={patternUrl(segment.cause)} />
      {segment.percent >= LETTER_MIN_PERCENT && (
        <text
          class={`bar-letter on-text-${segment.cause}`}
          x={`${start + segment.percent / 2}%`}
          y="18"
          text-anchor="middle"
        >
          {causeWord(segment.cause).letter}
        </text>
      )}
    </g>
  );
}

function Legend(props: {
  trace: TraceInfo;
  sum: TimeSum;
  device: DeviceAnalysis;
  /** Waiting that is no gap of the timeline. */
  outsideNs: number | undefined;
}): JSX.Element {
  const {trace, sum, device, outsideNs} = props;
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const of =
    sum.per === 'recording'
      ? 'time between the device’s first and last operation'
      : `mean ${sum.per} on GPU ${device.id}`;
  const open = async (cause: string): Promise<void> => {
    try {
      const found = await showLongestGap(trace, device.id, cause);
      setProblem(found ? undefined : 'No gap of 10 µs or more has this cause.');
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  return (
    <>
      <table class="legend">
        <thead class="off-screen">
          <tr>
            <th>part</th>
            <th>share</th>
            <th>{sum.per === 'recording' ? 'time' : `time per ${sum.per}`}</th>
            <th>evidence</th>
          </tr>
        </thead>
        <tbody>
          {segmentsOf(sum).map(segment => (
            <tr key={segment.key}>
              <th scope="row">
                <span class="legend-name">
                  {segment.cause ? (
                    <Chip topic={topicOf(segment.cause)} />
                  ) : (
                    <span class={`busy-swatch busy-${segment.key}`} />
                  )}
                  {segment.label}
                </span>
              </th>
              <td class="num legend-share">{formatPct(segment.percent)}</td>
              <td class="num">
                <Explain
                  title={sentence(segment.label)}
                  text={`${segment.definition} ${formatPct(segment.percent)} of the ${of}: ${formatDuration(sum.totalNs)}, which all parts here sum to.`}
                  exact={exactNs(segment.valueNs)}
                  {...(segment.cause && {view: listOf('gaps', segment.cause)})}
                >
                  {formatDuration(segment.valueNs)}
                </Explain>
              </td>
              <td class="legend-go">
                {segment.cause && (
                  <button
                    type="button"
                    class="button button-quiet button-icon"
                    title="Show the longest such gap in the timeline"
                    aria-label={`Show the longest gap in the timeline: ${segment.label}`}
                    onClick={() => void open(segment.key)}
                  >
                    <IconArrow />
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {problem !== undefined && <p class="panel-note">{problem}</p>}
      {outsideNs !== undefined && (
        <p class="panel-note">
          {`${formatDuration(outsideNs)} of the waiting is before the GPU’s first operation or after its last, and no gap in the timeline.`}
        </p>
      )}
      <DeviceFacts device={device} />
    </>
  );
}

function DeviceFacts({device}: {device: DeviceAnalysis}): JSX.Element {
  const gaps = device.gaps;
  return (
    <p class="panel-note device-facts">
      {device.name !== '' && <span title={device.name}>{shortDeviceName(device.name)}</span>}
      {device.busy_pct !== undefined && (
        <Explain
          title="Busy"
          text="Share of the time between its first and its last operation in which anything runs, including copies and waiting collectives. Utilization meters show this; it says little about how well the GPU is used."
          exact={`${device.busy_pct} %`}
        >
          busy {formatPct(device.busy_pct)} from first to last operation
        </Explain>
      )}
      {gaps && gaps.count_10us > 0 && (
        <Explain
          title="Gaps of 10 µs and more"
          text={`${plural(gaps.count_10us, 'gap')}, ${formatDuration(gaps.total_10us_ns)} in total; the longest takes ${formatDuration(gaps.longest_ns)}.`}
          exact={exactNs(gaps.total_10us_ns)}
          view={listOf('gaps', '')}
        >
          {plural(gaps.count_10us, 'gap')}, longest {formatDuration(gaps.longest_ns)}
        </Explain>
      )}
    </p>
  );
}

const KINDS_SHOWN = 8;

export function KindsPanel({
  trace,
  analysis,
}: {
  trace: TraceInfo;
  analysis: Analysis;
}): JSX.Element | null {
  const hasKernels = (analysis.kernels?.count ?? 0) > 0;
  const table = useResource(hasKernels ? `${trace.id}/${trace.generation}` : undefined, () =>
    loadKernels(trace.id, trace.generation),
  );
  if (!hasKernels && analysis.copies.length === 0) return null;
  const kinds =
    !hasKernels || table.kind === 'ready'
      ? kindShares(table.kind === 'ready' ? table.value.rows : [], analysis)
      : [];
  const largest = kinds[0]?.percent ?? 100;
  const allNs = kinds.reduce((sum, kind) => sum + kind.valueNs, 0);
  return (
    <section class="panel" aria-labelledby="kinds-title">
      <header class="panel-head">
        <h2 id="kinds-title">GPU time by kind of work</h2>
        <span class="panel-aside num">
          {kinds.length > 0 && `${formatDuration(allNs)} in total · `}
          <ViewLink view={listOf('kernels', '')}>all kernels</ViewLink>
        </span>
      </header>
      {hasKernels && <StandIn of={table} what="the kernels" />}
      <table class="legend kinds">
        <tbody>
          {kinds.slice(0, KINDS_SHOWN).map(kind => (
            <tr key={kind.label}>
              <th scope="row">
                {kind.key === '' ? (
                  kind.label
                ) : (
                  <ViewLink class="plain-link" view={listOf('kernels', kind.label)}>
                    {kind.label}
                  </ViewLink>
                )}
              </th>
              <td class="kind-bar" aria-hidden="true">
                <span style={{width: `${(100 * kind.percent) / largest}%`}} />
              </td>
              <td class="num legend-share">{formatPct(kind.percent)}</td>
              <td class="num">
                <Explain
                  title={`GPU time: ${kind.label}`}
                  text={`Sum over ${plural(kind.count, 'operation')} on all devices; operations that overlap each count in full.`}
                  exact={exactNs(kind.valueNs)}
                  {...(kind.key !== '' && {view: listOf('kernels', kind.label)})}
                >
                  {formatDuration(kind.valueNs)}
                </Explain>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
