"""Expert parallel ranks: tokens that are exchanged, and ranks with more of them."""
import vocabulary
from causes import Change
from machine import COMPUTE
from training import Runner, plan
from ranks import RanksKind, draw_ranks_loop


class ExpertsRunner(Runner):
    """Tokens go to the ranks of their experts and back, in each layer; a rank with more of them computes longer."""

    def _load(self, layer):
        kind, m = self.loop.kind, self.m
        if not kind["uneven"]:
            return 1.0
        hot = kind["hot"] if kind["hot"] >= 0 else (layer * 7 + m.step * 3) % kind["ranks"]
        ranks = kind["ranks"]
        return kind["uneven"] if m.rank == hot else (ranks - kind["uneven"]) / (ranks - 1)

    def _exchange(self):
        kind = self.loop.kind
        end_ns = self.m.collective("all_to_allv", vocabulary.SEND_RECV, kind["exchange_ns"] * 80, kind["exchange_ns"])
        self.m.stream_waits(COMPUTE, end_ns)

    def _experts(self, layer, share):
        loop, m = self.loop, self.m
        forward, _ = plan(loop.family, loop.layers, loop.compute_ns, False)
        ns = int(forward[-1][2] * share * self._load(layer))
        m.seen.add("experts")
        if self.loop.kind["uneven"]:
            m.seen.update(("imbalance", "late rank") if self.loop.kind["hot"] >= 0 else ("imbalance",))
        self._exchange()
        with m.op("aten::_grouped_mm"):
            self.op_time()
            m.kernel("void cutlass::device_kernel<at::cuda::detail::GroupedGemm<cutlass::bfloat16_t, 128, 128, 64>>", ns)
        self._exchange()

    def forward_layer(self, layer):
        super().forward_layer(layer)
        self._experts(layer, 1.0)

    def backward_layer(self, layer):
        self._experts(layer, 2.0)
        super().backward_layer(layer)


class Experts(RanksKind):
    name = "experts"
    about = "expert parallel: tokens are exchanged in each layer, and one rank at a time (or always the same) has more of them"
    runner = ExpertsRunner

    def draw(self, dice, seed):
        loop = draw_ranks_loop(dice, seed)
        ranks = dice.randint(2, 3)
        uneven = dice.uniform(1.4, min(1.9, ranks - 0.1)) if dice.random() < 0.75 else 0
        return loop.but(kind={"ranks": ranks, "uneven": uneven, "hot": dice.choice([-1, -1, dice.randrange(ranks)]),
                              "exchange_ns": dice.randint(30, 120) * 1000})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["uneven"]:
            same = loop.kind["hot"] >= 0
            findings = ("imbalance-and-bubble", "straggler-rank") if same else ("imbalance-and-bubble",)
            found["even"] = Change(findings, ("comm", "gpu") if same else ("comm",),
                                   loop.but(kind={"uneven": 0}), "lines")
        found["exchange"] = Change(("exposed-communication", "collective-efficiency"), ("comm",), loop.but(kind={"exchange_ns": 1000}), "rewrite")
        return found


KINDS = (Experts(),)
