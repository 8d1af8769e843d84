// A table of gaps or steps under the timeline, each row a link to its place.
import type {ComponentChildren, JSX} from 'preact';
import {getTable} from '../api/client';
import type {TableRow} from '../api/table_types';
import {formatCount} from '../base/format';
import {exactCell, formatRowCell, isNumber, selectionOf} from '../model/data_table';
import {ViewLink} from '../ui/link';
import {useResource} from '../ui/resource';
import {StandIn} from '../ui/states';
import type {TimelineModel} from './data/timeline_model';
import type {Span} from './data/view_math';

export const ROWS_SHOWN = 200;

export function DockList(props: {
  model: TimelineModel;
  name: 'gaps' | 'steps';
  /** Only what lies in it, at least in part. */
  span?: {readonly t0: number; readonly t1: number};
  children?: ComponentChildren;
}): JSX.Element {
  const {model, name, span} = props;
  const table = useResource(
    `${model.trace.id}/${model.trace.generation} ${name} ${span?.t0} ${span?.t1}`,
    signal => getTable(model.trace.id, name, {...span, limit: ROWS_SHOWN}, signal),
  );
  if (table.kind !== 'ready')
    return <StandIn of={table} what={`the ${name}`} title="The table cannot be shown" />;
  const {columns, rows, total} = table.value;
  return (
    <div class="tl-dock-body">
      <table class="tl-dock-table tl-dock-list-table">
        <thead>
          <tr>
            {columns.map(column => (
              <th
                key={column.id}
                scope="col"
                class={isNumber(column) ? '' : 'is-text'}
                title={column.definition}
              >
                {column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column, i) => {
                const text = formatRowCell(columns, row, i);
                return (
                  <td
                    key={column.id}
                    class={isNumber(column) ? '' : 'is-text'}
                    title={exactCell(column, row.cells[i])}
                  >
                    {i === 0 ? (
                      <ViewLink
                        view={{
                          selection: selectionOf(row),
                          window: model.asWindow(around(row)),
                        }}
                      >
                        {text}
                      </ViewLink>
                    ) : (
                      text
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="tl-muted tl-dock-sum">
        {rows.length < total && `${formatCount(rows.length)} of ${formatCount(total)}; `}
        {props.children ?? (
          <ViewLink view={{page: 'kernels', tableName: name, selection: undefined}}>
            all in Tables
          </ViewLink>
        )}
      </p>
    </div>
  );
}

/** A row with half of its length to each side. */
function around(row: TableRow): Span {
  const t0 = row.start_ns ?? 0;
  const dur = Math.max(1000, row.dur_ns ?? 0);
  return {t0: t0 - dur / 2, t1: t0 + dur * 1.5};
}
