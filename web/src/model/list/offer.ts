// Traces that another page offers: by a message, in the form that ui.perfetto.dev takes, or by the
// address of a file (`?url=`). Nothing is fetched or added before the user says so.
import {signal} from '@preact/signals';

export interface Offer {
  /** Who offers it: an origin, or the address of the file. */
  readonly from: string;
  readonly name: string;
  readonly file: () => Promise<File>;
}

export const offer = signal<Offer | undefined>(undefined);

const NAME_CHARS_MAX = 200;
const CONTROLS = /[\p{Cc}\p{Cf}/\\]+/gu;

/** A name for the list: one line, no path. */
export function offeredName(name: unknown): string {
  const text = typeof name === 'string' ? name.replace(CONTROLS, ' ').trim() : '';
  return text === '' ? 'offered trace' : text.slice(0, NAME_CHARS_MAX);
}

/** The trace in a message: bare bytes, or bytes with a title. */
export function offeredBytes(data: unknown): {name: string; bytes: ArrayBuffer} | undefined {
  if (data instanceof ArrayBuffer)
    return data.byteLength > 0 ? {name: offeredName(undefined), bytes: data} : undefined;
  if (typeof data !== 'object' || data === null || !('perfetto' in data)) return undefined;
  const {perfetto: posted} = data;
  if (typeof posted !== 'object' || posted === null || !('buffer' in posted)) return undefined;
  const {buffer} = posted;
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength === 0) return undefined;
  const named = 'fileName' in posted ? posted.fileName : undefined;
  const title = 'title' in posted ? posted.title : undefined;
  return {name: offeredName(typeof named === 'string' ? named : title), bytes: buffer};
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** The address of a file that the page may fetch: https, or this machine. */
export function offeredUrl(text: string): URL | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  const isSafe =
    url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname));
  return isSafe && url.username === '' && url.password === '' ? url : undefined;
}

async function fetchFile(url: URL, name: string): Promise<File> {
  let response: Response;
  try {
    // without cookies: whoever wrote the link must not read as the user
    response = await fetch(url, {credentials: 'omit', referrerPolicy: 'no-referrer'});
  } catch {
    throw new Error(
      `${url.host} did not answer, or does not allow this page to read the file (CORS). Download it, then drop it here.`,
    );
  }
  if (!response.ok) throw new Error(`${url.host} answered ${response.status}.`);
  return new File([await response.blob()], name);
}

function takeMessage(event: MessageEvent<unknown>): void {
  const {source} = event;
  const isFromOpener = source !== null && source === window.opener;
  const isFromFrame = window.parent !== window && source === window.parent;
  if ((!isFromOpener && !isFromFrame) || event.origin === 'null') return;
  if (event.data === 'PING') {
    (source as Window).postMessage('PONG', event.origin);
    return;
  }
  const posted = offeredBytes(event.data);
  if (!posted || offer.value) return;
  offer.value = {
    from: event.origin,
    name: posted.name,
    file: () => Promise.resolve(new File([posted.bytes], posted.name)),
  };
}

/** @param search the query that the page was opened with */
export function takeOffers(search: string): void {
  addEventListener('message', takeMessage);
  const query = new URLSearchParams(search);
  const url = offeredUrl(query.get('url') ?? '');
  if (!url) return;
  let last = url.pathname.split('/').at(-1) ?? '';
  try {
    last = decodeURIComponent(last);
  } catch {
    // as it stands
  }
  const name = offeredName(query.get('title') ?? last);
  offer.value = {from: url.href, name, file: () => fetchFile(url, name)};
}
