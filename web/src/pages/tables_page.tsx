// Tables of a trace, or of what is selected: kernels, operators, copies, steps, gaps and others.
// Each row leads to the timeline.
import type {ComponentChildren, JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {errorText, getTable, type TableQuery} from '../api/client';
import {
  TABLE_NAMES,
  type TableColumn,
  type TableInfo,
  type TableName,
  type TableRow,
} from '../api/table_types';
import {type Analysis, type TraceInfo} from '../api/types';
import {formatCount, formatDuration, plural} from '../base/format';
import {
  exactCell,
  formatRowCell,
  formatTableSort,
  isNumber,
  parseTableSort,
  pressTableSort,
  selectionOf,
  tableOf,
  TABLES,
} from '../model/data_table';
import {ALL_TIME, MEASURED} from '../model/flame_steps';
import {loadKernels, type KernelTable} from '../model/kernel_table';
import {loopUnit} from '../model/list_rows';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {
  flameSteps,
  selection,
  show,
  tableFilter,
  tableGroup,
  tableName,
  tableSort,
  type Selection,
} from '../model/view_state';
import {CopyButton} from '../ui/copy_button';
import {IconSearch} from '../ui/icons';
import {ViewLink} from '../ui/link';
import {latest, useResource} from '../ui/resource';
import {Empty, StandIn} from '../ui/states';
import {TableCopies} from '../ui/table_copies';
import {useVirtualRows} from '../ui/virtual_rows';
import {showInTimeline, showSlice} from './evidence_link';
import {StepsNote} from './steps_note';

const ROW_PX = 32;
const HEAD_PX = 34;
const PAGE_ROWS = 1000;
const COPIED_ROWS = 10000;
const FILTER_PAUSE_MS = 200;

/** The selected area. In a gap there is nothing to count: it limits no table. */
function timeOf(chosen: Selection): {t0: number; t1: number} | undefined {
  if (chosen?.kind !== 'area') return undefined;
  return {t0: Math.max(0, Math.floor(chosen.t0)), t1: Math.ceil(chosen.t1)};
}

/** The filter, a moment after the last key. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), FILTER_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}

export function TablesPage({
  trace,
  analysis,
}: {
  trace: TraceInfo;
  analysis: Analysis | undefined;
}): JSX.Element {
  // without a GPU, operators are the first that there may be
  const usual = trace.device_count === 0 ? 'operators' : 'kernels';
  const name = tableOf(tableName.value, usual);
  const kind = TABLES[name];
  const group = kind.groups.find(g => g.by === tableGroup.value) ?? kind.groups[0];
  const time = timeOf(selection.value);
  const typed = tableFilter.value;
  const filter = usePaused(typed);
  const sort = parseTableSort(tableSort.value);
  // sums are of the steps that the verdict measures, as in flame graphs; a list is of all there is
  const counted = flameSteps.value === '' ? MEASURED : flameSteps.value;
  const isOfSteps = group !== undefined && time === undefined;
  const ask: TableQuery = {
    ...time,
    ...(isOfSteps && counted !== ALL_TIME && {steps: counted}),
    ...(group === undefined ? {} : {by: group.by}),
    ...(filter === '' ? {} : {q: filter}),
    ...(sort === undefined ? {} : {sort: sort.column, order: sort.ascending ? 'asc' : 'desc'}),
  };
  const of = `${trace.id}/${trace.generation}/${name}`;
  const key = `${of} ${JSON.stringify(ask)}`;
  const table = useResource(key, async signal => ({
    of,
    key,
    ask,
    rows: await getTable(trace.id, name, {...ask, limit: PAGE_ROWS}, signal),
  }));
  // while it is sorted or filtered anew, the rows before stay
  const kept = latest(table);
  const answer = kept?.of === of ? kept : undefined;
  const shown = answer?.rows;
  const hasSpeeds = name === 'kernels' && group?.by === 'name' && time === undefined;
  const all = useResource(hasSpeeds ? `${trace.id}/${trace.generation}` : undefined, () =>
    loadKernels(trace.id, trace.generation),
  );
  const speeds =
    hasSpeeds && answer?.ask.by === 'name' ? speedsOf(analysis, latest(all)) : undefined;
  return (
    <main class="page page-full page-tables">
      <Tools
        trace={trace}
        name={name}
        usual={usual}
        group={group?.by}
        time={time}
        ask={ask}
        shown={shown}
        isOfSteps={isOfSteps}
      />
      <StandIn
        of={table}
        what={`the ${kind.many}`}
        title="The table cannot be shown"
        keeps={shown !== undefined}
      />
      {answer && answer.rows.total > 0 && (
        <Rows
          key={answer.key}
          trace={trace}
          name={name}
          isBusy={table.kind === 'loading' || typed !== filter}
          first={arrange(answer.rows, speeds, answer.ask.by)}
          more={async after =>
            arrange(
              await getTable(trace.id, name, {...answer.ask, limit: PAGE_ROWS, after}),
              speeds,
              answer.ask.by,
            )
          }
        />
      )}
      {answer?.rows.total === 0 && (
        <Nothing
          name={name}
          isFiltered={answer.ask.q !== undefined}
          isArea={answer.ask.t0 !== undefined}
          isProfile={analysis?.trace.timeline === false}
        />
      )}
    </main>
  );
}

function Nothing(props: {
  name: TableName;
  isFiltered: boolean;
  isArea: boolean;
  isProfile: boolean;
}): JSX.Element {
  const kind = TABLES[props.name];
  if (props.isFiltered)
    return (
      <Empty title={`No ${kind.many} match`}>
        <button type="button" class="button" onClick={() => (tableFilter.value = '')}>
          Show all
        </button>
      </Empty>
    );
  return (
    <Empty title={`No ${kind.many} in ${props.isArea ? 'what is selected' : 'this trace'}`}>
      {props.isArea ? (
        <ViewLink class="button" view={{selection: undefined}}>
          Of the whole trace
        </ViewLink>
      ) : props.isProfile ? (
        <ViewLink view={{page: 'flame', flameForm: 'table'}}>Functions of the flame graph</ViewLink>
      ) : (
        kind.missing
      )}
    </Empty>
  );
}

type Speeds = ReadonlyMap<string, {readonly tflops: number; readonly pct: number | undefined}>;

/** How fast kernels computed, by name: the analysis counted the operations of all of them. */
function speedsOf(analysis: Analysis | undefined, all: KernelTable | undefined): Speeds {
  const totals = new Map(all?.rows.map(row => [row.name, row.total_ns]));
  return new Map(
    analysis?.efficiency?.kernels.flatMap(({name, flops, pct_of_peak: pct}) => {
      const totalNs = totals.get(name) ?? 0;
      return flops !== undefined && totalNs > 0
        ? [[name, {tflops: flops / totalNs / 1e3, pct}] as const]
        : [];
    }),
  );
}

/** With the speeds of names of kernels as columns more. */
function withSpeed(table: TableInfo, speeds: Speeds | undefined): TableInfo {
  if (!speeds || speeds.size === 0) return table;
  const at = table.columns.findIndex(c => c.id === 'name');
  const add = (row: TableRow): TableRow => {
    const speed = speeds.get(String(row.cells[at] ?? ''));
    return {...row, cells: [...row.cells, speed?.tflops, speed?.pct]};
  };
  return {
    ...table,
    columns: [
      ...table.columns,
      {
        id: 'tflops',
        label: 'TFLOP/s',
        unit: 'speed',
        definition:
          'Floating-point operations by the shapes of the operators that launched it, divided by its time',
      },
      {
        id: 'peak_pct',
        label: '% of peak',
        unit: 'share',
        definition:
          'Of what the GPU can do in that precision; above 100 where an algorithm does fewer operations than the shapes say (Winograd, FFT)',
      },
    ],
    rows: table.rows.map(add),
    all: table.all && {...table.all, cells: [...table.all.cells, undefined, undefined]},
  };
}

/** On a phone numbers come before what else is in words. */
const IS_NARROW = innerWidth < 620;

/** As it is shown: what rows are grouped by comes first, the spread behind the largest. */
function arrange(table: TableInfo, speeds: Speeds | undefined, by: string | undefined): TableInfo {
  const all = withSpeed(table, speeds);
  const key = by?.split(',')[0] ?? '';
  const order = all.columns.map((_, i) => i);
  const first = all.columns.findIndex(c => c.id === key);
  if (first > 0) order.unshift(...order.splice(first, 1));
  const max = order.findIndex(i => all.columns[i]?.id === 'max_ns');
  if (max >= 0) order.splice(max + 1, 0, all.columns.length);
  const columns = [...all.columns, BINS];
  const [lead] = order;
  const place = (i: number): number => (i === lead ? 0 : isNumber(columns[i] ?? BINS) ? 1 : 2);
  if (IS_NARROW) order.sort((a, b) => place(a) - place(b));
  const put = (row: TableRow): TableRow => ({...row, cells: order.map(i => row.cells[i])});
  return {
    ...all,
    columns: order.flatMap(i => columns[i] ?? []),
    rows: all.rows.map(put),
    all: all.all && put(all.all),
  };
}

const BINS: TableColumn = {
  id: 'bins',
  label: 'min to max',
  unit: 'bins',
  definition: 'How the durations spread, from the shortest to the longest of the row',
};

// ---- tools

function Tools(props: {
  trace: TraceInfo;
  name: TableName;
  usual: TableName;
  group: string | undefined;
  time: {t0: number; t1: number} | undefined;
  ask: TableQuery;
  shown: TableInfo | undefined;
  isOfSteps: boolean;
}): JSX.Element {
  const {name, shown, time, trace} = props;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping(event)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Tables',
      shortcuts: [
        {keys: ['/'], text: 'filter'},
        {keys: ['↑', '↓'], text: 'previous and next row'},
        {keys: ['Enter'], text: 'the row in the timeline: the longest of its slices'},
      ],
    });
    return () => {
      removeEventListener('keydown', onKey);
      forget();
    };
  }, []);
  return (
    <>
      <nav class="table-names" aria-label="Tables">
        {TABLE_NAMES.map(each => (
          <ViewLink
            key={each}
            class="table-name"
            view={{
              tableName: each === props.usual ? '' : each,
              tableGroup: '',
              tableSort: '',
              tableFilter: '',
            }}
            current={each === name}
          >
            {TABLES[each].label}
          </ViewLink>
        ))}
      </nav>
      <div class="tools">
        <label class="field field-search">
          <IconSearch />
          <input
            ref={field}
            type="search"
            placeholder="Filter by any text"
            aria-label={`Filter the ${TABLES[name].many}`}
            value={tableFilter.value}
            onInput={event => (tableFilter.value = event.currentTarget.value)}
          />
        </label>
        {TABLES[name].groups.length > 0 && (
          <select
            class="table-group"
            aria-label="Group"
            value={props.group}
            onChange={event => {
              const by = event.currentTarget.value;
              show({tableGroup: by === TABLES[name].groups[0]?.by ? '' : by});
            }}
          >
            {TABLES[name].groups.map(group => (
              <option key={group.by} value={group.by}>
                {group.label}
              </option>
            ))}
          </select>
        )}
        {time && (
          <ViewLink
            class="button chip-area"
            view={{selection: undefined}}
            title="Show all of the trace"
          >
            in the selected {formatDuration(time.t1 - time.t0)} ✕
          </ViewLink>
        )}
        {shown && props.isOfSteps && (
          <StepsNote
            trace={trace}
            steps={shown.steps}
            isWhole={shown.t0_ns <= 0 && shown.t1_ns >= trace.duration_ns}
            usual={MEASURED}
          />
        )}
        {shown && <Notes shown={shown} many={TABLES[name].many} />}
        <span class="spacer" />
        <TableCopies
          class="button"
          load={() => getTable(trace.id, name, {...props.ask, limit: COPIED_ROWS})}
        />
      </div>
    </>
  );
}

