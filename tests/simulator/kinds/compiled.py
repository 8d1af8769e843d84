"""Compiled models: regions, breaks between them, copies of their inputs."""
import causes
import vocabulary
from causes import Change
from machine import AUTOGRAD
from training import Runner
from truth import Kind


class CompiledRunner(Runner):
    """Regions of torch.compile with breaks between them; graph inputs are copied on the device first."""

    def forward(self):
        self.regions("CompiledFunction", 1)

    def backward(self):
        self.bucket_ends = []
        with self.m.thread(AUTOGRAD):
            self.regions("CompiledFunctionBackward", 2)

    def regions(self, name, weight):
        loop, m, kind = self.loop, self.m, self.loop.kind
        m.seen.add("compiled")
        count = kind["regions"]
        region_ns = loop.compute_ns * weight // 3 // count
        for region in range(count):
            number = self.sequence + region
            with m.op(name, **{"Sequence number": number, "Fwd thread id": weight - 1}):
                m.go(m.about(60_000, 0.1, "guards"))
                for _ in range(kind["copies"]):
                    m.copy("DtoD", 40_000_000, kind["copy_ns"])
                with m.range(f"## Call CompiledFxGraph f{loop.seed:06d}{region:02d}{weight} ##"):
                    for i in range(loop.layers * 3):
                        triton = i % 3 != 1
                        kernel = f"triton_poi_fused__to_copy_add_gelu_native_layer_norm_{i}" if triton else vocabulary.GEMM
                        ns = region_ns * (1 if triton else 6) // (8 * loop.layers)
                        self.op_time(0.2)
                        m.kernel(kernel, m.about(ns, 0.004, "kernel"))
            if kind["break_ns"] and weight == 1:
                m.read_scalar(m.about(kind["break_ns"], 0.05, "break"))
        self.sequence += count if weight == 1 else 0


class Compiled(Kind):
    name = "compiled"
    about = "a compiled model: graph breaks at values that are read, and copies of graph inputs on the device"
    runner = CompiledRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names=dice.choice(["profiler", "optimizer"]))
        cause = dice.choice(["none", "copies", "breaks", "workers"])
        regions = dice.randint(1, 2) if cause != "breaks" else dice.randint(3, 6)
        share = dice.uniform(0.08, 0.3)
        copies = dice.randint(10, 30) if cause == "copies" else 0
        if cause == "workers":
            loop = causes.put_in(dice, loop, "workers")
        return loop.but(kind={"regions": regions, "copies": copies, "copy_ns": int(loop.compute_ns * share / max(1, copies) / regions / 2),
                              "break_ns": int(loop.compute_ns * share / regions) if cause == "breaks" else 0})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["copies"]:
            found["copies"] = Change(("compile-health",), ("gpu", "copy_wait"), loop.but(kind={"copies": 0}), "lines")
        if loop.kind["break_ns"]:
            found["breaks"] = Change(("compile-health", "sync-stall", "sync-per-layer"), ("sync", "host"), loop.but(kind={"break_ns": 0}), "lines")
        return found


KINDS = (Compiled(),)
