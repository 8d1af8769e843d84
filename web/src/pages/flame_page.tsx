// The flame graph of a trace or of the selected area: what the GPU's time, its waiting or the
// host's time went to.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {foldedUrl, getFlame, getTable, getTracks, type FlameQuery} from '../api/client';
import type {FlameReply, TraceInfo, TracksInfo} from '../api/types';
import {
  type Amount,
  exactNs,
  formatAmount,
  formatCount,
  formatDuration,
  formatPct,
  plural,
} from '../base/format';
import {FlameCanvas} from '../flame/flame_canvas';
import {frameLabel, toneColor} from '../flame/flame_painter';
import {
  callersOf,
  calleesOf,
  differenceOf,
  foldChains,
  invertTree,
  toneOf,
  type FlameDifference,
} from '../model/flame_shapes';
import {ALL_TIME, MEASURED, usualSteps} from '../model/flame_steps';
import {
  buildTree,
  isSummed,
  layoutTree,
  pathTo,
  searchTree,
  type FlameLayout,
  type FlameTree,
} from '../model/flame_tree';
import {loadKernels, shortNamesOf} from '../model/kernel_table';
import {hasGpuWork, loopUnit} from '../model/list_rows';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {resolvedTheme} from '../model/theme';
import {traceById, traces} from '../model/traces';
import {
  flameBy,
  flameDetail,
  flameDropped,
  flameFocus,
  flameFold,
  flameForm,
  flameMetric,
  flameOf,
  flameOrder,
  flameShape,
  flameSteps,
  flameTracks,
  flameWith,
  query,
  selection,
  show,
} from '../model/view_state';
import {IconClose, IconSearch} from '../ui/icons';
import {trackLabel} from '../timeline/data/rows';
import {ViewLink} from '../ui/link';
import {latest, useResource} from '../ui/resource';
import {Empty, StandIn} from '../ui/states';
import {FlameTable, type NameDelta} from './flame_table';
import {StepsNote} from './steps_note';

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
  {key: 'copies', label: 'Copies', definition: 'Copies alone, under what launched them'},
  {
    key: 'memory',
    label: 'GPU memory',
    definition: 'Bytes allocated, under what allocated them; releases take nothing off',
  },
  {
    key: 'cpu',
    label: 'Host threads',
    definition: 'Summed over threads, so it may exceed the recording; without those that only wait',
  },
] as const;

const PROFILE_METRIC = {
  key: 'profile',
  label: 'Profile',
  definition: 'Stacks of the profiles without times that were joined to this trace',
} as const;

const BYS = [
  {key: 'op', label: 'operator', definition: 'Operators and ranges'},
  {key: 'range', label: 'range', definition: 'Annotated ranges only'},
  {key: 'kernel', label: 'kernel', definition: 'Kernels or causes only'},
  {
    key: 'python',
    label: 'Python',
    definition:
      'Python functions, operators and ranges; in recordings of Lacuna, samples by line, each 20 ms',
  },
  {
    key: 'module',
    label: 'module',
    definition: 'Modules of the model, and annotated ranges',
  },
] as const;

/** What an address says may be anything. */
function known(choices: readonly {key: string}[], key: string): string | undefined {
  return choices.find(choice => choice.key === key)?.key;
}

