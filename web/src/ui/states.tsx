// What a panel shows when it has nothing to show yet, nothing at all, or an error.
import type {ComponentChildren, JSX} from 'preact';
import {sentence} from '../base/format';
import {IconWarning} from './icons';
import type {Resource} from './resource';

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

/** What stands in for what is not here: that it loads, or why it did not; nothing beside a value. */
export function StandIn<T>(props: {
  of: Resource<T>;
  what: string;
  title?: string;
  /** What was there before stays on the page while it is loaded again. */
  keeps?: boolean;
}): JSX.Element | null {
  const {of, what, title = sentence(`${what} cannot be shown`)} = props;
  if (of.kind === 'error') return <Failed title={title} text={of.text} retry={of.retry} />;
  if (of.kind === 'ready' || (props.keeps === true && of.stale !== undefined)) return null;
  return <Loading what={what} />;
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
