// The timeline of a trace: toolbar, overview strip, time axis, rows and details.
import type {ComponentChildren, JSX} from 'preact';
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {Analysis, TraceInfo, TracksInfo} from '../api/types';
import {errorText} from '../api/client';
import {registerShortcuts} from '../model/shortcuts';
import {ViewLink} from '../ui/link';
import {Empty, Failed} from '../ui/states';
import {BookmarkDialog} from './bookmarks_panel';
import {DetailsPanel} from './details_panel';
import {SHORTCUTS} from './input/keymap';
import {Navigator} from './input/navigate';
import {RowLabels} from './row_labels';
import {Stage} from './draw/stage';
import {timelineRun} from './input/running';
import {SliceMenu} from './slice_menu';
import {StageInput} from './input/stage_input';
import {TimelineModel} from './data/timeline_model';
import {Toolbar} from './toolbar';
import {Tooltip} from './tooltip';

export interface TimelinePanelProps {
  readonly trace: TraceInfo;
  readonly tracks: TracksInfo;
  readonly analysis: Analysis | undefined;
  /** Shown over the rows. */
  readonly strip?: ComponentChildren;
}

export function TimelinePanel(props: TimelinePanelProps): JSX.Element {
  const {trace, tracks, analysis} = props;
  if (analysis?.trace.timeline === false || tracks.tracks.every(track => track.count === 0))
    return (
      <Empty title="No timeline in this trace">
        It holds counts and totals, not when things ran: see the{' '}
        <ViewLink view={{page: 'flame'}}>flame graph</ViewLink>.
      </Empty>
    );
  // A new trace, or a new generation of it, is a new timeline.
  const key = `${trace.id}/${tracks.generation}`;
  return <Timeline key={key} {...props} />;
}

function Timeline({trace, tracks, analysis, strip}: TimelinePanelProps): JSX.Element {
  const root = useRef<HTMLElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const axis = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const [stage, setStage] = useState<Stage>();
  const [failure, setFailure] = useState('');
  const model = useMemo(() => new TimelineModel(trace, tracks, analysis), []);
  const navigator = useMemo(
    () =>
      new Navigator(
        model,
        () => {
          search.current?.focus();
          search.current?.select();
        },
        px => scroller.current?.scrollBy({top: px}),
      ),
    [],
  );

  // before the first picture, as its tiles are asked for from here on
  useLayoutEffect(() => {
    const elements = {
      root: root.current,
      scroller: scroller.current,
      base: base.current,
      overlay: overlay.current,
      axis: axis.current,
      minimap: minimap.current,
    };
    if (!hasAll(elements)) return undefined;
    let made: Stage;
    try {
      made = new Stage(elements, model);
    } catch (error) {
      setFailure(errorText(error));
      return undefined;
    }
    const input = new StageInput(made, navigator, () => root.current !== null);
    const forget = SHORTCUTS.map(registerShortcuts);
    timelineRun.value = command => navigator.run(command);
    setStage(made);
    return () => {
      for (const f of forget) f();
      timelineRun.value = undefined;
      input.close();
      made.close();
      model.close();
    };
  }, []);

  useEffect(() => model.setAnalysis(analysis), [analysis]);

  if (failure !== '') return <Failed title="The timeline cannot be drawn" text={failure} />;
  return (
    <section
      ref={root}
      class="tl"
      role="application"
      aria-label="Timeline. Press question mark for keyboard shortcuts."
      aria-roledescription="timeline"
      tabIndex={0}
    >
      <Toolbar model={model} navigator={navigator} searchRef={search} />
      <div class="tl-head">
        <div class="tl-corner">
          <RowFilter model={model} />
        </div>
        <canvas ref={minimap} class="tl-minimap" aria-hidden="true" />
        <WindowLength model={model} />
        <canvas ref={axis} class="tl-axis" aria-hidden="true" />
      </div>
      <StatusLine model={model} />
      {strip}
      <div ref={scroller} class="tl-rows">
        <RowLabels model={model} />
        {model.rows.value.length === 0 && <p class="tl-none">No rows match.</p>}
        <div class="tl-stage">
          <canvas ref={base} class="tl-base" aria-hidden="true" />
          <canvas ref={overlay} class="tl-overlay" aria-hidden="true" />
          <Tooltip model={model} />
        </div>
      </div>
      <SliceMenu model={model} navigator={navigator} />
      <BookmarkDialog bookmarks={model.bookmarks} />
      <DetailsPanel model={model} navigator={navigator} hasStage={stage !== undefined} />
      <p class="off-screen" role="status" aria-live="polite">
        {model.spoken.value}
      </p>
    </section>
  );
}

type Filled<T> = {readonly [K in keyof T]: NonNullable<T[K]>};

function hasAll<T extends object>(elements: T): elements is T & Filled<T> {
  return Object.values(elements).every(element => element !== null);
}

function RowFilter({model}: {model: TimelineModel}): JSX.Element {
  return (
    <input
      class="tl-filter"
      type="search"
      placeholder="filter rows"
      aria-label="Filter rows by name"
      value={model.rowState.value.filter}
      onInput={event => model.changeRows({filter: event.currentTarget.value})}
      onKeyDown={event => {
        if (event.key !== 'Escape') return;
        model.changeRows({filter: ''});
        event.currentTarget.blur();
      }}
    />
  );
}

function WindowLength({model}: {model: TimelineModel}): JSX.Element {
  return <div class="tl-length">{model.windowText.value}</div>;
}

/** Loading and trouble, over the rows, without moving them. */
function StatusLine({model}: {model: TimelineModel}): JSX.Element | null {
  void model.arrivals.value;
  const {failure, pending} = model.tiles;
  if (model.isDrawingLost.value)
    return (
      <div class="tl-status tl-status-error" role="alert">
        The browser took back the drawing context. The rows are drawn again in a moment.
      </div>
    );
  if (failure) {
    return (
      <div class="tl-status tl-status-error" role="alert">
        <span>
          {failure.isCorrupt
            ? `The rows of this view arrived damaged: ${errorText(failure.error)}.`
            : `${errorText(failure.error)} Retrying.`}
        </span>
        <button type="button" class="button" onClick={() => model.tiles.retry()}>
          Try again now
        </button>
      </div>
    );
  }
  return <BusyLine isBusy={pending > 0} />;
}

/** Most answers are here before it would be seen; without a GPU its movement takes the time from drawing them. */
const BUSY_AFTER_MS = 600;

function BusyLine({isBusy}: {isBusy: boolean}): JSX.Element {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    setIsLong(false);
    const timer = isBusy ? setTimeout(() => setIsLong(true), BUSY_AFTER_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isBusy]);
  const on = isBusy && isLong ? ' tl-busy-on' : '';
  return <div class={`tl-status tl-busy${on}`} aria-hidden="true" />;
}
