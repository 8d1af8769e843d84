// A batch on its way: made in a worker, pinned, taken by the training thread, used by a step.
// Pure: runs in node.

/** A range of the loader, as a search finds it. */
export interface BatchHit {
  readonly slice: number;
  readonly name: string;
  readonly start_ns: number;
  readonly dur_ns: number;
}

/** Stations in the order in which a batch passes them; parts of a fetch are none. */
const STATIONS = ['loader.fetch', 'loader.pin', 'loader.wait'] as const;

const isStation = (name: string): boolean => (STATIONS as readonly string[]).includes(name);

function nearest(hits: readonly BatchHit[], t: number): BatchHit | undefined {
  return [...hits].sort((a, b) => Math.abs(a.start_ns - t) - Math.abs(b.start_ns - t))[0];
}

/**
 * The station after the one that is selected, of those that were recorded; after the last comes
 * the first again. Numbers of batches begin again each epoch: of several the nearest in time.
 */
export function nextStation(
  hits: readonly BatchHit[],
  name: string,
  startNs: number,
): BatchHit | undefined {
  const at = (STATIONS as readonly string[]).indexOf(name);
  for (let i = 1; i <= STATIONS.length; i++) {
    const station = STATIONS[(at + i + STATIONS.length) % STATIONS.length];
    const found = nearest(
      hits.filter(hit => hit.name === station && hit.name !== name),
      startNs,
    );
    if (found) return found;
  }
  return undefined;
}

/** The same station of a neighboring batch, nearest in time. */
export function sameStation(
  hits: readonly BatchHit[],
  name: string,
  startNs: number,
): BatchHit | undefined {
  const station = isStation(name) ? name : 'loader.fetch';
  return nearest(
    hits.filter(hit => hit.name === station),
    startNs,
  );
}
