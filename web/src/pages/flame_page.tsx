// The flame graph of a trace or of the selected area: what the GPU's time, its waiting or the
// host's time went to.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {getFlame} from '../api/client';
import type {FlameReply, TraceInfo} from '../api/types';
import {exactNs, formatCount, formatDuration, formatPct, plural} from '../base/format';
import {word} from '../base/vocabulary';
import {FlameCanvas} from '../flame/flame_canvas';
import {frameLabel} from '../flame/flame_painter';
import {
  buildTree,
  layoutTree,
  pathTo,
  searchTree,
  tableOf,
  type FlameLayout,
  type FlameTree,
} from '../model/flame_tree';
import {loadKernels} from '../model/kernel_table';
import {hasGpuWork} from '../model/list_rows';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {
  flameBy,
  flameDropped,
  flameFocus,
  flameForm,
  flameMetric,
  query,
  selection,
  show,
} from '../model/view_state';
import {IconClose, IconFlame, IconSearch, IconTable} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {useResource} from '../ui/resource';
import {Empty, Failed, Loading} from '../ui/states';

const METRICS = [
  {
    key: 'waiting',
    label: 'GPU waiting',
    definition: 'Idle time of the GPU, by cause and by what the host did meanwhile',
  },
  {
    key: 'gpu',
    label: 'GPU time',
    definition: 'Kernels, copies and memsets, under what launched them',
  },
  {
    key: 'cpu',
    label: 'Host threads',
    definition:
      'Time on the host’s threads, all of them added up: it may exceed the recording. Threads that only wait are left out',
  },
] as const;

const BYS = [
  {key: 'op', label: 'operator', definition: 'Operators and ranges'},
  {key: 'range', label: 'range', definition: 'Annotated ranges only'},
  {key: 'kernel', label: 'kernel', definition: 'Kernels or causes only'},
  {key: 'python', label: 'Python', definition: 'Python functions, operators and ranges'},
] as const;

/** What an address says may be anything. */
function known(choices: readonly {key: string}[], key: string): string | undefined {
  return choices.find(choice => choice.key === key)?.key;
}

export function FlamePage({trace}: {trace: TraceInfo}): JSX.Element {
  const metric = known(METRICS, flameMetric.value) ?? (hasGpuWork(trace) ? 'waiting' : 'cpu');
  const by = known(BYS, flameBy.value) ?? 'op';
  const chosen = selection.value;
  const area = chosen?.kind === 'area' || chosen?.kind === 'gap' ? chosen : undefined;
  const key = [trace.id, trace.generation, metric, by, area?.t0 ?? '', area?.t1 ?? ''].join('/');
  const flame = useResource(key, signal =>
    getFlame(
      trace.id,
      {metric, by, ...(area ? {t0: Math.max(0, Math.floor(area.t0)), t1: Math.ceil(area.t1)} : {})},
      signal,
    ),
  );
  const kernels = useResource(`${trace.id}/${trace.generation}`, () =>
    loadKernels(trace.id, trace.generation),
  );
  const shortNames = useMemo(() => {
    const rows = kernels.kind === 'ready' ? kernels.value.rows : [];
    return new Map(rows.filter(row => row.short !== '').map(row => [row.name, row.short]));
  }, [kernels]);
  const reply =
    flame.kind === 'ready' ? flame.value : flame.kind === 'loading' ? flame.stale : undefined;
  return (
    <main class="page page-full page-flame">
      <div class="tools">
        <Choice
          label="Metric"
          options={METRICS}
          value={metric}
          onChoose={value => show({flameMetric: value, flameFocus: 0, flameDropped: []})}
        />
        <Choice
          label="By"
          prefix="by"
          options={BYS}
          value={by}
          onChoose={value => show({flameBy: value, flameFocus: 0, flameDropped: []})}
        />
        <AreaNote area={area} reply={reply} />
        <span class="spacer" />
        <Search />
        <button
          type="button"
          class="button button-quiet"
          aria-pressed={flameForm.value === 'table'}
          onClick={() => (flameForm.value = flameForm.value === 'table' ? 'graph' : 'table')}
        >
          {flameForm.value === 'table' ? <IconFlame /> : <IconTable />}
          {flameForm.value === 'table' ? 'Graph' : 'Table'}
        </button>
      </div>
      {flame.kind === 'error' && (
        <Failed title="The flame graph cannot be shown" text={flame.text} retry={flame.retry} />
      )}
      {flame.kind === 'loading' && !reply && <Loading what="the flame graph" />}
      {reply && flame.kind !== 'error' && (
        <div class={`flame-wrap ${flame.kind === 'loading' ? 'is-stale' : ''}`}>
          <Flame reply={reply} shortNames={shortNames} isStale={flame.kind === 'loading'} />
        </div>
      )}
    </main>
  );
}

