// A bug in one panel must not take down the page.
import type {ComponentChildren, JSX} from 'preact';
import {useErrorBoundary} from 'preact/hooks';
import {errorText} from '../api/client';
import {Failed} from './states';

export function Boundary(props: {what: string; children: ComponentChildren}): JSX.Element {
  const [error, reset] = useErrorBoundary((reason: unknown) => console.error(reason));
  if (error !== undefined && error !== null)
    return <Failed title={`${props.what} cannot be shown`} text={errorText(error)} retry={reset} />;
  return <>{props.children}</>;
}
