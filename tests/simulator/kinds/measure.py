"""What is true of a run, measured on it in the plainest way."""
import statistics


def pace(machine, first, last):
    """Mean distance on the device between the k-th operation launched in one step and in the next, median over k; of the host where
    nothing is launched."""
    a, b = machine.device_starts[first], machine.device_starts[last]
    count = min(len(a), len(b))
    if count == 0:
        return (machine.host_starts[last] - machine.host_starts[first]) // (last - first)
    return int(statistics.median_low([(b[k] - a[k]) // (last - first) for k in range(count)]))


def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def minus(total, intervals):
    """What of sorted, disjoint `total` is not in `intervals`, alike."""
    rest, i = [], 0
    for start, end in total:
        while i < len(intervals) and intervals[i][1] <= start:
            i += 1
        k = i
        while k < len(intervals) and intervals[k][0] < end:
            if intervals[k][0] > start:
                rest.append([start, intervals[k][0]])
            start = max(start, intervals[k][1])
            k += 1
        if start < end:
            rest.append([start, end])
    return rest


def partition(machine, rows):
    """The device's span: computing, exposed communication, exposed copies, idle by what the host was in. Sums to the span."""
    device = [row for row in rows if row.cat in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not device:
        return None
    span = [[min(row.start for row in device), max(row.end for row in device)]]
    comm = union((row.start, row.end) for row in device if row.name.startswith("nccl"))
    compute = union((row.start, row.end) for row in device if row.cat == "kernel" and not row.name.startswith("nccl"))
    copies = union((row.start, row.end) for row in device if row.cat != "kernel")
    parts = {"span": length(span), "computing": length(compute)}
    rest = minus(span, compute)
    parts["exposed_comm"] = length(rest) - length(minus(rest, comm))
    rest = minus(rest, comm)
    parts["exposed_copy"] = length(rest) - length(minus(rest, copies))
    rest = minus(rest, copies)
    parts["idle"] = length(rest)
    causes = {}
    for cause in sorted({cause for _, _, cause in machine.line}):
        left = minus(rest, union((s, e) for s, e, c in machine.line if c == cause))
        causes[cause] = length(rest) - length(left)
        rest = left
    causes["dependency"] = length(rest)
    parts["idle_by_cause"] = causes
    return parts
