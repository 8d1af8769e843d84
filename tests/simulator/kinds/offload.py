"""Weights that are kept on the host."""
import causes
from causes import Change
from machine import COMPUTE, COPY
from training import Runner
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


KINDS = (Offload(),)
