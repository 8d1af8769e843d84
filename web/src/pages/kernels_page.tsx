// All kernels of a trace by name: sorted, filtered, each leading to its longest instance.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {errorText} from '../api/client';
import type {Analysis, KernelRow, TraceInfo} from '../api/types';
import {
  THIN,
  durationIn,
  exactNs,
  formatCount,
  formatDuration,
  formatNumber,
  formatPct,
  type TimeUnit,
} from '../base/format';
import {
  formatSort,
  layoutWord,
  loadKernels,
  parseSort,
  pressSort,
  selectRows,
  tensorCoreWord,
  withSpeed,
  type Column,
  type KernelSpeedRow,
  type KernelTable,
} from '../model/kernel_table';
import {familyLabel} from '../model/overview';
import {isTyping, registerShortcuts} from '../model/shortcuts';
import {tableFilter, tableSort} from '../model/view_state';
import {CopyButton} from '../ui/copy_button';
import {IconSearch} from '../ui/icons';
import {useResource} from '../ui/resource';
import {Empty, Failed, Loading} from '../ui/states';
import {useVirtualRows} from '../ui/virtual_rows';
import {showSlice} from './evidence_link';

const ROW_PX = 32;
const HEAD_PX = 34;

interface ColumnHead {
  readonly column: Column;
  readonly label: string;
  readonly unit?: TimeUnit;
  readonly definition: string;
}

const HEADS: readonly ColumnHead[] = [
  {column: 'name', label: 'kernel', definition: 'Short name; hover for the full one'},
  {column: 'family', label: 'kind', definition: 'Kind of work, from the name'},
  {
    column: 'total',
    label: 'total',
    unit: 'ms',
    definition: 'Sum of the durations of all instances',
  },
  {column: 'share', label: 'share', definition: 'Of all kernel time, communication included'},
  {column: 'step', label: 'ms/step', definition: 'Total divided by the number of steps'},
  {column: 'count', label: 'count', definition: 'Instances'},
  {column: 'mean', label: 'mean', unit: 'µs', definition: 'Total divided by count'},
  {column: 'min', label: 'min', unit: 'µs', definition: 'Shortest instance'},
  {column: 'max', label: 'max', unit: 'µs', definition: 'Longest instance'},
  {
    column: 'tflops',
    label: 'TFLOP/s',
    definition:
      'Floating-point operations by the shapes of the operators that launched it, divided by its time',
  },
  {
    column: 'peak',
    label: '% of peak',
    definition:
      'Of what the GPU can do in that precision; above 100 where an algorithm does fewer operations than the shapes say (Winograd, FFT)',
  },
  {
    column: 'tensor',
    label: 'tensor cores',
    definition: 'Whether it uses tensor cores, from its name; empty where the name does not tell',
  },
  {
    column: 'layout',
    label: 'layout',
    definition:
      'Why it rearranges data: conversion or padding inserted by a library, a permute or copy in the model, or a cast',
  },
];

export function KernelsPage({
  trace,
  analysis,
}: {
  trace: TraceInfo;
  analysis: Analysis | undefined;
}): JSX.Element {
  const table = useResource(`${trace.id}/${trace.generation}`, () =>
    loadKernels(trace.id, trace.generation),
  );
  return (
    <main class="page page-full page-kernels">
      {table.kind === 'loading' && <Loading what="the kernels" />}
      {table.kind === 'error' && (
        <Failed title="The kernels cannot be shown" text={table.text} retry={table.retry} />
      )}
      {table.kind === 'ready' &&
        (table.value.rows.length === 0 ? (
          <Empty title="No kernels in this trace">
            Record with <code>ProfilerActivity.CUDA</code> to see what the GPU runs.
          </Empty>
        ) : (
          <Kernels trace={trace} table={table.value} analysis={analysis} />
        ))}
    </main>
  );
}

