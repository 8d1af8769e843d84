// The frames of a flame graph as a table: one row per name, beside the graph.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {
  exactAmount,
  formatAmount,
  formatCount,
  formatPct,
  plural,
  type Amount,
} from '../base/format';
import {word} from '../base/vocabulary';
import {
  SUMMED,
  tableOf,
  type FlameLayout,
  type FlameRow,
  type FlameTree,
} from '../model/flame_tree';
import {IconSwap} from '../ui/icons';
import {Empty} from '../ui/states';

const TABLE_ROWS_MAX = 500;

type Key = 'name' | 'selfNs' | 'totalNs' | 'slices' | 'deltaNs';

/** What a name has in two traces, in ns of a step. */
export interface NameDelta {
  readonly aNs: number;
  readonly bNs: number;
}

const changeOf = (ns: number): string =>
  Math.round(ns) === 0 ? '' : ns > 0 ? 'is-slower' : 'is-faster';

export function FlameTable(props: {
  tree: FlameTree;
  layout: FlameLayout;
  steps: number;
  /** " per step", or nothing. */
  per: string;
  amount: Amount;
  filter: string;
  labelOf: (node: number) => string;
  onFocus: (node: number) => void;
  /** Callers and callees of a name. */
  onCenter: (name: string) => void;
  /** Of a difference: by the table's own rows. */
  deltas: ((name: string) => NameDelta) | undefined;
}): JSX.Element {
  const {tree, layout, steps, deltas} = props;
  const [sort, setSort] = useState<{key: Key; ascending: boolean} | undefined>(undefined);
  const order = sort ?? {
    key: deltas ? ('deltaNs' as const) : ('selfNs' as const),
    ascending: false,
  };
  const all = useMemo(() => tableOf(tree, layout), [tree, layout]);
  const rows = useMemo(() => {
    const wanted = props.filter.trim().toLowerCase();
    const kept = all
      .filter(row => row.name.toLowerCase().includes(wanted))
      .map(row => ({row, delta: deltas?.(row.name)}));
    const value = ({row, delta}: {row: FlameRow; delta: NameDelta | undefined}): number =>
      order.key === 'deltaNs'
        ? Math.abs((delta?.bNs ?? 0) - (delta?.aNs ?? 0))
        : order.key === 'name'
          ? 0
          : row[order.key];
    const sign = order.ascending ? -1 : 1;
    return kept.sort((a, b) =>
      order.key === 'name'
        ? sign * a.row.name.localeCompare(b.row.name)
        : sign * (value(b) - value(a)),
    );
  }, [all, props.filter, order.key, order.ascending, deltas]);
  const total = Math.max(1, layout.valueNs[0] ?? 1);
  const {per} = props;
  const head = (key: Key, label: string, title?: string): JSX.Element => (
    <th
      scope="col"
      class={key === 'name' ? '' : 'cell-num'}
      aria-sort={order.key === key ? (order.ascending ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        class={`plain-link ${order.key === key ? 'sorted' : ''}`}
        {...(title === undefined ? {} : {title})}
        onClick={() => setSort({key, ascending: order.key === key ? !order.ascending : false})}
      >
        {label}
        {order.key === key ? (order.ascending ? ' ↑' : ' ↓') : ''}
      </button>
    </th>
  );
  return (
    <div class="flame-table-box">
      <table class="flame-table">
        <thead>
          <tr>
            {head('name', `frame${per}`)}
            {deltas ? (
              <>
                <th scope="col" class="cell-num">
                  A
                </th>
                <th scope="col" class="cell-num">
                  B
                </th>
                {head('deltaNs', 'difference')}
              </>
            ) : (
              <>
                {head('selfNs', 'self', `Time in the frame itself${per}, without its children`)}
                {head('totalNs', 'total', `Time in the frame and its children${per}`)}
                <th scope="col" class="cell-num">
                  of all
                </th>
                {head('slices', 'count')}
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, TABLE_ROWS_MAX).map(({row, delta}) => (
            <tr key={row.name}>
              <th scope="row">
                <span class="flame-name">
                  {row.name !== SUMMED && (
                    <button
                      type="button"
                      class="button button-quiet button-icon flame-center"
                      aria-label={`Callers and callees of ${props.labelOf(row.node)}`}
                      title="Callers and callees"
                      onClick={() => props.onCenter(row.name)}
                    >
                      <IconSwap />
                    </button>
                  )}
                  <button
                    type="button"
                    class="plain-link ellipsis"
                    title={
                      row.name === SUMMED
                        ? 'Show them one by one'
                        : `${row.name} (${word('slice_kinds', row.kind).label}): its widest frame in the graph`
                    }
                    onClick={() => props.onFocus(row.node)}
                  >
                    {row.name === SUMMED ? SUMMED : props.labelOf(row.node)}
                  </button>
                </span>
              </th>
              {delta ? (
                <>
                  <td class="num cell-num">{formatAmount(delta.aNs, props.amount)}</td>
                  <td class="num cell-num">{formatAmount(delta.bNs, props.amount)}</td>
                  <td
                    class={`num cell-num ${changeOf(delta.bNs - delta.aNs)}`}
                    title={exactAmount(delta.bNs - delta.aNs, props.amount)}
                  >
                    {delta.bNs > delta.aNs ? '+' : ''}
                    {formatAmount(delta.bNs - delta.aNs, props.amount)}
                  </td>
                </>
              ) : (
                <>
                  <td class="num cell-num" title={exactAmount(row.selfNs, props.amount)}>
                    {formatAmount(row.selfNs / steps, props.amount)}
                  </td>
                  <td class="num cell-num" title={exactAmount(row.totalNs, props.amount)}>
                    {formatAmount(row.totalNs / steps, props.amount)}
                  </td>
                  <td class="num cell-num">{formatPct((100 * row.totalNs) / total)}</td>
                  <td class="num cell-num">{formatCount(row.slices)}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > TABLE_ROWS_MAX && (
        <p class="muted">
          {plural(rows.length - TABLE_ROWS_MAX, 'more name')} below these; use Find to narrow the
          list.
        </p>
      )}
      {rows.length === 0 && <Empty title="No frames match" />}
    </div>
  );
}
