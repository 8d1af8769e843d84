"""Kinds of several ranks: sharded weights, tensors, stages of a pipeline, experts."""
import causes
import vocabulary
from causes import Change
from machine import AUTOGRAD, COMM, COMPUTE
from training import MS, Runner, plan
from truth import Kind


def _draw(dice, seed, **given):
    loop = causes.healthy(dice, seed, family="transformer", names="profiler", steps=dice.randint(4, 7), layers=dice.randint(3, 5))
    return loop.but(reads=dice.choice(["none", "late", "late"]), compute_ns=max(loop.compute_ns, 40 * MS), op_ns=9_000, fetch_ns=loop.workers * 2 * MS).but(**given)


class RanksKind(Kind):
    long_steps = 8

    def ranks(self, loop):
        return loop.kind["ranks"]


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
        loop = _draw(dice, seed)
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
        loop = _draw(dice, seed)
        is_slow = dice.random() < 0.7
        sum_ns = int(loop.compute_ns / loop.layers / 2 * (dice.uniform(0.15, 0.5) if is_slow else 0.004))
        slower = dice.randint(4, 12) if is_slow else 1
        return loop.but(kind={"ranks": dice.randint(2, 3), "sum_ns": sum_ns, "slower": slower, "bytes": sum_ns // slower * 150})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        kind = loop.kind
        if kind["slower"] > 1:
            found["link"] = Change(("collective-efficiency", "exposed-communication"), ("comm",), loop.but(kind={"sum_ns": kind["sum_ns"] // kind["slower"], "slower": 1}), "setting")
        return found


class PipelineRunner(Runner):
    """One stage of several: micro-batches forward, then one backward for each forward, then what is left."""

    def transfer(self, way, step, batch, peer):
        """Sent when this stage has it; received when both are there."""
        m, kind = self.m, self.loop.kind
        here = (min(m.rank, peer), max(m.rank, peer), way, step, batch)
        m.seen.update(("comm", "imbalance"))
        dur_ns = kind["send_ns"]
        is_sender = (way == "forward") == (peer > m.rank)
        stream = COMM + (0 if is_sender else 40)
        with m.op("c10d::send" if is_sender else "c10d::recv_"), m.op("record_param_comms", **{
                "Collective name": "send" if is_sender else "recv", "dtype": "BFloat16", "In msg nelems": dur_ns * 50, "Group size": kind["ranks"]}):
            m.go(8_000)
            begin = m.now
            returns_ns, start, _ = m.enqueue(stream, 0, m.streams[COMPUTE].free_ns if is_sender else 0)
            if is_sender:
                m.fabric.post(here, start)
                end = start + dur_ns
            else:
                end = max(start, m.fabric.receive(here)) + dur_ns
            m.streams[stream].free_ns = end
            number = m.call("cudaLaunchKernelExC", returns_ns, "launch")
            if not m.quiet:
                m.row("kernel", vocabulary.SEND_RECV, start, end, m.kernel_args(stream, number, 2, {"Collective name": "send" if is_sender else "recv"}),
                      m.device, stream, begin)
        if not is_sender:
            m.stream_waits(COMPUTE, end)

    def forward_one(self, step, batch):
        m, last = self.m, self.loop.kind["ranks"] - 1
        if m.rank > 0:
            self.transfer("forward", step, batch, m.rank - 1)
        for layer in range(self.loop.layers):
            self.forward_layer(layer)
        if m.rank < last:
            self.transfer("forward", step, batch, m.rank + 1)

    def backward_one(self, step, batch):
        m, last = self.m, self.loop.kind["ranks"] - 1
        if m.rank < last:
            self.transfer("backward", step, batch, m.rank + 1)
        with m.thread(AUTOGRAD):
            for layer in reversed(range(self.loop.layers)):
                self.backward_layer(layer)
        if m.rank > 0:
            self.transfer("backward", step, batch, m.rank - 1)

    def step(self, step):
        kind, m = self.loop.kind, self.m
        if m.rank == 0:
            self.take_batch(step)
        self.zero_gradients()
        self.bucket_ends = []
        ahead = min(kind["batches"], kind["ranks"] - 1 - m.rank)
        for batch in range(ahead):
            self.forward_one(step, batch)
        for batch in range(kind["batches"] - ahead):
            self.forward_one(step, ahead + batch)
            self.backward_one(step, batch)
        for batch in range(kind["batches"] - ahead, kind["batches"]):
            self.backward_one(step, batch)
        m.read_scalar()  # the norm of the gradients, before the optimizer
        self.optimize()


class Pipeline(RanksKind):
    name = "pipeline"
    about = "pipeline parallel, one forward one backward: stages wait at both ends of a train of micro-batches"
    runner = PipelineRunner
    long_steps = 4

    def draw(self, dice, seed):
        loop = _draw(dice, seed, layers=dice.randint(1, 2), op_ns=5_000, steps=dice.randint(3, 5))
        batches = dice.choice([2, 3, 4])
        return loop.but(compute_ns=dice.randint(12, 30) * MS, kind={"ranks": dice.randint(2, 3), "batches": batches, "send_ns": dice.randint(60, 200) * 1000})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        kind = loop.kind
        found["batches"] = Change(("imbalance-and-bubble",), ("comm", "dependency"),
                                  loop.but(compute_ns=loop.compute_ns // 2, kind={"batches": kind["batches"] * 2, "send_ns": kind["send_ns"] // 2}), "setting")
        return found


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
        loop = _draw(dice, seed)
        ranks = dice.randint(2, 3)
        uneven = dice.uniform(1.4, min(1.9, ranks - 0.1)) if dice.random() < 0.75 else 0
        return loop.but(kind={"ranks": ranks, "uneven": uneven, "hot": dice.choice([-1, -1, dice.randrange(ranks)]),
                              "exchange_ns": dice.randint(30, 120) * 1000})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["uneven"]:
            same = loop.kind["hot"] >= 0
            found["even"] = Change(("imbalance-and-bubble", "straggler-rank") if same else ("imbalance-and-bubble",), ("comm", "gpu") if same else ("comm",),
                                   loop.but(kind={"uneven": 0}), "lines")
        found["exchange"] = Change(("exposed-communication", "collective-efficiency"), ("comm",), loop.but(kind={"exchange_ns": 1000}), "rewrite")
        return found


KINDS = (Sharded(), Tensor(), Pipeline(), Experts())
