// Rows of equal height in a scrolling box: only those in sight are made.
import type {RefObject} from 'preact';
import {useLayoutEffect, useRef, useState} from 'preact/hooks';

const SPARE_ROWS = 8;

export interface VirtualRows {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly first: number;
  /** Behind the last. */
  readonly end: number;
  readonly scrollToRow: (row: number) => void;
}

/** Range of rows to make for a box of that height, scrolled that far. */
export function rowRange(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
): {readonly first: number; readonly end: number} {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - SPARE_ROWS);
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + SPARE_ROWS);
  return {first: Math.min(first, end), end};
}

export function useVirtualRows(count: number, rowHeight: number, headHeight: number): VirtualRows {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({scrollTop: 0, height: 800});

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const read = (): void => {
      const {scrollTop, clientHeight} = element;
      setView(before =>
        before.scrollTop === scrollTop && before.height === clientHeight
          ? before
          : {scrollTop, height: clientHeight},
      );
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener('scroll', read, {passive: true});
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', read);
    };
  }, []);

  const {first, end} = rowRange(view.scrollTop, view.height, rowHeight, count);
  const scrollToRow = (row: number): void => {
    const element = box.current;
    if (!element) return;
    const top = row * rowHeight;
    const visible = element.clientHeight - headHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + visible)
      element.scrollTop = top + rowHeight - visible;
  };
  return {box, first, end, scrollToRow};
}
