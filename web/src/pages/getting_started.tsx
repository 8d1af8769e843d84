// Three ways in: record a job, take what PyTorch's profiler wrote, take what another tool exports.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {BASE_URL, apiUrl} from '../api/client';
import {CopyButton} from '../ui/copy_button';
import {UploadButton} from './drop_zone';

const RECORD = `from torch.profiler import (
    profile, schedule, ProfilerActivity)

with profile(
    activities=[ProfilerActivity.CPU,
                ProfilerActivity.CUDA],
    schedule=schedule(wait=10, warmup=5,
                      active=10, repeat=1),
    on_trace_ready=lambda p:
        p.export_chrome_trace("trace.json.gz"),
) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()`;

export function Code({text}: {text: string}): JSX.Element {
  return (
    <div class="code">
      <pre>{text}</pre>
      <CopyButton text={text} label="Copy these lines" />
    </div>
  );
}

const LOOPBACK = /^(127\.|localhost$|\[::1\]$)/;

interface Place {
  readonly label: string;
  readonly text: string;
  readonly code: string;
}

/** How a job is started differs by where it runs; what records it does not. */
function places(server: string, isLocal: boolean): readonly Place[] {
  const remote = `--server ${server} --token-file local.token`;
  return [
    {
      label: 'This machine',
      text: 'The script stays as it is. The verdict is printed while the job runs.',
      code: `lacuna doctor
lacuna run -o run1 -- python train.py
lacuna import run1`,
    },
    {
      label: 'Another machine',
      text: isLocal
        ? 'Forward this server’s port with ssh, and copy local.token out of its data folder.'
        : 'Copy local.token out of the server’s data folder.',
      code: `lacuna run ${remote} \\
  -- python train.py`,
    },
    {
      label: 'torchrun, Slurm',
      text: 'All ranks become one run. Each task gets a folder inside.',
      code: `lacuna run -o run1 -- torchrun --nproc-per-node 8 train.py
srun lacuna run -o run-%j -- python train.py
lacuna push run-* ${remote}`,
    },
  ];
}

function RecordDoor(): JSX.Element {
  const [chosen, setChosen] = useState(0);
  const all = places(BASE_URL.replace(/\/$/, ''), LOOPBACK.test(new URL(BASE_URL).hostname));
  const place = all[chosen];
  return (
    <section class="way-in">
      <h2>
        Record a job with <code>lacuna run</code>
      </h2>
      <div class="segmented" role="group" aria-label="Where the job runs">
        {all.map((each, index) => (
          <button
            key={each.label}
            type="button"
            aria-pressed={index === chosen}
            onClick={() => setChosen(index)}
          >
            {each.label}
          </button>
        ))}
      </div>
      {place && (
        <>
          <p>{place.text}</p>
          <Code text={place.code} />
        </>
      )}
    </section>
  );
}

/** Of each tool the command whose output can be read here. */
const TOOLS: readonly {readonly name: string; readonly command: string}[] = [
  {name: 'Nsight Systems', command: 'nsys export --type=sqlite report.nsys-rep'},
  {name: 'nvprof', command: 'nvprof --print-gpu-trace --csv --log-file trace.csv python train.py'},
  {name: 'Nsight Compute', command: 'ncu --csv --page raw --log-file kernels.csv python train.py'},
  {
    name: 'nvidia-smi',
    command:
      'nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv -l 1 -f log.csv',
  },
  {name: 'JAX', command: 'jax.profiler.start_trace("out", create_perfetto_trace=True)'},
  {name: 'rocprofv3', command: 'rocprofv3 --sys-trace --output-format rocpd -- python train.py'},
  {name: 'perf', command: 'perf script > out.txt'},
  {name: 'FlameGraph', command: 'stackcollapse-perf.pl out.txt > out.folded'},
  {name: 'py-spy', command: 'py-spy record -f raw -o out.folded --pid PID'},
  {name: 'cProfile', command: 'python3 -m cProfile -o out.prof train.py'},
  {
    name: 'callgrind',
    command: 'valgrind --tool=callgrind --callgrind-out-file=out.callgrind ./program',
  },
  {name: 'line_profiler', command: 'kernprof -l train.py'},
  {
    name: 'PyTorch memory',
    command: 'torch.cuda.memory._dump_snapshot("memory.pickle")',
  },
  {
    name: 'CUDA graphs, annotated',
    command: 'torch.cuda.graph_annotations.save_kernel_annotations("annotations.pkl")',
  },
  {name: 'scalene', command: 'scalene --json --outfile out.json train.py'},
  {name: 'Firefox Profiler', command: 'samply record --save-only -o profile.json.gz ./program'},
  {name: 'perf stat', command: 'perf stat -I 100 -j -o counts.json python train.py'},
  {name: 'TensorBoard', command: 'SummaryWriter("runs").add_scalar("loss", loss, step)'},
  {name: 'VizTracer', command: 'viztracer -o result.json train.py'},
  {name: 'Perfetto', command: 'perfetto -c config.pbtx --txt -o trace.pftrace'},
];

export function GettingStarted(): JSX.Element {
  const upload = `curl -H @DIR/local.header --data-binary @trace.json.gz \\
  '${apiUrl('traces')}?name=trace'`;
  return (
    <div class="ways-in">
      <RecordDoor />
      <section class="way-in">
        <h2>I have a trace of PyTorch’s profiler</h2>
        <p>
          Drop it anywhere on this page, compressed or not; of several ranks all files, or a{' '}
          <code>.tar.gz</code> of them. To record one: ten steady steps after a few of warm-up.
        </p>
        <Code text={RECORD} />
        <UploadButton />
      </section>
      <section class="way-in">
        <h2>I have another tool’s file</h2>
        <p>
          Any Chrome trace (<code>.json</code>, <code>.gz</code>, <code>.zst</code>) and
          TensorFlow’s timelines are read as they are. Of other tools, drop what this writes:
        </p>
        <dl class="tools-list">
          {TOOLS.map(tool => (
            <div key={tool.name}>
              <dt>{tool.name}</dt>
              <dd>
                <code>{tool.command}</code>
                <CopyButton text={tool.command} label={`Copy the command of ${tool.name}`} />
              </dd>
            </div>
          ))}
        </dl>
        <p class="muted">
          From a script (<code>DIR</code> is the server’s data folder):
        </p>
        <Code text={upload} />
      </section>
    </div>
  );
}
