// Rows of a query as a row of the timeline: whatever has a start and a length.
import type {SqlResult} from '../../api/sql';
import {cellText} from '../sql_query';
import type {SqlSlice, SqlTrack} from './shown_track';

const LANES_MAX = 6;

const column = (result: SqlResult, ...names: string[]): number =>
  names.map(name => result.columns.indexOf(name)).find(at => at >= 0) ?? -1;

/** Whether rows have times. */
export const hasTimes = (result: SqlResult): boolean =>
  column(result, 'start_ns') >= 0 && column(result, 'dur_ns', 'end_ns') >= 0;

export function trackOf(trace: string, query: string, result: SqlResult): SqlTrack {
  const start = column(result, 'start_ns');
  const dur = column(result, 'dur_ns');
  const end = column(result, 'end_ns');
  const name = column(result, 'name', 'cause', 'kind');
  const id = column(result, 'slice', 'id');
  const found: Omit<SqlSlice, 'lane'>[] = [];
  for (const row of result.rows) {
    const from = row[start];
    const length = dur >= 0 ? row[dur] : row[end];
    if (typeof from !== 'number' || typeof length !== 'number') continue;
    const key = id >= 0 ? row[id] : undefined;
    found.push({
      start: from,
      dur: Math.max(0, dur >= 0 ? length : length - from),
      name: name >= 0 ? cellText(row[name]) : '',
      id: typeof key === 'number' ? key : undefined,
    });
  }
  found.sort((a, b) => a.start - b.start || b.dur - a.dur);
  const ends: number[] = [];
  const slices: SqlSlice[] = [];
  for (const slice of found) {
    const free = ends.findIndex(each => each <= slice.start);
    const lane = free >= 0 ? free : ends.length;
    if (lane >= LANES_MAX) continue;
    ends[lane] = slice.start + slice.dur;
    slices.push({...slice, lane});
  }
  return {
    trace,
    query,
    slices,
    lanes: Math.max(1, ends.length),
    left: result.rows.length - slices.length,
  };
}
