// A window of a trace as Chrome JSON, which Perfetto and chrome://tracing open: its slices without
// their arguments, made here from what the timeline shows. `lacuna export` writes all of a trace.
import {getSlices, getTracks} from '../../api/client';
import type {SliceInfo, TrackInfo, TracksInfo} from '../../api/types';

/** Beyond these the file is one for `lacuna export`. */
export const WINDOW_SLICES_MAX = 200_000;
const PAGE = 10_000;

/** Categories as PyTorch's profiler has them, by the kind of a slice. */
const CATEGORIES: Readonly<Record<string, string>> = {
  copy: 'gpu_memcpy',
  memset: 'gpu_memset',
  op: 'cpu_op',
  range: 'user_annotation',
  api: 'cuda_runtime',
  python: 'python_function',
};

type Event = Readonly<Record<string, unknown>>;
const us = (ns: number): number => ns / 1000;

/** Whose a row is: streams are their device's; what was found out about them is nobody's, so that
 *  it is not taken for GPU work when the file comes back. */
function ownerOf(info: TracksInfo, track: TrackInfo): {pid: number | string; name: string} {
  if (track.kind === 'stream') return {pid: track.device ?? 0, name: `GPU ${track.device ?? 0}`};
  const process = info.processes.find(each => each.index === track.process);
  return process && track.device === undefined
    ? {pid: process.pid, name: process.name}
    : {pid: 'Lacuna', name: 'Lacuna'};
}

export function eventsOf(
  info: TracksInfo,
  track: TrackInfo,
  slices: readonly SliceInfo[],
): readonly Event[] {
  if (slices.length === 0) return [];
  const {pid, name: owner} = ownerOf(info, track);
  const place = {pid, tid: track.index};
  const args =
    track.kind === 'stream' ? {device: track.device, stream: Number(track.id) || 0} : undefined;
  return [
    {ph: 'M', name: 'process_name', ...place, args: {name: owner}},
    {ph: 'M', name: 'thread_name', ...place, args: {name: track.name || track.id || track.kind}},
    ...slices.map(({name, kind, start_ns: start, dur_ns: dur}) => ({
      ph: 'X',
      cat: CATEGORIES[kind] ?? kind,
      name,
      ...place,
      ts: us(start),
      dur: us(dur),
      ...(args && {args}),
    })),
  ];
}

/** @throws RangeError when there is more in it than a page should hold */
export async function exportWindow(
  id: string,
  t0: number,
  t1: number,
  signal?: AbortSignal,
): Promise<Blob> {
  const info = await getTracks(id, signal);
  const events: Event[] = [];
  for (const track of info.tracks) {
    if (track.count === 0 || track.kind === 'counter' || track.kind === 'profile') continue;
    const slices: SliceInfo[] = [];
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const reply = await getSlices(id, {track: track.index, t0, t1, limit: PAGE, after}, signal);
      slices.push(...reply.slices);
      after = reply.next;
      if (events.length + slices.length > WINDOW_SLICES_MAX)
        throw new RangeError(
          'More than 200 000 slices: zoom in, or use lacuna export --to chrome.',
        );
    }
    events.push(...eventsOf(info, track, slices));
  }
  return new Blob([JSON.stringify({displayTimeUnit: 'ns', traceEvents: events})], {
    type: 'application/json',
  });
}
