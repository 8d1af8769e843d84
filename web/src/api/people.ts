// Who one is, tokens, members of a project, users and the audit.
import {bool, list, num, obj, opt, or, str, type Infer} from '../base/shape';
import {getJson, send, sendFor} from './client';

const whoShape = obj({
  kind: str,
  name: or(str, ''),
  is_admin: or(bool, false),
  projects: or(list(obj({name: str, role: str})), []),
});
export type Who = Infer<typeof whoShape>;

const tokenMembers = {
  id: str,
  name: or(str, ''),
  user: or(str, ''),
  scope: or(str, ''),
  project: opt(str),
  created_at: opt(str),
  expires_at: opt(str),
  last_used_at: opt(str),
};
const tokenShape = obj(tokenMembers);
export type Token = Infer<typeof tokenShape>;
const madeShape = obj({...tokenMembers, token: str});
const tokensShape = obj({tokens: list(tokenShape)});

const memberShape = obj({user: str, role: str});
export type Member = Infer<typeof memberShape>;
const membersShape = obj({members: list(memberShape)});
const settingsShape = obj({everybody: or(str, 'none'), description: or(str, '')});
export type ProjectSettings = Infer<typeof settingsShape>;

const quotaShape = obj({
  used_bytes: num,
  limit_bytes: opt(num),
  is_default: or(bool, true),
});
export type Quota = Infer<typeof quotaShape>;

const userShape = obj({
  name: str,
  is_admin: or(bool, false),
  has_password: or(bool, false),
  created_at: opt(str),
});
export type User = Infer<typeof userShape>;
const usersShape = obj({users: list(userShape)});

const auditShape = obj({
  audit: list(obj({id: num, at: str, actor: str, action: str, object: or(str, '')})),
  next: opt(str),
});
export type Audit = Infer<typeof auditShape>;

const of = (folder: string, name: string): string => `${folder}/${encodeURIComponent(name)}`;
const member = (project: string, user: string): string =>
  `${of('projects', project)}/${of('members', user)}`;

export const getWho = (s?: AbortSignal) => getJson('session', whoShape, {}, s);
export const signOut = () => send('DELETE', 'session');
export const setPassword = (body: {old: string; new: string}) =>
  send('POST', 'session/password', body);

export const getTokens = (s?: AbortSignal) => getJson('tokens', tokensShape, {}, s);
export const makeToken = (body: {
  name: string;
  scope: string;
  project?: string;
  expires_at?: string;
}) => sendFor('POST', 'tokens', body, madeShape);
export const endToken = (id: string) => send('DELETE', of('tokens', id));

export const getMembers = (project: string, s?: AbortSignal) =>
  getJson(`${of('projects', project)}/members`, membersShape, {}, s);
export const putMember = (project: string, user: string, role: string) =>
  send('PUT', member(project, user), {role});
export const endMember = (project: string, user: string) => send('DELETE', member(project, user));
export const getSettings = (project: string, s?: AbortSignal) =>
  getJson(`${of('projects', project)}/settings`, settingsShape, {}, s);
export const putSettings = (project: string, settings: ProjectSettings) =>
  send('PUT', `${of('projects', project)}/settings`, settings);

export const getQuota = (project: string, s?: AbortSignal) =>
  getJson(`${of('projects', project)}/quota`, quotaShape, {}, s);
export const putQuota = (project: string, limit: string) =>
  send('PUT', `${of('projects', project)}/quota`, {limit});

export const getUsers = (s?: AbortSignal) => getJson('users', usersShape, {}, s);
export const putUser = (name: string, body: {password?: string; is_admin?: boolean}) =>
  send('PUT', of('users', name), body);
export const endUser = (name: string) => send('DELETE', of('users', name));
export const getAudit = (after: string | undefined, s?: AbortSignal) =>
  getJson('audit', auditShape, {after, limit: 100}, s);
