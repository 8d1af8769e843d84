// What a panel shows when it has nothing to show yet, nothing at all, or an error.
import type {ComponentChildren, JSX} from 'preact';
import {IconWarning} from './icons';

export function Loading({what}: {what: string}): JSX.Element {
  return (
    <div class="state state-loading" role="status">
      <span class="pulse" aria-hidden="true" />
      Loading {what} …
    </div>
  );
}

export function Empty({
  title,
  children,
  isPage = false,
}: {
  title: string;
  children?: ComponentChildren;
  /** All that the page has to say: its title is the page's. */
  isPage?: boolean;
}): JSX.Element {
  return (
    <div class="state">
      {isPage ? <h1>{title}</h1> : <strong>{title}</strong>}
      {children !== undefined && <div class="state-text">{children}</div>}
    </div>
  );
}

export function Failed(props: {
  title: string;
  text: string;
  retry?: (() => void) | undefined;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="state state-error" role="alert">
      <strong>
        <IconWarning /> {props.title}
      </strong>
      <div class="state-text">{props.text}</div>
      {props.children}
      {props.retry && (
        <button type="button" class="button" onClick={props.retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A bar that fills, with what it says to a screen reader. */
export function Progress(props: {done: number; total: number; label: string}): JSX.Element {
  const share = props.total > 0 ? Math.min(1, props.done / props.total) : undefined;
  return (
    <div
      class={`progress ${share === undefined ? 'progress-unknown' : ''}`}
      role="progressbar"
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(share === undefined ? {} : {'aria-valuenow': Math.round(share * 100)})}
    >
      <div class="progress-bar" style={share === undefined ? {} : {width: `${share * 100}%`}} />
    </div>
  );
}
