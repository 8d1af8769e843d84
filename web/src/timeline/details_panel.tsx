// What is selected, in full: a slice, a gap or an area.
import type {ComponentChildren, JSX} from 'preact';
import type {GapInfo, SliceInfo} from '../api/types';
import {CAUSES, CAUSE_STYLES, causeStyle} from '../base/causes';
import {
  exactNs,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatPct,
  tidyText,
} from '../base/format';
import {page, selection, type Selection} from '../model/view_state';
import {CopyButton} from '../ui/copy_button';
import {Chip, topicOf} from '../ui/cause_mark';
import {IconClose} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {Failed, Loading} from '../ui/states';
import type {Navigator} from './input/navigate';
import {trackLabel} from './data/rows';
import {timesText} from './tooltip';
import type {TimelineModel} from './data/timeline_model';

interface Props {
  readonly model: TimelineModel;
  readonly navigator: Navigator;
}

export function DetailsPanel(props: Props & {readonly hasStage: boolean}): JSX.Element {
  const sel = selection.value;
  return (
    <aside
      class={`tl-details${sel ? '' : ' tl-details-idle'}`}
      aria-label="Details of the selection"
    >
      {sel === undefined ? (
        <Hint model={props.model} />
      ) : (
        <>
          <button
            type="button"
            class="tl-button tl-close"
            aria-label="Clear the selection"
            title="Clear the selection (Esc)"
            onClick={() => props.navigator.run('clear')}
          >
            <IconClose />
          </button>
          <Selected {...props} sel={sel} />
        </>
      )}
    </aside>
  );
}

function Hint({model}: {model: TimelineModel}): JSX.Element {
  const hasGaps = model.tracks.tracks.some(t => t.kind === 'gaps' && t.count > 0);
  return (
    <p class="tl-hint">
      {hasGaps && (
        <>
          <kbd>G</kbd> goes to the longest gap.{' '}
        </>
      )}
      Click a slice for its details, drag to select an area, <kbd>W</kbd> <kbd>A</kbd> <kbd>S</kbd>{' '}
      <kbd>D</kbd> to move, <kbd>?</kbd> for all keys.
    </p>
  );
}

function Selected({model, navigator, sel}: Props & {sel: NonNullable<Selection>}): JSX.Element {
  switch (sel.kind) {
    case 'gap':
      return <GapDetails model={model} navigator={navigator} sel={sel} />;
    case 'area':
      if (model.gap.value) {
        const {device} = model.gap.value;
        const gap = {kind: 'gap', device, t0: sel.t0, t1: sel.t1} as const;
        return <GapDetails model={model} navigator={navigator} sel={gap} />;
      }
      return <AreaDetails model={model} navigator={navigator} t0={sel.t0} t1={sel.t1} />;
    case 'slice':
      return <SliceSelected model={model} navigator={navigator} />;
  }
}

function SliceSelected({model, navigator}: Props): JSX.Element {
  const state = model.slice.value;
  if (state.kind === 'error') {
    return <Failed title="This slice cannot be shown" text={state.text} />;
  }
  if (state.kind !== 'ready') return <Loading what="the slice" />;
  return <SliceDetails model={model} navigator={navigator} slice={state.slice} link={state.link} />;
}