export function FlamePage({trace}: {trace: TraceInfo}): JSX.Element {
  const hasProfile = trace.import_report?.lines.some(l => l.code.startsWith('joined_profile'));
  const metrics = hasProfile ? [...METRICS, PROFILE_METRIC] : METRICS;
  const metric = known(metrics, flameMetric.value) ?? (hasGpuWork(trace) ? 'waiting' : 'cpu');
  const by = known(BYS, flameBy.value) ?? 'op';
  const chosen = selection.value;
  const steps = flameSteps.value;
  const shown = steps === '' ? usualSteps(trace) : steps;
  const otherId = flameWith.value;
  // an area is of one trace: a difference is of all of both, or of the same steps
  const isArea =
    steps === '' && otherId === '' && (chosen?.kind === 'area' || chosen?.kind === 'gap');
  const area = isArea ? chosen : undefined;
  const asked: FlameQuery = {
    metric,
    by,
    detail: flameDetail.value === 'full' ? 'full' : undefined,
    // a profile without times lies in no step
    steps: area || shown === ALL_TIME || metric === 'profile' ? undefined : shown,
    tracks: flameTracks.value === '' ? undefined : flameTracks.value,
    order: flameOrder.value === 'time' && otherId === '' ? 'time' : undefined,
    ...(area ? {t0: Math.max(0, Math.floor(area.t0)), t1: Math.ceil(area.t1)} : {}),
  };
  const key = [trace.id, trace.generation, ...Object.values(asked)].join('/');
  const second = useResource(otherId === '' ? undefined : `${otherId}/${key}`, async signal =>
    getFlame(
      otherId,
      {
        metric,
        by,
        detail: asked.detail,
        steps: asked.steps,
        tracks: await sameRows(trace.id, otherId, asked, signal),
      },
      signal,
    ),
  );
  const flame = useResource(key, signal => getFlame(trace.id, asked, signal));
  const lacking = useLacking(trace);
  const kernels = useResource(`${trace.id}/${trace.generation}`, () =>
    loadKernels(trace.id, trace.generation),
  );
  const shortNames = useMemo(() => shortNamesOf(latest(kernels)), [kernels]);
  const reply = latest(flame);
  const unit = loopUnit(trace.summary) ?? 'step';
  return (
    <main class="page page-full page-flame">
      <div class="tools">
        <Choice
          label="Metric"
          options={metrics}
          value={metric}
          onChoose={value => show({...ANEW, flameMetric: value, flameTracks: ''})}
        />
        <Choice
          label="By"
          prefix="by"
          options={BYS}
          value={by}
          lacking={lacking}
          onChoose={value => show({...ANEW, flameBy: value})}
        />
        <AreaNote area={area} reply={reply} trace={trace} unit={unit} />
        <Parts trace={trace} metric={metric} />
        <span class="spacer" />
        <Search />
      </div>
      <StandIn keeps of={flame} what="the flame graph" />
      {reply && flame.kind !== 'error' && (
        <div class={`flame-wrap ${flame.kind === 'loading' ? 'is-stale' : ''}`}>
          {second.kind === 'error' && otherId !== '' && (
            <p class="error-text flame-problem" role="alert">
              The other trace cannot be shown: {second.text}
            </p>
          )}
          {otherId !== '' && <Legend trace={trace} other={otherId} />}
          <Flame
            reply={reply}
            other={otherId !== '' && second.kind === 'ready' ? second.value : undefined}
            shapes={
              <div class="flame-shapes">
                <Shapes by={by} other={otherId} trace={trace} />
                <a
                  class="button button-quiet"
                  href={foldedUrl(trace.id, {...asked, order: undefined})}
                  download={`${trace.name}.folded.txt`}
                  title="This graph as folded stacks, which other tools read"
                >
                  Download
                </a>
              </div>
            }
            shortNames={shortNames}
            isFolded={isFolded(by)}
            unit={unit}
            isStale={flame.kind === 'loading'}
          />
        </div>
      )}
    </main>
  );
}

/** A frame has another number in another graph. */
const ANEW = {flameFocus: 0, flameDropped: [] as readonly number[]} as const;

