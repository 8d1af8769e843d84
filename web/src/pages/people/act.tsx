// A change that is sent, with what went wrong beside it.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../../api/client';
import {sentence} from '../../base/format';

export interface Acting {
  readonly problem: string;
  readonly isBusy: boolean;
  /** Send, then go on; a failure is kept as `problem`. */
  readonly act: (send: () => Promise<unknown>, done?: () => void) => void;
}

export function useAct(): Acting {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const act = (send: () => Promise<unknown>, done?: () => void): void => {
    setBusy(true);
    send()
      .then(
        () => {
          setProblem('');
          done?.();
        },
        (error: unknown) => setProblem(sentence(errorText(error))),
      )
      .finally(() => setBusy(false));
  };
  return {problem, isBusy, act};
}

export function Problem({text}: {text: string}): JSX.Element | null {
  return text === '' ? null : (
    <p class="error-text" role="alert">
      {text}
    </p>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function SureButton(props: {
  label: string;
  sure: string;
  isBusy: boolean;
  onClick: () => void;
}): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  return (
    <button
      type="button"
      class={isAsked ? 'button button-danger' : 'button button-quiet'}
      disabled={props.isBusy}
      onBlur={() => setAsked(false)}
      onClick={() => {
        if (isAsked) props.onClick();
        setAsked(!isAsked);
      }}
    >
      {isAsked ? props.sure : props.label}
    </button>
  );
}
