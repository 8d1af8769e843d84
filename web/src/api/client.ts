// The one place that talks to the server. Replies are checked before any other code sees them.
import {ShapeError, type Shape} from '../base/shape';
import * as tables from './table_types';
import * as shapes from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Where the page lives, with a slash at its end: the folder that app.js came from. */
export const BASE_URL = new URL('.', import.meta.url).href;

/** Address of an API path ("traces/x") with its query. `undefined` members are left out. */
export function apiUrl(path: string, query: Query = {}): string {
  const url = new URL(`api/v1/${path}`, BASE_URL);
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(key, String(value));
  return url.href;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

type UnauthorizedListener = () => void;
let onUnauthorized: UnauthorizedListener = () => undefined;
/** Called whenever a reply says that the key is missing or wrong. */
export function setUnauthorizedListener(listener: UnauthorizedListener): void {
  onUnauthorized = listener;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** One sentence for the user. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof ShapeError)
    return `The server's reply was not understood (${error.message}). The page and the server may be different versions: reload the page.`;
  if (error instanceof TypeError) return 'The server is not responding.';
  return error instanceof Error ? error.message : String(error);
}

export async function request(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, {credentials: 'same-origin', ...init});
  if (response.ok) return response;
  if (response.status === 401) onUnauthorized();
  throw await failure(response.status, response.statusText, await response.text());
}

/** The error in a reply's body, or one made from its status. */
export async function failure(status: number, statusText: string, body: string): Promise<ApiError> {
  try {
    const {error} = shapes.errorShape(JSON.parse(body), '');
    return new ApiError(status, error.code, error.message);
  } catch {
    return new ApiError(status, 'http', `The server answered ${status} ${statusText}`.trim());
  }
}

const JSON_REPLY = {headers: {Accept: 'application/json'}};

/** Replies that were asked for before their reader was there, by address; each is read once. */
const early = new Map<string, Promise<Response>>();

/** @param isThere whether the server has it: else only a reader who knows better asks */
function askEarly(path: string, query: Query = {}, isThere = Promise.resolve(true)): void {
  const url = apiUrl(path, query);
  const reply = isThere.then(is => {
    if (is || early.get(url) !== reply) return request(url, JSON_REPLY);
    early.delete(url);
    throw new Error('not asked for');
  });
  reply.catch(() => undefined); // its reader hears of it
  early.set(url, reply);
}

export async function getJson<T>(
  path: string,
  shape: Shape<T>,
  query: Query = {},
  signal?: AbortSignal,
): Promise<T> {
  const url = apiUrl(path, query);
  const asked = early.get(url);
  early.delete(url);
  const response = await (asked ?? request(url, {...JSON_REPLY, ...(signal ? {signal} : {})}));
  return shape(await response.json(), '');
}

async function getBytes(
  path: string,
  query: Query = {},
  signal?: AbortSignal,
): Promise<ArrayBuffer> {
  const response = await request(apiUrl(path, query), signal ? {signal} : {});
  return response.arrayBuffer();
}

