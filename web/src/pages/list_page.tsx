// Home: the traces with their verdicts.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {listHangs} from '../api/client';
import type {TraceInfo} from '../api/types';
import {formatBytes, formatCount, formatWhen} from '../base/format';
import {
  LIST_COLUMNS,
  LIST_GROUPS,
  factsOf,
  formatListSort,
  groupRows,
  parseListSort,
  pressListSort,
  sortRows,
  type ListColumn,
  type ListGroup,
  type RowGroup,
} from '../model/list/list_order';
import {matches, withoutOwnUploads} from '../model/list_rows';
import {comparisonOf, groupRuns, loadRuns, runs} from '../model/runs';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {listState, loadMoreTraces, loadTraces, traces} from '../model/traces';
import {dismiss, traceName, uploads, type Upload} from '../model/uploads';
import {DEFAULT_VIEW, hideSimulated, listGroup, listSort, query, show} from '../model/view_state';
import {Chip, topicOf} from '../ui/cause_mark';
import {Header, useTitle} from '../ui/header';
import {IconClose, IconSearch} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {ProgressLine} from '../ui/progress_line';
import {Empty, Failed, Loading} from '../ui/states';
import {later} from './later';
import {UploadButton} from './drop_zone';
import {RunRows, TraceRow, picked, setPicked, toDelete} from './trace_rows';

const DeleteDialog = later('the question', pages => pages.DeleteDialog, true);
const GettingStarted = later('how to begin', pages => pages.GettingStarted, true);
const HANGS_MS = 15_000;
const SelectionBar = later('the selection', pages => pages.SelectionBar, true);

export function ListPage(): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useTitle('Traces');
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping(event)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Traces',
      shortcuts: [
        {keys: ['/'], text: 'filter'},
        {keys: ['Esc'], text: 'clear the selection'},
      ],
    });
    return () => {
      removeEventListener('keydown', onKey);
      forget();
    };
  }, []);
  const state = listState.value;
  const nothing = state.kind === 'ready' && traces.value.length === 0 && uploads.value.length === 0;
  return (
    <>
      <Header>
        {!nothing && (
          <ViewLink class="button button-quiet" view={{...DEFAULT_VIEW, page: 'reports'}}>
            Reports
          </ViewLink>
        )}
        {!nothing && (
          <label class="field field-search">
            <IconSearch />
            <input
              ref={field}
              type="search"
              placeholder="Filter by name, tag, GPU …"
              aria-label="Filter the list"
              value={query.value}
              onInput={event => (query.value = event.currentTarget.value)}
            />
          </label>
        )}
      </Header>
      <Hangs />
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
      {toDelete.value && <DeleteDialog />}
    </>
  );
}

