// The page of a trace that could not be imported: why, what it looks like, what to do.
import type {JSX} from 'preact';
import type {TraceInfo} from '../api/types';
import {formatBytes, formatWhen, sentence} from '../base/format';
import {likenessOf} from '../model/list/looks_like';
import {canRetry} from '../model/traces';
import {DeleteDialog} from './delete_dialog';
import {UploadButton} from './drop_zone';
import {Code, GettingStarted} from './getting_started';
import {RetryButton} from './retry_button';
import {toDelete} from './trace_rows';

export function Broken({trace}: {trace: TraceInfo}): JSX.Element {
  const isHosts = trace.error?.fault === 'host';
  const likeness = isHosts
    ? undefined
    : likenessOf(trace.file_name ?? trace.name, trace.error?.code ?? '');
  return (
    <section class="broken" role="alert">
      <h1>{isHosts ? 'The server could not import this trace' : 'This trace could not be read'}</h1>
      <p class="error-text">{sentence(trace.error?.message || 'No reason was given.')}</p>
      <p class="muted">
        <span class="break">{trace.name}</span>, {formatBytes(trace.size_bytes)}, added{' '}
        {formatWhen(trace.created_at, new Date())}
        {canRetry(trace) && '. The upload is kept.'}
      </p>
      {likeness && (
        <>
          <h2>It looks like {likeness.what}</h2>
          <p>{likeness.advice}</p>
          {likeness.command !== undefined && <Code text={likeness.command} />}
        </>
      )}
      <div class="broken-actions">
        <RetryButton trace={trace} />
        <UploadButton />
        <button
          type="button"
          class="button"
          onClick={() => (toDelete.value = {name: trace.name, traces: [trace]})}
        >
          Delete it
        </button>
      </div>
      {!isHosts && (
        <>
          <h2>What can be read</h2>
          <GettingStarted />
        </>
      )}
      <DeleteDialog />
    </section>
  );
}
