// The chart of a query's rows: columns to choose, bars or lines.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {SqlResult} from '../api/sql';
import {formatDuration, formatNumber, plural} from '../base/format';
import {chartOf, LINES_MAX, usualChoice, type ChartChoice, type SqlChart} from '../model/sql/chart';
import {isNumeric} from '../model/sql_query';
import {Axis, AXIS_PX, useWidth} from '../ui/chart_frame';

const HEIGHT = 180;
const BAR_PX = 20;

export function SqlChartView({result}: {result: SqlResult}): JSX.Element {
  const [choice, setChoice] = useState<ChartChoice | undefined>(usualChoice(result));
  const box = useWidth();
  if (!choice) return <p class="muted sql-summary">No column holds numbers alone.</p>;
  const chart = chartOf(result, choice);
  return (
    <section class="sql-chart" aria-label="Chart">
      <p class="sql-actions">
        <label>
          {'across '}
          <select
            value={choice.x}
            onChange={event => setChoice({...choice, x: Number(event.currentTarget.value)})}
          >
            {result.columns.map((name, c) => (
              <option key={c} value={c}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {result.columns.map(
          (name, c) =>
            isNumeric(result, c) &&
            c !== choice.x && (
              <label key={c}>
                <input
                  type="checkbox"
                  checked={choice.y.includes(c)}
                  disabled={!choice.y.includes(c) && choice.y.length >= LINES_MAX}
                  onChange={() => setChoice({...choice, y: toggled(choice.y, c)})}
                />
                {` ${name}`}
              </label>
            ),
        )}
        {chart.left > 0 && (
          <span class="muted">{`the first ${plural(chart.labels.length, 'row')}`}</span>
        )}
      </p>
      <div ref={box.ref} class="sql-drawing">
        {box.width > 0 && chart.series.length > 0 && (
          <Drawing chart={chart} width={box.width} format={formatter(result, choice)} />
        )}
      </div>
    </section>
  );
}

const toggled = (list: readonly number[], one: number): readonly number[] =>
  list.includes(one) ? list.filter(each => each !== one) : [...list, one];

/** Times read as times when all columns are. */
const formatter = (result: SqlResult, choice: ChartChoice): ((value: number) => string) =>
  choice.y.every(c => result.columns[c]?.endsWith('_ns'))
    ? value => formatDuration(value)
    : value => formatNumber(value);

interface DrawingProps {
  readonly chart: SqlChart;
  readonly width: number;
  readonly format: (value: number) => string;
}

function Drawing(props: DrawingProps): JSX.Element {
  return props.chart.kind === 'bars' ? <Bars {...props} /> : <Lines {...props} />;
}

/** A bar for each row, words on the left. */
function Bars({chart, width, format}: DrawingProps): JSX.Element {
  const names = Math.min(280, width * 0.4);
  const top = Math.max(...chart.series.flatMap(one => one.values), 0);
  const room = Math.max(1, width - names - 90);
  const step = BAR_PX * chart.series.length;
  return (
    <svg width={width} height={chart.labels.length * step} role="img" aria-label="bars">
      {chart.labels.map((label, row) => (
        <g key={row}>
          <text x={0} y={row * step + 14}>
            {label.length > names / 7 ? `${label.slice(0, Math.floor(names / 7) - 1)}…` : label}
            <title>{label}</title>
          </text>
          {chart.series.map((one, s) => {
            const value = one.values[row] ?? 0;
            const long = top > 0 ? (room * Math.max(0, value)) / top : 0;
            const y = row * step + s * BAR_PX;
            return (
              <g key={s}>
                <rect class={`sql-series-${s}`} x={names} y={y + 3} width={long} height={14}>
                  <title>{`${one.name}: ${format(value)}`}</title>
                </rect>
                <text class="sql-value" x={names + long + 6} y={y + 14}>
                  {format(value)}
                </text>
              </g>
            );
          })}
        </g>
      ))}
    </svg>
  );
}

/** Lines over numbers. */
function Lines({chart, width, format}: DrawingProps): JSX.Element {
  const top = Math.max(...chart.series.flatMap(one => one.values), 0);
  const first = chart.x[0] ?? 0;
  const span = (chart.x[chart.x.length - 1] ?? 0) - first || 1;
  const xOf = (x: number): number => AXIS_PX + ((width - AXIS_PX - 4) * (x - first)) / span;
  const yOf = (y: number): number => (top > 0 ? HEIGHT - (HEIGHT * y) / top : HEIGHT);
  return (
    <svg width={width} height={HEIGHT + 24} role="img" aria-label="lines">
      <g transform="translate(0 8)">
        <Axis top={top} width={width} height={HEIGHT} format={format} />
        {chart.series.map((one, s) => (
          <path
            key={s}
            class={`sql-line-${s}`}
            d={one.values
              .map(
                (y, i) =>
                  `${i > 0 ? 'L' : 'M'}${xOf(chart.x[i] ?? 0).toFixed(1)} ${yOf(y).toFixed(1)}`,
              )
              .join('')}
          >
            <title>{one.name}</title>
          </path>
        ))}
      </g>
    </svg>
  );
}
