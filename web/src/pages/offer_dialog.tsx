// Asks before a trace of another page is fetched and added.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {offer} from '../model/list/offer';
import {enqueue} from '../model/uploads';
import {openTrace, page} from '../model/view_state';
import {Dialog} from '../ui/dialog';

export function OfferDialog(): JSX.Element | null {
  const [error, setError] = useState('');
  const [isBusy, setBusy] = useState(false);
  const offered = offer.value;
  if (!offered) return null;
  const close = (): void => {
    offer.value = undefined;
  };
  const add = async (): Promise<void> => {
    setBusy(true);
    setError('');
    try {
      const file = await offered.file();
      if (offer.value !== offered) return; // canceled meanwhile
      if (page.value !== 'list') openTrace(undefined);
      enqueue([file]);
      close();
    } catch (reason) {
      setError(errorText(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Add this trace?" onClose={close}>
      <p class="break">
        <bdi>{offered.name}</bdi>
      </p>
      <p class="muted break">
        Offered by <bdi>{offered.from}</bdi>. It is stored on this server.
      </p>
      {error !== '' && (
        <p class="error-text" role="alert">
          {error}
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={() => void add()}>
          {isBusy ? 'Fetching' : 'Add it'}
        </button>
      </div>
    </Dialog>
  );
}
