// Forward and backward of an operator share a sequence number of autograd. Pure: runs in node.

import type {SqlValue} from '../../api/sql';

export interface PassRow {
  readonly slice: number;
  readonly name: string;
  readonly durNs: number;
  readonly isBackward: boolean;
}

/** The number in the arguments of a slice; undefined where there is none. */
export function sequenceOf(args: Readonly<Record<string, unknown>>): number | undefined {
  const value = args['Sequence number'];
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** @param sequence a whole number: nothing else may come into a query */
export const passQuery = (sequence: number): string =>
  'SELECT id, name, dur_ns, thread_id, ' +
  `json_extract(args, '$."Fwd thread id"') FROM operators WHERE json_extract(args, '$."Sequence number"') = ${Math.trunc(sequence)} ORDER BY start_ns, depth`;

/** Of the rows of that query those of the other pass; of a slice that is not among them, all. */
export function otherPass(rows: readonly (readonly SqlValue[])[], own: number): readonly PassRow[] {
  const all = rows.flatMap(([slice, name, durNs, , forwardThread]) =>
    typeof slice === 'number' && typeof name === 'string' && typeof durNs === 'number'
      ? [{slice, name, durNs, isBackward: isBackward(name, forwardThread)}]
      : [],
  );
  const self = all.find(row => row.slice === own);
  return self ? all.filter(row => row.isBackward !== self.isBackward) : all;
}

// Autograd's own operators carry the thread of the forward pass; of older recordings the name tells.
const isBackward = (name: string, forwardThread: SqlValue): boolean =>
  (typeof forwardThread === 'number' && forwardThread > 0) ||
  /Backward\d*$|AccumulateGrad/.test(name);
