// What is selected, in full: a slice, a gap or an area.
import type {JSX} from 'preact';
import {selection, type Selection} from '../model/view_state';
import {IconClose} from '../ui/icons';
import {AreaDetails} from './area_details';
import type {TimelineModel} from './data/timeline_model';
import type {DetailsProps} from './details_parts';
import {GapDetails} from './gap_details';
import {SliceSelected} from './slice_details';

export function DetailsPanel(props: DetailsProps & {readonly hasStage: boolean}): JSX.Element {
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

function Selected({
  model,
  navigator,
  sel,
}: DetailsProps & {sel: NonNullable<Selection>}): JSX.Element {
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
