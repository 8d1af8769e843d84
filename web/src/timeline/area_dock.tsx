// What lies in a selected area: its slices by name, the GPUs, why they were idle, steps, counters.
import type {ComponentChildren, JSX} from 'preact';
import {useState} from 'preact/hooks';
import {getArea, getCounter, type AreaQuery} from '../api/client';
import type {AreaDevice, AreaInfo, AreaName} from '../api/types';
import {exactNs, formatCount, formatDuration, formatPct, plural} from '../base/format';
import {word} from '../base/vocabulary';
import {areaTable, pressAreaSort, type AreaColumn, type AreaSort} from '../model/area_table';
import {areaTab, AREA_TABS, query as searchText, type AreaTab} from '../model/view_state';
import {formatIndexSet} from '../render/tile_plan';
import {ViewLink} from '../ui/link';
import {latest, useResource, type Resource} from '../ui/resource';
import {StandIn} from '../ui/states';
import {TableCopies} from '../ui/table_copies';
import type {TimelineModel} from './data/timeline_model';
import {DockFlame} from './dock_flame';
import {DockList} from './dock_list';
import {counterText} from './draw/overlay';
import {trackLabel} from './data/rows';
import {CausePieces, type DetailsProps} from './details_parts';

/** Names shown; a copy takes more. */
const NAMES_SHOWN = 200;
const NAMES_COPIED = 10000;
/** A counter beyond these is one too many to read. */
const COUNTERS_SHOWN = 24;
const COUNTER_POINTS = 512;
const STREAMS_SHOWN = 32;

const TAB_LABELS: Readonly<Record<AreaTab, string>> = {
  slices: 'Slices',
  gpu: 'GPU',
  idle: 'Idle by cause',
  steps: 'Steps',
  counters: 'Counters',
  flame: 'Flame',
};

interface Area {
  readonly t0: number;
  readonly t1: number;
}

export function AreaDock({model, navigator, t0, t1}: DetailsProps & Area): JSX.Element {
  const [sort, setSort] = useState<AreaSort>({column: 'total', ascending: false});
  const [isShownOnly, setShownOnly] = useState(false);
  const tracks = isShownOnly ? shownTracks(model) : undefined;
  const ask: AreaQuery = {
    t0,
    t1,
    ...(tracks === undefined ? {} : {tracks}),
    sort: sort.column,
    order: sort.ascending ? 'asc' : 'desc',
  };
  const area = useResource(
    tracks === ''
      ? undefined
      : `${model.trace.id}/${model.trace.generation} ${JSON.stringify(ask)}`,
    signal => getArea(model.trace.id, {...ask, limit: NAMES_SHOWN}, signal),
  );
  const tab = hasTab(model, areaTab.value) ? areaTab.value : 'slices';
  return (
    <div class="tl-dock" data-testid="area-dock">
      <div class="tl-dock-bar">
        <nav class="tl-dock-tabs" aria-label="What to show of the area">
          {AREA_TABS.filter(t => hasTab(model, t)).map(t => (
            <ViewLink key={t} class="tl-dock-tab" view={{areaTab: t}} current={t === tab}>
              {TAB_LABELS[t]}
            </ViewLink>
          ))}
        </nav>
        {tab === 'slices' && (
          <>
            <label class="tl-dock-rows">
              <input
                type="checkbox"
                checked={isShownOnly}
                onChange={event => setShownOnly(event.currentTarget.checked)}
              />
              only the rows shown
            </label>
            <TableCopies
              class="tl-button"
              load={async () => {
                const all = await getArea(model.trace.id, {...ask, limit: NAMES_COPIED});
                return {...areaTable(all.names), total: all.name_count};
              }}
            />
          </>
        )}
      </div>
      <TabBody
        model={model}
        navigator={navigator}
        tab={tab}
        area={area}
        span={{t0, t1}}
        sort={sort}
        onSort={column => setSort(pressAreaSort(sort, column))}
      />
    </div>
  );
}

