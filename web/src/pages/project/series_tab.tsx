// Throughput against one setting that was varied.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {getSeries, type Series, type SeriesValue} from '../../api/project';
import {isCause, causeWord} from '../../base/causes';
import {formatNumber, formatPct, plural, rateUnit, sentence} from '../../base/format';
import {word} from '../../base/vocabulary';
import {seriesPart} from '../../model/report_text';
import {DEFAULT_VIEW, projectName} from '../../model/view_state';
import {AXIS_PX, ChartPanel, useWidth} from '../../ui/chart_frame';
import {ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {AddButton} from '../reports/add_button';
import {Pending, useRounds} from './pending';

const HEIGHT = 220;

const partLabel = (part: string): string =>
  isCause(part) ? causeWord(part).label : word('parts', part).label;

export function SeriesTab(props: {
  name: string;
  job: string | undefined;
  setting: string | undefined;
  choose: (parts: Readonly<Record<string, string>>) => void;
}): JSX.Element {
  const {name, job} = props;
  const {round, again} = useRounds();
  // nobody has to choose to see anything
  const [usual, setUsual] = useState<string | undefined>(undefined);
  const setting = props.setting ?? usual;
  const reply = useResource(`${name}\n${job ?? ''}\n${setting ?? ''}\n${round}`, s =>
    getSeries(name, {job, setting}, s),
  );
  const series = latest(reply);
  const first = series?.varied[0]?.setting;
  useEffect(() => setUsual(first), [first]);
  if (!series) return <StandIn of={reply} what="the series" />;
  if (series.varied.length === 0)
    return (
      <>
        <Pending count={series.pending} again={again} />
        <Empty title="No setting was varied">
          Record runs that differ in one setting, such as the number of workers, GPUs or the batch
          size.
        </Empty>
      </>
    );
  return (
    <>
      <label class="project-choice">
        Setting{' '}
        <select
          class="input"
          value={setting ?? ''}
          onChange={event => props.choose({setting: event.currentTarget.value})}
        >
          {series.varied.map(each => (
            <option key={each.setting} value={each.setting}>
              {each.setting} ({plural(each.value_count, 'value')})
            </option>
          ))}
        </select>
      </label>
      <Pending count={series.pending} again={again} />
      {setting !== undefined && series.values.length === 0 && (
        <Empty title="No run of this job has a throughput with this setting" />
      )}
      {series.values.length > 0 && (
        <>
          <SeriesChart series={series} />
          <SeriesTable series={series} />
        </>
      )}
    </>
  );
}

function SeriesChart({series}: {series: Series}): JSX.Element {
  const box = useWidth();
  const {width} = box;
  const {values} = series;
  const numbers = values.map(value => value.number);
  const isNumeric = numbers.every(number => number !== undefined);
  const low = Math.min(...numbers.map(number => number ?? 0));
  const high = Math.max(...numbers.map(number => number ?? 0));
  const top =
    Math.max(...values.map(value => Math.max(value.high_per_s, value.ideal_per_s ?? 0))) * 1.08;
  const inner = width - AXIS_PX - 40;
  const x = (value: SeriesValue, i: number): number =>
    AXIS_PX +
    20 +
    (isNumeric && high > low
      ? (inner * ((value.number ?? 0) - low)) / (high - low)
      : (inner * (i + 0.5)) / values.length);
  const y = (perS: number): number => HEIGHT - (HEIGHT * perS) / top;
  const line = (of: (value: SeriesValue) => number | undefined): string =>
    values
      .map((value, i) => ({px: x(value, i), perS: of(value)}))
      .filter(point => point.perS !== undefined)
      .map(point => `${point.px.toFixed(1)} ${y(point.perS ?? 0).toFixed(1)}`)
      .join('L');
  const ideal = line(value => value.ideal_per_s);
  return (
    <ChartPanel
      id="series-chart"
      title={<>Throughput by {series.setting}</>}
      aside={rateUnit(series.unit ?? 'steps')}
      box={box}
      plot={{height: HEIGHT, above: 10, below: 24, top, format: value => formatNumber(value, 3)}}
      label={sentence(series.text)}
      note={
        <>
          <p class="chart-legend">
            <span>median of the runs, with lowest and highest</span>
            {ideal.includes('L') && (
              <span>
                <i class="chart-key series-key-ideal" /> ideal: in proportion to the first
              </span>
            )}
          </p>
          {series.values.length > 1 && (
            <AddButton
              isQuiet
              project={projectName.value === '-' ? '' : projectName.value}
              choices={[
                {
                  line: seriesPart(series.values.flatMap(each => each.traces.slice(0, 1))),
                  label: `Throughput by ${series.setting ?? 'setting'}`,
                },
              ]}
            />
          )}
          <p class="chart-note">
            {sentence(series.text)}.
            {series.others_vary && ' Other settings differ among these runs, too.'}
            {series.left_out_count > 0 &&
              ` ${plural(series.left_out_count, 'run')} without a throughput in this unit left out.`}
          </p>
        </>
      }
    >
      {ideal.includes('L') && <path class="series-ideal" d={`M${ideal}`} />}
      {isNumeric && values.length > 1 && (
        <path class="chart-line" d={`M${line(value => value.throughput_per_s)}`} />
      )}
      {values.map((value, i) => (
        <g key={value.value} class="chart-today">
          <line
            class="series-range"
            x1={x(value, i)}
            x2={x(value, i)}
            y1={y(value.low_per_s)}
            y2={y(value.high_per_s)}
          />
          <circle cx={x(value, i)} cy={y(value.throughput_per_s)} r={4}>
            <title>{`${value.value}: ${formatNumber(value.throughput_per_s)} ${rateUnit(series.unit ?? 'steps')}, ${plural(value.run_count, 'run')}`}</title>
          </circle>
          <text x={x(value, i)} y={HEIGHT + 16} text-anchor="middle">
            {value.value.slice(0, 24)}
          </text>
        </g>
      ))}
    </ChartPanel>
  );
}

function SeriesTable({series}: {series: Series}): JSX.Element {
  return (
    <section class="panel">
      <table class="project-table num">
        <thead>
          <tr>
            <th>{series.setting}</th>
            <th>runs</th>
            <th>{rateUnit(series.unit ?? 'steps')}</th>
            {series.has_ideal && <th>of ideal</th>}
            <th>what grew, of the GPU's time</th>
            <th>a run</th>
          </tr>
        </thead>
        <tbody>
          {series.values.map(value => (
            <tr key={value.value}>
              <td>{value.value}</td>
              <td>{value.run_count}</td>
              <td>{formatNumber(value.throughput_per_s)}</td>
              {series.has_ideal && (
                <td>{value.of_ideal_pct === undefined ? '–' : formatPct(value.of_ideal_pct)}</td>
              )}
              <td>
                {value.grew
                  ? `${partLabel(value.grew.part)} ${formatPct(value.grew.from_pct)} → ${formatPct(value.grew.to_pct)}`
                  : '–'}
              </td>
              <td>
                {value.traces[0] !== undefined && (
                  <ViewLink view={{...DEFAULT_VIEW, page: 'overview', traceId: value.traces[0]}}>
                    open
                  </ViewLink>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
