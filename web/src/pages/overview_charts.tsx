// The recording over time, below the verdict: step times by what they waited for, idle time,
// memory, and what more workers would do.
import type {JSX} from 'preact';
import {getCounter, getSteps} from '../api/client';
import type {Analysis, StepPoints, TraceInfo, TrackInfo, TracksInfo} from '../api/types';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatPct,
  plural,
} from '../base/format';
import {ns} from '../base/units';
import {
  idlePct,
  idleShares,
  longPoints,
  chartedTracks,
  memoryUnit,
  seenCauses,
  stepBars,
  workersChart,
  type Layer,
} from '../model/overview_charts';
import {phaseMarks} from '../model/phases';
import {show} from '../model/view_state';
import {AXIS_PX, CauseLegend, ChartPanel, StackedBars, useWidth} from '../ui/chart_frame';
import {ViewLink} from '../ui/link';
import {useResource} from '../ui/resource';
import {unitOf} from '../model/overview';

const POINTS = 240;
const HEIGHT = 120;
const LOW_HEIGHT = 72;
const NAMED_MAX = 3;

export function OverviewCharts(props: {
  trace: TraceInfo;
  analysis: Analysis;
  tracks: TracksInfo | undefined;
}): JSX.Element | null {
  const {trace, analysis} = props;
  const device = analysis.partition?.device ?? undefined;
  const reply = useResource(`${trace.id}/${trace.generation}/${device ?? ''}`, signal =>
    getSteps(
      trace.id,
      {points: POINTS, waiting: 'yes', ...(device === undefined ? {} : {device})},
      signal,
    ),
  );
  const points = reply.kind === 'ready' ? reply.value : undefined;
  if (!points) return null;
  return (
    <>
      <StepChart analysis={analysis} points={points} />
      <IdleChart trace={trace} analysis={analysis} points={points} />
      {chartedTracks(props.tracks?.tracks ?? [], trace.slice_count === 0).map(track => (
        <CounterChart key={track.index} trace={trace} track={track} />
      ))}
      <WorkersChart analysis={analysis} />
    </>
  );
}

const layersOf = (layers: readonly Layer[]) =>
  layers.map(layer => ({class: `fill-${layer.cause}`, values: layer.values}));

/** Step times, stacked by what the device waited for; a press shows the step in the timeline. */
function StepChart(props: {analysis: Analysis; points: StepPoints}): JSX.Element | null {
  const {analysis, points} = props;
  const box = useWidth();
  const {width} = box;
  if (points.count < 2) return null;
  const bars = stepBars(points);
  const unit = unitOf(analysis);
  const median = analysis.steps.median_ns;
  const long = longPoints(bars, median).slice(0, NAMED_MAX);
  const count = bars.totalNs.length;
  const waits = bars.layers;
  const work = bars.totalNs.map(
    (total, i) => total - waits.reduce((sum, layer) => sum + (layer.values[i] ?? 0), 0),
  );
  const room = (width - AXIS_PX) / count;
  const open = (i: number): void => {
    const start = bars.startNs[i] ?? 0;
    const length = (bars.totalNs[i] ?? 0) * bars.per;
    show({page: 'timeline', window: {t0: ns(start), t1: ns(start + Math.max(1, length))}});
  };
  return (
    <ChartPanel
      id="step-chart"
      title={unit === 'step' ? 'Step time' : `Time per ${unit}`}
      aside={
        <>
          {plural(points.count, unit)}
          {bars.per > 1 && `, ${formatCount(bars.per)} a bar`}
        </>
      }
      box={box}
      plot={{height: HEIGHT, above: 6, below: 8, top: bars.topNs, format: formatDuration}}
      label={`Time of ${plural(points.count, unit)}${median === undefined ? '' : `, median ${formatDuration(median)}`}, the longest ${formatDuration(bars.topNs)}`}
      onPress={px => {
        const i = Math.floor(px / room);
        if (i >= 0 && i < count) open(i);
      }}
      note={
        <>
          <CauseLegend causes={seenCauses(waits)}>
            <span>
              <i class="chart-key chart-work" /> computing and the rest
            </span>
            {median !== undefined && (
              <span>
                <i class="chart-key chart-key-median" /> median {formatDuration(median)}
              </span>
            )}
          </CauseLegend>
          {long.length > 0 && (
            <p class="chart-note">
              Longest:{' '}
              {long.map((i, index) => (
                <span key={i}>
                  {index > 0 && ', '}
                  <ViewLink
                    view={{
                      page: 'timeline',
                      window: {
                        t0: ns(bars.startNs[i] ?? 0),
                        t1: ns((bars.startNs[i] ?? 0) + (bars.totalNs[i] ?? 0) * bars.per),
                      },
                    }}
                  >
                    {formatDuration(bars.maxNs[i] ?? 0)} at {formatDuration(bars.startNs[i] ?? 0)}
                  </ViewLink>
                </span>
              ))}
            </p>
          )}
        </>
      }
    >
      <StackedBars
        layers={[{class: 'chart-work', values: work}, ...layersOf(waits)]}
        count={count}
        top={bars.topNs}
        width={width}
        height={HEIGHT}
      />
      {bars.per > 1 && (
        <path
          class="chart-max"
          d={`M${bars.maxNs.map((value, i) => `${(AXIS_PX + (i + 0.5) * room).toFixed(1)} ${(HEIGHT - (HEIGHT * value) / bars.topNs).toFixed(1)}`).join('L')}`}
        />
      )}
      {median !== undefined && median <= bars.topNs && (
        <line
          class="chart-median"
          x1={AXIS_PX}
          x2={width}
          y1={HEIGHT - (HEIGHT * median) / bars.topNs}
          y2={HEIGHT - (HEIGHT * median) / bars.topNs}
        />
      )}
    </ChartPanel>
  );
}

