"""A loop of a kind from a seed: its traces, and what is true of it by running it again without each of its causes."""
import random

import causes
import kineto_file
import measure
from fabric import run_ranks
from training import Runner, long_run

SCHEMA = "lacuna.simulated-kind/1"
WORTH_PCT, NOTHING_PCT, ALIKE_PCT, REWRITE_RATIO = 3.0, 1.0, 1.5, 1.5

# What must be in a loop for a finding about it. None: nothing that a simulated loop has, so that it is never true of one.
ABOUT = {
    "input-starvation": "loader", "worker-respawn": "anew", "workers-serialized": None, "worker-hand-over": None, "small-files": None,
    "storage-latency": None, "slow-samples": None, "cpu-throttled": None, "affinity": None, "cpu-oversubscription": None,
    "loader-from-waits": "loader", "layout-conversion": "layout", "pageable-copy": "pageable", "blocking-copy": "copy",
    "tensor-cores-unused": "float32", "sync-stall": "sync", "exposed-communication": "comm", "allocator-thrash": "allocator",
    "module-load": "module", "slow-optimizer": "single optimizer", "unfused-attention": None, "unfused-elementwise": None,
    "step-outliers": None, "drift": None, "small-grid": None, "tensor-cores-misaligned": None, "tensor-cores-older-kernels": None,
    "memory-headroom": None, "missing-no-grad": None, "recompute": None, "phase-overhead": "phases", "clocks-held-down": None,
    "energy": None, "gc-pauses": None, "padding-waste": None, "straggler-rank": "late rank", "numa-remote": None, "out-of-memory": None,
    "debug-switches": None, "dependency-stall": "streams", "profiler-overhead": "stacks", "host-slow": "slow host", "python-frame": "stacks",
    "compile-health": "compiled", "collective-efficiency": "comm", "sync-per-layer": "sync", "iteration-gap": "serving",
    "gather-exposed": "gather", "weights-over-pcie": "weights", "imbalance-and-bubble": "imbalance", "zero-grad-fills": "zeroed",
}


class Kind:
    """What a kind decides. `draw` gives a Loop; the rest has a default."""
    name = ""
    about = ""
    workload = "training"
    unit = "step"
    runner = Runner
    device = "A100"
    adds_launch = True  # whether fewer launches are a change of their own here
    format = "kineto"  # as which the diagnosis reads it
    long_steps = 16
    has_step = True
    step_is_optional = False  # nothing names it: to keep silent about it is right, too

    def draw(self, dice, seed):
        raise NotImplementedError

    def changes(self, loop, pace_ns):
        found = causes.changes(loop, pace_ns)
        if not self.adds_launch:
            found.pop("launch", None)
        return found

    def ranks(self, _loop):
        return 1

    def keep(self, rows, _loop, _dice):
        """Of what was recorded, what stands in the file."""
        return rows

    def document(self, name, _loop, machine, rows, ranks):
        """The file of a rank."""
        return kineto_file.trace_of(name, machine, rows, self.device, ranks)

    def simulate(self, loop):
        """A Machine a rank, as recorded."""
        return run_ranks(self.ranks(loop), lambda rank, fabric: self.runner(loop, rank=rank, fabric=fabric).run())

    def pace_ns(self, loop):
        """What a step takes in the long run: the slowest rank's, where they differ."""
        steps = self.long_steps
        if loop.workers and loop.fetch_ns:  # whole turns of the workers
            steps = (steps + loop.workers - 1) // loop.workers * loop.workers
        first = 4 + 2 * loop.workers if loop.fetch_ns else 4
        machines = run_ranks(self.ranks(loop), lambda rank, fabric: long_run(self.runner, loop,
                             first + steps - 3, rank=rank, fabric=fabric))
        return max(measure.pace(machine, first, first + steps) for machine in machines)

    def hides(self, _loop):
        """So much is not in the file that nobody can tell what the device did: the verdict may say so."""
        return False

    def more(self, _loop, _machines):
        """What else is true, for the truth file."""
        return {}