/** Jobs that hang now. A server that cannot say so shows none. */
function Hangs(): JSX.Element {
  const [hangs, setHangs] = useState<Awaited<ReturnType<typeof listHangs>>['hangs']>([]);
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState !== 'visible') return;
      listHangs().then(
        reply => setHangs(reply.hangs),
        () => setHangs([]),
      );
    };
    look();
    const timer = setInterval(look, HANGS_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      {hangs.map(hang => (
        <div class="banner" role="alert" key={hang.upload}>
          <bdi>{hang.name}</bdi>: no progress since{' '}
          {formatWhen(
            new Date(Date.parse(hang.since) - 1000 * hang.after_s).toISOString(),
            new Date(),
          )}
          : {hang.doing}
          {hang.others && `; ${hang.others}`}
        </div>
      ))}
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

interface Head {
  readonly column: ListColumn;
  readonly label: string;
  readonly title?: string;
  readonly isNumber?: boolean;
}
const HEADS: readonly (Head | 'spark')[] = [
  {column: 'name', label: 'name'},
  {column: 'verdict', label: 'verdict'},
  'spark',
  {column: 'step', label: 'step', isNumber: true},
  {column: 'throughput', label: 'throughput', isNumber: true},
  {
    column: 'share',
    label: 'not computing',
    title:
      'Share of the time in which no compute kernel runs: idle time, exposed copies and exposed communication',
    isNumber: true,
  },
  {column: 'gain', label: 'next change', title: 'What to change next, by what it gains'},
  {column: 'gpus', label: 'GPUs'},
  {column: 'recorded', label: 'recorded'},
  {column: 'added', label: 'added', title: 'When it was uploaded'},
];
const GROUP_LABELS: Readonly<Record<ListGroup, string>> = {
  '': 'no groups',
  project: 'by project',
  model: 'by model',
  gpu: 'by GPU',
  tag: 'by tag',
};

/** The rows that fit the filter, in their order, under their heads. */
function useRows(all: readonly TraceInfo[]): {
  readonly groups: readonly RowGroup[];
  readonly shown: readonly TraceInfo[];
} {
  const filter = {text: query.value, hideSimulated: hideSimulated.value};
  const fitting = new Set(all.filter(trace => matches(trace, filter)));
  const rows = groupRuns(all);
  const runIds = rows.flatMap(row => (row.kind === 'run' ? [row.run] : []));
  useEffect(() => void loadRuns(runIds), [runIds.join()]);
  const now = new Date();
  // a run is shown whole as soon as one of its ranks fits
  const kept = rows
    .filter(row =>
      row.kind === 'trace' ? fitting.has(row.trace) : row.members.some(trace => fitting.has(trace)),
    )
    .map(row => ({
      row,
      facts:
        row.kind === 'trace'
          ? factsOf(row, undefined, undefined, now)
          : factsOf(row, runs.value.get(row.run)?.name, comparisonOf(row.run, row.members), now),
    }));
  const by = LIST_GROUPS.find(group => group === listGroup.value) ?? '';
  return {
    groups: groupRows(sortRows(kept, parseListSort(listSort.value)), by),
    shown: kept.flatMap(({row}) => (row.kind === 'run' ? row.members : [row.trace])),
  };
}

function TraceTable({next}: {next: string | undefined}): JSX.Element {
  const sending = new Set(
    uploads.value.filter(u => u.state === 'sending').map(u => traceName(u.name)),
  );
  const all = withoutOwnUploads(traces.value, sending);
  const {groups, shown} = useRows(all);
  const [showStart, setShowStart] = useState(false);
  return (
    <>
      <div class="list-tools">
        <h1>Traces</h1>
        <span class="muted num" role="status">
          {shown.length === all.length
            ? formatCount(all.length)
            : `${formatCount(shown.length)} of ${formatCount(all.length)}`}
        </span>
        <label class="check">
          <input
            type="checkbox"
            checked={hideSimulated.value}
            onChange={event => (hideSimulated.value = event.currentTarget.checked)}
          />
          hide simulated
        </label>
        <Choices />
        <span class="spacer" />
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
        <TableHead shown={shown} />
        {uploads.value.map(upload => (
          <UploadRow key={upload.key} upload={upload} />
        ))}
        {groups.map(group => (
          <div key={group.title} role="rowgroup" aria-label={group.title || 'Traces'}>
            {group.title !== '' && (
              <h2 class="group-head">
                <bdi>{group.title}</bdi> <span class="muted num">{group.rows.length}</span>
              </h2>
            )}
            {group.rows.map(({row}) =>
              row.kind === 'trace' ? (
                <TraceRow key={row.trace.id} trace={row.trace} />
              ) : (
                <RunRows key={row.run} run={row.run} members={row.members} />
              ),
            )}
          </div>
        ))}
      </div>
      {shown.length === 0 && all.length > 0 && (
        <Empty title="No match">
          No trace has {query.value === '' ? 'a GPU that is not simulated' : <q>{query.value}</q>}{' '}
          in its name, project, tags, notes, host, GPU or verdict.{' '}
          <button
            type="button"
            class="button"
            onClick={() => show({query: '', hideSimulated: false})}
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
      {picked.value.length > 0 && <SelectionBar />}
    </>
  );
}

/** Groups; and the order, where there is no head to press. */
function Choices(): JSX.Element {
  const sort = parseListSort(listSort.value);
  return (
    <>
      <select
        class="input list-choice"
        aria-label="Groups"
        value={listGroup.value}
        onChange={event => (listGroup.value = event.currentTarget.value)}
      >
        {LIST_GROUPS.map(group => (
          <option key={group} value={group}>
            {GROUP_LABELS[group]}
          </option>
        ))}
      </select>
      <select
        class="input list-choice list-order"
        aria-label="Order"
        value={sort.column}
        onChange={event => {
          const column = LIST_COLUMNS.find(c => c === event.currentTarget.value) ?? 'added';
          listSort.value = formatListSort(
            pressListSort(
              {column: column === 'added' ? 'name' : 'added', ascending: false},
              column,
            ),
          );
        }}
      >
        {HEADS.map(
          head =>
            head !== 'spark' && (
              <option key={head.column} value={head.column}>
                by {head.label}
              </option>
            ),
        )}
      </select>
    </>
  );
}

function TableHead({shown}: {shown: readonly TraceInfo[]}): JSX.Element {
  const sort = parseListSort(listSort.value);
  const ids = shown.map(trace => trace.id);
  const count = ids.filter(id => picked.value.includes(id)).length;
  return (
    <div class="trace-row trace-head" role="row">
      <span role="columnheader" class="cell-pick">
        <input
          type="checkbox"
          class="row-pick"
          aria-label="Select all"
          checked={count > 0 && count === ids.length}
          indeterminate={count > 0 && count < ids.length}
          onChange={event => setPicked(ids, event.currentTarget.checked)}
        />
      </span>
      {HEADS.map(head => {
        if (head === 'spark')
          return (
            <span key="spark" role="columnheader" class="cell-spark" title="Step times, from 0 up">
              steps
            </span>
          );
        const isSorted = sort.column === head.column;
        return (
          <span
            key={head.column}
            role="columnheader"
            class={`cell-${head.column === 'gain' ? 'change' : head.column} ${head.isNumber ? 'cell-num' : ''}`}
            aria-sort={isSorted ? (sort.ascending ? 'ascending' : 'descending') : 'none'}
          >
            <button
              type="button"
              class={isSorted ? 'sorted' : ''}
              {...(head.title === undefined ? {} : {title: head.title})}
              onClick={() => (listSort.value = formatListSort(pressListSort(sort, head.column)))}
            >
              {head.label}
              <span class="sort-mark" aria-hidden="true">
                {isSorted ? (sort.ascending ? '↑' : '↓') : ''}
              </span>
            </button>
          </span>
        );
      })}
    </div>
  );
}

function UploadRow({upload}: {upload: Upload}): JSX.Element {
  const left = upload.totalBytes - upload.sentBytes;
  return (
    <div class="trace-row trace-row-busy" role="row">
      <span class="cell-pick" role="cell" />
      <span class="cell-name" role="cell">
        <Chip topic={topicOf('upload', upload.state === 'failed' ? '!' : '↑')} />
        <span class="ellipsis" title={upload.name}>
          {upload.name}
        </span>
        {upload.state === 'failed' && <span class="tag error-text">not sent</span>}
      </span>
      <span class={upload.state === 'failed' ? 'cell-reason' : 'cell-progress'} role="cell">
        {upload.state === 'failed' && upload.error}
        {upload.state === 'waiting' && (
          <span class="muted">queued, {formatBytes(upload.totalBytes)}</span>
        )}
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
      <span class="cell-actions cell-actions-shown" role="cell">
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
