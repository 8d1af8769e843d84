// The names of the rows, left of the canvases: real elements, so that they can be read, focused and
// pressed; only those near the screen exist.
import {computed, signal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {show} from '../model/view_state';
import {isMovable, movedOrder, placesShown, visibleRows, type Row} from './data/rows';
import type {TimelineModel} from './data/timeline_model';

/** A row is one stop of the Tab key: the arrows lead to its other buttons, and to the rows beside. */
function moveFocus(event: KeyboardEvent): void {
  const button = event.target as HTMLButtonElement;
  const row = button.closest('.tl-label');
  const buttons = [...(row?.querySelectorAll('button') ?? [])];
  const at = buttons.indexOf(button);
  const next = {
    ArrowRight: buttons[at + 1],
    ArrowLeft: buttons[at - 1],
    ArrowDown: row?.nextElementSibling?.querySelector('button'),
    ArrowUp: row?.previousElementSibling?.querySelector('button'),
  }[event.key];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** Rows beyond the edges of the screen that exist already. */
const AHEAD_PX = 400;

export function RowLabels({model}: {model: TimelineModel}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const seen = useMemo(() => signal({top: 0, height: 800}), []);
  const range = useMemo(
    () =>
      computed(() => {
        // In steps, so that scrolling by a pixel renders nothing.
        const top = Math.floor(seen.value.top / 200) * 200;
        const {first, last} = visibleRows(
          model.tops.value,
          top - AHEAD_PX,
          top + seen.value.height + AHEAD_PX + 200,
        );
        return `${first}-${last}`;
      }),
    [],
  );
  useEffect(() => {
    const scroller = box.current?.parentElement;
    if (!scroller) return undefined;
    const look = (): void => {
      seen.value = {top: scroller.scrollTop, height: scroller.clientHeight};
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(scroller);
    scroller.addEventListener('scroll', look, {passive: true});
    return () => {
      observer.disconnect();
      scroller.removeEventListener('scroll', look);
    };
  }, []);

  const [first = 0, last = 0] = range.value.split('-').map(Number);
  const rows = model.rows.value;
  const tops = model.tops.value;
  const fixed = model.fixedCount.value;
  return (
    <div
      ref={box}
      class="tl-labels"
      role="list"
      aria-label="Rows"
      style={{height: `${tops[tops.length - 1] ?? 0}px`}}
      onKeyDown={moveFocus}
      onMouseDown={event => {
        // the keys stay the timeline's, as after a press on a slice
        event.preventDefault();
        box.current?.closest<HTMLElement>('.tl')?.focus({preventScroll: true});
      }}
    >
      {placesShown(fixed, first, Math.min(last, rows.length)).map(i => {
        const row = rows[i] as Row;
        return (
          <Label key={row.key} model={model} row={row} top={tops[i] ?? 0} isFixed={i < fixed} />
        );
      })}
    </div>
  );
}

function Label(props: {
  model: TimelineModel;
  row: Row;
  top: number;
  isFixed: boolean;
}): JSX.Element {
  const {model, row, top, isFixed} = props;
  const height = `${row.height}px`;
  // a fixed one takes no height: it stands before those whose places are absolute
  const style = {
    top: `${top}px`,
    height,
    ...(isFixed && {marginBottom: `-${height}`}),
  };
  const place = `tl-label tl-label-${row.kind}${isFixed ? ' tl-fixed' : ''}`;
  if (row.kind === 'more' || row.kind === 'group' || row.kind === 'hidden') {
    return (
      <div class={place} role="listitem" style={style} title={row.title}>
        <button
          type="button"
          class="tl-fold"
          aria-expanded={!row.isCollapsed}
          onClick={() =>
            row.kind === 'hidden'
              ? model.changeRows({hidden: new Set()})
              : row.kind === 'more'
                ? model.changeRows({showAll: !model.rowState.value.showAll})
                : model.toggle('collapsed', row.key)
          }
        >
          <Chevron isOpen={!row.isCollapsed} />
          <span class="tl-name">{row.label}</span>
        </button>
      </div>
    );
  }
  const hidden = row.lanesTotal - row.lanes;
  const behindFold = row.canCollapse ? -1 : 0;
  return (
    <div
      class={`${place}${row.depth > 0 ? ' tl-label-inner' : ''}`}
      role="listitem"
      style={style}
      title={row.title}
    >
      {row.canCollapse ? (
        <button
          type="button"
          class="tl-fold"
          aria-expanded={!row.isCollapsed}
          onClick={() => model.toggle('collapsed', row.key)}
        >
          <Chevron isOpen={!row.isCollapsed} />
          <span class="tl-name">{row.label}</span>
        </button>
      ) : (
        <span class="tl-name tl-name-plain">{row.label}</span>
      )}
      {row.lanesOuter > 0 && !row.isCollapsed && (
        <button
          type="button"
          class="tl-outer"
          tabIndex={behindFold}
          aria-pressed={row.laneFirst === 0}
          title="Frames open for the whole trace"
          onClick={() => model.toggle('unfolded', row.key)}
        >
          {row.laneFirst > 0 ? '' : 'fold '}
          {row.lanesOuter} outer frames
        </button>
      )}
      <span class="tl-label-tools">
        {!row.isCollapsed && (hidden > 0 || model.rowState.value.expanded.has(row.key)) && (
          <button
            type="button"
            class="tl-tool"
            tabIndex={behindFold}
            title={hidden > 0 ? `show ${hidden} deeper lanes` : 'show fewer lanes'}
            onClick={() => model.toggle('expanded', row.key)}
          >
            {hidden > 0 ? `+${hidden}` : '\u2212'}
          </button>
        )}
        {isMovable(row) && <RowPlaceTools model={model} row={row} />}
        {row.kind === 'slices' && (
          <button
            type="button"
            class="tl-tool tl-place"
            tabIndex={isMovable(row) ? -1 : behindFold}
            title="list its slices"
            aria-label={`List the slices of ${row.label}`}
            onClick={() =>
              show({query: `track:${row.track}`, dockTab: 'hits', selection: undefined})
            }
          >
            {'\u2261'}
          </button>
        )}
        <button
          type="button"
          class={`tl-tool tl-pin${row.isPinned ? ' tl-pinned' : ''}`}
          tabIndex={isMovable(row) || row.kind === 'slices' ? -1 : behindFold}
          aria-pressed={row.isPinned}
          aria-label={`Keep ${row.label} at the top`}
          title={row.isPinned ? 'unpin' : 'keep at the top'}
          onClick={() => model.toggle('pinned', row.key)}
        >
          <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
            <path d="M5 2h6l-1 5 2 2v1H4V9l2-2zM8 10v4" />
          </svg>
        </button>
      </span>
    </div>
  );
}

/** Up, down, and away: as buttons, so that they can be reached without a pointer. */
function RowPlaceTools({model, row}: {model: TimelineModel; row: Row}): JSX.Element {
  const move = (by: number): void =>
    model.changeRows({order: movedOrder(model.rows.peek(), row.key, by)});
  const tools = [
    ['\u2191', `Move ${row.label} up`, () => move(-1)],
    ['\u2193', `Move ${row.label} down`, () => move(1)],
    ['\u00d7', `Hide ${row.label}`, () => model.toggle('hidden', row.key)],
  ] as const;
  return (
    <>
      {tools.map(([text, title, run], i) => (
        <button
          key={text}
          type="button"
          class="tl-tool tl-place"
          tabIndex={i > 0 || row.canCollapse ? -1 : 0}
          aria-label={title}
          title={title}
          onClick={run}
        >
          {text}
        </button>
      ))}
    </>
  );
}

function Chevron({isOpen}: {isOpen: boolean}): JSX.Element {
  return (
    <svg
      class={isOpen ? 'tl-chevron tl-chevron-open' : 'tl-chevron'}
      viewBox="0 0 16 16"
      width="10"
      height="10"
      aria-hidden="true"
    >
      <path d="m5 3 6 5-6 5" />
    </svg>
  );
}
