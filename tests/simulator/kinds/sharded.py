"""Sharded weights (FSDP): gathered layer by layer."""
import vocabulary
from causes import Change
from machine import COMM, COMPUTE
from training import Runner
from ranks import RanksKind, draw_ranks_loop


class ShardedRunner(Runner):
    """Each layer's weights are gathered before it, forward and backward, and its gradients scattered behind it."""

    def gather(self):
        """One layer's weights. Ahead: while the layer before computes; else when it has ended."""
        m, kind = self.m, self.loop.kind
        after_ns = self.layer_began_ns if kind["ahead"] else m.streams[COMPUTE].free_ns
        m.seen.add("gather")
        end_ns = m.collective("_allgather_base", vocabulary.ALL_GATHER, kind["gather_ns"] * 100, kind["gather_ns"], after_ns=after_ns)
        m.stream_waits(COMPUTE, end_ns)
        self.layer_began_ns = m.streams[COMPUTE].free_ns

    def forward(self):
        self.layer_began_ns = 0
        super().forward()

    def forward_layer(self, layer):
        self.gather()
        super().forward_layer(layer)

    def backward_layer(self, layer):
        self.gather()
        super().backward_layer(layer)
        kind = self.loop.kind
        self.bucket_ends.append(self.m.collective("_reduce_scatter_base", vocabulary.REDUCE_SCATTER, kind["scatter_ns"] * 100, kind["scatter_ns"],
                                                   stream=COMM + 1))


class Sharded(RanksKind):
    name = "sharded"
    about = "FSDP: a layer's weights are gathered when it is reached, or one layer ahead"
    runner = ShardedRunner

    def draw(self, dice, seed):
        loop = draw_ranks_loop(dice, seed)
        layer_ns = loop.compute_ns // 3 // loop.layers
        gather_ns = int(layer_ns * dice.uniform(0.25, 0.8))
        return loop.but(kind={"ranks": dice.randint(2, 3), "ahead": dice.random() < 0.3, "gather_ns": gather_ns, "scatter_ns": gather_ns // 2})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if not loop.kind["ahead"]:
            found["gather"] = Change(("gather-exposed", "exposed-communication"), ("comm",), loop.but(kind={"ahead": True}), "setting")
        found["free"] = Change(("exposed-communication", "collective-efficiency", "gather-exposed"), ("comm",),
                               loop.but(kind={"gather_ns": 1000, "scatter_ns": 1000}), "rewrite")
        return found


KINDS = (Sharded(),)
