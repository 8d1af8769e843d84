// Sends one file as a whole body. XMLHttpRequest, because fetch() does not report progress.
import {apiUrl, failure, type ApiError} from './client';
import {createdShape} from './types';

export interface UploadHandlers {
  readonly onProgress: (sentBytes: number) => void;
  readonly onDone: (traceId: string) => void;
  readonly onError: (error: ApiError | Error) => void;
}

/** @return a function that aborts the upload */
export function uploadTrace(
  file: File,
  name: string,
  joinTo: string | undefined,
  handlers: UploadHandlers,
): () => void {
  const request = new XMLHttpRequest();
  request.open('POST', apiUrl('traces', joinTo === undefined ? {name} : {name, join: joinTo}));
  request.setRequestHeader('Content-Type', 'application/octet-stream');
  request.upload.onprogress = event => handlers.onProgress(event.loaded);
  request.onload = async () => {
    if (request.status !== 201) {
      handlers.onError(await failure(request.status, request.statusText, request.responseText));
      return;
    }
    try {
      handlers.onDone(createdShape(JSON.parse(request.responseText), '').id);
    } catch (error) {
      handlers.onError(error instanceof Error ? error : new Error(String(error)));
    }
  };
  request.onerror = () =>
    handlers.onError(new Error('The connection was lost before the upload was complete.'));
  request.send(file);
  return () => request.abort();
}
