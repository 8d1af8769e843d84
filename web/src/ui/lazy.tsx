// Pages that most visits do not open come in files of their own, when they are opened or when the
// browser has nothing else to do.
import type {ComponentType, JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {Failed, Loading} from './states';

const loaders: (() => Promise<unknown>)[] = [];

/** A component that is fetched when it is first shown: a page, or a part of one. */
export function lazy<P extends object>(
  what: string,
  load: () => Promise<ComponentType<P>>,
  isPart = false,
): (props: P) => JSX.Element {
  let Loaded: ComponentType<P> | undefined;
  const fetchOnce = async (): Promise<void> => {
    Loaded ??= await load();
  };
  loaders.push(fetchOnce);
  return function Lazy(props: P): JSX.Element {
    const [state, setState] = useState<'loading' | 'ready' | 'failed'>('loading');
    useEffect(() => {
      if (!Loaded)
        fetchOnce().then(
          () => setState('ready'),
          () => setState('failed'),
        );
    }, []);
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
  let Loaded: ComponentType<P> | undefined;
  const fetchOnce = async (): Promise<void> => {
    Loaded ??= await load();
  };
  loaders.push(fetchOnce);
  return function Quiet(props: P): JSX.Element | null {
    const [, setReady] = useState(false);
    useEffect(() => {
      if (!Loaded)
        fetchOnce().then(
          () => setReady(true),
          () => undefined,
        );
    }, []);
    return Loaded ? <Loaded {...props} /> : null;
  };
}

/** Fetch what was not opened yet, so that it opens at once and without the server. */
export function fetchTheRest(): void {
  for (const load of loaders) load().catch(() => undefined);
}
