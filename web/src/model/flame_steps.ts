// Which steps a flame graph counts when nobody chose any.

/** In the address: all of the trace, or only the steps that the verdict measures. */
export const ALL_TIME = 'all';
export const MEASURED = 'measured';

/** Of more slices the graph of all time is ready since the import, that of a part takes seconds, and
 *  the few steps that the verdict leaves out weigh little. */
const SLICES_MAX = 2_000_000;

/** Those that the verdict measures, so that a step takes in the graph what the verdict says of it. */
export function usualSteps(trace: {readonly slice_count: number}): string {
  return trace.slice_count > SLICES_MAX ? ALL_TIME : MEASURED;
}