function Fact({name, children}: {name: string; children: ComponentChildren}): JSX.Element {
  return (
    <div class="tl-fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const timeFact = (ns: number): JSX.Element => (
  <span title={exactNs(ns)}>{formatDuration(ns, 4)}</span>
);

function SliceDetails(props: Props & {slice: SliceInfo; link: SliceInfo | undefined}): JSX.Element {
  const {model, navigator, slice, link} = props;
  const track = model.track(slice.track);
  const step = model.steps.at(slice.start_ns);
  const t1 = slice.start_ns + slice.dur_ns;
  const shown = slice.short !== '' && slice.short !== slice.name ? slice.short : undefined;
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          {shown ?? slice.name}
          <CopyButton text={slice.name} label="Copy the full name" />
        </h2>
        <div class="tl-actions">
          {slice.link !== undefined && (
            <button type="button" class="tl-button" onClick={() => navigator.run('link')}>
              {slice.kind === 'api' ? 'to what it launched' : 'to its launch'} <kbd>L</kbd>
            </button>
          )}
          {(slice.loader?.batch ?? -1) >= 0 && (
            <button
              type="button"
              class="tl-button"
              title="From the worker to who waits for it, and round again; Shift B: the next batch"
              onClick={() => navigator.run('batch')}
            >
              follow the batch <kbd>B</kbd>
            </button>
          )}
          {slice.prev !== undefined && (
            <button
              type="button"
              class="tl-button"
              title="The slice of this name before it in the row"
              onClick={() => navigator.goToSlice(slice.prev ?? 0, undefined)}
            >
              {'\u2039'} same name
            </button>
          )}
          {slice.next !== undefined && (
            <button
              type="button"
              class="tl-button"
              title="The slice of this name after it in the row"
              onClick={() => navigator.goToSlice(slice.next ?? 0, undefined)}
            >
              same name {'\u203a'}
            </button>
          )}
          {slice.parent !== undefined && (
            <button
              type="button"
              class="tl-button"
              onClick={() => navigator.run('slice-up')}
              title="Select the slice around this one (Up)"
            >
              around it
            </button>
          )}
          <AreaActions
            model={model}
            navigator={navigator}
            t0={slice.start_ns}
            t1={t1}
            {...(track?.kind === 'stream' ? {metric: 'gpu' as const} : {})}
          />
        </div>
      </header>
      {shown !== undefined && <p class="tl-full-name">{slice.name}</p>}
      <dl class="tl-facts">
        <Fact name="duration">
          <strong>{timeFact(slice.dur_ns)}</strong>{' '}
          <CopyButton text={String(slice.dur_ns)} label="Copy the duration in ns" />
        </Fact>
        <Fact name="starts at">
          {timeFact(slice.start_ns)}{' '}
          <CopyButton text={String(slice.start_ns)} label="Copy the start in ns" />
        </Fact>
        <Fact name="kind">{slice.kind.replaceAll('_', ' ')}</Fact>
        {track && <Fact name="row">{trackLabel(model.tracks, track).label}</Fact>}
        {step && step.dur > 0 && slice.kind !== 'step' && (
          <Fact name="share of the step">
            {formatPct((100 * slice.dur_ns) / step.dur)} of {step.name || `step ${step.index}`}
          </Fact>
        )}
        {slice.same_name && (
          <Fact name="of this name">
            {formatCount(slice.same_name.count)} times, {timeFact(slice.same_name.total_ns)}
            {slice.same_name.per_step !== undefined && `, ${timesText(slice.same_name.per_step)}`}
          </Fact>
        )}
        <KernelFacts slice={slice} />
        <CopyFacts slice={slice} />
        <LoaderFacts slice={slice} />
        {link && <LinkFact model={model} slice={slice} link={link} />}
        {slice.corr !== 0 && <Fact name="correlation">{slice.corr}</Fact>}
        {slice.children > 0 && (
          <Fact name="inside it">
            {slice.children === 1 ? '1 slice' : `${formatCount(slice.children)} slices`}
          </Fact>
        )}
      </dl>
      <Args args={slice.args} />
    </>
  );
}

const shapeText = (sizes: readonly number[]): string => sizes.map(formatCount).join(' \u00d7 ');

function KernelFacts({slice}: {slice: SliceInfo}): JSX.Element | null {
  const {kernel} = slice;
  if (!kernel) return null;
  return (
    <>
      {kernel.grid.length > 0 && <Fact name="grid">{shapeText(kernel.grid)}</Fact>}
      {kernel.block.length > 0 && <Fact name="block">{shapeText(kernel.block)}</Fact>}
      {kernel.registers !== undefined && <Fact name="registers">{kernel.registers} a thread</Fact>}
      {kernel.shared_memory_bytes !== undefined && (
        <Fact name="shared memory">{formatBytes(kernel.shared_memory_bytes)}</Fact>
      )}
      {kernel.occupancy_pct !== undefined && (
        <Fact name="occupancy">{formatPct(kernel.occupancy_pct)} estimated</Fact>
      )}
    </>
  );
}

function CopyFacts({slice}: {slice: SliceInfo}): JSX.Element | null {
  const {copy} = slice;
  if (!copy) return null;
  const path = [copy.src, copy.dst].filter(text => text !== '').join(' \u2192 ');
  return (
    <>
      {copy.kind !== '' && (
        <Fact name="copy">{path === '' ? copy.kind : `${copy.kind}, ${path}`}</Fact>
      )}
      {copy.bytes !== undefined && <Fact name="size">{formatBytes(copy.bytes)}</Fact>}
      {copy.gb_per_s !== undefined && copy.gb_per_s > 0 && (
        <Fact name="rate">{formatNumber(copy.gb_per_s)} GB/s</Fact>
      )}
    </>
  );
}

