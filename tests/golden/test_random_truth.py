#!/usr/bin/env python3
"""Random traces of every Kineto dialect against plain_truth.py: every number equal, to the nanosecond.

LACUNA names the program (default build/lacuna), LACUNA_SEED the first seed (default 1).
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import plain_truth

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
FIRST_SEED = int(os.environ.get("LACUNA_SEED", "1"))
SEEDS = int(os.environ.get("LACUNA_SEEDS", "2000" if os.environ.get("LACUNA_SOAK") == "1" else "60"))

KERNELS = ["void cudnn::ops::nchwToNhwcKernel<float>(int)", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_ffma",
           "ampere_sgemm_128x64_nn", "_Z9transposeKernelPf", "void transpose_x<int>(float)",
           "void at::native::(anonymous namespace)::transpose_foo<1>(x)", "cutlass::Kernel<NoPermute, transpose>",
           "ncclDevKernel_AllReduce_Sum_f32_RING", "SwapDimension1And2InTensor3UsingTiles<uint>",
           "void foo<Transpose>(int)", "noyau é", "", 'quote " and \\ backslash']
COPIES = ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)", "Memset (Device)"]
BASES = [0, 1623142623460016, 1365627862757.064, 3743411230047.4850]


class Writer:
    """Events as text, numbers spelled in every way that JSON allows."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.base = self.random.choice(BASES)
        self.decimals = self.random.choice([0, 1, 3, 4, 6])
        self.events = []

    def number(self, value):
        text = f"{value:.{self.decimals}f}"
        if value < 1e6 and self.random.random() < 0.05:
            return f"{value * 10:.{self.decimals}f}e-1"
        return text

    def when(self):
        x = self.random.uniform(0, 5000) if self.random.random() < 0.7 else self.random.randrange(0, 5000)
        return self.number(self.base + x)

    def span(self):
        return self.random.choice([0, 0.5, 1.25, 0.0005, self.random.uniform(0, 200), self.random.randrange(0, 60)])

    def put(self, dur=None, **members):
        parts = [f'"{key}":{json.dumps(value, ensure_ascii=self.random.random() < 0.5)}'
                 for key, value in members.items()]
        parts.append(f'"ts":{self.when()}')
        if dur is not None:
            parts.append(f'"dur":{self.number(dur)}')
        self.random.shuffle(parts)
        self.events.append("{" + ",".join(parts) + "}")

    def operation(self, correlation):
        r = self.random
        category = r.choice(["kernel", "Kernel", "kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"])
        members = {"ph": "X", "cat": category, "pid": r.choice([0, 1]), "tid": r.choice([7, 20, "stream 7"]),
                   "name": r.choice(KERNELS if category.lower() == "kernel" else COPIES)}
        if r.random() < 0.85:
            members["args"] = {"device": r.choice([0, 0, 0, 1]), "stream": r.choice([7, 20]), "correlation": correlation}
        self.put(dur=None if r.random() < 0.05 else self.span(), **members)

    def host(self, number):
        r = self.random
        kind = r.random()
        if kind < 0.2:
            self.put(ph="X", cat=r.choice(["user_annotation", "Operator", "gpu_user_annotation"]), pid=9, tid="9",
                     name=f"ProfilerStep#{r.randrange(5)}", dur=self.span() * 20)
        elif kind < 0.4:
            loader = r.choice(["SingleProcess", "MultiProcessing"])
            self.put(ph="X", cat=r.choice(["user_annotation", "cpu_op", "python_function", "gpu_user_annotation"]),
                     name=f"enumerate(DataLoader)#_{loader}DataLoaderIter.__next__", pid=9, tid=9, dur=self.span() * 3)
        elif kind < 0.8:
            self.put(ph="X", cat="cpu_op", name=r.choice(["aten::add", "aten::mm"]), pid=9, tid=9, dur=self.span(),
                     args={"External id": number, "Input Dims": [[1, 2], []]})
        else:
            self.put(ph=r.choice("isfCM"), name="x", pid=9, tid=9, id=number, s="t", args={"v": 1})

    def text(self):
        for i in range(self.random.randrange(5, 400)):
            if self.random.random() < 0.5:
                self.operation(i)
            else:
                self.host(i)
        events = "[" + ",".join(self.events) + "]"
        if self.random.random() < 0.2:
            return events
        base = ',"baseTimeNanoseconds":1767189312000000000' if self.random.random() < 0.3 else ""
        return f'{{"schemaVersion":1{base},"traceEvents":{events}}}'


def known(value):
    """A table's rows without the columns that the truth does not speak of."""
    if isinstance(value, list):
        return [{key: row[key] for key in ("name", "count", "total_ns")} for row in value]
    return value


def differences(have, want):
    """Pairs of what the program says and what is true, where they differ."""
    yield "event_count", have["trace"]["event_count"], want["event_count"]
    devices = {device["id"]: device for device in have["devices"]}
    yield "devices", sorted(devices), sorted(want["devices"])
    for number, truth in want["devices"].items():
        device = devices.get(number, {})
        for key in ("first_ns", "span_ns", "busy_ns", "idle_ns", "partition_ns"):
            yield f"device {number} {key}", device.get(key), truth[key]
        for key, value in truth["gaps"].items():
            if value is not None:
                yield f"device {number} gaps.{key}", device["gaps"][key], value
        if truth["not_computing_pct"] is not None:
            off = abs(device["not_computing_pct"] - truth["not_computing_pct"])
            yield f"device {number} not_computing_pct", off < 1e-3, True
        yield f"device {number} causes", sum(device["idle_by_cause_ns"].values()), truth["idle_ns"]
    for part in ("kernels", "layout"):
        for key, value in want[part].items():
            yield f"{part}.{key}", known(have[part][key]), value
    if want["step_count"] > 0:
        yield "steps", have["steps"]["count"], want["step_count"]
    for key, value in want["dataloader"].items():
        if value is not None or want["dataloader"]["wait_ns"] is None:
            yield f"dataloader.{key}", have["dataloader"][key], value


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            text = Writer(seed).text()
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            done = subprocess.run([LACUNA, "analyze", "--json", path], capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                wrong = [("exit status", done.stderr.strip(), "")]
            else:
                wrong = [d for d in differences(json.loads(done.stdout), plain_truth.read(text)) if d[1] != d[2]]
            passed, failed = (passed, failed + 1) if wrong else (passed + 1, failed)
            for what, have, want in wrong[:4]:
                print(f"FAIL seed {seed} {what}: have {have!r:.400}, want {want!r:.400}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
