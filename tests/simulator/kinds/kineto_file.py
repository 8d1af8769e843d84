"""Rows of a Machine as the JSON that PyTorch's profiler writes."""
import json

DEVICES = {
    "A100": {"name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_899_345_920, "computeMajor": 8, "computeMinor": 0, "numSms": 108},
    "H100": {"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_899_345_920, "computeMajor": 9, "computeMinor": 0, "numSms": 132},
}
COMMON = {"maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536,
          "warpSize": 32, "sharedMemPerBlock": 49152, "sharedMemPerMultiprocessor": 167936, "sharedMemPerBlockOptin": 166912}
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch")
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


def recorded(machine):
    """The rows a profiler keeps: what began on the host inside its window, of the device what ran then, launched before or not, and
    Python functions that were open when it began, from then on."""
    first, last = machine.window
    kept = []
    for row in machine.rows:
        if row.cat == "python_function" and row.start < first < row.end:
            row = row._replace(start=first)
        if row.cat == "python_function" and row.start < last < row.end:
            row = row._replace(end=last)
        if row.start >= first and (row.launched if row.cat in ON_DEVICE else row.start) < last:
            kept.append(row)
    return kept


def _names(machine, rows):
    yield {"name": "process_name", "ph": "M", "ts": 0.0, "pid": 4242, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "process_labels", "ph": "M", "ts": 0.0, "pid": 4242, "tid": 0, "args": {"labels": "CPU"}}
    yield {"name": "process_name", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": 0, "args": {"name": "python3"}}
    yield {"name": "process_labels", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": 0, "args": {"labels": f"GPU {machine.device}"}}
    for pid, tid in sorted({(row.pid, row.tid) for row in rows if row.cat not in ON_DEVICE}):
        yield {"name": "thread_name", "ph": "M", "ts": 0.0, "pid": pid, "tid": tid, "args": {"name": f"thread {tid} (python3)"}}
    for stream in sorted({row.tid for row in rows if row.cat in ON_DEVICE}):
        yield {"name": "thread_name", "ph": "M", "ts": 0.0, "pid": machine.device, "tid": stream, "args": {"name": f"stream {stream} "}}


def trace_of(name, machine, rows, device="A100", ranks=1):
    """The whole document, a dict. Times are from the start of the program, which all ranks share."""
    events = list(_names(machine, rows))
    # of rows that begin and end together the outer one was closed last, and is written first
    for _, row in sorted(enumerate(rows), key=lambda item: (item[1].start, -item[1].end, -item[0])):
        events.append({"ph": "X", "cat": row.cat, "name": row.name, "pid": row.pid, "tid": row.tid, "ts": row.start / 1000,
                       "dur": (row.end - row.start) / 1000, "args": row.args})
        flow = "f" if row.cat in ("kernel", "gpu_memcpy", "gpu_memset") else "s" if row.name in LAUNCHES else None
        if flow:
            events.append({"ph": flow, "id": row.args["correlation"], "pid": row.pid, "tid": row.tid, "ts": row.start / 1000, "cat": "ac2g",
                           "name": "ac2g", **({"bp": "e"} if flow == "f" else {})})
    first, last = (ns / 1000 for ns in machine.window)
    events += [{"ph": "X", "cat": "Trace", "ts": first, "dur": round(last - first, 3), "pid": "Spans", "tid": "PyTorch Profiler",
                "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
               {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": first},
               {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": last}]
    document = {"schemaVersion": 1, "simulated": True, "deviceProperties": [{"id": machine.device, **DEVICES[device], **COMMON}],
                "displayTimeUnit": "ms", "traceName": f"{name} (simulated)",
                "baseTimeNanoseconds": 1_737_366_400_000_000_000, "traceEvents": events}
    if ranks > 1 or "comm" in machine.seen:
        document["distributedInfo"] = {"backend": "nccl", "rank": machine.rank, "world_size": ranks if ranks > 1 else 8}
    return document


def text_of(document):
    return json.dumps(document, separators=(",", ":"))  # json.dump() would encode in Python, not in C


def write(path, document):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text_of(document))
