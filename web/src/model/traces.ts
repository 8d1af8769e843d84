// The list of traces, kept up to date by server-sent events, else by polling.
import {computed, signal} from '@preact/signals';
import {
  ApiError,
  deleteTrace,
  errorText,
  getTrace,
  labelTrace,
  listTraces,
  retryImport,
  type Labels,
} from '../api/client';
import {subscribeTraces} from '../api/events';
import type {TraceInfo} from '../api/types';

const PAGE_SIZE = 200;
const POLL_BUSY_MS = 1000;
const POLL_IDLE_MS = 5000;
/** So long the first list waits for events. */
const FIRST_MS = 300;

export type ListState =
  | {readonly kind: 'loading'}
  | {readonly kind: 'ready'; readonly next: string | undefined}
  | {readonly kind: 'error'; readonly text: string};

export const traces = signal<readonly TraceInfo[]>([]);
export const listState = signal<ListState>({kind: 'loading'});
const isLive = signal(false);
/** The server did not answer the last time; the page keeps what it has. */
export const serverAway = signal(false);

export function isUnderWay(trace: TraceInfo): boolean {
  return trace.state === 'receiving' || trace.state === 'importing';
}
/** It failed for reasons of the server, which kept what was uploaded. */
export function canRetry(trace: TraceInfo): boolean {
  return trace.state === 'failed' && trace.error?.can_retry === true;
}
/** What a failed trace becomes when its import begins again. */
export function begunAgain(trace: TraceInfo): TraceInfo {
  return {...trace, state: 'importing', error: undefined, progress: undefined};
}
const anyUnderWay = computed(() => traces.value.some(isUnderWay));

/** The list with one trace replaced or inserted: newest first. */
export function mergeTrace(list: readonly TraceInfo[], trace: TraceInfo): readonly TraceInfo[] {
  const index = list.findIndex(t => t.id === trace.id);
  if (index >= 0) return list.map((t, i) => (i === index ? trace : t));
  const place = list.findIndex(t => t.created_at <= trace.created_at);
  const at = place < 0 ? list.length : place;
  return [...list.slice(0, at), trace, ...list.slice(at)];
}

/**
 * What a request answered, beside what is known by now: a reply may have left the server before an
 * event that came first. So it never takes a trace back from its end to being read.
 */
export function laterOf(known: TraceInfo | undefined, reply: TraceInfo): TraceInfo {
  const isOlder = known !== undefined && !isUnderWay(known) && isUnderWay(reply);
  return isOlder ? known : reply;
}

/**
 * The list after a page of it came, which was asked for some time ago. What was heard of meanwhile
 * stays as it was heard; what is deleted stays deleted; traces older than the page stay, too. All
 * others that the page does not name are gone.
 */
export function mergePage(
  list: readonly TraceInfo[],
  reply: {readonly traces: readonly TraceInfo[]; readonly next: string | undefined},
  heard: ReadonlySet<string>,
  deleted: ReadonlySet<string>,
): readonly TraceInfo[] {
  const known = new Map(list.map(trace => [trace.id, trace]));
  const named = new Set(reply.traces.map(trace => trace.id));
  const end = reply.traces.at(-1)?.created_at ?? '';
  const isBehind = (trace: TraceInfo): boolean =>
    reply.next !== undefined && trace.created_at <= end;
  const rest = list.filter(t => !named.has(t.id) && (heard.has(t.id) || isBehind(t)));
  const page = reply.traces
    .filter(trace => !deleted.has(trace.id))
    .map(trace => {
      const before = known.get(trace.id);
      return before && heard.has(trace.id) ? laterOf(before, trace) : trace;
    });
  return rest.reduce(mergeTrace, page);
}

/** Ids are never used again: what is deleted stays deleted, whatever an old reply says. */
const deletedIds = new Set<string>();
export const deletedTraces = signal<ReadonlySet<string>>(deletedIds);

/** What events told, by the request that was the newest then. */
const heardAt = new Map<string, number>();
let requests = 0;
let newestReply = 0;

const isSame =
  (trace: TraceInfo) =>
  (known: TraceInfo): boolean =>
    known.id === trace.id && JSON.stringify(known) === JSON.stringify(trace);

function forget(id: string): void {
  deletedIds.add(id);
  deletedTraces.value = new Set(deletedIds);
  traces.value = traces.value.filter(t => t.id !== id);
}

