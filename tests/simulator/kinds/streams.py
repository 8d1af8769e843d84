"""Kinds about several streams and about graphs of kernels."""
import causes
import vocabulary
from causes import Change
from machine import AUTOGRAD, COMPUTE, SIDE
from training import Runner, plan
from truth import Kind


class SideRunner(Runner):
    """Small results go to the host over a stream of their own, and the host waits for them, once before each layer."""

    def forward_layer(self, layer):
        m, kind = self.m, self.loop.kind
        m.seen.add("streams")
        if kind["waits"]:
            with m.op("aten::item"), m.op("aten::_local_scalar_dense"):
                self.op_time(0.3)
                ready_ns = m.streams[COMPUTE].free_ns if kind["depends"] else 0
                if kind["depends"]:
                    m.call("cudaEventRecord", m.now + 1_500, "host")
                    m.stream_waits(SIDE, ready_ns)
                m.copy("DtoH", 8, 1_500, SIDE, "Pageable", blocks=True)
                m.seen.add("sync")
            m.go(m.about(kind["python_ns"], 0.03, "side"), "sync")
        super().forward_layer(layer)


class Streams(Kind):
    name = "side-streams"
    about = "values are read over a stream of their own, in each layer, whether they depend on what the device computes or not"
    runner = SideRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names=dice.choice(["profiler", "optimizer"]))
        depends = dice.random() < 0.6
        share = dice.uniform(0.1, 0.4) if depends else 0.02
        return loop.but(kind={"waits": True, "depends": depends, "python_ns": int(loop.compute_ns * share / loop.layers)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        found["side"] = Change(("sync-stall", "sync-per-layer"), ("sync", "host"), loop.but(kind={"waits": False}), "lines")
        return found


class GraphRunner(Runner):
    """Forward and backward pass as graphs; inputs are copied in, the optimizer is a kernel of its own."""

    def forward(self):
        loop, m = self.loop, self.m
        forward, backward = plan(loop.family, loop.layers, loop.compute_ns, False)
        nodes = [(kernel, ns) for _ in range(loop.layers) for _, kernel, ns in forward]
        nodes += [node for _ in range(loop.layers) for _, _, kernels in backward for node in kernels]
        count = loop.kind["graphs"]
        for g in range(count):
            part = nodes[g * len(nodes) // count:(g + 1) * len(nodes) // count]
            with m.op("aten::copy_"):
                self.op_time(0.5)
                m.copy("DtoD", 8_000_000, 12_000)
            m.graph([(kernel, m.about(ns, 0.004, "kernel")) for kernel, ns in part], loop.kind["inside"], g + 1)
            m.go(m.about(loop.kind["between_ns"], 0.05, "between"))

    def backward(self):
        self.bucket_ends = []


class Graphs(Kind):
    name = "cuda-graphs"
    about = "steps of CUDA graphs: recorded node by node, partly, as a whole, or not at all"
    runner = GraphRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names=dice.choice(["profiler", "loader"]))
        loop = causes.put_in(dice, loop, dice.choice(["none", "none", "workers", "pageable", "sync"]))
        return loop.but(kind={"graphs": dice.randint(1, 4), "inside": dice.choice(["nodes", "partly", "partly", "whole", "none"]),
                              "between_ns": dice.randint(20, 200) * 1000})

    def hides(self, loop):
        return loop.kind["inside"] in ("partly", "none")


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


KINDS = (Streams(), Graphs(), Compiled())