function Kernels({
  trace,
  table,
  analysis,
}: {
  trace: TraceInfo;
  table: KernelTable;
  analysis: Analysis | undefined;
}): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const filter = tableFilter.value;
  const sortText = tableSort.value;
  const rows = useMemo(
    () => selectRows(withSpeed(table.rows, analysis), filter, parseSort(sortText)),
    [table, analysis, filter, sortText],
  );
  const largestPct = table.rows.reduce(
    (largest, row) => Math.max(largest, row.pct_of_kernel_time ?? 0),
    0,
  );
  const sumNs = rows.reduce((sum, row) => sum + row.total_ns, 0);
  const allNs = table.rows.reduce((sum, row) => sum + row.total_ns, 0);
  const [problem, setProblem] = useState<string | undefined>(undefined);

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping(event)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', onKey);
    const forget = registerShortcuts({
      title: 'Kernels',
      shortcuts: [
        {keys: ['/'], text: 'filter'},
        {keys: ['↑', '↓'], text: 'previous and next row'},
        {keys: ['Enter'], text: 'longest instance in the timeline'},
      ],
    });
    return () => {
      removeEventListener('keydown', onKey);
      forget();
    };
  }, []);

  const open = (row: KernelRow): void => {
    if (row.longest_slice === undefined) return;
    showSlice(trace, row.longest_slice).catch((error: unknown) => setProblem(errorText(error)));
  };

  return (
    <>
      <div class="tools">
        <label class="field field-search">
          <IconSearch />
          <input
            ref={field}
            type="search"
            placeholder="Filter by name or kind"
            aria-label="Filter the kernels"
            value={filter}
            onInput={event => (tableFilter.value = event.currentTarget.value)}
          />
        </label>
        <span class="muted num" role="status">
          {rows.length === table.rows.length
            ? `${formatCount(rows.length)} kernels`
            : `${formatCount(rows.length)} of ${formatCount(table.rows.length)} kernels`}
          , {formatDuration(sumNs)}
          {rows.length < table.rows.length && allNs > 0 && `, ${formatPct((100 * sumNs) / allNs)}`}
        </span>
        {table.rows.length < table.total && (
          <span class="warn-text">
            the {formatCount(table.total - table.rows.length)} with the least time are not shown
          </span>
        )}
        {problem !== undefined && <span class="error-text">{problem}</span>}
      </div>
      <Grid rows={rows} largestPct={largestPct} onOpen={open} />
      {rows.length === 0 && (
        <Empty title="No kernels match">
          <button type="button" class="button" onClick={() => (tableFilter.value = '')}>
            Show all
          </button>
        </Empty>
      )}
    </>
  );
}

function Grid(props: {
  rows: readonly KernelSpeedRow[];
  largestPct: number;
  onOpen: (row: KernelRow) => void;
}): JSX.Element {
  const {rows} = props;
  const {box, first, end, scrollToRow} = useVirtualRows(rows.length, ROW_PX, HEAD_PX);
  const [active, setActive] = useState(0);
  const sort = parseSort(tableSort.value);

  const onKey = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? ROW_PX) / ROW_PX) - 2);
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
      if (row) props.onOpen(row);
    } else return;
    event.preventDefault();
  };

  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      aria-label="Kernels"
      aria-rowcount={rows.length + 1}
      {...(rows.length > 0 ? {'aria-activedescendant': `kernel-${active}`} : {})}
      tabIndex={0}
      onKeyDown={onKey}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1}>
        {HEADS.map(head => {
          const current = sort.column === head.column;
          return (
            <span
              key={head.column}
              role="columnheader"
              class={`grid-cell col-${head.column}`}
              aria-sort={current ? (sort.ascending ? 'ascending' : 'descending') : 'none'}
            >
              <button
                type="button"
                class={current ? 'sorted' : ''}
                title={head.definition}
                onClick={() => (tableSort.value = formatSort(pressSort(sort, head.column)))}
              >
                {head.label}
                {head.unit !== undefined && <span class="faint">{` (${head.unit})`}</span>}
                <span class="sort-mark" aria-hidden="true">
                  {current ? (sort.ascending ? '↑' : '↓') : ''}
                </span>
              </button>
            </span>
          );
        })}
      </div>
      <div class="grid-body" style={{height: `${rows.length * ROW_PX}px`}}>
        {rows.slice(first, end).map((row, offset) => (
          <Row
            key={`${row.name_id}/${row.name}`}
            row={row}
            largestPct={props.largestPct}
            index={first + offset}
            isActive={first + offset === active}
            onOpen={() => {
              setActive(first + offset);
              props.onOpen(row);
            }}
          />
        ))}
      </div>
    </div>
  );
}

