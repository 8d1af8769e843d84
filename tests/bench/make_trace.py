#!/usr/bin/env python3
"""Makes a big Kineto trace out of a small one: repeated, with shifted times, correlation ids and flow ids.

usage: make_trace.py OUT.json MEGABYTES [TRACE.json[.gz]]

Without TRACE (no ../shared here) the events of a training step are made up, in Kineto's form.
"""
import glob
import gzip
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from real_traces import real_traces  # noqa: E402

TRACES = real_traces()


def made_up_events():
    """Three steps of 400 operators, each with a call, a kernel and two flow ends."""
    events = [{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    correlation = 1
    for step in range(3):
        begin = 1_000_000 + step * 200_000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100, "ts": begin, "dur": 199_000,
                       "args": {"External id": correlation, "Ev Idx": correlation}})
        for i in range(400):
            at, correlation = begin + i * 480 + 100, correlation + 1
            name = ("convolution", "batch_norm", "relu_", "add_", "addmm", "copy_")[i % 6]
            events += [
                {"ph": "X", "cat": "cpu_op", "name": f"aten::{name}", "pid": 100, "tid": 100, "ts": at, "dur": 120,
                 "args": {"External id": correlation, "Record function id": 0, "Input Dims": [[64, 256, 56, 56], [64, 256, 1, 1], [], []],
                          "Input type": ["float", "float", "", ""], "Ev Idx": correlation}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": at + 40, "dur": 9,
                 "args": {"External id": correlation, "cbid": 211, "correlation": correlation}},
                {"ph": "s", "id": correlation, "pid": 100, "tid": 100, "ts": at + 40, "cat": "ac2g", "name": "ac2g"},
                {"ph": "X", "cat": "kernel", "name": f"void made_up::{name}_kernel<float, 4, 128>(int, float const*, float*, float const*, int, int)",
                 "pid": 0, "tid": 7, "ts": at + 90, "dur": 300 + i % 37,
                 "args": {"External id": correlation, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": correlation,
                          "registers per thread": 64, "shared memory": 0, "blocks per SM": 12.5, "warps per SM": 50, "grid": [1000, 1, 1],
                          "block": [128, 1, 1], "est. achieved occupancy %": 78}},
                {"ph": "f", "id": correlation, "pid": 0, "tid": 7, "ts": at + 90, "cat": "ac2g", "name": "ac2g", "bp": "e"},
            ]
    return events


def read_events(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        trace = json.load(file)
    return trace["traceEvents"], {key: value for key, value in trace.items() if key != "traceEvents"}


def pieces(event):
    """The event's text in pieces, between which shifted time and ids go: [(text, what, value), ...]."""
    marked = dict(event)
    marks = []

    def mark(holder, key, what):
        marks.append((what, holder[key]))
        holder[key] = f"@@{len(marks) - 1}@@"

    if "ts" in marked and marked.get("ph") != "M":
        mark(marked, "ts", "time")
    if marked.get("ph") in ("s", "t", "f"):
        mark(marked, "id", "id")
    if isinstance(marked.get("args"), dict):
        marked["args"] = dict(marked["args"])
        for key in ("correlation", "External id", "external id", "Ev Idx"):
            if isinstance(marked["args"].get(key), int):
                mark(marked["args"], key, "id")
    text = json.dumps(marked)
    out, at = [], 0
    for number, (what, value) in sorted(enumerate(marks), key=lambda item: text.index(f'"@@{item[0]}@@"')):
        place = text.index(f'"@@{number}@@"')
        out.append((text[at:place], what, value))
        at = place + len(f'"@@{number}@@"')
    return out, text[at:]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    path, size = sys.argv[1], int(sys.argv[2]) * 1_000_000
    source = sys.argv[3] if len(sys.argv) == 4 else None
    if source is None:
        found = glob.glob(os.path.join(TRACES, "kineto/resnet50_num_workers_4*.json.gz"))
        source = found[0] if found else None
    events, rest = read_events(source) if source else (made_up_events(), {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "made up"}]})
    templates = [pieces(event) for event in events]
    times = [event["ts"] for event in events if "ts" in event and event.get("ph") != "M"]
    span = max(times) - min(times) + 2_000_000
    ids = 1 + max((value for template, _ in templates for _, what, value in template if what == "id" and isinstance(value, int)), default=0)
    with open(path, "w") as file:
        file.write("{" + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in rest.items()) + '"traceEvents": [\n')
        repeat = 0
        while file.tell() < size:
            lines = []
            for (template, tail), event in zip(templates, events):
                if repeat > 0 and event.get("ph") == "M":
                    continue
                shift = {"time": round(repeat * span), "id": repeat * ids}
                lines.append("".join([text + (repr(value + shift[what]) if isinstance(value, (int, float)) else json.dumps(value))
                                      for text, what, value in template]) + tail)
            file.write(("" if repeat == 0 else ",\n") + ",\n".join(lines))
            repeat += 1
        file.write("\n]}\n")
    print(f"{path}: {os.path.getsize(path) / 1e6:.0f} MB, {repeat} times {len(events)} events of {os.path.basename(source) if source else 'a made-up trace'}")


if __name__ == "__main__":
    main()
