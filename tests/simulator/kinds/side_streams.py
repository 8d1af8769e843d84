"""Values that are read over a stream of their own."""
import causes
from causes import Change
from machine import COMPUTE, SIDE
from training import Runner
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


KINDS = (Streams(),)
