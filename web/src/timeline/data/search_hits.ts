// Hits of the search field: counted by the server, loaded in pages, stepped through in order of
// time. No DOM.

import {signal} from '@preact/signals';
import {errorText, isAbort} from '../../api/client';
import type {SearchReply} from '../../api/types';

export type SearchHit = SearchReply['hits'][number];

export type SearchState =
  | {readonly kind: 'idle'}
  | {readonly kind: 'loading'}
  | {readonly kind: 'ready'; readonly total: number; readonly at: number}
  | {readonly kind: 'error'; readonly text: string};

/** Typing pauses this long before the server is asked. */
const QUIET_MS = 180;

/** Parts of the trace in which the server counts all hits: a minimap has no more pixels to tell. */
export const SEARCH_BINS = 1000;

export type SearchFetch = (
  q: string,
  after: string | undefined,
  signal: AbortSignal,
) => Promise<SearchReply>;

export class SearchHits {
  readonly state = signal<SearchState>({kind: 'idle'});
  private text = '';
  private next: string | undefined;
  private flight: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading: Promise<void> = Promise.resolve();
  hits: readonly SearchHit[] = [];
  /** All hits, loaded or not, by the part of the trace that they begin in. */
  bins: readonly number[] = [];

  constructor(
    private readonly fetch: SearchFetch,
    private readonly onChange: () => void,
  ) {}

  set(text: string): void {
    const trimmed = text.trim();
    if (trimmed === this.text) return;
    this.text = trimmed;
    this.hits = [];
    this.bins = [];
    this.next = undefined;
    this.flight?.abort();
    clearTimeout(this.timer);
    if (trimmed === '') {
      this.state.value = {kind: 'idle'};
      return;
    }
    this.state.value = {kind: 'loading'};
    this.loading = new Promise(resolve => {
      this.timer = setTimeout(() => void this.loadPage(undefined).then(resolve), QUIET_MS);
    });
  }

  close(): void {
    clearTimeout(this.timer);
    this.flight?.abort();
  }

  /** The hit after (or before) the current one; the first step goes to the first at or after t. */
  async step(direction: 1 | -1, t: number): Promise<SearchHit | undefined> {
    const text = this.text;
    await this.loading;
    const state = this.state.peek();
    if (state.kind !== 'ready' || this.hits.length === 0) return undefined;
    let at = state.at + direction;
    if (state.at < 0) {
      const from = this.hits.findIndex(hit => hit.start_ns >= t);
      at = direction > 0 ? Math.max(0, from) : (from < 0 ? this.hits.length : from) - 1;
    }
    while (at >= this.hits.length && this.next !== undefined) {
      const before = this.hits.length;
      await this.loadPage(this.next);
      if (this.text !== text) return undefined; // the search text has changed since
      if (this.hits.length === before) break;
    }
    const count = this.hits.length;
    at = ((at % count) + count) % count;
    this.state.value = {...state, at};
    return this.hits[at];
  }

  private async loadPage(after: string | undefined): Promise<void> {
    const flight = new AbortController();
    this.flight = flight;
    try {
      const reply = await this.fetch(this.text, after, flight.signal);
      if (flight.signal.aborted) return;
      this.hits = after === undefined ? reply.hits : [...this.hits, ...reply.hits];
      if (after === undefined) this.bins = reply.bins;
      this.next = reply.next;
      const state = this.state.peek();
      const at = state.kind === 'ready' && after !== undefined ? state.at : -1;
      this.state.value = {kind: 'ready', total: reply.total, at};
    } catch (error) {
      if (flight.signal.aborted || isAbort(error)) return;
      this.state.value = {kind: 'error', text: errorText(error)};
    }
    this.onChange();
  }
}