/** Tracks of slices among the rows shown, as the server wants them; '': none. */
function shownTracks(model: TimelineModel): string {
  const indexes = model.rows.value
    .filter(row => row.kind === 'slices' || row.kind === 'gaps' || row.kind === 'steps')
    .flatMap(row => (row.track === undefined ? [] : [row.track]));
  return formatIndexSet([...new Set(indexes)].sort((a, b) => a - b));
}

function hasTab(model: TimelineModel, tab: AreaTab): boolean {
  const has = (kind: string): boolean =>
    model.tracks.tracks.some(t => t.kind === kind && t.count > 0);
  switch (tab) {
    case 'slices':
      return true;
    case 'gpu':
      return has('stream');
    case 'idle':
      return has('gaps');
    case 'steps':
      return model.steps.all.length > 0;
    case 'counters':
      return has('counter');
    case 'flame':
      return has('thread') || has('stream');
  }
}

function TabBody(
  props: DetailsProps & {
    tab: AreaTab;
    area: Resource<AreaInfo>;
    span: Area;
    sort: AreaSort;
    onSort: (column: AreaColumn) => void;
  },
): JSX.Element {
  const {area, model, span} = props;
  if (props.tab === 'steps') return <Steps {...props} />;
  if (props.tab === 'counters') return <Counters model={model} span={span} />;
  if (props.tab === 'flame')
    return <DockFlame model={model} t0={Math.floor(span.t0)} t1={Math.ceil(span.t1)} />;
  const info = latest(area);
  if (info === undefined)
    return <StandIn of={area} what="the area" title="The area cannot be counted" />;
  switch (props.tab) {
    case 'slices':
      return <Slices {...props} info={info} />;
    case 'gpu':
      return <Devices model={model} info={info} />;
    case 'idle':
      return <Idle model={model} info={info} />;
  }
}

// ---- slices by name

const HEADS: readonly {column: AreaColumn; label: string; definition: string}[] = [
  {column: 'name', label: 'name', definition: 'Press a name to find all its slices'},
  {column: 'count', label: 'count', definition: 'Slices that lie in the area at least in part'},
  {column: 'total', label: 'total', definition: 'Total time inside the area'},
  {
    column: 'self',
    label: 'self',
    definition: 'The same without what lies inside other slices of the same thread',
  },
  {column: 'mean', label: 'mean', definition: 'Total divided by count'},
  {column: 'max', label: 'max', definition: 'The longest time of one slice inside the area'},
];

function Slices(
  props: DetailsProps & {info: AreaInfo; sort: AreaSort; onSort: (column: AreaColumn) => void},
): JSX.Element {
  const {info, sort, navigator} = props;
  return (
    <div class="tl-dock-body">
      <table class="tl-dock-table">
        <thead>
          <tr>
            {HEADS.map(head => {
              const isSorted = sort.column === head.column;
              return (
                <th
                  key={head.column}
                  scope="col"
                  aria-sort={isSorted ? (sort.ascending ? 'ascending' : 'descending') : 'none'}
                >
                  <button
                    type="button"
                    title={head.definition}
                    onClick={() => props.onSort(head.column)}
                  >
                    {head.label}
                    <span aria-hidden="true">{isSorted ? (sort.ascending ? ' ↑' : ' ↓') : ''}</span>
                  </button>
                </th>
              );
            })}
            <th scope="col" class="tl-dock-kind">
              kind
            </th>
          </tr>
        </thead>
        <tbody>
          {info.names.map(row => (
            <NameRow key={`${row.kind} ${row.name_id}`} row={row} navigator={navigator} />
          ))}
        </tbody>
      </table>
      <p class="tl-muted tl-dock-sum" role="status">
        {info.slice_count === 0
          ? 'No slices in this area.'
          : `${plural(info.slice_count, 'slice')}, ${plural(info.name_count, 'name')}` +
            (info.names.length < info.name_count
              ? `; the first ${formatCount(info.names.length)} are shown`
              : '')}
      </p>
    </div>
  );
}

