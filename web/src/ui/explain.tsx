// Every number can be clicked: it shows its meaning and all its digits, to copy.
import {signal} from '@preact/signals';
import type {ComponentChildren, JSX} from 'preact';
import type {ViewState} from '../model/view_state';

interface Explanation {
  readonly anchor: HTMLElement;
  readonly title: string;
  readonly text: string;
  readonly exact: string | undefined;
  readonly view: Partial<ViewState> | undefined;
}

/** What is explained now, in the one panel (explanation_panel.tsx). */
export const explained = signal<Explanation | undefined>(undefined);

export function Explain(props: {
  /** What the number is called. */
  title: string;
  /** What it means, how it was summed. */
  text: string;
  /** The number with all its digits. */
  exact?: string | undefined;
  /** Where what it counts is listed. */
  view?: Partial<ViewState>;
  class?: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <button
      type="button"
      class={`explain ${props.class ?? ''}`}
      title={props.exact === undefined ? props.title : `${props.title}: ${props.exact}`}
      onClick={event => {
        const anchor = event.currentTarget;
        explained.value =
          explained.value?.anchor === anchor
            ? undefined
            : {
                anchor,
                title: props.title,
                text: props.text,
                exact: props.exact,
                view: props.view,
              };
        event.stopPropagation();
      }}
    >
      {props.children}
    </button>
  );
}