function Notes({shown, many}: {shown: TableInfo; many: string}): JSX.Element {
  return (
    <>
      <span class="muted num" role="status">
        {shown.all || shown.total === 1
          ? plural(shown.total, 'row')
          : `${formatCount(shown.total)} ${many}`}
      </span>
      {shown.is_cut && <span class="warn-text">the longest of them; select less time for all</span>}
      {!shown.has_operators && (
        <span class="warn-text">too many launches to name operators; select less time</span>
      )}
      {!shown.has_percentiles && (
        <span class="warn-text">too many durations for percentiles; select less time</span>
      )}
    </>
  );
}

// ---- rows

/** Width of a column in px, and its share of what is left over: all of kernels fit 1440 px beside a scroll bar. */
const WIDTHS: Readonly<Record<string, readonly [number, number]>> = {
  name: [138, 3],
  operator: [96, 1.2],
  track: [114, 0.4],
  direction: [170, 0.5],
  family: [90, 0.3],
  layout: [76, 0.3],
  root_cause: [260, 2],
  step: [150, 1],
  start_ns: [128, 0],
  bytes_per_s: [104, 0],
  cause: [170, 0],
  bins: [76, 0],
  count: [58, 0],
  share_pct: [62, 0],
  tensor_cores: [84, 0],
  tflops: [62, 0],
  peak_pct: [86, 0],
};
const WIDTH: readonly [number, number] = [82, 0];
const WIDTH_OF_TIME: readonly [number, number] = [69, 0];

