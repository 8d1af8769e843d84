// The step times of two traces over each other.
import type {JSX} from 'preact';
import {getSteps} from '../../api/client';
import type {Compared} from '../../api/types';
import {formatDuration, formatPct, plural} from '../../base/format';
import {histogramsOf, medianOf} from '../../model/run/histogram';
import {AXIS_PX, axisSteps, ChartPanel, useWidth} from '../../ui/chart_frame';
import {useResource} from '../../ui/resource';

const POINTS = 2000;
const HEIGHT = 120;

export function StepHistograms(props: {
  a: Compared;
  b: Compared;
  aId: string;
  bId: string;
}): JSX.Element | null {
  const box = useWidth();
  const {width} = box;
  const both = useResource(`${props.aId}/${props.bId}`, s =>
    Promise.all([
      getSteps(props.aId, {points: POINTS}, s),
      getSteps(props.bId, {points: POINTS}, s),
    ]),
  );
  if (both.kind !== 'ready') return null;
  const [a, b] = both.value;
  const shown = histogramsOf(a.mean_ns, b.mean_ns);
  if (!shown) return null;
  const medians = [medianOf(a.mean_ns), medianOf(b.mean_ns)];
  const plot = width - AXIS_PX;
  const room = plot / shown.a.length;
  const end = shown.fromNs + shown.binNs * shown.a.length;
  const x = (value: number): number =>
    AXIS_PX + (plot * (value - shown.fromNs)) / (end - shown.fromNs);
  const steps = (list: readonly number[]): string => {
    let d = `M${AXIS_PX} ${HEIGHT}`;
    list.forEach((share, i) => {
      const y = (HEIGHT - (HEIGHT * share) / shown.top).toFixed(1);
      d += `L${(AXIS_PX + i * room).toFixed(1)} ${y}H${(AXIS_PX + (i + 1) * room).toFixed(1)}`;
    });
    return `${d}V${HEIGHT}Z`;
  };
  const ticks = axisSteps(end).filter(value => value >= shown.fromNs);
  const apart = axisSteps(end - shown.fromNs)[1] ?? 1;
  const marks =
    ticks.length >= 2
      ? ticks
      : Array.from({length: 5}, (_, i) => Math.ceil(shown.fromNs / apart + i) * apart).filter(
          value => value <= end,
        );
  return (
    <ChartPanel
      id="step-histograms"
      title="Step times"
      aside={
        <>
          {plural(a.count, 'step')} and {plural(b.count, 'step')}
        </>
      }
      box={box}
      plot={{
        height: HEIGHT,
        above: 8,
        below: 20,
        top: shown.top,
        format: value => formatPct(100 * value),
      }}
      label={`Share of steps by their time. Median of A ${medians[0] === undefined ? 'unknown' : formatDuration(medians[0])}, of B ${medians[1] === undefined ? 'unknown' : formatDuration(medians[1])}`}
      note={
        <p class="chart-legend">
          <span>
            <i class="chart-key histogram-key-a" /> A
            {medians[0] !== undefined && `, median ${formatDuration(medians[0])}`}
          </span>
          <span>
            <i class="chart-key histogram-key-b" /> B
            {medians[1] !== undefined && `, median ${formatDuration(medians[1])}`}
          </span>
        </p>
      }
    >
      <path class="histogram-a" d={steps(shown.a)} />
      <path class="histogram-b" d={steps(shown.b)} />
      {medians.map(
        (value, i) =>
          value !== undefined && (
            <g key={i} class={i === 0 ? 'histogram-median-a' : 'histogram-median-b'}>
              <line x1={x(value)} x2={x(value)} y1={0} y2={HEIGHT} />
              <text
                x={x(value) + (x(value) > width - 16 ? -3 : 3)}
                y={4}
                text-anchor={x(value) > width - 16 ? 'end' : 'start'}
              >
                {i === 0 ? 'A' : 'B'}
              </text>
            </g>
          ),
      )}
      <g class="chart-axis">
        {marks.map(value => (
          <text key={value} x={x(value)} y={HEIGHT + 15} text-anchor="middle">
            {formatDuration(value)}
          </text>
        ))}
      </g>
    </ChartPanel>
  );
}
