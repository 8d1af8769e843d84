// Progress: a bar, and in words what is done, how fast, and how much time is left.
import type {JSX} from 'preact';
import {THIN, formatByteRate, formatEta} from '../base/format';
import {Progress} from './states';

/** Before this much is done, a rate says nothing about the rest. */
const RATE_FROM_PCT = 2;

export function ProgressLine(props: {
  done: number;
  total: number;
  rate: number;
  etaS: number | undefined;
  label: string;
}): JSX.Element {
  const share = props.total > 0 ? (100 * props.done) / props.total : 0;
  return (
    <span class="progress-line">
      <Progress done={props.done} total={props.total} label={props.label} />
      <span class="num progress-words">
        {props.total > 0 && <b>{`${Math.floor(share)}${THIN}%`}</b>}
        {props.rate > 0 && share >= RATE_FROM_PCT && <span>{formatByteRate(props.rate)}</span>}
        {props.etaS !== undefined && share >= RATE_FROM_PCT && <span>{formatEta(props.etaS)}</span>}
      </span>
    </span>
  );
}
