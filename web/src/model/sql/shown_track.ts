// The rows of a query that the timeline shows; apart from how they are made, which comes with the SQL page.
import {signal} from '@preact/signals';

export interface SqlSlice {
  readonly start: number;
  readonly dur: number;
  readonly name: string;
  /** slices.id, where the query gave it. */
  readonly id: number | undefined;
  readonly lane: number;
}

export interface SqlTrack {
  readonly trace: string;
  readonly query: string;
  readonly slices: readonly SqlSlice[];
  readonly lanes: number;
  /** Rows without a start and a length, or below the last lane. */
  readonly left: number;
}

/** Of the trace that is open; lives as long as the page. */
export const sqlTrack = signal<SqlTrack | undefined>(undefined);
