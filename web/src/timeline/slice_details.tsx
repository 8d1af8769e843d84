// A selected slice in full: its times, its launch, what was recorded of it.
import type {JSX} from 'preact';
import type {SliceInfo} from '../api/types';
import {
  NO_TIME,
  exactNs,
  formatAt,
  formatBytes,
  formatClock,
  formatCount,
  formatNumber,
  formatPct,
  formatPerStep,
  plural,
} from '../base/format';
import {word} from '../base/vocabulary';
import {CopyButton} from '../ui/copy_button';
import {Failed, Loading} from '../ui/states';
import {trackLabel} from './data/rows';
import {hasLink, type ReadySlice, type TimelineModel} from './data/timeline_model';
import {AreaActions, Fact, timeFact, type DetailsProps} from './details_parts';
import {SliceAround} from './slice_around';
import {StepDetails} from './step_details';

export function SliceSelected({model, navigator}: DetailsProps): JSX.Element {
  const state = model.slice.value;
  if (state.kind === 'error') {
    return <Failed title="This slice cannot be shown" text={state.text} />;
  }
  if (state.kind !== 'ready') return <Loading what="the slice" />;
  return <SliceDetails model={model} navigator={navigator} {...state} />;
}

function SliceDetails(props: DetailsProps & ReadySlice): JSX.Element {
  const {model, navigator, slice, link, around} = props;
  const track = model.track(slice.track);
  const step = model.steps.at(slice.start_ns, track?.kind === 'thread');
  const isStep = track?.kind === 'steps';
  const t1 = slice.start_ns + slice.dur_ns;
  const clock = formatClock(model.trace.t0_ns, slice.start_ns);
  const shown = slice.short !== '' && slice.short !== slice.name ? slice.short : undefined;
  return (
    <>
      <header class="tl-details-head">
        <h2 class="tl-title">
          {shown ?? slice.name}
          <CopyButton text={slice.name} label="Copy the full name" />
        </h2>
        <div class="tl-actions">
          {hasLink(props) && (
            <button type="button" class="tl-button" onClick={() => navigator.run('link')}>
              {linkText(slice, track?.kind === 'backward')} <kbd>L</kbd>
            </button>
          )}
          {(slice.loader?.batch ?? -1) >= 0 && (
            <button
              type="button"
              class="tl-button"
              title="From the worker to the wait for this batch, and back; Shift B: next batch"
              onClick={() => navigator.run('batch')}
            >
              follow the batch <kbd>B</kbd>
            </button>
          )}
          {slice.prev !== undefined && (
            <button
              type="button"
              class="tl-button"
              title="Previous slice of this name in the row"
              onClick={() => navigator.goToSlice(slice.prev ?? 0, undefined)}
            >
              {'\u2039'} same name
            </button>
          )}
          {slice.next !== undefined && (
            <button
              type="button"
              class="tl-button"
              title="Next slice of this name in the row"
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
              title="Select the enclosing slice (Up)"
            >
              parent
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
          <strong>
            {slice.dur_ns > 0 ? (
              timeFact(slice.dur_ns)
            ) : (
              <span title="Recorded with a length of 0">{NO_TIME}</span>
            )}
          </strong>{' '}
          <CopyButton text={String(slice.dur_ns)} label="Copy the duration in ns" />
        </Fact>
        <Fact name="starts at">
          <span title={exactNs(slice.start_ns)}>{formatAt(slice.start_ns, slice.dur_ns)}</span>{' '}
          <CopyButton text={String(slice.start_ns)} label="Copy the start in ns" />
        </Fact>
        {clock !== undefined && <Fact name="clock time">{clock}</Fact>}
        <Fact name="kind">{word('slice_kinds', slice.kind).label}</Fact>
        {track && <Fact name="row">{trackLabel(model.tracks, track).label}</Fact>}
        {step && step.dur > 0 && slice.dur_ns > 0 && slice.kind !== 'step' && (
          <Fact name="share of the step">
            {formatPct((100 * slice.dur_ns) / step.dur)} of {step.name || `step ${step.index}`}
          </Fact>
        )}
        {isStep && step && <StepDetails model={model} navigator={navigator} step={step} />}
        {slice.same_name && slice.same_name.count > 1 && (
          <Fact name="same name">
            {formatCount(slice.same_name.count)} times, {timeFact(slice.same_name.total_ns)}
            {slice.same_name.per_step !== undefined &&
              `, ${formatPerStep(slice.same_name.per_step)}`}
          </Fact>
        )}
        <KernelFacts slice={slice} />
        <CopyFacts slice={slice} />
        <LoaderFacts slice={slice} />
        {link && <LinkFact model={model} slice={slice} link={link} />}
        <SliceAround model={model} slice={slice} around={around} />
        {slice.corr !== 0 && <Fact name="correlation">{slice.corr}</Fact>}
        {slice.children > 0 && <Fact name="inside it">{plural(slice.children, 'slice')}</Fact>}
      </dl>
      <Args slice={slice} />
    </>
  );
}

/** The number of the graph is above the lowest 32 bits, where the recorder tells it. */
const graphNodeText = (id: string): string => {
  const whole = BigInt(id);
  const graph = whole >> 32n;
  const node = whole & 0xffffffffn;
  return graph === 0n ? `node ${node}` : `graph ${graph}, node ${node}`;
};

const shapeText = (sizes: readonly number[]): string => sizes.map(formatCount).join(' \u00d7 ');

function KernelFacts({slice}: {slice: SliceInfo}): JSX.Element | null {
  const {kernel} = slice;
  if (!kernel) return null;
  return (
    <>
      {kernel.grid.length > 0 && <Fact name="grid">{shapeText(kernel.grid)}</Fact>}
      {kernel.block.length > 0 && <Fact name="block">{shapeText(kernel.block)}</Fact>}
      {kernel.registers !== undefined && (
        <Fact name="registers">{kernel.registers} per thread</Fact>
      )}
      {kernel.shared_memory_bytes !== undefined && (
        <Fact name="shared memory">{formatBytes(kernel.shared_memory_bytes)}</Fact>
      )}
      {kernel.occupancy_pct !== undefined && (
        <Fact name="occupancy">{formatPct(kernel.occupancy_pct)} estimated</Fact>
      )}
      {kernel.module !== undefined && <Fact name="module">{kernel.module}</Fact>}
      {kernel.graph_node_id !== undefined && (
        <Fact name="CUDA graph">{graphNodeText(kernel.graph_node_id)}</Fact>
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
      {loader.cpu_ns !== undefined && <Fact name="CPU time">{timeFact(loader.cpu_ns)}</Fact>}
    </>
  );
}

function linkText({kind, link}: SliceInfo, isBackward: boolean): string {
  if (isBackward) return 'go to its forward pass';
  if (kind === 'api' || link === undefined) return 'go to what it launched';
  if (kind === 'step') return 'go to its mark';
  return kind === 'gpu_range' ? 'go to the range' : 'go to launch';
}

const HOST_SIDE: ReadonlyMap<string, string> = new Map([
  ['gpu_range', /* text */ 'range on the host'],
  ['step', /* text */ 'mark on the host'],
]);

/** The other end of a launch, or what a projection or a step is of on the host, and how long the GPU
 *  took to begin. */
function LinkFact(props: {model: TimelineModel; slice: SliceInfo; link: SliceInfo}): JSX.Element {
  const {model, slice, link} = props;
  // of a range or a mark on the host: nothing launched it
  const isProjection = slice.kind === 'gpu_range' || slice.kind === 'step';
  const [call, work, label] =
    slice.kind === 'api'
      ? [slice, link, /* text */ 'launched']
      : [link, slice, HOST_SIDE.get(slice.kind) ?? 'launched by'];
  const track = model.track(link.track);
  const row = track ? trackLabel(model.tracks, track).label : '';
  if (model.track(slice.track)?.kind === 'backward') {
    return (
      <>
        <Fact name="forward pass">
          {link.short || link.name} <span class="tl-muted">{row}</span>
        </Fact>
        <Fact name="forward time">{timeFact(link.dur_ns)}</Fact>
        <Fact name="begins after">{timeFact(slice.start_ns - link.start_ns)}</Fact>
      </>
    );
  }
  return (
    <>
      <Fact name={label}>
        {link.short || link.name} <span class="tl-muted">{row}</span>
      </Fact>
      {isProjection && <Fact name="host time">{timeFact(link.dur_ns)}</Fact>}
      <Fact name={isProjection ? 'starts on the GPU after' : 'launch latency'}>
        {timeFact(work.start_ns - call.start_ns)}
      </Fact>
    </>
  );
}

function argText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** Recorded fields that are facts above. */
const SHOWN_OF_KERNEL = [
  'grid',
  'block',
  'registers per thread',
  'shared memory',
  'est. achieved occupancy %',
];
const SHOWN_OF_LOADER = ['batch', 'worker', 'cpu_ns'];

function Args({slice}: {slice: SliceInfo}): JSX.Element | null {
  const {args, kernel, loader, corr} = slice;
  const shown = new Set([
    ...(kernel ? SHOWN_OF_KERNEL : []),
    ...(loader ? SHOWN_OF_LOADER : []),
    ...(corr === 0 ? [] : ['correlation']),
  ]);
  const entries = Object.entries(args).filter(([name]) => !shown.has(name));
  if (entries.length === 0) return null;
  return (
    <details class="tl-args" open={entries.length <= 12}>
      <summary>
        {plural(entries.length, 'more field')}, as recorded{' '}
        <CopyButton text={JSON.stringify(args, undefined, 2)} label="Copy all as JSON" />
      </summary>
      <dl class="tl-facts">
        {entries.map(([name, value]) => (
          <Fact key={name} name={name}>
            <span class="tl-arg">{argText(value).replaceAll(/;(?=\S+\(\d+\): )/g, '\n')}</span>
          </Fact>
        ))}
      </dl>
    </details>
  );
}
