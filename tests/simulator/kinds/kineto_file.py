"""Rows of a Machine as the JSON that PyTorch's profiler writes."""
import gzip
import json

DEVICES = {
    "A100": {"name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_899_345_920, "computeMajor": 8, "computeMinor": 0, "numSms": 108},
    "H100": {"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_899_345_920, "computeMajor": 9, "computeMinor": 0, "numSms": 132},
}
COMMON = {"maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536,
          "warpSize": 32, "sharedMemPerBlock": 49152, "sharedMemPerMultiprocessor": 167936, "sharedMemPerBlockOptin": 166912}
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


def recorded(machine):
    """The rows a profiler keeps: what began on the host inside its window, and of the device what ran then, launched before or not."""
    first, last = machine.window
    return [row for row in machine.rows if row.start >= first and (last is None or (row.launched if row.cat in ON_DEVICE else row.start) < last)]


def _names(machine, rows):
    yield {"name": "process_name", "ph": "M", "ts": 0.0, "pid": 4242, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "process_labels", "ph": "M", "ts": 0.0, "pid": 4242, "tid": 0, "args": {"labels": "CPU"}}
    yield {"name": "process_name", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "process_labels", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": 0, "args": {"labels": f"GPU {machine.device}"}}
    for tid in sorted({row.tid for row in rows if row.cat not in ON_DEVICE}):
        yield {"name": "thread_name", "ph": "M", "ts": 0.0, "pid": 4242, "tid": tid, "args": {"name": f"thread {tid} (python3)"}}
    for stream in sorted({row.tid for row in rows if row.cat in ON_DEVICE}):
        yield {"name": "thread_name", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": stream, "args": {"name": f"stream {stream} "}}


def trace_of(name, machine, rows, device="A100", ranks=1):
    """The whole document, a dict. Times are from the start of the program, which all ranks share."""
    events = list(_names(machine, rows))
    for row in sorted(rows, key=lambda row: (row.start, -row.end)):
        events.append({"ph": "X", "cat": row.cat, "name": row.name, "pid": row.pid, "tid": row.tid, "ts": row.start / 1000,
                       "dur": (row.end - row.start) / 1000, "args": row.args})
        if row.cat in ("cuda_runtime", "cuda_driver") and "Launch" in row.name:
            events.append({"ph": "s", "id": row.args["correlation"], "pid": row.pid, "tid": row.tid, "ts": events[-1]["ts"], "cat": "ac2g",
                           "name": "ac2g"})
    document = {"schemaVersion": 1, "simulated": True, "deviceProperties": [{"id": machine.device, **DEVICES[device], **COMMON}],
                "displayTimeUnit": "ms", "traceName": f"{name} (simulated)",
                "baseTimeNanoseconds": 1_737_366_400_000_000_000, "traceEvents": events}
    if ranks > 1 or "comm" in machine.seen:
        document["distributedInfo"] = {"backend": "nccl", "rank": machine.rank, "world_size": ranks if ranks > 1 else 8}
    return document


def write(path, document):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