function NameRow({row, navigator}: {row: AreaName} & Pick<DetailsProps, 'navigator'>): JSX.Element {
  const isLit = searchText.value !== '' && searchText.value === row.name;
  return (
    <tr class={isLit ? 'tl-dock-lit' : ''}>
      <th scope="row" title={row.name}>
        <ViewLink view={{query: isLit ? '' : row.name}} title={row.name}>
          {row.short || row.name || '(no name)'}
        </ViewLink>
      </th>
      <td>{formatCount(row.count)}</td>
      <Time ns={row.total_ns} />
      <Time ns={row.self_ns} />
      <Time ns={row.mean_ns} />
      <td title={exactNs(row.max_ns)}>
        <ViewLink
          view={navigator.viewOfSlice(row.longest_slice, undefined)}
          title="Go to the longest"
          onPress={() => navigator.goToSlice(row.longest_slice, undefined)}
        >
          {formatDuration(row.max_ns)}
        </ViewLink>
      </td>
      <td class="tl-muted tl-dock-kind">{word('slice_kinds', row.kind).label}</td>
    </tr>
  );
}

const Time = ({ns}: {ns: number}): JSX.Element => <td title={exactNs(ns)}>{formatDuration(ns)}</td>;

// ---- devices

/** A card for each GPU, with what it says of it behind its number. */
function Cards(props: {
  model: TimelineModel;
  info: AreaInfo;
  told: (device: AreaDevice) => string;
  body: (device: AreaDevice) => ComponentChildren;
}): JSX.Element {
  return (
    <div class="tl-dock-body tl-dock-cards">
      {usedDevices(props.model, props.info).map(device => (
        <section key={device.id} aria-label={`GPU ${device.id}`}>
          <h3>
            GPU {device.id}: {device.span_ns <= 0 ? 'nothing ran in this area' : props.told(device)}
          </h3>
          {props.body(device)}
        </section>
      ))}
    </div>
  );
}

/** "1 ms of 2 ms (50 %)" */
const ofSpan = (device: AreaDevice, ns: number): string =>
  `${formatDuration(ns)} of ${formatDuration(device.span_ns)} (${partOfSpan(device, ns)})`;
const partOfSpan = (device: AreaDevice, ns: number): string =>
  formatPct((100 * ns) / device.span_ns);

function Devices({model, info}: {model: TimelineModel; info: AreaInfo}): JSX.Element {
  return (
    <Cards
      model={model}
      info={info}
      told={busyText}
      body={device => (
        <>
          <ul class="tl-dock-list">
            {device.kinds.map(kind => (
              <li key={kind.kind}>
                <span>{word('slice_kinds', kind.kind).label}</span>
                <span>{formatCount(kind.count)}</span>
                <span title={exactNs(kind.total_ns)}>{formatDuration(kind.total_ns)}</span>
              </li>
            ))}
          </ul>
          <Streams model={model} info={info} device={device.id} />
        </>
      )}
    />
  );
}

/** Those on which anything ran in this trace: a file lists all that the host has. */
function usedDevices(model: TimelineModel, info: AreaInfo): readonly AreaDevice[] {
  const used = new Set(
    model.tracks.tracks.flatMap(t => (t.kind === 'stream' && t.count > 0 ? [t.device] : [])),
  );
  return info.devices.filter(device => used.has(device.id));
}

function busyText(device: AreaDevice): string {
  const busy = /* text */ `busy ${ofSpan(device, device.busy_ns)}`;
  return device.computing_ns === undefined
    ? busy
    : /* text */ `${busy}, not computing ${partOfSpan(device, device.span_ns - device.computing_ns)}`;
}

