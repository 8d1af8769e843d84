"""Single passes through alike blocks, none of which is a step."""
import causes
from causes import Change
from training import MS, Runner
from truth import Kind


class PassRunner(Runner):
    """One pass through many alike blocks."""

    def before(self):
        self.m.go(self.m.about(2 * MS, 0.5, "start"))

    def step(self, step):
        m, kind = self.m, self.loop.kind
        with m.range(kind["range"]):
            m.go(80_000)
            for block in range(self.loop.layers):
                if kind["names"]:
                    with m.range(f"DecoderLayer_{block}" if kind["names"] == "numbered" else "DecoderLayer"):
                        self.block()
                else:
                    self.block()
            if kind["trains"]:
                self.backward()
                self.optimize()
        m.wait_device("sync")
        m.seen.add("sync")

    def block(self):
        m, kind = self.m, self.loop.kind
        if kind["reads"] == "masks":  # made on the host, moved in each block
            with m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
                self.op_time(0.5)
                m.copy("HtoD", 400_000, 60_000, memory="Pageable")
                m.wait_stream()
            m.seen.add("sync")
            m.go(m.about(kind["read_ns"], 0.05, "read"), "sync")
        self.forward_layer(0)
        if kind["reads"] == "values":
            m.read_scalar(m.about(kind["read_ns"], 0.05, "read"))

    def mark(self, step, begin):
        pass


class Pass(Kind):
    name = "one-pass"
    about = "one forward pass, or one with its backward pass, through alike blocks: no block is a step"
    workload = "inference"
    unit = "pass"
    runner = PassRunner
    has_step = False
    long_steps = 4

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, family="transformer", steps=1, warm=dice.randint(0, 1), layers=dice.randint(12, 32), fetch_ns=0, copy_ns=0,
                              forward_only=True, reads="none", names="none")
        reads = dice.choice(["", "", "values", "masks"])
        return loop.but(op_ns=9_000, compute_ns=dice.randint(50, 300) * MS,
                        kind={"trains": False, "range": dice.choice(["model.forward", "request 17", "generate"]),
                              "names": dice.choice(["", "plain", "numbered"]),
                              "reads": reads, "read_ns": int(loop.compute_ns * 0.3 / loop.layers)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["reads"]:
            also = ("pageable-copy", "blocking-copy") if loop.kind["reads"] == "masks" else ()
            found["reads"] = Change(("sync-per-layer", "sync-stall", *also), ("sync", "host", "copy_wait"), loop.but(kind={"reads": ""}), "lines")
        return found


class TrainingPass(Pass):
    name = "one-training-pass"
    about = "a single step of training through alike blocks, in one range"
    workload = "training"

    def draw(self, dice, seed):
        loop = super().draw(dice, seed)
        return loop.but(forward_only=False, kind={"trains": True, "range": "train"})


KINDS = (Pass(), TrainingPass())
