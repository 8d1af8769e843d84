// What is selected, in full: a slice, a gap or an area.
import type {JSX} from 'preact';
import {dockTab, query, selection, type DockTab, type Selection} from '../model/view_state';
import {IconClose} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {AreaDetails} from './area_details';
import type {DetailsProps} from './details_parts';
import {GapDetails} from './gap_details';
import {SliceSelected} from './slice_details';
import {WholeDock} from './whole_dock';

export function DetailsPanel(props: DetailsProps & {readonly hasStage: boolean}): JSX.Element {
  const sel = selection.value;
  return (
    <aside
      class={`tl-details${sel ? '' : ' tl-details-idle'}`}
      aria-label="Details of the selection"
    >
      {sel === undefined ? (
        <Whole model={props.model} navigator={props.navigator} />
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

/** While nothing is selected: what there is of the whole, by tabs, closed until one is pressed. */
function Whole({model, navigator}: DetailsProps): JSX.Element {
  const open = dockTab.value;
  const has = (kind: string): boolean =>
    model.tracks.tracks.some(t => t.kind === kind && t.count > 0);
  const tabs: readonly {tab: DockTab; label: string; isThere: boolean}[] = [
    {
      tab: 'findings',
      label: 'Findings',
      isThere: (model.analysis?.findings ?? []).length > 0,
    },
    {tab: 'view', label: 'In view', isThere: true},
    {tab: 'gaps', label: 'Gaps', isThere: has('gaps')},
    {tab: 'steps', label: 'Steps', isThere: model.steps.all.length > 0},
    {tab: 'hits', label: 'Search hits', isThere: query.value.trim() !== ''},
    {tab: 'bookmarks', label: 'Bookmarks', isThere: model.bookmarks.all.value.length > 0},
  ];
  const shown = tabs.filter(tab => tab.isThere);
  return (
    <>
      <div class="tl-whole-bar">
        <nav class="tl-dock-tabs" aria-label="What to show of the trace">
          {shown.map(({tab, label}) => (
            <ViewLink
              key={tab}
              class="tl-dock-tab"
              view={{dockTab: tab === open ? '' : tab}}
              current={tab === open}
            >
              {label}
            </ViewLink>
          ))}
        </nav>
        <p class="tl-hint">
          {has('gaps') && (
            <>
              <kbd>G</kbd> longest gap ·{' '}
            </>
          )}
          drag: select an area · <kbd>W</kbd> <kbd>A</kbd> <kbd>S</kbd> <kbd>D</kbd> move ·{' '}
          <kbd>?</kbd> all keys
        </p>
      </div>
      {open !== '' && shown.some(({tab}) => tab === open) && (
        <WholeDock model={model} navigator={navigator} tab={open} />
      )}
    </>
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