function Streams(props: {model: TimelineModel; info: AreaInfo; device: number}): JSX.Element {
  const {model, info} = props;
  const streams = info.tracks
    .flatMap(t => {
      const track = model.track(t.track);
      return track?.kind === 'stream' && track.device === props.device ? [{...t, info: track}] : [];
    })
    .sort((a, b) => b.total_ns - a.total_ns);
  return (
    <ul class="tl-dock-list">
      {streams.slice(0, STREAMS_SHOWN).map(stream => (
        <li key={stream.track}>
          <span>{trackLabel(model.tracks, stream.info).label}</span>
          <span>{formatCount(stream.count)}</span>
          <span title={exactNs(stream.total_ns)}>{formatDuration(stream.total_ns)}</span>
        </li>
      ))}
      {streams.length > STREAMS_SHOWN && (
        <li class="tl-muted">{plural(streams.length - STREAMS_SHOWN, 'more stream')}</li>
      )}
    </ul>
  );
}

function Idle({model, info}: {model: TimelineModel; info: AreaInfo}): JSX.Element {
  return (
    <Cards
      model={model}
      info={info}
      told={device => /* text */ `idle ${ofSpan(device, device.idle_ns)}`}
      body={device =>
        device.idle_ns > 0 && (
          <CausePieces causeNs={device.idle_by_cause_ns} totalNs={device.idle_ns} />
        )
      }
    />
  );
}

// ---- steps and counters

function Steps({model, span}: DetailsProps & {span: Area}): JSX.Element {
  const inside = model.steps.all.filter(s => s.start < span.t1 && s.start + s.dur > span.t0);
  const [first, last] = [inside[0]?.index, inside[inside.length - 1]?.index];
  if (first === undefined) return <p class="tl-muted">No step in this area.</p>;
  return (
    <DockList
      model={model}
      name="steps"
      span={{t0: Math.max(0, Math.floor(span.t0)), t1: Math.ceil(span.t1)}}
    >
      <ViewLink
        view={{page: 'flame', flameSteps: first === last ? `${first}` : `${first}-${last}`}}
      >
        flame graph of these steps
      </ViewLink>
    </DockList>
  );
}

interface CounterSums {
  readonly label: string;
  /** With the unit of its values. */
  readonly title: string;
  readonly min: number;
  readonly max: number;
  readonly mean: number | undefined;
  readonly last: number;
}

function Counters({model, span}: {model: TimelineModel; span: Area}): JSX.Element {
  const tracks = model.tracks.tracks
    .filter(t => t.kind === 'counter' && t.count > 0)
    .slice(0, COUNTERS_SHOWN);
  const sums = useResource(
    `${model.trace.id}/${model.trace.generation} ${span.t0} ${span.t1}`,
    async signal => {
      const all = await Promise.all(
        tracks.map(async (track): Promise<CounterSums | undefined> => {
          const ask = {t0: Math.floor(span.t0), t1: Math.ceil(span.t1), points: COUNTER_POINTS};
          const points = await getCounter(model.trace.id, track.index, ask, signal);
          if (points.last.length === 0) return undefined;
          return {
            ...trackLabel(model.tracks, track),
            min: Math.min(...points.min),
            max: Math.max(...points.max),
            mean: points.mean,
            last: points.last[points.last.length - 1] ?? NaN,
          };
        }),
      );
      return all.filter(c => c !== undefined);
    },
  );
  const rows = latest(sums);
  if (rows === undefined) return <StandIn of={sums} what="the counters" />;
  return (
    <div class="tl-dock-body">
      <table class="tl-dock-table">
        <thead>
          <tr>
            <th scope="col">counter</th>
            <th scope="col">min</th>
            <th scope="col">max</th>
            <th scope="col" title="Over time, from the first sample in the area">
              mean
            </th>
            <th scope="col">last</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={row.label}>
              <th scope="row" title={row.title}>
                {row.label}
              </th>
              <td>{counterText(row.title, row.min)}</td>
              <td>{counterText(row.title, row.max)}</td>
              <td>{row.mean === undefined ? '' : counterText(row.title, row.mean)}</td>
              <td>{counterText(row.title, row.last)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="tl-muted">No sample in this area.</p>}
    </div>
  );
}
