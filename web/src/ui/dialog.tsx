import type {ComponentChildren, JSX} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {IconClose} from './icons';

/** For an effect of layout: after the next frame a quick user has gone on to what was opened.
    @return brings the focus back to what has it now */
export function returnFocus(): () => void {
  const opener = document.querySelector<HTMLElement>(':focus');
  return () => {
    // what is modal leaves the document after this, and until then nothing else takes the focus
    queueMicrotask(() => opener?.focus());
  };
}

/** A modal dialog, open as long as it is mounted. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const back = returnFocus();
    ref.current?.showModal();
    return back;
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-label={props.title}
      onClose={props.onClose}
      onClick={event => {
        if (event.target === ref.current) props.onClose();
      }}
    >
      <header class="dialog-head">
        <h2>{props.title}</h2>
        <button
          type="button"
          class="button button-quiet button-icon"
          aria-label="Close"
          onClick={props.onClose}
        >
          <IconClose />
        </button>
      </header>
      <div class="dialog-body">{props.children}</div>
    </dialog>
  );
}
