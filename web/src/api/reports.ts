// Reports that people write, what is said beside them, and links that share them.
import {bool, list, num, obj, opt, or, str, type Infer} from '../base/shape';
import {apiUrl, failure, getJson, jsonBody, request, send, sendFor, trace} from './client';
import {reportContentsShape} from './types';

const rowMembers = {
  id: str,
  project: or(str, ''),
  title: or(str, ''),
  version: num,
  author: or(str, ''),
  editor: or(str, ''),
  created_at: or(str, ''),
  updated_at: or(str, ''),
  open_threads: or(num, 0),
};
const rowShape = obj(rowMembers);
export type ReportRow = Infer<typeof rowShape>;
const listShape = obj({reports: list(rowShape), next: opt(str)});
const partShape = obj({part: str, kind: or(str, ''), kept: or(bool, false)});
const reportShape = obj({...rowMembers, markdown: or(str, ''), parts: or(list(partShape), [])});
export type Report = Infer<typeof reportShape>;

const conflictShape = obj({
  current: obj({...rowMembers, markdown: or(str, '')}),
});
export type Conflict = Infer<typeof conflictShape>['current'];

const versionsShape = obj({
  versions: list(
    obj({version: num, title: or(str, ''), editor: or(str, ''), saved_at: or(str, '')}),
  ),
});
const versionShape = obj({version: num, title: or(str, ''), markdown: or(str, '')});

const commentShape = obj({
  id: str,
  thread: str,
  part: or(str, ''),
  body: or(str, ''),
  author: or(str, ''),
  created_at: or(str, ''),
  edited_at: opt(str),
  resolved: or(bool, false),
  resolved_by: opt(str),
});
export type Comment = Infer<typeof commentShape>;
const commentsShape = obj({comments: list(commentShape)});

const findingStateShape = obj({
  part: str,
  state: or(str, 'open'),
  note: or(str, ''),
  author: or(str, ''),
});
export type FindingState = Infer<typeof findingStateShape>;
const findingStatesShape = obj({findings: list(findingStateShape)});

const shareShape = obj({
  id: str,
  kind: or(str, ''),
  redact: or(list(str), []),
  author: or(str, ''),
  created_at: or(str, ''),
  expires_at: opt(str),
  used_count: or(num, 0),
});
export type Share = Infer<typeof shareShape>;
const sharesShape = obj({shares: list(shareShape)});
const linkShape = obj({id: str, url: str});

const path = (id: string): string => `reports/${encodeURIComponent(id)}`;

export const listReports = (query: {q?: string; after?: string; limit?: number}, s?: AbortSignal) =>
  getJson('reports', listShape, query, s);

export const getReport = (id: string, s?: AbortSignal) => getJson(path(id), reportShape, {}, s);

/** A new report; `from` drafts its text of one trace, of two, or of several in their order. */
export const createReport = (body: {
  title?: string;
  markdown?: string;
  project?: string;
  from?: readonly string[];
}) => sendFor('POST', 'reports', body, reportShape);

/** Save the next version. Where somebody saved meanwhile, that version and what it says. */
export async function saveReport(
  id: string,
  body: {version: number; title: string; markdown: string; project: string},
): Promise<{saved: Report} | {conflict: Conflict}> {
  const response = await fetch(apiUrl(path(id)), {
    method: 'PATCH',
    credentials: 'same-origin',
    ...jsonBody(body),
  });
  const text = await response.text();
  if (response.ok) return {saved: reportShape(JSON.parse(text), '')};
  if (response.status === 409) return {conflict: conflictShape(JSON.parse(text), '').current};
  throw await failure(response.status, response.statusText, text);
}

export const deleteReport = (id: string) => send('DELETE', path(id));

/** What it looks like, as a document for a frame without scripts. */
export async function getDocument(id: string, version: number, s?: AbortSignal): Promise<string> {
  const query = {format: 'frame', version};
  const response = await request(apiUrl(`${path(id)}/document`, query), s ? {signal: s} : {});
  return response.text();
}

/** The same of a text that is not saved. */
export const preview = async (
  body: {title: string; markdown: string; report: string},
  s?: AbortSignal,
): Promise<string> => (await send('POST', 'reports/preview', body, s)).text();

/** Address of the report as a file. */
export const documentUrl = (id: string, format: 'html' | 'markdown'): string =>
  apiUrl(`${path(id)}/document`, {format});

export const getVersions = (id: string, s?: AbortSignal) =>
  getJson(`${path(id)}/versions`, versionsShape, {}, s);
export const getVersion = (id: string, version: number, s?: AbortSignal) =>
  getJson(`${path(id)}/versions/${version}`, versionShape, {}, s);

export const getComments = (id: string, s?: AbortSignal) =>
  getJson(`${path(id)}/comments`, commentsShape, {}, s);
export const addComment = (id: string, body: {body: string; thread?: string; part?: string}) =>
  sendFor('POST', `${path(id)}/comments`, body, commentShape);
export const resolveThread = (id: string, comment: string, resolved: boolean) =>
  sendFor('PATCH', `${path(id)}/comments/${comment}`, {resolved}, commentShape);
export const deleteComment = (id: string, comment: string) =>
  send('DELETE', `${path(id)}/comments/${comment}`);

export const getFindingStates = (id: string, s?: AbortSignal) =>
  getJson(`${path(id)}/findings`, findingStatesShape, {}, s);
export const setFindingState = (id: string, body: {part: string; state: string; note: string}) =>
  sendFor('PUT', `${path(id)}/findings`, body, findingStatesShape);

/** What a link can show. */
export type Shared = {readonly report: string} | {readonly trace: string; readonly view?: string};
const sharePath = (what: Shared): string =>
  `${'report' in what ? path(what.report) : trace(what.trace)}/share`;

export const getShares = (what: Shared, s?: AbortSignal) =>
  getJson(sharePath(what), sharesShape, {}, s);
export const createShare = (what: Shared, body: {expires_at?: string; redact: readonly string[]}) =>
  sendFor(
    'POST',
    sharePath(what),
    {...body, ...('view' in what ? {view: what.view} : {})},
    linkShape,
  );
export const revokeShare = (id: string) => send('DELETE', `shares/${encodeURIComponent(id)}`);

/** What the report would tell. */
export const getDocumentContents = (id: string, s?: AbortSignal) =>
  getJson(`${path(id)}/document`, reportContentsShape, {format: 'contents'}, s);
