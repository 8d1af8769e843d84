// Asks before traces are deleted.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {formatCount} from '../base/format';
import {removeTrace} from '../model/traces';
import {Dialog} from '../ui/dialog';
import {setPicked, toDelete} from './trace_rows';

export function DeleteDialog(): JSX.Element | null {
  const what = toDelete.value;
  const [error, setError] = useState<string | undefined>(undefined);
  const busy = useRef(false);
  if (!what) return null;
  const count = what.traces.length;
  const close = (): void => {
    setError(undefined);
    toDelete.value = undefined;
  };
  const remove = async (): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    try {
      for (const trace of what.traces) {
        await removeTrace(trace.id);
        setPicked([trace.id], false);
      }
      close();
    } catch (reason) {
      setError(errorText(reason));
    } finally {
      busy.current = false;
    }
  };
  return (
    <Dialog
      title={count === 1 ? 'Delete this trace?' : `Delete these ${formatCount(count)} traces?`}
      onClose={close}
    >
      <p class="break">
        <bdi>{what.name}</bdi>
      </p>
      <p class="muted">
        {count === 1
          ? 'The trace, its original file and its findings are deleted. Links to it stop working.'
          : 'The traces, their original files and their findings are deleted. Links to them stop working.'}
      </p>
      {error !== undefined && <p class="error-text">{error}</p>}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="button button-danger" onClick={() => void remove()}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}