function Row(props: {
  row: KernelSpeedRow;
  largestPct: number;
  index: number;
  isActive: boolean;
  onOpen: () => void;
}): JSX.Element {
  const {row, index} = props;
  const mean = row.mean_ns ?? row.total_ns / Math.max(1, row.count);
  return (
    <div
      id={`kernel-${index}`}
      class={`grid-row ${props.isActive ? 'grid-active' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      style={{transform: `translateY(${index * ROW_PX}px)`}}
      title="Show the longest instance in the timeline"
      data-testid="kernel-row"
      onClick={event => {
        // selecting text is not a click
        if (getSelection()?.toString() === '') props.onOpen();
        event.stopPropagation();
      }}
    >
      <span role="gridcell" class="grid-cell col-name" title={row.name}>
        <span class="kernel-short">{row.short || row.name || '(no name)'}</span>
        {row.short !== '' && row.short !== row.name && (
          <span class="kernel-full ellipsis">{row.name.replace(/^void /, '')}</span>
        )}
        <CopyButton text={row.name} label="Copy the full name" />
      </span>
      <span role="gridcell" class="grid-cell col-family">
        {familyLabel(row.family)}
      </span>
      <span role="gridcell" class="grid-cell col-total num" title={exactNs(row.total_ns)}>
        {durationIn(row.total_ns, 'ms', 3)}
      </span>
      <span role="gridcell" class="grid-cell col-share num">
        {row.pct_of_kernel_time === undefined ? '' : formatPct(row.pct_of_kernel_time)}
        <span class="cell-bar" aria-hidden="true">
          <span
            style={{
              width: `${(100 * (row.pct_of_kernel_time ?? 0)) / Math.max(props.largestPct, 1e-9)}%`,
            }}
          />
        </span>
      </span>
      <Time value={row.per_step_ns} column="step" unit="ms" decimals={3} />
      <span role="gridcell" class="grid-cell col-count num">
        {formatCount(row.count)}
      </span>
      <Time value={mean} column="mean" unit="µs" decimals={1} />
      <Time value={row.min_ns} column="min" unit="µs" decimals={1} />
      <Time value={row.max_ns} column="max" unit="µs" decimals={1} />
      <span role="gridcell" class="grid-cell col-tflops num">
        {row.tflops === undefined ? '' : formatNumber(row.tflops)}
      </span>
      <span role="gridcell" class="grid-cell col-peak num">
        {row.pct_of_peak === undefined ? '' : formatPct(row.pct_of_peak)}
      </span>
      <span role="gridcell" class="grid-cell col-tensor">
        {tensorCoreWord(row.tensor_core)}
      </span>
      <span role="gridcell" class="grid-cell col-layout">
        {layoutWord(row.layout_class)}
      </span>
    </div>
  );
}

function Time(props: {
  value: number | undefined;
  column: Column;
  unit: TimeUnit;
  decimals: number;
}): JSX.Element {
  return (
    <span
      role="gridcell"
      class={`grid-cell col-${props.column} num`}
      title={props.value === undefined ? 'not recorded' : exactNs(props.value)}
    >
      {props.value === undefined ? '–' : durationIn(props.value, props.unit, props.decimals)}
      <span class="off-screen">{`${THIN}${props.unit}`}</span>
    </span>
  );
}
