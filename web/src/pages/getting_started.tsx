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
          Drop it anywhere on this page: a trace of the PyTorch profiler, a TensorFlow timeline or
          any other Chrome trace, plain or packed (<code>.json</code>, <code>.gz</code>,{' '}
          <code>.zst</code>, a <code>.tar.gz</code> of ranks). Its verdict opens when it is read.
        </p>
        <UploadButton />
      </section>
      <section class="way-in">
        <h2>I have a job</h2>
        <p>
          Let the PyTorch profiler record ten steady steps, after a few of warm-up, and drop the
          file that it writes.
        </p>
        <Code text={RECORD} />
      </section>
      <section class="way-in">
        <h2>I’m on a cluster</h2>
        <p>
          Record the same way in one rank or in all of them, with the rank in the file’s name.{' '}
          {isLocal
            ? 'This server listens on this machine only: copy the files here, then drop them or send them.'
            : 'Send the files from any machine that reaches this server.'}{' '}
          <code>DIR</code> is the server’s data folder; its key is in <code>local.header</code>.
        </p>
        <Code text={upload} />
      </section>
    </div>
  );
}
