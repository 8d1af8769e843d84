// Opens the dialog of the report to share.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {TraceInfo} from '../api/types';
import {IconUpload} from '../ui/icons';
import {later} from './later';

const ShareDialog = later('the report', pages => pages.ShareDialog, true);

export function ShareButton({trace}: {trace: TraceInfo}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="button share-button" onClick={() => setOpen(true)}>
        <IconUpload /> Share
      </button>
      {isOpen && <ShareDialog trace={trace} onClose={() => setOpen(false)} />}
    </>
  );
}
