// A link to another view of the page: a real address, so that it can be opened in a new tab,
// and no reload when it is simply pressed.
import type {ComponentChildren, JSX} from 'preact';
import {BASE_URL} from '../api/client';
import {currentView, DEFAULT_VIEW, formatLocation, show, type ViewState} from '../model/view_state';
import {IconBack} from './icons';

export function ViewLink(props: {
  view: Partial<ViewState>;
  class?: string;
  title?: string;
  current?: boolean;
  testId?: string;
  /** Instead of going there at once, where more has to be asked for first. */
  onPress?: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const target = {...currentView(), ...props.view};
  return (
    <a
      href={BASE_URL + formatLocation(target)}
      {...(props.class === undefined ? {} : {class: props.class})}
      {...(props.title === undefined ? {} : {title: props.title})}
      {...(props.testId === undefined ? {} : {'data-testid': props.testId})}
      {...(props.current ? {'aria-current': 'page' as const} : {})}
      onClick={event => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
          return;
        event.preventDefault();
        if (props.onPress) return props.onPress();
        show(target);
        scrollTo(0, 0);
      }}
    >
      {props.children}
    </a>
  );
}

/** Back to the list, at the head of every page but it. */
export function BackToTraces(): JSX.Element {
  return (
    <ViewLink class="button button-quiet button-icon" view={DEFAULT_VIEW} title="All traces">
      <IconBack />
      <span class="off-screen">All traces</span>
    </ViewLink>
  );
}
