"""Python functions in the file, one of which fills the wait for data."""
import causes
from causes import Change
from training import Runner
from truth import Kind

HOT = ["scipy/ndimage/_interpolation.py(730): zoom", "PIL/Image.py(2156): resize", "numpy/core/_methods.py(90): normalize",
       "cv2/resize.py(12): warpAffine", "tokenizers/slow.py(231): tokenize"]


class StacksRunner(Runner):
    def take_batch(self, step):
        self.loader.take(step, in_process=self.make_batch)
        if self.loop.copy_ns:
            self.copy_batch()

    def make_batch(self, fetch_ns):
        m, kind = self.m, self.loop.kind
        usual_ns = int(fetch_ns * kind["usual"])
        with m.frame("torch/utils/data/_utils/fetch.py(51): fetch"), m.frame("data/photos.py(64): __getitem__"):
            with m.frame("data/photos.py(30): read"):
                m.go(usual_ns * 0.7, "data_wait")
            with m.frame("data/transforms.py(112): transform"), m.frame(kind["hot"]):
                for _ in range(4):
                    m.go((fetch_ns - usual_ns) / 4, "data_wait")
                    with m.op("aten::to"):
                        m.go(6_000, "data_wait")
        with m.frame("torch/utils/data/_utils/collate.py(398): default_collate"), m.op("aten::stack"):
            m.go(usual_ns * 0.3, "data_wait")


class Stacks(Kind):
    name = "python-stacks"
    about = "Python functions are in the file, as rows or as `Call stack` of operators; one of them fills the wait for data"
    runner = StacksRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names="loader", workers=0, reads="last", stacks=dice.choice(["rows", "args"]), steps=dice.randint(4, 8))
        share = dice.choice([0.01, dice.uniform(0.15, 0.6)])
        return loop.but(fetch_ns=int(loop.compute_ns * share), kind={"usual": dice.uniform(0.1, 0.4), "hot": dice.choice(HOT)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        usual_ns = int(loop.fetch_ns * loop.kind["usual"])
        found["frame"] = Change(("python-frame",), ("data_wait",), loop.but(fetch_ns=usual_ns, kind={"usual": 1.0}), "lines")
        return found

    def more(self, loop, _machines):
        return {"hot_frame": loop.kind["hot"]}


KINDS = (Stacks(),)
