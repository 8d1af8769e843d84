// What the details of a slice, a gap and an area have in common.
import type {ComponentChildren, JSX} from 'preact';
import {CAUSES, causeWord} from '../base/causes';
import {exactNs, formatDuration} from '../base/format';
import {selection, type Selection} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {ViewLink} from '../ui/link';
import type {TimelineModel} from './data/timeline_model';
import type {Navigator} from './input/navigate';

export interface DetailsProps {
  readonly model: TimelineModel;
  readonly navigator: Navigator;
}

/** A line of a list of facts. */
export function Fact({name, children}: {name: string; children: ComponentChildren}): JSX.Element {
  return (
    <div class="tl-fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A time in few digits; all of them when the pointer rests on it. */
export const timeFact = (ns: number): JSX.Element => (
  <span title={exactNs(ns)}>{formatDuration(ns, 4)}</span>
);

/** Idle time by cause, as a bar and in words. */
export function CausePieces(props: {
  causeNs: Readonly<Record<string, number | undefined>>;
  totalNs: number;
}): JSX.Element {
  const pieces = CAUSES.map(cause => ({cause, ns: props.causeNs[cause] ?? 0}))
    .filter(piece => piece.ns > 0)
    .sort((a, b) => b.ns - a.ns);
  return (
    <div class="tl-pieces">
      <div class="tl-pieces-bar" aria-hidden="true">
        {pieces.map(({cause, ns}) => (
          <span
            key={cause}
            class={`cause-${cause} tl-piece`}
            style={{width: `${(100 * ns) / props.totalNs}%`}}
          />
        ))}
      </div>
      <ul>
        {pieces.map(({cause, ns}) => (
          <li key={cause} title={exactNs(ns)}>
            <Chip topic={topicOf(cause)} /> {formatDuration(ns)} {causeWord(cause).waits}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What can be done with a time. */
export function AreaActions(
  props: DetailsProps & {t0: number; t1: number; metric?: 'gpu' | 'waiting'},
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
        zoom to selection
      </button>
      {!isArea && (
        <button
          type="button"
          class="tl-button"
          title="Select its time as an area (M)"
          onClick={() => navigator.run('mark')}
        >
          select its time
        </button>
      )}
      <button
        type="button"
        class="tl-button"
        title="Keep its time with a note (Shift M)"
        onClick={() => navigator.run('bookmark')}
      >
        bookmark
      </button>
      <ViewLink
        class="tl-button"
        view={{page: 'flame', selection: area, ...(metric ? {flameMetric: metric} : {})}}
      >
        flame graph
      </ViewLink>
    </>
  );
}