function Choice<K extends string>(props: {
  label: string;
  prefix?: string;
  options: readonly {readonly key: K; readonly label: string; readonly definition: string}[];
  value: string;
  onChoose: (key: K) => void;
}): JSX.Element {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.prefix !== undefined && <span class="muted">{props.prefix}</span>}
      <div class="segmented">
        {props.options.map(option => (
          <button
            key={option.key}
            type="button"
            title={option.definition}
            aria-pressed={option.key === props.value}
            onClick={() => props.onChoose(option.key)}
          >
            {option.label}
          </button>
        ))}
      </div>
    </div>
  );
}

function AreaNote(props: {
  area: {readonly t0: number; readonly t1: number} | undefined;
  reply: FlameReply | undefined;
}): JSX.Element {
  const {area, reply} = props;
  const steps = reply !== undefined && reply.steps > 0 ? plural(reply.steps, 'step') : undefined;
  if (!area)
    return <span class="muted num">{['whole trace', steps].filter(Boolean).join(', ')}</span>;
  return (
    <span class="area-note num">
      <ViewLink
        view={{page: 'timeline'}}
        title={`${exactNs(area.t0)} to ${exactNs(area.t1)}: show it in the timeline`}
      >
        selected {formatDuration(area.t1 - area.t0)} at {formatDuration(area.t0)}
      </ViewLink>
      {steps !== undefined && <span class="muted">, {steps}</span>}
      <button
        type="button"
        class="button button-quiet button-icon"
        title="Show the whole trace"
        aria-label="Show the whole trace instead of the selected area"
        onClick={() => show({selection: undefined, flameFocus: 0, flameDropped: []})}
      >
        <IconClose />
      </button>
    </span>
  );
}

function Search(): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping(event)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Flame graph',
      shortcuts: [
        {keys: ['/'], text: 'search'},
        {keys: ['click'], text: 'focus a frame (Enter)'},
        {keys: ['Shift', 'click'], text: 'drop a frame (Delete)'},
        {keys: ['↑', '↓', '←', '→'], text: 'move between frames'},
        {keys: ['Esc'], text: 'back to the whole graph'},
      ],
    });
    return () => {
      removeEventListener('keydown', onKey);
      forget();
    };
  }, []);
  return (
    <label class="field field-search">
      <IconSearch />
      <input
        ref={field}
        type="search"
        placeholder="Find"
        aria-label="Find frames by name"
        value={query.value}
        onInput={event => (query.value = event.currentTarget.value)}
      />
    </label>
  );
}

const NONE: readonly number[] = [];

function Flame(props: {
  reply: FlameReply;
  shortNames: ReadonlyMap<string, string>;
  /** A graph of another area or kind: the focused frame is not in it. */
  isStale: boolean;
}): JSX.Element {
  const {reply, shortNames} = props;
  const tree = useMemo(() => buildTree(reply.nodes), [reply]);
  const focus = props.isStale ? 0 : flameFocus.value;
  const dropped = props.isStale ? NONE : flameDropped.value;
  const layout = useMemo(() => layoutTree(tree, focus, dropped), [tree, focus, dropped]);
  const text = query.value;
  const match = useMemo(() => searchTree(tree, layout, text), [tree, layout, text]);
  const steps = Math.max(1, reply.steps);
  const perStep = reply.steps > 0;
  const total = layout.valueNs[0] ?? 0;

  if (tree.count === 0 || (tree.valueNs[0] ?? 0) <= 0)
    return (
      <Empty title={emptyTitle(reply.metric)}>
        {reply.metric === 'waiting'
          ? 'The GPU was never idle in this interval, or no GPU was recorded. For the host, choose Host threads above.'
          : 'Choose another metric above, or a larger area in the timeline.'}
      </Empty>
    );

  const labelOf = (node: number): string => frameLabel(tree, node, shortNames);
  const valueText = (node: number): string => formatDuration((layout.valueNs[node] ?? 0) / steps);
  const describe = (node: number): string => {
    const value = layout.valueNs[node] ?? 0;
    const parts = [
      `${formatDuration(value / steps)}${perStep ? ' per step' : ''}`,
      `${formatPct((100 * value) / Math.max(1, total))} of all`,
    ];
    const parent = tree.parent[node] ?? -1;
    if (parent > 0)
      parts.push(
        `${formatPct((100 * value) / Math.max(1, layout.valueNs[parent] ?? 1))} of its parent`,
      );
    parts.push(`${formatCount(tree.slices[node] ?? 0)} ×`);
    if (perStep) parts.push(`${formatDuration(value)} in total`);
    return parts.join(' · ');
  };
  return (
    <>
      <div class="flame-status num">
        <nav class="crumbs" aria-label="Focused frame">
          {pathTo(tree, layout.focus).map((node, index, path) => (
            <button
              key={node}
              type="button"
              class="crumb"
              aria-current={index === path.length - 1 ? 'true' : 'false'}
              title={tree.name[node] ?? ''}
              onClick={() => (flameFocus.value = node)}
            >
              {node === 0 ? `all ${valueText(0)}${perStep ? ' per step' : ''}` : labelOf(node)}
            </button>
          ))}
        </nav>
        {dropped.length > 0 && (
          <button
            type="button"
            class="button button-quiet"
            onClick={() => (flameDropped.value = [])}
          >
            restore {plural(dropped.length, 'dropped frame')}
          </button>
        )}
        {!match && layout.focus === 0 && dropped.length === 0 && flameForm.value === 'graph' && (
          <span class="faint flame-hint">click: focus · Shift + click: drop</span>
        )}
        {match && (
          <span role="status" data-testid="flame-match">
            {match.frames === 0
              ? 'no frames match'
              : `${plural(match.frames, 'frame')}: ${formatDuration(match.totalNs / steps)}${
                  perStep ? ' per step' : ''
                }, ${formatPct((100 * match.totalNs) / Math.max(1, total))}`}
          </span>
        )}
      </div>
      {flameForm.value === 'table' ? (
        <FlameTable
          tree={tree}
          layout={layout}
          steps={steps}
          perStep={perStep}
          filter={text}
          labelOf={labelOf}
        />
      ) : (
        <FlameCanvas
          tree={tree}
          layout={layout}
          match={match}
          labelOf={labelOf}
          valueText={valueText}
          describe={describe}
          onFocus={node => (flameFocus.value = node)}
          onDrop={node => {
            if (node > 0) flameDropped.value = [...flameDropped.value, node];
          }}
          onReset={() => show({flameFocus: 0, flameDropped: []})}
        />
      )}
    </>
  );
}

