// A page, or a part of one, of the file that is fetched later.
import type {ComponentType, JSX} from 'preact';
import {lazy} from '../ui/lazy';

type Pages = typeof import('./lazy_pages');

export const fetchPages = (): Promise<Pages> => import('./lazy_pages');

/** @param what is fetched, for the line that stands in its place
 *  @param isPart of a page, not a page of its own */
export const later = <P extends object>(
  what: string,
  pick: (pages: Pages) => ComponentType<P>,
  isPart = false,
): ((props: P) => JSX.Element) => lazy(what, async () => pick(await fetchPages()), isPart);
