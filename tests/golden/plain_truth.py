"""What a Chrome trace of a GPU truly contains, worked out in the slowest and plainest way.

A second opinion for tests: shares nothing with the engine, not even an idea. Sets of time are
lists of [start, end) over all boundaries, every question is asked of every piece.
"""
import json
import re
from decimal import ROUND_HALF_EVEN, Decimal

DEVICE_CATEGORIES = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "memset",
                     "memset": "memset"}
GAP_NS = 10_000


def nanoseconds(us):
    return int((Decimal(us) * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))


def is_layout(name):
    lower = name.lower()
    if any(part in lower for part in ("nchwtonhwc", "nhwctonchw", "swapdimension")):
        return True
    head = re.split(r"[<(]", lower.replace("(anonymous namespace)", ""), maxsplit=1)[0]
    return "transpose" in head and not name.startswith("_Z")


def union(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(spans):
    return sum(end - start for start, end in union(spans))


def common(a, b):
    return [(max(s, t), min(e, f)) for s, e in union(a) for t, f in union(b) if max(s, t) < min(e, f)]


def partition(operations, first, last):
    """Every piece between two boundaries goes to the first of compute, comm, copy, memset in it."""
    order = ["compute", "exposed_comm", "exposed_copy", "exposed_memset", "idle"]
    total = dict.fromkeys(order, 0)
    edges = sorted({first, last} | {t for _, s, e in operations for t in (s, e)})
    for left, right in zip(edges, edges[1:]):
        running = {kind for kind, s, e in operations if s <= left and right <= e}
        total[next((kind for kind in order if kind in running), "idle")] += right - left
    return total


def gaps(operations):
    """Holes in which nothing runs; an operation of no length still ends one and starts the next."""
    found = []
    reach = None
    for start, end in sorted((s, e) for _, s, e in operations):
        if reach is not None and start > reach:
            found.append((reach, start - reach))
        reach = end if reach is None else max(reach, end)
    found = [gap for gap in found if gap[1] >= GAP_NS]
    longest = max(found, key=lambda gap: (gap[1], gap[0]), default=(0, 0))
    return {"count_10us": len(found), "total_10us_ns": sum(dur for _, dur in found), "longest_ns": longest[1],
            "longest_at_ns": longest[0] if found else None}


def part_of(name, kind):
    if kind == "kernel":
        return "exposed_comm" if name.lower().startswith("nccl") else "compute"
    return "exposed_" + kind


def read(text):
    """@return dict of what `lacuna analyze --json` says in the same words"""
    document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    timed = [e for e in events if e["ph"] != "M"]
    t0 = min((nanoseconds(e["ts"]) for e in timed), default=0)
    devices, kernels, steps, waits = {}, [], [], []
    for event in timed:
        if event["ph"] != "X":
            continue
        start = nanoseconds(event["ts"]) - t0
        end = start + nanoseconds(event.get("dur", 0))
        category = event["cat"].lower()
        kind = DEVICE_CATEGORIES.get(category)
        if kind:
            device = int(event.get("args", {}).get("device", event["pid"]))
            devices.setdefault(device, []).append((part_of(event["name"], kind), start, end))
            if kind == "kernel":
                kernels.append((event["name"], end - start))
        elif category in ("user_annotation", "operator") and event["name"].startswith("ProfilerStep#"):
            steps.append((start, end))
        elif category not in ("python_function", "gpu_user_annotation") and \
                event["name"].startswith("enumerate(DataLoader)"):
            waits.append((start, end))
    return {"event_count": len(events), "devices": {d: device_truth(ops) for d, ops in devices.items()},
            "kernels": kernel_truth(kernels), "layout": layout_truth(kernels), "step_count": len(steps),
            "dataloader": loader_truth(steps, waits, devices)}


def device_truth(operations):
    first = min(start for _, start, _ in operations)
    last = max(end for _, _, end in operations)
    busy = length([(s, e) for _, s, e in operations])
    computing = length([(s, e) for part, s, e in operations if part == "compute"])
    span = last - first
    return {"first_ns": first, "span_ns": span, "busy_ns": busy, "idle_ns": span - busy,
            "partition_ns": partition(operations, first, last), "gaps": gaps(operations),
            "not_computing_pct": None if span == 0 else 100 * (span - computing) / span}


def kernel_truth(kernels):
    by_name = {}
    for name, dur in kernels:
        count, total = by_name.get(name, (0, 0))
        by_name[name] = (count + 1, total + dur)
    top = sorted(by_name, key=lambda name: (-by_name[name][1], name.encode()))[:10]
    return {"count": len(kernels), "total_ns": sum(dur for _, dur in kernels) if kernels else None,
            "top": [{"name": name, "count": by_name[name][0], "total_ns": by_name[name][1]} for name in top]}


def layout_truth(kernels):
    durations = [dur for name, dur in kernels if is_layout(name)]
    return {"kernel_count": len(durations), "total_ns": sum(durations) if kernels else None}


def loader_truth(steps, waits, devices):
    if not waits:
        return {"wait_ns": None, "starved_ns": None}
    inside = common(waits, steps) if steps else union(waits)
    starved = None
    if len(devices) == 1:
        operations = next(iter(devices.values()))
        first, last = min(s for _, s, _ in operations), max(e for _, _, e in operations)
        busy = [(s, e) for _, s, e in operations]
        felt = common(inside, [(first, last)])
        starved = length(felt) - length(common(felt, busy))
    return {"wait_ns": length(inside), "starved_ns": starved}
