// Opens the dialog that adds a live part to a report.
import type {JSX} from 'preact';
import {adding, type PartChoice} from '../../model/report_text';

export function AddButton(props: {
  choices: readonly PartChoice[];
  project?: string;
  isQuiet?: boolean;
}): JSX.Element {
  return (
    <button
      type="button"
      class={props.isQuiet === true ? 'button button-quiet' : 'button'}
      onClick={() => (adding.value = {choices: props.choices, project: props.project})}
    >
      Add to a report
    </button>
  );
}