/** Takes in a reply. Without events nothing can have overtaken it: then the reply holds. */
export function takeReply(reply: TraceInfo): void {
  if (deletedIds.has(reply.id)) return;
  const known = traceById(reply.id);
  const trace = isLive.value ? laterOf(known, reply) : reply;
  // one that is as it was is the same object still: nothing that hangs on it is asked again
  if (!known || !isSame(trace)(known)) traces.value = mergeTrace(traces.value, trace);
}

export function traceById(id: string | undefined): TraceInfo | undefined {
  return traces.value.find(t => t.id === id);
}

export async function loadTraces(): Promise<void> {
  const request = ++requests;
  try {
    const reply = await listTraces({limit: PAGE_SIZE});
    serverAway.value = false;
    if (request < newestReply) return;
    newestReply = request;
    const heard = new Set([...heardAt].filter(([, at]) => at >= request).map(([id]) => id));
    const before = listState.value;
    const count = traces.value.length;
    const known = traces.value;
    const merged = mergePage(known, reply, heard, deletedIds);
    // a trace that the page came for is the same object still: nothing that hangs on it is asked again
    traces.value =
      before.kind === 'loading' ? merged.map(trace => known.find(isSame(trace)) ?? trace) : merged;
    // older pages that were shown before are there still, and so is the place they end at
    const hasOlder = before.kind === 'ready' && count > reply.traces.length;
    listState.value = {kind: 'ready', next: hasOlder ? before.next : reply.next};
  } catch (error) {
    noteFailure(error);
    if (traces.value.length === 0) listState.value = {kind: 'error', text: errorText(error)};
  }
}

export async function loadMoreTraces(): Promise<void> {
  const state = listState.value;
  if (state.kind !== 'ready' || state.next === undefined) return;
  let reply: Awaited<ReturnType<typeof listTraces>>;
  try {
    reply = await listTraces({limit: PAGE_SIZE, after: state.next});
  } catch (error) {
    noteFailure(error);
    return;
  }
  if (listState.value !== state) return; // pressed twice, or the list was loaded again meanwhile
  const known = new Set(traces.value.map(t => t.id));
  traces.value = [
    ...traces.value,
    ...reply.traces.filter(t => !known.has(t.id) && !deletedIds.has(t.id)),
  ];
  listState.value = {kind: 'ready', next: reply.next};
}

export async function refreshTrace(id: string): Promise<void> {
  try {
    takeReply(await getTrace(id));
    serverAway.value = false;
  } catch (error) {
    noteFailure(error);
  }
}

export async function removeTrace(id: string): Promise<void> {
  await deleteTrace(id);
  forget(id);
}

export async function setLabels(id: string, labels: Labels): Promise<void> {
  const reply = await labelTrace(id, labels);
  if (!deletedIds.has(id)) traces.value = mergeTrace(traces.value, reply);
}

export async function retryTrace(trace: TraceInfo): Promise<void> {
  await retryImport(trace.id);
  const known = traceById(trace.id);
  // an event may have told of its end already
  if (known === undefined || known === trace)
    traces.value = mergeTrace(traces.value, begunAgain(trace));
}

function noteFailure(error: unknown): void {
  serverAway.value =
    error instanceof TypeError || (error instanceof ApiError && error.status >= 502);
}

/**
 * Load the list and keep it up to date. The list is asked for once events come, so that nothing is
 * missed between the two; where they do not come soon, without them.
 * @return a function that ends it
 */
export function startLiveUpdates(): () => void {
  let wasLive = false;
  const poll = async (): Promise<void> => {
    const isCurrent = isLive.value && listState.value.kind !== 'error';
    if (!isCurrent && document.visibilityState === 'visible') await loadTraces();
    if (timer === undefined) return;
    timer = setTimeout(
      () => void poll(),
      anyUnderWay.value && !isLive.value ? POLL_BUSY_MS : POLL_IDLE_MS,
    );
  };
  let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(() => void poll(), FIRST_MS);
  const end = subscribeTraces({
    onTrace: trace => {
      serverAway.value = false;
      if (deletedIds.has(trace.id)) return;
      heardAt.set(trace.id, requests);
      traces.value = mergeTrace(traces.value, trace);
    },
    onDeleted: forget,
    onLive: live => {
      isLive.value = live;
      // what happened while no events came
      if (live && !wasLive) void loadTraces();
      wasLive = live;
    },
  });
  return () => {
    clearTimeout(timer);
    timer = undefined;
    end();
    isLive.value = false;
  };
}
