// What the GPU waited for in each step. Pure: runs in node.

import type {StepPoints} from '../../api/types';
import {CAUSES, type Cause} from '../../base/causes';

/** By step in order of its start, the longest wait first; empty where a point is of several steps. */
export function waitsByStep(
  points: StepPoints,
  startsNs: readonly number[],
): readonly (readonly (readonly [Cause, number])[])[] {
  const waiting = points.waiting;
  if (!waiting || points.per !== 1) return [];
  const place = new Map(points.start_ns.map((start, i) => [start as number, i]));
  return [...startsNs]
    .sort((a, b) => a - b)
    .map(start => {
      const i = place.get(start);
      if (i === undefined) return [];
      return CAUSES.map(cause => [cause, waiting.steps[cause]?.[i] ?? 0] as const)
        .filter(([, waited]) => waited > 0)
        .sort((a, b) => b[1] - a[1]);
    });
}
