// Texts of name ids, fetched in batches when one is needed that is not here yet. No DOM.

import type {NameSource} from '../../render/palette';
import {elideMiddle} from './elide';
import {shortName} from './short_name';

/** Keeps the address below 2 KiB whatever the ids are. */
const IDS_PER_REQUEST = 180;
/** The same when they are asked for as ranges. */
const RANGES_PER_REQUEST = 90;
/** Names between two wanted ones that are fetched along rather than starting another range. */
const BRIDGE = 8;
const NAMES_PER_REQUEST = 4096;
/** Requests at a time: names of the coarse tiles must not hold up those of the fine ones. */
const IN_FLIGHT_MAX = 2;
/** No screen shows more; names may have 64 KiB. */
const LABEL_CHARS_MAX = 300;

export type NameFetch = (ids: readonly number[]) => Promise<readonly (readonly [number, string])[]>;

export class NameStore implements NameSource {
  private readonly texts = new Map<number, string>();
  private readonly labels = new Map<number, string>();
  private readonly wanted = new Set<number>();
  private readonly asked = new Set<number>();
  private inFlight = 0;
  /** Names below are on their way, whoever asks for them. */
  private firstEnd = 0;
  version = 0;

  constructor(
    private readonly fetch: NameFetch,
    private readonly onChange: () => void,
  ) {}

  /** The whole name; undefined until it is loaded, and then asked for. */
  text(id: number): string | undefined {
    const text = this.texts.get(id);
    if (text === undefined && id >= this.firstEnd && !this.asked.has(id)) this.wanted.add(id);
    return text;
  }

  /** What a person calls it. */
  label(id: number): string | undefined {
    const known = this.labels.get(id);
    if (known !== undefined) return known;
    const text = this.text(id);
    if (text === undefined) return undefined;
    const label = elideMiddle(shortName(text), LABEL_CHARS_MAX);
    this.labels.set(id, label);
    return label;
  }

  /** Names 0 to `end`, which were asked for before it was known what is on screen. */
  async takeFirst(end: number, names: ReturnType<NameFetch>): Promise<void> {
    this.firstEnd = end;
    this.inFlight++;
    try {
      this.putAll(await names);
    } catch {
      // asked for one by one, then
    }
    this.firstEnd = 0;
    this.inFlight--;
    this.onChange();
  }

  /** Names that came with something else. */
  putAll(names: Iterable<readonly [number, string]>): void {
    for (const [id, text] of names) this.texts.set(id, text);
    this.version++;
  }

  /** A short name that the server knows better than our rules. */
  putLabel(id: number, label: string): void {
    if (label !== '') this.labels.set(id, label);
  }

  /** Nothing is on its way and nothing waits to be asked for. */
  get isIdle(): boolean {
    return this.inFlight === 0 && this.wanted.size === 0;
  }

  /** Call once a frame, or when it is known what the next will need: fetches what was asked for since the
   *  last call. */
  flush(): void {
    while (this.inFlight < IN_FLIGHT_MAX && this.wanted.size > 0) {
      const ids = batch([...this.wanted].sort((a, b) => a - b));
      for (const id of ids) {
        this.wanted.delete(id);
        this.asked.add(id);
      }
      this.inFlight++;
      void this.load(ids);
    }
  }

  private async load(ids: readonly number[]): Promise<void> {
    try {
      this.putAll(await this.fetch(ids));
    } catch {
      // Tiles and names come from one server: the tile store shows that it is away, and names are
      // asked for again with the next picture that needs them.
      setTimeout(() => {
        for (const id of ids) this.asked.delete(id);
      }, 2000);
    } finally {
      this.inFlight--;
    }
    this.onChange();
  }
}

/** The ids of one request: the lowest of those wanted, and when there are many, the few between them too. */
function batch(wanted: readonly number[]): readonly number[] {
  if (wanted.length <= IDS_PER_REQUEST) return wanted;
  const ids: number[] = [];
  let ranges = 0;
  for (const id of wanted) {
    const last = ids.at(-1);
    const isNear = last !== undefined && id - last <= BRIDGE;
    if (ids.length + BRIDGE > NAMES_PER_REQUEST || (!isNear && ranges === RANGES_PER_REQUEST))
      break;
    if (!isNear) ranges++;
    for (let between = isNear ? last + 1 : id; between <= id; between++) ids.push(between);
  }
  return ids;
}
