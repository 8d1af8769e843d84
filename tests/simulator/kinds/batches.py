"""Loops over batches without gradients: evaluation, prediction, and what the host does before and after."""
import causes
import vocabulary
from causes import Change
from training import Runner
from truth import Kind


class BatchesRunner(Runner):
    """A loop over a loader without gradients: forward, results to the host, perhaps a measure."""

    def step(self, step):
        loop, m = self.loop, self.m
        self.take_batch(step)
        with m.frame("evaluate.py(33): predict"):
            self.forward()
        if loop.kind["measures"]:
            for name, kernel in (("aten::argmax", vocabulary.ARGMAX), ("aten::cross_entropy_loss", vocabulary.LOSS)):
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


KINDS = (Evaluation(), Inference(), Head(), Tail())
