"""The same kernels as another recorder: counts and times beside torch.profiler's."""
import collections
import gzip
import json
import os
import statistics

import spools

GOAL_PERCENT = 0.1
FIRST_STEP, LAST_STEP = 12, 32   # those that are counted


def ours(bench, steps):
    folder = os.path.join(bench.scratch, f"ours-{steps}")
    if bench.run(f"kernels ours {steps}", bench.recorded(folder, bench.train("--workers", "8", "--steps", str(steps)))) is None:
        return None
    recorded = spools.read(folder)
    bench.check(f"nothing was lost ({steps} steps)", sum(spool.dropped for spool in recorded) == 0, f"{len(recorded)} processes")
    return spools.kernel_totals(recorded)


def profiled_kernels(path):
    """{name: [ns, ...]} of a file that torch.profiler wrote."""
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        events = json.load(file)["traceEvents"]
    durations = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "kernel":
            durations[event["name"]].append(event["dur"] * 1e3)
    return durations


def theirs(bench):
    """{name: [count, ns]} of the steps that are counted."""
    path = os.path.join(bench.scratch, "theirs.json")
    if bench.run("kernels torch.profiler", bench.train("--workers", "8", "--steps", str(LAST_STEP), "--torch-profiler", path,
                                                       "--torch-profiler-steps", f"{FIRST_STEP}:{LAST_STEP}")) is None:
        return None
    return {name: [len(values), sum(values)] for name, values in profiled_kernels(path).items()}


def same_counts(bench):
    """A long and a short run of ours, subtracted, so that start-up does not count."""
    few, many, other = ours(bench, FIRST_STEP), ours(bench, LAST_STEP), theirs(bench)
    if not few or not many or not other:
        return bench.check("kernels as torch.profiler counts them", False, "one of the two saw no kernels: " + bench.last_words())
    mine = {name: [count - few.get(name, [0, 0])[0], ns - few.get(name, [0, 0])[1]] for name, (count, ns) in many.items()}
    steps = LAST_STEP - FIRST_STEP
    counts, times = ([sum(row[at] for row in kernels.values()) for kernels in (mine, other)] for at in (0, 1))
    differ = {name[:80]: [mine.get(name, [0])[0], other.get(name, [0])[0]] for name in {*mine, *other} if mine.get(name, [0])[0] != other.get(name, [0])[0]}
    bench.note("kernels_per_step", {"ours": counts[0] / steps, "torch.profiler": counts[1] / steps,
                                    "ours_ms": round(times[0] / steps / 1e6, 4), "torch.profiler_ms": round(times[1] / steps / 1e6, 4)})
    bench.note("kernels_that_differ", dict(list(differ.items())[:20]))
    bench.say(f"kernels of {steps} steps: {counts[0]} ours, {counts[1]} torch.profiler's; in other processes {times[0] / 1e6:.2f} and {times[1] / 1e6:.2f} ms")
    return bench.check(f"kernel count as torch.profiler's within {GOAL_PERCENT} %", abs(counts[0] / counts[1] - 1) * 100 <= GOAL_PERCENT,
                       f"{counts[0] / steps} and {counts[1] / steps} a step")


def trimmed_mean(values):
    ordered = sorted(values)
    cut = len(ordered) // 20
    return statistics.fmean(ordered[cut:len(ordered) - cut])


def same_times(bench):
    """One process, one GPU clock: our recorder gives way to torch.profiler for the steps in the middle and comes back."""
    folder, path = os.path.join(bench.scratch, "both"), os.path.join(bench.scratch, "both.json")
    command = bench.train("--workers", "8", "--steps", "90", "--torch-profiler", path, "--torch-profiler-steps", "30:60")
    if bench.run("both recorders", bench.recorded(folder, command)) is None or not os.path.exists(path):
        return bench.check("kernel times as torch.profiler's", False, bench.last_words())
    recorded = spools.read(folder)
    settings = {key: value for spool in recorded for key, value in spool.settings.items() if key.startswith("gpu_recording")}
    bench.note("beside_torch_profiler", settings)
    mine, other = collections.defaultdict(list), profiled_kernels(path)
    for spool in recorded:
        for kernel in spool.kernels:
            mine[kernel.name].append(kernel.end_ns - kernel.start_ns)
    common = [name for name in other if len(mine.get(name, ())) >= 20 and len(other[name]) >= 20]
    if not common:
        return bench.check("kernel times as torch.profiler's", False, f"{len(mine)} and {len(other)} kernels, none in both")
    shares = [sum(len(other[name]) * mean(values[name]) for name in common) for values in (mine, other) for mean in (trimmed_mean, statistics.fmean)]
    trimmed, plain = (abs(shares[at] / shares[at + 2] - 1) * 100 for at in (0, 1))
    covered = sum(sum(other[name]) for name in common) / sum(sum(values) for values in other.values()) * 100
    bench.note("kernel_time_difference_percent", {"trimmed": round(trimmed, 4), "plain": round(plain, 4), "of_their_time_percent": round(covered, 2)})
    bench.say(f"kernel time against torch.profiler's in the same process: {trimmed:.3f} % apart ({plain:.3f} % with outliers), over {covered:.1f} % of it")
    return bench.check(f"kernel time as torch.profiler's within {GOAL_PERCENT} %", trimmed <= GOAL_PERCENT, f"{trimmed:.3f} % over {covered:.1f} % of their kernel time")
