// Opens the dialog that adds a live part to a report.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {PartChoice} from '../../model/report_text';
import {lazy} from '../../ui/lazy';

const AddDialog = lazy('the reports', async () => (await import('./add_dialog')).AddDialog, true);

export function AddButton(props: {
  choices: readonly PartChoice[];
  project?: string;
  isQuiet?: boolean;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class={props.isQuiet === true ? 'button button-quiet' : 'button'}
        onClick={() => setOpen(true)}
      >
        Add to a report
      </button>
      {isOpen && (
        <AddDialog choices={props.choices} project={props.project} onClose={() => setOpen(false)} />
      )}
    </>
  );
}
