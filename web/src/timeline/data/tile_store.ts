// Tiles in memory: fetches what a view wants, drops what was used longest ago. No DOM; the network
// is a function, so tests run in node.

import {decodeTileBatch, TileFormatError, type Tile} from '../../render/tile_decode';
import {
  formatIndexSet,
  planRequests,
  planView,
  type TileRange,
  type TileRequest,
} from '../../render/tile_plan';
import type {TileSource} from '../../render/tile_walk';

/** Requests in progress at a time: browsers open six connections; one stays free. */
const IN_FLIGHT_MAX = 5;
/** What an empty or pending tile costs us in the maps, roughly. */
const ENTRY_BYTES = 96;
const RETRY_FIRST_MS = 1000;
const RETRY_MAX_MS = 30_000;

export type TileFetch = (
  request: TileRequest,
  tracks: string,
  signal: AbortSignal,
) => Promise<ArrayBuffer>;

/** A part of the trace that is on screen somewhere. */
export interface View {
  readonly t0: number;
  readonly t1: number;
  readonly nsPerPx: number;
  /** Tracks on screen. */
  readonly tracks: readonly number[];
  /** Screens to either side that are fetched ahead. */
  readonly margin: number;
}

interface Wanted {
  readonly seen: readonly TileRange[];
  readonly near: readonly TileRange[];
  readonly tracks: readonly number[];
}

export interface StoreFailure {
  readonly error: unknown;
  /** The reply was damaged: asking again by ourselves would not help. */
  readonly isCorrupt: boolean;
}

interface Entry {
  tile: Tile | null | undefined; // undefined: on its way
  usedAt: number;
}

interface Flight {
  readonly request: TileRequest;
  readonly trackSet: ReadonlySet<number>;
  readonly abort: AbortController;
}

export interface StoreOptions {
  readonly fetch: TileFetch;
  readonly durationNs: number;
  readonly levelMax: number;
  readonly budgetBytes: number;
  /** These came. */
  readonly onTiles?: (tiles: readonly Tile[]) => void;
  /** Something arrived, failed or started. */
  readonly onChange: () => void;
}

export class TileStore implements TileSource {
  private readonly tracks = new Map<number, Map<number, Entry>[]>();
  private readonly versions = new Map<number, number>();
  private readonly flights = new Set<Flight>();
  private queue: TileRequest[] = [];
  private wanted: readonly Wanted[] = [];
  private wantedKey = '';
  private clock = 0;
  private bytesUsed = 0;
  private retryMs = RETRY_FIRST_MS;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;
  failure: StoreFailure | undefined;
  /** Counted for the status line and the tests. */
  stats = {requests: 0, aborted: 0, evicted: 0, bytesReceived: 0};

  constructor(private readonly options: StoreOptions) {}

  get bytes(): number {
    return this.bytesUsed;
  }

  /** Requests in progress or waiting for their turn. */
  get pending(): number {
    return this.flights.size + this.queue.length;
  }

  get(track: number, level: number, index: number): Tile | null | undefined {
    const entry = this.tracks.get(track)?.[level]?.get(index);
    if (entry === undefined) return undefined;
    entry.usedAt = this.clock;
    return entry.tile;
  }

  version(track: number): number {
    return this.versions.get(track) ?? 0;
  }

  /** Say what is on screen: what is missing is fetched, what is no longer needed is aborted. */
  want(views: readonly View[]): void {
    this.clock++;
    const {durationNs, levelMax} = this.options;
    const wanted = views.map(view => {
      const plan = (margin: number): TileRange[] =>
        planView(view.t0, view.t1, view.nsPerPx, durationNs, levelMax, margin);
      return {seen: plan(0), near: plan(view.margin), tracks: view.tracks};
    });
    const key = JSON.stringify(wanted);
    if (key === this.wantedKey) return;
    this.wantedKey = key;
    this.wanted = wanted;
    for (const flight of this.flights) {
      if (!this.isWanted(flight)) flight.abort.abort();
    }
    if (this.failure !== undefined) return;
    this.plan();
    this.pump();
  }

