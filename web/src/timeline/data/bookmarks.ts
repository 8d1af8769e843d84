// What people marked in this trace's timeline, kept up to date while it is looked at.
import {computed, effect, signal} from '@preact/signals';
import {deleteBookmark, listBookmarks, saveBookmark, type Bookmark} from '../../api/bookmarks';
import {traceById} from '../../model/traces';
import type {Span} from './view_math';

/** A new bookmark, or one that is there, while its note is written. */
export type BookmarkDraft = Pick<Bookmark, 'start_ns' | 'dur_ns' | 'note'> & {
  readonly id?: string;
};

export class Bookmarks {
  /** By time. */
  readonly all = signal<readonly Bookmark[]>([]);
  readonly draft = signal<BookmarkDraft | undefined>(undefined);
  private flight: AbortController | undefined;
  private readonly stop: () => void;

  constructor(
    private readonly trace: string,
    private readonly onChange: () => void,
  ) {
    // the server tells of every change of the trace, also of what others marked
    const told = computed(() => traceById(trace));
    this.stop = effect(() => {
      void told.value;
      void this.load();
    });
  }

  close(): void {
    this.stop();
    this.flight?.abort();
  }

  /** Begin one of a time. */
  begin({t0, t1}: Span): void {
    const start_ns = Math.max(0, Math.floor(t0));
    this.draft.value = {start_ns, dur_ns: t1 > t0 ? Math.ceil(t1) - start_ns : 0, note: ''};
  }

  async save(draft: BookmarkDraft): Promise<void> {
    await saveBookmark(this.trace, draft);
    this.draft.value = undefined;
    await this.load();
  }

  async remove(id: string): Promise<void> {
    await deleteBookmark(this.trace, id);
    this.draft.value = undefined;
    await this.load();
  }

  private async load(): Promise<void> {
    this.flight?.abort();
    const flight = new AbortController();
    this.flight = flight;
    try {
      const all = await listBookmarks(this.trace, flight.signal);
      if (flight.signal.aborted) return;
      this.all.value = all;
      this.onChange();
    } catch {
      // Those that were known stay; the next change of the trace asks again.
    }
  }
}

/** The bookmark whose flag, or whose length, is at a time, or within reach of it. */
export function bookmarkAt(
  all: readonly Bookmark[],
  t: number,
  reach: number,
): Bookmark | undefined {
  const distance = ({start_ns: start, dur_ns: dur}: Bookmark): number =>
    t < start ? start - t : Math.max(0, t - start - dur);
  let best: Bookmark | undefined;
  for (const each of all) {
    if (distance(each) > reach) continue;
    // of several the one whose flag is nearer: a long one does not hide what lies in it
    if (!best || Math.abs(each.start_ns - t) < Math.abs(best.start_ns - t)) best = each;
  }
  return best;
}
