"""Steps of CUDA graphs, whose inside is in the file or is not."""
import causes
from training import Runner, plan
from truth import Kind


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


KINDS = (Graphs(),)
