// What a project's runs took and wasted, by week, person, job and cause.
import type {JSX} from 'preact';
import {getTrends, type Sums, type Trends} from '../../api/project';
import {CAUSES, type Cause} from '../../base/causes';
import {formatGpuTime, formatNumber, formatPct, plural} from '../../base/format';
import {AXIS_PX, CauseLegend, ChartPanel, StackedBars, useWidth} from '../../ui/chart_frame';
import {latest, useResource} from '../../ui/resource';
import {Empty, StandIn} from '../../ui/states';
import {Pending, useRounds} from './pending';

const HEIGHT = 180;
/** A single week is no wall of color. */
const BAR_PX_MAX = 96;

/** Parts that are no cause of idle time, by the cause whose color they share. */
const SHARED: Readonly<Record<string, readonly string[]>> = {
  comm: ['exposed_comm'],
  copy_wait: ['exposed_copy', 'exposed_memset'],
};

const MFU_MEANS =
  /* text */ 'Of the peak FLOP/s of the GPUs, over the GPU time for which it is known';

export function TrendsTab({name}: {name: string}): JSX.Element {
  const {round, again} = useRounds();
  const reply = useResource(`${name}\n${round}`, s => getTrends(name, s));
  const trends = latest(reply);
  if (!trends) return <StandIn of={reply} what="the weeks" />;
  return (
    <>
      <Pending count={trends.pending} again={again} />
      {trends.weeks.length === 0 ? (
        <Empty title="No runs yet" />
      ) : (
        <>
          <WeeksChart trends={trends} />
          <p class="muted project-definition">
            GPU hours wasted: recorded time, from the first operation of each GPU to its last, in
            which no compute kernel ran: communication, copies and idle time.
          </p>
          <div class="project-tables">
            <NameTable title="People" names={merged(trends.weeks.map(week => week.people))} />
            <NameTable title="Jobs" names={merged(trends.weeks.map(week => week.jobs))} />
          </div>
        </>
      )}
    </>
  );
}

/** The same names of all weeks together, largest waste first. */
function merged(weeks: readonly (readonly Sums[])[]): readonly Sums[] {
  const all = new Map<string | undefined, Sums>();
  for (const sums of weeks.flat()) {
    const before = all.get(sums.name);
    all.set(sums.name, {
      name: sums.name,
      run_count: sums.run_count + (before?.run_count ?? 0),
      gpu_hours: sums.gpu_hours + (before?.gpu_hours ?? 0),
      gpu_hours_wasted: sums.gpu_hours_wasted + (before?.gpu_hours_wasted ?? 0),
      ...mfuOf(sums, before),
    });
  }
  return [...all.values()].sort((a, b) => b.gpu_hours_wasted - a.gpu_hours_wasted);
}

/** Of both, by the GPU time for which each is known. */
function mfuOf(a: Sums, b: Sums | undefined): Pick<Sums, 'mfu_pct' | 'mfu_gpu_hours'> {
  const hours = a.mfu_gpu_hours + (b?.mfu_gpu_hours ?? 0);
  const weighed = [a, b].reduce(
    (sum, of) => sum + (of?.mfu_pct ?? 0) * (of?.mfu_gpu_hours ?? 0),
    0,
  );
  return {mfu_gpu_hours: hours, mfu_pct: hours > 0 ? weighed / hours : undefined};
}

function wastedBy(trends: Trends, cause: Cause): readonly number[] {
  const parts = [cause, ...(SHARED[cause] ?? [])];
  return trends.weeks.map(week =>
    parts.reduce((sum, part) => sum + (week.parts_gpu_hours[part] ?? 0), 0),
  );
}

function WeeksChart({trends}: {trends: Trends}): JSX.Element {
  const box = useWidth();
  const {width} = box;
  const {weeks} = trends;
  const layers = CAUSES.map(cause => ({cause, values: wastedBy(trends, cause)})).filter(layer =>
    layer.values.some(value => value > 0),
  );
  const top = Math.max(1e-12, ...weeks.map(week => week.gpu_hours_wasted)) * 1.08;
  const room = Math.min(BAR_PX_MAX, (width - AXIS_PX) / weeks.length);
  const every = Math.max(1, Math.ceil(78 / Math.max(1, room)));
  const total = weeks.reduce((sum, week) => sum + week.gpu_hours_wasted, 0);
  const of = weeks.reduce((sum, week) => sum + week.gpu_hours, 0);
  return (
    <ChartPanel
      id="weeks-chart"
      title="GPU hours wasted, by week and cause"
      aside={
        <>
          {formatGpuTime(total)} of {formatGpuTime(of)} (
          {formatPct(of > 0 ? (100 * total) / of : 0)})
        </>
      }
      box={box}
      plot={{height: HEIGHT, above: 8, below: 22, top, format: value => formatNumber(value, 2)}}
      label={`GPU hours wasted in ${plural(weeks.length, 'week')}: ${formatGpuTime(total)}`}
      note={<CauseLegend causes={layers.map(layer => layer.cause)} />}
    >
      <StackedBars
        layers={layers.map(layer => ({class: `fill-${layer.cause}`, values: layer.values}))}
        count={weeks.length}
        top={top}
        width={AXIS_PX + room * weeks.length}
        height={HEIGHT}
      />
      {weeks.map((week, i) => (
        <g key={week.week}>
          <rect class="chart-hit" x={AXIS_PX + i * room} width={room} y={0} height={HEIGHT}>
            <title>{`Week of ${week.week}: ${formatGpuTime(week.gpu_hours_wasted)} of ${formatGpuTime(week.gpu_hours)} of GPU time, ${plural(week.run_count, 'run')}${week.mfu_pct === undefined ? '' : `, ${formatPct(week.mfu_pct)} of the peak FLOP/s used by the model`}`}</title>
          </rect>
          {i % every === 0 && (
            <text x={AXIS_PX + (i + 0.5) * room} y={HEIGHT + 15} text-anchor="middle">
              {week.week}
            </text>
          )}
        </g>
      ))}
    </ChartPanel>
  );
}

function NameTable(props: {title: string; names: readonly Sums[]}): JSX.Element {
  return (
    <section class="panel">
      <header class="panel-head">
        <h2>{props.title}</h2>
      </header>
      <table class="project-table num">
        <thead>
          <tr>
            <th>name</th>
            <th>runs</th>
            <th>GPU time</th>
            <th>wasted</th>
            <th>share</th>
            <th title={MFU_MEANS}>FLOP/s used</th>
          </tr>
        </thead>
        <tbody>
          {props.names.map(sums => (
            <tr key={sums.name ?? '\n'}>
              <td class={sums.name ? '' : 'muted'}>
                {sums.name === undefined ? 'all others' : sums.name || 'not recorded'}
              </td>
              <td>{sums.run_count}</td>
              <td>{formatGpuTime(sums.gpu_hours)}</td>
              <td>{formatGpuTime(sums.gpu_hours_wasted)}</td>
              <td>
                {sums.gpu_hours > 0
                  ? formatPct((100 * sums.gpu_hours_wasted) / sums.gpu_hours)
                  : '–'}
              </td>
              <td>{sums.mfu_pct === undefined ? '–' : formatPct(sums.mfu_pct)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
