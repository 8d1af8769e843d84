// Something loaded from the server, with its states.
import {useCallback, useLayoutEffect, useState} from 'preact/hooks';
import {errorText, isAbort} from '../api/client';

/** A server that does not answer is asked again after this. */
const AWAY_MS = 5000;

export type Resource<T> =
  | {readonly kind: 'loading'; readonly stale: T | undefined}
  | {readonly kind: 'ready'; readonly value: T}
  | {readonly kind: 'error'; readonly text: string; readonly retry: () => void};

/** The value, or while it is loaded again, the one before. */
export function latest<T>(resource: Resource<T>): T | undefined {
  if (resource.kind === 'ready') return resource.value;
  return resource.kind === 'loading' ? resource.stale : undefined;
}

/**
 * Load whenever `key` changes; a pending request is aborted then. `undefined`: nothing to load.
 * While loading again, `stale` holds the value before.
 */
export function useResource<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
): Resource<T> {
  const [state, setState] = useState<{key: string | undefined; resource: Resource<T>}>({
    key: undefined,
    resource: {kind: 'loading', stale: undefined},
  });
  const [attempt, setAttempt] = useState(0);
  const retry = useCallback(() => setAttempt(a => a + 1), []);

  // not after the next picture, as an effect: what is loaded decides what that one shows
  useLayoutEffect(() => {
    if (key === undefined) return undefined;
    const controller = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    setState(before => ({
      key,
      resource: {
        kind: 'loading',
        stale: latest(before.resource),
      },
    }));
    load(controller.signal).then(
      value => {
        if (!controller.signal.aborted) setState({key, resource: {kind: 'ready', value}});
      },
      (error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return;
        setState({key, resource: {kind: 'error', text: errorText(error), retry}});
        // fetch's own error: the server is away, and may come back
        if (error instanceof TypeError) again = setTimeout(retry, AWAY_MS);
      },
    );
    return () => {
      clearTimeout(again);
      controller.abort();
    };
    // `load` is a new function at each render: the key says when it means something else
  }, [key, attempt]);

  // in the render in which the key changed, the state is still that of the key before
  if (state.key === key) return state.resource;
  return {
    kind: 'loading',
    stale: latest(state.resource),
  };
}
