// Which traces the list shows. Pure.
import type {TraceInfo, TraceSummary} from '../api/types';

export interface ListFilter {
  readonly text: string;
  readonly hideSimulated: boolean;
}

/** Every word of the filter must be in what people call it, the host, a GPU or the verdict. */
export function matches(trace: TraceInfo, filter: ListFilter): boolean {
  if (filter.hideSimulated && trace.simulated) return false;
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = [
    trace.name,
    trace.project,
    trace.file_name ?? '',
    trace.notes,
    ...trace.tags,
    trace.host ?? '',
    trace.format,
    ...trace.device_names,
    trace.summary?.text ?? '',
    trace.summary?.next_change ?? '',
  ]
    .join('\n')
    .toLowerCase();
  return words.every(word => text.includes(word));
}

/** Whether a GPU did anything in the trace: one that is only named in it did not. */
export function hasGpuWork(trace: TraceInfo): boolean {
  return trace.summary?.not_computing_pct !== undefined;
}

/**
 * What the mean step of the trace is one of: a step of training, a batch or an iteration of a loop
 * that does not train (i). Undefined where nothing is known to repeat, or too little was recorded
 * (~): then neither its time nor a throughput is shown.
 */
export function loopUnit(summary: TraceSummary | undefined): string | undefined {
  if (summary === undefined || summary.letter === '~') return undefined;
  if (summary.letter !== 'i') return 'step';
  switch (summary.throughput_unit) {
    case 'steps':
      return undefined;
    case 'iterations':
      return 'iteration';
    default:
      return 'batch';
  }
}

/** Traces that are not yet one of our own uploads, which have a row of their own meanwhile. */
export function withoutOwnUploads(
  traces: readonly TraceInfo[],
  sending: ReadonlySet<string>,
): readonly TraceInfo[] {
  return traces.filter(trace => trace.state !== 'receiving' || !sending.has(trace.name));
}

/** "8 × A100-SXM4-80GB": equal devices together, in the order of the first of each. */
export function describeDevices(names: readonly string[], count: number): string {
  if (count === 0) return 'no GPU';
  const counts = new Map<string, number>();
  for (const name of names) {
    const short = shortDeviceName(name);
    if (short !== '') counts.set(short, (counts.get(short) ?? 0) + 1);
  }
  if (counts.size === 0) return count === 1 ? /* text */ '1 GPU' : `${count} GPUs`;
  return [...counts].map(([name, n]) => `${n} × ${name}`).join(', ');
}

/** Without the vendor: people say "V100"; the full name is shown on hover. */
export function shortDeviceName(name: string): string {
  return name
    .replace(/^(NVIDIA|AMD|Tesla|Quadro|GeForce|Instinct|Graphics Device)\s+/i, '')
    .replace(/^(Tesla|Quadro|GeForce|Instinct)\s+/i, '')
    .replace(/-(SXM|OAM|PCIE|NVL|DGXS)\d*\b/gi, '')
    .trim()
    .replace(/^(.{39}).{2,}$/u, '$1\u2026');
}