/** Of a difference: which trace is A, which is B, and what the colors mean. */
function Legend({trace, other}: {trace: TraceInfo; other: string}): JSX.Element {
  const isDark = resolvedTheme.value === 'dark';
  const name = traceById(other)?.name ?? other;
  return (
    <div class="flame-legend" data-testid="flame-legend">
      <span class="ellipsis" title={name}>
        <b>A</b> {name}
      </span>
      <span class="ellipsis" title={trace.name}>
        <b>B</b> {trace.name} (this trace)
      </span>
      <ViewLink view={{...ANEW, traceId: other, flameWith: trace.id, flameTracks: ''}}>
        Swap A and B
      </ViewLink>
      <span class="spacer" />
      <span class="flame-tone">
        <i style={{background: toneColor(1, isDark)}} /> more in B
      </span>
      <span class="flame-tone">
        <i style={{background: toneColor(-1, isDark)}} /> less in B
      </span>
    </div>
  );
}

/** Why frames of a kind cannot be had. */
function useLacking(trace: TraceInfo): Readonly<Record<string, string>> {
  const key = `${trace.id}/${trace.generation}`;
  const found = useResource(key, async signal => {
    const [all, modules] = await Promise.all(
      ['', 'nn.Module: '].map(q => getTable(trace.id, 'python', {q, limit: 1}, signal)),
    );
    return {python: all?.total ?? 0, modules: modules?.total ?? 0};
  });
  if (found.kind !== 'ready') return {};
  return {
    ...(found.value.python === 0 && {python: /* text */ 'Not recorded: profile(with_stack=True)'}),
    ...(found.value.modules === 0 && {
      module: /* text */ 'Not recorded: profile(with_stack=True, with_modules=True)',
    }),
  };
}

function isOfStreams(metric: string): boolean {
  return metric === 'gpu' || metric === 'copies';
}

/** Which rows hold the time of a metric. */
function rowsOf(info: TracksInfo, metric: string): readonly {id: string; label: string}[] {
  const kind = metric === 'waiting' ? 'gaps' : isOfStreams(metric) ? 'stream' : 'thread';
  return info.tracks
    .filter(track => track.kind === kind && track.count > 0)
    .map(track => ({id: String(track.index), label: trackLabel(info, track).label}));
}

/** The rows of the other trace that are called as those chosen in this one. */
async function sameRows(
  id: string,
  otherId: string,
  {metric, tracks}: FlameQuery,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (tracks === undefined) return undefined;
  const [own, others] = await Promise.all(
    [id, otherId].map(async each => rowsOf(await getTracks(each, signal), metric)),
  );
  const chosen = new Set(tracks.split(','));
  const names = own?.filter(row => chosen.has(row.id)).map(row => row.label) ?? [];
  const same = others?.filter(row => names.includes(row.label)).map(row => row.id) ?? [];
  if (same.length === 0) throw new Error(`it has no row “${names.join(', ')}”`);
  return same.join(',');
}