function LoaderFacts({slice}: {slice: SliceInfo}): JSX.Element | null {
  const {loader} = slice;
  if (!loader) return null;
  return (
    <>
      {loader.batch !== undefined && <Fact name="batch">{loader.batch}</Fact>}
      {loader.worker !== undefined && loader.worker >= 0 && (
        <Fact name="worker">{loader.worker}</Fact>
      )}
      {loader.cpu_ns !== undefined && <Fact name="on a core">{timeFact(loader.cpu_ns)}</Fact>}
    </>
  );
}

/** The other end of a launch, and how long it took from call to start. */
function LinkFact(props: {model: TimelineModel; slice: SliceInfo; link: SliceInfo}): JSX.Element {
  const {model, slice, link} = props;
  const isLaunch = slice.kind === 'api';
  const [call, work] = isLaunch ? [slice, link] : [link, slice];
  const track = model.track(link.track);
  const row = track ? trackLabel(model.tracks, track).label : '';
  return (
    <>
      <Fact name={isLaunch ? 'launched' : 'launched by'}>
        {link.short || link.name} <span class="tl-muted">{row}</span>
      </Fact>
      <Fact name="from call to start">{timeFact(work.start_ns - call.start_ns)}</Fact>
    </>
  );
}

function argText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function Args({args}: {args: Readonly<Record<string, unknown>>}): JSX.Element | null {
  const entries = Object.entries(args);
  if (entries.length === 0) return null;
  return (
    <details class="tl-args" open={entries.length <= 12}>
      <summary>
        {formatCount(entries.length)} more {entries.length === 1 ? 'field' : 'fields'}, as recorded{' '}
        <CopyButton text={JSON.stringify(args, undefined, 2)} label="Copy all as JSON" />
      </summary>
      <dl class="tl-facts">
        {entries.map(([name, value]) => (
          <Fact key={name} name={name}>
            <span class="tl-arg">{argText(value)}</span>
          </Fact>
        ))}
      </dl>
    </details>
  );
}

function AreaActions(
  props: Props & {t0: number; t1: number; metric?: 'gpu' | 'waiting'},
): JSX.Element {
  const {model, navigator, t0, t1, metric} = props;
  const isArea = selection.value?.kind === 'area';
  const from = Math.floor(t0);
  const to = Math.max(from + 1, Math.ceil(t1));
  const area: Selection = {
    kind: 'area',
    t0: from as NonNullable<typeof model.trace.duration_ns>,
    t1: to as NonNullable<typeof model.trace.duration_ns>,
  };
  return (
    <>
      <button type="button" class="tl-button" onClick={() => navigator.zoomTo({t0, t1})}>
        zoom to it
      </button>
      {!isArea && (
        <button
          type="button"
          class="tl-button"
          title="Select its time as an area (M)"
          onClick={() => navigator.run('mark')}
        >
          as area
        </button>
      )}
      <ViewLink
        class="tl-button"
        view={{page: 'flame', selection: area, ...(metric ? {flameMetric: metric} : {})}}
      >
        flame graph of {isArea ? 'this area' : 'its time'}
      </ViewLink>
    </>
  );
}

function AreaDetails({model, navigator, t0, t1}: Props & {t0: number; t1: number}): JSX.Element {
  const dur = t1 - t0;
  const inside = model.steps.all.filter(s => s.start < t1 && s.start + s.dur > t0);
  const step = model.steps.at(t0);
  const mean = model.analysis?.steps.mean_ns;
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          Area of {formatDuration(dur, 4)}
          <CopyButton text={String(dur)} label="Copy the length in ns" />
        </h2>
        <div class="tl-actions">
          <AreaActions model={model} navigator={navigator} t0={t0} t1={t1} />
        </div>
      </header>
      <dl class="tl-facts">
        <Fact name="from">{timeFact(t0)}</Fact>
        <Fact name="to">{timeFact(t1)}</Fact>
        {mean !== undefined && mean > 0 && (
          <Fact name="in steps">{formatNumber(dur / mean, 3)} of the mean step</Fact>
        )}
        {inside.length > 0 && (
          <Fact name="touches">
            {inside.length === 1
              ? inside[0]?.name || 'one step'
              : `${formatCount(inside.length)} steps${step?.name ? `, from ${step.name}` : ''}`}
          </Fact>
        )}
      </dl>
    </>
  );
}

