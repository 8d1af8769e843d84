"""A CUDA program that does not train."""
import causes
from causes import Change
from training import Runner
from truth import Kind


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
            found["waits"] = Change(("sync-per-layer", "sync-stall"), ("sync", "launch"), loop.but(kind={"waits": False}), "lines")
        return found


KINDS = (Solver(),)