/** Of which steps, and of which stream, device or thread. */
function Parts({trace, metric}: {trace: TraceInfo; metric: string}): JSX.Element {
  const tracks = useResource(`${trace.id}/${trace.generation}`, signal =>
    getTracks(trace.id, signal),
  );
  const info = tracks.kind === 'ready' ? tracks.value : undefined;
  const rows = info ? rowsOf(info, metric) : [];
  const count = info?.steps.start_ns.length ?? 0;
  const typed = [ALL_TIME, MEASURED].includes(flameSteps.value) ? '' : flameSteps.value;
  const set = (text: string): void => {
    const value = text.replace(/\s/g, '');
    if (value !== typed) show({...ANEW, flameSteps: value});
  };
  return (
    <>
      {(count > 1 || typed !== '') && (
        <input
          class="input flame-steps"
          aria-label="Steps"
          title={`Only these steps, as in 2,5-9: there are ${count}, the first is 0`}
          placeholder="2,5-9"
          value={typed}
          onChange={event => set(event.currentTarget.value)}
        />
      )}
      {(rows.length > 1 || flameTracks.value !== '') && metric !== 'profile' && (
        <select
          class="input list-choice flame-other"
          aria-label="Row"
          title="Only this row"
          value={flameTracks.value}
          onChange={event => show({...ANEW, flameTracks: event.currentTarget.value})}
        >
          <option value="">
            {isOfStreams(metric)
              ? 'all streams'
              : metric === 'waiting'
                ? 'all GPUs'
                : 'all threads'}
          </option>
          {flameTracks.value !== '' && !rows.some(row => row.id === flameTracks.value) && (
            <option value={flameTracks.value}>rows {flameTracks.value}</option>
          )}
          {rows.map(row => (
            <option key={row.id} value={row.id}>
              {row.label}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

/** Stacks of Python begin with frames that all of them share: there, chains are folded unless
 *  somebody unfolds them. */
function isFolded(by: string): boolean {
  return flameFold.value === '' ? by === 'python' : flameFold.value === '1';
}

const OTHERS_MAX = 200;
const FORMS = [
  {key: 'graph', label: 'Graph'},
  {key: 'both', label: 'Both'},
  {key: 'table', label: 'Table'},
] as const;

/** How the same graph is shown. */
function Shapes(props: {by: string; other: string; trace: TraceInfo}): JSX.Element {
  const others = traces.value
    .filter(
      // a log of counters has no flame graph
      each => each.id !== props.trace.id && each.state === 'ready' && each.slice_count > 0,
    )
    .slice(0, OTHERS_MAX);
  const anew = {...ANEW, flameOf: ''};
  const folded = isFolded(props.by);
  return (
    <>
      {props.other === '' && (
        <>
          <button
            type="button"
            class="button button-quiet"
            title="Read each stack from its end: what ran, then who called it"
            aria-pressed={flameShape.value === 'inverted'}
            onClick={() =>
              show({...anew, flameShape: flameShape.value === 'inverted' ? '' : 'inverted'})
            }
          >
            Invert
          </button>
          <button
            type="button"
            class="button button-quiet"
            title="From left to right in the order of time, instead of the widest first (1, 2)"
            aria-pressed={flameOrder.value === 'time'}
            onClick={() => show({...anew, flameOrder: flameOrder.value === 'time' ? '' : 'time'})}
          >
            In time
          </button>
          <button
            type="button"
            class="button button-quiet"
            title="Merge frames whose whole time is in their only child"
            aria-pressed={folded}
            onClick={() => show({...anew, flameFold: folded ? '0' : '1'})}
          >
            Fold
          </button>
        </>
      )}
      {others.length > 0 && (
        <select
          class="input list-choice flame-other"
          aria-label="Difference with another trace"
          title="Difference with another trace: it is A, this one is B"
          value={props.other}
          onChange={event => show({...anew, flameWith: event.currentTarget.value})}
        >
          <option value="">difference with…</option>
          {others.map(each => (
            <option key={each.id} value={each.id}>
              {each.name}
            </option>
          ))}
        </select>
      )}
      <div class="segmented" role="group" aria-label="Form">
        {FORMS.map(form => (
          <button
            key={form.key}
            type="button"
            aria-pressed={flameForm.value === form.key}
            onClick={() => (flameForm.value = form.key)}
          >
            {form.label}
          </button>
        ))}
      </div>
    </>
  );
}

function Choice<K extends string>(props: {
  label: string;
  prefix?: string;
  options: readonly {readonly key: K; readonly label: string; readonly definition: string}[];
  value: string;
  /** Why some cannot be chosen. */
  lacking?: Readonly<Record<string, string>>;
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
            title={props.lacking?.[option.key] ?? option.definition}
            disabled={props.lacking?.[option.key] !== undefined && option.key !== props.value}
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
  trace: TraceInfo;
  unit: string;
}): JSX.Element {
  const {area, reply, trace} = props;
  if (!area)
    return (
      <StepsNote
        trace={trace}
        steps={reply?.steps ?? 0}
        isWhole={reply !== undefined && reply.t0_ns <= 0 && reply.t1_ns >= trace.duration_ns}
        usual={usualSteps(trace)}
      />
    );
  return (
    <span class="area-note num">
      <ViewLink
        view={{page: 'timeline'}}
        title={`${exactNs(area.t0)} to ${exactNs(area.t1)}: show it in the timeline`}
      >
        selected {formatDuration(area.t1 - area.t0)} at {formatDuration(area.t0)}
      </ViewLink>
      {reply !== undefined && reply.steps > 0 && (
        <span class="muted">, {plural(reply.steps, props.unit)}</span>
      )}
      <button
        type="button"
        class="button button-quiet button-icon"
        title="Leave the selected area"
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
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (event.key === '1') show({...ANEW, flameOf: '', flameOrder: 'time'});
      else if (event.key === '2') show({...ANEW, flameOf: '', flameOrder: ''});
      else if (event.key === '/') {
        event.preventDefault();
        field.current?.focus();
      }
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Flame graph',
      shortcuts: [
        {keys: ['/'], text: 'search'},
        {keys: ['1'], text: 'in the order of time'},
        {keys: ['2'], text: 'the widest first'},
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

/** What a folded frame is called in the graph that it was folded in. */
const unfolded = (name: string): string => name.replace(/ \(\+\d+\)$/, '');

/** The graph in the form that was chosen. */
function useShape(
  reply: FlameReply,
  other: FlameReply | undefined,
  isFolded: boolean,
): {readonly base: FlameTree; readonly tree: FlameTree; readonly difference?: FlameDifference} {
  const isInverted = flameShape.value === 'inverted';
  return useMemo(() => {
    const base = buildTree(reply.nodes);
    if (other) {
      const a = {tree: buildTree(other.nodes), steps: other.steps};
      const difference = differenceOf(a, {tree: base, steps: reply.steps});
      return {base: difference.tree, tree: difference.tree, difference};
    }
    const shaped = isInverted ? invertTree(base) : base;
    return {base, tree: isFolded ? foldChains(shaped) : shaped};
  }, [reply, other, isInverted, isFolded]);
}

function Flame(props: {
  reply: FlameReply;
  other: FlameReply | undefined;
  shortNames: ReadonlyMap<string, string>;
  isFolded: boolean;
  /** What is repeated: "step", "batch" or "iteration". */
  unit: string;
  /** Buttons for another form of it. */
  shapes: JSX.Element;
  /** A graph of another area or kind: the focused frame is not in it. */
  isStale: boolean;
}): JSX.Element {
  const {reply, shortNames} = props;
  const {base, tree, difference} = useShape(reply, props.other, props.isFolded);
  const focus = props.isStale ? 0 : flameFocus.value;
  const dropped = props.isStale ? NONE : flameDropped.value;
  const layout = useMemo(() => layoutTree(tree, focus, dropped), [tree, focus, dropped]);
  const text = query.value;
  const match = useMemo(() => searchTree(tree, layout, text), [tree, layout, text]);
  const steps = difference ? 1 : Math.max(1, reply.steps);
  const per = reply.steps > 0 ? ` per ${props.unit}` : '';
  const total = layout.valueNs[0] ?? 0;
  const deltas = useMemo(() => deltaByName(difference, layout), [difference, layout]);

  if (tree.count === 0 || (tree.valueNs[0] ?? 0) <= 0)
    return (
      <>
        <div class="flame-status">{props.shapes}</div>
        <Empty title={emptyTitle(reply.metric)}>
          {reply.metric === 'waiting'
            ? 'The GPU was never idle in this interval, or no GPU was recorded. For the host, choose Host threads above.'
            : 'Choose another metric above, or a larger area in the timeline.'}
        </Empty>
      </>
    );

  const labelOf = (node: number): string => frameLabel(tree, node, shortNames);
  const words = describer(tree, layout, {steps, per, difference, amount: reply});
  const center = (name: string): void => show({flameOf: unfolded(name)});
  const open = (node: number): void => {
    if (isSummed(tree.name[node] ?? ''))
      show({flameDetail: 'full', flameFocus: 0, flameDropped: []});
    else flameFocus.value = node;
  };
  const focused = layout.focus > 0 ? (tree.name[layout.focus] ?? '') : '';
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
              {node === 0 ? `all ${words.value(0)}${per}` : labelOf(node)}
            </button>
          ))}
        </nav>
        {focused !== '' && flameOf.value === '' && (
          <button type="button" class="button button-quiet" onClick={() => center(focused)}>
            callers and callees
          </button>
        )}
        {dropped.length > 0 && (
          <button
            type="button"
            class="button button-quiet"
            onClick={() => (flameDropped.value = [])}
          >
            restore {plural(dropped.length, 'dropped frame')}
          </button>
        )}
        {!match && layout.focus === 0 && dropped.length === 0 && flameForm.value !== 'table' && (
          <span class="faint flame-hint">click: focus · Shift + click: drop</span>
        )}
        {match && (
          <span role="status" data-testid="flame-match">
            {match.frames === 0
              ? 'no frames match'
              : `${plural(match.frames, 'frame')}: ${formatAmount(match.totalNs / steps, reply)}${
                  per
                }, ${formatPct((100 * match.totalNs) / Math.max(1, total))}`}
          </span>
        )}
        {props.shapes}
      </div>
      <div class={`flame-both flame-form-${flameForm.value}`}>
        {flameForm.value !== 'table' &&
          (flameOf.value === '' ? (
            <FlameCanvas
              tree={tree}
              layout={layout}
              match={match}
              labelOf={labelOf}
              valueText={words.value}
              describe={words.describe}
              toneOf={difference && (node => toneOf(difference, node))}
              onFocus={open}
              onDrop={node => {
                if (node > 0) flameDropped.value = [...flameDropped.value, node];
              }}
              onReset={() => show({flameFocus: 0, flameDropped: []})}
              onOpenRest={(parent, wide) =>
                show({flameFocus: parent, flameDropped: [...flameDropped.value, ...wide]})
              }
            />
          ) : (
            <Sandwich
              tree={base}
              name={flameOf.value}
              shortNames={shortNames}
              steps={steps}
              per={per}
              amount={reply}
            />
          ))}
        {flameForm.value !== 'graph' && (
          <FlameTable
            tree={tree}
            layout={layout}
            steps={steps}
            per={per}
            amount={reply}
            filter={text}
            labelOf={labelOf}
            onFocus={node => {
              open(node);
              if (flameForm.value === 'table' || flameOf.value !== '')
                show({flameForm: 'both', flameOf: ''});
            }}
            onCenter={center}
            deltas={deltas}
          />
        )}
      </div>
    </>
  );
}

interface Words {
  readonly value: (node: number) => string;
  readonly describe: (node: number) => string;
}

/** What a frame says of itself. */
function describer(
  tree: FlameTree,
  layout: FlameLayout,
  by: {
    steps: number;
    per: string;
    amount: Amount;
    difference?: FlameDifference | undefined;
  },
): Words {
  const {steps, per, difference, amount} = by;
  const total = Math.max(1, layout.valueNs[0] ?? 1);
  const value = (node: number): string => {
    if (!difference) return formatAmount((layout.valueNs[node] ?? 0) / steps, amount);
    const delta = (difference.bNs[node] ?? 0) - (difference.aNs[node] ?? 0);
    return `${delta > 0 ? '+' : ''}${formatAmount(delta, amount)}`;
  };
  const describe = (node: number): string => {
    if (difference) {
      const [a, b] = [difference.aNs[node] ?? 0, difference.bNs[node] ?? 0];
      return `${formatAmount(a, amount)} in A, ${formatAmount(b, amount)} in B${per}: ${value(node)}`;
    }
    const own = layout.valueNs[node] ?? 0;
    const parts = [
      `${formatAmount(own / steps, amount)}${per}`,
      `${formatPct((100 * own) / total)} of all`,
    ];
    const parent = tree.parent[node] ?? -1;
    if (parent > 0)
      parts.push(
        `${formatPct((100 * own) / Math.max(1, layout.valueNs[parent] ?? 1))} of its parent`,
      );
    parts.push(`${formatCount(tree.slices[node] ?? 0)} ×`);
    if (per !== '') parts.push(`${formatAmount(own, amount)} in total`);
    return parts.join(' · ');
  };
  return {value, describe};
}

/** Both sides of a name: of its outermost frames, so that recursion counts once. */
function deltaByName(
  difference: FlameDifference | undefined,
  layout: FlameLayout,
): ((name: string) => NameDelta) | undefined {
  if (!difference) return undefined;
  const {tree} = difference;
  const sums = new Map<string, {aNs: number; bNs: number; openTo: number}>();
  for (let i = 1; i < tree.count; i++) {
    if ((layout.valueNs[i] ?? 0) <= 0) continue;
    const name = tree.name[i] ?? '';
    const sum = sums.get(name) ?? {aNs: 0, bNs: 0, openTo: 0};
    if (i >= sum.openTo) {
      sum.aNs += difference.aNs[i] ?? 0;
      sum.bNs += difference.bNs[i] ?? 0;
      sum.openTo = tree.end[i] ?? i;
    }
    sums.set(name, sum);
  }
  return name => sums.get(name) ?? {aNs: 0, bNs: 0};
}

/** A name with all that called it above, and all that it called below. */
function Sandwich(props: {
  tree: FlameTree;
  name: string;
  shortNames: ReadonlyMap<string, string>;
  steps: number;
  per: string;
  amount: Amount;
}): JSX.Element {
  const {name} = props;
  const parts = useMemo(
    () =>
      [
        {title: 'Callers', tree: callersOf(props.tree, name)},
        {title: 'Callees', tree: calleesOf(props.tree, name)},
      ].map(part => ({...part, layout: layoutTree(part.tree, 0, NONE)})),
    [props.tree, name],
  );
  const all = Math.max(1, props.tree.valueNs[0] ?? 1);
  const own = parts[0]?.tree.valueNs[0] ?? 0;
  return (
    <div class="sandwich" data-testid="sandwich">
      <div class="flame-status">
        <span class="sandwich-name">
          <strong class="ellipsis" title={name}>
            {parts[0] && frameLabel(parts[0].tree, 0, props.shortNames)}
          </strong>
          <span class="num">
            {formatAmount(own / props.steps, props.amount)}
            {props.per}, {formatPct((100 * own) / all)} of all
          </span>
        </span>
        <button type="button" class="button button-quiet" onClick={() => show({flameOf: ''})}>
          back to the graph
        </button>
      </div>
      {own === 0 && <Empty title="No frames match" />}
      {parts.map(part => {
        if (own === 0) return null;
        const words = describer(part.tree, part.layout, props);
        return (
          <section
            key={part.title}
            class="sandwich-part"
            style={{flexGrow: part.tree.depthMax + 2}}
            aria-label={`${part.title} of ${name}`}
          >
            <h2>{part.title}</h2>
            <FlameCanvas
              tree={part.tree}
              layout={part.layout}
              match={undefined}
              name={`${part.title} of ${name}`}
              labelOf={node => frameLabel(part.tree, node, props.shortNames)}
              valueText={words.value}
              describe={words.describe}
              onFocus={node => show({flameOf: part.tree.name[node] ?? name})}
              onDrop={() => undefined}
              onReset={() => show({flameOf: ''})}
            />
          </section>
        );
      })}
    </div>
  );
}

function emptyTitle(metric: string): string {
  if (metric === 'waiting') return 'No waiting here';
  if (metric === 'gpu') return 'No GPU time here';
  if (metric === 'copies') return 'No copies here';
  if (metric === 'memory') return 'No allocations here';
  if (metric === 'profile') return 'No stacks here';
  return 'No time of host threads here';
}