/** A request with a JSON body, or with none. */
export const send = (
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> =>
  request(apiUrl(path), {
    method,
    ...(body === undefined ? {} : jsonBody(body)),
    ...(signal ? {signal} : {}),
  });

export const jsonBody = (body: unknown) => ({
  headers: {'Content-Type': 'application/json'},
  body: JSON.stringify(body),
});

/** The same, with what it answers. */
export const sendFor = async <T>(
  method: string,
  path: string,
  body: unknown,
  shape: Shape<T>,
): Promise<T> => shape(await (await send(method, path, body)).json(), '');

/** Exchange the key in the printed address for the cookie. @return false for a wrong key */
export const openSession = (key: string): Promise<boolean> => signIn({key});

/** With the server's key, or as a user. False: what was sent is wrong. */
export async function signIn(
  body: {key: string} | {name: string; password: string},
): Promise<boolean> {
  const response = await fetch(apiUrl('session'), {
    method: 'POST',
    credentials: 'same-origin',
    ...jsonBody(body),
  });
  if (response.ok) return true;
  if (response.status === 403 || response.status === 401) return false;
  throw await failure(response.status, response.statusText, await response.text());
}

export const trace = (id: string): string => `traces/${encodeURIComponent(id)}`;

export const listTraces = (
  query: {limit?: number; after?: string; q?: string; run?: string},
  s?: AbortSignal,
) => getJson('traces', shapes.traceListShape, query, s);

export const listHangs = () => getJson('hangs', shapes.hangListShape);

const run = (id: string): string => `runs/${encodeURIComponent(id)}`;

/** Traces that came one by one, as ranks of one job; and each by itself again. */
export const joinRun = (name: string, traces: readonly string[]) =>
  send('POST', 'runs', {name, traces});
export const dissolveRun = (id: string) => send('DELETE', run(id));

export const listRuns = (query: {limit?: number; after?: string}, s?: AbortSignal) =>
  getJson('runs', shapes.runListShape, query, s);

export const getRun = (id: string, s?: AbortSignal) => getJson(run(id), shapes.runShape, {}, s);

/** The ranks compared; the analysis of each is that of its trace. */
export const getRunAnalysis = (id: string, s?: AbortSignal) =>
  getJson(`${run(id)}/analysis`, shapes.runAnalysisShape, {detail: 'brief'}, s);

/** What a device of a trace (the first one) did in each part of a window, which may begin before
 *  the trace. */
export const getStrip = (
  id: string,
  query: {t0: number; t1: number; points: number; device?: number},
  s?: AbortSignal,
) => getJson(`${trace(id)}/strip`, shapes.stripOfTraceShape, query, s);

/** What the devices of all ranks did in each part of a window, on one clock. */
export const getRunStrips = (
  id: string,
  query: {t0?: number; t1?: number; points?: number},
  s?: AbortSignal,
) => getJson(`${run(id)}/strips`, shapes.runStripsShape, query, s);

/** Of the collectives of a window those with the latest rank, in order of time. */
export const getRunCollectives = (
  id: string,
  query: {t0?: number; t1?: number; limit?: number},
  s?: AbortSignal,
) => getJson(`${run(id)}/collectives`, shapes.runCollectivesShape, query, s);

export const getTrace = (id: string, s?: AbortSignal) =>
  getJson(trace(id), shapes.traceShape, {}, s);

export const deleteTrace = (id: string) => send('DELETE', trace(id));

/** What people say of a trace; what is left out stays. */
export interface Labels {
  readonly name?: string;
  readonly project?: string;
  readonly notes?: string;
  readonly tags?: readonly string[];
  readonly baseline?: boolean;
  readonly pinned?: boolean;
}

export const labelTrace = (id: string, labels: Labels) =>
  sendFor('PATCH', trace(id), labels, shapes.traceShape);

export const getSteps = (
  id: string,
  query: {points?: number; waiting?: 'no' | 'yes'; device?: number},
  s?: AbortSignal,
) => getJson(`${trace(id)}/steps`, shapes.stepPointsShape, query, s);

export const getVocabulary = (s?: AbortSignal) =>
  getJson('vocabulary', shapes.vocabularyShape, {}, s);

export const listFindings = (s?: AbortSignal) =>
  getJson('findings', shapes.findingListShape, {}, s);

export const getFinding = (id: string, s?: AbortSignal) =>
  getJson(`findings/${encodeURIComponent(id)}`, shapes.findingDocumentShape, {}, s);

/** Imports the kept upload of a failed trace again. */
export const retryImport = (id: string) => send('POST', `${trace(id)}/retry`);

export const getAnalysis = (id: string, s?: AbortSignal) =>
  getJson(`${trace(id)}/analysis`, shapes.analysisShape, {}, s);

const TRACKS_PAGE = {limit: 65536};

/** Names 0 to this are asked for at once: most traces have no more, and tiles need no others. */
export const FIRST_NAMES = 4096;
const FIRST_NAMES_PAGE = {from: 0, limit: FIRST_NAMES};
/** Kernels whose short names and counts are asked for at once. */
const LONGEST_KERNELS = {sort: 'total', order: 'desc', limit: 1000} as const;

/** What the page of a trace begins with, asked for while the page is still being built. */
export function askForTrace(id: string, isTimeline: boolean): void {
  askEarly(trace(id));
  // of a trace that failed, or is still imported, there is nothing else
  const isReady = (early.get(apiUrl(trace(id))) as Promise<Response>)
    .then(async reply => shapes.traceShape(await reply.clone().json(), '').state === 'ready')
    .catch(() => false);
  askEarly(`${trace(id)}/analysis`, {}, isReady);
  askEarly(`${trace(id)}/tracks`, TRACKS_PAGE, isReady);
  if (!isTimeline) return;
  askEarly(`${trace(id)}/names`, FIRST_NAMES_PAGE, isReady);
  askEarly(`${trace(id)}/kernels`, LONGEST_KERNELS, isReady);
}

/** All tracks: a trace with hundreds of thousands of them comes in pages. */
export async function getTracks(id: string, s?: AbortSignal): Promise<shapes.TracksInfo> {
  const page = (after?: string) =>
    getJson(`${trace(id)}/tracks`, shapes.tracksShape, {...TRACKS_PAGE, after}, s);
  const pages = [await page()];
  for (let next = pages[0]?.next; next !== undefined;) {
    const more = await page(next);
    pages.push(more);
    next = more.next === next ? undefined : more.next;
  }
  return shapes.joinTracks(pages);
}

/** A tile batch as bytes (server/store/FORMAT.md). `tracks` is a set such as "1,4-9". */
export const getTiles = (
  id: string,
  generation: number,
  level: number,
  first: number,
  last: number,
  tracks: string,
  s?: AbortSignal,
) => getBytes(`${trace(id)}/g${generation}/tiles/${level}/${first}-${last}`, {tracks}, s);

export const getCounter = (
  id: string,
  track: number,
  query: {t0: number; t1: number; points: number},
  s?: AbortSignal,
) => getJson(`${trace(id)}/counters/${track}`, shapes.counterShape, query, s);

export const getNames = (
  id: string,
  query: {ids: string} | {from: number; limit: number},
  s?: AbortSignal,
) => getJson(`${trace(id)}/names`, shapes.namesShape, query, s);

export const getFirstNames = (id: string, s?: AbortSignal) => getNames(id, FIRST_NAMES_PAGE, s);

export const getSlice = (id: string, slice: number, s?: AbortSignal) =>
  getJson(`${trace(id)}/slices/${slice}`, shapes.sliceShape, {}, s);

export const getSlices = (
  id: string,
  query: {track: number; t0: number; t1: number; limit?: number; after?: string | undefined},
  s?: AbortSignal,
) => getJson(`${trace(id)}/slices`, shapes.slicesShape, query, s);

export const searchSlices = (
  id: string,
  query: {q: string; limit?: number; bins?: number; after?: string; sort?: 'start' | 'dur'},
  s?: AbortSignal,
) => getJson(`${trace(id)}/search`, shapes.searchShape, query, s);

export interface KernelQuery {
  readonly sort?: string;
  readonly order?: 'asc' | 'desc';
  readonly q?: string;
  readonly limit?: number;
  readonly after?: string;
}
export const getKernels = (id: string, query: KernelQuery, s?: AbortSignal) =>
  getJson(`${trace(id)}/kernels`, shapes.kernelsShape, {...query}, s);

export const getLongestKernels = (id: string, s?: AbortSignal) =>
  getKernels(id, LONGEST_KERNELS, s);

export const getGaps = (
  id: string,
  query: {device?: number; min_ns?: number; limit?: number; sort?: string},
  s?: AbortSignal,
) => getJson(`${trace(id)}/gaps`, shapes.gapsShape, query, s);

export interface AreaQuery {
  readonly t0: number;
  readonly t1: number;
  /** "1,4-9"; all rows without it. */
  readonly tracks?: string;
  readonly sort?: string;
  readonly order?: 'asc' | 'desc';
  readonly limit?: number;
}
export const getArea = (id: string, query: AreaQuery, s?: AbortSignal) =>
  getJson(`${trace(id)}/area`, shapes.areaShape, {...query}, s);

/** What is around a slice, and what it launched. */
export const getLaunched = (id: string, slice: number, s?: AbortSignal) =>
  getJson(`${trace(id)}/slices/${slice}/launched`, tables.launchedShape, {}, s);

export interface TableQuery {
  readonly t0?: number;
  readonly t1?: number;
  readonly steps?: string;
  readonly tracks?: string;
  readonly by?: string;
  readonly q?: string;
  readonly sort?: string;
  readonly order?: 'asc' | 'desc';
  readonly limit?: number;
  readonly after?: string;
}
export const getTable = (id: string, name: tables.TableName, query: TableQuery, s?: AbortSignal) =>
  getJson(`${trace(id)}/tables/${name}`, tables.tableShape, {...query}, s);

export interface FlameQuery {
  readonly metric: string;
  readonly by: string;
  readonly t0?: number;
  readonly t1?: number;
  readonly steps?: string | undefined;
  readonly tracks?: string | undefined;
  readonly order?: string | undefined;
  readonly detail?: string | undefined;
}
export const getFlame = (id: string, query: FlameQuery, s?: AbortSignal) =>
  getJson(`${trace(id)}/flame`, shapes.flameShape, {...query}, s);

/** The same as folded stacks, for other tools. */
export const foldedUrl = (id: string, query: FlameQuery): string =>
  apiUrl(`${trace(id)}/flame`, {...query, format: 'folded'});

export const getComparison = (a: string, b: string, s?: AbortSignal) =>
  getJson('compare', shapes.comparisonShape, {a, b}, s);

/** What the report of a trace would contain. */
export const getReportContents = (id: string, s?: AbortSignal) =>
  getJson(`${trace(id)}/report`, shapes.reportContentsShape, {format: 'contents'}, s);

/** Address of the trace as a file of that form; "original": what was uploaded. */
export const exportUrl = (id: string, form: string): string =>
  apiUrl(`${trace(id)}/export`, {to: form});

/** Address of the report as a file. */
export const reportUrl = (id: string, format: 'html' | 'markdown', redact: string): string =>
  apiUrl(`${trace(id)}/report`, {format, redact: redact === '' ? undefined : redact});
