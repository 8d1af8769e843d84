"""Tensor parallel ranks: a sum behind each layer."""
import vocabulary
from causes import Change
from machine import COMPUTE
from training import Runner
from ranks import RanksKind, draw_ranks_loop


class TensorRunner(Runner):
    """Every layer's result is summed over the ranks, twice a pass, before the next may compute."""

    def _sum(self):
        kind = self.loop.kind
        end_ns = self.m.collective("allreduce", vocabulary.ALL_REDUCE, kind["bytes"], kind["sum_ns"])
        self.m.stream_waits(COMPUTE, end_ns)

    def forward_layer(self, layer):
        super().forward_layer(layer)
        self._sum()

    def backward_layer(self, layer):
        super().backward_layer(layer)
        self._sum()


class Tensor(RanksKind):
    name = "tensor-parallel"
    about = "tensor parallel: an all-reduce behind each layer, over a link that works or over one that does not"
    runner = TensorRunner

    def draw(self, dice, seed):
        loop = draw_ranks_loop(dice, seed)
        is_slow = dice.random() < 0.7
        sum_ns = int(loop.compute_ns / loop.layers / 2 * (dice.uniform(0.15, 0.5) if is_slow else 0.004))
        slower = dice.randint(4, 12) if is_slow else 1
        return loop.but(kind={"ranks": dice.randint(2, 3), "sum_ns": sum_ns, "slower": slower, "bytes": sum_ns // slower * 150})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        kind = loop.kind
        if kind["slower"] > 1:
            found["link"] = Change(("collective-efficiency", "exposed-communication"), ("comm",),
                                   loop.but(kind={"sum_ns": kind["sum_ns"] // kind["slower"], "slower": 1}), "setting")
        return found


KINDS = (Tensor(),)