/** Share of the time in which the device had nothing to do, over the whole recording. */
function IdleChart(props: {
  trace: TraceInfo;
  analysis: Analysis;
  points: StepPoints;
}): JSX.Element | null {
  const {points, trace} = props;
  const box = useWidth();
  const {width} = box;
  const layers = idleShares(points);
  if (layers.length === 0 || !points.waiting) return null;
  const binNs = points.waiting.bin_ns;
  const count = layers[0]?.values.length ?? 0;
  const marks = phaseMarks(props.analysis);
  const worst = Math.max(
    ...Array.from({length: count}, (_, i) =>
      layers.reduce((sum, layer) => sum + (layer.values[i] ?? 0), 0),
    ),
  );
  const plotWidth = width - AXIS_PX;
  return (
    <ChartPanel
      id="idle-chart"
      title={<>GPU {points.waiting.device} idle, over time</>}
      aside={
        <>
          idle {formatPct(idlePct(points, trace.duration_ns))} of{' '}
          {formatDuration(trace.duration_ns)}
        </>
      }
      box={box}
      plot={{
        height: LOW_HEIGHT,
        above: 6,
        below: 14,
        top: 1,
        format: value => formatPct(100 * value),
        durationNs: trace.duration_ns,
      }}
      label={`Idle time of the GPU over the recording, at most ${formatPct(100 * Math.min(1, worst))}`}
      onPress={px => {
        const i = Math.floor((px * count) / plotWidth);
        if (i < 0 || i >= count) return;
        show({page: 'timeline', window: {t0: ns(i * binNs), t1: ns((i + 1) * binNs)}});
      }}
      note={
        <CauseLegend causes={seenCauses(layers)}>
          {marks.length > 0 && (
            <span>
              <i class="chart-key phase-key" />{' '}
              {[...new Set(marks.map(mark => mark.label))].join(', ')}
            </span>
          )}
        </CauseLegend>
      }
    >
      <StackedBars
        layers={layersOf(layers)}
        count={count}
        top={1}
        width={width}
        height={LOW_HEIGHT}
      />
      {marks.map(mark => (
        <rect
          key={mark.start}
          class="phase-beside"
          x={AXIS_PX + (plotWidth * mark.start) / 100}
          width={Math.max(1, (plotWidth * mark.percent) / 100)}
          y={LOW_HEIGHT + 5}
          height={6}
        >
          <title>{`${mark.label}: ${formatDuration(mark.durNs)}`}</title>
        </rect>
      ))}
    </ChartPanel>
  );
}

