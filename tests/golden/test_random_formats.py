#!/usr/bin/env python3
"""Random TensorFlow timelines and Nsight Systems exports (schemas from the oldest seen to the newest) against
plain_truth.py: devices, kernels, layout and copies equal, to the nanosecond.

LACUNA names the program (default build/lacuna), LACUNA_SEED the first seed (default 1).
"""
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

import plain_truth
from test_random_truth import KERNELS, LACUNA, known

FIRST_SEED = int(os.environ.get("LACUNA_SEED", "1"))
SEEDS = int(os.environ.get("LACUNA_SEEDS", "600" if os.environ.get("LACUNA_SOAK") == "1" else "25"))
OPERATION = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
DIRECTIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD"}
MEMORY = {0: "pageable", 1: "pinned", 2: "device"}
PROCESS = 0x1000000001000000 + 4242 * 0x1000000


def operations(draw, names):
    """(device, stream, kind, name, start, end), some of no length, some that overlap."""
    made = []
    for _ in range(draw.randrange(1, 120)):
        start = draw.randrange(5_000) * 1000 + draw.choice([0, draw.randrange(1000)])
        end = start + draw.choice([0, draw.randrange(1000), draw.randrange(100_000)])
        kind = draw.choice(["kernel"] * 5 + ["copy", "memset"])
        made.append((draw.choice([0, 0, 1, 7]), draw.choice([7, 13]), kind, draw.choice(names), start, end))
    return made


def truth(made, t0):
    devices, kernels = {}, []
    for device, _, kind, name, start, end in made:
        devices.setdefault(device, []).append((plain_truth.part_of(name, kind), start - t0, end - t0))
        if kind == "kernel":
            kernels.append((name, end - start))
    return {"devices": {d: plain_truth.device_truth(ops) for d, ops in devices.items()},
            "kernels": plain_truth.kernel_truth(kernels), "layout": plain_truth.layout_truth(kernels)}


