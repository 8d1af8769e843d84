// What the charts of the page share: a box of its own width, an axis from 0 up, bars in layers.
import type {ComponentChildren, JSX} from 'preact';
import {useLayoutEffect, useState} from 'preact/hooks';
import {causeWord, type Cause} from '../base/causes';
import {formatDuration} from '../base/format';
import {Swatch} from './cause_mark';

export interface ChartBox {
  /** For the element that the chart is in, which may come later than the rest of the panel. */
  readonly ref: (element: HTMLDivElement | null) => void;
  readonly width: number;
  readonly left: () => number;
}

/** The width that a chart has. */
export function useWidth(): ChartBox {
  const [element, setElement] = useState<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return {ref: setElement, width, left: () => element?.getBoundingClientRect().left ?? 0};
}

export interface ChartLayer {
  readonly class: string;
  readonly values: readonly number[];
}

/** Room on the left for the numbers of the axis. */
export const AXIS_PX = 52;

/** Numbers on an axis from 0: at most four, with 1, 2 or 5 as their first digit apart. */
export function axisSteps(top: number): readonly number[] {
  if (!(top > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(top / 3));
  const step = [1, 2, 5, 10].map(part => part * power).find(each => top / each <= 4) ?? top;
  return Array.from({length: Math.floor(top / step) + 1}, (_, i) => i * step);
}

export function Axis(props: {
  top: number;
  width: number;
  height: number;
  format: (value: number) => string;
}): JSX.Element {
  return (
    <g class="chart-axis">
      {axisSteps(props.top).map(value => {
        const y = props.height - (props.height * value) / props.top;
        return (
          <g key={value}>
            <line x1={AXIS_PX} x2={props.width} y1={y} y2={y} />
            <text x={AXIS_PX - 6} y={y} dy="0.32em" text-anchor="end">
              {props.format(value)}
            </text>
          </g>
        );
      })}
    </g>
  );
}

/** A panel with one chart over an axis from 0 to `top`, drawn once its width is known; below it, what explains it. */
export function ChartPanel(props: {
  /** Of the heading and for tests. */
  id: string;
  title: ComponentChildren;
  aside: ComponentChildren;
  box: ChartBox;
  /** Its height and the room above and below it, in pixels; its largest value, and how the axis writes values. */
  plot: {
    height: number;
    above: number;
    below: number;
    top: number;
    format: (value: number) => string;
    /** Of the time that goes from its left end to its right one. */
    durationNs?: number;
  };
  /** What the chart says, for who cannot see it. */
  label: string;
  /** A press, in pixels from the left end of the plot. */
  onPress?: (px: number) => void;
  /** Below the chart. */
  note?: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  const {box, onPress} = props;
  const {width} = box;
  const {height, above, below, top, format, durationNs} = props.plot;
  const whole = above + height + below;
  return (
    <section class="panel" aria-labelledby={props.id} data-testid={props.id}>
      <header class="panel-head">
        <h2 id={props.id}>{props.title}</h2>
        <span class="panel-aside num">{props.aside}</span>
      </header>
      <div
        ref={box.ref}
        class={onPress ? 'chart chart-pressed' : 'chart'}
        onClick={onPress && (event => onPress(event.clientX - box.left() - AXIS_PX))}
      >
        {width > 0 && (
          <svg
            width={width}
            height={whole}
            viewBox={`0 -${above} ${width} ${whole}`}
            role="img"
            aria-label={props.label}
          >
            <Axis top={top} width={width} height={height} format={format} />
            {props.children}
          </svg>
        )}
      </div>
      {durationNs !== undefined && (
        <p class="chart-ends num">
          <span>0</span>
          <span>{formatDuration(durationNs)}</span>
        </p>
      )}
      {props.note}
    </section>
  );
}

/** Stacked bars: one path a layer, whatever the number of bars. */
export function StackedBars(props: {
  layers: readonly ChartLayer[];
  count: number;
  top: number;
  width: number;
  height: number;
}): JSX.Element {
  const {count, top, height} = props;
  const room = (props.width - AXIS_PX) / Math.max(1, count);
  const gap = room > 6 ? 1.5 : room > 3 ? 0.5 : 0;
  const base = new Float64Array(count);
  return (
    <>
      {props.layers.map(layer => {
        let d = '';
        for (let i = 0; i < count; i++) {
          const value = layer.values[i] ?? 0;
          if (!(value > 0)) continue;
          const from = base[i] ?? 0;
          base[i] = from + value;
          const x = AXIS_PX + i * room;
          const y = height - (height * (from + value)) / top;
          d += `M${x.toFixed(2)} ${y.toFixed(2)}h${(room - gap).toFixed(2)}v${((height * value) / top).toFixed(2)}H${x.toFixed(2)}Z`;
        }
        return <path key={layer.class} class={layer.class} d={d} />;
      })}
    </>
  );
}

export function CauseLegend({
  causes,
  children,
}: {
  causes: readonly Cause[];
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <p class="chart-legend">
      {children}
      {causes.map(cause => (
        <span key={cause}>
          <Swatch cause={cause} /> {causeWord(cause).label}
        </span>
      ))}
    </p>
  );
}