def _steps(kind, loop, machine):
    """Distances between the recorded steps on the device."""
    paced = [machine.device_starts[step] for step in range(loop.warm, loop.warm + loop.steps)]
    pairs = zip(paced, paced[1:])
    return [measure.statistics.median_low([q - p for p, q in zip(a, b)]) for a, b in pairs if a and b]


def draw(kind, seed):
    return kind.draw(random.Random(f"{kind.name}/{seed}"), seed)


def record(kind, seed):
    """(the loop, a Machine a rank, a trace document each)."""
    loop = draw(kind, seed)
    machines = kind.simulate(loop)
    kept = [kind.keep(kineto_file.recorded(machine), loop, random.Random(f"{kind.name}/{seed}/keep")) for machine in machines]
    return loop, machines, [kind.document(f"{kind.name} {seed}", loop, machine, rows, len(machines))
                            for machine, rows in zip(machines, kept)]


def build(kind, seed):
    """(one trace document a rank, truth)."""
    loop, machines, documents = record(kind, seed)
    seen = set().union(*(machine.seen for machine in machines))
    truth = {"schema": SCHEMA, "simulated": True, "kind": kind.name, "seed": seed, "format": kind.format, "ranks": len(machines), "workload": kind.workload,
             "device": measure.partition(machines[0], kineto_file.recorded(machines[0])), "in_loop": sorted(seen)}
    step_ns = kind.pace_ns(loop)
    truth["step"] = {"unit": kind.unit, "pace_ns": step_ns if kind.has_step else None, "is_optional": kind.step_is_optional, "count": loop.steps,
                     "recorded_ns": _steps(kind, loop, machines[0])}
    truth["changes"], gains = {}, {}
    for name, change in kind.changes(loop, kind.pace_ns).items():
        after_ns = kind.pace_ns(change.loop)
        gains[name] = 100.0 * (step_ns - after_ns) / step_ns
        truth["changes"][name] = {"findings": sorted(set(change.findings)), "causes": list(change.causes), "step_ns": after_ns,
                                  "gain_pct": round(gains[name], 2), "effort": change.effort}
    efforts = {name: change["effort"] for name, change in truth["changes"].items()}
    best, alike = _leading(gains, efforts)
    truth["first"] = {"change": best, "findings": sorted({f for name in alike for f in truth["changes"][name]["findings"]}),
                      "step_ns": truth["changes"][best]["step_ns"], "gain_pct": round(gains[best], 2)} if best else None
    truth["headline"] = sorted({c for name in alike for c in truth["changes"][name]["causes"]}) if best else ["gpu"]
    truth["headline"] += ["unknown"] if kind.hides(loop) else []
    truth["must_not_say"] = _must_not_say(seen, truth["changes"])
    truth.update(kind.more(loop, machines))
    return documents, truth


def _leading(gains, efforts):
    """The best change, and all that may as well be named first: those within ALIKE_PCT of a step of it, and a setting that gains two
    thirds of what more work would. A rewrite is the best only where it gains half as much again as anything else."""
    easy = max((gain for name, gain in gains.items() if efforts[name] != "rewrite"), default=0.0)
    leading = {name: gain for name, gain in gains.items() if efforts[name] != "rewrite" or gain > easy * REWRITE_RATIO}
    best = max(leading, key=leading.get, default=None)
    if best is None or gains[best] < WORTH_PCT:
        return None, []
    return best, [name for name, gain in leading.items()
                  if gain >= gains[best] - ALIKE_PCT or efforts[name] == "setting" and gain >= gains[best] / REWRITE_RATIO]


def _must_not_say(seen, changes):
    """Findings about what is not in the loop, or about what is in it and gains nothing."""
    absent = {finding for finding, what in ABOUT.items() if what not in seen}
    true = {finding for change in changes.values() if change["gain_pct"] >= NOTHING_PCT for finding in change["findings"]}
    idle = {finding for change in changes.values() if change["gain_pct"] < NOTHING_PCT for finding in change["findings"]}
    return sorted((absent | idle) - true)
