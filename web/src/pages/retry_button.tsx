// Imports the kept upload of a failed trace again.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {errorText} from '../api/client';
import type {TraceInfo} from '../api/types';
import {sentence} from '../base/format';
import {canRetry, retryTrace} from '../model/traces';

export function RetryButton({trace}: {trace: TraceInfo}): JSX.Element | null {
  const [isAsking, setAsking] = useState(false);
  const [refusal, setRefusal] = useState('');
  if (!canRetry(trace)) return null;
  const ask = async (): Promise<void> => {
    setAsking(true);
    setRefusal('');
    try {
      await retryTrace(trace);
    } catch (error) {
      setRefusal(sentence(errorText(error)));
    }
    setAsking(false);
  };
  return (
    <>
      <button
        type="button"
        class="button"
        aria-label={`Retry the import of ${trace.name}`}
        disabled={isAsking}
        onClick={() => void ask()}
      >
        Try again
      </button>
      {refusal !== '' && (
        <span class="error-text" role="alert">
          {' '}
          {refusal}
        </span>
      )}
    </>
  );
}
