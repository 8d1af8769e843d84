// The flame graph on screen: pointer, keyboard and what they show. Drawing is in the painter.
import type {JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {
  neighbor,
  nodeAt,
  type FlameLayout,
  type FlameMatch,
  type FlameTree,
} from '../model/flame_tree';
import {resolvedTheme} from '../model/theme';
import {FlamePainter, MIN_WIDTH_PX, ROW_PX, type FlameScene} from './flame_painter';

export interface FlameCanvasProps {
  readonly tree: FlameTree;
  readonly layout: FlameLayout;
  readonly match: FlameMatch | undefined;
  readonly labelOf: (node: number) => string;
  readonly valueText: (node: number) => string;
  /** One line on a frame: value, shares, count. */
  readonly describe: (node: number) => string;
  readonly onFocus: (node: number) => void;
  readonly onDrop: (node: number) => void;
  readonly onReset: () => void;
  /** Children of a frame that are too narrow to be seen; `wide` are the others. */
  readonly onOpenRest?: (parent: number, wide: readonly number[]) => void;
  readonly toneOf?: ((node: number) => number) | undefined;
  /** What a screen reader calls it. */
  readonly name?: string;
}

interface Pointed {
  readonly node: number;
  readonly x: number;
  readonly y: number;
}

const WAYS: Readonly<Record<string, 'up' | 'down' | 'left' | 'right'>> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
};

export function FlameCanvas(props: FlameCanvasProps): JSX.Element {
  const {tree, layout} = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<FlamePainter | undefined>(undefined);
  const scheduled = useRef(0);
  const [pointed, setPointed] = useState<Pointed | undefined>(undefined);
  const [active, setActive] = useState<number | undefined>(undefined);
  const isDark = resolvedTheme.value === 'dark';

  const scene = useRef<FlameScene | undefined>(undefined);
  scene.current = {
    tree,
    layout,
    match: props.match,
    hovered: pointed?.node,
    active,
    isDark,
    labelOf: props.labelOf,
    valueText: props.valueText,
    toneOf: props.toneOf,
  };

  const paint = (): void => {
    if (scheduled.current !== 0) return;
    scheduled.current = requestAnimationFrame(() => {
      scheduled.current = 0;
      const element = box.current;
      if (!element || !canvas.current || !scene.current) return;
      painter.current ??= new FlamePainter(canvas.current);
      painter.current.paint(
        scene.current,
        element.clientWidth,
        element.clientHeight,
        element.scrollTop,
      );
    });
  };

  useEffect(paint);
  useEffect(() => {
    setPointed(undefined);
    setActive(undefined);
  }, [tree]);
  // frames move: what the pointer was over is elsewhere, or dropped
  useEffect(() => setPointed(undefined), [layout]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(scheduled.current);
      scheduled.current = 0;
    };
  }, []);

  const hit = (event: MouseEvent): Pointed | undefined => {
    const element = box.current;
    if (!element) return undefined;
    const rect = element.getBoundingClientRect();
    const x = (event.clientX - rect.left) / Math.max(1, element.clientWidth);
    const depth = Math.floor((event.clientY - rect.top + element.scrollTop) / ROW_PX);
    const node = nodeAt(tree, layout, x, depth);
    return node === undefined
      ? undefined
      : {node, x: event.clientX - rect.left, y: event.clientY - rect.top};
  };

  /** A press on frames that are drawn as one opens them all. */
  const openRest = (node: number): boolean => {
    const widthPx = box.current?.clientWidth ?? 0;
    const isNarrow = (i: number): boolean =>
      ((layout.x1[i] ?? 0) - (layout.x0[i] ?? 0)) * widthPx < MIN_WIDTH_PX;
    const parent = tree.parent[node] ?? -1;
    if (!props.onOpenRest || parent < 0 || !isNarrow(node)) return false;
    const wide: number[] = [];
    for (let i = parent + 1; i < (tree.end[parent] ?? 0); i = tree.end[i] ?? tree.count)
      if (!isNarrow(i)) wide.push(i);
    props.onOpenRest(parent, wide);
    return true;
  };

  const drop = (node: number): void => {
    setActive(undefined);
    props.onDrop(node);
  };

  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = active ?? layout.focus;
    const way = WAYS[event.key];
    if (way !== undefined) {
      const next = active === undefined ? at : neighbor(tree, layout, at, way);
      setActive(next);
      keepInSight(box.current, tree.depth[next] ?? 0);
    } else if (event.key === 'Enter' && active !== undefined) {
      if (event.shiftKey) drop(active);
      else props.onFocus(active);
    } else if (event.key === 'Delete' && active !== undefined) {
      drop(active);
    } else if (event.key === 'Escape' || event.key === 'Backspace') {
      setActive(undefined);
      props.onReset();
    } else return;
    event.preventDefault();
  };

  const shown = pointed?.node ?? active;
  return (
    <div class="flame">
      <div
        ref={box}
        class="flame-box"
        role="application"
        aria-roledescription="flame graph"
        aria-label={`${props.name ?? 'Flame graph'}. Arrow keys move between frames, Enter focuses, Delete drops, Escape goes back. The same data is in the table.`}
        tabIndex={0}
        data-testid="flame"
        onScroll={paint}
        onKeyDown={onKey}
        onPointerMove={event => setPointed(hit(event))}
        onPointerLeave={() => setPointed(undefined)}
        onClick={event => {
          const at = hit(event);
          if (!at) return;
          if (openRest(at.node)) return;
          if (event.shiftKey) return drop(at.node);
          setActive(at.node);
          props.onFocus(at.node);
        }}
      >
        <div class="flame-rows" style={{height: `${(tree.depthMax + 1) * ROW_PX}px`}}>
          <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
        </div>
      </div>
      {pointed && box.current && (
        <Tip
          box={box.current}
          at={pointed}
          name={tipName(props, pointed.node)}
          text={props.describe(pointed.node)}
        />
      )}
      <div class="off-screen" aria-live="polite">
        {shown === undefined ? '' : `${props.labelOf(shown)}: ${props.describe(shown)}`}
      </div>
    </div>
  );
}

/** The short name and, where it differs, the full one. */
function tipName(props: FlameCanvasProps, node: number): string {
  const label = props.labelOf(node);
  const name = props.tree.name[node] ?? '';
  return props.tree.kind[node] === 'kernel' && label !== name ? `${label}\n${name}` : label;
}

const TIP_WIDTH_PX = 420;

function Tip(props: {box: HTMLElement; at: Pointed; name: string; text: string}): JSX.Element {
  const {at, box} = props;
  const width = Math.min(TIP_WIDTH_PX, box.clientWidth - 16);
  const left = Math.max(8, Math.min(at.x + 14, box.clientWidth - width - 8));
  const above = at.y > box.clientHeight - 110;
  return (
    <div
      class="tip"
      aria-hidden="true"
      style={{
        left: `${left}px`,
        maxWidth: `${width}px`,
        ...(above ? {bottom: `${box.clientHeight - at.y + 10}px`} : {top: `${at.y + 18}px`}),
      }}
    >
      {props.name
        .split('\n')
        .map((line, index) =>
          index === 0 ? (
            <strong class="break">{line}</strong>
          ) : (
            <code class="tip-full">{line}</code>
          ),
        )}
      <span class="num">{props.text}</span>
    </div>
  );
}

function keepInSight(box: HTMLElement | null, depth: number): void {
  if (!box) return;
  const top = depth * ROW_PX;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW_PX > box.scrollTop + box.clientHeight)
    box.scrollTop = top + ROW_PX - box.clientHeight;
}
