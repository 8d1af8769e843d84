"""Kinds that answer requests or work through data without training."""
import causes
from causes import Change
from training import MS, Runner, plan
from truth import Kind

ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>>"
LOSS = "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float*, long*)"


class DecodeRunner(Runner):
    """An iteration of a server: schedule, copy what the requests need, run the model, sample, fetch the tokens, hand them out."""

    def step(self, step):
        m, kind = self.m, self.loop.kind
        m.seen.add("serving")
        m.go(m.about(kind["schedule_ns"], 0.05, "schedule"))
        with m.range(f"execute_context_0(0)_generation_{kind['requests']}({kind['requests']})"):
            for _ in range(4):
                with m.op("aten::copy_"):
                    self.op_time(0.4)
                    m.copy("HtoD", kind["requests"] * 32, 1_600)
            if kind["graph"]:
                forward, _ = plan("transformer", self.loop.layers, self.loop.compute_ns, True)
                m.graph([(k, m.about(ns, 0.004, "kernel")) for _ in range(self.loop.layers) for _, k, ns in forward], kind["inside"], 1)
            else:
                self.forward()
            with m.op("aten::argmax"):
                self.op_time()
                m.kernel(ARGMAX, 12_000)
        if kind["ahead"]:  # while this one runs, the tokens of the iteration before
            before_ns = self.loss_ns
            with m.op("aten::copy_"):
                self.loss_ns = m.copy("DtoH", kind["requests"] * 8, 1_600)
            m.call("cudaEventSynchronize", max(m.now + 2_500, before_ns + 5_000), "sync")
        else:
            with m.op("aten::to"), m.op("aten::copy_"):
                m.copy("DtoH", kind["requests"] * 8, 1_600, memory="Pageable", blocks=True)
                m.seen.add("sync")
        m.go(m.about(kind["hand_out_ns"], 0.05, "hand out"))

    def mark(self, step, begin):
        pass


class Decode(Kind):
    name = "serving"
    about = "decode iterations of a server: graphs or eager, the host works between them or beside them"
    workload = "serving"
    unit = "iteration"
    runner = DecodeRunner
    device = "H100"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, family="transformer", forward_only=True, layers=dice.randint(8, 14), fetch_ns=0, copy_ns=0,
                              steps=dice.randint(8, 24), names="none", python_ns=20_000, op_ns=dice.randint(9, 16) * 1000)
        graph = dice.random() < 0.6
        host_ns = loop.layers * 8 * (loop.op_ns + 5_300)
        compute_ns = dice.randint(5, 14) * MS if graph else int(host_ns * dice.choice([0.3, 0.5, 2.0]))
        ahead = dice.random() < 0.35
        gap_ns = int(compute_ns * (dice.uniform(0.1, 0.3) if ahead else dice.uniform(0.1, 1.0)))
        return loop.but(compute_ns=compute_ns, kind={"graph": graph, "inside": dice.choice(["nodes", "partly", "none"]), "requests": dice.choice([8, 32, 128]),
                                                     "ahead": ahead, "schedule_ns": gap_ns // 2, "hand_out_ns": gap_ns // 2})

    def hides(self, loop):
        return loop.kind["graph"] and loop.kind["inside"] in ("partly", "none")

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["graph"]:
            found.pop("launch", None)
        else:  # a setting of the server, and no rewrite
            found["launch"] = Change(("launch-bound", "iteration-gap"), ("launch", "host"), loop.but(kind={"graph": True}), "setting")
        if not loop.kind["ahead"]:
            found["gap"] = Change(("iteration-gap", "sync-stall"), ("host", "sync"), loop.but(kind={"ahead": True}), "setting")
        return found


class BatchesRunner(Runner):
    """A loop over a loader without gradients: forward, results to the host, perhaps a measure."""

    def step(self, step):
        loop, m = self.loop, self.m
        self.take_batch(step)
        with m.frame("evaluate.py(33): predict"):
            self.forward()
        if loop.kind["measures"]:
            for name, kernel in (("aten::argmax", ARGMAX), ("aten::cross_entropy_loss", LOSS)):
                with m.op(name):
                    self.op_time()
                    m.kernel(kernel, 30_000)
        self.read(step)

    def mark(self, step, begin):
        """None: nobody calls the profiler's step() in such a loop."""

    def after(self):
        """The loader is asked once more, and has no more."""
        self.loader.take_end()
        self.m.go(self.loop.kind["tail_ns"])


class Batches(Kind):
    unit = "batch"
    runner = BatchesRunner
    measures = False

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, forward_only=True, names="loader", steps=dice.randint(4, 12), reads=dice.choice(["last", "late"]))
        loop = causes.put_in(dice, loop, dice.choice(["none", "workers", "in process", "in process", "pageable", "sync", "layout"]))
        return loop.but(names="loader", kind={"measures": self.measures, "tail_ns": 0})


class Evaluation(Batches):
    name = "evaluation"
    about = "a validation loop over a loader, with a loss and a count of what was right, and no gradients"
    workload = "evaluation"
    measures = True


class Inference(Batches):
    name = "batch-inference"
    about = "predictions over a loader; its last call finds nothing"
    workload = "inference"


class Tail(Batches):
    name = "host-tail"
    about = "after the last batch the host goes on alone: results are written, nothing is launched"
    workload = "inference"

    def draw(self, dice, seed):
        loop = super().draw(dice, seed)
        return loop.but(kind={"tail_ns": int(loop.compute_ns * dice.uniform(3, 40))})


class HeadRunner(Runner):
    """Each batch is prepared by the process that runs the model, before anything is launched for it."""

    def step(self, step):
        loop, m = self.loop, self.m
        with m.frame("serve.py(20): preprocess"):
            for name, share in loop.kind["functions"]:
                with m.frame(name):
                    m.go(m.about(loop.kind["head_ns"] * share, 0.02, "head"))
        self.copy_batch()
        self.forward()
        m.read_scalar()


class Head(Kind):
    name = "preprocessing"
    about = "one to four batches, each prepared on the host before the first operation on the device; functions are in the file"
    workload = "inference"
    unit = "batch"
    runner = HeadRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, forward_only=True, fetch_ns=0, pageable=True, copy_ns=100_000, steps=dice.randint(1, 4),
                              names="profiler", reads="none", stacks="rows")
        share = dice.choice([0.01, dice.uniform(0.2, 1.5), dice.uniform(0.2, 1.5)])
        return loop.but(kind={"head_ns": int(loop.compute_ns * share), "functions": [
            ("video_processor.py(300): normalize", 0.6), ("numpy/core/fromnumeric.py(57): astype", 0.25), ("av/video/stream.py(80): decode", 0.15)]})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        found["frame"] = Change(("python-frame",), ("host", "data_wait"), loop.but(kind={"head_ns": int(loop.kind["head_ns"] * 0.4)}), "lines")
        found["worker"] = Change(("input-starvation", "python-frame"), ("host", "data_wait"), loop.but(kind={"head_ns": 0}), "lines")
        return found

    def more(self, loop, _machines):
        return {"hot_frame": loop.kind["functions"][0][0]}


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
                        kind={"trains": False, "range": dice.choice(["model.forward", "request 17", "generate"]), "names": dice.choice(["", "plain", "numbered"]),
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


KINDS = (Decode(), Evaluation(), Inference(), Head(), Tail(), Pass(), TrainingPass())
