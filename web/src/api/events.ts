// Live changes of traces: server-sent events, and polling where those do not get through.
import {apiUrl} from './client';
import {deletedShape, traceShape, type TraceInfo} from './types';

export interface TraceFeed {
  readonly onTrace: (trace: TraceInfo) => void;
  readonly onDeleted: (id: string) => void;
  /** Whether connected; if not, the caller polls. */
  readonly onLive: (live: boolean) => void;
}

/** @return a function that ends the subscription */
export function subscribeTraces(feed: TraceFeed): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let waitMs = 2000;

  const open = (): void => {
    retry = undefined;
    source = new EventSource(apiUrl('events'));
    source.onopen = () => {
      waitMs = 2000;
      feed.onLive(true);
    };
    source.addEventListener('trace', event => {
      try {
        feed.onTrace(traceShape(JSON.parse(String((event as MessageEvent).data)), ''));
      } catch {
        // an event of another version: the next poll or reload has the data
      }
    });
    source.addEventListener('deleted', event => {
      try {
        feed.onDeleted(deletedShape(JSON.parse(String((event as MessageEvent).data)), '').id);
      } catch {
        // as above
      }
    });
    source.onerror = () => {
      feed.onLive(false);
      // the browser reconnects by itself unless the reply was an error
      if (source?.readyState !== EventSource.CLOSED) return;
      source.close();
      retry ??= setTimeout(open, waitMs);
      waitMs = Math.min(2 * waitMs, 60_000);
    };
  };
  open();
  return () => {
    clearTimeout(retry);
    source?.close();
  };
}
