// What is around a selected slice, and what it launched: asked for after its other details.
import type {JSX} from 'preact';
import type {Launched, LaunchedRow} from '../api/table_types';
import type {SliceInfo} from '../api/types';
import {exactNs, formatCount, formatDuration, plural} from '../base/format';
import {ns} from '../base/units';
import {ViewLink} from '../ui/link';
import type {TimelineModel} from './data/timeline_model';
import {Fact} from './details_parts';
import {ForwardBackward} from './forward_backward';

/** Levels shown: the innermost say most. */
const CHAIN_SHOWN = 12;
const LAUNCHED_SHOWN = 5;

export function SliceAround(props: {
  model: TimelineModel;
  slice: SliceInfo;
  around: Launched | undefined;
}): JSX.Element | null {
  const {model, slice, around} = props;
  if (!around) return null;
  const {chain, count, total_ns, first_ns, end_ns, is_cut, launched} = around;
  const isWork = ['kernel', 'copy', 'memset'].includes(slice.kind);
  const operators = isWork ? chain.filter(row => row.kind !== 'api') : chain;
  return (
    <>
      <ForwardBackward key={slice.id} model={model} slice={slice} />
      {operators.length > 0 && (
        <Fact name={isWork ? 'launched inside' : 'inside of'}>
          <span class="tl-chain">
            {operators.slice(0, CHAIN_SHOWN).map(row => (
              <SliceLink key={row.slice} row={row} />
            ))}
            {operators.length > CHAIN_SHOWN && (
              <span class="tl-muted">{formatCount(operators.length - CHAIN_SHOWN)} more</span>
            )}
          </span>
        </Fact>
      )}
      {count > 0 && (
        <Fact name="launched on GPUs">
          <span title={exactNs(total_ns)}>
            {plural(count, 'operation')}, {formatDuration(total_ns)}
          </span>
          {is_cut && ' of the first calls'}:{' '}
          <ViewLink
            view={{
              selection: {kind: 'area', t0: ns(first_ns), t1: ns(Math.max(end_ns, first_ns + 1))},
              window: model.asWindow(wider(first_ns, end_ns)),
            }}
            title="Select the time in which all of them ran"
          >
            their time
          </ViewLink>
          {launched.length < count && `; arrows to the first ${formatCount(launched.length)}`}
          <span class="tl-chain">
            {launched.slice(0, LAUNCHED_SHOWN).map(row => (
              <SliceLink key={row.slice} row={row} />
            ))}
          </span>
        </Fact>
      )}
    </>
  );
}

function wider(t0: number, t1: number): {t0: number; t1: number} {
  const pad = Math.max(1000, (t1 - t0) / 2);
  return {t0: t0 - pad, t1: t1 + pad};
}

function SliceLink({row}: {row: LaunchedRow}): JSX.Element {
  return (
    <ViewLink
      view={{selection: {kind: 'slice', slice: row.slice}}}
      title={`${row.name}, ${formatDuration(row.dur_ns)}`}
    >
      {row.short || row.name || '(no name)'}
    </ViewLink>
  );
}
