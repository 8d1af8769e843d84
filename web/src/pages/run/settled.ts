// A value once it has stopped changing: what is asked of the server while somebody zooms.
import {useEffect, useState} from 'preact/hooks';

const QUIET_MS = 150;

/** Compared by its JSON text. */
export function useSettled<T>(value: T): T {
  const [settled, settle] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(() => value), QUIET_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
