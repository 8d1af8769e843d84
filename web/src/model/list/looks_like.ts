// What a file that could not be read looks like, by its name, and what to do about it. Pure.

export interface Likeness {
  /** "a report of Nsight Systems" */
  readonly what: string;
  /** One sentence. */
  readonly advice: string;
  readonly command: string | undefined;
}

const quoted = (name: string): string =>
  /^[\w.+-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;

interface Kind {
  readonly names: RegExp;
  readonly what: string;
  readonly advice: string;
  readonly command?: (name: string) => string;
}

const KINDS: readonly Kind[] = [
  {
    names: /\.nsys-rep$|\.qdrep$/i,
    what: 'a report of Nsight Systems',
    advice: 'Export it to SQLite with Nsight Systems, then add the .sqlite file.',
    command: name => `nsys export --type=sqlite ${name}`,
  },
  {
    names: /\.ncu-rep$/i,
    what: 'a report of Nsight Compute',
    advice:
      'It holds counters of single kernels and no timeline. Record the job, too: its timeline shows which kernels matter.',
    command: () => 'lacuna run -- python train.py',
  },
  {
    names: /\.xplane\.pb$/i,
    what: 'an XPlane of TensorFlow or JAX',
    advice:
      'In JAX pass create_perfetto_trace=True to jax.profiler.start_trace and add perfetto_trace.json.gz; of TensorFlow add the trace.json.gz beside this file.',
  },
  {
    names: /\.(pt|pth|ckpt|safetensors)$/i,
    what: 'a checkpoint of a model',
    advice: 'The profiler writes its trace to another file, *.pt.trace.json.',
  },
  {
    names: /\.(html?|md|txt|log|py|ya?ml|toml)$/i,
    what: 'a text',
    advice: 'A trace is the file that a profiler wrote: JSON, or the SQLite export of a report.',
  },
  {
    names: /\.(zip|7z|rar)$/i,
    what: 'an archive',
    advice: 'Add the files in it, or pack them with tar.',
    command: () => 'tar czf ranks.tar.gz *.json',
  },
];

/** By the name, and by what the program said of it. Undefined: like nothing known. */
export function likenessOf(name: string, code: string): Likeness | undefined {
  const kind = KINDS.find(each => each.names.test(name));
  if (kind) return {what: kind.what, advice: kind.advice, command: kind.command?.(quoted(name))};
  if (/\.json(\.gz|\.zst)?$/i.test(name))
    return {
      what: 'JSON, by its name',
      advice:
        code === 'limit'
          ? 'It is larger, or deeper, than the limits of this server.'
          : 'A trace in JSON has a list of events named traceEvents. If the job was killed while it wrote the file, record it again; a file that ends early is read up to there.',
      command: undefined,
    };
  return undefined;
}