const CELL_PAD_PX = 13;
/** At the end there is more of it. */
const LAST_PAD_PX = 10;

/** The same for all rows, whatever they hold: a sum is longer than what it is of, and shown whole. */
function rowStyle({columns, all}: TableInfo): RowStyle {
  const pen = document.createElement('canvas').getContext('2d');
  if (pen) pen.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  const widths = columns.map((column, i): readonly [number, number] => {
    const {id, label} = column;
    const [px, share] =
      WIDTHS[id] ?? (id.endsWith('_ns') && label.length < 9 ? WIDTH_OF_TIME : WIDTH);
    const sum = all && isNumber(column) ? formatRowCell(columns, all, i) : '';
    const last = i === columns.length - 1 ? LAST_PAD_PX : 0;
    return [Math.max(px, Math.ceil(pen?.measureText(sum).width ?? 0) + CELL_PAD_PX + last), share];
  });
  const texts = widths.map(([px, share]) =>
    share === 0 ? `${px}px` : `minmax(${px}px, ${share}fr)`,
  );
  const least = widths.reduce((sum, [px]) => sum + px, 0);
  return {gridTemplateColumns: texts.join(' '), minWidth: `${least}px`};
}
interface RowStyle {
  readonly gridTemplateColumns: string;
  readonly minWidth: string;
}

