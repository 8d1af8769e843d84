// Files on their way to the server, one at a time, in the order they were dropped.
import {signal} from '@preact/signals';
import {errorText} from '../api/client';
import {uploadTrace} from '../api/upload';
import {RateMeter} from './rate';
import {refreshTrace} from './traces';
import {openTrace, page} from './view_state';

export interface Upload {
  readonly key: number;
  readonly name: string;
  readonly totalBytes: number;
  readonly sentBytes: number;
  readonly bytesPerS: number;
  readonly state: 'waiting' | 'sending' | 'failed';
  readonly error: string | undefined;
}

/** Unfinished uploads; a finished one is a row of the list of traces. */
export const uploads = signal<readonly Upload[]>([]);

const FILES_MAX = 256;
const files = new Map<number, File>();
const joins = new Map<number, string>();
const aborts = new Map<number, () => void>();
let lastKey = 0;

/** Why a file is not worth sending, or undefined. */
export function refusal(name: string, sizeBytes: number): string | undefined {
  if (sizeBytes === 0) return 'The file is empty.';
  if (/\.nsys-rep$/i.test(name))
    return /* text */ `Export this report first, then add the result: nsys export --type=sqlite '${name.replaceAll("'", "'\\''")}'`;
  if (/\.(qdrep|qdstrm)$/i.test(name)) return 'This format of an older profiler cannot be read.';
  return undefined;
}

/** @param joinTo the trace that the files lie beside: each becomes a trace of both */
export function enqueue(dropped: readonly File[], joinTo?: string): void {
  const single = dropped.length === 1;
  const added = dropped.slice(0, FILES_MAX).map((file): Upload => {
    const key = ++lastKey;
    const error = refusal(file.name, file.size);
    if (error === undefined) files.set(key, file);
    if (joinTo !== undefined) joins.set(key, joinTo);
    return {
      key,
      name: file.name,
      totalBytes: file.size,
      sentBytes: 0,
      bytesPerS: 0,
      state: error === undefined ? 'waiting' : 'failed',
      error,
    };
  });
  uploads.value = [...uploads.value, ...added];
  sendNext(single);
}

export function dismiss(key: number): void {
  aborts.get(key)?.();
  aborts.delete(key);
  files.delete(key);
  const wasSending = uploads.value.find(u => u.key === key)?.state === 'sending';
  uploads.value = uploads.value.filter(u => u.key !== key);
  if (wasSending) sendNext(false);
}

function change(key: number, part: Partial<Upload>): void {
  uploads.value = uploads.value.map(u => (u.key === key ? {...u, ...part} : u));
}

/** A file's name without the endings that every trace has: what `lacuna import` calls it too. */
export function traceName(fileName: string): string {
  const name = fileName.replace(/(\.pt)?(\.trace)?(\.json|\.sqlite|\.tar)?(\.gz|\.zst)?$/i, '');
  return name === '' ? fileName : name;
}

function sendNext(openWhenSent: boolean): void {
  if (uploads.value.some(u => u.state === 'sending')) return;
  const next = uploads.value.find(u => u.state === 'waiting');
  const file = next && files.get(next.key);
  if (!next || !file) return;
  const {key} = next;
  const meter = new RateMeter();
  meter.add(performance.now(), 0);
  change(key, {state: 'sending'});
  const abort = uploadTrace(file, traceName(file.name), joins.get(key), {
    onProgress: sentBytes => {
      meter.add(performance.now(), sentBytes);
      change(key, {sentBytes, bytesPerS: meter.perSecond()});
    },
    onDone: id => {
      forget(key);
      uploads.value = uploads.value.filter(u => u.key !== key);
      void refreshTrace(id);
      // one dropped file: its page opens, shows the import and then the verdict
      if (openWhenSent && page.value === 'list') openTrace(id);
      sendNext(false);
    },
    onError: error => {
      forget(key);
      change(key, {state: 'failed', error: errorText(error)});
      sendNext(false);
    },
  });
  aborts.set(key, abort);
}

function forget(key: number): void {
  files.delete(key);
  joins.delete(key);
  aborts.delete(key);
}
