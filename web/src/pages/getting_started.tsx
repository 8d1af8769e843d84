// The first ten minutes: three ways in, each with what can be done today.
import type {JSX} from 'preact';
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

function Code({text}: {text: string}): JSX.Element {
  return (
    <div class="code">
      <pre>{text}</pre>
      <CopyButton text={text} label="Copy these lines" />
    </div>
  );
}

const LOOPBACK = /^(127\.|localhost$|\[::1\]$)/;

export function GettingStarted(): JSX.Element {
  const isLocal = LOOPBACK.test(new URL(BASE_URL).hostname);
  const upload = `curl -H @DIR/local.header \\
  --data-binary @trace.json.gz \\
  '${apiUrl('traces')}?name=trace'`;
  return (
    <div class="ways-in">
      <section class="way-in">
        <h2>I have a trace</h2>
        <p>
          Drop it anywhere on this page: a PyTorch profiler trace, a TensorFlow timeline, any other
          Chrome trace, or the <code>.sqlite</code> export of an Nsight Systems report; compressed
          or not (<code>.gz</code>, <code>.zst</code>), or a <code>.tar.gz</code> with one file per
          rank. The verdict opens once it is imported.
        </p>
        <UploadButton />
      </section>
      <section class="way-in">
        <h2>I have a job</h2>
        <p>
          Start it under <code>lacuna run -o FOLDER -- python train.py</code>, then{' '}
          <code>lacuna import FOLDER</code>. Or record ten steady steps with the PyTorch profiler,
          after a few of warm-up, and drop the file that it writes.
        </p>
        <Code text={RECORD} />
      </section>
      <section class="way-in">
        <h2>I’m on a cluster</h2>
        <p>
          Record one rank or all of them, with the rank in the file name.{' '}
          {isLocal
            ? 'This server listens on this machine only: copy the files here, then drop or upload them.'
            : 'Upload the files from any machine that reaches this server.'}{' '}
          <code>DIR</code> is the server’s data folder; its key is in <code>local.header</code>.
        </p>
        <Code text={upload} />
      </section>
    </div>
  );
}
