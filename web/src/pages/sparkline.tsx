// Step times of a trace in a cell: asked for once the row is seen.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import type {StepPoints, TraceInfo} from '../api/types';
import {formatDuration, plural} from '../base/format';
import {loadStepPoints, sparkPath} from '../model/list/step_points';

const WIDTH = 72;
const HEIGHT = 18;

export function Sparkline({trace}: {trace: TraceInfo}): JSX.Element {
  const box = useRef<HTMLSpanElement>(null);
  const [points, setPoints] = useState<StepPoints | undefined>(undefined);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let isWanted = true;
    const observer = new IntersectionObserver(entries => {
      if (!entries.some(entry => entry.isIntersecting)) return;
      observer.disconnect();
      // a cell without a picture says nothing wrong
      loadStepPoints(trace.id, trace.generation).then(
        reply => isWanted && setPoints(reply),
        () => undefined,
      );
    });
    observer.observe(element);
    return () => {
      isWanted = false;
      observer.disconnect();
    };
  }, [trace.id, trace.generation]);
  const path = sparkPath(points?.max_ns ?? [], WIDTH, HEIGHT - 2);
  const text =
    points && path !== ''
      ? `${plural(points.count, 'step')}, the longest ${formatDuration(Math.max(...points.max_ns))}`
      : '';
  return (
    <span ref={box} class="spark" title={text}>
      {path !== '' && (
        <svg
          viewBox={`0 -1 ${WIDTH} ${HEIGHT}`}
          width={WIDTH}
          height={HEIGHT}
          role="img"
          aria-label={text}
        >
          <path class="spark-area" d={`${path}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`} />
          <path class="spark-line" d={path} />
        </svg>
      )}
    </span>
  );
}
