"""Kinds about the machine: weights that do not fit, a host that is slow, memory that is asked for anew each time."""
import causes
from causes import Change
from machine import COMPUTE, COPY
from training import MS, Runner
from truth import Kind


class OffloadRunner(Runner):
    """Each layer's weights come over PCIe when it is reached, or while the layer before computes."""

    def weights(self):
        m, kind = self.m, self.loop.kind
        m.seen.add("weights")
        with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
            self.op_time(0.5)
            if kind["ahead"]:
                end_ns = m.copy("HtoD", kind["weight_ns"] * 24, kind["weight_ns"], COPY, ready_ns=self.layer_began_ns)
                m.stream_waits(COMPUTE, end_ns)
            else:
                m.copy("HtoD", kind["weight_ns"] * 24, kind["weight_ns"])
        self.layer_began_ns = m.streams[COMPUTE].free_ns

    def forward(self):
        self.layer_began_ns = 0
        super().forward()

    def forward_layer(self, layer):
        self.weights()
        super().forward_layer(layer)

    def backward_layer(self, layer):
        self.weights()
        super().backward_layer(layer)


class Offload(Kind):
    name = "cpu-offload"
    about = "weights are kept on the host: each layer's come over PCIe in the compute stream, or one layer ahead"
    runner = OffloadRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, family="transformer", layers=dice.randint(4, 7), names=dice.choice(["profiler", "optimizer"]))
        weight_ns = int(loop.compute_ns / loop.layers / 3 * dice.uniform(0.15, 0.9))
        return loop.but(kind={"ahead": dice.random() < 0.3, "weight_ns": weight_ns})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if not loop.kind["ahead"]:
            found["ahead"] = Change(("weights-over-pcie", "blocking-copy"), ("copy_wait", "gpu"), loop.but(kind={"ahead": True}), "lines")
        return found


class SlowHost(Kind):
    name = "slow-host"
    about = "every operator takes the host ten to thirty times as long as it should: a debugger, a debug build, a starved core"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, steps=dice.randint(3, 7), layers=3, op_ns=dice.randint(7, 14) * 1000, python_ns=60_000,
                              slow_host=dice.uniform(10, 30), reads=dice.choice(["late", "none", "last"]))
        kernels = loop.layers * (20 if loop.family == "transformer" else 14)
        host_ns = kernels * loop.op_ns * loop.slow_host
        return loop.but(compute_ns=int(host_ns * dice.uniform(0.1, 0.6)), fetch_ns=int(host_ns * 0.1 * loop.workers), copy_ns=60_000)


class UncachedRunner(Runner):
    """Every result is allocated by the driver; what the backward pass has used is released."""

    def launch_in(self, name, kernel, ns):
        m, kind = self.m, self.loop.kind
        if kind["uncached"]:
            with m.op("aten::empty_strided"):
                m.go(2_000)
                m.malloc(ns // 10 * 100 + 512, m.about(kind["malloc_ns"], 0.2, "malloc"))
        super().launch_in(name, kernel, ns)

    def backward_layer(self, layer):
        super().backward_layer(layer)
        for _ in range(self.loop.kind["frees"] if self.loop.kind["uncached"] else 0):
            self.m.free(self.m.about(self.loop.kind["free_ns"], 0.2, "free"))


class Uncached(Kind):
    name = "no-cache"
    about = "the caching allocator is off: a cudaMalloc for each tensor, and a cudaFree that waits for the device"
    runner = UncachedRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, steps=dice.randint(3, 7), layers=dice.randint(3, 5), names=dice.choice(["profiler", "none"]),
                              compute_ns=dice.randint(8, 40) * MS, reads="none")
        return loop.but(fetch_ns=loop.workers * MS, copy_ns=80_000,
                        kind={"uncached": True, "malloc_ns": dice.randint(60, 400) * 1000, "free_ns": dice.randint(40, 300) * 1000, "frees": dice.randint(8, 20)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        found["cache"] = Change(("allocator-thrash",), ("allocator",), loop.but(kind={"uncached": False}), "setting")
        return found


class ZeroGrad(Kind):
    name = "zero-grad"
    about = "gradients are filled with zeros and added to, one parameter at a time"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, layers=dice.randint(5, 9), op_ns=dice.randint(14, 26) * 1000, reads="none", python_ns=50_000,
                              copy_ns=60_000, family="transformer")
        host_ns = loop.layers * 20 * (loop.op_ns + 5_300)
        return loop.but(zeroed=dice.random() < 0.8, compute_ns=host_ns, fetch_ns=host_ns * loop.workers // 2)


class SolverRunner(Runner):
    """A solver in CUDA C: kernels, each waited for, no framework and no names."""

    def step(self, step):
        m, kind = self.m, self.loop.kind
        for i, ns in enumerate(kind["kernels"]):
            m.go(m.about(kind["host_ns"], 0.1, "host"), "host")
            m.kernel(f"{kind['names'][i % len(kind['names'])]}(int, int, double*, double const*)", m.about(ns, 0.01, "kernel"))
            if kind["waits"]:
                m.wait_device("sync")
                m.seen.add("sync")
        if not kind["waits"]:
            m.wait_device("sync")

    def mark(self, step, begin):
        pass


class Solver(Kind):
    name = "solver"
    about = "a fluid solver in CUDA C, which waits for each of its kernels: no training, no framework"
    workload = "other"
    unit = "iteration"
    runner = SolverRunner
    step_is_optional = True
    adds_launch = False

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, fetch_ns=0, copy_ns=0, reads="none", names="none", python_ns=10_000, steps=dice.randint(10, 30), warm=1)
        kernels = [dice.randint(8, 200) * 1000 for _ in range(dice.randint(8, 30))]
        names = [f"{name}_kernel" for name in dice.sample(["advec_cell", "advec_mom", "pdv", "viscosity", "flux_calc", "ideal_gas", "accelerate"], 4)]
        return loop.but(kind={"kernels": kernels, "names": names, "host_ns": dice.randint(1, 4) * 1000, "waits": dice.random() < 0.8})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["waits"]:
            found["waits"] = Change(("sync-stall",), ("sync", "launch"), loop.but(kind={"waits": False}), "lines")
        return found


KINDS = (Offload(), SlowHost(), Uncached(), ZeroGrad(), Solver())
