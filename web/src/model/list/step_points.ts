// Step times of a trace as points of a chart: asked for once, kept for the rows of the list.
import {getSteps} from '../../api/client';
import type {StepPoints} from '../../api/types';

const POINTS = 48;
const KEPT_MAX = 500;
const AT_ONCE = 3;

const kept = new Map<string, Promise<StepPoints>>();
const waiting: (() => void)[] = [];
let underWay = 0;

/** A row is one of many: they wait for each other, so that what was pressed comes first. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (underWay >= AT_ONCE) await new Promise<void>(resolve => waiting.push(resolve));
  underWay += 1;
  try {
    return await work();
  } finally {
    underWay -= 1;
    waiting.shift()?.();
  }
}

export function loadStepPoints(id: string, generation: number): Promise<StepPoints> {
  const key = `${id}/${generation}`;
  const known = kept.get(key);
  if (known) return known;
  const loading = inTurn(() => getSteps(id, {points: POINTS}));
  kept.set(key, loading);
  loading.catch(() => kept.delete(key));
  for (const old of kept.keys()) if (kept.size > KEPT_MAX && old !== key) kept.delete(old);
  return loading;
}

/** A line through the values in a box, as the d of a path; "" for less than two. From 0 up, so that
 *  steps of one length are a level line. */
export function sparkPath(values: readonly number[], width: number, height: number): string {
  const top = Math.max(...values, 0);
  if (values.length < 2 || top <= 0) return '';
  const at = (value: number, index: number): string =>
    `${((width * index) / (values.length - 1)).toFixed(1)} ${(height - (height * value) / top).toFixed(1)}`;
  return `M${values.map(at).join('L')}`;
}
