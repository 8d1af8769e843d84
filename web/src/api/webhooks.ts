// Where a project's news go.
import {list, num, obj, opt, or, str, type Infer} from '../base/shape';
import {getJson, send, sendFor} from './client';

const members = {
  id: str,
  url: str,
  form: or(str, 'json'),
  events: or(list(str), []),
  author: or(str, ''),
  created_at: opt(str),
};
const webhookShape = obj({
  ...members,
  delivered_count: or(num, 0),
  waiting_count: or(num, 0),
  failed_count: or(num, 0),
  last_at: opt(str),
  last_status: opt(num),
  problem: opt(str),
});
export type Webhook = Infer<typeof webhookShape>;
const webhooksShape = obj({webhooks: list(webhookShape), events: or(list(str), [])});
const madeShape = obj({...members, secret: str});

const folder = (project: string): string => `projects/${encodeURIComponent(project)}/webhooks`;
const one = (project: string, id: string): string => `${folder(project)}/${encodeURIComponent(id)}`;

export const getWebhooks = (project: string, s?: AbortSignal) =>
  getJson(folder(project), webhooksShape, {}, s);

/** The reply has the secret, this once. */
export const addWebhook = (
  project: string,
  body: {url: string; form: string; events: string},
): Promise<Infer<typeof madeShape>> => sendFor('POST', folder(project), body, madeShape);

export const endWebhook = (project: string, id: string) => send('DELETE', one(project, id));

export const testWebhook = (project: string, id: string) =>
  send('POST', `${one(project, id)}/test`);