/** A counter, such as the bytes that tensors take, over the recording. */
function CounterChart({trace, track}: {trace: TraceInfo; track: TrackInfo}): JSX.Element | null {
  const box = useWidth();
  const {width} = box;
  const reply = useResource(`${trace.id}/${trace.generation}/${track.index}`, signal =>
    getCounter(
      trace.id,
      track.index,
      {t0: 0, t1: Math.max(1, trace.duration_ns), points: POINTS},
      signal,
    ),
  );
  const samples = reply.kind === 'ready' ? reply.value : undefined;
  const {title, bytes} = memoryUnit(track.name);
  const format = (value: number, digits?: number): string =>
    bytes === undefined ? formatNumber(value) : formatBytes(value * bytes, digits);
  const top = Math.max(0, ...(samples?.max ?? []));
  if (!samples || samples.ts_ns.length < 2 || top <= 0) return null;
  const x = (i: number): number =>
    AXIS_PX + ((width - AXIS_PX) * (samples.ts_ns[i] ?? 0)) / Math.max(1, trace.duration_ns);
  const y = (value: number): number => LOW_HEIGHT - (LOW_HEIGHT * Math.max(0, value)) / top;
  // a value holds until the next one
  const line = `${samples.max.map((value, i) => `H${x(i).toFixed(1)}V${y(value).toFixed(1)}`).join('')}H${width}`;
  const from = `M${x(0).toFixed(1)} `;
  const peak = samples.max.indexOf(top);
  return (
    <ChartPanel
      id={`counter-${track.index}`}
      title={<>{title}, over time</>}
      aside={
        <>
          peak {format(top)} at {formatDuration(samples.ts_ns[peak] ?? 0)}
        </>
      }
      box={box}
      plot={{
        height: LOW_HEIGHT,
        above: 6,
        below: 8,
        top,
        format: value => format(value, 2),
        durationNs: trace.duration_ns,
      }}
      label={`${title} over the recording, at most ${format(top)}`}
    >
      <path class="chart-area" d={`${from}${LOW_HEIGHT}${line}V${LOW_HEIGHT}Z`} />
      <path class="chart-line" d={`${from}${y(samples.max[0] ?? 0)}${line}`} />
    </ChartPanel>
  );
}

/** Step time by the number of workers, with today's and the advised one. */
function WorkersChart({analysis}: {analysis: Analysis}): JSX.Element | null {
  const box = useWidth();
  const {width} = box;
  const chart = workersChart(analysis);
  if (!chart) return null;
  const {points, today, advised} = chart;
  const top = Math.max(...points.map(point => point.slowNs));
  const room = (width - AXIS_PX - 20) / Math.max(1, points.length - 1);
  const x = (workers: number): number => AXIS_PX + 10 + (workers - 1) * room;
  const y = (value: number): number => HEIGHT - (HEIGHT * value) / top;
  const path = (valueOf: (point: (typeof points)[number]) => number): string =>
    points.map(point => `${x(point.workers).toFixed(1)} ${y(valueOf(point)).toFixed(1)}`).join('L');
  const back = [...points]
    .reverse()
    .map(point => `${x(point.workers).toFixed(1)} ${y(point.stepNs).toFixed(1)}`)
    .join('L');
  const marked = [
    {workers: today, label: 'today', class: 'chart-today'},
    ...(advised !== undefined && advised !== today
      ? [{workers: advised, label: 'advised', class: 'chart-advised'}]
      : []),
  ].filter(mark => mark.workers <= points.length);
  return (
    <ChartPanel
      id="workers-chart"
      title="Workers and step time"
      aside="if a batch takes as long as now"
      box={box}
      plot={{height: HEIGHT, above: 10, below: 24, top, format: formatDuration}}
      label={marked
        .map(
          mark =>
            `${mark.label} ${plural(mark.workers, 'worker')}: ${formatDuration(points[mark.workers - 1]?.stepNs ?? 0)}`,
        )
        .join('; ')}
      note={
        <p class="chart-note">
          Beyond{' '}
          {plural(
            points.find(point => point.stepNs <= chart.floorNs)?.workers ?? points.length,
            'worker',
          )}{' '}
          {chart.pins ? 'pinning batches in one thread' : 'the rest of the step'} is the limit:{' '}
          {formatDuration(chart.floorNs)}.
          {chart.hasBand && ' The band assumes batches as slow as the slowest 5 %.'}
        </p>
      }
    >
      <path class="chart-band" d={`M${path(point => point.slowNs)}L${back}Z`} />
      <path class="chart-line" d={`M${path(point => point.stepNs)}`} />
      {marked.map(mark => (
        <g key={mark.label} class={mark.class}>
          <circle cx={x(mark.workers)} cy={y(points[mark.workers - 1]?.stepNs ?? 0)} r="4.5" />
          <text
            x={x(mark.workers) + (mark.workers > points.length / 2 ? 0 : 8)}
            y={y(points[mark.workers - 1]?.stepNs ?? 0) - 8}
            text-anchor={mark.workers > points.length / 2 ? 'middle' : 'start'}
          >
            {mark.label}: {formatDuration(points[mark.workers - 1]?.stepNs ?? 0)}
          </text>
        </g>
      ))}
      <g class="chart-axis">
        {points
          .filter(({workers}) => points.length <= 16 || workers % 4 === 0)
          .map(({workers}) => (
            <text key={workers} x={x(workers)} y={HEIGHT + 16} text-anchor="middle">
              {workers}
            </text>
          ))}
      </g>
    </ChartPanel>
  );
}
