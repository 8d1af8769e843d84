// Where the step went: from A to B, one change after the other.
import type {JSX} from 'preact';
import {durationIn, formatInUnit, type TimeUnit} from '../../base/format';
import type {WentRow} from '../../model/comparison';
import {fallsOf} from '../../model/run/waterfall';

export function Waterfall(props: {
  rows: readonly WentRow[];
  aNs: number;
  bNs: number;
  unit: TimeUnit;
}): JSX.Element {
  const falls = fallsOf(props.rows, props.aNs, props.bNs);
  const largest = Math.max(0, ...props.rows.map(row => Math.abs(row.deltaNs)));
  const decimals = formatInUnit(largest, props.unit, 2).includes('.') ? 2 : 1;
  const plain = (value: number): string => durationIn(value, props.unit, decimals);
  const isNothing = (value: number): boolean => plain(Math.abs(value)) === plain(0);
  const total = (name: string, value: number, to: number): JSX.Element => (
    <div class="went-row fall-total" role="row" key={name}>
      <span role="cell" class="went-name">
        {name}
      </span>
      <span role="cell" class="num went-numbers" />
      <span role="cell" class="fall-bar" aria-hidden="true">
        <span class="fall-whole" style={{width: `${to}%`}} />
      </span>
      <span role="cell" class="num went-delta">
        {plain(value)}
      </span>
    </div>
  );
  return (
    <div class="went" role="table" aria-label="From the step of A to the step of B">
      {total('A', props.aNs, falls.aTo)}
      {falls.rows.map(row => (
        <div class="went-row" role="row" key={row.name}>
          <span role="cell" class="went-name">
            {row.name}
          </span>
          <span role="cell" class="num went-numbers">
            {plain(row.aNs)} → {plain(row.bNs)}
          </span>
          <span role="cell" class="fall-bar" aria-hidden="true">
            {isNothing(row.deltaNs) ? (
              <span class="fall-none" style={{left: `${row.from}%`}} />
            ) : (
              <span
                class={row.deltaNs < 0 ? 'went-less' : 'went-more'}
                style={{
                  left: `${Math.min(row.from, row.to)}%`,
                  width: `${Math.max(0.4, Math.abs(row.to - row.from))}%`,
                }}
              />
            )}
          </span>
          <span role="cell" class="num went-delta">
            {isNothing(row.deltaNs) ? '–' : `${row.deltaNs > 0 ? '+' : ''}${plain(row.deltaNs)}`}
          </span>
        </div>
      ))}
      {!isNothing(falls.restNs) && (
        <div class="went-row" role="row">
          <span role="cell" class="went-name faint">
            smaller parts
          </span>
          <span role="cell" class="num went-numbers" />
          <span role="cell" class="fall-bar" />
          <span role="cell" class="num went-delta">
            {falls.restNs > 0 ? '+' : ''}
            {plain(falls.restNs)}
          </span>
        </div>
      )}
      {total('B', props.bNs, falls.bTo)}
    </div>
  );
}