function Rows(props: {
  trace: TraceInfo;
  name: TableName;
  /** Others are about to take the place of these rows. */
  isBusy: boolean;
  first: TableInfo;
  more: (after: string) => Promise<TableInfo>;
}): JSX.Element {
  const {first, trace} = props;
  const [pages, setPages] = useState<readonly TableInfo[]>([first]);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const isLoading = useRef(false);
  const rows = pages.length === 1 ? first.rows : pages.flatMap(page => page.rows);
  const next = pages[pages.length - 1]?.next;
  const {box, first: from, end, scrollToRow} = useVirtualRows(rows.length, ROW_PX, HEAD_PX);
  const [active, setActive] = useState(0);
  const isNear = end >= rows.length - 20;

  useEffect(() => {
    if (next === undefined || !isNear || isLoading.current) return;
    isLoading.current = true;
    props
      .more(next)
      .then(
        page => setPages(before => [...before, page]),
        (error: unknown) => setProblem(errorText(error)),
      )
      .finally(() => (isLoading.current = false));
  }, [next, isNear]);

  const open = async (row: TableRow): Promise<void> =>
    openRow(trace, row).catch((error: unknown) => setProblem(errorText(error)));
  const onKey = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? ROW_PX) / ROW_PX) - 3);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows.length - 1,
    };
    const target = moves[event.key];
    if (target !== undefined) {
      const row = Math.max(0, Math.min(rows.length - 1, target));
      setActive(row);
      scrollToRow(row);
    } else if (event.key === 'Enter') {
      const row = rows[active];
      if (row) void open(row);
    } else return;
    event.preventDefault();
  };
  const style = rowStyle(first);
  return (
    <>
      {problem !== undefined && (
        <p class="error-text table-problem" role="alert">
          {problem}
        </p>
      )}
      <div
        ref={box}
        class="grid"
        role="grid"
        aria-label={TABLES[props.name].label}
        aria-busy={props.isBusy}
        aria-rowcount={first.total + 1}
        {...(rows.length > 0 ? {'aria-activedescendant': `table-row-${active}`} : {})}
        tabIndex={0}
        onKeyDown={onKey}
      >
        <Head
          table={first}
          style={style}
          unit={loopUnit(trace.summary) === 'batch' ? 'batch' : 'step'}
        />
        <div
          class="grid-body"
          style={{height: `${rows.length * ROW_PX}px`, minWidth: style.minWidth}}
        >
          {rows.slice(from, end).map((row, offset) => (
            <Row
              key={from + offset}
              table={first}
              row={row}
              style={style}
              index={from + offset}
              isActive={from + offset === active}
              onOpen={() => {
                setActive(from + offset);
                void open(row);
              }}
            />
          ))}
        </div>
        {first.all && first.total > 1 && (
          <div class="grid-row grid-sum" role="row" style={{...style}}>
            <Cells table={first} row={first.all} isSum />
          </div>
        )}
      </div>
    </>
  );
}