def write_timeline(draw, path):
    """Each operation stands on its stream's row, on that of all streams and on the device's; it counts once."""
    form = draw.choice(["/job:localhost/replica:0/task:0/gpu:%d/stream:%s Compute", "/gpu:%d/stream:%s Compute",
                        "/job:localhost/replica:0/task:0/device:GPU:%d/stream:%s Compute"])
    prefixes = {"kernel": "", "copy": "MEMCPYHtoD", "memset": "MEMSET"}
    made = [(device, stream, kind, prefixes[kind] or name, start // 1000 * 1000, end // 1000 * 1000)
            for device, stream, kind, name, start, end in operations(draw, ["Conv2D", "Transpose", "MatMul", "unknown"])]
    rows = {}
    events = []
    for device in sorted({made_on[0] for made_on in made}):
        for stream in ("7", "13", "all", None):
            rows[device, stream] = len(rows)
            name = form % (device, stream) if stream else form.split("/stream")[0] % device + " Compute"
            events.append({"ph": "M", "name": "process_name", "pid": rows[device, stream], "args": {"name": name}})
    for device, stream, _, name, start, end in made:
        for row in (str(stream), "all", None):
            events.append({"ph": "X", "cat": "Op", "name": name, "pid": rows[device, row], "tid": 0, "ts": start // 1000,
                           "dur": (end - start) // 1000, "args": {"name": "op", "op": name}})
    if draw.random() < 0.5:
        draw.shuffle(events)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"traceEvents": events}, stream)
    return made, min(start for *_, start, _ in made), None


def write_export(draw, path):
    schema = draw.randrange(4)
    database = sqlite3.connect(path)
    names = {}

    def text(value):
        if value not in names:
            names[value] = len(names) + 1
            database.execute("INSERT INTO StringIds VALUES (?, ?)", (names[value], value))
        return names[value]

    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    if schema != 1:
        database.execute(f"CREATE TABLE {'META_DATA_EXPORT' if schema else 'EXPORT_META_DATA'} (name TEXT, value TEXT)")
    newest = ", mangledName INTEGER, greenContextId INTEGER, graphNodeId INTEGER" if schema == 3 else ""
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({OPERATION}, demangledName INTEGER, shortName INTEGER, "
                     f"gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER{newest})")
    has_copies, has_memsets, has_calls = (draw.random() < 0.8 for _ in range(3))
    if has_copies:
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({OPERATION}, bytes INTEGER, copyKind INTEGER, "
                         "srcKind INTEGER, dstKind INTEGER)")
    if has_memsets:
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET ({OPERATION}, value INTEGER, bytes INTEGER)")
    if has_calls:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, "
                         "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER)")
    base = draw.choice([10**6, 5 * 10**9])
    recorded = {"kernel": True, "copy": has_copies, "memset": has_memsets}
    made = [(d, s, k, n, base + a, base + b) for d, s, k, n, a, b in operations(draw, KERNELS) if recorded[k]]
    copies = {}
    for number, (device, stream, kind, name, start, end) in enumerate(made):
        row = (start, end, device, 1, stream, number, PROCESS)
        if kind == "kernel":
            row += (text(name), text(name.split("<")[0]), 1, 1, 1, 32, 1, 1) + ((None,) * 3 if newest else ())
        elif kind == "copy":
            copied = draw.choice([(1, 0, 2), (1, 1, 2), (2, 2, 0), (8, 2, 2)])
            size = draw.choice([4, 10**7])
            row += (size,) + copied
            key = (DIRECTIONS[copied[0]], MEMORY[copied[1]], MEMORY[copied[2]])
            count, total, took = copies.get(key, (0, 0, 0))
            copies[key] = (count + 1, total + size, took + end - start)
        else:
            row += (0, 4)
        table = {"kernel": "KERNEL", "copy": "MEMCPY", "memset": "MEMSET"}[kind]
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({','.join('?' * len(row))})", row)
        if has_calls:
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0)",
                             (start - 5000, start - 1000, PROCESS + 4242, number, text("cudaLaunchKernel_v7000")))
    database.commit()
    database.close()
    starts = [start - (5000 if has_calls else 0) for *_, start, _ in made]
    return made, min(starts, default=0), copies


def differences(have, want, copies):
    devices = {device["id"]: device for device in have["devices"]}
    yield "devices", sorted(devices), sorted(want["devices"])
    for number, plain in want["devices"].items():
        device = devices.get(number, {"gaps": {}})
        for key in ("first_ns", "span_ns", "busy_ns", "idle_ns", "partition_ns"):
            yield f"device {number} {key}", device.get(key), plain[key]
        for key, value in plain["gaps"].items():
            if value is not None:
                yield f"device {number} gaps.{key}", device["gaps"].get(key), value
    for part in ("kernels", "layout"):
        for key, value in want[part].items():
            yield f"{part}.{key}", known(have[part][key]), value
    if copies is not None:
        yield "copies", {(row["kind"], row["src"], row["dst"]): (row["count"], row["bytes"], row["total_ns"])
                         for row in have["copies"]}, copies


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            for write, ending in ((write_timeline, "json"), (write_export, "sqlite")):
                path = os.path.join(folder, f"{seed}.{ending}")
                made, t0, copies = write(random.Random(seed), path)
                if not made:
                    continue
                done = subprocess.run([LACUNA, "analyze", "--json", path], capture_output=True, text=True, timeout=60)
                os.remove(path)
                if done.returncode != 0:
                    wrong = [("exit status", done.stderr.strip(), "")]
                else:
                    said = differences(json.loads(done.stdout), truth(made, t0), copies)
                    wrong = [d for d in said if d[1] != d[2]]
                passed, failed = (passed, failed + 1) if wrong else (passed + 1, failed)
                for what, have, want in wrong[:4]:
                    print(f"FAIL {write.__name__} seed {seed} {what}: have {have!r:.300}, want {want!r:.300}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
