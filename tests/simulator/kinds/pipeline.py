"""Stages of a pipeline, and its bubble."""
import vocabulary
from causes import Change
from machine import AUTOGRAD, COMM, COMPUTE
from training import MS, Runner
from ranks import RanksKind, draw_ranks_loop


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
                m.row("kernel", vocabulary.SEND_RECV, start, end, m.kernel_args(stream, number, 2, {
                    "Collective name": "send" if is_sender else "recv"}),
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
        loop = draw_ranks_loop(dice, seed, layers=dice.randint(1, 2), op_ns=5_000, steps=dice.randint(3, 5))
        batches = dice.choice([2, 3, 4])
        return loop.but(compute_ns=dice.randint(12, 30) * MS, kind={"ranks": dice.randint(2, 3), "batches": batches,
                                                                          "send_ns": dice.randint(60, 200) * 1000})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        kind = loop.kind
        found["batches"] = Change(("imbalance-and-bubble",), ("comm", "dependency"),
                                  loop.but(compute_ns=loop.compute_ns // 2, kind={
                                      "batches": kind["batches"] * 2, "send_ns": kind["send_ns"] // 2}), "setting")
        return found


KINDS = (Pipeline(),)
