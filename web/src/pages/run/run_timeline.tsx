// All ranks of a run on one time axis, and the collectives in which they meet.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {getRunCollectives, getRunStrips} from '../../api/client';
import type {RunCollective, RunCollectives, RunStrips, TraceInfo} from '../../api/types';
import {CAUSES} from '../../base/causes';
import {formatCount, formatDuration, plural} from '../../base/format';
import {ns} from '../../base/units';
import {
  arrivalsOf,
  collectiveAt,
  dataOf,
  describeCollective,
  lastOnes,
  shiftsOf,
} from '../../model/run/strips';
import {DEFAULT_VIEW, met, show, timeWindow, type TimeWindow} from '../../model/view_state';
import {CauseLegend} from '../../ui/chart_frame';
import {ViewLink} from '../../ui/link';
import {latest, useResource} from '../../ui/resource';
import {StandIn} from '../../ui/states';
import {useSettled} from './settled';
import {showWindow, StripView, ZoomButtons} from './strip_view';

const POINTS = 900;
const COLLECTIVES = 200;
const LISTED = 8;

/** @param stamp stands for which traces of the run these are */
export function RunTimeline(props: {
  run: string;
  stamp: string;
  members: readonly TraceInfo[];
  late: number | undefined;
}): JSX.Element {
  const {run, stamp} = props;
  const asked = useSettled(timeWindow.value);
  const place = asked ? {t0: Math.floor(asked.t0), t1: Math.ceil(asked.t1)} : {};
  const key = `${run}/${stamp}/${place.t0 ?? ''}/${place.t1 ?? ''}`;
  const strips = useResource(key, s => getRunStrips(run, {...place, points: POINTS}, s));
  const collectives = useResource(key, s =>
    getRunCollectives(run, {...place, limit: COLLECTIVES}, s),
  );
  const shown = latest(strips);
  const meetings = latest(collectives);
  return (
    <section class="panel" aria-labelledby="run-timeline" data-testid="run-timeline">
      <header class="panel-head">
        <h2 id="run-timeline">All ranks on one clock</h2>
        {shown && <span class="panel-aside">{formatDuration(shown.duration_ns)}</span>}
      </header>
      <StandIn keeps of={strips} what="the ranks" title="The ranks cannot be drawn" />
      {shown && <Drawn {...props} strips={shown} meetings={meetings} />}
    </section>
  );
}

function Drawn(props: {
  members: readonly TraceInfo[];
  late: number | undefined;
  strips: RunStrips;
  meetings: RunCollectives | undefined;
}): JSX.Element {
  const {strips, meetings} = props;
  const end = strips.duration_ns;
  const window = timeWindow.value ?? {t0: ns(0), t1: ns(end)};
  const [kept, keep] = useState<RunCollective | undefined>(undefined);
  const found = meetings?.collectives.find(it => String(it.index) === met.value);
  // one that left the window is still the chosen one
  const chosen = found ?? (String(kept?.index) === met.value ? kept : undefined);
  useEffect(() => {
    if (found) keep(found);
  }, [found]);
  const shifts = shiftsOf(chosen);
  const nameOf = (index: number): string => `rank ${strips.ranks[index]?.rank ?? index}`;
  const onWindow = (next: TimeWindow, isLeap: boolean): void =>
    showWindow(next, isLeap, w => (timeWindow.value = w));
  const choose = (it: RunCollective | undefined): void =>
    show({met: it === undefined ? '' : String(it.index)});
  const step = (way: number): void => {
    const all = meetings?.collectives ?? [];
    const at = all.findIndex(it => it.index === chosen?.index);
    const next = at < 0 ? all[way > 0 ? 0 : all.length - 1] : all[at + way];
    if (next) choose(next);
  };
  const rows = strips.ranks.map((rank, index) => {
    const at = chosen?.ranks.indexOf(index) ?? -1;
    const start = chosen?.start_ns[at];
    const dur = chosen?.dur_ns[at];
    const isLate = props.late !== undefined && rank.rank === props.late;
    const view = {
      ...DEFAULT_VIEW,
      page: 'timeline' as const,
      traceId: rank.trace,
      window: {t0: ns(window.t0 - rank.offset_ns), t1: ns(window.t1 - rank.offset_ns)},
    };
    return {
      key: rank.trace,
      name: `Rank ${rank.rank}`,
      label: (
        <ViewLink
          view={view}
          title={`The timeline of rank ${rank.rank} at this time${rank.clock === 'collectives' ? '' : '; no collective ties its clock to the others’'}`}
        >
          {rank.rank}
          {isLate && <b> late</b>}
          {rank.clock !== 'collectives' && <span class="faint"> own clock</span>}
        </ViewLink>
      ),
      data: dataOf(rank, strips),
      shiftNs: shifts.get(index) ?? 0,
      mark:
        start === undefined || dur === undefined ? undefined : {startNs: start, endNs: start + dur},
    };
  });
  const seen = CAUSES.filter(
    cause =>
      strips.ranks.some(rank => rank.waiting?.[cause]) ||
      (cause === 'comm' && strips.ranks.some(rank => rank.work?.['exposed_comm'])) ||
      (cause === 'copy_wait' && strips.ranks.some(rank => rank.work?.['exposed_copy'])),
  );
  return (
    <>
      <div class="strips-tools">
        <ZoomButtons window={window} endNs={end} onWindow={onWindow} />
        {meetings && meetings.collectives.length > 0 && (
          <span role="group" aria-label="Collectives">
            <button type="button" class="button" onClick={() => step(-1)}>
              Previous collective
            </button>
            <button type="button" class="button" onClick={() => step(1)}>
              Next
            </button>
          </span>
        )}
        {chosen && (
          <button type="button" class="button" onClick={() => choose(undefined)}>
            Clear
          </button>
        )}
      </div>
      <StripView
        rows={rows}
        window={window}
        endNs={end}
        name={`What the GPU of each of ${plural(rows.length, 'rank')} did, and below it why it was idle. W, S, A and D zoom and move, arrow keys go through the collectives`}
        onWindow={onWindow}
        onPress={at => choose(meetings && collectiveAt(meetings, at))}
        onKey={pressed => {
          if (pressed === 'ArrowRight') step(1);
          else if (pressed === 'ArrowLeft') step(-1);
          else if (pressed === 'Escape') choose(undefined);
          else return false;
          return true;
        }}
      />
      <CauseLegend causes={seen}>
        <span>
          <i class="chart-key share-work" /> computing
        </span>
      </CauseLegend>
      {meetings && (
        <Met meetings={meetings} chosen={chosen} strips={strips} nameOf={nameOf} window={window} />
      )}
    </>
  );
}

