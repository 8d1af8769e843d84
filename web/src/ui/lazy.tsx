// Pages that most visits do not open come in files of their own, when they are opened or when the
// browser has nothing else to do.
import type {ComponentType, JSX} from 'preact';
import {useLayoutEffect, useState} from 'preact/hooks';
import {Failed, Loading} from './states';

const loaders: (() => Promise<unknown>)[] = [];

type State = 'loading' | 'ready' | 'failed';

interface Part<P> {
  loaded: ComponentType<P> | undefined;
  fetchOnce: () => Promise<void>;
}

function partOf<P>(load: () => Promise<ComponentType<P>>): Part<P> {
  const part: Part<P> = {
    loaded: undefined,
    fetchOnce: async () => {
      part.loaded ??= await load();
    },
  };
  loaders.push(part.fetchOnce);
  return part;
}

/** Fetches the part if it is not here. It may arrive, fetched for later, after the render and before
 *  the effect: then nothing but the state's change shows it. */
function useFetched<P>(part: Part<P>): State {
  const [state, setState] = useState<State>(part.loaded ? 'ready' : 'loading');
  useLayoutEffect(() => {
    if (state === 'loading')
      part.fetchOnce().then(
        () => setState('ready'),
        () => setState('failed'),
      );
  }, []);
  return state;
}

/** A component that is fetched when it is first shown: a page, or a part of one. */
export function lazy<P extends object>(
  what: string,
  load: () => Promise<ComponentType<P>>,
  isPart = false,
): (props: P) => JSX.Element {
  const part = partOf(load);
  return function Lazy(props: P): JSX.Element {
    const state = useFetched(part);
    const Loaded = part.loaded;
    if (Loaded) return <Loaded {...props} />;
    const shown =
      state === 'failed' ? (
        <Failed
          title={isPart ? 'A part of this page failed to load' : 'This page failed to load'}
          text="The server is not responding, or has a newer version of this page."
          retry={() => location.reload()}
        />
      ) : (
        <Loading what={what} />
      );
    return isPart ? <div>{shown}</div> : <main class="page">{shown}</main>;
  };
}

/** A line more among others, shown once it is here: nothing stands in for it. */
export function lazyQuiet<P extends object>(
  load: () => Promise<ComponentType<P>>,
): (props: P) => JSX.Element | null {
  const part = partOf(load);
  return function Quiet(props: P): JSX.Element | null {
    useFetched(part);
    const Loaded = part.loaded;
    return Loaded ? <Loaded {...props} /> : null;
  };
}

/** Fetch what was not opened yet, so that it opens at once and without the server. */
export function fetchTheRest(): void {
  for (const load of loaders) load().catch(() => undefined);
}
