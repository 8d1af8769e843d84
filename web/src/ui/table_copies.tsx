// Buttons that copy a whole table, not only what is loaded of it.
import type {JSX} from 'preact';
import {errorText} from '../api/client';
import type {TableColumn, TableRow} from '../api/table_types';
import {formatCount, plural} from '../base/format';
import {tableCsv, tableMarkdown} from '../model/data_table';
import {copyText} from './copy_button';
import {useSaid} from './said';

export interface CopiedTable {
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  /** Rows that there are. */
  readonly total: number;
}

export function TableCopies(props: {
  /** Of the buttons. */
  class: string;
  load: () => Promise<CopiedTable>;
}): JSX.Element {
  const [said, setSaid] = useSaid();
  const copy = async (format: typeof tableCsv): Promise<void> => {
    try {
      const {columns, rows, total} = await props.load();
      const of = rows.length < total ? `${formatCount(rows.length)} of ` : '';
      setSaid(
        (await copyText(format(columns, rows)))
          ? `${of}${plural(total, 'row')} copied`
          : 'The browser did not allow the copy.',
      );
    } catch (error) {
      setSaid(errorText(error));
    }
  };
  return (
    <span class="table-copies">
      <span class="muted" role="status">
        {said}
      </span>
      <button type="button" class={props.class} onClick={() => void copy(tableCsv)}>
        Copy as CSV
      </button>
      <button type="button" class={props.class} onClick={() => void copy(tableMarkdown)}>
        Copy as Markdown
      </button>
    </span>
  );
}
