// What is said for a moment after a press.
import {useEffect, useState} from 'preact/hooks';

const SAID_MS = 2000;

export function useSaid(): readonly [string, (text: string) => void] {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (said === '') return undefined;
    const timer = setTimeout(() => setSaid(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return [said, setSaid];
}
