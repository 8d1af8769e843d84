// Home: the traces with their verdicts.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import {formatBytes, formatCount} from '../base/format';
import {beforeAndAfter} from '../model/comparison';
import {matches, withoutOwnUploads} from '../model/list_rows';
import {groupRuns, loadRuns} from '../model/runs';
import {listState, loadMoreTraces, loadTraces, removeTrace, traces} from '../model/traces';
import {dismiss, uploads, type Upload} from '../model/uploads';
import {DEFAULT_VIEW, hideSimulated, query} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Dialog} from '../ui/dialog';
import {Header} from '../ui/header';
import {IconClose, IconSearch} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {ProgressLine} from '../ui/progress_line';
import {Empty, Failed, Loading} from '../ui/states';
import {GettingStarted} from './getting_started';
import {UploadButton} from './drop_zone';
import {RunRows, TraceRow, picked, toDelete} from './trace_rows';

export function ListPage(): JSX.Element {
  useEffect(() => {
    document.title = 'Lacuna: traces';
  }, []);
  const state = listState.value;
  const nothing = state.kind === 'ready' && traces.value.length === 0 && uploads.value.length === 0;
  return (
    <>
      <Header>
        {!nothing && (
          <label class="field field-search">
            <IconSearch />
            <input
              type="search"
              placeholder="Filter by name, GPU, verdict"
              aria-label="Filter the list"
              value={query.value}
              onInput={event => (query.value = event.currentTarget.value)}
            />
          </label>
        )}
      </Header>
      <main class="page page-list">
        {state.kind === 'loading' && <Loading what="the traces" />}
        {state.kind === 'error' && (
          <Failed
            title="The list cannot be shown"
            text={state.text}
            retry={() => void loadTraces()}
          />
        )}
        {state.kind === 'ready' && (nothing ? <EmptyList /> : <TraceTable next={state.next} />)}
        {state.kind !== 'ready' && uploads.value.map(u => <UploadRow key={u.key} upload={u} />)}
      </main>
      <DeleteDialog />
    </>
  );
}

function EmptyList(): JSX.Element {
  return (
    <div class="welcome">
      <h1>Why is my GPU idle, and what do I change?</h1>
      <p class="lead">
        Add a trace of a training job to see what limits it, what to change, and what the change
        would gain.
      </p>
      <GettingStarted />
      <p class="muted">
        No trace at hand? <code>lacuna demo DIR</code> writes a series of simulated traces, one
        change after another; drop its files here.
      </p>
    </div>
  );
}