  /** Try again after a failure. */
  retry(): void {
    clearTimeout(this.retryTimer);
    this.failure = undefined;
    this.wantedKey = '';
    this.plan();
    this.pump();
    this.options.onChange();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.retryTimer);
    for (const flight of this.flights) flight.abort.abort();
    this.queue = [];
  }

  // What is on screen first, coarse before fine; then what lies beside it. No pass asks again for
  // what one before it asks for.
  private plan(): void {
    const asked = new Set<string>();
    const missing = (track: number, level: number, tile: number): boolean =>
      this.tracks.get(track)?.[level]?.has(tile) !== true &&
      !asked.has(`${track}/${level}/${tile}`);
    const queue: TileRequest[] = [];
    const pass = (ranges: readonly TileRange[], tracks: readonly number[]): void => {
      const requests = planRequests(ranges, tracks, missing);
      for (const {tracks: own, level, first, last} of requests) {
        for (const track of own) {
          for (let tile = first; tile <= last; tile++) asked.add(`${track}/${level}/${tile}`);
        }
      }
      queue.push(...requests);
    };
    for (const {seen, tracks} of this.wanted) pass(seen, tracks);
    for (const {near, tracks} of this.wanted) pass(near, tracks);
    this.queue = together(queue);
  }

  private isWanted({request, trackSet}: Flight): boolean {
    return this.wanted.some(({near, tracks}) => {
      const range = near.find(r => r.level === request.level);
      const isNear = range && range.last >= request.first && range.first <= request.last;
      return isNear === true && tracks.some(track => trackSet.has(track));
    });
  }

  private pump(): void {
    while (this.flights.size < IN_FLIGHT_MAX && !this.isClosed && this.failure === undefined) {
      const request = this.queue.shift();
      if (request === undefined) return;
      void this.fly(request);
    }
  }

  private async fly(request: TileRequest): Promise<void> {
    const flight: Flight = {
      request,
      trackSet: new Set(request.tracks),
      abort: new AbortController(),
    };
    this.flights.add(flight);
    this.stats.requests++;
    this.mark(request, undefined);
    try {
      const text = formatIndexSet(request.tracks);
      const bytes = await this.options.fetch(request, text, flight.abort.signal);
      // An abort that comes while the body is decoded is too late to save anything: keep it.
      this.accept(flight, bytes);
      this.stats.bytesReceived += bytes.byteLength;
      this.retryMs = RETRY_FIRST_MS;
    } catch (error) {
      this.unmark(request);
      if (flight.abort.signal.aborted) {
        this.stats.aborted++;
        // The same tiles may have become wanted again meanwhile.
        this.wantedKey = '';
      } else if (this.failure === undefined) {
        // Requests in progress together fail together: that is one failure.
        this.fail(error);
      }
    } finally {
      this.flights.delete(flight);
    }
    if (this.isClosed) return;
    this.pump();
    this.options.onChange();
  }

  private fail(error: unknown): void {
    const isCorrupt = error instanceof TileFormatError;
    this.failure = {error, isCorrupt};
    this.queue = [];
    if (isCorrupt || this.isClosed) return;
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => this.retry(), this.retryMs);
    this.retryMs = Math.min(RETRY_MAX_MS, this.retryMs * 2);
  }

  private accept(flight: Flight, bytes: ArrayBuffer): void {
    const {request, trackSet} = flight;
    const batch = decodeTileBatch(bytes);
    if (batch.level !== request.level) {
      throw new TileFormatError(`level ${batch.level} instead of ${request.level}`, 6);
    }
    for (const tile of batch.tiles) {
      const inRange = tile.index >= request.first && tile.index <= request.last;
      if (!inRange || !trackSet.has(tile.track)) {
        throw new TileFormatError(
          `tile ${tile.index} of track ${tile.track} was not asked for`,
          16,
        );
      }
    }
    // The server leaves tiles without content out.
    this.mark(request, null);
    for (const tile of batch.tiles) this.put(tile.track, tile.level, tile.index, tile);
    for (const track of request.tracks) this.versions.set(track, this.version(track) + 1);
    this.evict();
    this.options.onTiles?.(batch.tiles);
  }

  private mark(request: TileRequest, value: null | undefined): void {
    for (const track of request.tracks) {
      for (let i = request.first; i <= request.last; i++) this.put(track, request.level, i, value);
    }
  }

  private unmark(request: TileRequest): void {
    for (const track of request.tracks) {
      const level = this.tracks.get(track)?.[request.level];
      for (let i = request.first; i <= request.last; i++) {
        if (level?.has(i) && level.get(i)?.tile === undefined) {
          level.delete(i);
          this.bytesUsed -= ENTRY_BYTES;
        }
      }
    }
  }

  private put(track: number, level: number, index: number, tile: Tile | null | undefined): void {
    let levels = this.tracks.get(track);
    if (levels === undefined) this.tracks.set(track, (levels = []));
    const map = (levels[level] ??= new Map<number, Entry>());
    const old = map.get(index);
    if (old) {
      this.bytesUsed += (tile?.bytes ?? 0) - (old.tile?.bytes ?? 0);
      old.tile = tile;
      old.usedAt = this.clock;
    } else {
      this.bytesUsed += ENTRY_BYTES + (tile?.bytes ?? 0);
      map.set(index, {tile, usedAt: this.clock});
    }
  }

  // Rare (the budget holds minutes of panning), so a full sort is cheap enough. Goes down to three
  // quarters, so that it does not run for every reply from then on.
  private evict(): void {
    if (this.bytesUsed <= this.options.budgetBytes) return;
    const all: {usedAt: number; map: Map<number, Entry>; index: number; bytes: number}[] = [];
    for (const levels of this.tracks.values()) {
      for (const map of levels) {
        if (map === undefined) continue; // a hole: no tile of that level was asked for yet
        for (const [index, {tile, usedAt}] of map) {
          if (tile === undefined || usedAt >= this.clock) continue;
          all.push({usedAt, map, index, bytes: ENTRY_BYTES + (tile?.bytes ?? 0)});
        }
      }
    }
    all.sort((a, b) => a.usedAt - b.usedAt);
    const target = this.options.budgetBytes * 0.75;
    for (const {map, index, bytes} of all) {
      if (this.bytesUsed <= target) break;
      map.delete(index);
      this.bytesUsed -= bytes;
      this.stats.evicted++;
    }
  }
}

/** What several views want of the same tiles is one request, in the place of the first. */
function together(requests: readonly TileRequest[]): TileRequest[] {
  const found = new Map<string, TileRequest>();
  for (const request of requests) {
    const key = `${request.level}/${request.first}-${request.last}`;
    const tracks = [...(found.get(key)?.tracks ?? []), ...request.tracks];
    found.set(key, {...request, tracks: tracks.sort((a, b) => a - b)});
  }
  return [...found.values()];
}
