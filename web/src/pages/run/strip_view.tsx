// Rows of strips on one time axis: zoom, pan, and what is under the pointer. Used by what shows many
// ranks, or two traces, at once.
import type {ComponentChildren, JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {formatDuration, formatPct} from '../../base/format';
import {ns} from '../../base/units';
import {describePart, moved, sharesOf, zoomed, type StripData} from '../../model/run/strips';
import {resolvedTheme} from '../../model/theme';
import {leap, type TimeWindow} from '../../model/view_state';
import {axisSteps, useWidth} from '../../ui/chart_frame';
import {paintStrips, type PaintRow, type Scene} from './strip_painter';

export interface StripRow extends PaintRow {
  readonly key: string;
  /** In words, for what is under the pointer. */
  readonly name: string;
  readonly label: ComponentChildren;
}

const WHEEL_STEP = 1.0015;
const KEY_STEP = 1.5;
const DRAG_PX = 4;

export function StripView(props: {
  rows: readonly StripRow[];
  window: TimeWindow;
  /** Where the axis ends; it begins at 0. */
  endNs: number;
  /** What a screen reader calls it. */
  name: string;
  onWindow: (window: TimeWindow, isLeap: boolean) => void;
  /** A press at a time, in a row. */
  onPress: (atNs: number, row: number) => void;
  /** Further keys. @return whether it was one */
  onKey?: (key: string, isShift: boolean) => boolean;
}): JSX.Element {
  const {rows, window, endNs} = props;
  const box = useWidth();
  const area = useRef<HTMLDivElement | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointer, setPointer] = useState<{x: number; y: number} | undefined>(undefined);
  const drag = useRef<{x: number; t0: number; isPan: boolean} | undefined>(undefined);
  const [dragPx, setDragPx] = useState<readonly [number, number] | undefined>(undefined);
  const width = box.width;
  const rowPx = rows.length <= 4 ? 46 : rows.length <= 12 ? 34 : rows.length <= 32 ? 25 : 15;
  const isDark = resolvedTheme.value === 'dark';
  const scene: Scene = {rows, window, rowPx, isDark, cursorPx: pointer?.x, dragPx};
  const length = window.t1 - window.t0;
  const timeAt = (x: number): number => window.t0 + (length * x) / Math.max(1, width);

  useLayoutEffect(() => {
    if (canvas.current && width > 0) paintStrips(canvas.current, width, scene);
  });

  const latest = useRef({window, width, endNs, onWindow: props.onWindow});
  latest.current = {window, width, endNs, onWindow: props.onWindow};
  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    // not passive: the page must not zoom as well
    const onWheel = (event: WheelEvent): void => {
      const now = latest.current;
      const isZoom = event.ctrlKey || event.metaKey;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (!isZoom && sideways === 0) return;
      event.preventDefault();
      const left = element.getBoundingClientRect().left;
      const at = (event.clientX - left) / Math.max(1, now.width);
      const span = now.window.t1 - now.window.t0;
      now.onWindow(
        isZoom
          ? zoomed(now.window, WHEEL_STEP ** event.deltaY, at, now.endNs)
          : moved(
              now.window,
              now.window.t0 + (span * sideways) / Math.max(1, now.width),
              now.endNs,
            ),
        false,
      );
    };
    element.addEventListener('wheel', onWheel, {passive: false});
    return () => element.removeEventListener('wheel', onWheel);
  }, []);

  const place = (event: PointerEvent): {x: number; y: number} => {
    const rect = area.current?.getBoundingClientRect();
    return {x: event.clientX - (rect?.left ?? 0), y: event.clientY - (rect?.top ?? 0)};
  };
  const onPointerDown = (event: PointerEvent): void => {
    if (event.button > 1) return;
    area.current?.setPointerCapture(event.pointerId);
    const isPan = event.button === 1 || event.shiftKey || event.pointerType === 'touch';
    drag.current = {x: place(event).x, t0: window.t0, isPan};
  };
  const onPointerMove = (event: PointerEvent): void => {
    const at = place(event);
    setPointer(at);
    const from = drag.current;
    if (!from || Math.abs(at.x - from.x) < DRAG_PX) return;
    if (from.isPan) {
      props.onWindow(
        moved(window, from.t0 - ((at.x - from.x) * length) / Math.max(1, width), endNs),
        false,
      );
    } else setDragPx([from.x, at.x]);
  };
  const onPointerUp = (event: PointerEvent): void => {
    const from = drag.current;
    const at = place(event);
    drag.current = undefined;
    setDragPx(undefined);
    if (!from) return;
    if (Math.abs(at.x - from.x) < DRAG_PX) {
      props.onPress(timeAt(at.x), Math.min(rows.length - 1, Math.floor(at.y / rowPx)));
    } else if (!from.isPan) {
      const [a, b] = [timeAt(Math.min(from.x, at.x)), timeAt(Math.max(from.x, at.x))];
      props.onWindow(zoomed({t0: ns(a), t1: ns(b)}, 1, 0, endNs), true);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = (next: TimeWindow): void => {
      event.preventDefault();
      props.onWindow(next, false);
    };
    switch (event.code) {
      case 'KeyW':
        return act(zoomed(window, 1 / KEY_STEP, 0.5, endNs));
      case 'KeyS':
        return act(zoomed(window, KEY_STEP, 0.5, endNs));
      case 'KeyA':
        return act(moved(window, window.t0 - length / 5, endNs));
      case 'KeyD':
        return act(moved(window, window.t0 + length / 5, endNs));
      case 'Digit0':
        event.preventDefault();
        return props.onWindow({t0: ns(0), t1: ns(endNs)}, true);
    }
    if (props.onKey?.(event.key, event.shiftKey)) event.preventDefault();
  };

  const hovered = pointer ? rows[Math.floor(pointer.y / rowPx)] : undefined;
  return (
    <div class="strips" style={{'--row-px': `${rowPx}px`}}>
      <div class="strips-labels" aria-hidden={rows.length === 0}>
        <ul>
          {rows.map(row => (
            <li key={row.key}>{row.label}</li>
          ))}
        </ul>
      </div>
      <div class="strips-main" ref={box.ref}>
        <Ruler window={window} width={width} />
        <div
          ref={area}
          class="strips-area"
          role="application"
          aria-label={props.name}
          aria-roledescription="timeline"
          tabIndex={0}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerLeave={() => setPointer(undefined)}
          onPointerCancel={() => {
            drag.current = undefined;
            setDragPx(undefined);
          }}
          onKeyDown={onKeyDown}
        >
          <canvas
            ref={canvas}
            style={{width: `${width}px`, height: `${rows.length * rowPx}px`}}
            aria-hidden="true"
          />
        </div>
        <p class="strips-hover num" aria-hidden="true">
          {hovered && pointer ? hoverText(hovered, timeAt(pointer.x)) : ' '}
        </p>
      </div>
      <div class="strips-bars">
        <ul>
          {rows.map(row => (
            <li key={row.key}>
              <ShareBar data={row.data} name={row.name} />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function hoverText(row: StripRow, atNs: number): string {
  const head = `${row.name}, ${formatDuration(atNs)}`;
  if (!row.data) return `${head}: no GPU work recorded`;
  const own = atNs - row.shiftNs;
  const part = Math.floor(
    ((own - row.data.t0) * row.data.points) / Math.max(1, row.data.t1 - row.data.t0),
  );
  return part < 0 || part >= row.data.points ? head : `${head}: ${describePart(row.data, part)}`;
}

/** Times along the top: steps of 1, 2 or 5. */
function Ruler({window, width}: {window: TimeWindow; width: number}): JSX.Element {
  const length = window.t1 - window.t0;
  // steps for a window of its length, laid from its begin on
  const step = axisSteps((length * 500) / Math.max(250, width))[1] ?? length;
  const ticks: number[] = [];
  for (let t = Math.ceil(window.t0 / step) * step; t < window.t1 && ticks.length < 50; t += step)
    ticks.push(t);
  return (
    <svg class="strips-ruler chart-axis" width={width} height={20} aria-hidden="true">
      {ticks.map(t => {
        const x = (width * (t - window.t0)) / length;
        return (
          <g key={t}>
            <line x1={x} x2={x} y1={14} y2={20} />
            <text x={x + 3} y={11}>
              {formatDuration(t, 4)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

/** What the window is made of, in one bar. */
export function ShareBar(props: {data: StripData | undefined; name: string}): JSX.Element {
  const {data} = props;
  if (!data) return <span class="faint">no GPU</span>;
  const length = data.t1 - data.t0;
  const shares = sharesOf(data);
  const said = shares.map(share => `${share.name} ${formatPct((100 * share.totalNs) / length)}`);
  return (
    <span
      class="share-bar"
      role="img"
      aria-label={`${props.name}: ${said.join(', ') || 'nothing recorded'}`}
      title={said.join('\n')}
    >
      {shares.map(share => (
        <span
          key={share.name + String(share.isWaiting)}
          class={share.cause === undefined ? 'share-work' : ''}
          style={{
            width: `${(100 * share.totalNs) / length}%`,
            ...(share.cause === undefined ? {} : {background: `var(--cause-${share.cause})`}),
          }}
        />
      ))}
    </span>
  );
}

/** Buttons for what wheel and keys do. */
export function ZoomButtons(props: {
  window: TimeWindow;
  endNs: number;
  onWindow: (window: TimeWindow, isLeap: boolean) => void;
}): JSX.Element {
  const {window, endNs} = props;
  return (
    <span class="strips-zoom" role="group" aria-label="Zoom">
      <button
        type="button"
        class="button"
        onClick={() => props.onWindow(zoomed(window, 0.5, 0.5, endNs), true)}
      >
        Zoom in
      </button>
      <button
        type="button"
        class="button"
        onClick={() => props.onWindow(zoomed(window, 2, 0.5, endNs), true)}
      >
        Zoom out
      </button>
      <button
        type="button"
        class="button"
        onClick={() => props.onWindow({t0: ns(0), t1: ns(endNs)}, true)}
      >
        All
      </button>
    </span>
  );
}

/** Show a window in the address of the page. */
export function showWindow(next: TimeWindow, isLeap: boolean, set: (w: TimeWindow) => void): void {
  if (isLeap) leap({window: next});
  else set(next);
}
