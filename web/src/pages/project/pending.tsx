// Runs that are still being measured: what is shown is asked for again until there are none.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {plural} from '../../base/format';

const AGAIN_MS = 300;

/** A number that goes up while something is pending: part of a resource's key. */
export function useRounds(): {readonly round: number; readonly again: () => void} {
  const [round, setRound] = useState(0);
  return {round, again: () => setRound(before => before + 1)};
}

export function Pending(props: {count: number; again: () => void}): JSX.Element | null {
  const {count, again} = props;
  useEffect(() => {
    if (count === 0) return undefined;
    const timer = setTimeout(again, AGAIN_MS);
    return () => clearTimeout(timer);
  });
  if (count === 0) return null;
  return (
    <p class="muted" role="status">
      {plural(count, 'run')} still to be measured …
    </p>
  );
}