function TraceTable({next}: {next: string | undefined}): JSX.Element {
  const filter = {text: query.value, hideSimulated: hideSimulated.value};
  const sending = new Set(uploads.value.filter(u => u.state === 'sending').map(u => u.name));
  const all = withoutOwnUploads(traces.value, sending);
  const fitting = new Set(all.filter(trace => matches(trace, filter)));
  const groups = groupRuns(all);
  const runIds = groups.flatMap(row => (row.kind === 'run' ? [row.run] : []));
  useEffect(() => void loadRuns(runIds), [runIds.join()]);
  // a run is shown whole as soon as one of its ranks fits
  const rows = groups.filter(row =>
    row.kind === 'trace' ? fitting.has(row.trace) : row.members.some(trace => fitting.has(trace)),
  );
  const shown = rows.reduce((sum, row) => sum + (row.kind === 'run' ? row.members.length : 1), 0);
  const [showStart, setShowStart] = useState(false);
  return (
    <>
      <div class="list-tools">
        <h1>Traces</h1>
        <span class="muted num">
          {shown === all.length
            ? formatCount(all.length)
            : `${formatCount(shown)} of ${formatCount(all.length)}`}
        </span>
        <label class="check">
          <input
            type="checkbox"
            checked={hideSimulated.value}
            onChange={event => (hideSimulated.value = event.currentTarget.checked)}
          />
          hide simulated
        </label>
        <span class="spacer" />
        <CompareButton />
        <button
          type="button"
          class="button button-quiet"
          aria-expanded={showStart}
          onClick={() => setShowStart(!showStart)}
        >
          How do I record one?
        </button>
        <UploadButton />
      </div>
      {showStart && <GettingStarted />}
      <div class="traces" role="table" aria-label="Traces">
        <div class="trace-row trace-head" role="row">
          <span role="columnheader">verdict</span>
          <span role="columnheader" class="cell-num">
            throughput
          </span>
          <span role="columnheader" class="cell-num">
            step
          </span>
          <span
            role="columnheader"
            title="Share of the time in which no compute kernel runs: idle time, exposed copies and exposed communication"
          >
            not computing
          </span>
          <span role="columnheader">next change</span>
          <span role="columnheader">GPUs</span>
          <span role="columnheader">added</span>
          <span role="columnheader" class="cell-num">
            compare
          </span>
        </div>
        {uploads.value.map(upload => (
          <UploadRow key={upload.key} upload={upload} />
        ))}
        {rows.map(row =>
          row.kind === 'trace' ? (
            <TraceRow key={row.trace.id} trace={row.trace} />
          ) : (
            <RunRows key={row.run} run={row.run} members={row.members} />
          ),
        )}
      </div>
      {rows.length === 0 && all.length > 0 && (
        <Empty title="No traces match">
          <button
            type="button"
            class="button"
            onClick={() => {
              query.value = '';
              hideSimulated.value = false;
            }}
          >
            Show all {formatCount(all.length)}
          </button>
        </Empty>
      )}
      {next !== undefined && (
        <button type="button" class="button more" onClick={() => void loadMoreTraces()}>
          Show older traces
        </button>
      )}
    </>
  );
}

/** Two picked rows make a comparison. */
function CompareButton(): JSX.Element | null {
  const both = beforeAndAfter(picked.value, traces.value);
  if (both)
    return (
      <ViewLink
        class="button"
        view={{...DEFAULT_VIEW, page: 'compare', compareA: both[0], compareB: both[1]}}
      >
        Compare
      </ViewLink>
    );
  return picked.value.length === 1 ? (
    <span class="muted pick-hint">select another trace to compare</span>
  ) : null;
}

function UploadRow({upload}: {upload: Upload}): JSX.Element {
  const left = upload.totalBytes - upload.sentBytes;
  return (
    <div class="trace-row trace-row-busy" role="row">
      <span class="cell-verdict" role="cell">
        <Chip topic={topicOf('upload', upload.state === 'failed' ? '!' : '↑')} />
        <span class="verdict-words">
          <span class="verdict-text">{upload.name}</span>
          <span class="verdict-name">
            {upload.state === 'waiting' && `queued, ${formatBytes(upload.totalBytes)}`}
            {upload.state === 'sending' && 'sending'}
            {upload.state === 'failed' && <span class="error-text">not sent</span>}
          </span>
        </span>
      </span>
      <span class={upload.state === 'failed' ? 'cell-reason' : 'cell-progress'} role="cell">
        {upload.state === 'failed' && upload.error}
        {upload.state === 'sending' && (
          <ProgressLine
            done={upload.sentBytes}
            total={upload.totalBytes}
            rate={upload.bytesPerS}
            etaS={upload.bytesPerS > 0 ? left / upload.bytesPerS : undefined}
            label={`Sending ${upload.name}`}
          />
        )}
      </span>
      <span class="cell-actions" role="cell">
        <button
          type="button"
          class="button button-quiet button-icon"
          aria-label={`${upload.state === 'failed' ? 'Dismiss' : 'Cancel'} ${upload.name}`}
          title={upload.state === 'failed' ? 'Dismiss' : 'Cancel'}
          onClick={() => dismiss(upload.key)}
        >
          <IconClose />
        </button>
      </span>
    </div>
  );
}

function DeleteDialog(): JSX.Element | null {
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
      for (const trace of what.traces) await removeTrace(trace.id);
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
