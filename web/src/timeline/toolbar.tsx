// Everything that the keys do, as buttons; the search field.
import type {ComponentChildren, JSX, RefObject} from 'preact';
import {formatCount} from '../base/format';
import {query, selection} from '../model/view_state';
import {IconSearch} from '../ui/icons';
import type {Command} from './input/keymap';
import type {Navigator} from './input/navigate';
import {hasLink, type TimelineModel} from './data/timeline_model';

interface Props {
  readonly model: TimelineModel;
  readonly navigator: Navigator;
  readonly searchRef: RefObject<HTMLInputElement | null>;
}

export function Toolbar({model, navigator, searchRef}: Props): JSX.Element {
  const hasGaps = model.tracks.tracks.some(t => t.kind === 'gaps' && t.count > 0);
  const button = (
    command: Command,
    label: string,
    key: string,
    content: ComponentChildren,
    isOff = false,
  ): JSX.Element => (
    <button
      type="button"
      class="tl-button"
      aria-label={label}
      aria-keyshortcuts={key}
      title={`${label} (${key})`}
      disabled={isOff}
      onClick={() => navigator.run(command)}
    >
      {content}
    </button>
  );
  const {showAll} = model.rowState.value;
  const noSlice = selection.value?.kind !== 'slice';
  const details = model.slice.value;
  return (
    <div class="tl-toolbar" role="toolbar" aria-label="Timeline">
      {hasGaps && (
        <div class="tl-group">
          {button('gap-previous', 'Previous gap by size', 'Shift+G', '\u2039')}
          {button('gap-next', 'Next gap by size', 'G', 'gap \u203a')}
          {button(
            'gap-same',
            'Next like this: a gap of the same kind',
            'Alt+G',
            'next like this \u203a',
            selection.value?.kind !== 'gap',
          )}
        </div>
      )}
      <FindingButtons model={model} navigator={navigator} />
      {model.steps.outliers.length > 0 && (
        <div class="tl-group">
          {button('outlier-next', 'Next unusually long step', 'N', 'long step \u203a')}
        </div>
      )}
      <div class="tl-group">
        {button('zoom-out', 'Zoom out', 'S', '\u2212')}
        {button('zoom-in', 'Zoom in', 'W', '+')}
        {button('pan-left', 'Move left', 'A', '\u2190')}
        {button('pan-right', 'Move right', 'D', '\u2192')}
        {button('fit', 'Center, then zoom to selection', 'F', 'to selection', !selection.value)}
        {button('whole', 'Whole trace', '0', 'whole trace')}
      </div>
      <div class="tl-group tl-group-slice">
        {button('slice-previous', 'Previous slice of the row', ',', '\u2039 slice', noSlice)}
        {button('slice-next', 'Next slice of the row', '.', 'slice \u203a', noSlice)}
        {button(
          'link',
          'Kernel to launch and back',
          'L',
          'to launch',
          noSlice || (details.kind === 'ready' && !!details.around && !hasLink(details)),
        )}
      </div>
      <SearchBox model={model} navigator={navigator} searchRef={searchRef} />
      <button
        type="button"
        class="tl-button tl-rows-button"
        aria-pressed={showAll}
        aria-keyshortcuts="R"
        title="Essential rows or all rows (R)"
        onClick={() => navigator.run('rows')}
      >
        rows: {showAll ? 'all' : 'essential'}
      </button>
    </div>
  );
}

const FINDINGS_MAX = 5;

function FindingButtons(props: {
  readonly model: TimelineModel;
  readonly navigator: Navigator;
}): JSX.Element | null {
  const findings = (props.model.analysis?.findings ?? []).slice(0, FINDINGS_MAX);
  if (!findings.some(finding => finding.evidence.length > 0)) return null;
  return (
    <div class="tl-group" role="group" aria-label="Evidence of findings">
      <span class="tl-group-name">findings</span>
      {findings.map((finding, i) => (
        <button
          key={finding.id}
          type="button"
          class="tl-button"
          aria-label={`Evidence of finding ${i + 1}: ${finding.title}`}
          aria-keyshortcuts={String(i + 1)}
          title={`${finding.title} (${i + 1})`}
          disabled={finding.evidence.length === 0}
          onClick={() => props.navigator.finding(i)}
        >
          {i + 1}
        </button>
      ))}
    </div>
  );
}

function SearchBox({model, navigator, searchRef}: Props): JSX.Element {
  const state = model.search.state.value;
  const hasHits = state.kind === 'ready' && state.total > 0;
  let count = '';
  if (state.kind === 'loading') count = '\u2026';
  else if (state.kind === 'error') count = /* text */ 'failed';
  else if (state.kind === 'ready') {
    const total = formatCount(state.total);
    count =
      state.total === 0 ? /* text */ 'none' : state.at < 0 ? total : `${state.at + 1} of ${total}`;
  }
  return (
    <div class="tl-search" role="search">
      <IconSearch />
      <input
        ref={searchRef}
        type="search"
        placeholder="search names (/)"
        aria-label="Search the names of slices"
        aria-keyshortcuts="/"
        spellcheck={false}
        value={query.value}
        onInput={event => (query.value = event.currentTarget.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            event.preventDefault();
            void navigator.hit(event.shiftKey ? -1 : 1);
          } else if (event.key === 'Escape') {
            if (query.value === '') event.currentTarget.blur();
            else query.value = '';
          }
        }}
      />
      <span
        class="tl-count"
        role="status"
        title={state.kind === 'error' ? state.text : 'slices with this in their names'}
      >
        {count}
      </span>
      <button
        type="button"
        class="tl-button"
        aria-label="Previous hit"
        title="Previous hit (Shift+Enter)"
        disabled={!hasHits}
        onClick={() => void navigator.hit(-1)}
      >
        {'\u2039'}
      </button>
      <button
        type="button"
        class="tl-button"
        aria-label="Next hit"
        title="Next hit (Enter)"
        disabled={!hasHits}
        onClick={() => void navigator.hit(1)}
      >
        {'\u203a'}
      </button>
    </div>
  );
}