function Met(props: {
  meetings: RunCollectives;
  chosen: RunCollective | undefined;
  strips: RunStrips;
  window: TimeWindow;
  nameOf: (rank: number) => string;
}): JSX.Element {
  const {meetings, chosen, nameOf} = props;
  const judged = meetings.collectives.filter(it => it.late_ns !== undefined);
  const latest = [...judged].sort((a, b) => (b.late_ns ?? 0) - (a.late_ns ?? 0)).slice(0, LISTED);
  const worst = lastOnes(meetings)
    .slice(0, 3)
    .map(
      row =>
        `${nameOf(row.rank)} (${plural(row.count, 'time')}, ${formatDuration(row.lateNs)} in total)`,
    )
    .join(', ');
  return (
    <div class="met">
      <p class="met-said" role="status">
        {chosen
          ? `${describeCollective(chosen, nameOf)}. The rows are aligned at its end.`
          : meetings.total === 0
            ? 'No collective of this window is on two ranks.'
            : meetings.collectives.length < meetings.total
              ? `${plural(meetings.total, 'collective')} in this window. Last in the ${formatCount(meetings.collectives.length)} latest: ${worst}.`
              : `${plural(meetings.total, 'collective')} in this window. Entered last: ${worst}.`}
      </p>
      <div class="met-columns">
        {latest.length > 0 && (
          <table class="met-table">
            <caption>Latest arrivals in this window</caption>
            <thead>
              <tr>
                <th scope="col">collective</th>
                <th scope="col" class="cell-num">
                  ends at
                </th>
                <th scope="col">entered last</th>
                <th scope="col" class="cell-num">
                  late by
                </th>
              </tr>
            </thead>
            <tbody>
              {latest.map(it => (
                <tr key={it.index} class={it.index === chosen?.index ? 'met-chosen' : ''}>
                  <th scope="row">
                    <ViewLink view={{met: String(it.index), window: around(it, props.window)}}>
                      {it.kind}
                    </ViewLink>
                  </th>
                  <td class="num cell-num">{formatDuration(it.end_ns, 5)}</td>
                  <td>{it.last === undefined ? '' : nameOf(it.last)}</td>
                  <td class="num cell-num">{formatDuration(it.late_ns ?? 0)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {chosen && <Arrivals it={chosen} nameOf={nameOf} />}
      </div>
    </div>
  );
}

/** The window as it is where the whole of a collective is in it, else one around that. */
function around(it: RunCollective, window: TimeWindow): TimeWindow | undefined {
  const longest = Math.max(...it.dur_ns);
  const begin = it.end_ns - longest;
  if (begin >= window.t0 && it.end_ns <= window.t1) return timeWindow.value;
  return {t0: ns(Math.max(0, begin - longest)), t1: ns(it.end_ns + longest)};
}

const DOT_ROW_PX = 16;

/** When each rank came, from the first one on. */
function Arrivals({
  it,
  nameOf,
}: {
  it: RunCollective;
  nameOf: (rank: number) => string;
}): JSX.Element {
  const arrivals = arrivalsOf(it);
  const top = Math.max(1, ...arrivals);
  const height = it.ranks.length * DOT_ROW_PX;
  return (
    <figure class="met-arrivals">
      <figcaption>Arrival of each rank, from the first one on</figcaption>
      <svg
        width="100%"
        height={height}
        viewBox={`0 0 360 ${height}`}
        preserveAspectRatio="xMinYMin meet"
        role="img"
        aria-label={it.ranks
          .map((rank, i) => `${nameOf(rank)} ${formatDuration(arrivals[i] ?? 0)}`)
          .join(', ')}
      >
        {it.ranks.map((rank, i) => {
          const y = (i + 0.5) * DOT_ROW_PX;
          const x = 64 + (220 * (arrivals[i] ?? 0)) / top;
          return (
            <g key={rank} class={rank === it.last ? 'arrival-last' : 'arrival'}>
              <text x={0} y={y} dy="0.35em">
                {nameOf(rank)}
              </text>
              <line x1={64} x2={x} y1={y} y2={y} />
              <circle cx={x} cy={y} r={4} />
              <text x={x + 9} y={y} dy="0.35em">
                {formatDuration(arrivals[i] ?? 0)}
              </text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