function emptyTitle(metric: string): string {
  if (metric === 'waiting') return 'No waiting here';
  if (metric === 'gpu') return 'No GPU time here';
  return 'No time of host threads here';
}

const TABLE_ROWS_MAX = 500;

function FlameTable(props: {
  tree: FlameTree;
  layout: FlameLayout;
  steps: number;
  perStep: boolean;
  filter: string;
  labelOf: (node: number) => string;
}): JSX.Element {
  const {tree, layout, steps} = props;
  const all = useMemo(() => tableOf(tree, layout), [tree, layout]);
  const wanted = props.filter.trim().toLowerCase();
  const rows = all.filter(row => row.name.toLowerCase().includes(wanted));
  const total = Math.max(1, layout.valueNs[0] ?? 1);
  return (
    <div class="flame-table-box">
      <table class="flame-table">
        <thead>
          <tr>
            <th scope="col">frame</th>
            <th scope="col">kind</th>
            <th scope="col" class="cell-num" title="Time in the frame itself, without its children">
              self{props.perStep ? ' per step' : ''}
            </th>
            <th scope="col" class="cell-num" title="Time in the frame and its children">
              total{props.perStep ? ' per step' : ''}
            </th>
            <th scope="col" class="cell-num">
              of all
            </th>
            <th scope="col" class="cell-num">
              count
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, TABLE_ROWS_MAX).map(row => (
            <tr key={row.name}>
              <th scope="row">
                <span class="flame-name">
                  <button
                    type="button"
                    class="plain-link break"
                    title={`${row.name}: its widest frame in the graph`}
                    onClick={() => show({flameForm: 'graph', flameFocus: row.node})}
                  >
                    {props.labelOf(row.node)}
                  </button>
                  {row.kind === 'kernel' && props.labelOf(row.node) !== row.name && (
                    <span class="kernel-full ellipsis" title={row.name}>
                      {row.name.replace(/^void /, '')}
                    </span>
                  )}
                </span>
              </th>
              <td class="muted">{word('slice_kinds', row.kind).label}</td>
              <td class="num cell-num" title={exactNs(row.selfNs)}>
                {formatDuration(row.selfNs / steps)}
              </td>
              <td class="num cell-num" title={exactNs(row.totalNs)}>
                {formatDuration(row.totalNs / steps)}
              </td>
              <td class="num cell-num">{formatPct((100 * row.totalNs) / total)}</td>
              <td class="num cell-num">{formatCount(row.slices)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > TABLE_ROWS_MAX && (
        <p class="muted">
          {formatCount(rows.length - TABLE_ROWS_MAX)} names with less time are not shown; use Find
          to narrow the list.
        </p>
      )}
      {rows.length === 0 && <Empty title="No frames match" />}
    </div>
  );
}