/** The longest slice, the gap or the time of a row, in the timeline. */
async function openRow(trace: TraceInfo, row: TableRow): Promise<void> {
  if (row.slice !== undefined) return showSlice(trace, row.slice);
  if (row.start_ns === undefined || row.dur_ns === undefined) return;
  const t0 = row.start_ns;
  showInTimeline(trace, t0, Math.max(t0 + 1, t0 + row.dur_ns), selectionOf(row));
}

function Head(props: {table: TableInfo; style: RowStyle; unit: string}): JSX.Element {
  const sort = parseTableSort(tableSort.value);
  return (
    <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{...props.style}}>
      {props.table.columns.map(column => {
        const isSorted = sort?.column === column.id;
        const isOurs = ['speed', 'share', 'bins'].includes(column.unit);
        return (
          <span
            key={column.id}
            role="columnheader"
            class={`grid-cell ${isNumber(column) ? 'is-number' : ''} col-${column.id}`}
            aria-sort={isSorted ? (sort.ascending ? 'ascending' : 'descending') : 'none'}
          >
            <button
              type="button"
              class={isSorted ? 'sorted' : ''}
              title={column.definition}
              disabled={isOurs}
              onClick={() => (tableSort.value = formatTableSort(pressTableSort(sort, column)))}
            >
              {column.label.replace('step', props.unit)}
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

function Row(props: {
  table: TableInfo;
  row: TableRow;
  style: RowStyle;
  index: number;
  isActive: boolean;
  onOpen: () => void;
}): JSX.Element {
  const {index} = props;
  return (
    <div
      id={`table-row-${index}`}
      class={`grid-row ${props.isActive ? 'grid-active' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      style={{
        transform: `translateY(${index * ROW_PX}px)`,
        ...props.style,
      }}
      title={props.table.all ? 'Show the longest in the timeline' : 'Show it in the timeline'}
      data-testid="table-row"
      onClick={event => {
        // selecting text is not a click, and a link goes its own way
        const isLink = event.target instanceof Element && event.target.closest('a') !== null;
        if (!isLink && getSelection()?.toString() === '') props.onOpen();
        event.stopPropagation();
      }}
    >
      <Cells table={props.table} row={props.row} onOpen={props.onOpen} />
    </div>
  );
}

/** The address has no window: that is asked for when it is pressed. */
function RowLink(props: {
  row: TableRow;
  onOpen: (() => void) | undefined;
  children: ComponentChildren;
}): JSX.Element {
  const {row, onOpen, children} = props;
  if (!onOpen || (row.slice === undefined && row.start_ns === undefined)) return <>{children}</>;
  return (
    <ViewLink
      class="grid-link"
      view={{page: 'timeline', selection: selectionOf(row)}}
      onPress={onOpen}
    >
      {children}
    </ViewLink>
  );
}

function Cells(props: {
  table: TableInfo;
  row: TableRow;
  isSum?: boolean;
  onOpen?: () => void;
}): JSX.Element {
  const {row, table} = props;
  return (
    <>
      {table.columns.map((column, i) => {
        const cell = row.cells[i];
        if (column.id === 'name')
          return (
            <Name
              key="name"
              row={row}
              onOpen={props.onOpen}
              text={props.isSum ? (i === 0 ? 'all' : ' ') : String(cell ?? '')}
            />
          );
        if (column.id === 'bins')
          return (
            <span key="bins" role="gridcell" class="grid-cell col-bins">
              <Spread row={row} />
            </span>
          );
        const text =
          props.isSum === true && i === 0 && cell === undefined
            ? 'all'
            : formatRowCell(table.columns, row, i);
        return (
          <span
            key={column.id}
            role="gridcell"
            class={`grid-cell ${isNumber(column) ? 'is-number num' : ''} col-${column.id}`}
            title={exactCell(column, cell)}
          >
            {i === 0 ? (
              <RowLink row={row} onOpen={props.onOpen}>
                {text}
              </RowLink>
            ) : (
              text
            )}
          </span>
        );
      })}
    </>
  );
}

function Name({
  row,
  text,
  onOpen,
}: {
  row: TableRow;
  text: string;
  onOpen: (() => void) | undefined;
}): JSX.Element {
  return (
    <span role="gridcell" class="grid-cell col-name" title={text}>
      <span class="kernel-short">
        <RowLink row={row} onOpen={onOpen}>
          {row.short || text || (row.slice === undefined ? '' : '(no name)')}
        </RowLink>
      </span>
      {row.short !== '' && row.short !== text && (
        <span class="kernel-full ellipsis">{text.replace(/^void /, '')}</span>
      )}
      {row.slice !== undefined && text !== '' && text !== 'all' && (
        <>
          <ViewLink
            class="button button-quiet button-icon copy"
            view={{page: 'timeline', query: text, selection: undefined}}
            title="Find all of them in the timeline"
          >
            <IconSearch />
            <span class="off-screen">Find all in the timeline</span>
          </ViewLink>
          <CopyButton text={text} label="Copy the full name" />
        </>
      )}
    </span>
  );
}

/** Durations from min to max: how many lie where. */
function Spread({row}: {row: TableRow}): JSX.Element | null {
  if (row.bins.length === 0) return null;
  const most = Math.max(...row.bins, 1);
  const text = `From min to max in ${row.bins.length} equal parts: ${row.bins.join(', ')}`;
  return (
    <svg class="spread" viewBox="0 0 96 20" preserveAspectRatio="none" role="img" aria-label={text}>
      <title>{text}</title>
      {row.bins.map((count, i) => {
        const height = count === 0 ? 0 : Math.max(1.5, (18 * count) / most);
        return <rect key={i} x={i * 6} y={20 - height} width="5" height={height} />;
      })}
    </svg>
  );
}
