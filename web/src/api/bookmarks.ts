// Times and stretches of a trace's timeline that people marked, with a note or without.
import {list, num, obj, or, str, type Infer} from '../base/shape';
import {getJson, send, trace} from './client';

const bookmarkShape = obj({
  id: str,
  start_ns: num,
  /** 0: a single time. */
  dur_ns: num,
  note: or(str, ''),
  author: or(str, ''),
});
export type Bookmark = Infer<typeof bookmarkShape>;
const bookmarksShape = obj({bookmarks: list(bookmarkShape)});

const place = (id: string, bookmark = ''): string =>
  `${trace(id)}/bookmarks${bookmark && `/${encodeURIComponent(bookmark)}`}`;

/** By time. */
export const listBookmarks = async (id: string, s?: AbortSignal): Promise<readonly Bookmark[]> =>
  (await getJson(place(id), bookmarksShape, {}, s)).bookmarks;

/** Keeps a new one (without an id), or another note of one that is there. */
export async function saveBookmark(id: string, bookmark: Partial<Bookmark>): Promise<void> {
  const {id: known, start_ns, dur_ns, note} = bookmark;
  await (known === undefined
    ? send('POST', place(id), {start_ns, dur_ns, note})
    : send('PATCH', place(id, known), {note}));
}

export const deleteBookmark = (id: string, bookmark: string) => send('DELETE', place(id, bookmark));
