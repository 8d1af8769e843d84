"""What can be wrong with a loop of any kind, one thing at a time, and the loop without it."""
import collections
import math

from training import MS, Loop

# What a change is proposed by, what the time is put down to, the loop with it, and what it takes: a "setting", "lines", a "rewrite"
Change = collections.namedtuple("Change", "findings causes loop effort")

ALL = ("none", "workers", "in process", "pageable", "blocking", "sync", "sync in layers", "layout", "optimizer", "launch", "allocator", "comm")
DEVICE = ("none", "layout", "comm")  # with these the host is ahead
EVERY_STEP = ("pageable", "sync", "sync in layers", "layout", "optimizer", "launch", "allocator", "comm", "none")


def healthy(dice, seed, **given):
    """A loop of drawn sizes in which nothing is to be gained."""
    family = dice.choice(["transformer", "convolutional"])
    layers = dice.randint(3, 6)
    loop = Loop(seed=seed, family=family, layers=layers, compute_ns=dice.randint(25, 140) * MS, op_ns=dice.randint(9, 24) * 1000,
                steps=dice.randint(6, 12), python_ns=dice.randint(50, 900) * 1000, workers=dice.randint(2, 6),
                copy_ns=dice.randint(100, 500) * 1000, names=dice.choice(["profiler", "profiler", "loader", "optimizer"]))
    loop = loop.but(fetch_ns=int(loop.compute_ns * loop.workers * dice.uniform(0.2, 0.6)))
    return loop.but(**given)


def put_in(dice, loop, cause):
    """That cause, large enough to be found."""
    share = dice.uniform(0.10, 0.45)
    step = loop.compute_ns
    if cause == "workers":
        return loop.but(fetch_ns=int(step * (1 + share * 2.5) * loop.workers), steps=max(loop.steps, 2 * loop.workers + 1),
                        names=dice.choice(["profiler", "loader"]))
    if cause == "in process":
        return loop.but(workers=0, fetch_ns=int(step * share * 1.5), reads="last", names=dice.choice(["profiler", "loader"]))
    if cause == "pageable":
        return loop.but(pageable=True, copy_ns=int(step * share / 2))
    if cause == "blocking":
        return loop.but(copy_ahead=False, copy_ns=int(step * share))
    if cause == "sync":
        return loop.but(reads="last", read_python_ns=int(step * share))
    if cause == "sync in layers":
        return loop.but(reads="layers", read_python_ns=int(step * share / loop.layers))
    if cause == "layout":
        return loop.but(family="convolutional", layout_ns=int(step * share))
    kernels = {"transformer": 20, "convolutional": 14}[loop.family]
    if cause == "optimizer":  # of a loop whose host has no time to lose
        layers, parameters = dice.randint(6, 10), dice.randint(60, 110)
        host_ns = layers * kernels * (loop.op_ns + 5_200)
        return loop.but(layers=layers, parameters=parameters, compute_ns=int(host_ns * 0.96), reads="none", copy_ns=60_000,
                        python_ns=40_000, fetch_ns=host_ns * loop.workers // 2)
    if cause == "launch":
        layers = dice.randint(8, 12)
        host_ns = layers * kernels * (loop.op_ns + 5_200)
        return loop.but(layers=layers, compute_ns=int(host_ns * (1 - share)), reads="none", copy_ns=60_000, python_ns=40_000,
                        fetch_ns=host_ns * loop.workers // 2)
    if cause == "allocator":
        count = dice.randint(2, 9)
        return loop.but(allocations=count, allocation_ns=int(step * share / count / 2))
    if cause == "comm":
        return loop.but(buckets=dice.randint(2, 4), comm_ns=int(step * (0.45 + 1.5 * share)))
    return loop


def wanted_workers(pace_ns, loop):
    """ceil(1.15 f / s), s the step that never waits for data."""
    free_ns = pace_ns(loop.but(fetch_ns=1000, workers=max(4, loop.workers)))
    return max(1, math.ceil(1.15 * loop.fetch_ns / free_ns))


def changes(loop, pace_ns):
    """{name: Change} for all that is in the loop."""
    found = {}
    if loop.fetch_ns:
        wanted = wanted_workers(pace_ns, loop)
        if wanted > loop.workers:
            found["workers"] = Change(("input-starvation", "loader-from-waits"), ("data_wait",), loop.but(workers=wanted), "setting")
    if loop.pageable:
        found["pageable"] = Change(("pageable-copy",), ("copy_wait",), loop.but(pageable=False, copy_ahead=False), "setting")
    elif loop.copy_ns and not loop.copy_ahead:
        found["blocking"] = Change(("blocking-copy",), ("copy_wait",), loop.but(copy_ahead=True), "lines")
    if loop.reads in ("last", "layers"):
        found["sync"] = Change(("sync-stall", "sync-per-layer"), ("sync", "host"), loop.but(reads="late"), "lines")
    if loop.layout_ns:
        found["layout"] = Change(("layout-conversion",), ("gpu",), loop.but(layout_ns=loop.layout_ns // 10), "lines")
    if loop.parameters:
        found["optimizer"] = Change(("slow-optimizer",), ("launch", "host"), loop.but(parameters=0), "setting")
    if loop.zeroed:
        found["zeroed"] = Change(("zero-grad-fills",), ("launch", "host", "gpu"), loop.but(zeroed=False), "lines")
    if loop.allocations:
        found["allocator"] = Change(("allocator-thrash",), ("allocator",), loop.but(allocations=0), "setting")
    if loop.buckets and not loop.comm_hidden:
        found["comm"] = Change(("exposed-communication", "collective-efficiency"), ("comm",), loop.but(comm_hidden=True), "lines")
    if loop.slow_host > 1:
        found["slow host"] = Change(("host-slow",), ("host", "launch"), loop.but(slow_host=1.0), "setting")
    else:
        found["launch"] = Change(("launch-bound", "slow-optimizer" if loop.parameters else "launch-bound"), ("launch", "host"),
                                 loop.but(op_ns=1_500), "rewrite")
    return found