function GapDetails(
  props: Props & {sel: Extract<NonNullable<Selection>, {kind: 'gap'}>},
): JSX.Element {
  const {model, navigator, sel} = props;
  const gap = model.gap.value;
  const dur = sel.t1 - sel.t0;
  const step = model.steps.at(sel.t0);
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          {gap && <Chip topic={topicOf(gap.cause)} />}
          GPU {sel.device} waits {formatDuration(dur, 3)}
          {gap && ` ${causeStyle(gap.cause).words}`}
        </h2>
        <div class="tl-actions">
          <GapActions model={model} navigator={navigator} gap={gap} />
          <AreaActions
            model={model}
            navigator={navigator}
            t0={sel.t0}
            t1={sel.t1}
            metric="waiting"
          />
        </div>
      </header>
      {gap ? (
        <Pieces gap={gap} />
      ) : (
        <p class="tl-muted">The causes of this interval are not among the gaps of 10 µs or more.</p>
      )}
      <dl class="tl-facts">
        {gap?.root_cause !== undefined && gap.root_cause !== '' && (
          <Fact name="why">{tidyText(gap.root_cause)}</Fact>
        )}
        {gap?.per_step !== undefined && <Fact name="how often">{timesText(gap.per_step)}</Fact>}
        <Fact name="starts at">{timeFact(sel.t0)}</Fact>
        {step && (
          <Fact name="in">
            {step.name || `step ${step.index}`}
            {step.dur > 0 && `, ${formatPct((100 * dur) / step.dur)} of it`}
          </Fact>
        )}
        <Fact name="duration">
          {timeFact(dur)} <CopyButton text={String(dur)} label="Copy the duration in ns" />
        </Fact>
      </dl>
    </>
  );
}

/** The parts of a gap by cause, as a bar and in words. */
function Pieces({gap}: {gap: GapInfo}): JSX.Element {
  const pieces = CAUSES.map(cause => ({cause, ns: gap.cause_ns[cause] ?? 0}))
    .filter(piece => piece.ns > 0)
    .sort((a, b) => b.ns - a.ns);
  return (
    <div class="tl-pieces">
      <div class="tl-pieces-bar" aria-hidden="true">
        {pieces.map(({cause, ns}) => (
          <span
            key={cause}
            class={`cause-${cause} tl-piece`}
            style={{width: `${(100 * ns) / gap.dur_ns}%`}}
          />
        ))}
      </div>
      <ul>
        {pieces.map(({cause, ns}) => (
          <li key={cause}>
            <Chip topic={topicOf(cause)} /> {formatDuration(ns)} {CAUSE_STYLES[cause].words}
          </li>
        ))}
      </ul>
    </div>
  );
}

const FINDING_OF_CAUSE: Readonly<Record<string, readonly string[]>> = {
  data_wait: ['input-starvation'],
  sync: ['sync-stall'],
  launch: ['launch-bound'],
  copy_wait: ['pageable-copy', 'blocking-copy'],
  allocator: ['allocator-thrash'],
  module_load: ['module-load'],
  comm: ['exposed-communication', 'straggler-rank'],
  dependency: ['dependency-stall'],
  host: ['host-single-thread', 'cpu-oversubscription', 'launch-bound'],
  profiler: ['profiler-overhead'],
};

function GapActions({model, navigator, gap}: Props & {gap: GapInfo | undefined}): JSX.Element {
  const ids = gap ? (FINDING_OF_CAUSE[gap.cause] ?? []) : [];
  const finding = model.analysis?.findings.find(f => ids.includes(f.id));
  const batch = model.chain.value[1];
  return (
    <>
      <button type="button" class="tl-button" onClick={() => void navigator.gap(1, true)}>
        next gap like this <kbd>Alt G</kbd>
      </button>
      {gap?.ended_by !== undefined && (
        <button
          type="button"
          class="tl-button"
          onClick={() => navigator.goToSlice(gap.ended_by ?? 0, undefined)}
        >
          what ended it
        </button>
      )}
      {batch && (
        <button
          type="button"
          class="tl-button"
          onClick={() => navigator.goToSlice(batch.id, undefined)}
        >
          the batch that was late
        </button>
      )}
      {gap && (
        <button
          type="button"
          class="tl-button"
          onClick={() => void navigator.hostDuring(gap.start_ns, gap.start_ns + gap.dur_ns)}
        >
          what the host did
        </button>
      )}
      {finding && (
        <ViewLink
          class="tl-button"
          view={{page: page.value === 'timeline' ? 'overview' : page.value}}
        >
          <span class="tl-clip">finding: {finding.title || finding.id}</span>
        </ViewLink>
      )}
    </>
  );
}
